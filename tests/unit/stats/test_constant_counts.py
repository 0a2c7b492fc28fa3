"""Counts that every run repeats: equal ones are equivalent, others better or worse, of runs enough."""

from itertools import combinations

import pytest
from tests.support.program_texts import LOWER

from ktrial.analysis.imported_results import AnalysisOptions, analyse
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.imported import Analysis, Family, Group, Imported
from ktrial.stats.constant_counts import constant_counts, fewest_runs
from ktrial.stats.verdict_rules import Claim

ALPHA, MARGIN = 0.05, 0.01


@pytest.mark.parametrize(
    ("baseline", "treatment", "claim", "ratio"),
    [
        ([5.0] * 5, [5.0] * 5, Claim.EQUIVALENT, 1.0),
        ([0.0] * 5, [0.0] * 5, Claim.EQUIVALENT, 1.0),
        ([5.0] * 5, [6.0] * 5, Claim.ABOVE, 1.2),
        ([5.0] * 4, [4.0] * 4, Claim.BELOW, 0.8),
        ([0.0] * 5, [1.0] * 5, Claim.ABOVE, None),
        ([1000.0] * 5, [1001.0] * 5, Claim.EQUIVALENT, 1.001),
        ([5.0] * 3, [6.0] * 3, Claim.NONE, 1.2),
        ([5.0] * 3, [5.0] * 3, Claim.NONE, 1.0),
        ([5.0] * 2, [6.0] * 9, Claim.ABOVE, 1.2),
    ],
)
def test_counts_that_every_run_repeats_are_judged_by_how_many_runs_there_are(
    baseline: list[float], treatment: list[float], claim: Claim, ratio: float | None
) -> None:
    counted = constant_counts(baseline, treatment, "B", MARGIN, ALPHA)
    assert counted is not None
    assert counted.claim is claim
    assert counted.ratio == (ratio if ratio is None else pytest.approx(ratio))


@pytest.mark.parametrize(
    ("baseline", "treatment"),
    [([5.0, 6.0], [5.0, 5.0]), ([5.5, 5.5], [5.0, 5.0]), ([], [5.0]), ([-1.0, -1.0], [5.0, 5.0])],
    ids=["they differ", "no whole number", "none", "below zero"],
)
def test_what_is_no_count_that_every_run_repeats_is_left_to_other_rules(
    baseline: list[float], treatment: list[float]
) -> None:
    assert constant_counts(baseline, treatment, "B", MARGIN, ALPHA) is None


@pytest.mark.parametrize("runs", range(2, 7))
def test_the_fewest_runs_are_those_of_fishers_exact_test(runs: int) -> None:
    """Every way to draw one group of all runs is tried."""
    counts = [0] * runs + [1] * runs
    ways = list(combinations(range(2 * runs), runs))
    apart = sum(len({counts[at] for at in way}) == 1 for way in ways)
    assert (apart / len(ways) <= ALPHA) is (runs >= fewest_runs(ALPHA))


def analysed(unit: str, *groups: tuple[float, ...]) -> Analysis:
    family = Family(
        name="f",
        metric="m",
        unit=unit,
        direction=LOWER,
        groups=tuple(Group(label=label, values=values) for label, values in zip("abc", groups, strict=False)),
    )
    return analyse([Imported(source="x", format="csv", families=(family,))], AnalysisOptions())


def only(analysis: Analysis) -> Comparison:
    (comparison,) = analysis.families[0].comparisons
    return comparison


@pytest.mark.parametrize("unit", ["allocs/op", "B/op", "B", "faults"])
@pytest.mark.parametrize(("after", "verdict"), [(5.0, Verdict.EQUIVALENT), (6.0, Verdict.WORSE)])
def test_counts_get_a_verdict_that_says_so(unit: str, after: float, verdict: Verdict) -> None:
    analysis = analysed(unit, (5.0,) * 5, (after,) * 5)
    assert only(analysis).verdict is verdict
    assert f"5 {unit}" in only(analysis).beside
    assert "spread-unknown" not in {finding.kind for finding in analysis.findings}


@pytest.mark.parametrize("unit", ["ms", "ops/s", "KiB", "", "widgets", "%"])
def test_equal_numbers_that_may_be_rounded_have_no_verdict(unit: str) -> None:
    analysis = analysed(unit, (5.0,) * 5, (6.0,) * 5)
    assert only(analysis).verdict is Verdict.INCONCLUSIVE
    assert "spread-unknown" in {finding.kind for finding in analysis.findings}


def test_too_few_counts_say_how_many_it_takes() -> None:
    assert only(analysed("B", (5.0,) * 3, (6.0,) * 3)).reason == (
        "3 and 3 runs that count 5 B and 6 B are too few: it takes 4 in each group"
    )


def test_several_comparisons_of_a_family_take_more_runs() -> None:
    """Bonferroni: their verdicts hold together."""
    groups = ((5.0,) * 4, (6.0,) * 4, (7.0,) * 4)
    verdicts = {item.verdict for item in analysed("B", *groups).families[0].comparisons}
    assert verdicts == {Verdict.INCONCLUSIVE}
