"""Neighbouring blocks that are alike: how much wider that makes the interval of their mean.

With autocorrelations φ^k the mean of n blocks has V = 1 + 2 Σ (1 - k/n) φ^k times the variance that
independent ones would give it, and the squares about the mean are short of n - 1 by V - 1 (Bayley and
Hammersley, JRSS Supplement 8, 1946): so the interval is widened by sqrt(V (n - 1) / (n - V)). The squares
are worth n (1 - φ²) / (1 + φ²) independent ones (Bartlett, JRSS 98, 1935), and φ is estimated from the same
blocks, badly where they are few: the t quantile has 0.3 times that number as degrees of
freedom, two at least. φ itself is presumed to be 0.6 standard errors above its estimate, which is the lag-1
correlation without its bias of -(1 + 3φ)/n (Marriott and Pope, Biometrika 41, 1954).

The two constants were found by simulation: with them, up to φ = 0.6, a difference between equal arms is
claimed no more often than alpha says, at one look after 6 to 60 blocks, at all looks together, and with
alpha shared among several comparisons. docs/statistics.md has the table, and the price.
"""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_ALLOWANCE = 0.6
"""Standard errors, 1/sqrt(n) each."""
_MOST = 0.8
"""Beyond it a mean of blocks says nothing, and no wider interval mends that."""
_FREEDOM = 0.3
_LEAST_FREEDOM = 2.0


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
