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
    found = [_doubt(one, measured, alpha) for one in comparisons]
    return [doubt for doubt in found if doubt is not None]


def _doubt(one: Comparison, measured: Sequence[Measured], alpha: float) -> DataWarning | None:
    if one.verdict not in (Verdict.BETTER, Verdict.WORSE):
        return None
    it = next(each for each in measured if (each.workload, each.metric.name) == (one.workload, one.metric))
    p = permutation_p(_with_ratios(it))[one.treatment]
    if p <= alpha:
        return None
    return DataWarning(
        kind=WarningKind.PERMUTATION_DISAGREES,
        text=f"{one.workload}, {one.metric}, {one.treatment}: the t test finds a difference, permutation "
        f"within {it.blocks} blocks does not (p {p:.2g})",
        advice="the verdict leans on the normal distribution: run more blocks (p < 0.05 takes six at least)",
    )


def _with_ratios(measured: Measured) -> Measured:
    """Without the treatments that have values that are not above zero."""
    values = measured.values.items()
    kept = {label: each for label, each in values if not any(value <= 0 for value in each)}
    return replace(measured, values=kept)
