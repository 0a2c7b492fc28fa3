"""Where exactly a step is, once it is known that there is one: least squares between its neighbours."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_WILD = 3.0
"""Robust standard deviations beyond both levels: values further out are brought in to there."""
_TO_SD = 1.4826
"""Median absolute deviation → standard deviation of a normal distribution."""
_MOST_POINTS = 4096
_AROUND = 2


def placed(series: Array, places: Sequence[int], phi: float) -> list[int]:
    """The places, each moved to where a step fits best between its two neighbours.

    Two rounds: the first moves the neighbours too.
    """
    found = list(places)
    for _ in range(2):
        edges = [0, *found, len(series)]
        found = [
            _best(series, edges[number], edges[number + 1], edges[number + 2], phi)
            for number in range(len(found))
        ]
    return found


def _best(series: Array, first: int, place: int, last: int, phi: float) -> int:
    first, last = max(first, place - _MOST_POINTS), min(last, place + _MOST_POINTS)
    if not first < place < last:
        return place
    near = _tamed(series[first:place], series[place:last])
    gain, rest = _gain(near, phi)
    return first + 1 + _likeliest(gain, rest / max(1, len(near) - 3))


def _likeliest(gain: Array, variance: float) -> int:
    """The place with the most probability around it: the step is there, or up to two points off.

    With a flat prior a place's probability goes with exp(gain / (2 variance)). The single likeliest place is
    further off more often: by three points or more in 6 % of steps of two standard deviations, against 4 %.
    """
    if variance <= 0:
        return int(gain.argmax())
    probability = np.exp((gain - gain.max()) / (2 * variance))
    around = np.convolve(probability, np.ones(2 * _AROUND + 1))[_AROUND:-_AROUND]
    # Of places with as much around them (a step beyond doubt) the likeliest one.
    return int(np.lexsort((probability, around.round(9)))[-1])


def _tamed(before: Array, after: Array) -> Array:
    levels = np.array([np.median(before), np.median(after)])
    off = np.concatenate([before - levels[0], after - levels[1]])
    reach = _WILD * _TO_SD * float(np.median(np.abs(off)))
    both = np.concatenate([before, after])
    return np.clip(both, levels.min() - reach, levels.max() + reach) if reach else both


def _gain(near: Array, phi: float) -> tuple[Array, float]:
    """For a step before each point from the second on: by how much it lowers the sum of squares; and what is
    left of that sum at best.

    Generalised least squares for AR(1): both the series and the step are whitened, e_t = x_t - φ x_(t-1), the
    first point weighted by √(1 - φ²) (Prais and Winsten, 1954).
    """
    n, first = len(near), float(np.sqrt(1 - phi**2))
    e = np.concatenate([[first * near[0]], near[1:] - phi * near[:-1]])
    one = np.concatenate([[first], np.full(n - 1, 1 - phi)])
    # The step at k, whitened: 0 before k, 1 at k, 1 - φ after it.
    tail_e = np.cumsum(e[::-1])[::-1]
    k = np.arange(1, n)
    after = n - 1 - k
    ge = e[k] + (1 - phi) * (tail_e[k] - e[k])
    g1 = one[k] + (1 - phi) ** 2 * after
    gg = 1 + (1 - phi) ** 2 * after
    oe, oo = float(one @ e), float(one @ one)
    top = ge - g1 * oe / oo
    bottom = gg - g1**2 / oo
    gain = np.zeros(n - 1)
    np.divide(top**2, bottom, out=gain, where=bottom > 1e-12)
    return gain, max(0.0, float(e @ e) - oe**2 / oo - float(gain.max()))
