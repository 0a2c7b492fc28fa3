"""Charts are ones by Vega-Lite's schema, which is not looked at when a page is drawn: it takes as long."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import altair
import pytest
from tests.support.report_records import a_study_with_failures
from tests.unit.report.test_report_scaling import a_record as a_scaling_record

from ktrial import report
from ktrial.model.study import StudyRecord
from ktrial.report import vega_lite

SVG = '<svg viewBox="0 0 1 1"></svg>'


@pytest.mark.parametrize(
    ("record", "least"),
    [(lambda _: a_study_with_failures(), 6), (partial(a_scaling_record, seeds=1), 4)],
)
def test_every_chart_of_a_page(
    record: Callable[[Path], StudyRecord], least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []

    def checked(chart: vega_lite.Specification) -> str:
        drawn.append(altair.LayerChart.from_dict(chart, validate=True))
        return SVG

    monkeypatch.setattr(vega_lite, "as_svg", checked)
    report.study_html(record(tmp_path))
    assert len(drawn) >= least
