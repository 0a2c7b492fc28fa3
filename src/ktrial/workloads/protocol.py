"""What every workload offers, and what workloads share: steps that run programs, samples of results."""

import statistics
from collections.abc import Sequence
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
from ktrial.workloads.errors import WorkloadError


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
    counts, operations = region.counts, region.counts.operations
    bytes_moved = _median(label, STRING_BYTES, region, counts.strings.bytes, operations.string_bytes)
    if counts.cycles is None:
        return (bytes_moved,)
    return (bytes_moved, _median(label, MODELLED_CYCLES, region, counts.cycles, operations.cycles))


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


def sample_of(workload: str, metric: Metric, mode: Mode, values: Sequence[float]) -> Sample:
    """The sample of a metric that has been measured once or more: its value is the median."""
    median = statistics.median(values)
    return Sample(
        workload=workload,
        metric=metric.name,
        unit=metric.unit,
        direction=metric.direction,
        mode=mode,
        value=median,
        operations=len(values),
        minimum=min(values),
        median=median,
        mean=statistics.fmean(values),
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


def ended_well(workload: str, results: tuple[StepResult, ...], expected: int) -> tuple[StepResult, ...]:
    """The results, all of programs that exited with 0, as many as expected. Raises WorkloadError."""
    for result in results:
        if result.failure:
            raise WorkloadError(f"Workload {workload} could not be run: {result.failure.text}.")
        if result.timed_out:
            message = (
                f"Workload {workload} did not end within its limit; it ran {result.wall_ns / 1e6:,.0f} ms."
            )
            raise WorkloadError(message)
        if result.signal is not None:
            message = f"Workload {workload} was killed by signal {result.signal}: {last_words(result)}"
            raise WorkloadError(message)
        if result.exit != 0:
            message = f"Workload {workload} exited with status {result.exit}: {last_words(result)}"
            raise WorkloadError(message)
    if len(results) < expected:
        problem = f"only {len(results)} of its {expected} runs were reached"
        raise WorkloadError(f"Workload {workload} could not be run: {problem}.")
    return results


def last_words(result: StepResult) -> str:
    """The end of what the program wrote to standard error, else to standard output."""
    text = result.stderr.strip() or result.stdout.strip() or "it said nothing"
    return text if len(text) <= _LONGEST_QUOTE else f"…{text[-_LONGEST_QUOTE:]}"
