"""Two objectives: where they are in conflict, the front is confirmed and shown; nothing is called worse."""

import math
from collections.abc import Iterator, Sequence

import pytest
from tests.support.tuning import Formula

from ktrial.model.comparison import Verdict
from ktrial.model.tuning import Budget, Dimension, Goal, Objective, Observation, Purpose, Range, Space, Tuned
from ktrial.model.workload import Direction, Mode
from ktrial.optimize import tune
from ktrial.optimize.evaluation_log import Ask
from ktrial.report import tuning as tables
from ktrial.report.markdown import grid

SPACE = Space(
    dimensions=(
        Dimension(name="batch", range=Range(low=1, high=64), default="1"),
        Dimension(name="idle", choices=("0", "1"), default="0"),
    )
)
GOAL = Goal(
    objectives=(
        Objective(metric="rps", direction=Direction.HIGHER),
        Objective(metric="p99", direction=Direction.LOWER, unit="ms"),
    ),
    workload="server",
)


class Trading(Formula):
    """What a larger batch gains in rate it costs in latency; `both`: it costs nothing."""

    both = False

    def measure(self, batch: Sequence[Ask]) -> Iterator[Observation]:
        for ask in batch:
            self.asked.append(ask)
            size = float(ask.configuration.get("batch", "1"))
            shaken = self.value(ask) / 1000
            cost = 0.0 if self.both else size
            values = {
                "rps": 100 * math.exp(0.004 * size) * shaken,
                "p99": 5 * math.exp(0.005 * cost) * shaken,
            }
            yield Observation(**ask.model_dump(), values=values, seconds=1.0)


def searched(measuring: Trading, runs: int = 65) -> Tuned:
    return tune(SPACE, GOAL, Budget(runs=runs), measuring, 3)


def flat(_configuration: object) -> float:
    return 0.0


@pytest.fixture(scope="module", params=["timed", "exact"])
def traded(request: pytest.FixtureRequest) -> Tuned:
    if request.param == "timed":
        return searched(Trading(0.003, 3, truth=flat, outliers=0.0))
    exact = Trading(
        0.0, 3, truth=flat, outliers=0.0, noise_free=True, perturbations=2, mode=Mode.EXACT_PLUGIN
    )
    return searched(exact)


def test_objectives_in_conflict_are_told_as_a_choice_with_confirmed_figures(traded: Tuned) -> None:
    assert traded.confirmed is None
    assert "confirmed on fresh runs none is better in both" in traded.answer
    assert "rps +" in traded.answer
    assert "p99 +" in traded.answer
    assert "worse" not in traded.answer


def test_points_of_the_front_are_confirmed_in_shared_blocks_in_both_objectives(traded: Tuned) -> None:
    confirmed = [point for point in traded.front if point.comparisons]
    assert len(confirmed) >= 2
    for point in confirmed:
        assert [one.verdict for one in point.comparisons] == [Verdict.BETTER, Verdict.WORSE]
        size = float(point.configuration["batch"])
        assert point.comparisons[0].ratio == pytest.approx(math.exp(0.004 * (size - 1)), abs=0.02)
        assert point.comparisons[1].ratio == pytest.approx(math.exp(0.005 * (size - 1)), abs=0.02)
    fresh = [one for one in traded.observations if one.purpose is Purpose.CONFIRM]
    blocks = {one.block for one in fresh}
    for block in blocks:
        inside = [one.configuration for one in fresh if one.block == block]
        assert len(inside) == 1 + len(confirmed)
        assert {} in inside
    assert len(traded.observations) <= 65


def test_the_table_of_the_front_has_intervals_and_verdicts_and_says_what_was_not_confirmed(
    traded: Tuned,
) -> None:
    text = grid(tables.front(traded))
    assert "✓ better" in text
    assert "✗ worse" in text
    unconfirmed = [point for point in traded.front if point.configuration and not point.comparisons]
    assert ("not confirmed" in text) is bool(unconfirmed)


def test_what_is_better_in_one_and_worse_in_none_is_still_the_answer() -> None:
    measuring = Trading(0.003, 3, truth=flat, outliers=0.0)
    measuring.both = True
    tuned = searched(measuring)
    assert tuned.confirmed is not None
    assert [one.metric for one in tuned.comparisons] == ["rps", "p99"]
    assert tuned.comparisons[0].verdict is Verdict.BETTER
    assert "confirmed on fresh runs" in tuned.answer


class Balanced(Trading):
    """One knob helps both, the other one trades: the front's ends are no answer, what lies between is one."""

    def measure(self, batch: Sequence[Ask]) -> Iterator[Observation]:
        for ask in batch:
            self.asked.append(ask)
            size = math.log2(float(ask.configuration.get("batch", "8")) / 8)
            helped = ask.configuration.get("idle") == "1"
            shaken = self.value(ask) / 1000
            values = {
                "rps": 100 * (1 + 0.05 * size) * (1.1 if helped else 1) * shaken,
                "p99": 5 * (1 + 0.06 * size) * shaken,
            }
            yield Observation(**ask.model_dump(), values=values, seconds=1.0)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_what_gains_in_both_is_confirmed_though_the_ends_of_the_front_trade(seed: int) -> None:
    batch = Dimension(name="batch", range=Range(low=1, high=64, log=True), default="8")
    space = Space(dimensions=(batch, SPACE.dimensions[1]))
    measuring = Balanced(0.003, seed, truth=flat, outliers=0.0)
    tuned = tune(space, GOAL, Budget(runs=65), measuring, seed)
    assert tuned.confirmed is not None, tuned.answer
    assert tuned.confirmed["idle"] == "1"
    assert tuned.comparisons[0].verdict is Verdict.BETTER
    assert tuned.comparisons[1].verdict is not Verdict.WORSE
    assert "none is better in both" not in tuned.answer


def test_an_interrupted_search_for_a_front_asks_the_same_again() -> None:
    whole = searched(Trading(0.003, 3, truth=flat, outliers=0.0))
    again = Trading(0.003, 3, truth=flat, outliers=0.0)
    done = whole.observations[:-4]
    gone_on = tune(SPACE, GOAL, Budget(runs=65), again, 3, done)
    assert len(again.asked) == 4
    assert (gone_on.answer, gone_on.front) == (whole.answer, whole.front)
