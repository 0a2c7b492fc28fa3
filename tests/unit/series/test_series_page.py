"""The HTML page of a series: a differential flame graph for each changed cell; a script only beside one."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from tests.support.drawn_courses import assert_steps_are_true
from tests.support.profiles import real_profile, with_calls
from tests.support.scripted import ScriptedMachine
from tests.support.series import SeriesBuilder, a_series, answer, runs

from ktrial.analysis.attribution.decomposition import explain
from ktrial.kernels.patch_series import series_in_quilt
from ktrial.model.comparison import Verdict
from ktrial.model.kernel import Build
from ktrial.model.regression_check import Decision
from ktrial.model.series_result import SeriesResult
from ktrial.model.study import Measurement
from ktrial.model.workload import WorkloadUse
from ktrial.report.patch_series import answer as answer_of
from ktrial.report.patch_series import as_text
from ktrial.report.patch_series_page import apart, picture, series_page
from ktrial.series.run import SeriesRun
from ktrial.store.store import open_store

SOURCE = "debian:linux-source-6.1"
BEFORE = {("entry", "fork"): Fraction(900), ("entry", "fork", "copy"): Fraction(100)}
AFTER = {("entry", "fork"): Fraction(900), ("entry", "fork", "copy"): Fraction(150)}


@pytest.fixture
def result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SeriesResult:
    """One patch of three makes fork slower."""
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    series = series_in_quilt(a_series(tmp_path / "q", "doc", "cost-fork-50", "cost-pipe-1"), SOURCE)
    measurement = Measurement((WorkloadUse(name="fork"), WorkloadUse(name="pipe")), perturbations=1)
    with open_store(str(tmp_path / "x.db")) as store:
        series_runs = runs(store, SeriesBuilder(), ScriptedMachine(answer))
        return SeriesRun(series, Build(source=SOURCE), measurement, series_runs, lambda _: None).run()


def counted(result: SeriesResult) -> SeriesResult:
    """The same, as if the plugin had followed the calls of fork."""
    before, after = with_calls(BEFORE), with_calls(AFTER)
    why = explain(before, after)
    cells = tuple(
        replace(cell, profiles=(before, after), explanation=why) if cell.workload == "fork" else cell
        for cell in result.cells
    )
    return replace(result, cells=cells)


def with_verdict(result: SeriesResult, verdict: Verdict, decision: Decision, *metrics: str) -> SeriesResult:
    """The same, where fork's first metric has that verdict, and more metrics have that decision."""
    (cell,) = (cell for cell in result.cells if cell.workload == "fork" and cell.is_told)
    (main, *_) = cell.checked
    seen = main.comparison.model_copy(update={"verdict": verdict, "low": 0.7, "high": 1.04})
    more = (
        replace(
            main,
            comparison=main.comparison.model_copy(update={"metric": metric, "ratio": 1.09}),
            decision=decision,
            secondary=True,
        )
        for metric in metrics
    )
    first = replace(main, comparison=seen, decision=Decision.UNDECIDED)
    changed = replace(cell, checked=(first, *more))
    return replace(
        result, cells=tuple(changed if other_cell is cell else other_cell for other_cell in result.cells)
    )


def test_a_number_that_another_layout_changes_is_marked_and_told(result: SeriesResult) -> None:
    assert "?" not in as_text(result, "ktrial series")
    text = as_text(with_verdict(result, Verdict.INCONCLUSIVE, Decision.UNDECIDED), "ktrial series")
    assert re.search(r"cost-fork-50 .* \?\+5\.00%$", text, re.MULTILINE)
    told = "inconclusive: with other layouts of the same code it is between −30.00% and +4.00%"
    assert told in " ".join(text.split())
    assert "? other layouts of the same code say otherwise" in text


def test_a_limit_that_another_metric_passes_is_told_with_its_name(result: SeriesResult) -> None:
    beyond = with_verdict(result, Verdict.EQUIVALENT, Decision.BEYOND, "latency max")
    assert answer_of(beyond).startswith("Beyond the limit: patch 2 in fork by latency max +9.00%")


def test_each_step_is_drawn_at_its_patch_and_as_high_as_it_is(result: SeriesResult) -> None:
    text = series_page(result, "ktrial series")
    assert_steps_are_true(text, result)
    later = tuple(
        replace(cell, number=5 - cell.number) if cell.number in {2, 3} else cell for cell in result.cells
    )
    with pytest.raises(AssertionError):
        assert_steps_are_true(text, replace(result, cells=later))


def test_without_profiles_the_page_has_no_script(result: SeriesResult) -> None:
    text = series_page(result, "ktrial series")
    assert "<script" not in text
    assert "script-src" not in text
    assert "What the changes are made of" not in text


def test_each_changed_cell_has_its_graph_and_no_other_one(result: SeriesResult) -> None:
    text = series_page(counted(result), "ktrial series")
    drawn = [json.loads(chart) for chart in re.findall(r'class="frames">(.*?)</script>', text)]
    assert [chart["title"] for chart in drawn] == ["2 mm: cost-fork-50: fork +5.00%"]
    names = {frame[0]: frame[2:5] for frame in drawn[0]["frames"]}
    assert names["copy"] == [10, 15, 5]
    assert '<template id="flame">' in text


def test_the_content_policy_names_the_pages_own_script(result: SeriesResult) -> None:
    text = series_page(counted(result), "ktrial series")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert "default-src 'none'" in policy
    assert re.search(r"script-src 'sha256-[\w+/=]+'", policy)


def test_a_subject_is_no_markup(result: SeriesResult) -> None:
    evil = "mm: </script><b>bold</b>"
    steps = tuple(
        replace(step, patch=step.patch.model_copy(update={"subject": evil})) if step.patch else step
        for step in result.steps
    )
    text = series_page(replace(counted(result), steps=steps), "ktrial series")
    assert "<b>bold" not in text
    assert text.count("</script>") == text.count("<script")


def test_the_picture_fits_a_telephone_and_no_two_names_stand_on_each_other(result: SeriesResult) -> None:
    text = series_page(result, "ktrial series")
    widths = [float(width) for width in re.findall(r'<svg role="img" viewBox="0 0 ([\d.]+)', text)]
    assert widths == [720.0, 340.0]
    drawn = picture(result, width=340.0)
    assert all(
        float(at) <= drawn.end for course in drawn.courses for at in re.findall(r"H([\d.]+)", course.path)
    )
    assert drawn.names + len("fourteen chars +100.00%") * 6 < 340
    assert apart([100.0, 101.0, 20.0, 100.0]) == [100.0, 128.0, 20.0, 114.0]
    assert max(apart([200.0, 201.0, 202.0])) == 204.0, "none below the axis"


@pytest.mark.nightly
def test_a_page_of_many_changed_cells_stays_below_a_megabyte(result: SeriesResult) -> None:
    (before, files_before), (after, files_after) = (
        real_profile("fork", version) for version in ("5.10", "6.12")
    )
    why = explain(before, after, files_before, files_after)
    (cell,) = (cell for cell in result.cells if cell.workload == "fork" and cell.is_told)
    many = (replace(cell, profiles=(before, after), explanation=why),) * 20
    text = series_page(replace(result, cells=many), "ktrial series")
    assert text.count('class="frames">') == 20
    assert 500_000 < len(text.encode()) < 1_000_000
    assert len(re.findall(r"<[a-z]", re.sub(r"(?s)<script.*?</script>", "", text))) < 10_000
