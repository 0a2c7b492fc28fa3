"""What another QEMU may count otherwise: the bounds that are stated for it, and where none is.

Another QEMU does not change what a guest computes. It changes at which instruction an interrupt arrives: by
little where nothing waits, and by more where a workload waits for a disk, since the moment of each answer
moves what the kernel does next. Bounds are stated for instructions, which is what exact mode counts. What a
kernel did beside (latencies, switches, pages read ahead) depends on those moments as such; for these no bound
is stated, and they are told apart.

The bounds are those that docs/bundles.md shows beside what was measured with QEMU 7.2 and 10.0.
"""

from ktrial.model.comparison import Comparison
from ktrial.model.study import Study
from ktrial.model.workload import ALL_INSTRUCTIONS, STRING_BYTES

COUNT_BOUND = 0.02
"""The most by which a count of instructions may differ, as a fraction of it."""
RATIO_BOUND = 0.005
"""The most by which a ratio of two kernels' instructions may differ."""
RATIO_BOUND_ON_DISK = 0.02
"""The same, of a workload that waits for the guest's disk."""


def has_bound(metric: str, unit: str) -> bool:
    """Whether a bound is stated for a metric: for what the plugin or the guest's clock counts."""
    return unit.partition("/")[0] == ALL_INSTRUCTIONS.unit or metric == STRING_BYTES.name


def workloads_on_disk(study: Study) -> frozenset[str]:
    """Labels of the workloads whose path lies on the study's disk."""
    disk = study.machine.disk
    if disk is None:
        return frozenset()
    paths = ((use.label, str(use.parameters.get("path", ""))) for use in study.workloads)
    return frozenset(label for label, path in paths if path == disk.path or path.startswith(f"{disk.path}/"))


def ratio_bound(one: Comparison, on_disk: frozenset[str]) -> float:
    """How far apart two ratios of the comparison may lie, counted by two releases of QEMU."""
    return RATIO_BOUND_ON_DISK if one.workload in on_disk else RATIO_BOUND
