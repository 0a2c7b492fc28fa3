"""`ktrial check`, `sanity` and `baseline`: is a kernel within a limit of another one?"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ktrial.cli.command_line import (
    Argument,
    CommandWithSource,
    Option,
    command_group,
    examples,
    users_command,
)
from ktrial.cli.console import append_text, output, print_json, print_texts, say
from ktrial.cli.error_handling import code_of
from ktrial.cli.options import kernel_measurement
from ktrial.cli.options.common import Json, StoreOption, on_fleet, on_fleet_in_bisection
from ktrial.cli.options.completion import kernel_names
from ktrial.cli.options.kernel_measurement import (
    CommandMeasurementOptions,
    GuestOptions,
    KernelOptions,
    KernelSelection,
    Limits,
    MeasurementOptions,
    WorkloadSets,
)
from ktrial.cli.options.workloads import workload_names_of
from ktrial.cli.running.preflight import check_first
from ktrial.cli.studies import DAMAGED, open_existing, open_store, registry, tell_left_out
from ktrial.format import number_format
from ktrial.format.sanitize import one_line

if TYPE_CHECKING:
    from ktrial.experiment.regression_check import Baseline
    from ktrial.model.regression_check import RegressionCheck

Summary = Annotated[
    Path | None,
    typer.Option("--summary", metavar="FILE.md", help="Append the result as Markdown, for a pull request."),
]


@examples(
    "ktrial check --kernel path:vmlinux --against debian:6.12 --workload fork",
    "ktrial check --source . --against before --workload fork,pipe --max +1%",
    "ktrial check --kernel path:vmlinux --against debian:6.12 -- ./bench.sh",
)
@on_fleet_in_bisection
def check(
    context: typer.Context,
    *,
    against: str = Option(
        ..., metavar="BASELINE", help="A saved baseline, or a kernel.", autocompletion=kernel_names
    ),
    kernel: KernelOptions,
    options: CommandMeasurementOptions,
    maximum: Limits = None,
    top: int = Option(5, min=0, metavar="N", help="Functions to show for each change."),
    summary: Summary = None,
    json: Json = False,
) -> None:
    """Measure a kernel against a baseline, for git bisect and CI.

    In workloads, or with a command of your own: -- COMMAND.

    Exit codes, as git bisect run wants them: 0 within, 1 beyond, 125 where it does not build or boot, its
    workload fails, or nothing can be decided; 2 for a mistake on the command line, and 128 or more for all
    that says nothing about the kernel.
    """
    options = replace(options, words=users_command(context))
    check_and_print(kernel.selection(), against, options, maximum or [], top=top, summary=summary, json=json)


@examples(
    "ktrial sanity debian:6.1 debian:6.12",
    "ktrial sanity debian:6.1 debian:6.12 --workloads fork,pipe --max +2%",
)
@on_fleet_in_bisection
def sanity(
    *,
    old: str = Argument(..., metavar="OLD", help="The kernel before.", autocompletion=kernel_names),
    new: str = Argument(..., metavar="NEW", help="The kernel now.", autocompletion=kernel_names),
    guest: GuestOptions,
    workloads: WorkloadSets = None,
    maximum: Limits = None,
    top: int = Option(3, min=0, metavar="N", help="Functions to show for each change."),
    summary: Summary = None,
    json: Json = False,
) -> None:
    """Compare a kernel with the one before it, after an upgrade.

    What the store has is not measured again. Exit codes as in check: 0 within, 1 beyond, 125 where it does
    not boot or nothing can be decided, 128 or more where nothing was measured.
    """
    from ktrial.experiment.kernel_choice import full_name

    tested = KernelOptions(kernel=full_name(new)).selection()
    options = MeasurementOptions(**vars(guest), workload=workload_names_of(workloads or ["quick"]))
    check_and_print(tested, full_name(old), options, maximum or [], top=top, summary=summary, json=json)


def check_and_print(
    tested: KernelSelection,
    against: str,
    options: MeasurementOptions,
    maximum: list[str],
    *,
    top: int,
    summary: Path | None,
    json: bool,
) -> None:
    """Check, print, and end with the decision's exit code."""
    from ktrial.cli.render.regression_check import as_json, as_markdown, print_check

    check_first(
        kernels=(tested.kernel, against),
        builds=tested.builds,
        workloads=options.workload,
        words=options.words,
        jobs=options.jobs,
    )
    result = _checked(tested, against, options, maximum)
    if summary:
        append_text(summary, as_markdown(result, top))
    if json:
        print_json(as_json(result))
    else:
        print_check(result, top, output())
    raise typer.Exit(code_of(result.decision))


def _checked(
    tested: KernelSelection, against: str, options: MeasurementOptions, maximum: list[str]
) -> "RegressionCheck":
    from ktrial.analysis.fidelity_citation import known
    from ktrial.cli.progress import progress
    from ktrial.experiment import regression_check
    from ktrial.experiment import regression_check as baselines

    with open_store(options.store) as store, progress() as observer:
        runs = kernel_measurement.runs(store, observer, options.jobs)
        if ":" in against or against == baselines.HOST:  # a kernel, which no baseline is called like
            name = registry().kernel_name(against)
            measured = kernel_measurement.measurement(options)
            limits = kernel_measurement.limits(maximum, measured.workloads)
            # Both kernels are at hand before anything is booted.
            before, kernel = baselines.kernel_named(name, runs), tested.obtained(runs)
            baseline = baselines.of_kernel(before, measured, runs)
        else:
            baseline = baselines.find_baseline(against, store)
            measured = kernel_measurement.measurement_like(baseline, options)
            limits = kernel_measurement.limits(maximum, measured.workloads)
            kernel = tested.obtained(runs)
        checked = regression_check.check(kernel, baseline, measured, limits, runs)
        return replace(checked, fidelity=known(store))


app = command_group("Keep what a kernel was measured to cost, for ktrial check.")
Name = Annotated[str, typer.Argument(metavar="NAME", help="The baseline's name.")]


@app.declare("save", CommandWithSource)
@examples(
    "ktrial baseline save before --kernel debian:6.12 --workload fork,pipe",
    "ktrial baseline save before --source . --workload fork",
)
@on_fleet
def save(name: Name, kernel: KernelOptions, options: MeasurementOptions, json: Json = False) -> None:
    """Measure a kernel now, and keep the numbers.

    What had the name before goes.
    """
    from ktrial.cli.progress import progress
    from ktrial.experiment import regression_check as baselines

    baselines.check_name(name)
    selection = kernel.selection()
    check_first(
        kernels=(selection.kernel,), builds=selection.builds, workloads=options.workload, jobs=options.jobs
    )
    measured = kernel_measurement.measurement(options)
    with open_store(options.store) as store, progress() as observer:
        runs = kernel_measurement.runs(store, observer, options.jobs)
        saved = baselines.save_baseline(name, selection.obtained(runs), measured, runs)
    _show(saved, json)


@app.declare("show")
@examples("ktrial baseline show before")
def show(name: Name, json: Json = False, store: StoreOption = None) -> None:
    """Show a baseline's numbers, and all that they depend on."""
    from ktrial.experiment.regression_check import find_baseline

    with open_existing(store) as opened:
        baseline = find_baseline(name, opened)
    _show(baseline, json)


@app.declare("list")
@examples("ktrial baseline list")
def list_baselines(json: Json = False, store: StoreOption = None) -> None:
    """Show the baselines in the store.

    Exit code 1: one is not what was stored; it is named, and the others are listed.
    """
    from ktrial.experiment import regression_check as baselines

    with open_existing(store) as opened:
        stored, damaged = baselines.all_baselines(opened)
    if json:
        print_json([_data(baseline) for baseline in stored])
    elif not (stored or damaged):
        say("there are no baselines yet; save one: ktrial baseline save NAME --kernel K --workload W")
    elif stored:
        rows = (
            (
                baseline.label,
                baseline.kernel,
                ", ".join(use.label for use in baseline.record.study.workloads),
                f"{baseline.record.created:%Y-%m-%d %H:%M}",
            )
            for baseline in stored
        )
        print_texts(("name", "kernel", "workloads", "saved"), rows)
    if tell_left_out([f"baseline {name}" for name in damaged], "listed"):
        raise typer.Exit(DAMAGED)


@app.declare("remove")
@examples("ktrial baseline remove before")
def remove(name: Name, store: StoreOption = None) -> None:
    """Take a baseline out of the store."""
    from ktrial.experiment import regression_check as baselines

    with open_existing(store) as opened:
        baselines.remove_baseline(name, opened)
    print(f"removed {name}")


def _show(baseline: "Baseline", json: bool) -> None:
    from ktrial.cli.render.table import rendered
    from ktrial.format.table import facts

    if json:
        print_json(_data(baseline))
        return
    console = output()
    console.print(rendered(facts({name: one_line(value) for name, value in _facts(baseline).items()})))
    console.print()
    rows = (
        (
            workload,
            f"{metric} [{unit}]" if unit and unit != metric else metric,
            number_format.number(min(values)),
            number_format.number(max(values)),
        )
        for (workload, metric, unit), values in _values(baseline).items()
    )
    print_texts(("workload", "metric", "least", "most"), rows, numeric=("least", "most"))


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
    """Workload, metric and unit → its values, in the order of perturbations."""
    values: dict[tuple[str, str, str], list[float]] = {}
    for trial in sorted(baseline.record.trials, key=lambda trial: trial.planned.perturbation.number):
        for sample in trial.samples:
            values.setdefault((sample.workload, sample.metric, sample.unit), []).append(sample.value)
    return values


def _data(baseline: "Baseline") -> dict[str, Any]:
    numbers = [
        {"workload": workload, "metric": metric, "unit": unit, "values": values}
        for (workload, metric, unit), values in _values(baseline).items()
    ]
    return {**_facts(baseline), "study": baseline.record.id, "numbers": numbers}
