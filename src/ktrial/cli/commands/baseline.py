"""`ktrial baseline`: what a kernel was measured to cost, kept under a name for `ktrial check`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ktrial.cli.command_line import CommandWithSource, KtrialCommand, command_group, examples
from ktrial.cli.options.common import BootParameters, GuestMemory, Jobs, Json, Perturbations, StoreOption
from ktrial.cli.options.fleet import on_fleet
from ktrial.cli.options.kernel_measurement import Cpus, Workloads
from ktrial.cli.options.kernel_selection import BuildOptions, Config, KernelName, KernelSelection, SourceTree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from ktrial.experiment.regression_check import Baseline

app = command_group("Keep what a kernel was measured to cost, for ktrial check.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The baseline's name.")]


@app.command("save", cls=CommandWithSource)
@examples(
    "ktrial baseline save before --kernel debian:6.12 --workload fork,pipe",
    "ktrial baseline save before --source . --workload fork",
)
@on_fleet
def save(
    name: Name,
    kernel: KernelName = None,
    source: SourceTree = None,
    workload: Workloads = None,
    config: Config = None,
    option: BuildOptions = None,
    json: Json = False,
    perturbations: Perturbations = None,
    memory: GuestMemory = None,
    cpus: Cpus = None,
    boot: BootParameters = None,
    store: StoreOption = None,
    jobs: Jobs = None,
) -> None:
    """Measure a kernel now, and keep the numbers.

    What had the name before goes.
    """
    from ktrial.cli.options import kernel_measurement as measuring
    from ktrial.cli.running.preflight import check_first
    from ktrial.cli.running.progress import progress
    from ktrial.experiment import regression_check as baselines
    from ktrial.store import default_location, open_store

    baselines.check_name(name)
    given = measuring.MeasurementOptions.of(workload, memory, cpus, boot, perturbations)
    wanted = KernelSelection.of(kernel, source, config, option)
    check_first(kernels=(wanted.kernel,), builds=wanted.builds, workloads=workload, jobs=jobs)
    how = measuring.measurement(given)
    with open_store(store or default_location()) as opened, progress() as observer:
        runs = measuring.runs(opened, observer, jobs)
        saved = baselines.save_baseline(name, wanted.obtained(runs), how, runs)
    _show(saved, json)


@app.command("show", cls=KtrialCommand)
@examples("ktrial baseline show before")
def show(name: Name, json: Json = False, store: StoreOption = None) -> None:
    """Show a baseline's numbers, and all that they depend on."""
    from ktrial.cli.options.stored_study import open_existing
    from ktrial.experiment.regression_check import find_baseline

    with open_existing(store) as opened:
        baseline = find_baseline(name, opened)
    _show(baseline, json)


@app.command("list", cls=KtrialCommand)
@examples("ktrial baseline list")
def list_baselines(json: Json = False, store: StoreOption = None) -> None:
    """Show the baselines in the store.

    Exit code 1: one is not what was stored; it is named, and the others are listed.
    """
    from ktrial.cli.console import messages, output, print_json
    from ktrial.cli.damaged_studies import DAMAGED, tell_left_out
    from ktrial.cli.options.stored_study import open_existing
    from ktrial.experiment import regression_check as baselines

    with open_existing(store) as opened:
        stored, damaged = baselines.all_baselines(opened)
    if json:
        print_json([_data(one) for one in stored])
    elif not (stored or damaged):
        messages().print(
            "there are no baselines yet; save one: ktrial baseline save NAME --kernel K --workload W"
        )
    elif stored:
        output().print(_list_table(stored))
    if tell_left_out([f"baseline {name}" for name in damaged], "listed"):
        raise typer.Exit(DAMAGED)


@app.command("remove", cls=KtrialCommand)
@examples("ktrial baseline remove before")
def remove(name: Name, store: StoreOption = None) -> None:
    """Take a baseline out of the store."""
    from ktrial.cli.options.stored_study import open_existing
    from ktrial.experiment.regression_check import remove_baseline as remove_it

    with open_existing(store) as opened:
        remove_it(name, opened)
    print(f"removed {name}")


def _show(baseline: "Baseline", json: bool) -> None:
    from ktrial.cli.console import output, print_json

    if json:
        print_json(_data(baseline))
        return
    console = output()
    console.print(_facts_table(baseline))
    console.print()
    console.print(_numbers_table(baseline))


def _facts(baseline: "Baseline") -> dict[str, str]:
    """What the numbers depend on: a check refuses to compare across most of it."""
    record = baseline.record
    origin = record.trials[0].provenance
    settings = record.study.machine
    return {
        "name": baseline.label,
        "saved": f"{record.created:%Y-%m-%d %H:%M} UTC",
        "kernel": f"{baseline.kernel} ({origin.kernel_release})",
        "content": origin.kernel_digest,
        "machine": f"{origin.machine}, {settings.memory_mib} MiB, CPUs: {settings.cpus}",
        "QEMU": origin.qemu,
        "CPU model": origin.cpu_model,
        "command line": origin.command_line,
        "guest agent": origin.agent_digest,
        "mode": ", ".join(sorted({s.mode.value for trial in record.trials for s in trial.samples})),
        "perturbations": str(record.study.perturbations),
        "ktrial": origin.ktrial,
    }


def _values(baseline: "Baseline") -> dict[tuple[str, str, str], list[float]]:
    values_by_metric: dict[tuple[str, str, str], list[float]] = {}
    for trial in sorted(baseline.record.trials, key=lambda trial: trial.planned.perturbation.number):
        for sample in trial.samples:
            values_by_metric.setdefault((sample.workload, sample.metric, sample.unit), []).append(
                sample.value
            )
    return values_by_metric


def _data(baseline: "Baseline") -> dict[str, Any]:
    numbers = [
        {"workload": workload, "metric": metric, "unit": unit, "values": values}
        for (workload, metric, unit), values in _values(baseline).items()
    ]
    return {**_facts(baseline), "study": baseline.record.id, "numbers": numbers}


def _facts_table(baseline: "Baseline") -> "Table":
    from ktrial.cli.render.table import rendered
    from ktrial.format.sanitize import one_line
    from ktrial.format.table import facts

    return rendered(facts({what: one_line(value) for what, value in _facts(baseline).items()}))


def _numbers_table(baseline: "Baseline") -> "Table":
    from ktrial.cli.render.table import rendered
    from ktrial.format import number_format
    from ktrial.format.table import Field, number_field, table, text_field

    fields: tuple[Field[tuple[tuple[str, str, str], list[float]]], ...] = (
        text_field("workload", lambda one: one[0][0]),
        text_field("metric", lambda one: _metric_text(*one[0][1:])),
        number_field("least", lambda one: number_format.number(min(one[1]))),
        number_field("most", lambda one: number_format.number(max(one[1]))),
    )
    return rendered(table(fields, _values(baseline).items()))


def _metric_text(metric: str, unit: str) -> str:
    return f"{metric} [{unit}]" if unit and unit != metric else metric


def _list_table(baselines: "Sequence[Baseline]") -> "Table":
    from ktrial.cli.render.table import rendered
    from ktrial.format.table import Field, table, text_field

    fields: tuple[Field[Baseline], ...] = (
        text_field("name", lambda one: one.label),
        text_field("kernel", lambda one: one.kernel),
        text_field("workloads", lambda one: ", ".join(use.label for use in one.record.study.workloads)),
        text_field("saved", lambda one: f"{one.record.created:%Y-%m-%d %H:%M}"),
    )
    return rendered(table(fields, baselines))
