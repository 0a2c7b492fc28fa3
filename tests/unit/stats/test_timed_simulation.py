"""Must hold: simulated studies in six noise models, and what other rules make of the same numbers."""

import math

import numpy as np
import pytest
from tests.support.noise_models import MODELS
from tests.support.rival_rules import SLOTS, ktrial, phoronix, ten_runs_and_welch

from ktrial.stats.sequential import SequentialDesign

STUDIES = 2000
MOST_FALSE = 0.055
LEAST_POWER = 0.95
ONE_PERCENT_MORE = math.log(1.01)
DESIGN = SequentialDesign(margin=0.01)
DIFFERENCES_ONLY = SequentialDesign(margin=1e-9)
"""Never equivalent: every study runs to its last look, unless it finds a difference."""
OPEN_ENDED = SequentialDesign(margin=0.01, open_ended=True)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("design", [DESIGN, OPEN_ENDED], ids=["sequential", "open-ended"])
def test_two_kernels_that_are_the_same_are_rarely_told_apart(
    name: str, seed: int, design: SequentialDesign
) -> None:
    rng = np.random.default_rng(seed)
    noise = MODELS[name](rng, STUDIES, SLOTS)
    assert ktrial(noise, 0.0, rng, design).found_a_difference <= MOST_FALSE


@pytest.mark.parametrize("name", MODELS)
def test_so_it_is_where_no_study_may_stop_as_equivalent(name: str) -> None:
    """The error of the difference alone. Its whole 5 % is spent, so that many studies are simulated."""
    rng = np.random.default_rng(4)
    noise = MODELS[name](rng, 10 * STUDIES, SLOTS)
    assert ktrial(noise, 0.0, rng, DIFFERENCES_ONLY).found_a_difference <= MOST_FALSE


def test_with_normal_noise_the_error_is_spent_to_the_last_bit() -> None:
    """Far below 5 %, the boundaries would be too wide, and power would be lost."""
    rng = np.random.default_rng(5)
    noise = MODELS["independent"](rng, 40 * STUDIES, SLOTS)
    assert ktrial(noise, 0.0, rng, DIFFERENCES_ONLY).found_a_difference == pytest.approx(0.05, abs=0.0025)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("sign", [1, -1])
def test_an_effect_of_one_percent_is_found_where_a_trial_scatters_by_one_percent(
    seed: int, sign: int
) -> None:
    rng = np.random.default_rng(seed)
    noise = MODELS["independent"](rng, STUDIES, SLOTS)
    found = ktrial(noise, sign * ONE_PERCENT_MORE, rng, DESIGN)
    assert float((found.signs == sign).mean()) >= LEAST_POWER
    assert found.runs.max() <= SLOTS


@pytest.mark.parametrize("name", MODELS)
def test_a_difference_is_never_claimed_the_wrong_way_round(name: str) -> None:
    rng = np.random.default_rng(6)
    noise = MODELS[name](rng, STUDIES, SLOTS)
    assert float((ktrial(noise, ONE_PERCENT_MORE, rng, DESIGN).signs < 0).mean()) <= 0.005


def test_the_larger_number_always_wins() -> None:
    rng = np.random.default_rng(7)
    for model in MODELS.values():
        assert phoronix(model(rng, STUDIES, SLOTS), 0.0).found_a_difference > 0.95


@pytest.mark.parametrize("name", ["drifting", "boot-level variance", "linear trend"])
def test_ten_runs_after_ten_runs_find_what_is_not_there(name: str) -> None:
    rng = np.random.default_rng(8)
    assert ten_runs_and_welch(MODELS[name](rng, STUDIES, SLOTS), 0.0).found_a_difference > 0.3


def test_ten_runs_and_welch_are_right_where_noise_is_independent() -> None:
    """So that what is said about them above is about drift and boots, not about a mistake here."""
    rng = np.random.default_rng(9)
    noise = MODELS["independent"](rng, 10 * STUDIES, SLOTS)
    assert ten_runs_and_welch(noise, 0.0).found_a_difference == pytest.approx(0.05, abs=0.006)


def test_phoronix_adds_runs_only_where_they_scatter_by_more_than_its_threshold() -> None:
    rng = np.random.default_rng(10)
    calm = MODELS["independent"](rng, STUDIES, SLOTS)
    wild = type(calm)(20 * calm.runs, calm.boots)
    assert phoronix(calm, 0.0).runs.max() == 6
    assert phoronix(wild, 0.0).runs.mean() > 11
    assert phoronix(wild, 0.0).runs.max() <= 18
