"""`ktrial bundle`: a study with all that it measured in one file, for others to check and repeat."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import (
    Html,
    Jobs,
    Json,
    NoHtml,
    Perturbations,
    Signers,
    StoredStudyName,
    StoreOption,
    on_fleet,
    waits_for_machine,
)

if TYPE_CHECKING:
    from ktrial.bundle.replicating import Replicated
    from ktrial.bundle.writing import Written


@examples(
    "ktrial bundle quick -o quick.zip",
    "ktrial bundle quick -o quick.zip --with-kernels --sign ~/.ssh/id_ed25519",
)
def bundle(
    study: StoredStudyName = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write it here; else NAME.zip in this directory."
        ),
    ] = None,
    with_kernels: Annotated[
        bool, typer.Option("--with-kernels", help="Put the kernels' images and modules in, too.")
    ] = False,
    sign: Annotated[
        Path | None, typer.Option("--sign", metavar="KEY", help="Sign it with this OpenSSH key.")
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option(
            "--licence", metavar="SPDX", help="The licence of what was measured, such as CC-BY-4.0."
        ),
    ] = None,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Write a study, with all that it measured, as one file.

    Others check it: `ktrial replicate FILE` runs it again and compares every number. The same study gives the
    same bytes.
    """
    from ktrial.bundle.writing import Wanted, write_bundle
    from ktrial.cli.console import messages, print_json
    from ktrial.cli.studies import find, open_existing

    _check(licence)
    with open_existing(store) as opened, messages().status("") as status:
        stored = find(opened, study)
        path = file or Path(f"{stored.study.name}.zip")
        wanted = Wanted(with_kernels=with_kernels, licence=licence or "", key=sign)
        if sign:
            status.stop()  # ssh-keygen may ask for the key's passphrase
        written = write_bundle(opened, stored, path, wanted, status.update)
    if json:
        print_json(_data(written))
    else:
        _print(written)


def _check(licence: str | None) -> None:
    """Raise BadOption where that is no identifier of a licence."""
    import re

    from ktrial.cli.command_line import BadOption

    if licence and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,80}", licence):
        problem = f"'{licence}' is no SPDX identifier; allowed: such as CC-BY-4.0, CC0-1.0"
        raise BadOption(option="--licence", problem=problem)


def _data(written: "Written") -> dict[str, Any]:
    contents = written.contents
    return {
        "file": str(written.file),
        "bytes": written.size,
        "sha256": written.digest,
        "signed": written.signed,
        "study": contents.study,
        "trials": contents.trials,
        "planned": contents.planned,
        "kernels": [one.model_dump(mode="json", exclude={"origin"}) for one in contents.kernels],
        "host_files": list(contents.host_files),
        "licence": contents.licence,
    }


def _print(written: "Written") -> None:
    from ktrial.cli.console import messages, output, print_link
    from ktrial.format.number_format import counted

    contents = written.contents
    print_link("bundle", written.file, output())
    signed = "signed" if written.signed else "not signed"
    trials = counted(contents.trials, "trial").replace("\u00a0", " ")
    print(f"{trials}, {written.size} bytes, {signed}; sha256 {written.digest}")
    if contents.trials < contents.planned:
        messages().print(
            f"{contents.planned - contents.trials} planned trials have not ended: the bundle lacks them"
        )
    for kernel in contents.kernels:
        if kernel.digest and not (kernel.obtain or kernel.files):
            messages().print(f"no command brings {kernel.asked} elsewhere: --with-kernels puts it in")
    if contents.host_files:
        named = ", ".join(contents.host_files[:3])
        messages().print(f"files of this system are not in it, and others need their own: {named}")
    if not contents.licence:
        messages().print("it names no licence for what was measured: --licence CC-BY-4.0 would")


# `ktrial replicate`: runs a bundle's study again, and compares every number.

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
        print_json(_replicate_data(made, page))
    else:
        _replicate_print(made, page)
    outcome = made.replication.outcome
    if outcome in {Outcome.CONTRADICTED, Outcome.UNDECIDED}:
        raise typer.Exit(CONTRADICTED if outcome is Outcome.CONTRADICTED else UNDECIDED)


def _replicate_data(made: "Replicated", page: Path | None) -> dict[str, Any]:
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


def _replicate_print(made: "Replicated", page: Path | None) -> None:
    from ktrial.cli.console import breakable, output, print_link
    from ktrial.cli.render.table import rendered
    from ktrial.report import replication as tables

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


# `ktrial verify`: run a stored trial again; it must give the same numbers.

DIFFERS = 1
"""The exit code where a number is another."""


_VERIFY_MOST_SHOWN = 10


@examples("ktrial verify", "ktrial verify quick --seed 2")
def verify(
    study: StoredStudyName = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Draws which trial is run again.")] = 1,
    trial: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="This trial, however it ended, with its console; else one is drawn."
        ),
    ] = None,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Run a stored trial again: it must give the same numbers.

    To the last digit, for a study in exact mode; one in real time is refused. Nothing is stored. Exit code 1:
    a number is another than it was.
    """
    from ktrial import machines
    from ktrial.cli.console import messages, print_json
    from ktrial.cli.studies import find
    from ktrial.experiment.resources import default_resources
    from ktrial.experiment.stored_trials import differences, drawn_trial, repeated_trial, trial_with_key
    from ktrial.machines import CountingMachine
    from ktrial.model.trial import Outcome
    from ktrial.store.store import open_store

    with open_store(store, read_only=True) as opened:
        stored = find(opened, study)
        trials = opened.trials(stored.id)
        before = (
            trial_with_key(stored.study, trials, trial) if trial else drawn_trial(stored.study, trials, seed)
        )
    machine = machines.find(stored.study.machine.kind)
    if isinstance(machine, CountingMachine):
        machine.count_by(stored.study.machine.counted_by)
    with messages().status("") as status:

        def progress(what: str, done: int = 0, total: int = 0) -> None:
            status.update(f"{stored.study.name}, trial {before.planned.key}: {what}")

        now = repeated_trial(stored.study, before, machine, default_resources(), progress)
    differing = differences(before, now)
    if json:
        print_json(
            {
                "study": stored.study.name,
                "trial": before.planned.key,
                "seed": seed,
                "same": not differing,
                "outcome": now.outcome.value,
                "reason": now.reason,
                **({"console": now.console} if trial else {}),
                "differences": [vars(one) for one in differing],
            }
        )
    elif differing:
        print(
            f"{stored.study.name}, trial {before.planned.key}: {len(differing)} values are not what they were"
        )
        for one in differing[:_VERIFY_MOST_SHOWN]:
            print(f"  {one.fact}: {one.before}, now {one.repeated}")
    else:
        if trial and now.console.strip():
            print(now.console.rstrip())
        if trial and now.outcome is not Outcome.COMPLETED:
            print(f"{now.outcome.value}: {now.reason}")
        count = f"{len(now.samples)} numbers and {len(now.counters)} counters"
        print(f"{stored.study.name}, trial {before.planned.key}: {count} are the same to the last digit")
    if differing:
        raise typer.Exit(DIFFERS)
