"""One metric of one workload over versions or time, with the places where it changed. Plain data."""

from datetime import datetime
from enum import StrEnum
from itertools import combinations

from pydantic import Field

from ktrial.model.base import Model
from ktrial.model.comparison import Verdict
from ktrial.model.design import Perturbation
from ktrial.model.workload import Direction, Mode


class ChangeKind(StrEnum):
    """How a change shows."""

    STEP = "step"
    """Exact: beyond the margin and the spread, from one version to the next."""
    CREEP = "creep"
    """Exact: beyond them only since the stretch's first version, in small steps."""
    SHIFT = "shift"
    """Timed: the level before and the one after differ, by a test with few false alarms."""


class ChangePoint(Model):
    """One change point."""

    place: int
    """The first point after it, from 0."""
    kind: ChangeKind
    before: float
    after: float
    ratio: float | None
    """after / before, paired by perturbation; None where a value is not above zero. Timed: by the blocks of
    the study that measured both versions, else of the two levels."""
    is_paired: bool = True
    """Whether the ratio is one of paired numbers."""
    low: float | None = None
    high: float | None = None
    """Exact: the interval of the ratio over the perturbations."""
    p: float | None = None
    """Timed: the chance of such a change anywhere in a series without one."""
    verdict: Verdict = Verdict.INCONCLUSIVE
    """Better or worse, by the metric's direction."""
    since: str = ""
    """The version before, or with `creep` the one that the stretch began with."""
    version: str = ""
    """The first version after it."""
    why: str = ""
    """The command that says what the change is made of; empty where nothing can."""


class SystemIdentity(Model):
    """What has to be the same for two numbers to be put in one line: the machine, and how it is set."""

    machine: str
    qemu: str = ""
    cpu_model: str = ""
    """In real time that of the hardware."""
    agent_digest: str = ""
    seed: int = 0
    settings: str = ""
    """Memory, CPUs, boot parameters and levels of other factors, in words."""


class Point(Model):
    """One version's numbers."""

    version: str
    """The kernel's name: `debian:6.1`."""
    release: str = ""
    """`uname -r`."""
    digest: str = ""
    """The kernel's."""
    study_id: int
    study: str
    treatment: str
    values: tuple[float, ...] = ()
    """One a perturbation or block."""
    perturbations: tuple[Perturbation, ...] = Field((), exclude=True)
    """Of each value; in real time a block's number is that of its perturbation."""
    value: float | None = None
    """Their geometric mean."""
    ratio: float | None = None
    """By the point before it that has a number, paired by perturbation, or in real time by the blocks of one
    study; None where the two cannot be paired."""
    started: datetime | None = None
    problem: str = ""
    """Why there is no number, in one sentence."""

    @property
    def by_perturbation(self) -> dict[Perturbation, float]:
        """Perturbation → value."""
        return dict(zip(self.perturbations, self.values, strict=True))


class Line(Model):
    """The points that may be compared with each other, in order."""

    workload: str
    metric: str
    unit: str
    direction: Direction
    mode: Mode
    system: SystemIdentity
    perturbations: tuple[Perturbation, ...] = ()
    """Exact: those that every number was measured under. Blocks in real time are each study's own."""
    programs: dict[str, str] = Field(default_factory=dict)
    """What every number was measured with, by its digest, as far as trials noted it."""
    trials: str = ""
    """Which trials the numbers are from, in words."""
    points: tuple[Point, ...]
    ratio: float | None = None
    """The last value by the first one, paired as the points' ratios are."""
    changes: tuple[ChangePoint, ...] = ()
    wanders: bool = False
    """In real time: neighbours are so much alike that there is no level that could change (a random walk)."""
    alone: str = ""
    """Why this is not in one line with the others, in one sentence; empty for the first line."""
    answer: str = ""
    """What changed, in a sentence."""


class History(Model):
    """All lines of a workload's metric."""

    workload: str
    margin: float
    alpha: float
    """The chance of a false change in a timed series."""
    lines: tuple[Line, ...]
    missing: tuple[str, ...] = ()
    """Kernels that are in the cache and have no number, in order."""
    left_out: tuple[str, ...] = ()
    """Studies in the store that are not what was stored: `study 2, quick`."""
    answer: str = ""
    """What the first line says, and how many others there are."""


# The numbers of many kernels, and the verdict on each two of them. Plain data, made to be kept in a page.


class PairVerdict(StrEnum):
    """What the second kernel of a pair is against the first, in one letter."""

    BETTER = "b"
    WORSE = "w"
    EQUIVALENT = "e"
    INCONCLUSIVE = "i"
    IDENTICAL = "s"
    """The two are one image."""
    NOT_JUDGED = "t"
    """Real time: trials in common blocks decide, and a study has those."""
    NO_NUMBER = "-"
    """One of the two was not measured here."""

    @property
    def verdict(self) -> Verdict | None:
        """The verdict as everything else has it; None where there is none."""
        return _VERDICTS.get(self)

    @property
    def reversed(self) -> "PairVerdict":
        """The first kernel's against the second."""
        return _REVERSED.get(self, self)


_VERDICTS = {
    PairVerdict.BETTER: Verdict.BETTER,
    PairVerdict.WORSE: Verdict.WORSE,
    PairVerdict.EQUIVALENT: Verdict.EQUIVALENT,
    PairVerdict.INCONCLUSIVE: Verdict.INCONCLUSIVE,
    PairVerdict.IDENTICAL: Verdict.IDENTICAL,
}


_REVERSED = {PairVerdict.BETTER: PairVerdict.WORSE, PairVerdict.WORSE: PairVerdict.BETTER}


class MeasuredKernel(Model):
    """One kernel that may be chosen."""

    name: str
    release: str = ""
    """`uname -r`."""
    workloads: int
    """How many of them it has a number of."""


class PairLine(Model):
    """One workload's numbers on one machine."""

    workload: str
    metric: str
    unit: str
    direction: Direction
    mode: Mode
    settings: str
    """Of the machine, in words."""
    margin: float
    """What is no change."""
    alone: str = ""
    """Why it is not in one line with the workload's others."""
    trials: str = ""
    """Which trials the numbers are from, in words."""
    values: tuple[float | None, ...]
    """One a kernel, in the order of the kernels."""
    verdicts: str
    """One PairVerdict for each two kernels i < j: (0, 1), (0, 2), … (1, 2), …"""

    def verdict(self, first: int, second: int) -> PairVerdict:
        """Of the kernel at `second` against the one at `first`: two different ones."""
        low, high = sorted((first, second))
        count = len(self.values)
        place = low * count - low * (low + 1) // 2 + high - low - 1
        ascending = PairVerdict(self.verdicts[place])
        return ascending if first < second else ascending.reversed


class KernelPairs(Model):
    """Every two kernels of a store, compared."""

    kernels: tuple[MeasuredKernel, ...]
    """In the order of versions."""
    lines: tuple[PairLine, ...]
    left_out: int = 0
    """Kernels that are in the store and cannot be chosen: those with the fewest numbers."""


def pairs_of(count: int) -> tuple[tuple[int, int], ...]:
    """The places of each two of so many kernels, in the order of PairLine.verdicts."""
    return tuple(combinations(range(count), 2))


# The same comparison on several machines: whether a change is general. Plain data.


class Agreement(StrEnum):
    """Whether a change is the same on all machines."""

    SAME = "same"
    """The machines' ratios differ by less than the margin, with their spread."""
    DIFFERS = "differs"
    """They differ, beyond margin and spread, or by a test."""
    UNDECIDED = "undecided"


class OnSystem(Model):
    """What a change comes to on one machine."""

    system: SystemIdentity
    study_id: int
    ratio: float
    low: float
    high: float
    """Exact: the spread over the perturbations. Timed: the range of the blocks."""
    blocks: int


class OverMachines(Model):
    """A change in real time over machines of which these are a sample: random effects of machines."""

    ratio: float
    low: float
    high: float
    """95 % for the mean over such machines."""
    between: float
    """By how much the machines' own changes differ: their standard deviation, as a ratio."""


class Across(Model):
    """One workload's change from one version to another, machine by machine. Exact: not averaged."""

    workload: str
    metric: str
    mode: Mode
    direction: Direction
    before: str
    after: str
    systems: tuple[OnSystem, ...]
    agreement: Agreement
    p: float | None = None
    """Timed: of the interaction of machine and version; adjusted for all rows (Holm)."""
    reason: str = ""
    """Why it is undecided."""
    over_machines: OverMachines | None = None
    """Timed, where each machine has blocks enough."""


# Which kernels serve some workloads best: the table that says so, and what follows from it. Plain data.


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
    """Kernel → workloads in which it has no number that can be compared: nothing is said of it."""
    left_out: tuple[str, ...] = ()
    """Workloads of a set (`default`…) that the store has no number of."""
    answer: str
