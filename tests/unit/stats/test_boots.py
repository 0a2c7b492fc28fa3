"""Boots as clusters: more blocks of one boot do not tell what it does to one arm from the treatment."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from tests.support.runs_of_tests import by_night
from tests.support.verdict_scores import SECONDS

from ktrial.model.comparison import Comparison, Verdict
from ktrial.stats.sequential.boots import BootClusters
from ktrial.stats.sequential.design import BlockedMetric, SequentialDesign
from ktrial.stats.sequential.interim_analysis import look

Array = NDArray[np.float64]
DESIGN = SequentialDesign(margin=0.01)
BETWEEN, WITHIN, BLOCKS, LENGTH = 0.005, 0.005, 60, 10


def boots(label: str, blocks: int, length: int) -> tuple[str, ...]:
    return tuple(f"{label}{block // length}" for block in range(blocks))


def arms_in_boots(seed: int, blocks: int = BLOCKS, length: int = LENGTH, effect: float = 0.0) -> Array:
    """Logarithms of two arms, each in boots of its own."""
    rng = np.random.default_rng(seed)
    levels = BETWEEN * rng.standard_normal((2, -(-blocks // length)))
    levels = np.repeat(levels, length, axis=1)[:, :blocks] + np.array([[0.0], [effect]])
    return np.asarray(levels + WITHIN * rng.standard_normal((2, blocks)))


def compared(arms: Array, below: tuple[str, ...] = (), above: tuple[str, ...] = ()) -> Comparison:
    values = {label: tuple(np.exp(arm).tolist()) for label, arm in zip("AB", arms, strict=True)}
    told = {"A": below, "B": above} if below else {}
    measured = BlockedMetric("w", SECONDS, "A", values, boots=told)
    (comparison,) = look([measured], DESIGN, final=True).comparisons
    return comparison


def test_without_boots_told_too_many_differences_are_claimed_and_with_them_few() -> None:
    studies = [arms_in_boots(seed) for seed in range(by_night(60, 30))]
    own = boots("A", BLOCKS, LENGTH), boots("B", BLOCKS, LENGTH)
    untold = [compared(arms).verdict in (Verdict.BETTER, Verdict.WORSE) for arms in studies]
    told = [compared(arms, *own).verdict in (Verdict.BETTER, Verdict.WORSE) for arms in studies]
    assert sum(untold) >= by_night(5, 3)
    assert sum(told) <= by_night(3, 1)


def test_what_is_large_beside_boots_is_claimed() -> None:
    own = boots("A", BLOCKS, LENGTH), boots("B", BLOCKS, LENGTH)
    assert compared(arms_in_boots(1, effect=0.05), *own).verdict is Verdict.WORSE


@pytest.mark.parametrize(("blocks", "count"), [(10, 1), (20, 2)])
def test_two_boots_of_each_arm_are_too_few_and_the_reason_says_so(blocks: int, count: int) -> None:
    arms = arms_in_boots(2, blocks=blocks, effect=0.5)
    comparison = compared(arms, boots("A", blocks, LENGTH), boots("B", blocks, LENGTH))
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert (comparison.low, comparison.high) == (None, None)
    assert f"{count} of the baseline and {count} of the treatment" in comparison.reason
    assert "3 boots of each" in comparison.reason
    assert compared(arms).verdict is Verdict.WORSE, "without boots told nothing is withheld"


@pytest.mark.parametrize(
    "below", [("S",) * BLOCKS, boots("S", BLOCKS, 30), boots("S", BLOCKS, 20)], ids=["one", "two", "three"]
)
def test_few_boots_that_the_arms_share_change_nothing(below: tuple[str, ...]) -> None:
    arms = arms_in_boots(3, length=BLOCKS, effect=0.03)
    assert compared(arms, below, below) == compared(arms)


def test_a_boot_for_each_trial_changes_nothing() -> None:
    arms = arms_in_boots(4, length=1, effect=0.01)
    assert compared(arms, boots("A", BLOCKS, 1), boots("B", BLOCKS, 1)) == compared(arms)


def test_boots_that_the_arms_share_are_the_unit_from_four_on() -> None:
    """What a boot does to one arm alone shows as a spread between boots."""
    apart = np.repeat(0.01 * np.array([1.2, 0.2, 1.0, -0.1, 0.9, 0.3]), 10)
    arms = np.stack([np.zeros(BLOCKS), apart]) + 0.004 * np.random.default_rng(5).standard_normal((2, BLOCKS))
    shared = boots("S", BLOCKS, LENGTH)
    narrow, wide = compared(arms), compared(arms, shared, shared)
    assert wide.low is not None
    assert wide.high is not None
    assert narrow.low is not None
    assert wide.low < narrow.low
    assert wide.low < 1 < wide.high


def test_the_interval_is_student_s_t_of_the_boots() -> None:
    rng = np.random.default_rng(6)
    typical = rng.standard_normal(6)
    blocks = BootClusters(np.repeat(typical, 10), boots("A", 60, 10), boots("B", 60, 10))
    edge = float(stats.t.isf(0.025, 59))
    low, high = blocks.wider(np.array(typical.mean()), np.array(typical.mean()), 60, edge)
    expected = stats.t.interval(0.95, 5, typical.mean(), typical.std(ddof=1) / math.sqrt(6))
    assert (float(low), float(high)) == pytest.approx(expected)


def test_a_boot_in_which_trials_failed_leaves_the_interval_open() -> None:
    ratios = np.concatenate([np.zeros(50), np.full(10, np.inf)])
    blocks = BootClusters(ratios, boots("A", 60, 10), boots("B", 60, 10))
    low, high = blocks.wider(np.array(0.0), np.array(0.0), 60, 2.4)
    assert low < -1e4
    assert high > 1e4
