"""Where most values lie, whatever a few far ones are.

A rare spike in one arm alone (a daemon, a compaction) moves the mean of the log ratios, though nine blocks
of ten show no difference. So a difference is claimed only if the typical block, or run, shows it too, and
the interval holds both. The location is Tukey's biweight (Mosteller and Tukey, Data Analysis and
Regression, 1977, chapter 10), which gives values beyond six median absolute deviations no weight; its
standard error is that of M estimators (Huber, Robust Statistics, 1981, 6.8), with Mosteller and Tukey's
biweight midvariance. Of normal values it is nearly the mean. What both claim is false where either is (an
intersection-union test: Berger, Technometrics 24, 1982), so that no error is added.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

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
