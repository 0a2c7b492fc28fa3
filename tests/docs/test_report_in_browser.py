"""The report in a real browser, at a phone's, a tablet's and a desk's width: nothing is cut off or overlaps.

Each page is put into frames of several widths (a headless window cannot be narrower than 500 pixels); a
script in the page around them measures what the browser made of it.
"""

import html
from pathlib import Path

import pytest
from tests.support.browser import WIDTHS, measured_at_widths, needs_a_browser
from tests.support.report_records import ALL, a_counted_record, whys_for

from ktrial import report

pytestmark = needs_a_browser


def measured(page: str, directory: Path) -> list[dict[str, object]]:
    """What the browser made of the page at each of WIDTHS."""
    return measured_at_widths(f'srcdoc="{html.escape(page)}"', directory)


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_cut_off_or_overlaps(name: str, tmp_path: Path) -> None:
    record = ALL[name]()
    seen = measured(report.study_html(record), tmp_path)
    assert [one["width"] for one in seen] == [str(width) for width in WIDTHS]
    for one, width in zip(seen, WIDTHS, strict=True):
        assert one["scroll"] == width, "the page scrolls sideways"
        assert one["wide"] == [], f"wider than {width} pixels"
        assert one["cut"] == [], f"text outside its chart at {width} pixels"
        assert one["overlapping"] == [], f"text over text at {width} pixels"
        assert bool(one["charts"]) == bool(record.trials)


@pytest.mark.parametrize("opened", [False, True])
def test_the_functions_of_a_difference_fit_and_their_flame_graphs_live(opened: bool, tmp_path: Path) -> None:
    record = a_counted_record()
    whys = whys_for(record)
    page = report.study_html(record, whys)
    if opened:
        page = page.replace("<details", "<details open")
    for one, width in zip(measured(page, tmp_path), WIDTHS, strict=True):
        assert one["scroll"] == width, "the page scrolls sideways"
        assert one["wide"] == [], f"wider than {width} pixels"
        # Each is drawn when it is opened; the page's own rules for scripts let this one run.
        assert one["live"] == (len(whys) if opened else 0)


def test_the_measurement_sees_what_is_wrong(tmp_path: Path) -> None:
    chart = '<svg width="300" height="40"><text x="0" y="20">one</text><text x="{}" y="20">two</text></svg>'
    bad = f'<body style="margin:0"><p style="width:700px">wide</p><div class="chart">{chart.format(5)}</div>'
    narrow, *_, wide = measured(bad, tmp_path)
    assert narrow["wide"] == ["P wide"]
    assert narrow["scroll"] == 700
    assert wide["wide"] == []
    assert wide["overlapping"] == ["text one / text two"]
    cut = measured(f'<body><div class="chart">{chart.format(290)}</div>', tmp_path)[0]
    assert cut["cut"] == ["text two"]
