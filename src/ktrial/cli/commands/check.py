"""`ktrial check`: is a kernel within a limit of a baseline? For pull requests and `git bisect run`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ktrial.cli.command_line import CommandWithSource, KtrialCommand, command_group, examples
from ktrial.cli.options.common import (
    BootParameters,
    GuestMemory,
    Jobs,
    Json,
    OwnMetrics,
    Perturbations,
    StoreOption,
    on_fleet,
    on_fleet_in_bisection,
)
from ktrial.cli.options.completion import kernel_names
from ktrial.cli.options.kernel_measurement import (
    BuildOptions,
    Config,
    Cpus,
    KernelName,
    KernelSelection,
    Limits,
    MeasurementOptions,
    SourceTree,
    Workloads,
    WorkloadSets,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from ktrial.experiment.regression_check import Baseline
    from ktrial.model.regression_check import RegressionCheck


@examples(
    "ktrial check --kernel path:vmlinux --against debian:6.12 --workload fork",
    "ktrial check --source . --against before --workload fork,pipe --max +1%",
    "ktrial check --kernel path:vmlinux --against debian:6.12 -- ./bench.sh",
)
@on_fleet_in_bisection
def check(
    context: typer.Context,
    against: Annotated[
        str,
        typer.Option(metavar="BASELINE", help="A saved baseline, or a kernel.", autocompletion=kernel_names),
    ],
    kernel: KernelName = None,
    source: SourceTree = None,
    workload: Workloads = None,
    metrics: OwnMetrics = None,
    maximum: Limits = None,
    config: Config = None,
    option: BuildOptions = None,
    top: Annotated[int, typer.Option(min=0, metavar="N", help="Functions to show for each change.")] = 5,
    summary: Annotated[
        Path | None,
        typer.Option(metavar="FILE.md", help="Append the result as Markdown, for a pull request."),
    ] = None,
    json: Json = False,
    perturbations: Perturbations = None,
    memory: GuestMemory = None,
    cpus: Cpus = None,
    boot: BootParameters = None,
    store: StoreOption = None,
    jobs: Jobs = None,
) -> None:
    """Measure a kernel against a baseline, for git bisect and CI.

    In workloads, or with a command of your own: -- COMMAND.

    Exit codes, as git bisect run wants them: 0 within, 1 beyond, 125 where it does not build or boot, its
    workload fails, or nothing can be decided; 2 for a mistake on the command line, and 128 or more for all
    that says nothing about the kernel.
    """
    from ktrial.cli.console import append_text, output, print_json
    from ktrial.cli.git_bisect import Endings, code_of
    from ktrial.cli.options.own_command import own_words
    from ktrial.cli.render.regression_check import as_json, as_markdown, print_check
    from ktrial.cli.running.preflight import check_first

    with Endings():
        tested = KernelSelection.of(kernel, source, config, option)
        words = own_words(context)
        given = MeasurementOptions.of(workload, memory, cpus, boot, perturbations, words, metrics)
        check_first(
            kernels=(tested.kernel, against),
            builds=tested.builds,
            workloads=workload,
            words=words,
            jobs=jobs,
        )
        result = _checked(tested, against, given, maximum or [], store, jobs)
        if summary:
            append_text(summary, as_markdown(result, top))
        if json:
            print_json(as_json(result))
        else:
            print_check(result, top, output())
        code = code_of(result.decision)
    raise typer.Exit(code)


def _checked(
    tested: KernelSelection,
    against: str,
    given: MeasurementOptions,
    maximum: list[str],
    store: str | None,
    jobs: int | None,
) -> "RegressionCheck":
    from dataclasses import replace

    from ktrial.analysis.fidelity_citation import known
    from ktrial.cli.options import kernel_measurement as measuring
    from ktrial.cli.progress import progress
    from ktrial.experiment import regression_check as baselines
    from ktrial.experiment.regression_check import check as check_kernel
    from ktrial.store.location import default_location
    from ktrial.store.store import open_store

    with open_store(store or default_location()) as opened, progress() as observer:
        runs = measuring.runs(opened, observer, jobs)
        name = _kernel_name(against)
        if name is None:
            baseline = baselines.find_baseline(against, opened)
            how = measuring.measurement_like(baseline, given)
            limits = measuring.limits(maximum, how.workloads)
            checked = check_kernel(tested.obtained(runs), baseline, how, limits, runs)
            return replace(checked, fidelity=known(opened))
        how = measuring.measurement(given)
        limits = measuring.limits(maximum, how.workloads)
        # Both kernels are at hand before anything is booted.
        before = baselines.kernel_named(name, runs)
        kernel = tested.obtained(runs)
        checked = check_kernel(kernel, baselines.of_kernel(before, how, runs), how, limits, runs)
        return replace(checked, fidelity=known(opened))


def _kernel_name(against: str) -> str | None:
    """The kernel that is meant; None where the name can only be a baseline's."""
    from ktrial.cli.studies import registry
    from ktrial.experiment.regression_check import HOST

    return registry().kernel_name(against) if ":" in against or against == HOST else None


# `ktrial sanity OLD NEW`: after an upgrade, is anything beyond the limit?


@examples(
    "ktrial sanity debian:6.1 debian:6.12",
    "ktrial sanity debian:6.1 debian:6.12 --workloads fork,pipe --max +2%",
)
@on_fleet
def sanity(
    context: typer.Context,
    old: Annotated[
        str, typer.Argument(metavar="OLD", help="The kernel before.", autocompletion=kernel_names)
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The kernel now.", autocompletion=kernel_names)],
    workloads: WorkloadSets = None,
    maximum: Limits = None,
    top: Annotated[int, typer.Option(min=0, metavar="N", help="Functions to show for each change.")] = 3,
    summary: Annotated[
        Path | None, typer.Option(metavar="FILE.md", help="Append the result as Markdown.")
    ] = None,
    json: Json = False,
    perturbations: Perturbations = None,
    memory: GuestMemory = None,
    cpus: Cpus = None,
    store: StoreOption = None,
    jobs: Jobs = None,
) -> None:
    """Compare a kernel with the one before it, after an upgrade.

    What the store has is not measured again. Exit codes as in check: 0 within, 1 beyond, 125 where it does
    not boot or nothing can be decided, 128 or more where nothing was measured.
    """
    from ktrial.cli.commands.history import workload_names_of
    from ktrial.experiment.kernel_choice import full_name

    check(
        context,
        against=full_name(old),
        kernel=full_name(new),
        workload=workload_names_of(workloads or ["quick"]),
        maximum=maximum,
        top=top,
        summary=summary,
        json=json,
        perturbations=perturbations,
        memory=memory,
        cpus=cpus,
        store=store,
        jobs=jobs,
    )


# `ktrial baseline`: what a kernel was measured to cost, kept under a name for `ktrial check`.

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
    from ktrial.cli.progress import progress
    from ktrial.cli.running.preflight import check_first
    from ktrial.experiment import regression_check as baselines
    from ktrial.store.location import default_location
    from ktrial.store.store import open_store

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
    from ktrial.cli.studies import open_existing
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
    from ktrial.cli.studies import DAMAGED, open_existing, tell_left_out
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
    from ktrial.cli.studies import open_existing
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
