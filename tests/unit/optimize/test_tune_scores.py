"""Scores of runs, and the noise that the baseline shows."""

import math

import numpy as np
import pytest

from ktrial.model.tuning import Goal, Guard, Objective, Observation, Purpose
from ktrial.model.workload import Direction
from ktrial.optimize.evaluation_log import ObjectiveFunction, exceeded, robust_spread

GOAL = Goal(
    objectives=(Objective(metric="time", direction=Direction.LOWER),),
    guards=(Guard(metric="p99", relation="<=", bound=20.0), Guard(metric="errors", relation="==", bound=0.0)),
)


def seen(failure: str = "", **values: float) -> Observation:
    return Observation(configuration={}, values=values, failure=failure, order=0, purpose=Purpose.EXPLORE)


def test_less_time_is_a_higher_score() -> None:
    scores = ObjectiveFunction(GOAL)
    assert scores.of(seen(time=2.0, p99=1, errors=0)) == (-math.log(2.0),)
    assert scores.excess(seen(time=2.0, p99=30, errors=0)) == pytest.approx(0.5)
    assert scores.excess(seen(time=2.0, p99=10, errors=3)) == 3
    assert scores.excess(seen(time=2.0, p99=20, errors=0)) == 0
    assert exceeded(Guard(metric="p99", relation="<", bound=20.0), 20.0) > 0


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (seen("killed"), "killed"),
        (seen(p99=1, errors=0), "it gave no time"),
        (seen(time=0.0, p99=1, errors=0), "not above zero"),
        (seen(time=math.nan, p99=1, errors=0), "its time is nan, which is no finite number"),
        (seen(time=1.0, p99=1), "it gave no errors"),
    ],
)
def test_a_run_without_its_numbers_has_failed(run: Observation, why: str) -> None:
    assert why in ObjectiveFunction(GOAL).failure(run)
    assert ObjectiveFunction(GOAL).of(run) == ()


@pytest.mark.parametrize("count", [4, 5, 6, 8, 12, 20])
def test_the_spread_of_few_values_is_right_on_average(count: int) -> None:
    drawn = np.random.default_rng(1).standard_normal((3000, count))
    assert np.mean([robust_spread(values) for values in drawn]) == pytest.approx(1.0, abs=0.04)


def test_one_outlier_among_ten_does_little_to_the_spread() -> None:
    drawn = np.random.default_rng(1).standard_normal((1000, 10))
    drawn[:, 0] += 20
    assert np.mean([robust_spread(values) for values in drawn]) < 1.5
