"""What a search must hold, over twenty seeds and more: some minutes of simulated searches."""

import statistics

import pytest
from bench.subjects.tune import Found, alone, ours
from tests.support.tuning_function import best

pytestmark = pytest.mark.slow

SEEDS = range(1, 21)


def regret(found: list[Found]) -> float:
    optimum = best()[1]
    return statistics.median(optimum - each.true for each in found)


@pytest.mark.parametrize("noise", [0.02, 0.05])
def test_the_interval_holds_the_truth_and_regret_is_at_most_that_of_tpe_alone(noise: float) -> None:
    mine = [ours(seed, noise) for seed in SEEDS]
    told = [each.covers for each in mine if each.covers is not None]
    assert len(told) >= 0.9 * len(mine)
    assert sum(told) >= 0.93 * len(told)
    assert regret(mine) <= regret([alone("tpe", seed, noise) for seed in SEEDS])


def test_knobs_that_do_nothing_end_with_no_gain() -> None:
    found = [ours(seed, 0.05, idle=True) for seed in range(1, 41)]
    assert sum(not each.gain for each in found) >= 0.95 * len(found)
