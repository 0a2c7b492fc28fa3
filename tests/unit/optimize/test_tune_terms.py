"""The model of few terms says which knobs act, and how, as the runs and its prior have it."""

import math
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import pytest
from tests.support.tuning import GOAL, model_after

from ktrial.model.tuning import Configuration, Dimension, Guard, Range, Space
from ktrial.optimize.encoding import Encoding
from ktrial.optimize.finalists import smallest_answers
from ktrial.optimize.gaussian_process import InputScaling
from ktrial.optimize.response_model import Surrogate
from ktrial.optimize.term_model import CentredRuns, Chains, Shapes, TermModel, acting, term_model

NOISE = 0.03
Truth = Callable[[Mapping[str, str]], float]


def choice(name: str) -> Dimension:
    return Dimension(name=name, choices=("0", "1"), default="0")


def span(name: str, default: str = "20") -> Dimension:
    return Dimension(name=name, range=Range(low=0, high=100), default=default)


SPACE = Space(dimensions=(span("queue"), choice("one"), choice("idle"), choice("two"), span("other", "60")))


def bump(configuration: Mapping[str, str]) -> float:
    return 0.2 * math.exp(-0.5 * ((float(configuration.get("queue", "20")) - 70) / 15) ** 2)


def together(configuration: Mapping[str, str]) -> float:
    return 0.2 * (configuration.get("one") == "1" and configuration.get("two") == "1")


def nothing(_configuration: Mapping[str, str]) -> float:
    return 0.0


def memory(configuration: Mapping[str, str]) -> float:
    return 1 + float(configuration.get("queue", "20")) / 100


@cache
def learnt(truth: Truth, *, guarded: bool = False) -> Surrogate:
    """After 50 runs at random, and ten of the baseline. Guarded: memory is at most 1.5."""
    guards = (Guard(metric="memory", relation="<=", bound=1.5),) if guarded else ()
    encoding, rng = Encoding(SPACE), np.random.default_rng(3)
    tried: list[Configuration] = [{}] * 10 + [encoding.draw(rng, at_default=0.3) for _ in range(50)]
    goal = GOAL.model_copy(update={"guards": guards})
    return model_after(
        encoding, tried, truth, noise=NOISE, rng=rng, goal=goal, beside=lambda each: {"memory": memory(each)}
    )


@cache
def terms_of(truth: Truth, *, guarded: bool = False) -> TermModel:
    return term_model(learnt(truth, guarded=guarded).responses[0], NOISE, 1)


def told(space: Space) -> np.ndarray:
    """How often each set of two knobs acts, where runs say nothing: neither, the first, the second, both."""
    shapes = Shapes(InputScaling(Encoding(space)))
    runs = CentredRuns(np.tile(shapes.origin, (3, 1)), np.zeros(3), np.full(3, 1e-9))
    factors, _ = Chains(shapes, runs, np.random.default_rng(1)).run()
    there = acting(factors, 2)
    return np.bincount(there @ [1, 2], minlength=4) / len(there)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("space", "one"),
    [
        pytest.param(Space(dimensions=(choice("a"), choice("b"))), 0.5, marks=pytest.mark.nightly),
        pytest.param(Space(dimensions=(choice("a"), span("b"))), 0.5, marks=pytest.mark.nightly),
        (Space(dimensions=(span("a"), span("b"))), 0.5 * (1 - 0.12 / 2)),
    ],
    ids=["choices", "a choice and a range", "ranges, which may be a ridge's"],
)
def test_without_runs_sums_are_as_likely_as_the_prior_makes_them(space: Space, one: float) -> None:
    """`one`: how often a factor is of the first knob alone. Terms are on by 0.5 to 1 in each of eight slots,
    have one, two or three factors by 0.55, 0.35, 0.1, and each knob makes a sum less likely by 0.4."""
    alone = (1 + 0.5 * (0.55 * one + 0.35 * one**2 + 0.1 * one**3)) ** 8
    weights = np.array([1.0, 0.4 * (alone - 1), 0.4 * (alone - 1), 0.4**2 * (1.5**8 - 2 * alone + 1)])
    assert told(space) == pytest.approx(weights / weights.sum(), abs=0.075)


@pytest.mark.parametrize(
    ("truth", "act"),
    [
        (bump, {"queue"}),
        pytest.param(together, {"one", "two"}, marks=pytest.mark.nightly),
        pytest.param(nothing, set(), marks=pytest.mark.nightly),
    ],
)
def test_what_acts_is_told_from_what_does_not(truth: Truth, act: set[str]) -> None:
    chances = dict(zip(SPACE.names, terms_of(truth).acting, strict=True))
    assert all(chance > 0.9 if name in act else chance < 0.35 for name, chance in chances.items())


def test_the_gain_is_expected_near_where_it_is_and_the_truth_within_what_is_drawn() -> None:
    terms = terms_of(bump)
    tried = [{"queue": str(at)} for at in range(0, 101, 10)]
    rows = InputScaling(Encoding(SPACE)).coordinates(tried)
    truth = [bump(each) - bump({}) for each in tried]
    assert terms.expected(rows) == pytest.approx(truth, abs=0.03)
    drawn = terms.drawn(rows)
    assert drawn.mean(axis=0) == pytest.approx(terms.expected(rows))
    low, high = np.quantile(drawn, [0.005, 0.995], axis=0)
    inside = (low - 1e-9 <= truth) & (truth <= high + 1e-9)
    assert inside.mean() > 0.8


@pytest.mark.nightly
def test_the_same_runs_give_the_same_model() -> None:
    rows = InputScaling(Encoding(SPACE)).coordinates([{"one": "1"}, {"one": "1", "two": "1"}])
    again = term_model(learnt(together).responses[0], NOISE, 1)
    assert again.expected(rows).tolist() == terms_of(together).expected(rows).tolist()


@pytest.mark.parametrize(
    ("truth", "act"), [(bump, {"queue"}), pytest.param(together, {"one", "two"}, marks=pytest.mark.nightly)]
)
def test_an_answer_has_what_acts_and_nothing_else(truth: Truth, act: set[str]) -> None:
    model = learnt(truth)
    bold, cautious = smallest_answers(model, terms_of(truth), model.best())
    assert set(bold) == act
    assert set(cautious) >= act
    assert truth(bold) > 0.17


@pytest.mark.nightly
def test_where_nothing_acts_an_answer_is_empty_or_promises_little() -> None:
    model, terms = learnt(nothing), terms_of(nothing)
    bold, _ = smallest_answers(model, terms, model.best())
    rows = InputScaling(Encoding(SPACE)).coordinates([bold])
    assert terms.expected(rows)[0] < 0.02


@pytest.mark.nightly
def test_an_answer_is_expected_to_keep_its_guards() -> None:
    """Memory grows with the range: at its best, 70, it would be 1.7."""
    model = learnt(bump, guarded=True)
    bold, _ = smallest_answers(model, terms_of(bump, guarded=True), model.best())
    assert 35 <= float(bold["queue"]) <= 50
