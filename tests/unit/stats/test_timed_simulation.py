"""Must hold: simulated studies in many noise models, and what other rules make of the same numbers."""

import math

import numpy as np
import pytest
from tests.support.noise_models import MODELS
from tests.support.rival_rules import SLOTS, ktrial, log_ratios, phoronix, plain_t, ten_runs_and_welch
from tests.support.runs_of_tests import at_night, by_night

from ktrial.stats.sequential.boundaries import LOOKS
from ktrial.stats.sequential.design import SequentialDesign
from ktrial.stats.sequential.repeated_intervals import first_claims
from ktrial.stats.verdict_rules import Claim

STUDIES = by_night(2000, 800)
MOST_FALSE = by_night(0.055, 0.0625)
LEAST_POWER = 0.95
ONE_PERCENT_MORE = math.log(1.01)
DESIGN = SequentialDesign(margin=0.01)
DIFFERENCES_ONLY = SequentialDesign(margin=1e-9)
"""Never equivalent: every study runs to its last look, unless it finds a difference."""
OPEN_ENDED = SequentialDesign(margin=0.01, open_ended=True)


SEEDS = [1, at_night(2), at_night(3)]
HARD = ["ratios alike, φ 0.2", "ratios alike, φ 0.4", "ratios alike, φ 0.6", "frequent spikes in one arm"]
"""Of which a plain t test says that they differ, though they do not."""


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("design", [DESIGN, OPEN_ENDED], ids=["sequential", "open-ended"])
def test_two_kernels_that_are_the_same_are_rarely_told_apart(
    name: str, seed: int, design: SequentialDesign
) -> None:
    studies = STUDIES // 4 if design.open_ended else STUDIES
    rng = np.random.default_rng(seed)
    noise = MODELS[name](rng, studies, SLOTS)
    assert ktrial(noise, 0.0, rng, design).found_a_difference <= MOST_FALSE


@pytest.mark.nightly  # some 10 seconds of CPU time
@pytest.mark.parametrize("name", MODELS)
def test_so_it_is_where_no_study_may_stop_as_equivalent(name: str) -> None:
    """The error of the difference alone."""
    rng = np.random.default_rng(4)
    noise = MODELS[name](rng, 2 * STUDIES, SLOTS)
    assert ktrial(noise, 0.0, rng, DIFFERENCES_ONLY).found_a_difference <= MOST_FALSE


@pytest.mark.parametrize("name", HARD)
def test_the_same_looks_with_a_plain_t_test_find_what_is_not_there(name: str) -> None:
    """Why the interval is widened for neighbours that are alike, and holds that of the typical block."""
    rng = np.random.default_rng(4)
    noise = MODELS[name](rng, STUDIES, SLOTS)
    assert plain_t(noise, 0.0, rng, DESIGN).found_a_difference > 1.5 * MOST_FALSE


@pytest.mark.parametrize("name", [*HARD, "independent", "coarse clock"])
@pytest.mark.parametrize("blocks", [6, 10, 20, 40])
def test_so_it_is_with_one_look_after_few_blocks(name: str, blocks: int) -> None:
    rng = np.random.default_rng(11)
    noise = MODELS[name](rng, 2 * STUDIES, 2 * blocks)
    design = SequentialDesign(margin=1e-9, looks=(blocks,))
    assert ktrial(noise, 0.0, rng, design).found_a_difference <= MOST_FALSE


@pytest.mark.parametrize("name", MODELS)
def test_two_kernels_that_differ_by_the_margin_are_rarely_called_equivalent(name: str) -> None:
    rng = np.random.default_rng(12)
    noise = MODELS[name](rng, STUDIES, SLOTS)
    equivalent = ktrial(noise, ONE_PERCENT_MORE, rng, DESIGN).equivalent
    assert equivalent is not None
    assert float(equivalent.mean()) <= MOST_FALSE


@pytest.mark.nightly  # some 7 seconds of CPU time
@pytest.mark.parametrize("name", HARD)
def test_no_treatment_of_five_that_are_the_same_is_often_told_apart(name: str) -> None:
    """With one baseline for all; the first claim of Holm's procedure is one at a fifth of alpha."""
    rng = np.random.default_rng(13)
    fifth = SequentialDesign(margin=1e-9, alpha=0.05 / 5)
    noises = [MODELS[name](rng, STUDIES, SLOTS) for _ in range(5)]
    baseline = 0.007 * rng.standard_normal((STUDIES, SLOTS // 2))
    claimed = [first_claims(log_ratios(noise, 0.0, rng) - baseline, fifth)[0] for noise in noises]
    assert float(np.any(np.isin(claimed, (Claim.ABOVE, Claim.BELOW)), axis=0).mean()) <= MOST_FALSE


@pytest.mark.nightly
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("looks", [LOOKS, (6,), (10,), (20,), (40,), (60,)], ids=str)
def test_the_level_holds_in_ten_thousand_studies_of_each_kind(name: str, looks: tuple[int, ...]) -> None:
    """Standard error 0.22 % at 5 %."""
    rng = np.random.default_rng(14)
    noise = MODELS[name](rng, 10_000, 2 * looks[-1])
    design = SequentialDesign(margin=1e-9, looks=looks)
    assert ktrial(noise, 0.0, rng, design).found_a_difference <= MOST_FALSE


@pytest.mark.parametrize(("independent", "least"), [(True, 0.025), (False, 0.005)])
def test_with_normal_noise_so_much_of_the_error_is_spent(independent: bool, least: float) -> None:
    """What is not spent is the price of the level elsewhere: docs/statistics.md tells it in blocks."""
    rng = np.random.default_rng(5)
    noise = MODELS["independent"](rng, 5 * STUDIES, SLOTS)
    design = SequentialDesign(margin=1e-9, independent=independent)
    assert least < ktrial(noise, 0.0, rng, design).found_a_difference <= 0.05


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("sign", [1, -1])
def test_an_effect_of_one_percent_is_found_where_a_trial_scatters_by_one_percent(
    seed: int, sign: int
) -> None:
    rng = np.random.default_rng(seed)
    noise = MODELS["independent"](rng, STUDIES, SLOTS)
    claims = ktrial(noise, sign * ONE_PERCENT_MORE, rng, DESIGN)
    assert float((claims.signs == sign).mean()) >= LEAST_POWER
    assert claims.runs.max() <= SLOTS


@pytest.mark.parametrize("name", MODELS)
def test_a_difference_is_never_claimed_the_wrong_way_round(name: str) -> None:
    rng = np.random.default_rng(6)
    noise = MODELS[name](rng, STUDIES, SLOTS)
    assert float((ktrial(noise, ONE_PERCENT_MORE, rng, DESIGN).signs < 0).mean()) <= 0.005


def test_the_larger_number_always_wins() -> None:
    rng = np.random.default_rng(7)
    for name in ("independent", "drifting", "bimodal", "boot-level variance", "heavy", "linear trend"):
        model = MODELS[name]
        assert phoronix(model(rng, STUDIES, SLOTS), 0.0).found_a_difference > 0.95


@pytest.mark.parametrize("name", ["drifting", "boot-level variance", "linear trend"])
def test_ten_runs_after_ten_runs_find_what_is_not_there(name: str) -> None:
    rng = np.random.default_rng(8)
    assert ten_runs_and_welch(MODELS[name](rng, 2000, SLOTS), 0.0).found_a_difference > 0.3


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
