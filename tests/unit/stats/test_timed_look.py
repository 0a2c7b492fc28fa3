"""A look at a study: verdicts, when it goes on, several treatments, what is odd about the numbers."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.support.making import DESIGN, OPEN_ENDED, RATE, SECONDS, study, until
from tests.support.runs_of_tests import by_night, examples

from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import Metric, Mode
from ktrial.stats.sequential.data_warnings import max_t_permutation, permutation_p
from ktrial.stats.sequential.design import BlockedMetric, SequentialDesign
from ktrial.stats.sequential.familywise import benjamini_hochberg, holm, judge, repeated_p
from ktrial.stats.sequential.interim_analysis import confirm, look
from ktrial.stats.sequential.repeated_intervals import first_claims
from ktrial.stats.verdict_rules import Claim


@pytest.mark.parametrize(
    ("effect", "metric", "verdict"),
    [
        (0.05, SECONDS, Verdict.WORSE),
        (-0.05, SECONDS, Verdict.BETTER),
        (0.05, RATE, Verdict.BETTER),
        (-0.05, RATE, Verdict.WORSE),
        (0.0, SECONDS, Verdict.EQUIVALENT),
    ],
)
def test_verdicts_go_by_the_metric_s_direction(effect: float, metric: Metric, verdict: Verdict) -> None:
    seen = look([study(effect, metric=metric)], DESIGN)
    (comparison,) = seen.comparisons
    assert comparison.verdict is verdict
    assert comparison.mode is Mode.TIMED
    assert seen.over
    assert comparison.ratio == pytest.approx(1 + effect, abs=0.01)
    assert comparison.low is not None
    assert comparison.high is not None
    assert comparison.low < 1 + effect < comparison.high


def test_the_ratio_and_the_values_are_those_of_the_typical_block() -> None:
    """Medians of the means of every two logarithms, and of each with itself."""
    measured = study(0.03)
    (comparison,) = look([measured], DESIGN).comparisons
    logs = {label: np.log(values) for label, values in measured.values.items()}
    for number, of_blocks in (
        (comparison.ratio, logs["B"] - logs["A"]),
        (comparison.baseline_value, logs["A"]),
        (comparison.value, logs["B"]),
    ):
        pairs = [(x + y) / 2 for at, x in enumerate(of_blocks) for y in of_blocks[at:]]
        assert number == pytest.approx(math.exp(np.median(pairs)), rel=1e-12)


def test_between_two_looks_nothing_is_decided() -> None:
    complete = study(0.012, blocks=60)
    reported = [look([until(complete, blocks)], DESIGN) for blocks in range(1, 61)]
    decided = [at for at, (a, b) in enumerate(pairwise(reported), start=2) if a.over != b.over]
    assert set(decided) <= set(DESIGN.looks)
    assert reported[0].next_look == 6
    assert reported[6].next_look == 10


@given(st.integers(0, 10_000), st.integers(1, 60), st.sampled_from([0.0, 0.01, -0.02]))
@settings(max_examples=examples(40))
def test_the_verdict_that_ended_a_study_stands_whatever_blocks_come_later(
    seed: int, blocks: int, effect: float
) -> None:
    complete = study(effect, seed=seed)
    early, late = look([until(complete, blocks)], DESIGN), look([complete], DESIGN)
    if early.over:
        assert early.comparisons[0].verdict is late.comparisons[0].verdict


def test_a_verdict_never_contradicts_its_own_interval() -> None:
    """One treatment seems to differ at the first look, the other keeps the study running: it is not so."""
    spread = 0.01 * np.array([1.0, -1.0] * 3)
    first, later = 0.1 + spread, np.full(4, -0.2) + 0.01 * np.array([1.0, -1.0, 1.0, -1.0])
    misled, open_ = np.concatenate([first, later]), 0.012 * np.array([1.0, -1.0, 2.0, -2.0, 3.0] * 2)
    early, late = (judge((misled[:blocks], open_[:blocks]), DESIGN)[0] for blocks in (6, 10))
    assert (early.claim, early.withdrawn) == (Claim.ABOVE, False)
    assert (late.claim, late.withdrawn, late.decided_at) == (Claim.NONE, True, 6)
    assert late.low < 0 < late.high


@given(st.integers(0, 10_000))
@settings(max_examples=examples(30))
def test_one_study_is_judged_as_thousands_at_once_are(seed: int) -> None:
    values = np.random.default_rng(seed).normal(0.004, 0.014, 60)
    (finding,) = judge([values], DESIGN)
    claims, taken = first_claims(values[None, :], DESIGN)
    assert finding.claim == claims[0]
    assert finding.decided_at in (None, taken[0])


@given(st.integers(0, 10_000), st.floats(-0.02, 0.02))
@settings(max_examples=examples(30))
def test_exchanging_the_arms_exchanges_better_and_worse_and_nothing_else(seed: int, effect: float) -> None:
    measured = study(effect, seed=seed)
    second = BlockedMetric("fork", SECONDS, "B", measured.values)
    (first,), (two,) = look([measured], DESIGN).comparisons, look([second], DESIGN).comparisons
    exchanged = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}
    assert two.verdict is exchanged.get(first.verdict, first.verdict)
    assert first.ratio is not None
    assert two.ratio == pytest.approx(1 / first.ratio, rel=1e-9)


def test_a_study_without_effect_in_wide_noise_ends_inconclusive() -> None:
    (comparison,) = look([study(0.0, sd=0.1)], DESIGN).comparisons
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert "holds both 1 and more than the margin (1 %)" in comparison.reason


def test_when_the_budget_ends_between_two_looks_there_is_a_last_one() -> None:
    cut = until(study(0.0, sd=0.002), 12)
    assert look([until(cut, 5)], DESIGN, final=True).comparisons[0].low is not None
    assert look([cut], DESIGN, final=True).over
    assert look([until(study(0.3), 2)], DESIGN, final=True).comparisons[0].low is None


def test_a_last_look_between_two_does_not_cost_more_error_than_there_is() -> None:
    values = np.random.default_rng(2).normal(0, 1, (20_000, 12))
    looked = DESIGN.looked_at(12, final=True)
    assert looked == (6, 10, 12)
    edges = DESIGN.edges(1, looked)
    t = [np.abs(values[:, :n].mean(1)) / values[:, :n].std(1, ddof=1) * math.sqrt(n) for n in looked]
    crossed = np.any([at_look > edge for at_look, edge in zip(t, edges, strict=True)], axis=0).mean()
    assert crossed <= 0.05 * math.log1p((math.e - 1) * 12 / 60) + 0.002


def test_the_open_ended_mode_looks_after_every_block_and_has_no_end() -> None:
    complete = study(0.02, blocks=40)
    first = next(blocks for blocks in range(1, 41) if look([until(complete, blocks)], OPEN_ENDED).over)
    assert 3 < first < 40
    assert look([until(complete, first - 1)], OPEN_ENDED).next_look == first
    assert look([study(0.0, sd=0.1, blocks=200)], OPEN_ENDED).next_look == 201


def test_several_treatments_share_the_error_and_the_study_goes_on_for_the_last() -> None:
    measured = study(0.3, 0.009, blocks=10)
    seen = look([measured], DESIGN)
    assert [comparison.verdict for comparison in seen.comparisons] == [Verdict.WORSE, Verdict.INCONCLUSIVE]
    assert seen.next_look == 15


@pytest.mark.nightly
def test_no_false_difference_in_a_family_of_five_in_more_than_one_study_in_twenty() -> None:
    rng = np.random.default_rng(5)
    studies, false = 600, 0
    narrow = SequentialDesign(margin=1e-9, looks=(6, 10, 15))
    for _ in range(studies):
        logs = rng.normal(0, 0.01, (6, 15))
        verdict = judge(list(logs[1:] - logs[0]), narrow)
        false += any(finding.claim in (Claim.ABOVE, Claim.BELOW) for finding in verdict)
    assert false / studies <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / studies)


def test_each_difference_that_is_found_makes_room_for_the_next() -> None:
    """Holm: the third of three is tested at the whole error once the other two are found."""
    rng = np.random.default_rng(6)
    clear = rng.normal(0.05, 0.005, 60)
    doubtful = rng.normal(0, 0.02, 60)
    doubtful += 2.2 * doubtful.std(ddof=1) / math.sqrt(60) - doubtful.mean()
    alone = SequentialDesign(margin=0.001, looks=(60,))
    assert judge([doubtful, doubtful, doubtful], alone)[0].claim is not Claim.ABOVE
    assert judge([clear, clear, doubtful], alone)[2].claim is Claim.ABOVE


@pytest.mark.nightly
def test_exploratory_metrics_keep_no_study_running_and_are_adjusted() -> None:
    primary = study(0.05)
    doubtful = [study(0.0055, seed=seed, primary=False, workload=f"w{seed}") for seed in range(20)]
    alone = [look([primary, blocked], DESIGN).comparisons[1].verdict for blocked in doubtful]
    together = look([primary, *doubtful], DESIGN)
    assert together.over
    withdrawn = [
        comparison for comparison in together.comparisons[1:] if "exploratory metrics" in comparison.reason
    ]
    assert all(comparison.verdict is Verdict.INCONCLUSIVE for comparison in withdrawn)
    assert len(withdrawn) < len(alone)
    clear = study(0.3)
    assert look([until(clear, 10), until(study(0.0, sd=0.2, primary=False), 10)], DESIGN).over


def test_a_repeated_p_value_is_the_error_at_which_the_claim_would_just_be_made() -> None:
    values = np.random.default_rng(7).normal(0.006, 0.014, 60)
    p = repeated_p(values, DESIGN)
    for factor, claimed in ((1.15, True), (0.85, False)):
        design = SequentialDesign(margin=1e-9, alpha=p * factor)
        assert (judge([values], design)[0].claim is Claim.ABOVE) is claimed


@pytest.mark.nightly
def test_repeated_p_values_are_valid() -> None:
    values = np.random.default_rng(8).normal(0, 1, (2000, 15))
    looks = SequentialDesign(looks=(6, 10, 15))
    p = np.array([repeated_p(value, looks) for value in values])
    for level in (0.01, 0.05, 0.2):
        assert (p <= level).mean() <= level + 3 * math.sqrt(level / 2000)


@given(st.lists(st.floats(1e-12, 1.0), min_size=1, max_size=12))
@settings(max_examples=examples(20))
def test_holm_and_benjamini_hochberg_are_what_their_papers_say(p: list[float]) -> None:
    assert benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p), abs=1e-12)
    adjusted = holm(p)
    for at, value in enumerate(p):
        before = [other for other in p if other <= value]
        steps = (min(1.0, (len(p) - sum(other < mine for other in p)) * mine) for mine in before)
        assert adjusted[at] == pytest.approx(max(steps), abs=1e-12)


@pytest.mark.nightly  # statsmodels takes three seconds to load
@given(st.lists(st.floats(1e-12, 1.0), min_size=1, max_size=12))
@settings(max_examples=examples(20))
def test_holm_and_benjamini_hochberg_agree_with_statsmodels(p: list[float]) -> None:
    from statsmodels.stats.multitest import multipletests

    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-12)
    assert benjamini_hochberg(p) == pytest.approx(multipletests(p, method="fdr_bh")[1], abs=1e-12)


@pytest.mark.parametrize("independent", [True, False])
def test_equivalence_at_one_look_is_claimed_only_where_two_one_sided_tests_claim_it(
    independent: bool,
) -> None:
    """Those of Student know nothing of far blocks, or of neighbours that are alike."""
    design = SequentialDesign(margin=0.01, independent=independent)
    mine, theirs = 0, 0
    for seed in range(by_night(40, 20)):
        measured = study(0.002, blocks=20, sd=0.006, seed=seed)
        (comparison,) = confirm([measured], design).comparisons
        logs = {label: np.log(values) for label, values in measured.values.items()}
        ratios, margin = logs["B"] - logs["A"], math.log(1.01)
        above = stats.ttest_1samp(ratios, -margin, alternative="greater").pvalue
        p = max(above, stats.ttest_1samp(ratios, margin, alternative="less").pvalue)
        assert p < 0.025 or comparison.verdict is not Verdict.EQUIVALENT
        mine, theirs = mine + (comparison.verdict is Verdict.EQUIVALENT), theirs + (p < 0.025)
    assert mine >= (0.8 if independent else 0.5) * theirs


def test_the_permutation_test_finds_the_one_treatment_that_differs() -> None:
    p_value = permutation_p(study(0.0, 0.03, 0.0, blocks=20))
    assert p_value["C"] == 0.0001
    assert min(p_value["B"], p_value["D"]) > 0.05


def test_the_permutation_test_is_exact_for_one_treatment_in_few_blocks() -> None:
    """Five blocks, all five ratios above 1: of the 32 ways to exchange, two are as extreme."""
    logs = np.array([[0.0, 0.9], [0.0, 1.0], [0.0, 1.1], [0.0, 1.05], [0.0, 0.95]])
    assert max_t_permutation(logs, draws=40_000)[0] == pytest.approx(2 / 32, abs=0.005)


def test_below_six_blocks_no_difference_stands_however_large() -> None:
    """With five blocks no sign-flip test can find anything at 5 %: 2 of 32 is the least."""
    few, many = (confirm([study(0.5, blocks=blocks)], DESIGN).comparisons[0] for blocks in (5, 6))
    assert (few.verdict, many.verdict) == (Verdict.INCONCLUSIVE, Verdict.WORSE)
    assert few.low == 1.0


def test_six_blocks_of_which_one_lies_on_the_other_side_show_no_difference() -> None:
    differences = np.array([0.2, 0.21, 0.19, 0.2, 0.2, -0.001])
    values = {"A": (100.0,) * 6, "B": tuple(float(value) for value in 100 * np.exp(differences))}
    wide = SequentialDesign(margin=0.01, alpha=0.2, independent=True)
    (comparison,) = confirm([BlockedMetric("fork", SECONDS, "A", values)], wide).comparisons
    assert (comparison.verdict, comparison.low) == (Verdict.INCONCLUSIVE, 1.0)


def test_a_difference_that_only_the_normal_distribution_carries_is_told() -> None:
    """With six blocks no permutation test can find anything at 1 %: 2 of 64 is the least."""
    strict = SequentialDesign(margin=0.01, alpha=0.01)
    few, many = (confirm([study(0.5, blocks=blocks)], strict) for blocks in (6, 12))
    assert few.comparisons[0].verdict is many.comparisons[0].verdict is Verdict.WORSE
    of_few = [warning.kind for warning in few.warnings]
    assert of_few == [WarningKind.RARE_TRIALS_UNSEEN, WarningKind.PERMUTATION_DISAGREES]
    assert [warning.kind for warning in many.warnings] == [WarningKind.RARE_TRIALS_UNSEEN]


def test_the_permutation_test_is_right_when_nothing_differs() -> None:
    rng = np.random.default_rng(9)
    p = [
        max_t_permutation(rng.standard_t(2, (8, 4)), draws=199, seed=seed).min()
        for seed in range(by_night(400, 200))
    ]
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + 3 * math.sqrt(0.05 / len(p))


def test_values_that_are_not_above_zero_have_no_ratio() -> None:
    measured = BlockedMetric("w", SECONDS, "A", {"A": (1.0,) * 10, "B": (1.0,) * 9 + (0.0,)})
    seen = look([measured], DESIGN)
    assert seen.over, "no further block can help"
    assert seen.comparisons[0].reason == "a ratio needs values above zero"


def test_treatments_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="one value a block"):
        BlockedMetric("w", SECONDS, "A", {"A": (1.0,), "B": (1.0, 2.0)})
    with pytest.raises(ValueError, match="baseline C"):
        BlockedMetric("w", SECONDS, "C", {"A": (1.0,)})


def failing(measured: BlockedMetric, label: str, blocks: int) -> BlockedMetric:
    """The same; in the first blocks the treatment's trial failed."""
    values = (math.nan,) * blocks + measured.values[label][blocks:]
    failed = tuple(block < blocks for block in range(measured.blocks))
    return replace(measured, values={**measured.values, label: values}, failed={label: failed})


def test_a_failed_trial_is_the_worst_outcome_and_told() -> None:
    complete = study(0.05, blocks=20)
    seen = look([failing(complete, "B", 2)], DESIGN)
    warned = [warning for warning in seen.warnings if warning.kind is WarningKind.FAILED_TRIALS]
    assert "B: 2 of 20" in warned[0].text
    (before,), (after,) = look([complete], DESIGN).comparisons, seen.comparisons
    assert before.ratio is not None
    assert after.ratio is not None
    assert after.ratio > before.ratio


@pytest.mark.parametrize(("metric", "infinity"), [(SECONDS, math.inf), (RATE, -math.inf)])
def test_a_failed_trial_has_the_worst_rank_whichever_arm_it_is_in(metric: Metric, infinity: float) -> None:
    complete = study(0.0, metric=metric, blocks=8)
    of_treatment, of_baseline = failing(complete, "B", 2), failing(complete, "A", 2)
    assert of_treatment.arms("B").log_ratios[0][:2].tolist() == [infinity, infinity]
    assert of_baseline.arms("B").log_ratios[0][:2].tolist() == [-infinity, -infinity]
    none = replace(of_treatment, failed={})
    assert len(none.arms("B")) == 6, "a block that nothing is known of says nothing"


@pytest.mark.parametrize(("share", "effect"), [(0.16, 0.0), (0.3, 0.0)])
def test_whose_slowest_trials_fail_is_rarely_called_better(share: float, effect: float) -> None:
    """Arms otherwise alike: without the failures the survivors would be the faster ones."""
    rng = np.random.default_rng(21)
    better = 0
    for _ in range(by_night(100, 30)):
        logs = 0.01 * rng.standard_normal((2, 30))
        fails = logs[1] > np.quantile(0.01 * rng.standard_normal(4000), 1 - share)
        values = np.where(fails, math.nan, np.exp(logs[1] + effect))
        measured = BlockedMetric(
            "fork",
            SECONDS,
            "A",
            {"A": tuple(map(float, np.exp(logs[0]))), "B": tuple(map(float, values))},
            failed={"B": tuple(map(bool, fails))},
        )
        better += look([measured], DESIGN, final=True).comparisons[0].verdict is Verdict.BETTER
    assert better <= by_night(5, 2)


def test_a_study_with_a_failed_trial_has_a_last_look_at_all_that_is_there() -> None:
    complete = study(0.0, sd=0.1)
    broken = BlockedMetric(
        "fork", SECONDS, "A", {**complete.values, "B": (math.nan, *complete.values["B"][1:])}
    )
    (comparison,) = look([broken], DESIGN).comparisons
    assert "after 59 blocks" in comparison.reason
    (wide,) = look([until(complete, 40)], DESIGN).comparisons
    assert width(comparison) < width(wide)


def width(comparison: Comparison) -> float:
    assert comparison.low is not None
    assert comparison.high is not None
    return math.log(comparison.high / comparison.low)


def test_a_difference_that_was_found_early_comes_with_a_warning_about_its_size() -> None:
    early = look([study(0.3)], DESIGN)
    (warning,) = [warning_ for warning_ in early.warnings if warning_.kind is WarningKind.EARLY_STOPPING]
    assert "fork, wall, B (6 blocks)" in warning.text
    assert not look([study(0.0)], DESIGN).warnings


def test_stopping_early_inflates_and_fresh_blocks_do_not() -> None:
    """Why the warning is there."""
    rng = np.random.default_rng(14)
    effect = math.log(1.005)
    logs = rng.normal(effect, 0.0141, (4000, 60))
    claimed, taken = first_claims(logs, DESIGN)
    above = claimed == Claim.ABOVE
    stopped = np.array([log[:blocks].mean() for log, blocks in zip(logs[above], taken[above], strict=True)])
    assert stopped.mean() > 1.1 * effect
    assert rng.normal(effect, 0.0141, (4000, 10)).mean() == pytest.approx(effect, rel=0.03)
