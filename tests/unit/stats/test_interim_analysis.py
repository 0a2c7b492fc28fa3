"""What one look says, on numbers whose answer is known beforehand: claims, intervals, reasons, warnings."""

import math

import numpy as np
import pytest

from ktrial.model.comparison import Verdict
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import Direction, Metric, Mode
from ktrial.stats.sequential.boundaries import LOOKS, boundaries
from ktrial.stats.sequential.design import BlockedMetric, SequentialDesign
from ktrial.stats.sequential.familywise import repeated_p
from ktrial.stats.sequential.interim_analysis import look
from ktrial.stats.sequential.repeated_intervals import (
    Intervals,
    claims,
    first_claims,
    interval_about,
    intervals,
    means,
    widened,
)
from ktrial.stats.verdict_rules import Claim

SECONDS = Metric(name="wall", unit="s", direction=Direction.LOWER)
DESIGN = SequentialDesign(margin=0.01)
AROUND_ZERO = np.array([1.0, -1.0, 1.01, -1.01, 0.99, -0.99])
"""With ten times as much these six log ratios scatter too much for any claim."""


def measured(
    *log_ratios: list[float] | np.ndarray, primary: bool = True, workload: str = "fork"
) -> BlockedMetric:
    """A baseline of 100 in every block, and treatments with these log ratios to it."""
    blocks = len(log_ratios[0])
    values = {"A": (100.0,) * blocks}
    for label, ratios in zip("BCDEFGH", log_ratios, strict=False):
        values[label] = tuple(float(100 * math.exp(ratio)) for ratio in ratios)
    return BlockedMetric(workload, SECONDS, "A", values, primary=primary)


CLEAR = 0.3 + 0.01 * AROUND_ZERO
OPEN = 0.1 * AROUND_ZERO
EQUAL = 0.0001 * AROUND_ZERO
EDGE = float(widened(np.array(boundaries()[0]), np.array(6.0), np.array(0.0)))
"""|t| that six blocks must reach where they show no correlation."""


@pytest.mark.parametrize(
    ("low", "high", "claim"),
    [
        (-math.log(1.25), math.log(1.25), Claim.EQUIVALENT),  # the edges belong to the margin
        (0.01, 0.02, Claim.EQUIVALENT),  # a difference that is too small to matter
        (-0.02, -0.01, Claim.EQUIVALENT),
        (0.01, math.log(1.25) + 1e-9, Claim.ABOVE),
        (-math.log(1.25) - 1e-9, -0.01, Claim.BELOW),
        (0.0, 1.0, Claim.NONE),  # 0 itself is no difference
        (-1.0, 0.0, Claim.NONE),
        (-1.0, 1.0, Claim.NONE),
        (-math.inf, math.inf, Claim.NONE),
    ],
)
def test_what_an_interval_says(low: float, high: float, claim: Claim) -> None:
    seen = Intervals(np.zeros(1), np.array([low]), np.array([high]))
    assert claims(seen, 0.25).tolist() == [claim]


def test_a_study_s_first_claim_and_how_many_blocks_it_took() -> None:
    clear, late = np.resize(CLEAR, 60), np.concatenate([OPEN, np.resize(CLEAR, 54)])
    wide = np.random.default_rng(1).permutation(np.linspace(-0.1, 0.1, 60))
    result, blocks = first_claims(np.stack([clear, -clear, wide, late]), DESIGN)
    assert result.tolist() == [Claim.ABOVE, Claim.BELOW, Claim.NONE, Claim.ABOVE]
    assert blocks.tolist()[:3] == [6, 6, 60]
    assert 6 < blocks[3] <= 60


def test_the_mean_at_each_look_and_its_standard_error_are_those_of_the_blocks_until_then() -> None:
    values = np.random.default_rng(1).normal(1e6, 3.0, (2, 3, 10))
    mean, error, _ = means(values, (3, 7, 10))
    for place, blocks in enumerate((3, 7, 10)):
        part = values[..., :blocks]
        assert mean[..., place] == pytest.approx(part.mean(axis=-1), rel=1e-12)
        assert error[..., place] == pytest.approx(part.std(axis=-1, ddof=1) / math.sqrt(blocks), rel=1e-6)


def test_an_interval_is_as_wide_as_the_edge_says_and_without_end_where_the_edge_is() -> None:
    seen = interval_about(
        np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.5, 0.0]), np.array([2.0, 4.0, math.inf])
    )
    assert seen.mean.tolist() == [1.0, 2.0, 3.0]
    assert seen.low.tolist() == [0.0, 0.0, -math.inf]
    assert seen.high.tolist() == [2.0, 4.0, math.inf]


def test_intervals_at_several_looks_use_each_look_s_own_edge() -> None:
    values = np.array([1.0, 3.0, 2.0, 6.0])
    seen = intervals(values, (2, 4), (1.0, 20.0), independent=True)
    assert seen.mean == pytest.approx([2.0, 2.75])
    assert seen.high[1] == pytest.approx(2.75 + 20 * values.std(ddof=1) / 2)
    assert seen.low.tolist() == [0.0, pytest.approx(2.75 - 20 * values.std(ddof=1) / 2)]


def test_a_comparison_tells_all_that_is_known() -> None:
    (comparison,) = look([measured(CLEAR)], DESIGN).comparisons
    half = EDGE * CLEAR.std(ddof=1) / math.sqrt(6)
    assert (comparison.workload, comparison.metric, comparison.unit, comparison.direction) == (
        "fork",
        "wall",
        "s",
        Direction.LOWER,
    )
    assert (comparison.baseline, comparison.treatment, comparison.mode) == ("A", "B", Mode.TIMED)
    assert (comparison.verdict, comparison.reason) == (Verdict.WORSE, "")
    assert comparison.baseline_value == pytest.approx(100.0)
    assert comparison.value == pytest.approx(100 * math.exp(0.3))
    assert comparison.ratio == pytest.approx(math.exp(0.3))
    assert comparison.low == pytest.approx(math.exp(0.3 - half))
    assert comparison.high == pytest.approx(math.exp(0.3 + half))


def test_what_has_no_ratio_has_no_numbers_and_says_why() -> None:
    (comparison,) = look(
        [BlockedMetric("w", SECONDS, "A", {"A": (1.0,) * 6, "B": (0.0,) * 6})], DESIGN
    ).comparisons
    assert (
        comparison.baseline_value,
        comparison.value,
        comparison.ratio,
        comparison.low,
        comparison.high,
    ) == (None,) * 5
    assert comparison.reason == "a ratio needs values above zero"


AFTER_SIX = "after 6 blocks the interval holds both 1 and more than the margin"


@pytest.mark.parametrize(
    ("ratios", "final", "reason"),
    [
        ([math.nan] * 3, False, "there are no numbers yet"),
        ([0.1, 0.2, 0.3], False, "3 blocks are too few for a verdict: the first look comes later"),
        (OPEN, False, f"{AFTER_SIX}: the study goes on"),
        (OPEN, True, f"{AFTER_SIX} (1 %)"),
    ],
)
def test_what_is_not_decided_says_why(ratios: list[float], final: bool, reason: str) -> None:
    seen = look([measured(ratios)], DESIGN, final=final)
    assert (seen.comparisons[0].verdict, seen.comparisons[0].reason) == (Verdict.INCONCLUSIVE, reason)
    assert seen.over is final


@pytest.mark.parametrize(("final", "end"), [(False, ": the study goes on"), (True, "")])
def test_a_verdict_that_later_blocks_do_not_bear_out_is_withdrawn_and_said_so(final: bool, end: str) -> None:
    misled = np.concatenate([0.1 + 0.01 * AROUND_ZERO, -0.2 + 0.01 * AROUND_ZERO[:4]])
    undecided = 0.012 * np.array([1.0, -1.0, 2.0, -2.0, 3.0] * 2)
    seen = look([measured(misled, undecided)], DESIGN, final=final)
    result = "after 6 blocks a verdict was certain enough, after 10 it is not"
    assert seen.comparisons[0].reason == f"{result}{end}"
    assert seen.next_look == (None if final else 15)


@pytest.mark.parametrize(("primary", "end"), [(OPEN, ": the study goes on"), (CLEAR, " (1 %)")])
def test_an_exploratory_metric_says_whether_the_study_goes_on(primary: np.ndarray, end: str) -> None:
    seen = look([measured(primary), measured(OPEN, primary=False)], DESIGN)
    assert seen.comparisons[1].reason == f"{AFTER_SIX}{end}"


def test_an_exploratory_metric_that_does_not_differ_is_equivalent_however_many_there_are() -> None:
    exploratory = [measured(EQUAL, primary=False, workload=name) for name in "uvwxyz"]
    seen = look([measured(CLEAR), *exploratory], DESIGN)
    assert [(comparison.verdict, comparison.reason) for comparison in seen.comparisons[1:]] == [
        (Verdict.EQUIVALENT, "")
    ] * 6


JUST_CLAIMED = 0.1 * AROUND_ZERO + 1.05 * EDGE * (0.1 * AROUND_ZERO).std(ddof=1) / math.sqrt(6)
FOUR_TIMES = 4 * repeated_p(JUST_CLAIMED, DESIGN)


@pytest.mark.parametrize(
    ("beside", "verdict", "reason"),
    [
        (0, Verdict.WORSE, ""),
        (3, Verdict.INCONCLUSIVE, f"one of 4 exploratory metrics: adjusted for that, p is {FOUR_TIMES:.2g}"),
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_difference_that_the_whole_lot_of_exploratory_metrics_cannot_carry_is_withdrawn(
    beside: int, verdict: Verdict, reason: str, sign: int
) -> None:
    exploratory = [measured(OPEN, primary=False, workload=f"w{place}") for place in range(beside)]
    seen = look([measured(CLEAR), measured(sign * JUST_CLAIMED, primary=False), *exploratory], DESIGN)
    opposite = Verdict.BETTER if verdict is Verdict.WORSE else verdict
    assert seen.comparisons[1].verdict is (verdict if sign > 0 else opposite)
    assert seen.comparisons[1].reason == reason


def test_primary_metrics_come_first_and_only_they_keep_a_study_running() -> None:
    exploratory, primary = measured(OPEN, primary=False, workload="e"), measured(CLEAR, workload="p")
    seen = look([exploratory, primary], DESIGN)
    assert [comparison.workload for comparison in seen.comparisons] == ["p", "e"]
    assert seen.over
    assert not look([measured(CLEAR), measured(OPEN)], DESIGN).over


def test_a_look_counts_the_blocks_of_the_workload_that_has_most() -> None:
    seen = look([measured(CLEAR), measured(np.resize(OPEN, 12))], DESIGN)
    assert (seen.blocks, seen.next_look) == (12, 15)


def test_a_study_that_measures_nothing_is_over() -> None:
    seen = look([], DESIGN)
    assert (seen.blocks, seen.next_look, seen.comparisons, seen.warnings) == (0, None, (), ())


def test_a_study_that_ends_tells_what_is_odd_about_its_numbers_and_that_it_stopped_early() -> None:
    coarse = BlockedMetric("w", SECONDS, "A", {"A": (100.0, 101.0) * 5, "B": (150.0, 151.0) * 5})
    reported = {warning.kind for warning in look([coarse], DESIGN).warnings}
    assert {WarningKind.COARSE_VALUES, WarningKind.EARLY_STOPPING} <= reported


@pytest.mark.parametrize(
    ("looks", "alpha", "horizon", "problem"),
    [
        ((2, 6), 0.05, 0, "looks rise, and the first comes after 3 blocks at the earliest"),
        ((6, 6), 0.05, 0, "looks rise, and the first comes after 3 blocks at the earliest"),
        ((6, 10), 0.0, 0, "alpha lies between 0 and 1"),
        ((6, 10), 1.0, 0, "alpha lies between 0 and 1"),
        ((6, 10), 0.05, 9, "no look comes after the horizon"),
    ],
)
def test_looks_that_make_no_sense_are_refused_with_the_reason(
    looks: tuple[int, ...], alpha: float, horizon: int, problem: str
) -> None:
    with pytest.raises(ValueError, match=rf"^{problem}$"):
        boundaries(looks, alpha, horizon)


def test_the_horizon_is_the_last_look_unless_it_is_said() -> None:
    assert boundaries((6, 10), 0.05, 10) == boundaries((6, 10), 0.05)
    assert boundaries((6, 10), 0.05, 60)[-1] > boundaries((6, 10), 0.05)[-1]


@pytest.mark.parametrize(
    ("looks", "alpha", "horizon", "edges"),
    [
        (
            LOOKS,
            0.05,
            0,
            (4.27139074, 3.57331137, 3.13507729, 2.95718675, 2.66869926, 2.58689624, 2.40653718),
        ),
        (
            (3, 4, 5, 6, 7, 8),
            0.05,
            0,
            (6.22250237, 5.36860720, 4.47842256, 3.94919279, 3.62214198, 3.40421080),
        ),
        ((6, 7, 12, 13), 0.01, 0, (4.60021213, 4.85288878, 3.68687272, 3.80770745)),
        ((4, 6), 0.05, 12, (4.33530038, 3.73942330)),
    ],
)
def test_boundaries_stay_what_they_are_to_the_last_digit(
    looks: tuple[int, ...], alpha: float, horizon: int, edges: tuple[float, ...]
) -> None:
    """A change here changes verdicts. That they are right is shown by brute force."""
    assert boundaries(looks, alpha, horizon) == pytest.approx(edges, abs=2e-8)
