"""Ways in which a machine's numbers scatter, for simulated studies: used by tests and by `make bench`.

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
    treated: Array | None = None
    """What the treatment's trial of each block has on top, of shape (studies, slots / 2); no effect of it."""


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


def correlated(phi: float) -> Model:
    """Log ratios with a standard deviation of 1.4 %, each like the one before: AR(1)."""

    def model(rng: np.random.Generator, studies: int, slots: int) -> Noise:
        fresh = rng.standard_normal((slots // 2, studies))
        level = np.empty_like(fresh)
        level[0] = fresh[0]
        for at in range(1, len(fresh)):
            level[at] = phi * level[at - 1] + np.sqrt(1 - phi * phi) * fresh[at]
        return _treated(np.zeros((studies, slots)), np.sqrt(2) * ONE_PERCENT * level.T)

    return model


def spikes(share: float, size: float) -> Model:
    """Normal, 1 %; so large a share of the treatment's trials, and of no others, take so much longer."""

    def model(rng: np.random.Generator, studies: int, slots: int) -> Noise:
        hit = rng.random((studies, slots // 2)) < share
        return _treated(ONE_PERCENT * rng.standard_normal((studies, slots)), np.log1p(size) * hit)

    return model


def spikes_in_both(rng: np.random.Generator, studies: int, slots: int) -> Noise:
    """Normal, 1 %; one trial in twenty takes a tenth longer, in both arms alike."""
    hit = rng.random((studies, slots)) < 0.05
    return _alone(np.log1p(0.1) * hit + ONE_PERCENT * rng.standard_normal((studies, slots)))


def coarse_clock(rng: np.random.Generator, studies: int, slots: int) -> Noise:
    """Normal, 1 %, read from a clock with steps of 2 %: nearly all values repeat."""
    phase = rng.random((studies, 1))
    values = ONE_PERCENT * rng.standard_normal((studies, slots))
    return _alone(0.02 * (np.round(values / 0.02 + phase) - phase))


def unequal_variances(rng: np.random.Generator, studies: int, slots: int) -> Noise:
    """Normal, 1 %; the treatment's trials scatter three times as much."""
    own = 0.01 * np.sqrt(8) * rng.standard_normal((studies, slots // 2))
    return _treated(ONE_PERCENT * rng.standard_normal((studies, slots)), own)


def _alone(runs: Array) -> Noise:
    return Noise(runs, np.zeros_like(runs))


def _treated(runs: Array, treated: Array) -> Noise:
    return Noise(runs, np.zeros_like(runs), treated)


MODELS: dict[str, Model] = {
    "independent": independent,
    "drifting": drifting,
    "bimodal": bimodal,
    "boot-level variance": boot_level,
    "heavy": heavy,
    "linear trend": linear_trend,
    "ratios alike, φ 0.2": correlated(0.2),
    "ratios alike, φ 0.4": correlated(0.4),
    "ratios alike, φ 0.6": correlated(0.6),
    "rare spikes in one arm": spikes(0.05, 0.1),
    "rarer, higher spikes": spikes(0.02, 0.3),
    "frequent spikes in one arm": spikes(0.1, 0.1),
    "rare spikes in both arms": spikes_in_both,
    "coarse clock": coarse_clock,
    "unequal variances": unequal_variances,
}
