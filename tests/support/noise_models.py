"""Six ways in which a machine's numbers scatter, for simulated studies: used by tests and by `make bench`.

All are logarithms (0.01 is 1 %), one a slot: the trials of a study one after another. What a boot has in
common comes apart, because whoever runs an arm's repeats in one boot meets it once for all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
ONE_PERCENT = 0.01


@dataclass(frozen=True)
class Noise:
    """Of shape (studies, slots) each."""

    runs: Array
    """What each run has for itself, and what the time of its slot brings."""
    boots: Array
    """What a boot in that slot has in common for all of its runs."""


Model = Callable[[np.random.Generator, int, int], Noise]


def independent(rng: np.random.Generator, studies: int, slots: int) -> Noise:
    """Normal, standard deviation 1 %."""
    return _alone(ONE_PERCENT * rng.standard_normal((studies, slots)))


def drifting(rng: np.random.Generator, studies: int, slots: int) -> Noise:
    """Normal, 0.9 %, on a level that wanders: a random walk of 0.3 % a slot."""
    level = np.cumsum(0.003 * rng.standard_normal((studies, slots)), axis=1)
    return _alone(level + 0.009 * rng.standard_normal((studies, slots)))


def bimodal(rng: np.random.Generator, studies: int, slots: int) -> Noise:
    """Two modes 2 % apart, the slower one in 3 runs of 10, each 0.4 % wide: standard deviation 1 %."""
    slow = rng.random((studies, slots)) < 0.3
    return _alone(0.02 * slow + 0.004 * rng.standard_normal((studies, slots)))


def boot_level(rng: np.random.Generator, studies: int, slots: int) -> Noise:
    """A boot's memory layout decides: 0.9 % between boots, 0.44 % between the runs of one."""
    runs = 0.0044 * rng.standard_normal((studies, slots))
    return Noise(runs, 0.009 * rng.standard_normal((studies, slots)))


def heavy(rng: np.random.Generator, studies: int, slots: int) -> Noise:
    """Student's t with 3 degrees of freedom, scaled to a standard deviation of 1 %: far outliers."""
    return _alone(ONE_PERCENT / np.sqrt(3) * rng.standard_t(3, (studies, slots)))


def linear_trend(rng: np.random.Generator, studies: int, slots: int) -> Noise:
    """Normal, 1 %, on a level that rises by 0.1 % a slot: a laptop that warms up."""
    return _alone(0.001 * np.arange(slots) + ONE_PERCENT * rng.standard_normal((studies, slots)))


def _alone(runs: Array) -> Noise:
    return Noise(runs, np.zeros_like(runs))


MODELS: dict[str, Model] = {
    "independent": independent,
    "drifting": drifting,
    "bimodal": bimodal,
    "boot-level variance": boot_level,
    "heavy": heavy,
    "linear trend": linear_trend,
}
