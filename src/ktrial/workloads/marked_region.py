"""What the QEMU plugin counted of a workload: its region, and the samples that follow from it."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ktrial.model.profile import RegionCounts
from ktrial.model.workload import MODELLED_CYCLES, STRING_BYTES, Metric, Mode, Sample, WorkloadUse
from ktrial.target import StepResult


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
    bytes_moved = _sample(label, STRING_BYTES, region, counts.strings.bytes, each.string_bytes)
    if counts.cycles is None:
        return (bytes_moved,)
    return (bytes_moved, _sample(label, MODELLED_CYCLES, region, counts.cycles, each.cycles))


def _sample(label: str, metric: Metric, region: MarkedRegion, total: float, middle: float | None) -> Sample:
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
