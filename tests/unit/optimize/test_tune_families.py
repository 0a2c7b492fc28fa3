"""Searches on random functions of tests/support/tuning_families.py.

The seeds of the functions with a pair of knobs were picked because the search before the covering design
failed on them, the seed 3009 because one without the check of guards broke its guard there: they hold what
was mended, and say nothing of how often a search succeeds. The average is over seeds in a row that were not
picked; its bound lies below what is reached, and above the 0.67 before shares of the budget were mended.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import combinations
from statistics import fmean

import numpy as np
import pytest
from tests.support.runs_of_tests import at_night
from tests.support.tuning_families import Maker, Problem, Truth, drawn, problem

from ktrial.model.tuning import Budget, Dimension, Observation, Order, Purpose, Range, Space, Tuned
from ktrial.optimize import tune
from ktrial.optimize.encoding import Encoding
from ktrial.optimize.evaluation_log import Ask
from ktrial.optimize.exploration import Covering

RUNS, BY_DAY = 65, 34


@cache
def searched(family: str, seed: int, runs: int) -> tuple[Problem, Tuned]:
    made = problem(family, seed)
    return made, tune(made.space, made.goal, Budget(runs=runs), made, seed)


@pytest.mark.parametrize(
    ("seed", "runs"), [(1, BY_DAY), at_night(1, RUNS), at_night(5, RUNS), at_night(8, RUNS)]
)
def test_two_knobs_that_act_only_together_are_found(seed: int, runs: int) -> None:
    made, tuned = searched("together", seed, runs)
    assert tuned.confirmed
    assert made.optimum - made.log_gain(tuned.confirmed) < 0.25 * made.optimum


def test_what_a_knob_does_in_an_answer_has_an_interval_only_from_fresh_runs() -> None:
    _, tuned = searched("together", 1, BY_DAY)
    assert len(tuned.kept) > 1
    assert {(effect.low, effect.high) for effect in tuned.kept} == {(None, None)}


@dataclass
class Conditional(Problem):
    """A knob that the kernel takes only beside one value of another: `queue/iosched/*` beside a scheduler."""

    gate: tuple[str, str, str] = ("", "", "")
    """The knob, the other one, and its value."""

    def measure(self, batch: Sequence[Ask]) -> Iterator[Observation]:
        name, other, wanted = self.gate
        for ask in batch:
            if name in ask.configuration and ask.configuration.get(other) != wanted:
                yield Observation(**ask.model_dump(), failure="refused", refused=name, seconds=1.0)
            else:
                yield from super().measure([ask])


def conditional(seed: int) -> Conditional:
    gate = ("", "", "")

    def acts_of(made: Maker) -> Truth:
        nonlocal gate
        other, name = made.choice(3), made.span()
        made.acting += (other, name)
        wanted, right = made.other(other), made.set_right(name)
        first, more, rest = made.uniform(0.0, 0.04), made.uniform(0.08, 0.15), made.minor(2)
        gate = (name, other, wanted)
        return lambda at: rest(at) + (at.value(other) == wanted) * (first + more * right(at))

    plain = drawn("conditional", seed, np.random.default_rng([seed, 3, 1, 31]), acts_of)
    return Conditional(**{each.name: getattr(plain, each.name) for each in fields(plain)}, gate=gate)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("seed", "runs"), [(41100, 26), at_night(41100, RUNS), at_night(41101, RUNS), at_night(41095, RUNS)]
)
def test_a_knob_that_is_taken_only_beside_another_one_is_not_given_up_too_soon(seed: int, runs: int) -> None:
    """Picked: it was refused twice beside other values first, and never tried again."""
    made = conditional(seed)
    tuned = tune(made.space, made.goal, Budget(runs=runs), made, seed)
    assert tuned.confirmed
    name, other, wanted = made.gate
    assert name in tuned.confirmed
    assert tuned.confirmed[other] == wanted


@pytest.mark.nightly
@pytest.mark.parametrize("runs", [26, at_night(RUNS)])
def test_knobs_that_do_nothing_end_with_no_gain(runs: int) -> None:
    _, tuned = searched("idle", 1, runs)
    assert tuned.confirmed is None


@pytest.mark.nightly
@pytest.mark.parametrize(("runs", "confirms"), [(BY_DAY, False), at_night(RUNS, True)])
def test_what_is_taken_back_breaks_no_guard(runs: int, confirms: bool) -> None:
    """The short search has a better candidate too, but not the runs to show that it is better."""
    made, tuned = searched("limited", 3009, runs)
    assert made.keeps(tuned.candidate)
    assert made.log_gain(tuned.candidate) > 0.5 * made.optimum
    assert bool(tuned.confirmed) == confirms


@pytest.mark.nightly
@pytest.mark.parametrize(("seeds", "runs"), [(1, BY_DAY), at_night(6, RUNS)])
def test_of_many_small_effects_the_average_answer_has_most_of_the_gain(seeds: int, runs: int) -> None:
    answers = [searched("many", seed, runs) for seed in range(3000, 3000 + seeds)]
    assert fmean(made.log_gain(tuned.confirmed or {}) / made.optimum for made, tuned in answers) > 0.55


def test_each_pair_of_values_is_tried_together() -> None:
    choices = tuple(
        Dimension(name=f"c{at}", choices=("a", "b", "c", "d")[: 2 + at % 3], default="a") for at in range(8)
    )
    space = Space(dimensions=choices)
    covering = Covering(Encoding(space), np.random.default_rng(1))
    rows = [covering.next({}) for _ in range(30)]
    for one, other in combinations(choices, 2):
        tried = {(space.value(row, one.name), space.value(row, other.name)) for row in rows}
        assert tried == {(first, second) for first in one.choices for second in other.choices}


def test_a_covering_keeps_orders_and_reaches_every_third_of_a_range() -> None:
    low, high = (
        Dimension(name=name, range=Range(low=0, high=90), default=default)
        for name, default in (("low", "10"), ("high", "40"))
    )
    space = Space(dimensions=(low, high), constraints=(Order(left="low", relation="<", right="high"),))
    covering = Covering(Encoding(space), np.random.default_rng(1))
    rows = [covering.next({}) for _ in range(20)]
    values = [(float(space.value(row, "low")), float(space.value(row, "high"))) for row in rows]
    assert all(one < other for one, other in values)
    thirds = {(min(int(one // 30), 2), min(int(other // 30), 2)) for one, other in values}
    assert {(0, 1), (0, 2), (1, 2)} <= thirds


@pytest.mark.nightly
@pytest.mark.parametrize("runs", [40, RUNS])
def test_an_interrupted_search_asks_the_same_again(runs: int) -> None:
    made = problem("limited", 1)
    whole = tune(made.space, made.goal, Budget(runs=runs), made, 1)
    rest = problem("limited", 1)
    half = whole.observations[: runs // 2]
    again = tune(rest.space, rest.goal, Budget(runs=runs), rest, 1, done=half)
    assert again == whole
    assert [ask.order for ask in rest.asked] == list(range(runs // 2, len(whole.observations)))
    assert Purpose.CONTEND in {each.purpose for each in whole.observations}
