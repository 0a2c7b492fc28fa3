"""Adjusted p values, where many questions are asked of one study."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


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


def max_t_permutation(logs: ArrayLike, draws: int = 9999, seed: int = 1) -> Array:
    """Adjusted p values of several treatments against one baseline, by permutation within blocks.

    `logs` has the shape (blocks, 1 + treatments), the baseline first. Within a block every order of the
    treatments was equally likely, so under 'no treatment does anything' every permutation of its values is
    too; the largest |t| of all comparisons is the statistic (Westfall and Young, Resampling-Based Multiple
    Testing, 1993, algorithm 2.5, single step), and the observed order counts as one of the draws (Phipson and
    Smyth, 2010). For a number of blocks fixed beforehand: it knows nothing of earlier looks.
    """
    table = np.asarray(logs, dtype=np.float64)
    observed = _absolute_t(table[None])[0]
    rng = np.random.default_rng(seed)
    reached = np.zeros(len(observed))
    for size in _batches(draws, table.size):
        largest = _absolute_t(rng.permuted(np.broadcast_to(table, (size, *table.shape)), axis=2)).max(axis=1)
        # A hair's breadth: the same values in another order may sum to a last digit less.
        reached += (largest[:, None] >= observed * (1 - 1e-12)).sum(axis=0)
    return np.asarray((1 + reached) / (1 + draws))


def _batches(draws: int, size: int) -> list[int]:
    each = max(1, min(draws, 2_000_000 // size))
    return [each] * (draws // each) + [draws % each] * bool(draws % each)


def _absolute_t(tables: Array) -> Array:
    """|t| of each treatment's mean difference to the baseline; shape (draws, treatments)."""
    differences = tables[:, :, 1:] - tables[:, :, :1]
    mean = differences.mean(axis=1)
    error = differences.std(axis=1, ddof=1) / np.sqrt(tables.shape[1])
    absolute = np.full_like(mean, np.inf)
    np.divide(np.abs(mean), error, out=absolute, where=error > 0)
    return np.where((error == 0) & (mean == 0), 0.0, absolute)
