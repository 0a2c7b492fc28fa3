"""`ktrial check`: is a kernel within a limit of a baseline? For pull requests and `git bisect run`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import (
    BootParameters,
    GuestMemory,
    Jobs,
    Json,
    OwnMetrics,
    Perturbations,
    StoreOption,
)
from ktrial.cli.options.completion import kernel_names
from ktrial.cli.options.fleet import on_fleet_in_bisection
from ktrial.cli.options.kernel_measurement import Cpus, Limits, MeasurementOptions, Workloads
from ktrial.cli.options.kernel_selection import BuildOptions, Config, KernelName, KernelSelection, SourceTree

if TYPE_CHECKING:
    from ktrial.experiment.regression_check import RegressionCheck


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
    from ktrial.cli.console import output, print_json
    from ktrial.cli.files import append_text
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
    from ktrial.cli.running.progress import progress
    from ktrial.experiment import regression_check as baselines
    from ktrial.experiment.regression_check import check as check_kernel
    from ktrial.store import default_location, open_store

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
    from ktrial.cli.installed import registry
    from ktrial.experiment.regression_check import HOST

    return registry().kernel_name(against) if ":" in against or against == HOST else None
