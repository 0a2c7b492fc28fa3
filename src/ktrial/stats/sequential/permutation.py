"""A test that asks nothing of the distribution: permutation within blocks; for a fixed number of blocks."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.stats.sequential.blocks import Measured
from ktrial.stats.sequential.multiplicity import max_t_permutation


def permutation_p(measured: Measured, *, draws: int = 9999, seed: int = 1) -> dict[str, float]:
    """Treatment → its p value among all treatments of this metric, by permutation within blocks.

    Only blocks in which every trial gave a value count. It knows nothing of earlier looks. Raises ValueError
    where values are not above zero.
    """
    labels = (measured.baseline, *measured.treatments)
    values = np.array([measured.values[label] for label in labels], dtype=np.float64).T
    whole = values[np.isfinite(values).all(axis=1)]
    if np.any(whole <= 0):
        raise ValueError("a ratio needs values above zero")
    found = max_t_permutation(np.log(whole), draws, seed)
    return dict(zip(measured.treatments, map(float, found), strict=True))


def doubts(
    comparisons: Sequence[Comparison], measured: Sequence[Measured], alpha: float
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


def _with_ratios(measured: Measured) -> Measured:
    """Without the treatments that have values that are not above zero."""
    values = measured.values.items()
    kept = {label: each for label, each in values if not any(value <= 0 for value in each)}
    return replace(measured, values=kept)
