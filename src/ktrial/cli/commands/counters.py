"""`ktrial counters`: which kernel events happened more or less often."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import (
    BootParameters,
    GuestMemory,
    Jobs,
    Json,
    OwnMetrics,
    Perturbations,
    StoredStudyName,
    StoreOption,
)
from ktrial.cli.options.completion import kernel_names
from ktrial.cli.options.fleet import on_fleet
from ktrial.cli.options.kernel_measurement import Cpus, Workloads

if TYPE_CHECKING:
    from ktrial.analysis.counters import CounterRow
    from ktrial.model.study_record import StudyRecord

_ROWS = 20


@examples(
    "ktrial counters --kernel debian:6.1 --kernel debian:6.12 --workload fork",
    "ktrial counters my-study --glob 'vmstat.pg*'",
    "ktrial counters --kernel debian:6.1 --kernel debian:6.12 -- ./bench.sh",
)
@on_fleet
def counters(
    context: typer.Context,
    study: StoredStudyName = None,
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Instead of a study: kernels to measure now; the first is the baseline.",
            autocompletion=kernel_names,
        ),
    ] = None,
    workload: Workloads = None,
    metrics: OwnMetrics = None,
    glob: Annotated[str, typer.Option(metavar="PATTERN", help="Which counters: 'vmstat.pg*'.")] = "*",
    all_: Annotated[bool, typer.Option("--all", help="Show those that did not change, too.")] = False,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="How many to show of each.")] = _ROWS,
    json: Json = False,
    perturbations: Perturbations = None,
    memory: GuestMemory = None,
    cpus: Cpus = None,
    boot: BootParameters = None,
    store: StoreOption = None,
    jobs: Jobs = None,
) -> None:
    """Compare event counters: faults, switches, allocations…

    Of a study's treatments, or of two kernels in workloads or with a command of your own: -- COMMAND.
    """
    from ktrial.analysis.counters import compared
    from ktrial.cli.command_line import BadOption
    from ktrial.cli.console import print_json
    from ktrial.cli.options.kernel_measurement import MeasurementOptions
    from ktrial.cli.options.own_command import own_words
    from ktrial.cli.options.stored_study import open_existing
    from ktrial.store import default_location, open_store

    if kernel and study:
        raise BadOption(option="--kernel", problem="give a study or kernels, not both")
    words = own_words(context)
    if words and not kernel:
        raise BadOption(option="--", problem="a command goes with --kernel: a study has its own workloads")
    if metrics and not kernel:
        raise BadOption(option="--metrics", problem="it goes with --kernel: a study has its own workloads")
    given = MeasurementOptions.of(workload, memory, cpus, boot, perturbations, words, metrics)
    with open_store(store or default_location()) if kernel else open_existing(store) as opened:
        record = _measured(kernel, given, opened, jobs) if kernel else _stored(study, opened)
    rows = compared(record.study, record.trials, glob)
    named = given.workloads if study or not kernel else ()
    chosen = [row for row in rows if not named or row.comparison.workload in named]
    if json:
        print_json(_as_json(record, chosen))
    else:
        _print(record, chosen, top, show_all=all_)


def _stored(study: str | None, store: Any) -> "StudyRecord":
    from ktrial.analysis.result import record as record_of
    from ktrial.cli.options.stored_study import find

    return record_of(store, find(store, study).id)


def _measured(names: list[str], given: Any, store: Any, jobs: int | None) -> "StudyRecord":
    from ktrial.cli.command_line import BadOption
    from ktrial.cli.installed import registry
    from ktrial.cli.options import kernel_measurement as measuring
    from ktrial.cli.running.preflight import check_first
    from ktrial.cli.running.progress import progress
    from ktrial.experiment.session import run
    from ktrial.experiment.single_kernel import kernel_factor
    from ktrial.model.study import Study

    kernels = list(dict.fromkeys(map(registry().kernel_name, names)))
    if len(kernels) < 2:
        raise BadOption(option="--kernel", problem="give two or more; the first is the baseline")
    if given.words:
        check_first(kernels=kernels, workloads=given.workloads, words=given.words, jobs=jobs)
    how = measuring.measurement(given)
    study = Study(
        name="counters",
        question=f"Which events does {' and '.join(kernels[1:])} have more or less often than {kernels[0]}?",
        machine=how.settings,
        factors=(kernel_factor(*kernels),),
        workloads=how.workloads,
        perturbations=how.perturbations,
    )
    with progress() as observer:
        runs = measuring.runs(store, observer, jobs)
        return run(
            study, store=store, machine=runs.machine, observer=observer, jobs=jobs, sources=runs.sources
        )


def _print(record: "StudyRecord", rows: "list[CounterRow]", top: int, *, show_all: bool) -> None:
    from rich.text import Text

    from ktrial.cli.console import output
    from ktrial.cli.render.table import rendered
    from ktrial.format.sanitize import one_line
    from ktrial.report.tables.counters import against_baseline

    console = output()
    console.print(Text(one_line(f"{record.study.name}: {record.study.question}".rstrip(": ")), style="bold"))
    groups: dict[tuple[str, str], list[CounterRow]] = {}
    for row in rows:
        groups.setdefault((row.comparison.workload, row.comparison.treatment), []).append(row)
    for (workload, treatment), own in groups.items():
        shown = [row for row in own if show_all or row.changed]
        baseline, unit = own[0].comparison.baseline, own[0].comparison.unit
        console.print()
        console.print(Text(one_line(f"{workload}: {treatment} against {baseline}, {unit}"), style="bold"))
        if shown:
            console.print(rendered(against_baseline(shown[:top])))
        console.print(Text(_rest(own, shown, top, show_all), style="dim"))
    if not groups:
        console.print("no counter matches, or the study has one treatment")


def _rest(own: "list[CounterRow]", shown: "list[CounterRow]", top: int, show_all: bool) -> str:
    from ktrial.cli.console import breakable
    from ktrial.format import number_format

    parts = []
    if len(shown) > top:
        parts.append(f"{len(shown) - top} more: --top {len(shown)}")
    if not show_all:
        same = breakable(number_format.counted(len(own) - len(shown), "counter"))
        parts.append(f"{same} did not change by more than margin and spread: --all")
    return "; ".join(parts)


def _as_json(record: "StudyRecord", rows: "list[CounterRow]") -> dict[str, Any]:
    """What `counters --json` prints; docs/check.md names every field."""
    from ktrial.report.tables.counters import against_baseline

    return {
        "study": record.study.name,
        "id": record.id,
        "counters": against_baseline(rows).data(),
    }
