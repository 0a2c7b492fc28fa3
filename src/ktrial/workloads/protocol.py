"""What every workload offers: its description, what the guest needs, what it does, what came of it."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ktrial.model.design import Perturbation
from ktrial.model.machine import CarriedFile
from ktrial.model.profile import RegionCounts
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import (
    MODELLED_CYCLES,
    STRING_BYTES,
    Metric,
    Mode,
    Sample,
    WorkloadDescription,
    WorkloadUse,
)
from ktrial.target import Run, Step, StepResult
from ktrial.workloads.errors import WorkloadFailed, WorkloadKilled, WorkloadNotStarted, WorkloadTimedOut


@runtime_checkable
class Workload(Protocol):
    """A workload. To add one, put an object `WORKLOAD` into a module of this package.

    Other packages name theirs by an entry point of the group `ktrial.workloads`.
    """

    @property
    def description(self) -> WorkloadDescription:
        """Its name, metrics and parameters."""
        ...

    def files(self, use: WorkloadUse) -> tuple[CarriedFile, ...]:
        """Host files that the guest needs. Raises WorkloadError where one is missing."""
        ...

    def steps(self, use: WorkloadUse, mode: Mode, perturbation: Perturbation) -> tuple[Step, ...]:
        """What the target is to do. `use` has been checked (`ktrial.workloads.check`)."""
        ...

    def samples(self, use: WorkloadUse, mode: Mode, results: tuple[StepResult, ...]) -> tuple[Sample, ...]:
        """The samples in the results of these steps.

        Raises WorkloadError where a step failed, or its output is missing or short.
        """
        ...


@runtime_checkable
class CountsOperations(Protocol):
    """A workload that knows how many operations its programs did: event counters are divided by it."""

    def operations(self, use: WorkloadUse, results: tuple[StepResult, ...]) -> int:
        """All of them, those that are done first and do not count among them; from results with samples."""
        ...


@runtime_checkable
class RunsPrograms(Protocol):
    """A workload that runs programs of others."""

    def programs(self, use: WorkloadUse, results: tuple[StepResult, ...]) -> dict[str, str]:
        """Program → its version, and the arguments that it was run with; from results with samples."""
        ...


@runtime_checkable
class WarnsOfRuns(Protocol):
    """A workload that may find something odd about runs that are good all the same."""

    def warnings(self, use: WorkloadUse, results: tuple[StepResult, ...]) -> tuple[DataWarning, ...]:
        """What it found; from results with samples."""
        ...


# What the QEMU plugin counted of a workload: its region, and the samples that follow from it.


@dataclass(frozen=True)
class MarkedRegion:
    """A region, and the operations that its counts are divided by."""

    counts: RegionCounts
    operations: int


@runtime_checkable
class MarkedWorkload(Protocol):
    """A workload whose region is known: `ktrial profile` and `ktrial explain` work on it."""

    def region(self, use: WorkloadUse, results: tuple[StepResult, ...]) -> MarkedRegion:
        """The region that counts, in results that `samples` has found good. Raises NoMarkedRegion."""
        ...


def beside_instructions(label: str, region: MarkedRegion) -> tuple[Sample, ...]:
    """The samples of STRING_BYTES and, where cycles were modelled, of MODELLED_CYCLES.

    The median over the operations, as with instructions; the program's own overhead is within it.
    """
    counts, each = region.counts, region.counts.operations
    bytes_moved = _median(label, STRING_BYTES, region, counts.strings.bytes, each.string_bytes)
    if counts.cycles is None:
        return (bytes_moved,)
    return (bytes_moved, _median(label, MODELLED_CYCLES, region, counts.cycles, each.cycles))


def _median(label: str, metric: Metric, region: MarkedRegion, total: float, middle: float | None) -> Sample:
    """`middle`: the median of what is marked as one operation, which may be several."""
    count = region.counts.operations.count
    mean = total / region.operations
    median = mean if middle is None else middle / (region.operations / count)
    return Sample(
        workload=label,
        metric=metric.name,
        unit=metric.unit,
        direction=metric.direction,
        mode=Mode.EXACT_PLUGIN,
        value=median,
        operations=count,
        median=median,
        mean=mean,
    )


# Programs run as steps: how they are started, and how they must have ended.

_LONGEST_QUOTE = 400


PADDING = "KTRIAL_PADDING"
"""The environment variable that fills the environment up where a perturbation asks for it."""


def run_step(
    argv: tuple[str, ...],
    perturbation: Perturbation,
    environment: dict[str, str] | None = None,
    directory: str = "/",
    user: str = "",
) -> Run:
    """A program to be run under the perturbation."""
    padding = {PADDING: "x" * perturbation.environment_bytes} if perturbation.environment_bytes else {}
    return Run(
        argv=argv,
        environment=(environment or {}) | padding,
        directory=directory,
        layout_seed=perturbation.layout_seed,
        start_offset_ns=perturbation.start_offset,
        user=user,
    )


def ended_well(workload: str, results: tuple[StepResult, ...], wanted: int) -> tuple[StepResult, ...]:
    """The results, all of programs that exited with 0, as many as wanted.

    Raises WorkloadNotStarted, WorkloadTimedOut, WorkloadKilled, WorkloadFailed for the first that is not.
    """
    for result in results:
        _check_end(workload, result)
    if len(results) < wanted:
        problem = f"only {len(results)} of its {wanted} runs were reached"
        raise WorkloadNotStarted(workload=workload, problem=problem)
    return results


def _check_end(workload: str, result: StepResult) -> None:
    if result.failure:
        raise WorkloadNotStarted(workload=workload, problem=result.failure.text)
    if result.timed_out:
        raise WorkloadTimedOut(workload=workload, limit=f"its limit; it ran {result.wall_ns} ns")
    if result.signal is not None:
        raise WorkloadKilled(workload=workload, signal=result.signal, said=last_words(result))
    if result.exit != 0:
        raise WorkloadFailed(workload=workload, status=result.exit, said=last_words(result))


def last_words(result: StepResult) -> str:
    """The end of what the program wrote to standard error, else to standard output."""
    said = result.stderr.strip() or result.stdout.strip() or "it said nothing"
    return said if len(said) <= _LONGEST_QUOTE else f"…{said[-_LONGEST_QUOTE:]}"
