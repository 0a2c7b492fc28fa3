"""The numbers of many kernels, and the verdict on each two of them. Plain data, made to be kept in a page."""

from enum import StrEnum
from itertools import combinations

from ktrial.model.base import Model
from ktrial.model.comparison import Verdict
from ktrial.model.workload import Direction, Mode


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
