"""A confirmation run: fresh blocks, their number fixed beforehand, judged once, so not inflated."""

from collections.abc import Sequence

import numpy as np

from ktrial.model.verdict import Comparison
from ktrial.stats.timed.blocks import Measured
from ktrial.stats.timed.design import SequentialDesign
from ktrial.stats.timed.look import look
from ktrial.stats.timed.multiplicity import max_t_permutation


def confirm(measured: Sequence[Measured], design: SequentialDesign) -> tuple[Comparison, ...]:
    """The verdicts on all blocks at once: one look, at the end, with the whole error (a plain paired t test).

    Raises ValueError where there are fewer than three blocks.
    """
    blocks = max(each.blocks for each in measured)
    once = SequentialDesign(margin=design.margin, alpha=design.alpha, looks=(blocks,))
    return look(measured, once).comparisons


def permutation_p(measured: Measured, *, draws: int = 9999, seed: int = 1) -> dict[str, float]:
    """Treatment → its p value among all treatments of this metric, by permutation within blocks.

    Only blocks in which every trial gave a value count. Asks nothing of the distribution, unlike the t test;
    for a number of blocks fixed beforehand. Raises ValueError where values are not above zero.
    """
    labels = (measured.baseline, *measured.treatments)
    values = np.array([measured.values[label] for label in labels], dtype=np.float64).T
    whole = values[np.isfinite(values).all(axis=1)]
    if np.any(whole <= 0):
        raise ValueError("a ratio needs values above zero")
    found = max_t_permutation(np.log(whole), draws, seed)
    return dict(zip(measured.treatments, map(float, found), strict=True))
