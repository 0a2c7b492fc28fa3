"""Intervals of one group: its mean, its standard deviation."""

import math

from ktrial.stats.independent.moments import Moments


def mean_interval(group: Moments, confidence: float = 0.95) -> tuple[float, float]:
    """The mean's, by Student's t with the group's own SD. Raises ValueError where there is no spread."""
    from scipy import stats

    runs, _ = group.known
    half = float(stats.t.ppf((1 + confidence) / 2, runs - 1)) * math.sqrt(group.squared_error)
    return group.mean - half, group.mean + half


def sd_interval(group: Moments, groups: int, confidence: float = 0.95) -> tuple[float, float]:
    """The standard deviation's, one of so many groups whose intervals hold together (Bonferroni).

    From chi-square with (1 - confidence) / (2 · groups) in each tail; for normal values. Raises ValueError
    where there is no spread.
    """
    from scipy import stats

    runs, sd = group.known
    tail = (1 - confidence) / (2 * groups)
    squares = (runs - 1) * sd * sd
    low, high = (float(stats.chi2.isf(share, runs - 1)) for share in (tail, 1 - tail))
    return math.sqrt(squares / low), math.sqrt(squares / high)
