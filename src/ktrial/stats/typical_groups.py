"""Treatments beside one baseline without blocks, where a few runs may lie far off: Huber's estimate.

Each arm is a group of runs, in random order among each other, and the groups may differ in size. What a
treatment does is the difference between two centres by Huber's M-estimate (Annals of Mathematical Statistics
35, 1964): a run that lies further than 1.5 scales from its group's centre counts for as much as one that
lies there. The scale, the median of all absolute residuals, is that of all groups together; the standard
error is the asymptotic one with Huber's correction for few values (Robust Statistics, 1981, section 7.6).
A group that scatters more than all together has a variance of its own, never less than theirs; an interval
has the degrees of freedom of what its variance is made of (Satterthwaite, Biometrics Bulletin 2, 1946). All
intervals hold together (Dunnett, JASA 50, 1955, for groups of unequal size), whichever treatment is looked
at afterwards. With one treatment this is the two-sample t test, made robust.

Of a treatment something may be known from before, by other runs: a second estimate of the same difference.
Both are combined as two trials are (DerSimonian and Laird, Controlled Clinical Trials 7, 1986): how far the
earlier one is off is a random effect, whose variance is what the two show beyond what each of them is known
to be, and never less than a part of the noise. So it counts for much where the runs agree with it, and for
nothing where they do not.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ktrial.stats.resolution import Rounding

Array = NDArray[np.float64]
_FAR = 1.5
"""Scales from the centre beyond which a run counts for less."""
_WIDER = 1.04
"""By how much intervals are wider than the asymptotic ones (tests/unit/stats/test_typical_groups.py)."""
PRICE = 1.1
"""By how much an interval is wider than one of means where all noise is normal."""
_CONSISTENT = 1.4826
"""Standard deviations of a normal distribution in its median absolute deviation."""
_DISTINCT = 0.5
"""Of all values: on a coarser grid their median deviation says little, and means are taken."""
_STEPS = 30
_STEP = 0.05
"""Correlations are taken down to such steps: a boundary is found anew for each."""
_TINY = 1e-300
SURER = 2.0
"""Variances by which an earlier estimate is off, of what it is believed to be: models are surer than they
should be."""
OFF = 0.25
"""The least variance of the random effect, in variances of one run."""
NONE: Array = np.empty(0)


class EarlierEstimate(NamedTuple):
    """What is known of a treatment from before: its logarithm beside the baseline's."""

    mean: float
    deviation: float
    """Standard deviation of what is believed."""


NOTHING_KNOWN = EarlierEstimate(0.0, 1e9)


@dataclass(frozen=True)
class Groups:
    """What the runs say of each treatment; log ratios, shape (treatments,) each."""

    means: Array
    errors: Array
    """Standard errors."""
    halves: Array
    """Half the widths of the intervals."""
    fresh: Array
    """What the runs say alone."""
    apart: Array
    """Standard errors by which they and the earlier estimate differ; 0 where there was none."""

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
    estimates: Sequence[EarlierEstimate] = (),
    alpha: float = 0.05,
    among: int | None = None,
    hidden: Sequence[Rounding] = (),
) -> Groups:
    """Of logarithms, the baseline's first, then each treatment's: arrays of shape (runs,).

    `earlier`: the baseline's from before, which tell the noise. `estimates` of each treatment, from before,
    by other runs than these; nothing where it is empty. `among`: how many treatments there were at first,
    where some could not be judged. `hidden`: what the resolution of the numbers hides of each group. Raises
    ValueError with no treatment, or with fewer values than can tell what noise is.
    """
    arms = [*groups, earlier] if len(earlier) else list(groups)
    freedom = sum(map(len, arms)) - len(arms)
    if len(groups) < 2 or not min(map(len, groups)) or freedom < 1:
        raise ValueError("a treatment, a value in each group, and one value more are the least")
    centres, variance = _estimated(arms)
    floors = np.array([rounding.variance for rounding in hidden] or [0.0] * len(groups))
    biases = np.array([rounding.bias for rounding in hidden] or [0.0] * len(groups))
    beyond, own_freedom = _beyond(
        [[groups[0], *arms[len(groups) :]], *([each] for each in groups[1:])], variance
    )
    noise = np.maximum(variance + beyond, floors)
    runs = np.array([len(group) for group in groups])
    of_groups = noise / runs
    before = np.array(estimates or [NOTHING_KNOWN] * (len(groups) - 1))
    fresh, doubt = centres[1 : len(groups)] - centres[0], of_groups[0] + of_groups[1:]
    apart, doubt_of_earlier = _beside(fresh, doubt, before, noise[1:])
    # What the earlier estimates count for beside the runs.
    share = doubt / np.maximum(doubt + doubt_of_earlier, _TINY)
    errors = np.sqrt((1 - share) ** 2 * doubt + share**2 * doubt_of_earlier)
    shared = (1 - share) ** 2 * of_groups[0] / np.maximum(errors**2, _TINY)
    correlation = _STEP * math.floor(float(np.mean(shared)) / _STEP)
    worth = _worth(variance / runs, freedom, beyond / runs, own_freedom)
    far = np.array([edge(among or len(groups) - 1, count, alpha, correlation) for count in worth.tolist()])
    halves = far * errors + biases[0] + biases[1:]
    return Groups((1 - share) * fresh + share * before[:, 0], errors, halves, fresh, apart)


def _beyond(groups: Sequence[Sequence[Array]], variance: float) -> tuple[Array, Array]:
    """By how much the runs of each group, in parts, vary more than all; and its degrees of freedom."""
    freedom = np.array([max(sum(map(len, parts)) - len(parts), 1) for parts in groups])
    are_several = [sum(map(len, parts)) > len(parts) for parts in groups]
    own = [_estimated(parts)[1] if varies else 0.0 for parts, varies in zip(groups, are_several, strict=True)]
    return np.maximum(np.array(own) - variance, 0.0), freedom


def _worth(pooled: Array, freedom: int, beyond: Array, own_freedom: Array) -> NDArray[np.int64]:
    """Degrees of freedom of each treatment's difference, whose variance is a sum of two groups' parts."""
    total = pooled[0] + pooled[1:] + beyond[0] + beyond[1:]
    parts = beyond**2 / own_freedom
    doubt = (pooled[0] + pooled[1:]) ** 2 / freedom + parts[0] + parts[1:]
    worth = np.divide(total**2, doubt, out=np.full_like(total, freedom), where=doubt > 0)
    return np.asarray(np.clip(worth, 1, freedom), dtype=np.int64)


def _beside(fresh: Array, doubt: Array, before: Array, noise: Array) -> tuple[Array, Array]:
    """Standard errors between the runs' estimates and the earlier ones, and the variances of these."""
    believed = SURER * before[:, 1] ** 2
    apart = fresh - before[:, 0]
    beyond = np.maximum(apart**2 - doubt - believed, 0.0)
    return apart / np.sqrt(np.maximum(doubt + believed, _TINY)), believed + beyond + OFF * noise


def _estimated(groups: Sequence[Array]) -> tuple[Array, float]:
    """The centre of each group, and the variance of one run as the estimate of a centre has it."""
    values = np.concatenate(groups)
    freedom = len(values) - len(groups)
    means = np.array([float(np.mean(group)) for group in groups])
    left = np.concatenate([group - mean for group, mean in zip(groups, means, strict=True)])
    plain = float((left**2).sum()) / freedom
    if len(np.unique(values)) < _DISTINCT * len(values):
        return means, plain
    centres, scale = _centred(groups)
    if not scale:
        return means, plain
    left = np.concatenate([group - centre for group, centre in zip(groups, centres, strict=True)]) / scale
    inside = max(float((np.abs(left) <= _FAR).mean()), 0.3)
    share = 1 + (1 - inside) / inside * len(groups) / len(values)
    squares = float((np.clip(left, -_FAR, _FAR) ** 2).sum()) / freedom
    return centres, (scale * share / inside * _WIDER) ** 2 * squares


def _centred(groups: Sequence[Array]) -> tuple[Array, float]:
    """The centre of each group, and the scale of all."""
    runs = sum(map(len, groups))
    usual = _CONSISTENT * math.sqrt(runs / (runs - len(groups)))
    centres = np.array([float(np.median(group)) for group in groups])
    for _ in range(_STEPS):
        left = [np.abs(group - centre) for group, centre in zip(groups, centres, strict=True)]
        if not (scale := usual * float(np.median(np.concatenate(left)))):
            return centres, 0.0
        weights = [np.minimum(1.0, _FAR * scale / np.maximum(group, scale)) for group in left]
        moved = np.array(
            [
                float((weight * group).sum() / weight.sum())
                for weight, group in zip(weights, groups, strict=True)
            ]
        )
        still, centres = bool(np.allclose(moved, centres, rtol=0, atol=1e-7 * scale)), moved
        if still:
            break
    return centres, scale


# Several treatments beside one baseline, with one error for all of them: Dunnett's test (JASA 50, 1955).

_SHARED = 0.5
"""Correlation of two differences from the same baseline, where all arms have as many runs."""
_SEED = 20261122


@lru_cache(maxsize=256)
def edge(treatments: int, freedom: int, alpha: float = 0.05, correlation: float = _SHARED) -> float:
    """|t| that the largest of so many exceeds with probability `alpha`.

    So all intervals of this width hold together with probability 1 - alpha, whichever of them is looked at
    afterwards. With one treatment this is Student's t. `correlation`: of two differences from the same
    baseline; less than a half where the baseline has more runs than each treatment.
    """
    from scipy import optimize, stats

    alone, apart = (float(stats.t.isf(alpha / 2 / among, freedom)) for among in (1, treatments))
    if treatments == 1:
        return alone
    shape = np.full((treatments, treatments), correlation) + (1 - correlation) * np.eye(treatments)
    joint = stats.multivariate_t(shape=shape, df=freedom)

    def beyond(far: float) -> float:
        low, high = np.full(treatments, -far), np.full(treatments, far)
        return 1 - float(joint.cdf(high, lower_limit=low, random_state=_SEED)) - alpha

    # Between one treatment's and Bonferroni's.
    return float(optimize.brentq(beyond, 0.99 * alone, 1.01 * apart, xtol=1e-4))
