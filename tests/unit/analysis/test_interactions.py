"""Interactions of two factors: in exact numbers, in real time, through a whole study, and in words."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.command_line import KNOWN
from tests.support.fake_builds import FakeBuilder
from tests.support.runs_of_tests import by_night
from tests.support.scripted import ScriptedMachine, number_of, scripted_resources

from ktrial.analysis.answer import interaction_answer
from ktrial.experiment.session import run
from ktrial.model.comparison import Interaction, Verdict
from ktrial.model.machine import Boot
from ktrial.model.study import Study
from ktrial.model.workload import Direction, Metric, Mode
from ktrial.stats.interactions import (
    FactorialCells,
    FactorPair,
    InteractionQuestion,
    exact_interaction,
    timed_interactions,
)
from ktrial.stats.sequential.design import BlockedMetric, SequentialDesign
from ktrial.stats.verdict_rules import Arm
from ktrial.store.store import Store, open_store
from ktrial.studyfile.diagnostics import StudySource
from ktrial.studyfile.reader import study_from
from ktrial.target import Run, StepResult

PAIR = FactorPair("scheduler", ("", "my.patch"), "allocator", ("SLUB=y", "SLAB=y"))


def place(direction: Direction = Direction.LOWER) -> InteractionQuestion:
    metric = Metric(name="instructions", unit="instructions/operation", direction=direction)
    return InteractionQuestion(PAIR, FactorialCells("a", "b", "c", "d"), "fork", metric, Mode.EXACT_PLUGIN)


def arms(*values: tuple[float, ...]) -> tuple[Arm, Arm, Arm, Arm]:
    a, b, c, d = (Arm(str(index), dict(enumerate(some))) for index, some in enumerate(values))
    return a, b, c, d


def test_effects_that_multiply_are_no_interaction() -> None:
    interaction = exact_interaction(place(), arms((100,), (110,), (200,), (220,)), margin=0.01)
    assert interaction.effect == pytest.approx(1.1)
    assert interaction.effect_beside == pytest.approx(1.1)
    assert interaction.ratio == pytest.approx(1.0)
    assert interaction.verdict is Verdict.EQUIVALENT


@pytest.mark.parametrize(
    ("both", "direction", "verdict"),
    [
        (113.3, Direction.LOWER, Verdict.WORSE),
        (113.3, Direction.HIGHER, Verdict.BETTER),
        (106.7, Direction.LOWER, Verdict.BETTER),
        (106.7, Direction.HIGHER, Verdict.WORSE),
        (110.5, Direction.LOWER, Verdict.EQUIVALENT),
    ],
)
def test_effects_that_do_not_multiply_are_one(both: float, direction: Direction, verdict: Verdict) -> None:
    interaction = exact_interaction(place(direction), arms((100,), (110,), (100,), (both,)), margin=0.01)
    assert interaction.ratio == pytest.approx(both / 110)
    assert (interaction.low, interaction.high) == (None, None)
    assert interaction.no_interval == "one perturbation: no interval"
    assert interaction.verdict is verdict


def test_the_interval_is_that_of_the_perturbations() -> None:
    interaction = exact_interaction(place(), arms((99, 101), (110, 112), (100, 100), (120, 124)), margin=0.01)
    assert interaction.low == pytest.approx(120 * 99 / (110 * 100))
    assert interaction.high == pytest.approx(124 * 101 / (112 * 100))
    assert interaction.verdict is Verdict.WORSE
    wide = exact_interaction(place(), arms((90, 110), (110, 112), (100, 100), (110, 111)), margin=0.01)
    assert wide.verdict is Verdict.INCONCLUSIVE
    assert wide.reason == "the interval reaches across the edge of the margin (1 %)"


def test_without_numbers_there_is_a_reason() -> None:
    a, b, c, _ = arms((1,), (1,), (1,), (1,))
    interaction = exact_interaction(place(), (a, b, c, Arm("d", {}, "d has not run yet")), margin=0.01)
    assert (interaction.verdict, interaction.ratio, interaction.reason) == (
        Verdict.INCONCLUSIVE,
        None,
        "d has not run yet",
    )
    zero = exact_interaction(place(), arms((1,), (0,), (1,), (1,)), margin=0.01)
    assert (zero.ratio, zero.reason) == (None, "a ratio needs values above zero")
    incomparable = exact_interaction(
        place(), arms((1,), (1,), (1,), (1,)), margin=0.01, incomparable="two machines"
    )
    assert (incomparable.ratio, incomparable.reason) == (None, "two machines")


VALUES = st.tuples(*[st.lists(st.floats(1.0, 1e6), min_size=1, max_size=3).map(tuple)] * 4)


@given(VALUES)
def test_it_is_the_same_whichever_factor_comes_first(values: tuple[tuple[float, ...], ...]) -> None:
    a, b, c, d = arms(*values)
    first = exact_interaction(place(), (a, b, c, d), margin=0.01)
    incomparable = exact_interaction(place(), (a, c, b, d), margin=0.01)
    assert first.ratio == pytest.approx(incomparable.ratio)
    assert first.verdict is incomparable.verdict
    assert first.ratio is not None
    if first.low is None or first.high is None:
        assert first.no_interval
        return
    assert first.low <= first.ratio * (1 + 1e-9)
    assert first.ratio <= first.high * (1 + 1e-9)


def in_time(interaction: float, blocks: int, seed: int, spread: float = 0.01) -> Interaction:
    """What is found where both factors change the metric by 5 %, and both together by this much more."""
    random = np.random.default_rng(seed)
    drift = random.normal(0, 0.2, blocks)
    means = (0.0, 0.05, 0.05, 0.10 + math.log(interaction))
    logs = [mean + drift + random.normal(0, spread, blocks) for mean in means]
    measured = BlockedMetric(
        workload="fork",
        metric=place().metric,
        baseline="a",
        values={name: tuple(np.exp(log)) for name, log in zip("abcd", logs, strict=True)},
    )
    design = SequentialDesign(margin=0.02, alpha=0.05, looks=(blocks,))
    [only] = timed_interactions([(place(), measured)], design, final=True)
    return only


def test_in_real_time_the_blocks_drift_divides_out() -> None:
    interaction = in_time(1.1, blocks=30, seed=1)
    assert interaction.verdict is Verdict.WORSE
    assert interaction.ratio == pytest.approx(1.1, abs=0.02)
    assert interaction.effect == pytest.approx(math.exp(0.05), abs=0.02)
    assert in_time(1.0, blocks=60, seed=2, spread=0.005).verdict is Verdict.EQUIVALENT


def test_in_real_time_an_interaction_is_seldom_found_where_there_is_none() -> None:
    """At most at the study's error of 5 %: of 200 studies, 22 would come with probability below 0.0005."""
    studies, most = by_night((200, 22), (60, 10))
    interactions = [in_time(1.0, blocks=10, seed=seed, spread=0.03) for seed in range(studies)]
    claimed = sum(interaction.verdict in (Verdict.BETTER, Verdict.WORSE) for interaction in interactions)
    assert claimed < most


def test_in_real_time_the_interval_holds_the_truth() -> None:
    """95 % of them: of 200, fewer than 176 would come with probability below 0.0005."""
    studies, least = by_night((200, 176), (60, 50))
    interactions = [in_time(1.05, blocks=10, seed=seed, spread=0.03) for seed in range(studies)]
    held = sum((interaction.low or 0) <= 1.05 <= (interaction.high or 0) for interaction in interactions)
    assert held >= least


def test_a_block_with_a_failed_trial_is_left_out() -> None:
    values = {"a": (100.0, math.nan), "b": (110.0, 1.0), "c": (100.0, 1.0), "d": (121.0, 1.0)}
    measured = BlockedMetric(workload="fork", metric=place().metric, baseline="a", values=values)
    design = SequentialDesign(looks=(3,))
    [interaction] = timed_interactions([(place(), measured)], design)
    assert interaction.effect == pytest.approx(1.1)
    assert interaction.effect_beside == pytest.approx(1.21)
    zeros = dict.fromkeys(values, (0.0,))
    nothing = BlockedMetric(workload="fork", metric=place().metric, baseline="a", values=zeros)
    [interaction] = timed_interactions([(place(), nothing)], design)
    assert interaction.reason == "no block has a number above zero of all four treatments"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "trials.db") as opened:
        yield opened


def priced(boot: Boot, run: Run) -> StepResult:
    """SLAB costs 5 %, the patch 3 %, and fork pays 4 % more where it meets both."""
    slab, patched = "SLAB" in boot.kernel.name, "my.patch" in boot.kernel.name
    number = 1_000_000 * (1.05 if slab else 1) * (1.03 if patched else 1)
    if slab and patched and run.argv[0] == "fork":
        number *= 1.04
    return StepResult(step=0, do="run", exit=0, stdout=str(number))


def crossed(tmp_path: Path, design: str = "full-factorial") -> Study:
    (tmp_path / "my.patch").write_text("a patch")
    data = {
        "workloads": ["fork", "syscall"],
        "design": design,
        "machine": {"kernel": "guest"},
        "kernels": {"guest": {"source": "debian:linux-source-6.1"}},
        "factors": {
            "scheduler": {"kind": "patch", "levels": ["", "my.patch"]},
            "allocator": {"kind": "kconfig", "levels": ["SLUB=y", "SLAB=y"]},
        },
    }
    return study_from(data, StudySource("study.toml"), "crossed", tmp_path, KNOWN)


def test_a_crossed_study_reports_the_interaction(tmp_path: Path, store: Store) -> None:
    of_fakes = scripted_resources(builder=FakeBuilder().builder)
    record = run(crossed(tmp_path), store=store, machine=ScriptedMachine(priced), resources=of_fakes)
    fork, syscall = record.result.interactions
    assert (fork.workload, fork.verdict) == ("fork", Verdict.WORSE)
    assert fork.ratio == pytest.approx(1.04)
    assert fork.effect == pytest.approx(1.03)
    assert fork.effect_beside == pytest.approx(1.03 * 1.04)
    assert syscall.verdict is Verdict.EQUIVALENT
    assert syscall.ratio == pytest.approx(1.0)
    assert record.result.answer.endswith(
        "scheduler and allocator interact in 1 of 2 workloads: scheduler=my.patch changes fork by +3 % with "
        "SLUB=y and by +7.12 % with SLAB=y (1 without an interaction beyond 1 %)."
    )


def test_without_the_fourth_treatment_there_is_none(tmp_path: Path, store: Store) -> None:
    of_fakes = scripted_resources(builder=FakeBuilder().builder)
    study = crossed(tmp_path, "one-factor-at-a-time")
    record = run(study, store=store, machine=ScriptedMachine(priced), resources=of_fakes)
    assert record.result.interactions == ()


def test_every_pair_of_factors_and_levels(tmp_path: Path, store: Store) -> None:
    data = {
        "workloads": ["fork"],
        "perturbations": 1,
        "machine": {"kernel": "debian:6.1"},
        "factors": {
            "a": {"kind": "boot", "levels": [0, 1, 2]},
            "b": {"kind": "boot", "levels": [0, 1]},
            "memory": {"levels": ["512M", "1G"]},
        },
    }
    study = study_from(data, StudySource("study.toml"), "pairs", tmp_path, KNOWN)
    record = run(study, store=store, machine=ScriptedMachine(number_of), resources=scripted_resources())
    pairs = [
        (interaction.first, interaction.first_levels[1], interaction.second)
        for interaction in record.result.interactions
    ]
    assert pairs == [("a", 1, "b"), ("a", 2, "b"), ("a", 1, "memory"), ("a", 2, "memory"), ("b", 1, "memory")]


def test_the_answer_in_words() -> None:
    none = exact_interaction(place(), arms((100,), (110,), (200,), (220,)), margin=0.01)
    assert interaction_answer([none], 0.01) == (
        "scheduler and allocator do not interact: their effects multiply, within 1 %."
    )
    open_ = exact_interaction(place(), arms((90, 110), (110, 110), (100, 100), (110, 110)), margin=0.01)
    assert interaction_answer([open_], 0.01) == (
        "No interaction of scheduler and allocator is shown (1 undecided)."
    )
    assert interaction_answer([], 0.01) == ""
