"""What verdicts can be about: all trials together, or the slow ones; numbers between two ends; shares."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize, stats
from tests.support.making import RATE, SECONDS
from tests.support.runs_of_tests import examples

from ktrial.model.comparison import Estimand, Verdict
from ktrial.model.workload import Metric
from ktrial.stats.sequential.design import BlockedMetric, SequentialDesign, fewest_blocks, usual_looks
from ktrial.stats.sequential.estimands import (
    PairedArms,
    fisher_p,
    quantile,
    ratio_of_means,
    spikes,
    tail_interval,
    total_interval,
    unseen_share,
)
from ktrial.stats.sequential.interim_analysis import confirm, look
from ktrial.stats.sequential.repeated_intervals import first_claims
from ktrial.stats.verdict_rules import Claim

Array = NDArray[np.float64]
TOTAL = SequentialDesign(estimand=Estimand.TOTAL).up_to(60)
TAIL = SequentialDesign(estimand=Estimand.TAIL).up_to(60)


def known(baseline: Array, treatment: Array, *, higher_is_worse: bool = True) -> PairedArms:
    both = np.stack([baseline, treatment], axis=-2)
    return PairedArms(both, both, higher_is_worse)


def edge(blocks: int, level: float = 0.05) -> Array:
    return np.asarray(stats.t.isf(level / 2, blocks - 1))


def test_the_ends_of_the_total_are_where_the_t_test_of_t_minus_r_b_is_at_its_level() -> None:
    """Fieller: of paired symmetric numbers, by scipy's t test and root finder."""
    rng = np.random.default_rng(3)
    half = rng.normal(0, 1, (2, 20))
    baseline, treatment = 100 + np.append(half[0], -half[0]), 120 + 5 * np.append(half[1], -half[1])
    ends = total_interval(known(baseline, treatment), edge(40))

    def beyond(ratio: float) -> float:
        return float(stats.ttest_1samp(treatment - ratio * baseline, 0.0).pvalue) - 0.05

    middle = treatment.mean() / baseline.mean()
    roots = [optimize.brentq(beyond, middle * far, middle) for far in (0.9, 1.1)]
    assert np.exp(ends) == pytest.approx(roots, rel=1e-6)


def test_a_skewed_arm_makes_the_end_beyond_its_spikes_longer_and_no_end_shorter() -> None:
    rng = np.random.default_rng(4)
    baseline = rng.normal(100, 1, 60)
    treatment = np.where(np.arange(60) < 3, 200.0, rng.normal(100, 1, 60))
    low, high = total_interval(known(baseline, treatment), edge(60))
    middle, error, _ = ratio_of_means(baseline, treatment)
    assert high - middle > 1.5 * edge(60) * error
    assert middle - low == pytest.approx(edge(60) * error, rel=0.15)


def test_a_mean_that_one_trial_makes_has_no_upper_end() -> None:
    baseline = np.array([1.0] * 19 + [1000.0])
    low, high = total_interval(known(baseline, np.full(20, 2.0)), edge(20))
    assert high == math.inf
    assert low < math.log(2 / baseline.mean())


@pytest.mark.parametrize(("blocks", "level"), [(100, 0.05), (60, 0.05), (1000, 0.01)])
def test_order_statistics_bound_a_quantile_as_the_binomial_distribution_has_it(
    blocks: int, level: float
) -> None:
    """Of two arms with two ends, each end has a quarter of the level."""
    values = np.exp(np.arange(blocks) / 1000)
    ends = tail_interval(known(np.ones(blocks), values), edge(blocks, level))
    lower, upper = (round(float(end) * 1000) for end in ends)
    of_end = level / 4
    assert stats.binom.cdf(lower, blocks, 0.9) <= of_end < stats.binom.cdf(lower + 1, blocks, 0.9)
    assert stats.binom.sf(upper, blocks, 0.9) <= of_end < stats.binom.sf(upper - 1, blocks, 0.9)


def test_of_few_blocks_the_slowest_is_no_bound_of_the_tail() -> None:
    """0.9^20 is 12 %: that is how often all of twenty lie below the quantile."""
    values = np.exp(np.arange(20) / 1000)
    low, high = tail_interval(known(np.ones(20), values), edge(20))
    assert (float(low), float(high)) == (-math.inf, math.inf)


@given(st.integers(0, 10_000), st.sampled_from([total_interval, tail_interval]), st.booleans())
@settings(max_examples=examples(40))
def test_exchanging_the_arms_exchanges_the_ends(
    seed: int, interval: Callable[[PairedArms, Array], tuple[Array, Array]], higher_is_worse: bool
) -> None:
    a, b = np.random.default_rng(seed).lognormal(0, 0.3, (2, 60))
    arms, exchanged = (known(*pair, higher_is_worse=higher_is_worse) for pair in ((a, b), (b, a)))
    (low, high), (other_low, other_high) = interval(arms, edge(60)), interval(exchanged, edge(60))
    assert float(other_low) == pytest.approx(-float(high), abs=1e-9)
    assert float(other_high) == pytest.approx(-float(low), abs=1e-9)


@given(st.integers(0, 10_000), st.floats(1e-3, 1e3))
@settings(max_examples=examples(40))
def test_neither_a_unit_nor_the_order_of_blocks_matters(seed: int, unit: float) -> None:
    rng = np.random.default_rng(seed)
    arms = rng.lognormal(0, 0.3, (2, 60))
    shuffled = unit * arms[:, rng.permutation(60)]
    for interval in (total_interval, tail_interval):
        ends, others = (np.array(interval(known(*pair), edge(60))) for pair in (arms, shuffled))
        assert others == pytest.approx(ends, abs=1e-9)


def test_what_lies_beyond_a_limit_opens_the_high_end_of_the_total() -> None:
    values = np.random.default_rng(5).normal(100, 1, (2, 30))
    limited = values.copy()
    limited[1, :3] = np.inf
    low, high = total_interval(PairedArms(values, limited), edge(30))
    of_known = total_interval(PairedArms(values, values), edge(30))
    assert high == math.inf
    assert float(low) == pytest.approx(float(of_known[0]))


@pytest.mark.parametrize(
    ("failures", "trials"), [((0, 4), (10, 10)), ((1, 9), (11, 13)), ((0, 0), (6, 6)), ((5, 5), (60, 60))]
)
def test_failures_are_compared_by_fisher_s_exact_test(
    failures: tuple[int, int], trials: tuple[int, int]
) -> None:
    table = [[lost, count - lost] for lost, count in zip(failures, trials, strict=True)]
    assert fisher_p(failures, trials) == pytest.approx(float(stats.fisher_exact(table).pvalue), rel=1e-9)


@pytest.mark.parametrize(
    ("blocks", "seen", "share"),
    [(6, 0, 0.3930), (29, 0, 0.0981), (60, 0, 0.0487), (6, 6, 1.0), (10, 1, 0.3942), (60, 2, 0.1012)],
)
def test_the_share_that_is_not_ruled_out(blocks: int, seen: int, share: float) -> None:
    """1 - 0.05^(1/n), and Clopper and Pearson's upper bound."""
    assert unseen_share(blocks, seen) == pytest.approx(share, abs=5e-5)
    if seen < blocks:
        assert stats.binom.cdf(seen, blocks, unseen_share(blocks, seen)) == pytest.approx(0.05)


def test_spikes_lie_far_off_towards_worse() -> None:
    values = np.array([100.0, 101, 99, 100, 100, 200, 50, math.nan])
    assert np.flatnonzero(spikes(values)).tolist() == [5]
    assert np.flatnonzero(spikes(values, higher_is_worse=False)).tolist() == [6]
    assert not spikes(np.array([100.0, 101, 99, 100, 104])).any(), "4 % is not worth a word"


def test_the_quantile_is_one_of_the_values_and_towards_worse() -> None:
    values = np.arange(1.0, 21)
    assert [float(quantile(values, worse)) for worse in (True, False)] == [18.0, 2.0]


@pytest.mark.parametrize(("design", "fewest"), [(TOTAL, 30), (TAIL, 60)])
def test_no_verdict_comes_before_spikes_had_a_chance_to_be_met(design: SequentialDesign, fewest: int) -> None:
    rng = np.random.default_rng(6)
    values = {"A": rng.normal(100, 1, 120), "B": rng.normal(150, 1, 120)}

    def after(blocks: int) -> BlockedMetric:
        return BlockedMetric(
            "w", SECONDS, "A", {label: tuple(map(float, row[:blocks])) for label, row in values.items()}
        )

    (before,), (at,) = (confirm([after(blocks)], design).comparisons for blocks in (fewest - 20, fewest))
    assert before.verdict is Verdict.INCONCLUSIVE
    assert f"it takes {fewest}" in before.reason
    assert at.verdict is Verdict.WORSE
    assert at.estimand is design.estimand
    assert fewest_blocks(design.estimand) == fewest
    assert design.looks[0] == fewest
    assert usual_looks(40, 60) == (40,)
    assert look([after(15)], design).next_look == fewest


@pytest.mark.parametrize(
    ("estimand", "ratio"), [(Estimand.TYPICAL, 0.94), (Estimand.TOTAL, 1.034), (Estimand.TAIL, 1.88)]
)
@pytest.mark.parametrize(("metric", "power"), [(SECONDS, 1), (RATE, -1)])
def test_of_the_same_trials_each_estimand_says_what_it_is_about(
    estimand: Estimand, ratio: float, metric: Metric, power: int
) -> None:
    """Typically 6 % faster; 1 trial in 8 takes twice as long, of rates gives half."""
    rng = np.random.default_rng(7)
    noise = np.exp(0.002 * rng.standard_normal((2, 240)))
    noise[1, ::8] *= 2
    noise[1] *= 0.94
    values = {label: tuple(map(float, 100 * row**power)) for label, row in zip("AB", noise, strict=True)}
    measured = BlockedMetric("w", metric, "A", values)
    (comparison,) = confirm([measured], SequentialDesign(estimand=estimand)).comparisons
    if estimand is Estimand.TOTAL:
        ratio = 0.94 * (1 + 1 / 8) if power == 1 else (1 - 0.5 / 8) / 0.94
    elif power == -1:
        ratio = 1 / ratio
    assert comparison.ratio == pytest.approx(ratio, rel=0.01)
    assert comparison.value is not None
    assert comparison.baseline_value is not None
    assert comparison.value / comparison.baseline_value == pytest.approx(ratio, rel=0.01)


# False claims, with arms that are unlike in all but what the verdict is about.

STUDIES = 400
MOST = 0.055 + 2 * math.sqrt(0.05 * 0.95 / STUDIES)


def normal(rng: np.random.Generator, sd: float = 0.01) -> Array:
    return np.exp(sd * rng.standard_normal((STUDIES, 60)))


def spiked(rng: np.random.Generator, share: float, size: float, sd: float = 0.01) -> Array:
    return normal(rng, sd) * np.where(rng.random((STUDIES, 60)) < share, 1 + size, 1.0) / (1 + share * size)


UNLIKE: dict[str, Callable[[np.random.Generator], tuple[Array, Array]]] = {
    "normal": lambda rng: (normal(rng), normal(rng, 0.03)),
    "lognormal beside none": lambda rng: (
        np.ones((STUDIES, 60)) + 1e-3 * rng.standard_normal((STUDIES, 60)),
        np.exp(0.8 * rng.standard_normal((STUDIES, 60)) - 0.32),
    ),
    "exponential beside normal": lambda rng: (
        normal(rng),
        0.9 + 0.1 * rng.standard_exponential((STUDIES, 60)),
    ),
    "1 trial in 10 twice": lambda rng: (normal(rng), spiked(rng, 0.1, 1.0)),
    "3 trials in 10 twice": lambda rng: (normal(rng), spiked(rng, 0.3, 1.0)),
    "spikes in both": lambda rng: (spiked(rng, 0.05, 1.0), spiked(rng, 0.05, 1.0)),
    "t, 3 degrees of freedom": lambda rng: (
        np.exp(0.01 * rng.standard_t(3, (STUDIES, 60))),
        np.exp(0.01 * rng.standard_t(3, (STUDIES, 60))),
    ),
}


@pytest.mark.parametrize("noise", UNLIKE.values(), ids=UNLIKE.keys())
def test_arms_with_equal_means_are_rarely_told_apart_in_total(
    noise: Callable[[np.random.Generator], tuple[Array, Array]],
) -> None:
    arms = known(*noise(np.random.default_rng(8)))
    claims, _ = first_claims(arms, replace(TOTAL, margin=1e-9))
    assert float(np.isin(claims, (Claim.ABOVE, Claim.BELOW)).mean()) <= MOST


@pytest.mark.parametrize("noise", UNLIKE.values(), ids=UNLIKE.keys())
def test_arms_further_apart_than_the_margin_are_rarely_equivalent(
    noise: Callable[[np.random.Generator], tuple[Array, Array]],
) -> None:
    baseline, treatment = noise(np.random.default_rng(9))
    arms = known(baseline, 1.0101 * treatment)
    claims, _ = first_claims(arms, TOTAL)
    assert float((claims == Claim.EQUIVALENT).mean()) <= MOST


@pytest.mark.parametrize("noise", UNLIKE.values(), ids=UNLIKE.keys())
def test_arms_with_equal_quantiles_are_rarely_told_apart_by_their_tails(
    noise: Callable[[np.random.Generator], tuple[Array, Array]],
) -> None:
    baseline, treatment = noise(np.random.default_rng(10))
    treatment = treatment * np.quantile(baseline, 0.9) / np.quantile(treatment, 0.9)
    claims, _ = first_claims(known(baseline, treatment), replace(TAIL, margin=1e-9))
    assert float(np.isin(claims, (Claim.ABOVE, Claim.BELOW)).mean()) <= MOST
    twice, _ = first_claims(known(baseline, 4 * treatment), TAIL)
    assert float((twice == Claim.ABOVE).mean()) > 0.5
