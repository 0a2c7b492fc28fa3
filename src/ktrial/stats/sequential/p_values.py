"""p values: adjusted where many questions are asked of one study, and one that may be looked at
repeatedly."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ktrial.stats.sequential.boundaries import boundaries, log_bayes_factor
from ktrial.stats.sequential.design import SequentialDesign

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


def repeated_p(differences: Array, design: SequentialDesign, *, final: bool = False) -> float:
    """Two-sided, for mean log ratio 0, over all looks so far; 1 where there was no look.

    Jennison and Turnbull, Group Sequential Methods (2000), section 9.5; for an open-ended design the inverse
    of the largest Bayes factor so far. The boundary is interpolated in the error's logarithm, 1e-5 to 0.5.
    """
    looked = design.looked_at(len(differences), final=final)
    if not looked:
        return 1.0
    reached = _absolute_t_at_looks(differences, looked)
    if design.open_ended:
        best = float(np.max(log_bayes_factor(reached, np.asarray(looked, dtype=np.float64))))
        return min(1.0, math.exp(-max(0.0, best)))
    table = _table(looked, design.looks[-1])
    levels = np.log(_LEVELS)[::-1]
    return min(_level(t, edges[::-1], levels) for t, edges in zip(reached, np.asarray(table).T, strict=True))


def _level(t: float, edges: Array, levels: Array) -> float:
    """The error at which an edge is t. `edges` fall as `levels` rise."""
    if t <= edges[-1]:
        return 1.0
    return float(np.exp(np.interp(-t, -edges, levels)))


def _absolute_t_at_looks(differences: Array, looked: tuple[int, ...]) -> Array:
    statistics = []
    for blocks in looked:
        part = differences[:blocks]
        error = float(np.std(part, ddof=1)) / math.sqrt(blocks)
        mean = abs(float(np.mean(part)))
        statistics.append(mean / error if error > 0 else (math.inf if mean > 0 else 0.0))
    return np.asarray(statistics)


@lru_cache(maxsize=32)
def _table(looked: tuple[int, ...], horizon: int) -> tuple[tuple[float, ...], ...]:
    """Boundaries at each of the levels, one row a level."""
    return tuple(boundaries(looked, level, horizon) for level in _LEVELS)
