"""`ktrial replicate`: runs a bundle's study again, and compares every number."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.bundled_study import Signers
from ktrial.cli.options.common import Html, Jobs, Json, NoHtml, Perturbations
from ktrial.cli.options.fleet import on_fleet
from ktrial.cli.options.machine_wait import waits_for_machine

if TYPE_CHECKING:
    from ktrial.bundle.replicating import Replicated

CONTRADICTED, UNDECIDED = 1, 3
"""Exit codes."""
_MOST_SHOWN = 12
_MOST_COUNTERS = 5


@examples("ktrial replicate quick.zip", "ktrial replicate quick.zip --only fork --perturbations 1")
@on_fleet
@waits_for_machine
def replicate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A bundle.", show_default=False)],
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="WORKLOAD", help="Run only this; may be repeated.")
    ] = None,
    perturbations: Perturbations = None,
    signers: Signers = None,
    host_files: Annotated[
        bool,
        typer.Option("--allow-host-files", help="Give guests the files of this system that it names."),
    ] = False,
    json: Json = False,
    store: Annotated[
        Path | None, typer.Option("--store", metavar="FILE", help="A store for it that is not there yet.")
    ] = None,
    html: Html = None,
    no_html: NoHtml = False,
    jobs: Jobs = None,
) -> None:
    """Run a bundle's study again, and compare every number.

    In guests, and in a store of its own. Exact numbers are compared digit by digit, verdicts in words:
    consistent, contradicted, undecided. Exit code 1: a number or a verdict is contradicted; 3: undecided.
    """
    from ktrial.cli.console import print_json
    from ktrial.cli.running.replication import replicated, written
    from ktrial.model.replication import Outcome

    made = replicated(
        file,
        signers,
        only=tuple(only or ()),
        perturbations=perturbations,
        host_files=host_files,
        store=store,
        jobs=jobs,
    )
    page = None if no_html else written(made, html or file.with_name(f"{file.stem}-replicated.html"))
    if json:
        print_json(_data(made, page))
    else:
        _print(made, page)
    outcome = made.replication.outcome
    if outcome in {Outcome.CONTRADICTED, Outcome.UNDECIDED}:
        raise typer.Exit(CONTRADICTED if outcome is Outcome.CONTRADICTED else UNDECIDED)


def _data(made: "Replicated", page: Path | None) -> dict[str, Any]:
    from ktrial.model.replication import Agreement, Word

    replication = made.replication
    data = replication.model_dump(mode="json", exclude={"counters", "trials"})
    return {
        **data,
        "identical": replication.count(Agreement.IDENTICAL),
        "compared": len(replication.numbers),
        "words": {word.value: replication.said_of(word) for word in Word},
        "counters": dict(zip(("identical", "compared"), replication.counters, strict=True)),
        "trials": dict(zip(("run", "bundled"), replication.trials, strict=True)),
        "answers": {"before": made.before.result.answer, "now": made.now.result.answer},
        "page": str(page) if page else None,
    }


def _print(made: "Replicated", page: Path | None) -> None:
    from ktrial.cli.console import breakable, output, print_link
    from ktrial.cli.render.table import rendered
    from ktrial.report.tables import replication as tables

    replication, console = made.replication, output()
    for kernel in replication.kernels:
        if not kernel.same:
            how = f"{kernel.how} ({kernel.release}) stands in" if kernel.how else f"not had: {kernel.problem}"
            console.print(f"kernel {kernel.asked}: {how}", soft_wrap=True)
    console.print(rendered(_short(tables.verdicts(replication))))
    numbers = tables.numbers(replication)
    if numbers.rows:
        console.print()
        console.print(rendered(_first(numbers)))
        if len(numbers.rows) > _MOST_SHOWN:
            print(f"and {len(numbers.rows) - _MOST_SHOWN} more")
    console.print()
    if replication.exact:
        same, total = replication.counters
        print(f"{same} of {total} event counters are identical")
        for one in replication.differing_counters[:_MOST_COUNTERS]:
            where = f"{one.workload}, {one.treatment}, perturbation {one.perturbation}"
            console.print(f"  {one.counter} ({where}): {one.before:g}, now {one.now or 0:g}", soft_wrap=True)
    if replication.likely:
        print(breakable(f"likely reason: {replication.likely}"))
    print(breakable(replication.said))
    if page:
        print_link("page", page, console)


def _short(table: Any) -> Any:
    """Without the intervals, for 80 columns."""
    from ktrial.format.table import Output

    for key in ("before_interval", "now_interval", "metric"):
        table = table.adapted(key, outputs=Output.DOCUMENT | Output.PROGRAMS)
    return table


def _first(table: Any) -> Any:
    import dataclasses

    return dataclasses.replace(table, rows=table.rows[:_MOST_SHOWN])
