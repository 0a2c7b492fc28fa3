"""Tests that ask nothing of the distribution: permutation within blocks, for a fixed number of blocks.

`max_t_permutation` adjusts for several treatments; `doubts` are verdicts that permutation does not bear out.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.stats.sequential.metric_blocks import BlockedMetric

Array = NDArray[np.float64]


def permutation_p(measured: BlockedMetric, *, draws: int = 9999, seed: int = 1) -> dict[str, float]:
    """Treatment → its p value among all treatments of this metric, by permutation within blocks.

    Only blocks in which every trial gave a value count. It knows nothing of earlier looks. Raises ValueError
    where values are not above zero.
    """
    labels = (measured.baseline, *measured.treatments)
    values = np.array([measured.values[label] for label in labels], dtype=np.float64).T
    whole = values[np.isfinite(values).all(axis=1)]
    if np.any(whole <= 0):
        raise ValueError("a ratio needs values above zero")
    adjusted = max_t_permutation(np.log(whole), draws, seed)
    return dict(zip(measured.treatments, map(float, adjusted), strict=True))


def doubts(
    comparisons: Sequence[Comparison], measured: Sequence[BlockedMetric], alpha: float
) -> list[DataWarning]:
    """Differences that the t test finds, and permutation within blocks does not."""
    by_metric = {(each.workload, each.metric.name): each for each in reversed(measured)}
    p_values: dict[tuple[str, str], dict[str, float]] = {}
    doubtful = []
    for one in comparisons:
        if one.verdict in (Verdict.BETTER, Verdict.WORSE):
            place = (one.workload, one.metric)
            if place not in p_values:
                p_values[place] = permutation_p(_with_ratios(by_metric[place]))
            p = p_values[place][one.treatment]
            if p > alpha:
                doubtful.append(_doubt(one, p, by_metric[place].blocks))
    return doubtful


def _doubt(one: Comparison, p: float, blocks: int) -> DataWarning:
    return DataWarning(
        kind=WarningKind.PERMUTATION_DISAGREES,
        text=f"{one.workload}, {one.metric}, {one.treatment}: the t test finds a difference, permutation "
        f"within {blocks} blocks does not (p {p:.2g})",
        advice="the verdict leans on the normal distribution: run more blocks (p < 0.05 takes six at least)",
    )


def _with_ratios(measured: BlockedMetric) -> BlockedMetric:
    """Without the treatments that have values that are not above zero."""
    values = measured.values.items()
    kept = {label: each for label, each in values if not any(value <= 0 for value in each)}
    return replace(measured, values=kept)


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
