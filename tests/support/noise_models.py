"""Ways in which a machine's numbers scatter, for simulated studies: used by tests and by `make bench`.

All are logarithms (0.01 is 1 %), one a slot: the trials of a study one after another. What a boot has in
common comes apart, because whoever runs an arm's repeats in one boot meets it once for all of them.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.signal import lfilter
from scipy.special import ndtr
from tests.support.making import a_sample, a_study, a_trial, planned

from ktrial.analysis import interim
from ktrial.analysis.result import metrics_in_catalogue, metrics_of, result
from ktrial.model.comparison import Verdict
from ktrial.model.study import MachineSettings, Study, Timing
from ktrial.model.trial import Trial
from ktrial.model.workload import Mode

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
    """Normal, 1 %; so large a share of the treatment's trials, and of no others, take so much longer.

    The typical block is as without: what the spikes move it by, the treatment is otherwise faster.
    """
    # A pair of blocks has the mean of two of the treatment's spikes, and of four trials' noise.
    hits = np.array([(1 - share) ** 2, 2 * share * (1 - share), share**2])
    levels = np.log1p(size) * np.array([0.0, 0.5, 1.0])
    moved = brentq(lambda at: float(hits @ ndtr((at - levels) / ONE_PERCENT)) - 0.5, 0.0, np.log1p(size))

    def model(rng: np.random.Generator, studies: int, slots: int) -> Noise:
        hit = rng.random((studies, slots // 2)) < share
        return _treated(ONE_PERCENT * rng.standard_normal((studies, slots)), np.log1p(size) * hit - moved)

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


# Simulated series: noise of several kinds, with and without a step, for tests and for `make bench`.

Values = NDArray[np.float64]


MEMORY = {"independent": 0.0, "autocorrelated, φ = 0.3": 0.3, "autocorrelated, φ = 0.6": 0.6}
"""Kind of noise → φ of its AR(1)."""


STEP = 2.0
"""Standard deviations of the noise."""


NEAR = 2
"""Positions by which a step that was found may be off."""


_BURN_IN = 200


def noise(rng: np.random.Generator, count: int, points: int, phi: float) -> Values:
    """Shape (count, points), with the standard deviation 1 and the mean 0."""
    fresh = rng.standard_normal((count, points + _BURN_IN))
    return np.asarray(lfilter([1.0], [1.0, -phi], fresh, axis=1)[:, _BURN_IN:] * np.sqrt(1 - phi**2))


def with_steps(rng: np.random.Generator, series: Values) -> tuple[Values, NDArray[np.intp]]:
    """Each series with one step upwards at a random place in its middle eight tenths; and the places."""
    points = series.shape[1]
    places = rng.integers(points // 10, points - points // 10, len(series))
    after = np.arange(points)[None] >= places[:, None]
    return series + STEP * after, places


# Studies over seeds of one treatment on several CPUs, drawn from trials that were measured once.

_KERNELS = ("debian:6.1", "debian:6.12")


_WORKLOAD = "hackbench"


_FIRST_LOOK = 6


def verdicts(values: Sequence[float], *, effect: float, margin: float, studies: int) -> Counter[Verdict]:
    """How so many studies end; in each, the seeds of both arms are other ones of `values`, none twice.

    `effect`: by how much the second arm takes longer (0.05 for 5 %).
    """
    drawn, counts = random.Random(16), Counter[Verdict]()
    for _ in range(studies):
        shuffled = drawn.sample(values, len(values))
        half = len(shuffled) // 2
        others = [value * (1 + effect) for value in shuffled[half : 2 * half]]
        counts[_verdict(margin, shuffled[:half], others)] += 1
    return counts


def _verdict(margin: float, first: Sequence[float], second: Sequence[float]) -> Verdict:
    """As `ktrial run` does: look, go on to the next look, end where it is decided or no seed is left."""
    machine = MachineSettings(kind="exact-parallel", cpus=4)
    study = a_study(workloads=(_WORKLOAD,), machine=machine, timing=Timing(), margin=margin)
    blocks: int | None = _FIRST_LOOK
    trials: list[Trial] = []
    while blocks and blocks <= len(first):
        trials = [
            _trial(block, arm, arms[block])
            for block in range(blocks)
            for arm, arms in enumerate((first, second))
        ]
        blocks = _next_look(study, trials)
    (comparison,) = result(study, trials).comparisons
    return comparison.verdict


def _next_look(study: Study, trials: Sequence[Trial]) -> int | None:
    return interim.InterimData(study, trials).blocks_wanted(metrics_of(study, trials, metrics_in_catalogue))


def _trial(block: int, arm: int, value: float) -> Trial:
    sample = a_sample(_WORKLOAD, value, unit="ns", mode=Mode.EXACT_PARALLEL)
    return a_trial(planned(_KERNELS[arm], block, 2 * block + arm), samples=(sample,))
