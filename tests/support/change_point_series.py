"""Simulated series: noise of several kinds, with and without a step, for tests and for `make bench`."""

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

Array = NDArray[np.float64]

MEMORY = {"independent": 0.0, "autocorrelated, φ = 0.3": 0.3, "autocorrelated, φ = 0.6": 0.6}
"""Kind of noise → φ of its AR(1)."""
STEP = 2.0
"""Standard deviations of the noise."""
NEAR = 2
"""Positions by which a step that was found may be off."""
_BURN_IN = 200


def noise(rng: np.random.Generator, count: int, points: int, phi: float) -> Array:
    """Shape (count, points), with the standard deviation 1 and the mean 0."""
    fresh = rng.standard_normal((count, points + _BURN_IN))
    return np.asarray(lfilter([1.0], [1.0, -phi], fresh, axis=1)[:, _BURN_IN:] * np.sqrt(1 - phi**2))


def with_steps(rng: np.random.Generator, series: Array) -> tuple[Array, NDArray[np.intp]]:
    """Each series with one step upwards at a random place in its middle eight tenths; and the places."""
    points = series.shape[1]
    places = rng.integers(points // 10, points - points // 10, len(series))
    after = np.arange(points)[None] >= places[:, None]
    return series + STEP * after, places
