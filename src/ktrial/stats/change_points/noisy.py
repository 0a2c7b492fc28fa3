"""Change points of a series with noise, with a controlled rate of false alarms.

Stretches of many lengths are searched for a step, each by `rank_test`, after the series' own memory is taken
out (`autocorrelation`). The stretches are those of seeded binary segmentation (Kovács, Li, Bühlmann and
Munk, Biometrika 110, 2023): lengths shrink by a factor, and neighbours of one length overlap by half, so
that every change has a stretch in which it is alone, and all of them together have some n log n points. The
chance α of a false alarm anywhere in the series is split evenly over the lengths, and over the stretches of
one length (Bonferroni). Of the stretches that hold a step the shortest one is taken first (narrowest over
threshold: Baranowski, Chen and Fryzlewicz, JRSS B 81, 2019), all that contain its change are dropped, and so
on.

Nothing is drawn by chance: the same series has the same change points.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ktrial.stats.change_points.autocorrelation import memory, proven_memory, whitened
from ktrial.stats.change_points.localisation import placed
from ktrial.stats.change_points.max_rank_statistic import LEAST_SIDE, largest, p_value

Array = NDArray[np.float64]

ALPHA = 0.05
"""The chance that a series without any change shows one."""
_LEAST_LENGTH = 16
_SHRINKS = 2.0


@dataclass(frozen=True)
class Shift:
    """One change of a series' level."""

    place: int
    """The first point after it, from 0."""
    p: float
    """The chance of such a step anywhere in a series without changes."""
    before: float
    """The median between the change before and this one."""
    after: float
    """The median from here to the next change."""


@dataclass(frozen=True)
class _Step:
    length: int
    first: int
    place: int
    p: float


def shifts(values: ArrayLike, *, alpha: float = ALPHA, remembers: bool = True) -> tuple[Shift, ...]:
    """Where the level of a series changes, in order. `values` has the shape (points,), the oldest first.

    A series without changes shows any with a chance of at most `alpha`: for independent noise of any
    distribution, and with `remembers` for noise that follows AR(1). `remembers=False`: the points are known
    to be independent. Fewer than 16 points never show one. Raises ValueError for values that are no numbers.
    """
    series = _checked(values)
    if len(series) < _LEAST_LENGTH:
        return ()
    phi = memory(series) if remembers else 0.0
    found = _chosen(list(_steps(whitened(series, phi), alpha)))
    return _described(series, _settled(series, found, phi, alpha))


def p_of_any(values: ArrayLike, *, remembers: bool = True) -> float:
    """The p value of 'this series has no change at all'; 1 for fewer than 16 points. Raises as `shifts`."""
    series = _checked(values)
    phi = memory(series) if remembers and len(series) >= _LEAST_LENGTH else 0.0
    return min((one.p for one in _steps(whitened(series, phi), 1.0)), default=1.0)


def _checked(values: ArrayLike) -> Array:
    series = np.asarray(values, dtype=np.float64)
    if series.ndim != 1 or not np.isfinite(series).all():
        raise ValueError("a series is one row of finite numbers")
    return series


def _steps(series: Array, alpha: float) -> Iterator[_Step]:
    """Every stretch that holds a step, with the p value that counts all stretches."""
    lengths = _lengths(len(series))
    for length in lengths:
        starts = _starts(len(series), length)
        stretches = np.lib.stride_tricks.sliding_window_view(series, length)[starts]
        z, places = largest(stretches)
        p = p_value(z, length) * (len(starts) * len(lengths))
        for row in np.flatnonzero(p <= alpha):
            yield _Step(length, int(starts[row]), int(starts[row] + places[row]), float(p[row]))


def _lengths(points: int) -> list[int]:
    found, length = [], float(points)
    while length >= _LEAST_LENGTH:
        found.append(round(length))
        length /= _SHRINKS
    return found


def _starts(points: int, length: int) -> NDArray[np.intp]:
    count = max(1, -(-2 * (points - length) // length) + 1)
    return np.unique(np.linspace(0, points - length, count).round().astype(np.intp))


def _chosen(steps: list[_Step]) -> list[_Step]:
    chosen: list[_Step] = []
    for step in sorted(steps, key=lambda one: (one.length, one.p, one.first)):
        inside = range(step.first + 1, step.first + step.length)
        if not any(other.place in inside for other in chosen):
            chosen.append(step)
    return sorted(chosen, key=lambda one: one.place)


def _settled(series: Array, found: list[_Step], phi: float, alpha: float) -> dict[int, float]:
    """Place → p value of the changes, each moved to where it fits best.

    One that the stretch between its neighbours does not show is none: it was its neighbour, seen twice.
    """
    lost = len(series) - len(whitened(series, phi))
    kept, known = list(found), proven_memory(series) if phi else 0.0
    while kept:
        places = placed(series, [one.place + lost for one in kept], known)
        edges = [0, *places, len(series)]
        p = np.array([_p_between(series[edges[n] : edges[n + 2]], phi) for n in range(len(kept))])
        if p.max() <= alpha and all(first < second for first, second in pairwise(edges)):
            return {place: one.p for place, one in zip(places, kept, strict=True)}
        p[np.diff(edges[:-1]) <= 0] = 2.0  # two changes in one place
        kept = [one for one, weak in zip(kept, _weakest(p, alpha), strict=True) if not weak]
    return {}


def _weakest(p: Array, alpha: float) -> NDArray[np.bool_]:
    """Those above alpha that no neighbour exceeds; of two equal neighbours the first."""
    before, after = np.r_[-1.0, p[:-1]], np.r_[p[1:], -1.0]
    return np.asarray((p > alpha) & (p > before) & (p >= after))


def _p_between(stretch: Array, phi: float) -> float:
    fresh = whitened(stretch, phi)
    if len(fresh) < 2 * LEAST_SIDE:
        return 1.0
    z, _ = largest(fresh[None])
    return float(p_value(z, len(fresh))[0])


def _described(series: Array, found: dict[int, float]) -> tuple[Shift, ...]:
    edges = [0, *found, len(series)]
    medians = [float(np.median(series[first:last])) for first, last in pairwise(edges)]
    return tuple(
        Shift(place, min(1.0, p), before, after)
        for (place, p), (before, after) in zip(found.items(), pairwise(medians), strict=True)
    )
