"""What the QEMU plugin counted of a workload: its region, and the samples that follow from it."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ktrial.model.profile import RegionCounts
from ktrial.model.workload import STRING_BYTES, Mode, Sample, WorkloadUse
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


def string_bytes(label: str, region: MarkedRegion) -> Sample:
    """The sample of STRING_BYTES: the median over the operations, as with instructions."""
    operations = region.counts.operations
    mean = region.counts.strings.bytes / region.operations
    bundle = region.operations / operations.count
    median = mean if operations.string_bytes is None else operations.string_bytes / bundle
    return Sample(
        workload=label,
        metric=STRING_BYTES.name,
        unit=STRING_BYTES.unit,
        direction=STRING_BYTES.direction,
        mode=Mode.EXACT_PLUGIN,
        value=median,
        operations=operations.count,
        median=median,
        mean=mean,
    )
