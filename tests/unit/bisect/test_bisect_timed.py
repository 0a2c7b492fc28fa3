"""Searches by noisy numbers: simulated machines with known causes; wrong answers as rare as promised."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from tests.support.planted_causes import FORK, MARGIN

from ktrial.bisect.decision import (
    Answer,
    BisectionMetric,
    Decisions,
    LimitReached,
    SequentialJudge,
    most_for_two,
)
from ktrial.bisect.search import DeltaDebugging, Items, Subset

Array = NDArray[np.float64]
ALPHA = 0.1


@dataclass
class Noisy:
    """Blocks of log-normal trials; a block's own level is shared by its trials."""

    effects: Mapping[Subset, float]
    sd: float
    generator: np.random.Generator
    drawn: dict[tuple[Subset, ...], Array] = field(default_factory=dict)

    def blocks(self, candidates: tuple[Subset, ...], count: int) -> Mapping[BisectionMetric, Array] | None:
        blocks = self.drawn.get(candidates, np.zeros((len(candidates), 0)))
        new = max(0, count - blocks.shape[1])
        means = [
            sum(effect for part, effect in self.effects.items() if part <= candidate)
            for candidate in candidates
        ]
        levels = self.generator.normal(0, 0.05, new)
        noise = self.generator.normal(0, self.sd, (len(candidates), new))
        logs = math.log(1000) + np.array(means)[:, None] + levels + noise
        self.drawn[candidates] = np.hstack([blocks, np.exp(logs)])
        return {FORK: self.drawn[candidates]}


def _search(
    effects: Mapping[Subset, float], count: int, sd: float, seed: int
) -> tuple[DeltaDebugging, SequentialJudge[Subset]]:
    source = Noisy(effects, sd, np.random.default_rng(seed))
    judge: SequentialJudge[Subset] = SequentialJudge(
        FORK, source, MARGIN, Decisions(most_for_two(count) + 2, ALPHA)
    )
    search = DeltaDebugging(Items(count), [judge])
    search.run()
    return search, judge


SEARCHES = pytest.mark.parametrize("searches", [50, pytest.param(200, marks=pytest.mark.nightly)])


@SEARCHES
@pytest.mark.parametrize(
    ("planted", "sd"),
    [({frozenset({5}): 0.05}, 0.02), ({frozenset({3, 12}): 0.05}, 0.02), ({frozenset({5}): -0.04}, 0.03)],
    ids=["one", "pair", "faster, in more noise"],
)
def test_wrong_answers_are_as_rare_as_promised(
    planted: dict[Subset, float], sd: float, searches: int
) -> None:
    wrong = right = 0
    for seed in range(searches):
        search, _ = _search(planted, 16, sd, seed)
        if search.found == next(iter(planted)) and not search.unexplained:
            right += 1
        elif search.causes and not search.unexplained and not search.stopped:
            wrong += 1
    # One in a hundred test runs would be beyond this if the rate were just ALPHA.
    assert wrong <= stats.binom.ppf(0.99, searches, ALPHA)
    assert right >= 0.8 * searches


@SEARCHES
def test_where_nothing_differs_causes_are_claimed_as_rarely(searches: int) -> None:
    claimed = sum(bool(_search({}, 16, 0.02, seed)[0].causes) for seed in range(searches))
    assert claimed <= stats.binom.ppf(0.99, searches, ALPHA)


def test_every_question_gets_its_part_of_the_error() -> None:
    decisions = Decisions(20, 0.05)
    assert decisions.alpha_each * decisions.most == pytest.approx(0.05)
    for _ in range(20):
        decisions.take()
    with pytest.raises(LimitReached):
        decisions.take()


def test_no_question_is_asked_twice_and_no_more_than_planned() -> None:
    search, judge = _search({frozenset({5}): 0.05}, 64, 0.01, 1)
    assert search.found == {5}
    assert judge.decisions.asked == len(judge.answers) <= judge.decisions.most


def test_what_noise_hides_is_unresolved_and_not_guessed() -> None:
    search, judge = _search({frozenset({5}): 0.02}, 16, 0.5, 1)
    assert not search.causes
    assert set(judge.answers.values()) == {Answer.UNRESOLVED}


@pytest.mark.nightly
def test_blocks_are_planned_by_power() -> None:
    _, judge = _search({frozenset({5}): 0.05}, 16, 0.02, 2)
    everything = frozenset(range(16))
    power = judge.plan_blocks(frozenset(), everything, 0.02 * math.sqrt(2))
    assert power is not None
    assert power >= judge.decisions.wanted_power
    small = judge.most_blocks
    judge.plan_blocks(frozenset(), everything, 0.06 * math.sqrt(2))
    assert judge.most_blocks > small


def test_shares_are_estimated_from_the_blocks_that_decided() -> None:
    search, judge = _search({frozenset({5}): 0.05}, 16, 0.01, 3)
    assert judge.effect(search.found, frozenset()) == pytest.approx(0.05, abs=0.015)
