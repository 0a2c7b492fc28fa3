"""p values: adjusted where many questions are asked of one study, and one that may be looked at
repeatedly."""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ktrial.stats.resolution import NO_ROUNDING, Rounding
from ktrial.stats.sequential.boundaries import boundaries, critical_t
from ktrial.stats.sequential.design import SequentialDesign
from ktrial.stats.sequential.repeated_intervals import blocks_until

Array = NDArray[np.float64]


_LEVELS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.003, 0.001, 1e-4, 1e-5)


def holm(p: ArrayLike) -> Array:
    """Holm's step-down (Scandinavian Journal of Statistics 6, 1979): no false claim in the whole family."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    factors = len(values) - np.arange(len(values))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * factors))
    return adjusted


def benjamini_hochberg(p: ArrayLike) -> Array:
    """Benjamini and Hochberg's step-up (JRSS B 57, 1995): few false ones among the claims."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")[::-1]
    factors = len(values) / (len(values) - np.arange(len(values)))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(values[order] * factors))
    return adjusted


def repeated_p(
    differences: Array,
    design: SequentialDesign,
    *,
    final: bool = False,
    rounding: Rounding = NO_ROUNDING,
) -> float:
    """Two-sided, for log ratio 0, over all looks so far; 1 where there was no look.

    Jennison and Turnbull, Group Sequential Methods (2000), section 9.5: the error at which the interval
    would just hold 0, interpolated in its logarithm, 1e-5 to 0.5. For an open-ended design the inverse of
    the largest Bayes factor so far.
    """
    looked = design.looked_at(len(differences), final=final)
    if not looked:
        return 1.0
    table = np.asarray(_open_ended(looked) if design.open_ended else _table(looked, design.looks[-1]))
    smallest = 1.0
    for look, edges in zip(looked, table.T, strict=True):
        seen = blocks_until(differences, look, rounding, independent=design.independent).interval(edges)
        # The level at which the end that is nearer to 0 reaches it: the interval is narrower at larger ones.
        nearer = np.maximum(seen.low, -seen.high)
        smallest = min(smallest, _level(nearer))
    return smallest


def _level(nearer: Array) -> float:
    """The error at which 0 lies on the interval's end: ends at each of the levels, which fall."""
    if nearer[0] <= 0:
        return 1.0
    ends, levels = nearer[::-1], np.log(_LEVELS)[::-1]
    known = np.isfinite(ends)
    return float(np.exp(np.interp(0.0, ends[known], levels[known])))


@lru_cache(maxsize=32)
def _table(looked: tuple[int, ...], horizon: int) -> tuple[tuple[float, ...], ...]:
    """Boundaries at each of the levels, one row a level."""
    return tuple(boundaries(looked, level, horizon) for level in _LEVELS)


@lru_cache(maxsize=32)
def _open_ended(looked: tuple[int, ...]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(critical_t(blocks, level) for blocks in looked) for level in _LEVELS)
