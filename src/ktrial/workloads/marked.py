"""What the QEMU plugin counted of a workload: its region, and the samples that follow from it."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ktrial.model.profile import RegionCounts
from ktrial.model.workload import Direction, Metric, Mode, Sample, WorkloadUse
from ktrial.target import StepResult

STRING_BYTES = Metric(name="string-bytes", unit="bytes", direction=Direction.LOWER)
"""Bytes that string instructions worked on, an operation: each of them counts as one instruction only."""


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


def string_bytes(label: str, region: MarkedRegion) -> Sample:
    """The sample of STRING_BYTES: the mean over the region, which is all that the plugin tells."""
    mean = region.counts.strings.bytes / region.operations
    return Sample(
        workload=label,
        metric=STRING_BYTES.name,
        unit=STRING_BYTES.unit,
        direction=STRING_BYTES.direction,
        mode=Mode.EXACT_PLUGIN,
        value=mean,
        operations=region.operations,
        mean=mean,
    )
