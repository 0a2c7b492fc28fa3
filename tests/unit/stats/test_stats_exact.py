"""The verdict on exact numbers, as a table of cases and as laws that hold for all numbers."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.workload import Direction, Metric, Mode
from ktrial.stats.verdict_rules import Arm, Claim, compare, exact_verdict, interval_verdict, verdict_of

LOWER = Metric(name="instructions", unit="instructions/operation", direction=Direction.LOWER)
HIGHER = Metric(name="rate", unit="1/s", direction=Direction.HIGHER)
OPPOSITE = {
    Verdict.BETTER: Verdict.WORSE,
    Verdict.WORSE: Verdict.BETTER,
    Verdict.EQUIVALENT: Verdict.EQUIVALENT,
    Verdict.INCONCLUSIVE: Verdict.INCONCLUSIVE,
}


def arm(label: str, *values: float, missing: str = "") -> Arm:
    return Arm(label, dict(enumerate(values)), missing)


def compared(
    baseline: tuple[float, ...], treatment: tuple[float, ...], margin: float = 0.01, metric: Metric = LOWER
) -> Comparison:
    return compare("fork", metric, Mode.EXACT_CLOCK, arm("A", *baseline), arm("B", *treatment), margin=margin)


@pytest.mark.parametrize(
    ("baseline", "treatment", "verdict"),
    [
        ((100.0,), (100.0,), Verdict.EQUIVALENT),
        ((0.0, 0.0), (4096.0, 8192.0), Verdict.WORSE),  # from nothing to something: beyond every margin
        ((4096.0,), (0.0,), Verdict.BETTER),
        ((0.0, 4096.0), (4096.0, 4096.0), Verdict.INCONCLUSIVE),
        ((-1.0,), (4096.0,), Verdict.INCONCLUSIVE),
        ((100.0, 100.0), (101.0, 101.0), Verdict.EQUIVALENT),  # the margin itself is inside
        ((100.0, 100.4), (100.2, 100.9), Verdict.EQUIVALENT),
        ((100.0, 100.0), (101.5, 101.5), Verdict.WORSE),
        ((101.5, 101.5), (100.0, 100.0), Verdict.BETTER),
        ((100.0, 102.0), (104.0, 102.0), Verdict.INCONCLUSIVE),  # +2 %, but each arm spreads by 2 %
        ((100.0, 100.0), (100.5, 101.5), Verdict.INCONCLUSIVE),  # reaches across the edge of the margin
        ((100.0, 104.0), (100.0, 104.0), Verdict.EQUIVALENT),  # the same numbers, whatever they are
        ((0.0, 104.0), (0.0, 104.0), Verdict.EQUIVALENT),
        ((100.0, 104.0), (104.0, 100.0), Verdict.INCONCLUSIVE),  # the same, but not under the same
        ((143394.0, 143400.0, 143397.0), (163150.0, 163155.0, 163149.0), Verdict.WORSE),
        ((0.0, 0.0), (0.0, 0.0), Verdict.EQUIVALENT),
        ((0.0, 0.0), (0.0, 3.0), Verdict.INCONCLUSIVE),
    ],
)
def test_the_verdict_follows_from_the_whole_interval(
    baseline: tuple[float, ...], treatment: tuple[float, ...], verdict: Verdict
) -> None:
    assert compared(baseline, treatment).verdict is verdict


ACROSS = "the interval reaches across the edge of the margin"


@pytest.mark.parametrize(
    ("baseline", "treatment", "margin", "reason"),
    [
        ((0.0, 4096.0), (4096.0, 4096.0), 0.01, "a ratio needs values above zero"),
        ((0.0, 0.0), (0.0, 3.0), 0.01, "a ratio needs values above zero"),
        ((100.0, 100.0), (100.5, 101.5), 0.01, f"{ACROSS} (1 %)"),
        ((100.0, 100.0), (100.0, 130.0), 0.125, f"{ACROSS} (12.5 %)"),
        ((100.0,), (), 0.01, "there are no numbers yet"),
        ((100.0,), (150.0,), 0.01, ""),
    ],
)
def test_what_is_inconclusive_says_why(
    baseline: tuple[float, ...], treatment: tuple[float, ...], margin: float, reason: str
) -> None:
    assert compared(baseline, treatment, margin).reason == reason


@pytest.mark.parametrize(
    ("baseline", "treatment", "lower", "higher"),
    [
        ((0.0, 0.0), (3.0, 4.0), Verdict.WORSE, Verdict.BETTER),
        ((3.0, 4.0), (0.0, 0.0), Verdict.BETTER, Verdict.WORSE),
        ((3.0, 4.0), (0.0, 1.0), Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
    ],
)
def test_from_nothing_to_something_and_back_is_judged_by_the_direction(
    baseline: tuple[float, ...], treatment: tuple[float, ...], lower: Verdict, higher: Verdict
) -> None:
    assert compared(baseline, treatment, metric=LOWER).verdict is lower
    assert compared(baseline, treatment, metric=HIGHER).verdict is higher
    assert compared(baseline, treatment).ratio is None


MOVED = (100.0, 105.0, 103.0)
"""What two perturbations do to a baseline."""


@pytest.mark.parametrize(
    ("baseline", "treatment", "low", "high", "verdict"),
    [
        # The same movement in both arms: the ratios decide, perturbation by perturbation.
        (MOVED, (103.0, 108.2, 106.0), 106 / 103, 108.2 / 105, Verdict.WORSE),
        (MOVED, (97.0, 101.9, 99.9), 99.9 / 103, 101.9 / 105, Verdict.BETTER),
        (MOVED, (100.2, 105.0, 103.1), 105 / 105, 100.2 / 100, Verdict.EQUIVALENT),
        (MOVED, (100.5, 106.2, 103.6), 100.5 / 100, 106.2 / 105, Verdict.INCONCLUSIVE),  # across the margin
        ((1000.0, 1300.0), (1200.0, 1550.0), 1550 / 1300, 1200 / 1000, Verdict.WORSE),
        # In one arm only: what moves it is all there is.
        ((100.0, 100.0, 100.0), (100.0, 104.0, 102.0), 1.0, 1.04, Verdict.INCONCLUSIVE),
        ((100.0, 104.0, 102.0), (100.0, 100.0, 100.0), 1 / 1.04, 1.0, Verdict.INCONCLUSIVE),
        ((100.0, 100.0, 100.0), (103.0, 107.0, 105.0), 1.03, 1.07, Verdict.WORSE),
        # Against each other, or without regard to each other: each arm's whole spread.
        (MOVED, (108.0, 104.0, 107.0), 104 / 105, 108 / 100, Verdict.INCONCLUSIVE),
        (MOVED, (112.0, 108.0, 106.5), 106.5 / 105, 112 / 100, Verdict.WORSE),
        # Every pair is above the margin, yet the pairs are further apart than the arms: no pairs.
        ((100.0, 104.0, 100.0), (107.0, 105.5, 103.0), 103 / 104, 107 / 100, Verdict.INCONCLUSIVE),
        # The ratios (1 and 2) are half as far apart as the baseline's numbers, which is not closer: no pairs.
        ((100.0, 400.0), (100.0, 800.0), 100 / 400, 800 / 100, Verdict.INCONCLUSIVE),
        # Other perturbations, or not all of them: nothing to pair.
        (MOVED, (103.0, 108.2), 103 / 105, 108.2 / 100, Verdict.INCONCLUSIVE),
    ],
)
def test_what_perturbations_do_to_both_arms_alike_is_not_their_difference(
    baseline: tuple[float, ...], treatment: tuple[float, ...], low: float, high: float, verdict: Verdict
) -> None:
    seen = compared(baseline, treatment)
    assert seen.low == pytest.approx(low)
    assert seen.high == pytest.approx(high)
    assert seen.verdict is verdict


@pytest.mark.parametrize(
    ("treatment", "verdict"),
    [
        (
            (125.0, 260.0),
            Verdict.INCONCLUSIVE,
        ),  # the first pair lies at the edge of the margin, not beyond it
        ((126.0, 260.0), Verdict.WORSE),
        ((125.0, 250.0), Verdict.EQUIVALENT),
        ((80.0, 150.0), Verdict.INCONCLUSIVE),
        ((79.0, 150.0), Verdict.BETTER),
    ],
)
def test_the_edge_of_the_margin_is_not_beyond_it(treatment: tuple[float, ...], verdict: Verdict) -> None:
    assert compared((100.0, 200.0), treatment, margin=0.25).verdict is verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.8, 1.25, Verdict.EQUIVALENT),  # the margin itself is inside
        (0.79, 1.0, Verdict.INCONCLUSIVE),
        (1.0, 1.26, Verdict.INCONCLUSIVE),
        (0.5, 2.0, Verdict.INCONCLUSIVE),
        (1.25, 1.5, Verdict.INCONCLUSIVE),
        (1.26, 1.5, Verdict.WORSE),
        (0.5, 0.8, Verdict.INCONCLUSIVE),
        (0.5, 0.79, Verdict.BETTER),
    ],
)
def test_an_interval_is_judged_by_where_it_lies(low: float, high: float, verdict: Verdict) -> None:
    assert interval_verdict(low, high, Direction.LOWER, 0.25) is verdict
    assert interval_verdict(low, high, Direction.HIGHER, 0.25) is OPPOSITE[verdict]


def test_other_perturbations_are_not_paired() -> None:
    below, above = Arm("A", {0: 100.0, 1: 105.0, 2: 103.0}), Arm("B", {0: 103.0, 3: 108.2, 4: 106.0})
    seen = compare("fork", LOWER, Mode.EXACT_CLOCK, below, above, margin=0.01)
    assert seen.low == pytest.approx(103 / 105)
    assert seen.high == pytest.approx(108.2 / 100)
    assert seen.verdict is Verdict.INCONCLUSIVE


def test_perturbations_that_move_the_arms_by_chance_seldom_look_like_a_change() -> None:
    """Pairs without the condition of `alike` would all lie on one side of 1 in one case of four."""
    drawn = np.exp(np.random.default_rng(1).normal(0, 0.05, (2000, 2, 3)))
    verdicts = [
        compared(tuple(map(float, below)), tuple(map(float, above)), margin=1e-9).verdict
        for below, above in drawn
    ]
    paired = np.mean([abs(np.sign(np.log(above / below)).sum()) == 3 for below, above in drawn])
    assert paired == pytest.approx(0.25, abs=0.03)
    assert np.mean([verdict is not Verdict.INCONCLUSIVE for verdict in verdicts]) == pytest.approx(
        0.13, abs=0.03
    )


def test_the_interval_spans_both_arms_spreads() -> None:
    seen = compared((102.0, 100.0), (110.0, 111.0))
    assert (seen.low, seen.high) == (110 / 102, 111 / 100)
    assert seen.ratio == pytest.approx(((110 * 111) / (100 * 102)) ** 0.5)
    assert seen.baseline_value == pytest.approx((100 * 102) ** 0.5)


def test_where_higher_is_better_more_is_better() -> None:
    assert compared((100.0,), (120.0,), metric=HIGHER).verdict is Verdict.BETTER
    assert compared((120.0,), (100.0,), metric=HIGHER).verdict is Verdict.WORSE


def test_equal_values_are_shown_as_they_are() -> None:
    seen = compared((398.0, 398.0, 398.0), (360.0, 360.0, 360.0))
    assert (seen.baseline_value, seen.value) == (398.0, 360.0)


def test_what_is_missing_is_the_reason_and_the_numbers_are_kept() -> None:
    seen = compare(
        "fork",
        LOWER,
        Mode.EXACT_CLOCK,
        arm("A", 100.0),
        arm("B", 150.0, missing="1 of 2 trials panicked"),
        margin=0.01,
    )
    assert (seen.verdict, seen.reason) == (Verdict.INCONCLUSIVE, "1 of 2 trials panicked")
    assert seen.ratio == 1.5


def test_what_is_incomparable_gets_no_ratio() -> None:
    seen = compare(
        "fork",
        LOWER,
        Mode.EXACT_CLOCK,
        arm("A", 100.0),
        arm("B", 150.0),
        margin=0.01,
        incomparable="a different QEMU build",
    )
    assert (seen.verdict, seen.reason) == (Verdict.INCONCLUSIVE, "a different QEMU build")
    assert (seen.ratio, seen.low, seen.high) == (None, None, None)
    assert (seen.baseline_value, seen.value) == (100.0, 150.0)


def test_an_arm_without_numbers_is_inconclusive() -> None:
    seen = compared((), (100.0,))
    assert (seen.verdict, seen.reason) == (Verdict.INCONCLUSIVE, "there are no numbers yet")
    assert (seen.baseline_value, seen.value, seen.ratio) == (None, 100.0, None)


values = st.lists(st.floats(0.001, 1e12), min_size=1, max_size=6).map(tuple)
margins = st.floats(0.0001, 0.5)


@given(values, values, margins)
def test_exchanging_the_arms_exchanges_better_and_worse_and_inverts_the_ratio(
    below: tuple[float, ...], above: tuple[float, ...], margin: float
) -> None:
    forth, back = compared(below, above, margin), compared(above, below, margin)
    assert back.verdict is OPPOSITE[forth.verdict]
    assert forth.ratio is not None
    assert back.ratio == pytest.approx(1 / forth.ratio)
    (low, _), (_, high) = forth.reach, back.reach
    assert low is not None
    assert high == pytest.approx(1 / low)


@given(values, values, margins)
def test_turning_the_direction_exchanges_better_and_worse(
    below: tuple[float, ...], above: tuple[float, ...], margin: float
) -> None:
    low, high = compared(below, above, margin), compared(below, above, margin, HIGHER)
    assert high.verdict is OPPOSITE[low.verdict]


@given(values, values, margins, st.integers(-20, 20))
def test_scaling_both_arms_changes_nothing(
    below: tuple[float, ...], above: tuple[float, ...], margin: float, power: int
) -> None:
    plain = compared(below, above, margin)
    scaled = compared(
        tuple(value * 2.0**power for value in below), tuple(value * 2.0**power for value in above), margin
    )
    assert scaled.verdict is plain.verdict
    assert (scaled.low, scaled.high) == (plain.low, plain.high)
    assert scaled.ratio == pytest.approx(plain.ratio)


@given(values, margins)
def test_an_arm_against_itself_has_a_ratio_of_exactly_1_and_no_change(
    same: tuple[float, ...], margin: float
) -> None:
    seen = compared(same, same, margin)
    assert (seen.ratio, *seen.reach) == (1.0, 1.0, 1.0)
    assert (seen.low is None) == (len(same) == 1)
    assert seen.verdict is Verdict.EQUIVALENT


@pytest.mark.parametrize(
    ("below", "above", "interval", "said"),
    [
        ((100.0,), (114.3,), (None, None), "one perturbation: no interval"),
        ((100.0,), (100.0,), (None, None), "one perturbation: no interval"),
        ((100.0, 100.0), (150.0, 150.0), (1.5, 1.5), ""),
        ((100.0, 0.0), (114.3, 2.0), (None, None), ""),
    ],
)
def test_one_perturbation_has_a_ratio_and_no_interval(
    below: tuple[float, ...], above: tuple[float, ...], interval: tuple[float | None, ...], said: str
) -> None:
    seen = compared(below, above)
    assert (seen.low, seen.high) == interval
    assert seen.no_interval == said


@given(values, st.floats(0.5, 2.0), margins)
def test_what_a_change_multiplies_alike_is_decided_however_wide_the_spread(
    same: tuple[float, ...], factor: float, margin: float
) -> None:
    assume(abs(math.log(factor)) > 1.001 * math.log1p(margin))
    seen = compared(same, tuple(value * factor for value in same), margin)
    assert seen.verdict is (Verdict.WORSE if factor > 1 else Verdict.BETTER)


@given(values, values)
def test_the_order_of_perturbations_changes_nothing(
    below: tuple[float, ...], above: tuple[float, ...]
) -> None:
    assert compared(below, above) == compared(below[::-1], above[::-1])


@given(values, values)
def test_the_ratio_lies_in_its_interval(below: tuple[float, ...], above: tuple[float, ...]) -> None:
    seen = compared(below, above)
    low, high = seen.reach
    assert low is not None
    assert high is not None
    assert seen.ratio is not None
    assert low * (1 - 1e-12) <= seen.ratio <= high * (1 + 1e-12)


@given(st.lists(st.tuples(st.floats(1, 1e9), st.floats(1, 1e9)), min_size=1, max_size=6))
def test_every_paired_ratio_lies_in_the_interval(pairs: list[tuple[float, float]]) -> None:
    seen = compared(tuple(b for b, _ in pairs), tuple(t for _, t in pairs))
    assume(seen.low is not None)
    assert seen.low is not None
    assert seen.high is not None
    assert all(seen.low <= t / b <= seen.high for b, t in pairs)


@given(values, values, margins)
def test_a_change_is_beyond_the_margin_under_every_perturbation(
    below: tuple[float, ...], above: tuple[float, ...], margin: float
) -> None:
    seen = compared(below, above, margin)
    if seen.verdict is Verdict.WORSE:
        assert all(t > b for b, t in zip(below, above, strict=False))
        assert min(above) > max(below) or len(below) == len(above)
        low, _ = seen.reach
        assert low is not None
        assert low >= (1 + margin) * (1 - 1e-12)


@pytest.mark.parametrize(
    ("claim", "lower_is_better", "higher_is_better"),
    [
        (Claim.ABOVE, Verdict.WORSE, Verdict.BETTER),
        (Claim.BELOW, Verdict.BETTER, Verdict.WORSE),
        (Claim.EQUIVALENT, Verdict.EQUIVALENT, Verdict.EQUIVALENT),
        (Claim.NONE, Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
    ],
)
def test_what_a_claim_means_depends_on_the_direction(
    claim: Claim, lower_is_better: Verdict, higher_is_better: Verdict
) -> None:
    assert verdict_of(claim, Direction.LOWER) is lower_is_better
    assert verdict_of(claim, Direction.HIGHER) is higher_is_better


@pytest.mark.parametrize("treatment", [100.0, 100.5, 150.0, 50.0])
def test_what_is_decided_needs_no_reason(treatment: float) -> None:
    verdict, reason = exact_verdict(
        {0: 100.0, 1: 101.0}, {0: treatment, 1: treatment * 1.01}, Direction.LOWER, 0.01
    )
    assert (verdict is not Verdict.INCONCLUSIVE, reason) == (True, "")
