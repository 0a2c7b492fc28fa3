"""Charts are ones by Vega-Lite's schema, which is not looked at when a page is drawn: it takes as long.

Most are drawn without Vega-Lite, and look as it draws them, to the last byte.
"""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import altair
import pytest
from tests.support.report_records import ALL, a_study_with_failures
from tests.support.runs_of_tests import at_night
from tests.unit.report.test_report_scaling import a_record as a_scaling_record

from ktrial import report
from ktrial.model.study import StudyRecord
from ktrial.model.workload import Direction, Mode
from ktrial.report import chart_drawing, vega_lite
from ktrial.report.charts import level_chart
from ktrial.report.study_summary import Level, MetricLevels

SVG = '<svg viewBox="0 0 1 1"></svg>'


@pytest.mark.parametrize(
    ("record", "least"),
    [at_night(lambda _: a_study_with_failures(), 6), (partial(a_scaling_record, seeds=1), 4)],
)
def test_every_chart_of_a_page(
    record: Callable[[Path], StudyRecord], least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []

    def checked(chart: vega_lite.Specification) -> str:
        drawn.append(altair.LayerChart.from_dict(chart, validate=True))
        return SVG

    monkeypatch.setattr(chart_drawing, "is_drawn", lambda _: False)
    monkeypatch.setattr(vega_lite, "as_svg", checked)
    report.study_html(record(tmp_path))
    assert len(drawn) >= least


@pytest.fixture
def drawn_here(monkeypatch: pytest.MonkeyPatch) -> list[vega_lite.Specification]:
    """The charts that are drawn without Vega-Lite."""
    charts: list[vega_lite.Specification] = []
    draw = chart_drawing.drawing

    def kept(chart: vega_lite.Specification) -> str:
        charts.append(chart)
        return draw(chart)

    monkeypatch.setattr(chart_drawing, "drawing", kept)
    return charts


def assert_alike(charts: list[vega_lite.Specification]) -> None:
    for chart in tuple(charts):  # which is drawn again
        by_vega = vega_lite.elements(chart, "chart", by_vega=True)
        assert vega_lite.elements(chart, "chart", by_vega=False).split("><") == by_vega.split("><")


@pytest.mark.parametrize("name", ALL)
def test_vega_lite_draws_the_charts_of_a_page_as_they_are(
    name: str, drawn_here: list[vega_lite.Specification]
) -> None:
    report.study_html(ALL[name]())
    assert_alike(drawn_here[:6])


@pytest.mark.parametrize(
    ("values", "unit"),
    [
        ((0.0, 0.0), "ns"),
        ((1.0, 1.25), "pages"),
        ((-3.0, 7.0), "pages"),
        ((-8.0, -2.5), "pages"),
        ((999.6, 1000.4), "events"),
        ((9_999.0, 9_804.0), "events"),
        ((12_345.0, 3.0), "instructions"),
        ((434_908_624.7, 429_126_150.6), "instructions"),
        ((1.5e13, 2e12), "instructions"),
        ((0.000_123, 0.000_999), "share"),
        ((3.2e-7, 4e-8), "s"),
        ((math.nan, 5.0), "pages"),
        ((math.inf, 5.0), "pages"),
    ],
)
def test_vega_lite_draws_the_levels_of_a_metric_as_they_are(
    values: tuple[float, ...], unit: str, drawn_here: list[vega_lite.Specification]
) -> None:
    levels = (
        Level("<a> & b", values[0], (values[0], values[0]), None),
        Level("a name that is so long that results go below it", None, (), None),
        Level(" b ", values[1], (values[1] * 0.9, values[1] * 1.1), None),
    )
    level_chart(MetricLevels("fork", "time", unit, Direction.LOWER, Mode.EXACT_PLUGIN, levels), "levels-1")
    level_chart(
        MetricLevels("fork", "time", unit, Direction.LOWER, Mode.EXACT_PLUGIN, levels[::2]), "levels-2"
    )
    assert len(drawn_here) == 2
    assert_alike(drawn_here)
