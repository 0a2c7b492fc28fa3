"""The slope of a line through noise: Theil and Sen's, the median of the slopes between every two points.

(Sen, JASA 63, 1968.) Of n points there are n(n - 1)/2 slopes: of a study with a thousand treatments 10^8,
more than fit into memory. With r(s) = y - s·x, the slope between two points lies below s exactly where r has
them in the other order, so that counting the pairs in the wrong order (a merge sort: n log n) tells how many
slopes lie below s (Cole, Salowe, Steiger and Szemerédi, SIAM J. Comput. 18(4), 1989). Bisection leaves a few
slopes for each point around the median, and only those are made.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Places = NDArray[np.int64]

_FEW = 2000
"""Points of which all slopes are made at once."""
_LEFT = 16
"""Slopes for each point that bisection may leave."""


def median_slope(x: Array, y: Array) -> float:
    """The median of the slopes between every two points. No two have the same x.

    Raises ValueError where there is one point.
    """
    if len(x) < 2:
        raise ValueError("a slope needs two points")
    order = np.argsort(x)
    x, y = x[order], y[order]
    if len(x) <= _FEW:
        return float(np.median(_slopes(x, y, *np.triu_indices(len(x), 1))))
    pairs = len(x) * (len(x) - 1) // 2
    middle = {(pairs - 1) // 2, pairs // 2}
    return sum(_slope_of_rank(x, y, rank) for rank in middle) / len(middle)


def _slopes(x: Array, y: Array, first: Places, second: Places) -> Array:
    return np.asarray((y[second] - y[first]) / (x[second] - x[first]))


def _slope_of_rank(x: Array, y: Array, rank: int) -> float:
    """The slope that so many others lie below."""
    most = float(np.ptp(y) / np.diff(x).min()) * (1 + 1e-9) + 1e-300
    low, high = -most, most
    below, up_to = 0, len(x) * (len(x) - 1) // 2
    # Coarse values have many slopes of 0: they are counted first, as bisection finds 0 last of all numbers.
    falling, level = _count(y), sum(count * (count - 1) // 2 for count in np.unique_counts(y).counts.tolist())
    if falling <= rank < falling + level:
        return 0.0
    if rank < falling:
        high, up_to = 0.0, falling
    else:
        low, below = 0.0, falling
    while up_to - below > _LEFT * len(x):
        middle = (low + high) / 2
        if not low < middle < high:
            # Neighbouring numbers: all slopes that are left are the same.
            return high
        count = _count(y - middle * x)
        if count <= rank:
            low, below = middle, count
        else:
            high, up_to = middle, count
    between = np.sort(_slopes(x, y, *_turned(y - low * x, y - high * x)))
    return float(between[min(max(rank - below, 0), len(between) - 1)])


def _count(values: Array) -> int:
    """How many pairs are in the wrong order: the larger value first."""
    return sum(int(greater.sum()) for *_, greater in _merges(_ranks(values)))


def _turned(before: Array, after: Array) -> tuple[Places, Places]:
    """The pairs that the first order has right and the second one wrong; the lower place first."""
    order = np.argsort(before, kind="stable")
    ranks = _ranks(after[order])
    place = np.empty_like(order)
    place[ranks] = order
    firsts, seconds = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for left, right, start, greater in _merges(ranks):
        begin = np.cumsum(greater) - greater
        of_left = np.repeat(start - begin, greater) + np.arange(greater.sum())
        firsts.append(place[left[of_left]])
        seconds.append(place[np.repeat(right, greater)])
    return np.concatenate(firsts), np.concatenate(seconds)


def _ranks(values: Array) -> Places:
    """From 0; of equal values the earlier one has the lower rank."""
    ranks = np.empty(len(values), np.int64)
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return ranks


def _merges(ranks: Places) -> Iterator[tuple[Places, Places, Places, Places]]:
    """A merge sort's steps: the left halves, the right ones, and for each of the right its greater left ones.

    The third array is the place of the first of them, the fourth how many there are.
    """
    size = 1 << (len(ranks) - 1).bit_length()
    runs = np.concatenate([ranks, np.arange(len(ranks), size)])
    width = 1
    while width < size:
        halves = runs.reshape(-1, 2, width)
        left, right = halves[:, 0].ravel(), halves[:, 1].ravel()
        # A run's own distance keeps runs apart, so that one search does for all of them.
        apart = np.repeat(np.arange(len(halves)), width)
        start = np.searchsorted(left + apart * size, right + apart * size)
        greater = (apart + 1) * width - start
        yield left, right, start, greater
        width *= 2
        runs = np.sort(runs.reshape(-1, width), axis=1).ravel()
