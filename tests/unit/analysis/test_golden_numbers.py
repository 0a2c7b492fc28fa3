"""Must hold: what the papers printed comes out of their own tables, to all digits."""

import pytest
from tests.support.places import PAPERS

from ktrial.analysis.imported_results import AnalysisOptions, analyse
from ktrial.importers import Choices as Columns
from ktrial.importers import read_all
from ktrial.model.imported import SCORE, Analysis, FamilyAnalysis
from ktrial.model.warnings import WarningKind

SETTINGS = "wakeup_granularity_ns,latency_ns,swappiness,rr_timeslice_ms"
SLAB = ("slab_muqss_unixbench_index.csv", "slab_muqss_unixbench_trial1.csv")


def analysed(*names: str, choices: AnalysisOptions | None = None, group_by: str = "") -> Analysis:
    columns = Columns(tuple(group_by.split(",")) if group_by else ())
    read = read_all([("", PAPERS / name) for name in names], columns)
    return analyse(read, choices or AnalysisOptions())


@pytest.fixture(scope="module")
def slab() -> Analysis:
    return analysed(*SLAB, choices=AnalysisOptions(confidence=0.99, baseline="control"))


@pytest.fixture(scope="module")
def score(slab: Analysis) -> FamilyAnalysis:
    return next(family for family in slab.families if family.metric == SCORE)


@pytest.fixture(scope="module")
def knobs() -> Analysis:
    return analysed("knobs_aio_stress.csv")


def texts(analysis: Analysis, kind: WarningKind) -> list[str]:
    return [finding.text for finding in analysis.findings if finding.kind is kind]


@pytest.mark.parametrize(
    ("group", "mean", "sd", "low", "high"),
    [
        ("control", "1567.37", "10.03", "1509.88", "1624.85"),
        ("experimental", "2020.43", "2.80", "2004.41", "2036.46"),
    ],
)
def test_the_means_of_table_1(
    score: FamilyAnalysis, group: str, mean: str, sd: str, low: str, high: str
) -> None:
    summary = next(summary_ for summary_ in score.groups if summary_.label == group)
    assert summary.runs == 3
    printed = [
        f"{value:.2f}" for value in (summary.mean, summary.sd, summary.low, summary.high) if value is not None
    ]
    assert printed == [mean, sd, low, high]


def test_the_games_howell_test_of_table_2(score: FamilyAnalysis) -> None:
    (pair,) = score.pairs
    assert (pair.group, pair.against) == ("experimental", "control")
    assert f"{pair.difference:.2f}" == "453.07"
    assert f"{pair.standard_error:.2f}" == "6.01"
    assert (f"{pair.low:.2f}", f"{pair.high:.2f}") == ("405.20", "500.93")
    assert f"{pair.p:.2f}" == "0.00"


@pytest.mark.parametrize(
    ("group", "low", "high"),
    [("control", "4.09851", "200.517"), ("experimental", "1.14269", "55.905")],
)
def test_the_standard_deviations_of_table_3(score: FamilyAnalysis, group: str, low: str, high: str) -> None:
    summary = next(summary_ for summary_ in score.groups if summary_.label == group)
    assert (f"{summary.sd_low:.5f}", f"{summary.sd_high:.3f}") == (low, high)


def test_the_analysis_of_variance_of_table_4(score: FamilyAnalysis) -> None:
    anova = score.anova
    assert anova is not None
    assert anova.ss_between is not None
    assert anova.ss_within is not None
    total = anova.ss_between + anova.ss_within
    assert (anova.between, anova.within) == (1, 4)
    assert [f"{part:.0f}" for part in (anova.ss_between, anova.ss_within, total)] == [
        "307904",
        "217",
        "308121",
    ]
    assert f"{anova.ss_within / anova.within:.0f}" == "54"
    assert [f"{100 * part / total:.2f}" for part in (anova.ss_between, anova.ss_within)] == ["99.93", "0.07"]
    assert f"{anova.f:.2f}" == "5677.40"
    assert f"{anova.p:.2f}" == "0.00"


def test_the_same_to_more_digits_than_were_printed(score: FamilyAnalysis) -> None:
    """Golden values, computed apart from this code."""
    anova, (pair,) = score.anova, score.pairs
    assert anova is not None
    assert anova.f == pytest.approx(5677.3959, abs=5e-5)
    assert anova.ss_between == pytest.approx(307904.1067, abs=5e-5)
    assert anova.ss_within == pytest.approx(216.9333, abs=5e-5)
    assert pair.difference == pytest.approx(453.0667, abs=5e-5)
    assert pair.standard_error == pytest.approx(6.012949, abs=5e-7)
    assert (pair.low, pair.high) == pytest.approx((405.20485, 500.92848), abs=5e-6)
    assert pair.p == pytest.approx(5.749e-5, abs=5e-9)
    by_label = {group.label: group for group in score.groups}
    control, kernel = by_label["control"], by_label["experimental"]
    assert (control.sd_low, control.sd_high) == pytest.approx((4.098510, 200.516809), abs=5e-7)
    assert (kernel.sd_low, kernel.sd_high) == pytest.approx((1.142693, 55.905456), abs=5e-7)
    assert (control.low, control.high) == pytest.approx((1509.8815, 1624.8518), abs=5e-5)
    assert (kernel.low, kernel.high) == pytest.approx((2004.4061, 2036.4606), abs=5e-5)


def test_the_ratio_that_the_conclusion_gives(score: FamilyAnalysis) -> None:
    (comparison,) = score.comparisons
    assert f"{comparison.ratio:.2f}" == "1.29"


def test_the_indices_and_scores_of_figures_4_and_5_come_out(slab: Analysis) -> None:
    scores = {computed.group: computed.score for computed in slab.scores}
    assert scores["experimental"] == pytest.approx(2023.641, abs=5e-4)
    assert scores["control"] == pytest.approx(1578.641, abs=5e-4)
    assert not [text for text in texts(slab, WarningKind.INDEX_MISMATCH) if SLAB[1] in text]


def test_the_audit_finds_the_copied_control_trial(slab: Analysis) -> None:
    (copied,) = texts(slab, WarningKind.COPIED_VALUES)
    assert "control, run 2 repeats numbers of experimental, run 2" in copied
    assert "Pipe Throughput 2164.7, Pipe-based Context Switching 285.4" in copied
    (implied,) = texts(slab, WarningKind.INDEX_MISMATCH)
    assert "control, run 2: with the score 1559.3" in implied
    assert "geometric mean of 1232; in the other runs of control it is 1541 and 1532" in implied


def test_the_audit_finds_the_default_that_disagrees_with_itself(knobs: Analysis) -> None:
    (text,) = texts(knobs, WarningKind.REPEATS_DISAGREE)
    assert "the default was measured 3 times, with means 1.62-fold apart" in text
    assert all(mean in text for mean in ("381.88", "433.63", "267.79"))


def test_the_audit_finds_the_ascending_sweep() -> None:
    reported = texts(
        analysed("rt_runtime_aio_stress.csv", group_by="sched_rt_runtime_us"), WarningKind.ORDER_CONFOUNDED
    )
    assert len(reported) == 1
    assert "the 11 levels stand in ascending order (100000 … 990000)" in reported[0]


def test_the_audit_finds_that_throughput_fell_with_every_step_of_the_latency_sweep(knobs: Analysis) -> None:
    reported = texts(knobs, WarningKind.ORDER_CONFOUNDED)
    assert any("the means fall from every row to the next (433.63 … 381.42)" in text for text in reported)


def test_the_run_counts_behind_phoronix_s_rows(knobs: Analysis) -> None:
    runs = {family.name: [group.runs for group in family.groups] for family in knobs.families}
    assert runs == {
        "vm.swappiness": [3, 4, 3, 3, 3],
        "kernel.sched_latency_ns": [3, 6, 3, 3, 3],
        "kernel.sched_rt_runtime_us": [6, 6, 3, 6, 6],
    }
    assert all(group.runs_recovered for family in knobs.families for group in family.groups)


@pytest.mark.parametrize(
    ("name", "f", "df", "p"),
    [
        ("vm.swappiness", "2.2654", "5.217", "0.192"),
        ("kernel.sched_latency_ns", "22.162", "5.503", "0.00145"),
        ("kernel.sched_rt_runtime_us", "2.0231", "10.962", "0.161"),
    ],
)
def test_welch_s_tests_of_the_three_knobs(knobs: Analysis, name: str, f: str, df: str, p: str) -> None:
    family = next(candidate for candidate in knobs.families if candidate.name == name)
    assert family.welch is not None
    assert family.welch.between == 4
    assert f"{family.welch.f:.5g}" == f
    assert f"{family.welch.within:.3f}" == df
    assert f"{family.welch.p:.3g}" == p


def test_a_row_of_the_n_queens_table_cannot_be_three_runs() -> None:
    (text,) = texts(analysed("nqueens.csv", group_by=SETTINGS), WarningKind.IMPOSSIBLE_SUMMARY)
    assert "0 · 100000 · 1 · 25: " in text
    assert "16 runs or more, where no other row can have more than 6" in text
