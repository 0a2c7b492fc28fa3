"""A change over several machines that stand for others like them: random effects of machines, blocks within.

Each machine has one log ratio a block; its mean y has the variance v, that of the blocks by their number.
Machines are blocks of the first kind, and their effects are drawn from a distribution with the variance t²:

    weights w = 1 / (v + t²),    mean m = Σ w y / Σ w,    t² so that Σ w (y - m)² = k - 1, or 0

(Paule and Mandel, J. Res. NBS 87, 1982; of k machines; what Veroniki et al., Research Synthesis Methods 7,
2016, recommend). The interval is Hartung and Knapp's (Statistics in Medicine 20, 2001): m ± the quantile of
Student's distribution with k - 1 degrees of freedom times √(q / Σ w), with q = Σ w (y - m)² / (k - 1), not
below 1, so that it is never narrower than without differences between machines (Röver, Knapp and Friede, BMC
Medical Research Methodology 15, 2015). With two machines it is as wide as it has to be.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

LEAST_BLOCKS = 3
"""Fewer say too little of a machine's noise."""
_MOST_DOUBLINGS, _STEPS = 200, 50
Array = NDArray[np.float64]


class OverAll(NamedTuple):
    """In logarithms."""

    mean: float
    low: float
    high: float
    between: float
    """The standard deviation of the machines' own changes."""


def over_all(rows: Sequence[Sequence[float]], alpha: float = 0.05) -> OverAll | None:
    """The change over machines like these, each with its log ratios; None where one has too few blocks, or
    all alike, or there is one machine.
    """
    if len(rows) < 2 or any(len(row) < LEAST_BLOCKS or float(np.ptp(row)) == 0 for row in rows):
        return None
    y = np.array([np.mean(row) for row in rows])
    v = np.array([np.var(row, ddof=1) / len(row) for row in rows])
    between = _between(y, v)
    weights = 1 / (v + between)
    mean = float(weights @ y / weights.sum())
    spread = max(1.0, _q(y, v, between) / (len(y) - 1))
    reach = float(stats.t.ppf(1 - alpha / 2, len(y) - 1) * np.sqrt(spread / weights.sum()))
    return OverAll(mean, mean - reach, mean + reach, float(np.sqrt(between)))


def _between(y: Array, v: Array) -> float:
    """Paule and Mandel's t²."""
    wanted, low, high = len(y) - 1, 0.0, float(np.max(v))
    if _q(y, v, 0.0) <= wanted:
        return 0.0
    for _ in range(_MOST_DOUBLINGS):
        if _q(y, v, high) <= wanted:
            break
        high *= 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _q(y, v, middle) > wanted else (low, middle)
    return high


def _q(y: Array, v: Array, between: float) -> float:
    weights = 1 / (v + between)
    mean = weights @ y / weights.sum()
    return float(weights @ (y - mean) ** 2)
