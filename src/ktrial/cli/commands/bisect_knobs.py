"""`ktrial bisect knobs`: settings of a running kernel."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.bisect import (
    AllowHostChanges,
    Alpha,
    DryRun,
    FirstBlocks,
    Limit,
    MachineName,
    Margin,
    MetricNames,
    StudyFile,
    TopFunctions,
)
from ktrial.cli.options.common import BootParameters, GuestMemory, Jobs, Json, Perturbations, StoreOption
from ktrial.cli.options.completion import kernel_names, knob_settings
from ktrial.cli.options.fleet import on_fleet
from ktrial.cli.options.kernel_measurement import Cpus, MeasurementOptions, Workloads

if TYPE_CHECKING:
    from ktrial.bisect.knobs import KnobRange
    from ktrial.cli.running.bisection import BisectOptions
    from ktrial.experiment.single_kernel import Runs
    from ktrial.model.kernel import Kernel


@examples(
    "ktrial bisect knobs --kernel host --knob vm.swappiness=60..0 --workload fork",
    "ktrial bisect knobs --kernel host --from a.conf --to b.conf --workload fork",
)
@on_fleet
def knobs(
    kernel: Annotated[
        str | None, typer.Option(metavar="NAME", help="The kernel.", autocompletion=kernel_names)
    ] = None,
    knob: Annotated[
        list[str] | None,
        typer.Option(
            "--knob",
            metavar="NAME=a..b",
            help="A knob and its values in A and B; repeated.",
            autocompletion=knob_settings,
        ),
    ] = None,
    before: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="A: NAME = VALUE lines, like sysctl.conf.")
    ] = None,
    after: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="B, with the same knobs.")
    ] = None,
    study: StudyFile = None,
    machine: MachineName = None,
    alpha: Alpha = 0.05,
    blocks: FirstBlocks = 60,
    allow_host_changes: AllowHostChanges = False,
    workload: Workloads = None,
    metric: MetricNames = None,
    margin: Margin = None,
    limit: Limit = None,
    dry_run: DryRun = False,
    json: Json = False,
    perturbations: Perturbations = None,
    memory: GuestMemory = None,
    cpus: Cpus = None,
    boot: BootParameters = None,
    top: TopFunctions = 5,
    store: StoreOption = None,
    jobs: Jobs = None,
) -> None:
    """Find which of several knobs matters, or which matter together.

    With --study, the knobs may be the study's factors of two levels; its machine and workloads are used.
    """
    from ktrial.bisect.knobs import KnobGround
    from ktrial.cli.running.bisection import BisectOptions, searched, study_at

    bisection = BisectOptions(
        MeasurementOptions.of(workload, memory, cpus, boot, perturbations),
        study_at(study),
        margin,
        tuple(metric or ()),
        limit,
        json,
        dry_run,
        store,
        jobs,
        top,
        machine,
        alpha,
        blocks,
        allow_host_changes,
    )
    ranges, name = _ranges(knob or [], before, after, bisection), _kernel(kernel, bisection)
    terms = bisection.terms("knobs", "A", "B")
    bisection.check_system(kernels=() if bisection.on_host else (name,))
    with bisection.runs() as runs:
        ground = KnobGround(lambda: _obtained(runs, name), ranges)
        searched(ground, terms, bisection, runs)


def _ranges(
    knobs: list[str], before: Path | None, after: Path | None, bisection: "BisectOptions"
) -> "tuple[KnobRange, ...]":
    from ktrial.bisect.errors import NothingDiffers
    from ktrial.bisect.knobs import check_names, knob_ranges, knobs_of_files, knobs_of_study
    from ktrial.cli.command_line import BadOption

    if bool(before) != bool(after):
        raise BadOption(option="--from and --to", problem="give both, or none")
    if before and after:
        ranges = knobs_of_files(before, after)
    else:
        ranges = knob_ranges(knobs) if knobs else knobs_of_study(bisection.study) if bisection.study else ()
    if not ranges and not (knobs or before or bisection.study):
        raise BadOption(
            option="--knob", problem="which knobs? --knob vm.dirty_ratio=20..40, or --from and --to"
        )
    if not ranges:
        raise NothingDiffers(before="A", after="B", what="knob", advice="give two values that differ")
    check_names(ranges)
    return ranges


def _kernel(kernel: str | None, bisection: "BisectOptions") -> str:
    from ktrial.cli.command_line import BadOption
    from ktrial.cli.installed import registry

    if bisection.on_host:
        return "host"
    name = kernel or (bisection.study.machine.kernel if bisection.study else "")
    if not name:
        raise BadOption(option="--kernel", problem="which kernel? ktrial kernel list")
    return registry().kernel_name(name)


def _obtained(runs: "Runs", name: str) -> "Kernel":
    """The kernel of that name; the running one where trials run on this system."""
    from ktrial.experiment.resources import RunsAlready

    return runs.machine.kernel() if isinstance(runs.machine, RunsAlready) else runs.kernel(name)
