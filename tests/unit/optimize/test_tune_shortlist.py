"""The finalists of a search: confirmed beside each other with one error for all, and which is the answer."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from scipy.stats import binom
from tests.support.runs_of_tests import by_night
from tests.support.tuning import GOAL, METRIC

from ktrial.model.comparison import Verdict
from ktrial.model.tuning import (
    Budget,
    Configuration,
    Dimension,
    Goal,
    Objective,
    Observation,
    Purpose,
    Space,
)
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import Direction, Mode
from ktrial.optimize.budget import KNOWN, ConfirmationSize, shares, size_needed, smallest_effect
from ktrial.optimize.confirmation import Confirmation, confirm
from ktrial.optimize.encoding import Encoding
from ktrial.optimize.evaluation_log import Ask, EvaluationLog, ObjectiveFunction, RunRequest
from ktrial.optimize.finalists import answer_among, fitting
from ktrial.optimize.response_model import Surrogate
from ktrial.stats.typical_groups import EarlierEstimate, typical_groups

SPACE = Space(dimensions=tuple(Dimension(name=name, choices=("0", "1"), default="0") for name in "abc"))
SMALL, WHOLE = {"a": "1"}, {"a": "1", "b": "1"}
SCORES = ObjectiveFunction(GOAL)
TIME = Goal(objectives=(Objective(metric=METRIC, direction=Direction.LOWER),), workload=GOAL.workload)
BASELINE_RUNS = [
    Observation(configuration={}, purpose=Purpose.EXPLORE, order=at, values={METRIC: 1000.0}, seconds=1)
    for at in range(8)
]


@dataclass
class Machine:
    """Two settings with the gains that are told, and noise."""

    gains: Mapping[str, float]
    noise: float = 0.03
    seed: int = 1
    fails: Configuration = field(default_factory=dict)
    later: float = 0.0
    """What the level gains from the first fresh run on."""
    noise_free: bool = False
    at_once: int = 1
    perturbations: int = 1
    mode: Mode = Mode.TIMED

    def measure(self, batch: Sequence[Ask]) -> Iterator[Observation]:
        for ask in batch:
            rng = np.random.default_rng([self.seed, ask.order])
            gain = sum(self.gains.get(name, 0.0) for name in ask.configuration)
            gain += self.later * (ask.purpose is Purpose.CONFIRM)
            values = {METRIC: 1000.0 * math.exp(gain + self.noise * rng.standard_normal())}
            failure = "killed" if self.fails and ask.configuration == self.fails and not ask.block else ""
            yield Observation(
                **ask.model_dump(), values={} if failure else values, failure=failure, seconds=1
            )


def log_of(machine: Machine, runs: int = 200, earlier: int = 0) -> EvaluationLog:
    """With so many runs of the baseline from before."""
    log = EvaluationLog(machine, Budget(runs=runs), (), lambda _stage: None)
    log.run([RunRequest({})] * earlier, Purpose.EXPLORE)
    return log


def confirmed(
    log: EvaluationLog,
    finalists: Sequence[Configuration],
    blocks: int,
    seed: int = 1,
    expected: Sequence[EarlierEstimate] = (),
    goal: Goal = GOAL,
) -> list[Confirmation]:
    model = Surrogate(Encoding(SPACE), ObjectiveFunction(goal), 0.03, 65)
    return confirm(log, model, finalists, expected, blocks, np.random.default_rng(seed))


def test_each_block_has_the_baseline_once_and_every_finalist_twice() -> None:
    log = log_of(Machine({"a": 0.1}))
    confirmed(log, [SMALL, WHOLE], 6)
    assert {each.purpose for each in log.observations} == {Purpose.CONFIRM}
    for block in range(6):
        run = [each.configuration for each in log.observations if each.block == block]
        assert sorted(run, key=len) == [{}, SMALL, SMALL, WHOLE, WHOLE]


@pytest.mark.parametrize("goal", [GOAL, TIME])
def test_what_the_search_let_expect_narrows_the_interval_unless_fresh_runs_say_otherwise(goal: Goal) -> None:
    """Where less is better, a gain is a ratio below one."""
    sign = 1 if goal is GOAL else -1

    def width(expected: Sequence[EarlierEstimate]) -> float:
        widths = []
        for seed in range(5):
            machine = Machine({"a": 0.1 * sign}, seed=seed)
            (one,) = confirmed(log_of(machine, earlier=8), [SMALL], 4, seed, expected, goal)
            comparison = one.comparisons[0]
            assert comparison.verdict is Verdict.BETTER
            assert (one.fresh is None) == (not expected)
            assert comparison.low
            assert comparison.high
            assert comparison.low < math.exp(0.1 * sign) < comparison.high
            widths.append(math.log(comparison.high / comparison.low))
        return float(np.mean(widths))

    alone, helped, misled = (
        width(each) for each in ([], [EarlierEstimate(0.1, 0.01)], [EarlierEstimate(0.6, 0.01)])
    )
    assert helped < 0.9 * alone
    assert misled > 0.95 * alone


def test_fresh_runs_that_contradict_the_search_are_told_with_both_numbers() -> None:
    (one,) = confirmed(log_of(Machine({"a": 0.1})), [SMALL], 6, expected=[EarlierEstimate(0.4, 0.01)])
    (told,) = [each for each in one.warnings if each.kind is WarningKind.SEARCH_DISAGREES]
    assert "let expect +49.2 %, fresh runs alone show +8.4 %" in told.text
    assert one.fresh == pytest.approx(1.084, abs=5e-4)
    assert one.expected == pytest.approx(math.exp(0.4))
    (one,) = confirmed(log_of(Machine({"a": 0.1})), [SMALL], 6, expected=[EarlierEstimate(0.1, 0.01)])
    assert WarningKind.SEARCH_DISAGREES not in [each.kind for each in one.warnings]


@pytest.mark.parametrize(
    "later",
    [
        0.0,
        pytest.param(0.03, marks=pytest.mark.nightly),
        pytest.param(-0.03, marks=pytest.mark.nightly),
        pytest.param(0.1, marks=pytest.mark.nightly),
    ],
)
def test_a_level_that_moves_between_search_and_confirmation_is_no_gain(later: float) -> None:
    """Many confirmations of what does nothing, beside a model that believes in a little."""
    claimed = 0
    for seed in range(by_night(60, 30)):
        log = log_of(Machine({}, seed=seed, later=later), earlier=8)
        (one,) = confirmed(log, [SMALL], 4, seed, [EarlierEstimate(0.01, 0.015)])
        claimed += one.comparisons[0].verdict in (Verdict.BETTER, Verdict.WORSE)
    assert claimed <= binom.ppf(0.999, by_night(60, 30), 0.05)


def test_what_each_brings_is_estimated_with_an_interval() -> None:
    log = log_of(Machine({"a": 0.1, "b": 0.05}))
    small, whole = confirmed(log, [SMALL, WHOLE], 20)
    for one, truth in ((small.comparisons[0], 0.1), (whole.comparisons[0], 0.15)):
        assert one.verdict is Verdict.BETTER
        assert one.low
        assert one.high
        assert one.low < math.exp(truth) < one.high
        assert math.log(one.high / one.low) < 0.06


def test_a_gain_is_claimed_falsely_of_any_of_three_in_no_more_than_one_of_twenty() -> None:
    three = [SMALL, WHOLE, {"c": "1"}]
    false = 0
    for seed in range(by_night(60, 30)):
        said = confirmed(log_of(Machine({}, seed=seed)), three, 6, seed)
        false += any(one.comparisons[0].verdict in (Verdict.BETTER, Verdict.WORSE) for one in said)
    assert false <= binom.ppf(0.999, by_night(60, 30), 0.05)


def test_a_finalist_of_which_a_run_failed_is_no_answer_and_the_other_is_judged_without_it() -> None:
    log = log_of(Machine({"a": 0.2}, fails=WHOLE))
    small, whole = confirmed(log, [SMALL, WHOLE], 6)
    assert small.better
    assert whole.broken
    assert not whole.better
    assert whole.comparisons[0].ratio is None


def test_values_that_are_all_alike_give_no_interval_of_width_zero() -> None:
    log = log_of(Machine({"a": 0.1}, noise=0.0))
    (one,) = confirmed(log, [SMALL], 6)
    assert one.comparisons[0].low
    assert one.comparisons[0].high
    assert one.comparisons[0].low < one.comparisons[0].high


def believing(gains: Mapping[int, float], spread: float = 0.01, noise: float = 0.03) -> Surrogate:
    """A model that expects so much of configurations with so many knobs."""
    return cast(
        Surrogate,
        SimpleNamespace(
            gains=lambda some: np.array([gains[len(each)] for each in some]),
            spread=lambda some: np.full(len(some), spread),
            scores=SCORES,
            noise=noise,
            responses=[SimpleNamespace(strengths=SimpleNamespace(noise=noise))],
            seen=BASELINE_RUNS,
        ),
    )


@pytest.mark.parametrize(
    ("small", "whole", "chosen"), [(0.10, 0.10, SMALL), (0.09, 0.10, SMALL), (0.02, 0.10, WHOLE)]
)
def test_the_answer_has_the_fewest_knobs_of_those_that_are_as_good(
    small: float, whole: float, chosen: Configuration
) -> None:
    assert answer_among(believing({1: small, 2: whole}), [SMALL, WHOLE]) == chosen


def test_a_good_configuration_that_was_seen_is_confirmed_beside_a_smaller_one_where_runs_show_both() -> None:
    seen = {"a": "1", "b": "1", "c": "1"}
    model = believing({1: 0.02, 2: 0.03, 3: 0.15})
    finalists, size = fitting(model, [SMALL, WHOLE, seen], 12, 12)
    assert finalists == [SMALL]
    assert size.blocks == 4
    assert fitting(model, [SMALL, WHOLE, seen], 18, 36)[0] == [SMALL, seen]


def test_runs_that_are_left_make_blocks() -> None:
    size = ConfirmationSize(2, 3, 8)
    assert [size.with_runs(left).blocks for left in (0, 15, 19, 20)] == [3, 3, 3, 4]


def test_a_plain_gain_needs_few_blocks_and_a_small_one_all_that_there_are() -> None:
    most = ConfirmationSize(1, 60, 8)
    assert size_needed(0.5, 0.03, most).blocks == 3
    assert 60 >= size_needed(0.03, 0.03, most).blocks > size_needed(0.06, 0.03, most).blocks > 3
    plain = fitting(believing({1: 0.5, 2: 0.5}), [SMALL, WHOLE], 12, 24)
    small = fitting(believing({1: 0.03, 2: 0.03}), [SMALL, WHOLE], 12, 24)
    assert (plain[1].blocks, small[1].blocks) == (3, 8)


@pytest.mark.parametrize(("gain", "put_by", "count"), [(0.15, 12, 1), (0.15, 36, 2), (0.03, 36, 1)])
def test_two_are_confirmed_only_where_what_is_put_by_can_show_what_they_bring(
    gain: float, put_by: int, count: int
) -> None:
    model = believing({1: gain, 2: gain})
    finalists, size = fitting(model, [SMALL, WHOLE], put_by, 36)
    assert finalists == [SMALL, WHOLE][:count]
    assert size.finalists == count
    assert size.runs <= 36


@pytest.mark.nightly  # some 6 seconds of CPU time
@pytest.mark.parametrize("earlier", [pytest.param(0, marks=pytest.mark.nightly), 8])
def test_the_smallest_effect_is_found_in_80_of_100_confirmations(earlier: int) -> None:
    """Where the model believes in it, as well as it usually knows."""
    size = ConfirmationSize(1, 4, earlier)
    gain = math.log1p(smallest_effect(size, 0.01, 0.03))
    rng, shown = np.random.default_rng(1), 0
    for _ in range(1000):
        arms = [rng.normal(level, 0.03, runs) for level, runs in ((0.0, 4), (gain, 8), (0.0, earlier))]
        known = EarlierEstimate(rng.normal(gain, KNOWN * 0.03), KNOWN * 0.03)
        shown += bool(typical_groups(arms[:2], arms[2], [known]).low[0] > 0)
    assert 0.76 < shown / 1000 < 0.86


def test_more_runs_and_less_noise_show_smaller_effects() -> None:
    shown = [
        smallest_effect(shares(runs, noise_free=False).confirmation, 0.01, 0.03) for runs in (30, 65, 200)
    ]
    assert shown == sorted(shown, reverse=True)
    size = shares(65, noise_free=False).confirmation
    assert smallest_effect(size, 0.01, 0.02) < smallest_effect(size, 0.01, 0.04)
