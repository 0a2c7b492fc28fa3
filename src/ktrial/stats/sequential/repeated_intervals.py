"""The sequential test itself: log ratios in, claims out. Works on one study, or on thousands at once.

At each look the interval of the typical block (`typical_block`) is that of the signed-rank statistic at the
nominal level of the look's boundary c: a repeated confidence interval (Jennison and Turnbull, JRSS B 51,
1989), which holds at all looks together. It is widened for what neighbouring blocks have in common
(`rank_correlation`) and for what rounding hides (`ktrial.stats.resolution`). With m the margin:

- inside [1/(1+m), 1+m]: equivalent, which is the two one-sided tests of Schuirmann (1987) with the same
  spending;
- wholly above or below 1: a difference;
- else the study goes on.

The study ends with the first claim; where several comparisons keep it running, a claim that later blocks do
not bear out is withdrawn. A difference that lies within the margin for certain is 'equivalent'.

Few blocks must pass a sign-flip test as well (Fisher, The Design of Experiments, 1935, 21): of all ways to
give the log ratios signs, at most 5 % move their mean as far as it lies from 0. That takes six blocks at
least.
"""

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ktrial.model.comparison import FEWEST_BLOCKS, Estimand
from ktrial.stats.resolution import NO_ROUNDING, Rounding
from ktrial.stats.sequential.design import SequentialDesign
from ktrial.stats.sequential.estimands import (
    PairedArms,
    quantile,
    ratio_of_means,
    tail_interval,
    total_interval,
)
from ktrial.stats.sequential.typical_block import Walsh, walsh
from ktrial.stats.verdict_rules import Claim

Array = NDArray[np.float64]
Codes = NDArray[np.int8]
Bools = NDArray[np.bool_]
_ENOUGH_BLOCKS = 10
"""From so many on, no sign-flip test is asked."""
_SIGN_FLIP_LEVEL = 0.05
_FURTHEST = 1e6
"""What a failed trial's log ratio counts as where ratios are added up."""
_COARSE = 24.0
"""Steps of half the spread, as the variance that rounding adds to a log ratio."""
_AT_ONCE = 20_000
"""Log ratios of which all averages are made at once: so that they fit into a cache."""


def signs_agree(differences: Array) -> Bools:
    """Whether a sign-flip test finds that the mean of log ratios of shape (…, blocks) is not 0."""
    blocks = differences.shape[-1]
    if blocks >= _ENOUGH_BLOCKS:
        return np.ones(differences.shape[:-1], dtype=np.bool_)
    differences = np.clip(differences, -_FURTHEST, _FURTHEST)
    reached = np.abs(differences @ _signs(blocks).T)
    observed = np.abs(differences.sum(axis=-1, keepdims=True)) * (1 - 1e-12)
    return np.asarray(((reached >= observed).mean(axis=-1) <= _SIGN_FLIP_LEVEL) & (observed[..., 0] > 0))


@lru_cache(maxsize=8)
def _signs(blocks: int) -> Array:
    """All ways, one a row."""
    return np.array(list(itertools.product((1.0, -1.0), repeat=blocks)))


@dataclass(frozen=True)
class Intervals:
    """Mean log ratio with its interval at each look; shapes (…, looks)."""

    mean: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class BlocksUntil:
    """What the blocks until a look say, before any boundary; shapes (…)."""

    blocks: int
    averages: Walsh
    """Of every two log ratios."""
    correlation: Array
    """Of neighbouring blocks, as is presumed."""
    independent: bool
    """Whether blocks have nothing in common by design, so that it says nothing."""
    signs_agree: NDArray[np.bool_]
    rounding: Rounding
    mean: Array
    mean_error: Array
    is_coarse: Bools
    """Whether steps of rounding are so large, beside the spread, that ranks follow them and not the location:
    then the interval holds that of the mean as well, in which rounding cancels out."""

    def interval(self, edge: float | Array) -> Intervals:
        """The interval that an edge of t makes."""
        edges = np.asarray(edge, dtype=np.float64)
        widening = np.ones_like(edges)
        if not self.independent:
            wider = widened(edges, np.asarray(float(self.blocks)), self.correlation)
            # An edge of 0 or infinity is what it was.
            widening = np.divide(
                wider, edges, out=np.ones_like(wider), where=np.isfinite(wider) & (edges > 0)
            )
            edges = np.where(np.isinf(wider), np.inf, edges)
        least_error = math.sqrt(self.rounding.variance / self.blocks)
        low, high = self.averages.interval(edges, widening, least_error)
        if np.any(self.is_coarse):
            of_mean = interval_about(self.mean, self.mean_error, edges * widening)
            low = np.where(self.is_coarse, np.minimum(low, of_mean.low), low)
            high = np.where(self.is_coarse, np.maximum(high, of_mean.high), high)
        low, high = low - self.rounding.bias, high + self.rounding.bias
        return Intervals(
            np.broadcast_to(self.averages.location, low.shape),
            np.where(self.signs_agree, low, np.minimum(low, 0.0)),
            np.where(self.signs_agree, high, np.maximum(high, 0.0)),
        )


@dataclass(frozen=True)
class ArmsUntil:
    """The same of all trials together, or of the slow ones: of verdicts that are about these."""

    arms: PairedArms
    estimand: Estimand
    independent: bool
    rounding: Rounding

    def interval(self, edge: float | Array) -> Intervals:
        """The interval that an edge of t makes."""
        edges = np.asarray(edge, dtype=np.float64)
        blocks = len(self.arms)
        if not self.independent:
            _, _, apart = ratio_of_means(self.arms.low[..., 0, :], self.arms.low[..., 1, :])
            edges = widened(edges, np.asarray(float(blocks)), rank_correlation(np.nan_to_num(apart)))
        is_total = self.estimand is Estimand.TOTAL
        if is_total and blocks < FEWEST_BLOCKS[Estimand.TOTAL]:
            edges = np.full_like(edges, np.inf)
        low, high = (total_interval if is_total else tail_interval)(self.arms, edges)
        least = np.where(np.isinf(edges), 0.0, edges) * math.sqrt(self.rounding.variance / blocks)
        low, high = np.minimum(low, self.location - least), np.maximum(high, self.location + least)
        return Intervals(
            np.broadcast_to(self.location, low.shape), low - self.rounding.bias, high + self.rounding.bias
        )

    @property
    def location(self) -> Array:
        """The logarithm of the ratio of means, or of the quantiles; infinite where trials failed."""
        return location(self.arms, self.estimand)


Blocks = Array | PairedArms
"""A comparison's blocks: log ratios of shape (…, blocks), or the numbers of both arms."""


def location(blocks: Blocks, estimand: Estimand = Estimand.TYPICAL) -> Array:
    """The logarithm of the ratio that the estimand is about, of shape (…); infinite where too many failed."""
    if not isinstance(blocks, PairedArms):
        return walsh(blocks).location
    if estimand is Estimand.TYPICAL:
        return walsh(*blocks.log_ratios).location
    if estimand is Estimand.TOTAL:
        middle, _, _ = ratio_of_means(blocks.low[..., 0, :], blocks.low[..., 1, :])
    else:
        with np.errstate(invalid="ignore", divide="ignore"):
            arms = np.log(quantile(blocks.low, blocks.higher_is_worse))
            middle = arms[..., 1] - arms[..., 0]
    return np.asarray(np.where(np.isnan(middle), 0.0, middle))


def blocks_until(
    blocks: Blocks,
    look: int,
    rounding: Rounding = NO_ROUNDING,
    *,
    independent: bool = False,
    estimand: Estimand = Estimand.TYPICAL,
) -> BlocksUntil | ArmsUntil:
    """Of log ratios of shape (…, blocks) until a look; plus or minus infinity where one trial failed.

    Log ratios alone say what is typical, whatever the estimand.
    """
    if isinstance(blocks, PairedArms):
        part = blocks.until(look)
        if estimand is not Estimand.TYPICAL:
            return ArmsUntil(part, estimand, independent, rounding)
        low, high = part.log_ratios
        return _typical_until(low, None if np.array_equal(low, high) else high, rounding, independent)
    return _typical_until(blocks[..., :look], None, rounding, independent)


def _typical_until(low: Array, high: Array | None, rounding: Rounding, independent: bool) -> BlocksUntil:
    look = low.shape[-1]
    with np.errstate(invalid="ignore"):
        mean = low.mean(axis=-1)
        squares = ((low - mean[..., None]) ** 2).sum(axis=-1)
        spread = np.sqrt(squares / max(look - 1, 1))
        is_coarse = _COARSE * rounding.variance > spread * spread
    agree = signs_agree(low) if high is None else signs_agree(low) & signs_agree(high)
    return BlocksUntil(
        blocks=look,
        averages=walsh(low, high),
        correlation=rank_correlation(low),
        independent=independent,
        signs_agree=agree,
        rounding=rounding,
        mean=mean,
        mean_error=np.sqrt(np.maximum(spread * spread, rounding.variance) / look),
        is_coarse=is_coarse,
    )


def intervals(
    differences: Array,
    looked: tuple[int, ...],
    edges: tuple[float, ...],
    rounding: Rounding = NO_ROUNDING,
    *,
    independent: bool = False,
) -> Intervals:
    """Intervals at each look, of log ratios of shape (…, blocks)."""
    of_looks = [
        blocks_until(differences, look, rounding, independent=independent).interval(edge)
        for look, edge in zip(looked, edges, strict=True)
    ]
    mean, low, high = (
        np.stack(parts, axis=-1)
        for parts in zip(
            *((interval.mean, interval.low, interval.high) for interval in of_looks), strict=True
        )
    )
    return Intervals(mean, low, high)


def means(
    differences: Array, looked: tuple[int, ...], rounding: Rounding = NO_ROUNDING
) -> tuple[Array, Array, Array]:
    """The mean at each look, its standard error if blocks were independent, and their presumed correlation.

    Of log ratios of shape (…, blocks); shapes (…, looks).
    """
    counts = np.asarray(looked, dtype=np.float64)
    at = np.asarray(looked) - 1
    centre = differences[..., :1]
    moved = differences - centre
    sums = np.cumsum(moved, axis=-1)[..., at]
    squares = np.cumsum(moved * moved, axis=-1)[..., at]
    neighbours = np.concatenate([np.zeros_like(centre), moved[..., 1:] * moved[..., :-1]], axis=-1)
    products = np.cumsum(neighbours, axis=-1)[..., at]
    mean = sums / counts
    about = np.maximum(squares - counts * mean * mean, 0.0)
    # Of the sum of (x_i - mean)(x_(i+1) - mean); the first of the moved values is 0.
    lagged = products - mean * (2 * sums - moved[..., at]) + (counts - 1) * mean * mean
    lag_one = np.divide(lagged, about, out=np.zeros_like(lagged), where=about > 0)
    variance = np.maximum(about / (counts - 1), rounding.variance)
    return mean + centre, np.sqrt(variance / counts), presumed_correlation(lag_one, counts)


def rank_correlation(differences: Array) -> Array:
    """The presumed correlation of neighbouring blocks, of log ratios of shape (…, blocks), from their ranks.

    As normal scores would have it, so that no far or failed block decides; shape (…).
    """
    blocks, ranks = differences.shape[-1], centred_ranks(differences)
    presumed = presumed_correlation(correlation_over(ranks, 1), np.asarray(float(blocks)))
    if blocks < _FEWEST_OF_TWO:
        return presumed
    over_two = (blocks * correlation_over(ranks, 2) + 1) / (blocks - 4)
    stays = likeness(ranks) > _MORE_THAN_CHANCE
    return np.where(stays, np.maximum(presumed, np.sqrt(np.clip(over_two, 0.0, _MOST * _MOST))), presumed)


def centred_ranks(differences: Array) -> Array:
    """Of log ratios of shape (…, blocks), about 0. Equal ones have a rank in common."""
    # Equal ratios have ranks in the order of their blocks, and in the reverse one: on average none.
    both = _ranks(differences) + _ranks(differences[..., ::-1])[..., ::-1]
    return np.asarray((both - (differences.shape[-1] - 1)) / 2)


def _ranks(values: Array) -> Array:
    return np.argsort(np.argsort(values, axis=-1, kind="stable"), axis=-1).astype(np.float64)


def correlation_over(ranks: Array, lag: int) -> Array:
    """Of blocks' centred ranks (…, blocks) with those so many blocks before; shape (…)."""
    return _share((ranks[..., lag:] * ranks[..., :-lag]).sum(axis=-1), ranks)


def likeness(ranks: Array) -> Array:
    """How like a fading average of those before them blocks are: about standard normal if independent.

    Of centred ranks (…, blocks); shape (…).
    """
    weights, expected, error = _fading(ranks.shape[-1])
    return (_share(((ranks @ weights) * ranks).sum(axis=-1), ranks) - expected) / error


def _share(products: Array, ranks: Array) -> Array:
    total = np.asarray((ranks * ranks).sum(axis=-1))
    return np.asarray(np.divide(products, total, out=np.zeros_like(total), where=total > 0))


@lru_cache(maxsize=8)
def _fading(blocks: int) -> tuple[Array, float, float]:
    """Weights of the blocks before each (a column), and the mean and standard error of independent blocks."""
    apart = np.subtract.outer(-np.arange(blocks), -np.arange(blocks)).astype(np.float64)
    weights = np.where((apart > 0) & (apart <= _LAGS), _FADING ** (apart - 1), 0.0)
    expected = -float(weights.sum()) / (blocks * (blocks - 1))
    error = math.sqrt(float((weights**2).sum())) / blocks * (1 - _SHORT / blocks)
    return weights, expected, error


def interval_about(mean: Array, error: Array, edges: Array) -> Intervals:
    """The interval that an edge of t makes, from a mean and its standard error."""
    # Where an edge is infinite (too early for a confidence sequence) so is the interval, even without spread.
    finite = np.where(np.isinf(edges), 0.0, edges)
    half = np.where(np.isinf(edges), np.inf, finite * error)
    return Intervals(mean, mean - half, mean + half)


def claims(interval: Intervals, margin: float) -> Codes:
    """What each interval says; shape as the intervals'."""
    edge = math.log1p(margin)
    equivalent = (interval.low >= -edge) & (interval.high <= edge)
    codes = np.where(interval.low > 0, Claim.ABOVE, np.where(interval.high < 0, Claim.BELOW, Claim.NONE))
    return np.where(equivalent, Claim.EQUIVALENT, codes).astype(np.int8)


def first_claims(
    differences: Blocks, design: SequentialDesign, rounding: Rounding = NO_ROUNDING
) -> tuple[Codes, NDArray[np.int64]]:
    """Each study's first claim, and the blocks it took (all of them where there is none).

    `differences` has the shape (studies, blocks), or numbers (studies, 2, blocks): many studies of one
    comparison each.
    """
    looked = design.looked_at(
        len(differences) if isinstance(differences, PairedArms) else differences.shape[-1]
    )
    edges = design.edges(1, looked)
    studies = len(differences.low if isinstance(differences, PairedArms) else differences)
    claimed = np.full(studies, Claim.NONE, dtype=np.int8)
    taken = np.full(studies, looked[-1])
    for place, look in enumerate(looked):
        open_ = np.flatnonzero(claimed == Claim.NONE)
        for some in np.array_split(open_, max(1, len(open_) * look // _AT_ONCE)):
            of_some = (
                differences.of_studies(some) if isinstance(differences, PairedArms) else differences[some]
            )
            until = blocks_until(
                of_some, look, rounding, independent=design.independent, estimand=design.estimand
            )
            claimed[some] = claims(until.interval(edges[place]), design.margin)
        taken[open_[claimed[open_] != Claim.NONE]] = look
    return claimed, taken


# Neighbouring blocks that are alike: how much wider that makes the interval of their mean.
#
# With autocorrelations φ^k the mean of n blocks has V = 1 + 2 Σ (1 - k/n) φ^k times the variance that
# independent ones would give it, and the squares about the mean are short of n - 1 by V - 1 (Bayley and
# Hammersley, JRSS Supplement 8, 1946): so the interval is widened by sqrt(V (n - 1) / (n - V)). The squares
# are worth n (1 - φ²) / (1 + φ²) independent ones (Bartlett, JRSS 98, 1935), and φ is estimated from the
# same blocks, badly where they are few: the t quantile has 0.3 times that number as degrees of freedom, two
# at least. φ itself is presumed to be 0.6 standard errors above its estimate, which is the lag-1
# correlation without its bias of -(1 + 3φ)/n (Marriott and Pope, Biometrika 41, 1954).
#
# Where levels stay, blocks are like the last but one more than φ^2 says. So φ is r2^(1/2) at least where
# blocks are like a fading average of those before them (weights 0.6^k) more than in nine of ten independent
# studies: if that is asked first, studies without memory hardly pay for it.
#
# The two constants were found by simulation: with them, up to φ = 0.6, a difference between equal arms is
# claimed no more often than alpha says, at one look after 6 to 60 blocks, at all looks together, and with
# alpha shared among several comparisons. docs/statistics.md has the table, and the price.

_ALLOWANCE = 0.6
"""Standard errors, 1/sqrt(n) each."""
_MOST = 0.8
"""Beyond it a mean of blocks says nothing, and no wider interval mends that."""
_FREEDOM = 0.3
_LEAST_FREEDOM = 2.0
_LAGS = 12
_FADING = 0.6
_SHORT = 3.4
"""Blocks by which the standard error of few is short of that of many; by simulation."""
_MORE_THAN_CHANCE = 1.3
_FEWEST_OF_TWO = 8


def lag_one(values: Array) -> tuple[float, float]:
    """The correlation of neighbours, and the p value of 'there is none'; 0 and 1 without any spread.

    Von Neumann's ratio, as r1, normal approximation (Bartels, JASA 77, 1982).
    """
    centred = values - values.mean()
    total = float(centred @ centred)
    if not total > 0:
        return 0.0, 1.0
    r = float(centred[1:] @ centred[:-1]) / total
    # Under independence r1 has mean -1/n and variance about 1/n (Anderson 1942).
    n = len(values)
    return r, 2 * NormalDist().cdf(-abs(r + 1 / n) * math.sqrt(n))


def presumed_correlation(lag_one: Array, blocks: Array) -> Array:
    """φ, from 0 to 0.8, of lag-1 correlations about the mean (their shape, or one that broadcasts)."""
    unbiased = (blocks * lag_one + 1) / np.maximum(blocks - 3, 1.0)
    return np.clip(unbiased + _ALLOWANCE / np.sqrt(blocks), 0.0, _MOST)


def widened(edges: Array, blocks: Array, correlation: Array) -> Array:
    """Edges of |t| for so many blocks with this correlation: larger than those for independent ones.

    `edges` may be infinite. All three broadcast against each other.
    """
    # scipy.special takes a third of a second to load, and every session loads this module.
    from scipy import special

    squared = correlation * correlation
    freedom = np.maximum(_FREEDOM * blocks * (1 - squared) / (1 + squared), _LEAST_FREEDOM)
    tail = special.stdtr(blocks - 1, -edges)
    # Of a tail that is no number any more nothing is known but that it is far out.
    quantile = np.where(tail > 0, -special.stdtrit(freedom, np.maximum(tail, 1e-300)), np.inf)
    return np.asarray(np.maximum(edges, quantile * inflation(correlation, blocks)))


def inflation(correlation: Array, blocks: Array) -> Array:
    """How much wider the standard error of the mean is than s / sqrt(n) says."""
    phi = correlation
    variance = (1 + phi) / (1 - phi) - 2 * phi * (1 - phi**blocks) / (blocks * (1 - phi) ** 2)
    variance = np.minimum(variance, 0.999 * blocks)
    return np.asarray(np.sqrt(variance * (blocks - 1) / (blocks - variance)))


# Where most runs lie, whatever a few far ones are: for groups of runs, and for warnings.
#
# The location is Tukey's biweight (Mosteller and Tukey, Data Analysis and Regression, 1977, chapter 10),
# which gives values beyond six median absolute deviations no weight; its standard error is that of M
# estimators (Huber, Robust Statistics, 1981, 6.8), with Mosteller and Tukey's biweight midvariance. Of normal
# values it is nearly the mean. The rule for groups claims a difference only where both show it.

_REACH = 6.0
_STEPS = 4


def typical(differences: Array) -> tuple[Array, Array]:
    """The biweight of log ratios of shape (…, blocks), and its standard error; shapes (…)."""
    centre = np.median(differences, axis=-1, keepdims=True)
    scale = _REACH * np.median(np.abs(differences - centre), axis=-1, keepdims=True)
    # Where most values are one value, that is where the typical block lies.
    scale = np.maximum(scale, 1e-15)
    for _ in range(_STEPS):
        weights = np.maximum(1 - ((differences - centre) / scale) ** 2, 0.0) ** 2
        total = weights.sum(axis=-1, keepdims=True)
        centre = np.where(total > 0, (weights * differences).sum(axis=-1, keepdims=True), centre * total)
        centre = centre / np.where(total > 0, total, 1.0)
    return centre[..., 0], _standard_error(differences - centre, scale)


def _standard_error(apart: Array, scale: Array) -> Array:
    blocks = apart.shape[-1]
    share = np.minimum((apart / scale) ** 2, 1.0)
    squares = (apart**2 * (1 - share) ** 4).sum(axis=-1)
    slope = np.abs(((1 - share) * (1 - 5 * share)).sum(axis=-1))
    # A slope near 0: half of the values lie far out on either side, and there is no typical one.
    return np.asarray(np.sqrt(squares * blocks / (blocks - 1)) / np.maximum(slope, 0.1))
