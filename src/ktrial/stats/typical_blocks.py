"""Treatments beside one baseline in shared blocks, where a few runs may lie far off: Huber's estimate.

As ktrial.stats.many_to_one, but what a treatment does is the centre of its differences from the baseline
within each block by Huber's M-estimate (Annals of Mathematical Statistics 35, 1964): a difference that lies
further than 1.5 scales from the centre counts for as much as one that lies there. So one run that something
disturbed moves the estimate by no more than an ordinary run, and does not widen the interval of all. The
scale is the median of all absolute residuals; the standard error is the asymptotic one with Huber's
correction for few values (Robust Statistics, 1981, section 7.6).
"""

import math

import numpy as np

from ktrial.stats.many_to_one import Array, SharedBlocks, edge, shared_blocks
from ktrial.stats.resolution import NO_ROUNDING, Rounding

_FAR = 1.5
"""Scales from the centre beyond which a difference counts for less."""
_WIDER = 1.04
"""By how much intervals are wider than the asymptotic ones: with 6 to 12 blocks these hold in 93.6 to 94.4 of
100 cases of normal noise, and so widened in 95 (tests/unit/stats/test_typical_blocks.py)."""
PRICE = 1.06
"""By how much an interval is wider than one of means where all noise is normal."""
_CONSISTENT = 1.4826
"""Standard deviations of a normal distribution in its median absolute deviation."""
_DISTINCT = 0.5
"""Of all differences: on a coarser grid their median deviation says little, and means are taken."""
_STEPS = 30


def typical_blocks(
    logs: Array, alpha: float = 0.05, among: int | None = None, hidden: Rounding = NO_ROUNDING
) -> SharedBlocks:
    """See `shared_blocks`, with the same arguments and errors."""
    plain = shared_blocks(logs, alpha, among, hidden)
    blocks, arms = logs.shape
    differences = logs[:, 1:] - logs[:, :1]
    if len(np.unique(differences)) < _DISTINCT * differences.size:
        return plain
    centres, scale = _centred(differences)
    if not scale:
        return plain
    left = (differences - centres) / scale
    inside = max(float((np.abs(left) <= _FAR).mean()), 0.3)
    share = 1 + (1 - inside) / inside / blocks
    squares = float((np.clip(left, -_FAR, _FAR) ** 2).sum()) / (arms - 1) / (blocks - 1)
    variance = (scale * share / inside * _WIDER) ** 2 * squares
    error = math.sqrt(max(variance, hidden.variance) / blocks)
    half = edge(among or arms - 1, (blocks - 1) * (arms - 1), alpha) * error + hidden.bias
    return SharedBlocks(centres, error, half)


def _centred(differences: Array) -> tuple[Array, float]:
    """The centre of each column, and the scale of all."""
    blocks = len(differences)
    usual = _CONSISTENT * math.sqrt(blocks / (blocks - 1))
    centres: Array = np.median(differences, axis=0)
    for _ in range(_STEPS):
        left = np.abs(differences - centres)
        if not (scale := usual * float(np.median(left))):
            break
        weights = np.minimum(1.0, _FAR * scale / np.maximum(left, scale))
        moved: Array = (weights * differences).sum(axis=0) / weights.sum(axis=0)
        still, centres = bool(np.allclose(moved, centres, rtol=0, atol=1e-7 * scale)), moved
        if still:
            break
    return centres, scale
