"""What a timed verdict is about: a typical trial, all trials, or the slow ones; and what it leaves open.

- `typical`: where a trial of the typical block lies (`typical_block`).
- `total`: the ratio of arithmetic means, which is what a throughput or a bill feels. Its interval is that of
  all ratios r for which the mean of t - r b over blocks does not lie a boundary's standard errors off 0
  (Fieller, JRSS B 16, 1954). Where the blocks are skewed, it also holds the interval of the t statistic
  without its skewness (Hall, JRSS B 54, 1992, the cubic transformation): few spikes say little of how many
  there are. Blocks that met no spike say nothing of them at all, so that a verdict takes 30 blocks, which
  meet a spike of one trial in ten 95 times of 100. A trial that failed lies anywhere between the best value
  of its arm and no end, so that the interval has an open end.
- `tail`: the ratio of the arms' 0.9 quantiles, counted towards worse. A quantile lies between two order
  statistics with the probability that the binomial distribution gives, whatever the distribution of the
  values (Thompson, Annals of Mathematical Statistics 7, 1936); each arm has half of the level (Bonferroni).
  With one treatment that takes 60 blocks.

A verdict comes after n blocks. Of a spike that k of them met, nothing rules out that it hits a share p of
trials with P(Bin(n, p) <= k) = 0.05 (Clopper and Pearson, Biometrika 26, 1934): of none seen, 1 - 0.05^(1/n),
which is 39 % after 6 blocks.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
QUANTILE = 0.9
"""Of `tail`: nine trials of ten are at least as good."""
_MISSED = 0.05
_FAR = 6.0
"""Median absolute deviations from the median, towards worse: a trial beyond is a spike."""
_LEAST_SPIKE = 0.05
"""And by so much, as a logarithm, that it is worth a word."""


@dataclass(frozen=True)
class PairedArms:
    """Numbers of the baseline and of the treatment, one each a block; each lies between two ends."""

    low: Array
    """Shape (…, 2, blocks)."""
    high: Array
    """The same where a number is known; infinite where it lies beyond a limit, or its trial failed."""
    higher_is_worse: bool = True

    def __len__(self) -> int:
        return int(self.low.shape[-1])

    def until(self, blocks: int) -> "PairedArms":
        """The first so many blocks."""
        return PairedArms(self.low[..., :blocks], self.high[..., :blocks], self.higher_is_worse)

    def of_studies(self, chosen: NDArray[np.intp]) -> "PairedArms":
        """Of many studies, some."""
        return PairedArms(self.low[chosen], self.high[chosen], self.higher_is_worse)

    @property
    def log_ratios(self) -> tuple[Array, Array]:
        """The two ends of ln(treatment / baseline), of shape (…, blocks); both arms at worst: 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            low = np.log(self.low[..., 1, :]) - np.log(self.high[..., 0, :])
            high = np.log(self.high[..., 1, :]) - np.log(self.low[..., 0, :])
        return np.where(np.isnan(low), 0.0, low), np.where(np.isnan(high), 0.0, high)


def ratio_of_means(baseline: Array, treatment: Array) -> tuple[Array, Array, Array]:
    """The logarithm of the ratio of arithmetic means of (…, blocks), its standard error, and what scatters.

    Infinite or NaN where a number is infinite.
    """
    blocks = baseline.shape[-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        below, above = baseline.mean(axis=-1), treatment.mean(axis=-1)
        apart = treatment / above[..., None] - baseline / below[..., None]
        variance = (apart**2).sum(axis=-1) / max(blocks - 1, 1)
        return np.log(above / below), np.sqrt(variance / blocks), apart


def total_interval(arms: PairedArms, edge: Array) -> tuple[Array, Array]:
    """The ends of the logarithm of the ratio of means, for a boundary of |t|."""
    low, _ = _ends_of_total(arms.high[..., 0, :], arms.low[..., 1, :], edge)
    _, high = _ends_of_total(arms.low[..., 0, :], arms.high[..., 1, :], edge)
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isfinite(high), high, np.inf)


def _ends_of_total(baseline: Array, treatment: Array, edge: Array) -> tuple[Array, Array]:
    middle, _, apart = ratio_of_means(baseline, treatment)
    low = np.maximum(edge, _without_skewness(apart, edge))
    high = np.maximum(edge, -_without_skewness(apart, -edge))
    with np.errstate(invalid="ignore"):
        return (
            middle + _log_root(baseline, treatment, low)[0],
            middle + _log_root(baseline, treatment, high)[1],
        )


def _log_root(baseline: Array, treatment: Array, edge: Array) -> tuple[Array, Array]:
    """Fieller's ends, as logarithms of what they are of the ratio of means; infinite where there is none."""
    blocks = baseline.shape[-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        below = baseline / baseline.mean(axis=-1, keepdims=True) - 1
        above = treatment / treatment.mean(axis=-1, keepdims=True) - 1
        factor = np.square(edge) / (blocks * max(blocks - 1, 1))
        square = 1 - factor * (below * below).sum(axis=-1)
        mixed = 1 - factor * (below * above).sum(axis=-1)
        constant = 1 - factor * (above * above).sum(axis=-1)
        root = np.sqrt(np.maximum(mixed * mixed - square * constant, 0.0))
        low, high = (mixed - root) / square, (mixed + root) / square
        is_closed = square > 0
        low = np.where(is_closed & (low > 0), np.log(np.maximum(low, 1e-300)), -np.inf)
        high = np.where(is_closed & (high > 0), np.log(np.maximum(high, 1e-300)), np.inf)
    return low, high


def _without_skewness(apart: Array, edge: Array) -> Array:
    """The t statistic of numbers (…, blocks) that without their skewness lies as far out as the edge."""
    blocks = apart.shape[-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        centred = apart - apart.mean(axis=-1, keepdims=True)
        skewness = (centred**3).mean(axis=-1) / (centred**2).mean(axis=-1) ** 1.5
    skewness = np.nan_to_num(skewness, nan=0.0, posinf=0.0, neginf=0.0)
    # Of a symmetric sample the two are the same; so are they to ten digits of one that nearly is.
    slope = skewness / math.sqrt(blocks)
    is_skewed = np.abs(slope) > 1e-6
    slope = np.where(is_skewed, slope, 1.0)
    return np.where(is_skewed, 3 / slope * (np.cbrt(1 + slope * (edge - slope / 6)) - 1), edge)


def tail_interval(arms: PairedArms, edge: Array) -> tuple[Array, Array]:
    """The ends of the logarithm of the ratio of the arms' quantiles, for a boundary of |t|."""
    blocks = len(arms)
    shape = np.broadcast_shapes(arms.low.shape[:-2], np.shape(edge))
    edges = np.broadcast_to(edge, shape)
    levels = np.unique(edges)
    places = np.array([_order_statistics(blocks, float(level)) for level in levels])
    at = places[np.searchsorted(levels, edges)]
    with np.errstate(invalid="ignore", divide="ignore"):
        ordered_low, ordered_high = np.sort(np.log(arms.low), axis=-1), np.sort(np.log(arms.high), axis=-1)
        if arms.higher_is_worse:
            below = _at(ordered_low, at[..., 0], -np.inf)
            above = _at(ordered_high, at[..., 1], np.inf)
        else:
            below = _at(ordered_low, blocks - 1 - at[..., 1], -np.inf)
            above = _at(ordered_high, blocks - 1 - at[..., 0], np.inf)
        low, high = below[1] - above[0], above[1] - below[0]
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)


def quantile_bounds(values: Array, level: float, higher_is_worse: bool) -> tuple[float, float]:
    """Of one group (runs,), so that those of two hold together with the probability 1 - `level`.

    Zero or infinite where no order statistic is so sure.
    """
    from scipy import special  # takes a third of a second to load

    runs = len(values)
    lower, upper = _order_statistics(runs, float(special.stdtrit(runs - 1, 1 - level / 2)))
    if not higher_is_worse:
        lower, upper = runs - 1 - upper, runs - 1 - lower
    ordered = np.sort(values)
    return (
        float(ordered[lower]) if lower >= 0 else 0.0,
        float(ordered[upper]) if upper < runs else math.inf,
    )


def _at(ordered: Array, place: NDArray[np.int64], beyond: float) -> tuple[Array, Array]:
    """The order statistic of either arm; `beyond` where there is none."""
    blocks = ordered.shape[-1]
    inside = np.clip(place, 0, blocks - 1)
    is_there = (place >= 0) & (place < blocks)
    arms = []
    for arm in (ordered[..., 0, :], ordered[..., 1, :]):
        taken = arm[inside] if arm.ndim == 1 else np.take_along_axis(arm, inside[..., None], axis=-1)[..., 0]
        arms.append(np.where(is_there, taken, beyond))
    return arms[0], arms[1]


@lru_cache(maxsize=65536)
def _order_statistics(blocks: int, edge: float) -> tuple[int, int]:
    """Places (from 0) of the order statistics between which the quantile lies; -1 and `blocks`: none."""
    from scipy import special  # takes a third of a second to load

    if math.isinf(edge):
        return -1, blocks
    level = float(special.stdtr(blocks - 1, -edge)) / 2
    counts = np.arange(blocks)
    at_most = special.bdtr(counts.astype(np.float64), blocks, QUANTILE)
    # X(l) <= quantile unless fewer than l values lie at or below it.
    lower = int(np.searchsorted(at_most, level, side="right")) - 1
    reached = np.flatnonzero(1 - at_most <= level)
    return lower, int(reached[0]) if len(reached) else blocks


def quantile(values: Array, higher_is_worse: bool) -> Array:
    """Of arms of shape (…, blocks): the sample's, towards worse."""
    share = QUANTILE if higher_is_worse else 1 - QUANTILE
    return np.asarray(np.quantile(values, share, axis=-1, method="inverted_cdf"))


def unseen_share(blocks: int, seen: int = 0) -> float:
    """The largest share of trials that a spike may hit, if so many of so many blocks met one (95 % sure)."""
    if seen >= blocks:
        return 1.0
    if not seen:
        return float(1.0 - _MISSED ** (1 / blocks))
    from scipy import special

    return float(special.betaincinv(seen + 1, blocks - seen, 1 - _MISSED))


def spikes(values: Array, *, higher_is_worse: bool = True) -> NDArray[np.bool_]:
    """Which trials of an arm (blocks,) lie far off its typical one, towards worse; failed ones are not."""
    present = values[np.isfinite(values) & (values > 0)]
    if len(present) < 3:
        return np.zeros(len(values), dtype=np.bool_)
    middle = float(np.median(present))
    spread = float(np.median(np.abs(np.log(present / middle))))
    limit = max(_FAR * spread, _LEAST_SPIKE)
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = np.log(values / middle) * (1 if higher_is_worse else -1)
    return np.asarray(np.isfinite(apart) & (apart > limit))


def fisher_p(failures: tuple[int, int], trials: tuple[int, int]) -> float:
    """Two-sided, of equal shares of failures in two arms (Fisher, Statistical Methods, 1934, 21.02)."""
    from scipy import special

    total, lost = sum(trials), sum(failures)
    if not lost:
        return 1.0

    def log_choose(n: int, k: int) -> float:
        return float(special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1))

    first = range(max(0, lost - trials[1]), min(lost, trials[0]) + 1)
    chances = {
        k: math.exp(log_choose(trials[0], k) + log_choose(trials[1], lost - k) - log_choose(total, lost))
        for k in first
    }
    observed = chances[failures[0]] * (1 + 1e-9)
    return min(1.0, sum(chance for chance in chances.values() if chance <= observed))
