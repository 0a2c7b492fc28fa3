"""Is there a step in a stretch of a series? The maximally selected rank statistic.

Each stretch's values are replaced by the normal scores of their ranks within it (van der Waerden), so that
one wild value counts for no more than the largest rank. For every split the sum of the scores before it is
divided by its standard deviation under all permutations; the statistic is the largest |z|. Since only ranks
enter, its permutation distribution is the same for every series of that length, and need not be sampled: the
tail is that of Lausen and Schumacher (Biometrics 48, 1992), after Miller and Siegmund (Biometrics 38, 1982).
It holds for the supremum over a continuum of splits, and is a little too large for the splits that there
are.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Places = NDArray[np.intp]

LEAST_SIDE = 3
"""Points that each side of a split has at least."""


def largest(stretches: Array) -> tuple[Array, Places]:
    """For each row of shape (stretches, length) the largest |z| over its splits, and how many points lie
    before that split. Rows of equal values have 0.
    """
    length = stretches.shape[1]
    scores = _scores(stretches)
    before = np.arange(LEAST_SIDE, length - LEAST_SIDE + 1)
    sums = np.cumsum(scores, axis=1)[:, before - 1]
    squares = (scores**2).sum(axis=1, keepdims=True)
    variance = squares * (before * (length - before) / (length * (length - 1.0)))
    z = np.zeros_like(sums)
    np.divide(np.abs(sums), np.sqrt(variance), out=z, where=variance > 0)
    place = z.argmax(axis=1)
    return z[np.arange(len(z)), place], before[place]


def _scores(stretches: Array) -> Array:
    """The normal scores of the ranks in each row; equal values have one score, that of their mean rank."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    length = stretches.shape[1]
    order = stretches.argsort(axis=1)
    in_order = np.take_along_axis(stretches, order, axis=1)
    tied = (in_order[:, 1:] == in_order[:, :-1]).any(axis=1)
    scores = np.empty_like(stretches)
    np.put_along_axis(scores, order, ndtri(np.arange(1, length + 1) / (length + 1))[None], axis=1)
    if tied.any():
        scores[tied] = ndtri(rankdata(stretches[tied], axis=1) / (length + 1))
    return scores


def p_value(z: Array, length: int) -> Array:
    """The chance of a |z| this large somewhere in a stretch of exchangeable values."""
    from scipy.stats import norm

    edge = LEAST_SIDE / length
    width = 2 * np.log((1 - edge) / edge)
    b = np.maximum(z, 1.5)  # the tail's formula is none below
    tail = norm.pdf(b) * ((b - 1 / b) * width + 4 / b)
    return np.asarray(np.where(z < b, 1.0, np.minimum(1.0, tail)))
