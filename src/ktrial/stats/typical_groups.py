"""Treatments beside one baseline without blocks, where a few runs may lie far off: Huber's estimate.

Each arm is a group of runs, in random order among each other, and the groups may differ in size. What a
treatment does is the difference between two centres by Huber's M-estimate (Annals of Mathematical Statistics
35, 1964): a run that lies further than 1.5 scales from its group's centre counts for as much as one that
lies there. The scale, the median of all absolute residuals, is that of all groups together; the standard
error is the asymptotic one with Huber's correction for few values (Robust Statistics, 1981, section 7.6).
All intervals hold together (Dunnett, JASA 50, 1955, for groups of unequal size), whichever treatment is
looked at afterwards. With one treatment this is the two-sample t test with one variance, made robust.

The baseline may have runs from before, too. How far the machine's level has moved since is a random effect
(DerSimonian and Laird, Controlled Clinical Trials 7, 1986): its variance is what the baseline's fresh runs
show beyond noise, and never less than a part of the noise. So earlier runs count for much where they agree
with the fresh ones, and for nothing where they do not. What is known of a slow drift is taken out before.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ktrial.stats.many_to_one import edge
from ktrial.stats.resolution import Rounding

Array = NDArray[np.float64]

_FAR = 1.5
"""Scales from the centre beyond which a run counts for less."""
_WIDER = 1.04
"""By how much intervals are wider than the asymptotic ones (tests/unit/stats/test_typical_groups.py)."""
PRICE = 1.05
"""By how much an interval is wider than one of means where all noise is normal."""
_CONSISTENT = 1.4826
"""Standard deviations of a normal distribution in its median absolute deviation."""
_DISTINCT = 0.5
"""Of all values: on a coarser grid their median deviation says little, and means are taken."""
_STEPS = 30
_TINY = 1e-300
MOVES = 0.12
"""The least variance of the machine's level from the search to now, in variances of one run."""
NONE: Array = np.empty(0)


class Drift(NamedTuple):
    """How much higher the machine's level is now than it was in earlier runs, as a logarithm."""

    mean: float
    deviation: float
    """Standard deviation of what is known of it."""


NO_DRIFT = Drift(0.0, 0.0)


@dataclass(frozen=True)
class Groups:
    """What the runs say of each treatment; log ratios, shape (treatments,) each."""

    means: Array
    errors: Array
    """Standard errors."""
    halves: Array
    """Half the widths of the intervals."""

    @property
    def low(self) -> Array:
        """Ends of the intervals."""
        return np.asarray(self.means - self.halves)

    @property
    def high(self) -> Array:
        """Ends of the intervals."""
        return np.asarray(self.means + self.halves)


def typical_groups(
    groups: Sequence[Array],
    earlier: Array = NONE,
    drift: Drift = NO_DRIFT,
    alpha: float = 0.05,
    among: int | None = None,
    hidden: Sequence[Rounding] = (),
) -> Groups:
    """Of logarithms, the baseline's first, then each treatment's: arrays of shape (runs,).

    `earlier`: the baseline's from before; `drift` since. `among`: how many treatments there were at first,
    where some could not be judged. `hidden`: what the resolution of the numbers hides of each group. Raises
    ValueError with no treatment, or with fewer values than can tell what noise is.
    """
    arms = [*groups, earlier] if len(earlier) else list(groups)
    freedom = sum(map(len, arms)) - len(arms)
    if len(groups) < 2 or not min(map(len, groups)) or freedom < 1:
        raise ValueError("a treatment, a value in each group, and one value more are the least")
    centres, variance = _estimated(arms)
    floors = np.array([each.variance for each in hidden] or [0.0] * len(groups))
    biases = np.array([each.bias for each in hidden] or [0.0] * len(groups))
    noise = np.maximum(variance, floors)
    own = noise / [len(each) for each in groups]
    level, doubt = centres[0], own[0]
    if len(earlier):
        before = Drift(
            centres[-1] + drift.mean, math.hypot(drift.deviation, math.sqrt(noise[0] / len(earlier)))
        )
        level, doubt = _combined(level, doubt, before, noise[0])
    errors = np.sqrt(doubt + own[1:])
    shared = round(float(np.mean(doubt / np.maximum(errors**2, _TINY))), 2)
    halves = edge(among or len(groups) - 1, freedom, alpha, shared) * errors + biases[0] + biases[1:]
    return Groups(centres[1 : len(groups)] - level, errors, halves)


def _combined(level: float, variance: float, before: Drift, noise: float) -> tuple[float, float]:
    """The baseline's level and its variance, from fresh runs and earlier ones."""
    apart = (level - before.mean) ** 2 - variance - before.deviation**2
    moved = max(apart, 0.0) + MOVES * noise
    other = before.deviation**2 + moved
    share = variance / max(variance + other, _TINY)
    return (1 - share) * level + share * before.mean, (1 - share) ** 2 * variance + share**2 * other


def _estimated(groups: Sequence[Array]) -> tuple[Array, float]:
    """The centre of each group, and the variance of one run as the estimate of a centre has it."""
    values = np.concatenate(groups)
    freedom = len(values) - len(groups)
    means = np.array([float(np.mean(each)) for each in groups])
    left = np.concatenate([each - mean for each, mean in zip(groups, means, strict=True)])
    plain = float((left**2).sum()) / freedom
    if len(np.unique(values)) < _DISTINCT * len(values):
        return means, plain
    centres, scale = _centred(groups)
    if not scale:
        return means, plain
    left = np.concatenate([each - centre for each, centre in zip(groups, centres, strict=True)]) / scale
    inside = max(float((np.abs(left) <= _FAR).mean()), 0.3)
    share = 1 + (1 - inside) / inside * len(groups) / len(values)
    squares = float((np.clip(left, -_FAR, _FAR) ** 2).sum()) / freedom
    return centres, (scale * share / inside * _WIDER) ** 2 * squares


def _centred(groups: Sequence[Array]) -> tuple[Array, float]:
    """The centre of each group, and the scale of all."""
    runs = sum(map(len, groups))
    usual = _CONSISTENT * math.sqrt(runs / (runs - len(groups)))
    centres = np.array([float(np.median(each)) for each in groups])
    for _ in range(_STEPS):
        left = [np.abs(each - centre) for each, centre in zip(groups, centres, strict=True)]
        if not (scale := usual * float(np.median(np.concatenate(left)))):
            return centres, 0.0
        weights = [np.minimum(1.0, _FAR * scale / np.maximum(each, scale)) for each in left]
        moved = np.array(
            [float((own * each).sum() / own.sum()) for own, each in zip(weights, groups, strict=True)]
        )
        still, centres = bool(np.allclose(moved, centres, rtol=0, atol=1e-7 * scale)), moved
        if still:
            break
    return centres, scale
