"""The oracle's frontier of tests/support/tuning_families.py, and families not seen before. 1 s."""

import pytest
from tests.support.tuning_families import UNSEEN, at_idle, decided, known, unseen


def test_with_runs_without_end_nothing_is_missed() -> None:
    best = decided(known(1_000_000), 0.01)
    assert best.idle < 0.01
    assert best.regret < 1e-4


@pytest.mark.nightly
def test_fewer_idle_knobs_cost_more_and_more_runs_less() -> None:
    some, more = known(37), known(61)
    wanted = (1.5, 1.0, 0.5, 0.25)
    regrets = [at_idle(some, most).regret for most in wanted]
    assert regrets == sorted(regrets)
    assert all(at_idle(some, most).idle <= most for most in wanted)
    assert at_idle(more, 0.5).regret < at_idle(some, 0.5).regret


def test_what_is_expected_of_a_knob_is_what_it_does_in_the_mean() -> None:
    told = known(37)
    high = told.expected > 0.03
    assert told.effects[high].mean() == pytest.approx(told.expected[high].mean(), abs=5e-4)
    assert (told.effects[high] == 0).mean() == pytest.approx(told.idle[high].mean(), abs=5e-3)


@pytest.mark.parametrize(
    "family", [UNSEEN[0], *(pytest.param(family, marks=pytest.mark.nightly) for family in UNSEEN[1:])]
)
def test_functions_of_unseen_families_have_a_gain_and_idle_knobs(family: str) -> None:
    for seed in range(3):
        made = unseen(family, seed)
        assert made.optimum > 0.02
        assert made.log_gain({}) == 0
        assert 8 <= len(made.space.dimensions) <= 12 > len(made.acting)
