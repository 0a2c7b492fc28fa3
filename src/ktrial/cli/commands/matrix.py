"""`ktrial matrix`: versions by workloads against a baseline, as a heat map."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.commands.history import PageFile
from ktrial.cli.options.common import Count, Jobs, Json, Perturbations, StoreOption
from ktrial.cli.options.completion import kernel_lists, kernel_names, study_names, workload_sets
from ktrial.cli.options.fleet import on_fleet

if TYPE_CHECKING:
    from ktrial.model.matrix import Matrix
    from ktrial.model.study import Study
    from ktrial.model.study_record import StudyRecord
    from ktrial.store import Store
    from ktrial.studyfile import Registry

_BETWEEN = re.compile(r",(?![^(]*\))")
"""A comma between workloads, and not one between the parameters of `seq-read(path=/mnt, size=8)`."""
_OPTIONS = {"factors": "--kernels", "workloads": "--workloads", "machine": "the machine's options"}


@examples(
    "ktrial matrix --kernels 5.10..7.2 --workloads default --fetch",
    "ktrial matrix --kernels debian:6.1,debian:6.12 --workloads fork,pipe --csv",
)
@on_fleet
def matrix(
    kernels: Annotated[
        list[str] | None,
        typer.Option(metavar="A..B", help="5.10..7.2 of the cache, or names.", autocompletion=kernel_lists),
    ] = None,
    workloads: Annotated[
        list[str] | None,
        typer.Option(metavar="W1,W2…", help="default, quick, or workloads.", autocompletion=workload_sets),
    ] = None,
    study: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A stored study: nothing is run.", autocompletion=study_names),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="KERNEL", help="Else the first.", autocompletion=kernel_names),
    ] = None,
    fetch: Annotated[bool, typer.Option("--fetch", help="A range: of all series that Debian has.")] = False,
    flavour: Annotated[
        Literal["cloud", "generic", "rt"], typer.Option(metavar="F", help="Of a range: cloud, generic, rt.")
    ] = "cloud",
    perturbations: Perturbations = None,
    margin: Annotated[
        str | None, typer.Option(metavar="1%", help="The smallest change that matters; else 1%.")
    ] = None,
    memory: Annotated[str | None, typer.Option(metavar="512M", help="The guest's memory; else 512M.")] = None,
    count: Count = None,
    json: Json = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV: one row a cell.")] = False,
    html: PageFile = None,
    store: StoreOption = None,
    jobs: Jobs = None,
) -> None:
    """Measure versions in workloads, and show them as a heat map.

    Interrupted, the same command goes on where it stopped. With --study a stored study is shown.
    """
    from ktrial.cli.options.stored_study import open_existing
    from ktrial.cli.running.preflight import check_first, fetching_tools
    from ktrial.report import whys
    from ktrial.report.html.matrix import matrix_page
    from ktrial.report.tables.matrix import matrix as matrix_of
    from ktrial.report.text import study_summary
    from ktrial.store import default_location, open_store

    _check(study, kernels, json=json, csv=csv)
    if study is None:
        check_first(
            kernels=kernels or (),
            workloads=workload_names_of(workloads),
            tools=fetching_tools() if fetch else (),
            jobs=jobs,
        )
    given = {
        "machine": _given({"count": count, "memory": memory}),
        **_given({"margin": margin, "perturbations": perturbations}),
    }
    wanted = (
        None if study else planned(kernels or [], workloads, baseline, given, fetch=fetch, flavour=flavour)
    )
    with open_existing(store) if study else open_store(store or default_location()) as opened:
        record = _measured(wanted, study or "", opened, jobs)
        if html:
            from ktrial.cli.files import write_page

            page = matrix_page(matrix_of(record), whys(opened, record))
            write_page(html, page, "the same command again, which measures nothing twice")
    _print(matrix_of(record, all_metrics=json or csv), html, json=json, csv=csv)
    if wanted is not None and study_summary.failed_trials(record):
        raise typer.Exit(3)


def _measured(wanted: "Study | None", stored: str, store: "Store", jobs: int | None) -> "StudyRecord":
    """The record of the study that is wanted, run where that is needed; else of the stored one."""
    from ktrial.analysis.result import record as record_of
    from ktrial.cli.running.progress import progress
    from ktrial.experiment.session import run

    if wanted is None:
        return record_of(store, store.find(stored).id)
    with progress() as observer:
        return run(wanted, store=store, observer=observer, jobs=jobs)


def _print(matrix: "Matrix", html: Path | None, *, json: bool, csv: bool) -> None:
    from ktrial.cli.console import output, print_json
    from ktrial.cli.render.matrix import print_matrix
    from ktrial.report.csv import rendered
    from ktrial.report.tables.matrix import for_programs

    if json:
        print_json(matrix.model_dump(mode="json"))
    elif csv:
        typer.echo(rendered(for_programs(matrix)).encode(), nl=False)
    else:
        print_matrix(matrix, output())
        if html:
            print(f"page: {html.expanduser().absolute()}")


def _check(study: str | None, kernels: list[str] | None, *, json: bool, csv: bool) -> None:
    from ktrial.cli.command_line import BadOption

    if bool(study) == bool(kernels):
        raise BadOption(option="--kernels or --study", problem="give one of the two")
    if json and csv:
        raise BadOption(option="--json and --csv", problem="give one of the two")


def planned(
    kernels: list[str],
    workloads: list[str] | None,
    baseline: str | None,
    given: dict[str, Any],
    *,
    fetch: bool = False,
    flavour: str = "cloud",
    name: str = "matrix",
) -> "Study":
    """The study of these kernels and workloads. Raises KernelError, StudyError, HistoryError."""
    from ktrial.cli.console import say
    from ktrial.cli.installed import registry
    from ktrial.experiment.kernel_choice import expanded
    from ktrial.studyfile import StudySource, study_from

    installed = registry()

    def tell(what: str, done: int = 0, total: int = 0) -> None:
        if not total:
            say(what)

    names = expanded(kernels, installed.kernel_name, tell, fetch=fetch, flavour=flavour)
    first = _baseline(installed, baseline, names)
    ordered = [first, *(one for one in names if one != first)]
    data: dict[str, Any] = {
        "question": f"How do {len(ordered)} kernels compare with {first}?",
        "factors": {"kernel": {"levels": ordered}},
        "workloads": workload_names_of(workloads),
        **given,
    }
    return study_from(data, StudySource("command line", options=_OPTIONS), name, Path.cwd(), installed)


def _baseline(installed: "Registry", baseline: str | None, names: tuple[str, ...]) -> str:
    from ktrial.experiment.kernel_choice import full_name

    if baseline is None:
        return names[0]
    return installed.kernel_name(full_name(baseline))


def workload_names_of(texts: list[str] | None) -> list[str]:
    """`default`, `quick` and workloads, with commas between them; `default` where nothing is given."""
    sets = _sets()
    return list(dict.fromkeys(name for word in _words(texts) for name in sets.get(word, (word,))))


def in_sets(texts: list[str] | None) -> set[str]:
    """Those of the workloads that nobody named: they only belong to a set."""
    sets, words = _sets(), _words(texts)
    return {name for word in words for name in sets.get(word, ())} - set(words)


def _sets() -> dict[str, tuple[str, ...]]:
    from ktrial.workloads import DEFAULT, DISK, QUICK

    return {"default": DEFAULT, "quick": QUICK, "disk": DISK}


def _words(texts: list[str] | None) -> list[str]:
    parts = (part for text in texts or ["default"] for part in _BETWEEN.split(text))
    return [part.strip() for part in parts if part.strip()]


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
