"""What notebooks need of `import ktrial`: frames of real libraries, Parquet, charts, HTML, trees, bundles."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.places import ROOT
from tests.support.report_records import a_matrix

import ktrial
from ktrial.report.notebook import result_fragment

BUNDLE = ROOT / "docs" / "notebooks" / "quick.zip"


@pytest.fixture(scope="module")
def result() -> ktrial.StudyResult:
    return ktrial.open_bundle(BUNDLE)


def test_a_bundle_is_a_result(result: ktrial.StudyResult) -> None:
    assert (result.name, len(result.trials), result.complete) == ("quick", 6, True)
    assert "fork +14.8 %" in result.answer.replace("\u00a0", " ")


@pytest.mark.parametrize("rows", ["comparisons", "trials", "samples", "counters"])
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_every_library_has_the_same_rows(library: str, rows: str, result: ktrial.StudyResult) -> None:
    pytest.importorskip(library)
    frame = result.to_frame(rows, library)  # type: ignore[arg-type]
    columns = frame.column_names if library == "pyarrow" else list(frame.columns)
    assert type(frame).__module__.split(".")[0] in {library, "pyarrow"}
    assert "treatment" in columns
    expected = {"comparisons": len(result.comparisons), "trials": 6, "samples": 72}
    assert len(frame) == expected.get(rows, sum(len(trial.counters) for trial in result.trials))


def test_parquet_is_read_back(result: ktrial.StudyResult, tmp_path: Path) -> None:
    pytest.importorskip("polars")
    written = result.to_parquet(tmp_path / "samples.parquet", "samples")
    assert written.read_bytes()[:4] == b"PAR1"
    back = importlib.import_module("polars").read_parquet(written)
    assert back["value"].to_list() == [sample.value for trial in result.trials for sample in trial.samples]


def test_rows_that_there_are_not(result: ktrial.StudyResult) -> None:
    with pytest.raises(ktrial.KtrialError, match="no rows called trails"):
        result.to_frame("trails")  # type: ignore[arg-type]
    with pytest.raises(ktrial.KtrialError, match="no rows called trials") as refused:
        result.to_csv("trials")  # type: ignore[arg-type]
    assert "comparisons and samples" in refused.value.advice


def test_a_chart_has_each_change_and_the_margin(result: ktrial.StudyResult) -> None:
    band, intervals, _points = layers(result.chart())
    assert band == [{"from": -1.0, "to": 1.0}]
    rows = {row["row"]: row for row in intervals}
    assert set(rows) == {"syscall", "pipe", "context-switch", "fork", "mmap", "nqueens"}
    assert rows["fork"]["low"] <= rows["fork"]["change"] <= rows["fork"]["high"]
    assert len(layers(result.chart("fork"))[1]) == 1


def layers(chart: Any) -> list[list[dict[str, Any]]]:
    """The rows that each layer draws."""
    spec = chart.to_dict()
    return [spec["datasets"][layer["data"]["name"]] for layer in spec["layer"]]


def test_html_has_the_table_and_no_script(result: ktrial.StudyResult) -> None:
    html = result._repr_html_()
    assert "<table" in html
    assert "worse" in html
    assert "<script" not in html


def test_html_of_several_treatments_says_whose_each_table_is() -> None:
    html = result_fragment(a_matrix())
    treatments = re.findall(r"<p><bdi>(\S+) against (\S+)</bdi></p>", html)
    assert treatments == [(f"debian:{version}", "debian:5.10") for version in ("6.1", "6.12", "6.18", "7.2")]
    assert html.count("<table") == len(treatments)
    text = re.sub(r"<[^>]+>", "", html)
    assert "operationexact" not in text, "where no style is applied, words keep apart"


def test_an_explanation_is_a_tree(result: ktrial.StudyResult) -> None:
    explained = ktrial.explain(result, workload="fork", boot=False)
    tree = ktrial.tree(explained)
    assert isinstance(tree, ktrial.Tree)
    assert sum(part.difference for part in tree.parts) == pytest.approx(
        tree.difference - float(explained.explanation.unexplained)
    )
    assert str(tree).splitlines()[0].startswith("fork +14")
    assert tree._repr_html_().startswith("<details open")


def test_a_result_is_bundled_again(result: ktrial.StudyResult, tmp_path: Path) -> None:
    again = ktrial.open_bundle(result.bundle(tmp_path / "again.zip"))
    assert again.comparisons == result.comparisons
    assert again.trials == result.trials
