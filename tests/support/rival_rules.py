"""Ways of telling two kernels apart, on the same noise: ktrial's, the same looks with a plain t test,
Phoronix's, ten runs and Welch's t.

Each says, for every simulated study, whether the treatment is above (+1), below (-1) or neither (0), and how
many runs that took. `effect` is the true log ratio.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from tests.support.noise_models import Noise

from ktrial.stats.sequential.design import SequentialDesign
from ktrial.stats.sequential.repeated_intervals import claims, first_claims, interval_about, means
from ktrial.stats.verdict_rules import Claim

Array = NDArray[np.float64]
Signs = NDArray[np.int8]

SLOTS = 120
"""Slots that a simulated study needs: sixty blocks of two."""
_RUNS, _MOST_RUNS, _THRESHOLD = 3, 9, 3.5


@dataclass(frozen=True)
class Verdicts:
    signs: Signs
    runs: Array
    equivalent: NDArray[np.bool_] | None = None
    """None of rules that have no such verdict."""

    @property
    def found_a_difference(self) -> float:
        return float((self.signs != 0).mean())

    @property
    def found_it_above(self) -> float:
        return float((self.signs > 0).mean())


def ktrial(noise: Noise, effect: float, rng: np.random.Generator, design: SequentialDesign) -> Verdicts:
    """Every trial a boot of its own, both arms in each block, in random order."""
    return _verdicts(*first_claims(log_ratios(noise, effect, rng), design))


def plain_t(noise: Noise, effect: float, rng: np.random.Generator, design: SequentialDesign) -> Verdicts:
    """The same blocks and looks, and mean ± c·s/sqrt(n): for independent, normal log ratios."""
    differences = log_ratios(noise, effect, rng)
    looked = design.looked_at(differences.shape[1])
    mean, error, _ = means(differences, looked)
    codes = claims(interval_about(mean, error, np.asarray(design.edges(1, looked))), design.margin)
    some = codes != Claim.NONE
    first = np.where(some.any(axis=1), some.argmax(axis=1), len(looked) - 1)
    return _verdicts(codes[np.arange(len(codes)), first], np.asarray(looked)[first])


def log_ratios(noise: Noise, effect: float, rng: np.random.Generator) -> Array:
    """Of each block, of shape (studies, blocks)."""
    values = noise.runs + noise.boots
    first, second = values[:, 0::2], values[:, 1::2]
    treatment_first = rng.random(first.shape) < 0.5
    differences = np.where(treatment_first, first - second, second - first) + effect
    return np.asarray(differences if noise.treated is None else differences + noise.treated)


def _verdicts(claimed: NDArray[np.int8], blocks: NDArray[np.int64]) -> Verdicts:
    signs = np.where(claimed == Claim.EQUIVALENT, 0, claimed).astype(np.int8)
    return Verdicts(signs, (2 * blocks).astype(np.float64), claimed == Claim.EQUIVALENT)


def phoronix(noise: Noise, effect: float) -> Verdicts:
    """Phoronix Test Suite with its defaults; the larger mean wins, as its graphs and the papers have it.

    pts_test_run_manager::increase_run_count_check (PTS 6): three runs; while their standard deviation is at
    least 3.5 %, more until there are six; then more until nine, as long as it is below half of the first one.
    One arm after the other, each in one boot.
    """
    studies = np.arange(len(noise.runs))
    control = np.exp(noise.runs + noise.boots[:, :1])
    control_runs = _phoronix_runs(control[:, :_MOST_RUNS])
    slots = control_runs[:, None] + np.arange(_MOST_RUNS)
    treated = np.exp(
        noise.runs[studies[:, None], slots] + noise.boots[:, 1:2] + effect + _own(noise, _MOST_RUNS)
    )
    treated_runs = _phoronix_runs(treated)
    means = _mean_of_first(control[:, :_MOST_RUNS], control_runs), _mean_of_first(treated, treated_runs)
    # Means are printed with two decimals, of numbers like 381.88.
    signs = np.sign(np.round(400 * means[1], 2) - np.round(400 * means[0], 2)).astype(np.int8)
    return Verdicts(signs, (control_runs + treated_runs).astype(np.float64))


def _own(noise: Noise, runs: int) -> Array | float:
    return 0.0 if noise.treated is None else noise.treated[:, :runs]


def _phoronix_runs(values: Array) -> NDArray[np.int64]:
    runs = np.full(len(values), _RUNS)
    going = np.ones(len(values), dtype=bool)
    first = _percent_sd(values[:, :_RUNS])
    for done in range(_RUNS, _MOST_RUNS):
        now = _percent_sd(values[:, :done])
        helps = (done < 2 * _RUNS) | (first - now > first / 2)
        going &= (now >= _THRESHOLD) & helps
        runs[going] = done + 1
    return runs


def _percent_sd(values: Array) -> Array:
    return np.asarray(100 * values.std(axis=1, ddof=1) / values.mean(axis=1))


def _mean_of_first(values: Array, counts: NDArray[np.int64]) -> Array:
    sums = np.cumsum(values, axis=1)
    return np.asarray(np.take_along_axis(sums, counts[:, None] - 1, axis=1)[:, 0] / counts)


def ten_runs_and_welch(noise: Noise, effect: float) -> Verdicts:
    """Ten runs of one kernel, a reboot, ten runs of the other, Welch's t test at 5 %."""
    control = noise.runs[:, :10] + noise.boots[:, :1]
    treated = noise.runs[:, 10:20] + noise.boots[:, 1:2] + effect + _own(noise, 10)
    test = stats.ttest_ind(treated, control, axis=1, equal_var=False)
    signs = np.where(test.pvalue < 0.05, np.sign(test.statistic), 0).astype(np.int8)
    return Verdicts(signs, np.full(len(signs), 20.0))
