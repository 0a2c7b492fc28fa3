"""`ktrial bisect knobs`: settings of a running kernel."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.commands._bisect_common import (
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
    Wanted,
    study_at,
)
from ktrial.cli.commands._bisect_search import searched
from ktrial.cli.options.common import Jobs, Json, Perturbations, StoreOption, kernel_names
from ktrial.cli.options.measurement import Cpus, Given, MemorySize, Workloads
from ktrial.cli.options.profiling import BootParameters

if TYPE_CHECKING:
    from ktrial.bisect.knobs import KnobRange
    from ktrial.experiment.single_kernel import Runs
    from ktrial.model.kernel import Kernel


def knobs(
    kernel: Annotated[
        str | None, typer.Option(metavar="NAME", help="The kernel.", autocompletion=kernel_names)
    ] = None,
    knob: Annotated[
        list[str] | None,
        typer.Option("--knob", metavar="NAME=a..b", help="A knob and its values in A and B; repeated."),
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
    memory: MemorySize = None,
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

    wanted = Wanted(
        Given.of(workload, memory, cpus, boot, perturbations),
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
    ranges, name = _ranges(knob or [], before, after, wanted), _kernel(kernel, wanted)
    terms = wanted.terms("knobs", "A", "B")
    with wanted.runs() as runs:
        ground = KnobGround(lambda: _obtained(runs, name), ranges)
        searched(ground, terms, wanted, runs)


def _ranges(
    knobs: list[str], before: Path | None, after: Path | None, wanted: Wanted
) -> "tuple[KnobRange, ...]":
    from ktrial.bisect.errors import NothingDiffers
    from ktrial.bisect.knobs import check_names, knob_ranges, knobs_of_files, knobs_of_study
    from ktrial.cli.options.profiling import BadOption

    if bool(before) != bool(after):
        raise BadOption(option="--from and --to", problem="give both, or none")
    if before and after:
        found = knobs_of_files(before, after)
    else:
        found = knob_ranges(knobs) if knobs else knobs_of_study(wanted.study) if wanted.study else ()
    if not found and not (knobs or before or wanted.study):
        raise BadOption(
            option="--knob", problem="which knobs? --knob vm.dirty_ratio=20..40, or --from and --to"
        )
    if not found:
        raise NothingDiffers(before="A", after="B", what="knob", advice="give two values that differ")
    check_names(found)
    return found


def _kernel(kernel: str | None, wanted: Wanted) -> str:
    from ktrial.cli.installed import registry
    from ktrial.cli.options.profiling import BadOption

    if wanted.on_host:
        return "host"
    name = kernel or (wanted.study.machine.kernel if wanted.study else "")
    if not name:
        raise BadOption(option="--kernel", problem="which kernel? ktrial kernel list")
    return registry().kernel_name(name)


def _obtained(runs: "Runs", name: str) -> "Kernel":
    """The kernel of that name; the running one where trials run on this system."""
    from ktrial.experiment.running_kernel import RunsAlready

    return runs.machine.kernel() if isinstance(runs.machine, RunsAlready) else runs.kernel(name)
