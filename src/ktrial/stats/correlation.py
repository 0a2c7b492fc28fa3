"""Correlations of changes, with intervals by a bootstrap over groups."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
Correlation = Callable[[Floats, Floats], float]
_DRAWS = 1000
_FEWEST = 3


def spearman(first: Floats, second: Floats) -> float:
    """The rank correlation, -1 to 1; NaN where one of the two is constant."""
    return pearson(stats.rankdata(first), stats.rankdata(second))


def pearson(first: Floats, second: Floats) -> float:
    """The correlation, -1 to 1; NaN where one is constant or there are fewer than three numbers."""
    if len(first) < _FEWEST or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def with_interval(
    correlation: Correlation, first: Floats, second: Floats, groups: Sequence[str], seed: int
) -> tuple[float | None, float | None, float | None]:
    """The correlation and its 95 % percentile interval; None for what cannot be had.

    Whole groups are drawn with replacement (cluster bootstrap: Efron and Tibshirani, An Introduction to the
    Bootstrap, 1993, chapter 8): numbers of one group are not independent.
    """
    value = correlation(first, second)
    members = [np.flatnonzero(np.array(groups) == one) for one in dict.fromkeys(groups)]
    if np.isnan(value) or len(members) < _FEWEST:
        return (None if np.isnan(value) else value), None, None
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(_DRAWS):
        chosen = np.concatenate([members[one] for one in rng.integers(len(members), size=len(members))])
        drawn.append(correlation(first[chosen], second[chosen]))
    usable = [one for one in drawn if not np.isnan(one)]
    if len(usable) < _DRAWS // 2:
        return value, None, None
    low, high = np.percentile(usable, [2.5, 97.5])
    return value, float(low), float(high)
