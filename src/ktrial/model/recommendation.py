"""Which kernels serve some workloads best: the table that says so, and what follows from it. Plain data."""

from ktrial.model.base import Model
from ktrial.model.history import SystemIdentity


class Regret(Model):
    """How much worse a kernel is in one workload than the best one in it."""

    workload: str
    value: float
    ratio: float
    """At least 1, whichever direction is better."""
    low: float
    """The interval of the ratio over the perturbations, or the range of the blocks."""
    high: float


class KernelCandidate(Model):
    """One kernel."""

    version: str
    release: str
    regrets: tuple[Regret, ...]
    """One a workload, in the order in which they were named."""
    mean: float
    """The geometric mean of the ratios: each workload counts alike."""
    worst: float
    """The largest of the ratios."""
    worst_workload: str
    dominated_by: tuple[str, ...] = ()
    """Kernels that are worse in no workload and better in one at least, beyond margin and spread."""


class WithoutOne(Model):
    """What would be recommended if one workload were not asked for."""

    workload: str
    best: tuple[str, ...]
    mean: float
    """The smallest geometric mean, of the others."""


class Recommendation(Model):
    """What is said of the kernels that were measured in all of the workloads."""

    workloads: tuple[str, ...]
    margin: float
    system: SystemIdentity
    candidates: tuple[KernelCandidate, ...]
    """By the geometric mean of their regrets, the smallest first."""
    best: tuple[str, ...]
    """Undominated, and with a geometric mean within the margin of the smallest."""
    without: tuple[WithoutOne, ...] = ()
    """What is best when each workload in turn is left out; empty for one workload alone."""
    measured_by: str = ""
    """What the numbers are, in words: `instructions counted, not time`."""
    avoid: tuple[str, ...]
    """Dominated."""
    incomplete: dict[str, tuple[str, ...]]
    """Kernel → workloads in which it has no number: nothing is said of it."""
    left_out: tuple[str, ...] = ()
    """Workloads of a set (`default`…) that the store has no number of."""
    answer: str
