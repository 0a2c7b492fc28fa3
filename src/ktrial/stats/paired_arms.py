"""Both arms of a comparison; whether they plainly scatter alike is told without numpy."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import variance

from ktrial.model.workload import EXACT_MODES, Metric, Mode

FEWEST = 3
FEWEST_FOR_RANKS = 8
"""Numbers an arm, from which on nothing is asked of their distribution."""
FLOOR = 0.1
"""Of the margin: a spread below that is none, however much smaller another one is."""
_PLAINLY_ALIKE = 4.0
"""The larger variance by the smaller one. Of 3 to 7 numbers an F test has p > 0.1 there, on both sides."""

_CLOSE = 1 - 1e-9
"""Of the margin: numpy's logarithms differ from Python's in the last digit."""


@dataclass(frozen=True)
class PairedArms:
    """Both arms of one comparison: their numbers by perturbation or block."""

    workload: str
    metric: Metric
    mode: Mode
    baseline: str
    treatment: str
    below: Mapping[int, float]
    """The baseline's: number of the perturbation or block → value."""
    above: Mapping[int, float]

    @property
    def both(self) -> list[int]:
        """Perturbations or blocks in which both have a number; none where there are too few to ask anything,
        or some have no logarithm.
        """
        both = sorted(self.below.keys() & self.above.keys())
        fewest = FEWEST if self.mode in EXACT_MODES else FEWEST_FOR_RANKS
        values = [arm[block] for block in both for arm in (self.below, self.above)]
        usable = len(both) >= fewest and all(0 < value < math.inf for value in values)
        return both if usable else []

    def plainly_alike(self, margin: float) -> bool:
        """Whether no test of the spread or of modes finds at a level of 5 % what is beyond the margin.

        An arm's standard deviation, and the distance of two modes, are not more than its range.
        """
        logs = [[math.log(arm[block]) for block in self.both] for arm in (self.below, self.above)]
        if not self.both or all(math.expm1(max(arm) - min(arm)) <= margin * _CLOSE for arm in logs):
            return True
        if len(self.both) >= FEWEST_FOR_RANKS:
            return False
        low, high = sorted(max(variance(arm), (FLOOR * margin) ** 2) for arm in logs)
        return high <= _PLAINLY_ALIKE * low
