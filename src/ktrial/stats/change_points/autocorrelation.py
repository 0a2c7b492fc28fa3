"""The autocorrelation of a series: the model AR(1), estimated so that steps do not look like memory.

The model: x_t = level + u_t, u_t = φ u_(t-1) + e_t, with independent e_t. A step in the level raises the
autocorrelation of the whole series, however independent its noise is; so φ is estimated in short windows,
each around its own mean, and the median window is taken: a step spoils the windows that it stands in, and no
other. In a window of w points the estimate is too low by about (1 + 3 φ) / w (Kendall, Biometrika 41, 1954;
Marriott and Pope, the same volume), which is added back.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_WINDOWS = (12, 25, 200)
"""A window is a fourth of a short series, 25 points of most, and a tenth of a long one, within these."""
_MOST = 0.95
"""Beyond it a series and its sums are hard to tell apart."""
_ALLOWANCE = 0.7
"""Standard errors: found by simulation, so that false alarms stay rare up to φ = 0.9."""
_OF_A_MEDIAN = 1.6
"""The variance of a median over that of a mean (π/2), and windows that overlap by half."""


def autoregression(values: Array) -> float:
    """φ, from 0 to 0.95: a little more than the likeliest value.

    A series with more autocorrelation than the test knows of raises false alarms; one with less costs
    some power. With n points the allowance is 0.7 standard errors of the estimate.
    """
    return _within(_of_windows(values) + _ALLOWANCE * _standard_error(values))


def whitened(values: Array, phi: float) -> Array:
    """What is new at each point: x_t - φ x_(t-1). A step of the level stays one, of (1 - φ) its size.

    One point shorter than `values`, unless φ is 0.
    """
    return values[1:] - phi * values[:-1] if phi else values


def significant_autoregression(values: Array) -> float:
    """φ, from 0 to 0.95: the likeliest value; 0 where that lies within two standard errors of 0."""
    phi = _of_windows(values)
    return _within(phi) if phi > 2 * _standard_error(values) else 0.0


def _within(phi: float) -> float:
    return float(min(_MOST, max(0.0, phi)))


def _of_windows(values: Array) -> float:
    short, usual, long = _WINDOWS
    size = min(len(values), max(short, min(usual, len(values) // 4), min(long, len(values) // 10)))
    windows = np.lib.stride_tricks.sliding_window_view(values, size)[:: max(1, size // 2)]
    centred = windows - windows.mean(axis=1, keepdims=True)
    spread = (centred**2).sum(axis=1)
    lagged = (centred[:, 1:] * centred[:, :-1]).sum(axis=1)
    of_windows = lagged[spread > 0] / spread[spread > 0]
    if not len(of_windows):
        return 0.0
    middle = float(np.median(of_windows))
    return (size * middle + 1.0) / (size - 3.0)


def _standard_error(values: Array) -> float:
    return float(np.sqrt(_OF_A_MEDIAN / max(1, len(values))))
