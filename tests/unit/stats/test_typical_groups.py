"""Huber's estimate of groups: its intervals by simulation, what a disturbed run does to them, and what an
earlier estimate is worth where it is right, and where it is not."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from tests.support.runs_of_tests import at_night, by_night

from ktrial.stats.resolution import Rounding
from ktrial.stats.typical_groups import EarlierEstimate, Groups, typical_groups

NOISE, GAIN, SLOW = 0.03, 0.06, 0.25
COUNT = by_night(400, 120)
BY_CHANCE = by_night(0.0, 0.02)
"""What a share of fewer studies may be off by."""


def holds(groups: Groups, truth: float = 0.0) -> bool:
    return bool((np.abs(groups.means - truth) <= groups.halves).all())


def drawn(rng: np.random.Generator, *counts: int) -> list[NDArray[np.float64]]:
    return [NOISE * rng.standard_normal(count) for count in counts]


@pytest.mark.parametrize(
    "counts", [(3, 6), at_night((8, 8)), at_night((20, 20)), (4, 8, 8), at_night((6, 6, 6, 6))]
)
def test_intervals_hold_together_with_normal_noise(counts: tuple[int, ...]) -> None:
    rng = np.random.default_rng(sum(counts))
    held = sum(holds(typical_groups(drawn(rng, *counts))) for _ in range(COUNT))
    assert 0.925 - BY_CHANCE < held / COUNT < 0.98 + BY_CHANCE


@pytest.mark.parametrize(("times", "least"), [(3.0, 0.94), (9.0, 0.91), at_night(1 / 3, 0.94)])
def test_intervals_hold_where_a_treatment_scatters_more_than_the_baseline(times: float, least: float) -> None:
    rng, held = np.random.default_rng(11), 0
    for _ in range(COUNT):
        baseline, treatment, earlier = drawn(rng, 4, 8, 10)
        estimate = EarlierEstimate(0.5 * NOISE * rng.standard_normal(), 0.5 * NOISE)
        held += holds(typical_groups([baseline, times * treatment], earlier, [estimate]))
    assert held / COUNT > least - BY_CHANCE


@pytest.mark.nightly
def test_with_one_treatment_it_is_nearly_the_t_test() -> None:
    rng, wider = np.random.default_rng(2), []
    for _ in range(COUNT):
        groups = drawn(rng, 8, 12)
        interval = stats.ttest_ind(groups[1], groups[0]).confidence_interval(0.95)
        wider.append(2 * typical_groups(groups).halves[0] / (interval.high - interval.low))
    assert 1.0 < float(np.mean(wider)) < 1.14


@pytest.mark.parametrize("arm", [0, 1])
def test_runs_that_are_disturbed_in_one_arm_make_no_difference(arm: int) -> None:
    rng, held = np.random.default_rng(4), 0
    for _ in range(COUNT):
        groups = drawn(rng, 8, 8, 8)
        groups[arm] -= SLOW * (rng.random(8) < 0.05)
        held += holds(typical_groups(groups))
    assert held / COUNT > 0.925 - BY_CHANCE


def test_one_disturbed_run_moves_the_estimate_by_less_than_the_noise() -> None:
    groups = drawn(np.random.default_rng(6), 8, 8)
    before = typical_groups(groups)
    for far in (0.5, 10.0):
        disturbed = [groups[0], groups[1].copy()]
        disturbed[1][3] -= far
        after = typical_groups(disturbed)
        assert np.abs(after.means - before.means).max() < NOISE
        assert after.halves[0] < 2 * before.halves[0]


@pytest.mark.parametrize(
    "off", [at_night(0.0), at_night(0.5), 1.0, at_night(1.5), at_night(2.0), at_night(3.0), 5.0]
)
@pytest.mark.parametrize("doubt", [at_night(0.3), 0.5])
def test_intervals_hold_beside_an_earlier_estimate_however_far_it_is_off(doubt: float, off: float) -> None:
    """In standard deviations of one run: 83 % at the worst, 95 % where it is as good as believed."""
    rng, held = np.random.default_rng(7), 0
    for _ in range(COUNT):
        baseline, treatment, earlier = drawn(rng, 4, 8, 10)
        estimate = EarlierEstimate((off if off else doubt * rng.standard_normal()) * NOISE, doubt * NOISE)
        held += holds(typical_groups([baseline, treatment], earlier, [estimate]))
    assert held / COUNT > (0.8 if off else 0.94) - BY_CHANCE


def test_an_earlier_estimate_that_agrees_narrows_the_interval_and_another_does_not() -> None:
    groups = drawn(np.random.default_rng(8), 4, 8)
    alone = typical_groups(groups)
    agreeing = typical_groups(groups, estimates=[EarlierEstimate(float(alone.means[0]), 0.5 * NOISE)])
    assert agreeing.halves[0] < 0.85 * alone.halves[0]
    assert agreeing.means == pytest.approx(alone.means)
    far = typical_groups(groups, estimates=[EarlierEstimate(20 * NOISE, 0.5 * NOISE)])
    assert far.halves[0] > 0.95 * alone.halves[0]
    assert far.means[0] == pytest.approx(alone.means[0], abs=0.2 * NOISE)
    assert far.fresh == agreeing.fresh == alone.means
    assert agreeing.apart[0] == 0
    assert far.apart[0] < -10


def test_an_estimate_that_is_surer_counts_for_more_and_none_for_nothing() -> None:
    groups = drawn(np.random.default_rng(9), 4, 8)
    estimate = [[EarlierEstimate(0.01, doubt * NOISE)] for doubt in (0.1, 0.5, 2.0, 1e6)]
    halves = [float(typical_groups(groups, estimates=of_doubt).halves[0]) for of_doubt in estimate]
    assert halves == sorted(halves)
    assert halves[-1] == pytest.approx(float(typical_groups(groups).halves[0]))


def test_earlier_runs_of_the_baseline_tell_the_noise_and_nothing_of_its_level() -> None:
    groups = drawn(np.random.default_rng(10), 4, 8)
    far = 5 + NOISE * np.linspace(-1.5, 1.5, 10)
    assert typical_groups(groups, far).means == pytest.approx(typical_groups(groups).means)
    loud = 5 + 10 * NOISE * np.linspace(-1.5, 1.5, 10)
    assert typical_groups(groups, loud).halves[0] > typical_groups(groups, far).halves[0]


def test_one_that_could_not_be_judged_counts_among_the_family() -> None:
    groups = drawn(np.random.default_rng(3), 8, 8)
    assert typical_groups(groups, among=3).halves[0] > typical_groups(groups).halves[0]


def test_values_on_a_coarse_grid_are_not_taken_for_certain() -> None:
    coarse = [np.zeros(8), np.zeros(8)]
    coarse[1][4] = 0.01
    plain = math.sqrt(np.var(coarse[1], ddof=1) / 2 * 2 / 8) * float(stats.t.isf(0.025, 14))
    assert plain < typical_groups(coarse).halves[0] < 1.3 * plain
    alike = [np.zeros(6), np.zeros(6)]
    assert typical_groups(alike).halves[0] == 0
    assert typical_groups(alike, hidden=[Rounding(1e-4, 1e-3)] * 2).halves[0] > 2e-3


@pytest.mark.parametrize("counts", [(3,), (3, 0), (1, 1)])
def test_what_tells_no_noise_is_refused(counts: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="the least"):
        typical_groups(drawn(np.random.default_rng(1), *counts))
