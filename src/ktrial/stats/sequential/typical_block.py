"""Where the typical block lies: Hodges and Lehmann's location of log ratios, with an interval from ranks.

The location is the median of the Walsh averages, the means of every two log ratios (and of each with itself;
Hodges and Lehmann, Annals of Mathematical Statistics 34, 1963). What it estimates is the pseudomedian: half
of all pairs of blocks have a mean above it. Of ratios that scatter alike to both sides that is their middle;
an arm's rare spike of any size moves it by little.

The interval has Walsh averages as its ends, as many from either end as Wilcoxon's signed-rank statistic
allows at the nominal level (Lehmann, Nonparametrics, 1975, 4.4): exactly, whatever the distribution, if it is
symmetric. Where it is not, the statistic varies more than its null distribution says; a U statistic with
the kernel 1[x + y > 2θ] has the variance 4 ζ / n with ζ that of h(x) = P(x + Y > 2θ), which is 1/12 under
symmetry and is estimated from the blocks (Hoeffding, Annals of Mathematical Statistics 19, 1948). The larger
of the two counts.

A group-sequential boundary c of |t| at a look gives the nominal level 2 T(-c), with n - 1 degrees of freedom:
so the error is spent as for a t test (`boundaries`). Few blocks cannot reach such a level by ranks: of six, 2
orders of 64 lie on one side. Then the interval is no narrower than all blocks, nor than c standard errors of
their mean.

Beyond sixty blocks not all pairs are taken: each block with some others at fixed distances (a reduced U
statistic: Brown and Kildea, Annals of Statistics 6, 1978), which costs the variance 1 / (4 L) with L
distances.

A block whose treatment failed has the log ratio of plus or minus infinity, the worst rank; one whose value
is only known to lie beyond a limit has two ends, and the interval's low end is made of the low ones, its
high end of the high ones.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_ALL_PAIRS = 60
"""Up to so many blocks all pairs are taken."""
_PAIRS = 4000
_LEAST_DISTANCES = 4
_SLACK = 1e-9
_ROUNDING = 1e-12
"""What two sums of logarithms may differ by that are one number: θ is itself half of such a sum."""
_OF_SYMMETRY = 1 / 12
"""The variance of h(x) where the distribution is symmetric: that of a uniform share."""


@dataclass(frozen=True)
class Walsh:
    """Walsh averages of log ratios of shape (…, blocks), sorted; shape (…, pairs)."""

    blocks: int
    low: Array
    """Of the low ends."""
    high: Array
    """Of the high ends; the same where every value is known."""
    location: Array
    """Hodges and Lehmann's, of shape (…); infinite where half of the pairs are."""
    asymmetry: Array
    """How much more the rank statistic varies than under symmetry, as a standard deviation; 1 at least."""
    mean_error: Array
    """The standard error of the mean of the blocks; infinite where one is."""

    def interval(self, edge: Array, widening: Array, least_error: float) -> tuple[Array, Array]:
        """The ends for a boundary of |t|.

        `widening`: by how much each half is longer than for independent blocks. `least_error`: what the
        standard error of the location is at least. Shapes broadcast with that of `location`; one study
        may have many edges.
        """
        pairs = self.low.shape[-1]
        shape = np.broadcast_shapes(self.location.shape, np.shape(edge))
        edges, widening = np.broadcast_to(edge, shape), np.broadcast_to(widening, shape)
        finite = np.where(np.isfinite(edges), edges, 0.0)
        reach = _reach(self.blocks, pairs, finite)
        by_ranks, most = np.isfinite(reach), (pairs - 1) / 2
        away = np.where(by_ranks, reach, most) * np.where(by_ranks, self.asymmetry, 1.0)
        # Where half of the pairs are infinite, there is no half to make longer: ranks are taken further out.
        endless = np.isinf(self.location)
        away = np.where(endless, away * widening, away)
        rank = np.clip(np.floor(most - away + _SLACK), 0, pairs - 1).astype(np.int64)
        lowest, highest = _at(self.low, rank), _at(self.high, pairs - 1 - rank)
        error = np.maximum(np.where(by_ranks, 0.0, self.mean_error), least_error)
        # Beyond the outermost average the half grows in proportion.
        factor, least = np.maximum(away / most, 1.0) * widening, finite * error * widening
        with np.errstate(invalid="ignore"):
            low = self.location - np.maximum((self.location - lowest) * factor, least)
            high = self.location + np.maximum((highest - self.location) * factor, least)
        reached = by_ranks & (away <= most)
        low = np.where(endless, np.where(reached, lowest, -np.inf), low)
        high = np.where(endless, np.where(reached, highest, np.inf), high)
        none = np.isinf(edges)
        return np.where(none, -np.inf, low), np.where(none, np.inf, high)


def _at(ordered: Array, rank: NDArray[np.int64]) -> Array:
    if ordered.ndim == 1:
        return np.asarray(ordered[rank])
    return np.asarray(np.take_along_axis(ordered, rank[..., None], axis=-1)[..., 0])


def walsh(low: Array, high: Array | None = None) -> Walsh:
    """Of log ratios of shape (…, blocks); `high`: their high ends, where these are the low ones."""
    below = _averages(low, -np.inf)
    above = (
        below
        if high is None and np.all(np.isfinite(low))
        else _averages(low if high is None else high, np.inf)
    )
    location = _middle(below) if above is below else _middle(np.sort(_halfway(below, above), axis=-1))
    values = low if high is None else _halfway(low, high)
    blocks = low.shape[-1]
    with np.errstate(invalid="ignore"):
        squares = ((values - values.mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1)
    spread = np.sqrt(squares / max(blocks - 1, 1))
    return Walsh(
        blocks=blocks,
        low=below,
        high=above,
        location=location,
        asymmetry=_asymmetry(values, location),
        mean_error=np.where(np.isnan(spread), np.inf, spread) / math.sqrt(blocks),
    )


def typical_ratio(before: Sequence[float], after: Sequence[float]) -> float | None:
    """after / before of the typical block; None where there is no block, or a value not above zero."""
    if not before or min(*before, *after) <= 0:
        return None
    ratios = np.log(np.asarray(after, dtype=np.float64) / np.asarray(before, dtype=np.float64))
    return math.exp(float(walsh(ratios).location))


def _halfway(low: Array, high: Array) -> Array:
    """The low end where the high one is infinite and the low is not: what was seen."""
    return np.asarray(np.where(np.isfinite(low), low, high))


def _averages(values: Array, unknown: float) -> Array:
    first, second = _pairs(values.shape[-1])
    with np.errstate(invalid="ignore"):
        averages = (values[..., first] + values[..., second]) / 2
    return np.sort(np.where(np.isnan(averages), unknown, averages), axis=-1)


@lru_cache(maxsize=512)
def _pairs(blocks: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    if blocks <= _ALL_PAIRS:
        first, second = np.triu_indices(blocks)
        return first, second
    distances = _distances(blocks)
    first = np.tile(np.arange(blocks), len(distances))
    return first, (first + np.repeat(distances, blocks)) % blocks


def _distances(blocks: int) -> NDArray[np.intp]:
    count = max(_LEAST_DISTANCES, _PAIRS // blocks)
    apart = (np.arange(count) + 0.5) * (blocks - 1) / (2 * count)
    return np.unique(np.maximum(1, np.round(apart))).astype(np.intp)


def _middle(ordered: Array) -> Array:
    pairs = ordered.shape[-1]
    lower, upper = ordered[..., (pairs - 1) // 2], ordered[..., pairs // 2]
    with np.errstate(invalid="ignore"):
        middle = (lower + upper) / 2
    return np.asarray(np.where(np.isnan(middle), 0.0, middle))


def _asymmetry(values: Array, location: Array) -> Array:
    """From h at each block: the share of blocks y with x + y > 2θ, and half of those with x + y = 2θ."""
    blocks = values.shape[-1]
    with np.errstate(invalid="ignore"):
        centred = values - location[..., None]
    centred = np.where(np.isnan(centred), 0.0, centred)
    ordered = np.sort(centred, axis=-1)
    if centred.ndim == 1:
        above = blocks - np.searchsorted(ordered, _ROUNDING - centred, side="right")
        least = blocks - np.searchsorted(ordered, -_ROUNDING - centred, side="left")
        shares = (above + least) / (2 * blocks)
    else:
        with np.errstate(invalid="ignore"):
            sums = centred[..., :, None] + centred[..., None, :]
        # What is no number lies neither above nor below.
        above = np.count_nonzero(sums > _ROUNDING, axis=-1)
        shares = 0.5 + (above - np.count_nonzero(sums < -_ROUNDING, axis=-1)) / blocks / 2
    variance = shares.var(axis=-1) * blocks / max(blocks - 1, 1)
    return np.asarray(np.sqrt(np.maximum(variance / _OF_SYMMETRY, 1.0)))


def _reach(blocks: int, pairs: int, edges: Array) -> Array:
    """How many ranks from the middle the ends lie for each boundary; infinite where no ranks reach it."""
    if blocks > _ALL_PAIRS:
        distances = len(_distances(blocks))
        error = math.sqrt((1 + 1 / (4 * distances)) / (3 * blocks))
        return np.asarray(edges * error * pairs)
    flat = [_exact_reach(blocks, float(edge)) for edge in np.unique(edges)]
    return np.asarray(np.asarray(flat)[np.searchsorted(np.unique(edges), edges)])


@lru_cache(maxsize=65536)
def _exact_reach(blocks: int, edge: float) -> float:
    """From the distribution of the signed-rank statistic: W <= k in at most half of the level."""
    from scipy import special  # takes a third of a second to load

    tail = float(special.stdtr(blocks - 1, -edge))
    rank = int(np.searchsorted(_signed_ranks(blocks), tail, side="right"))
    return (blocks * (blocks + 1) / 2 - 1) / 2 - (rank - 1) if rank else math.inf


@lru_cache(maxsize=64)
def _signed_ranks(blocks: int) -> Array:
    """P(W <= 0), P(W <= 1), …: each rank is in the sum or not, with equal probability."""
    chances = np.zeros(blocks * (blocks + 1) // 2 + 1)
    chances[0] = 1.0
    for rank in range(1, blocks + 1):
        chances[rank:] = chances[rank:] / 2 + chances[:-rank] / 2
        chances[:rank] /= 2
    return np.asarray(np.cumsum(chances))
