"""Pages in a real browser, on screens of any width and on paper: nothing is cut off, overlaps or is split."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.browser import WIDTHS, assert_fits, measured_at_widths, needs_a_browser, sheets
from tests.support.page_kinds import a_fidelity, a_kernel_difference, a_replication, a_tuning
from tests.support.report_records import (
    ALL,
    FIVE,
    VALUES,
    a_counted_record,
    a_hostile_record,
    a_matrix,
    a_record,
    a_study_with_failures,
    whys_for,
)
from tests.support.stored_results import a_store

from ktrial import report
from ktrial.report.site import front_page
from ktrial.report.site.site import build
from ktrial.store.store import open_store

pytestmark = needs_a_browser

PHONE, DESK, PAPER = 390, 1280, 680
"""In pixels of CSS; a sheet of A4 between its margins."""
ON_PAPER = """
function shown(element) { return element && element.getBoundingClientRect().width > 0; }
function lines(element) {
  const range = document.createRange();
  range.selectNodeContents(element);
  return new Set([...range.getClientRects()].filter(box => box.width).map(box => Math.round(box.top))).size;
}
function measured(frame) {
  const page = frame.contentDocument, view = page.documentElement.clientWidth;
  const headings = [...page.querySelectorAll('.scroll thead th')].filter(shown);
  const wide = [...page.querySelectorAll('main *')].filter(
    one => !one.closest('svg, .hidden') && one.getBoundingClientRect().right > view + 1);
  return {
    split: headings.filter(one => !one.textContent.trim().includes(' ') && lines(one) > 1)
      .map(one => one.textContent),
    wide: wide.map(one => one.tagName + ' ' + one.textContent.trim().slice(0, 40)),
    links: [...page.querySelectorAll('.to-why, .crumbs, .tools, nav')].filter(shown).length,
  };
}
"""


@pytest.mark.parametrize("name", ALL)
def test_a_report_fits(name: str, tmp_path: Path) -> None:
    record = ALL[name]()
    for layout in assert_fits(report.study_html(record), tmp_path):
        assert bool(layout["charts"]) == bool(record.trials)


@pytest.mark.parametrize("opened", [False, True])
def test_the_functions_of_a_difference_fit_and_their_flame_graphs_live(opened: bool, tmp_path: Path) -> None:
    record = a_counted_record()
    whys = whys_for(record)
    page = report.study_html(record, whys)
    if opened:
        page = page.replace("<details", "<details open")
    for layout, width in zip(measured_at_widths(page, tmp_path), WIDTHS, strict=True):
        assert layout["scroll"] == width, "the page scrolls sideways"
        assert layout["wide"] == [], f"wider than {width} pixels"
        # Each is drawn when it is opened; the page's own rules for scripts let this one run.
        assert layout["live"] == (len(whys) if opened else 0)


@pytest.mark.parametrize("page", [a_kernel_difference, a_tuning])
def test_a_page_of_another_command_fits(page: Any, tmp_path: Path) -> None:
    assert_fits(page(), tmp_path)


@pytest.mark.nightly
def test_a_box_that_scrolls_says_so_without_a_script(tmp_path: Path) -> None:
    """Shadows below a paper that goes along: https://lea.verou.me/blog/2012/04/background-attachment-local."""
    cues = []
    for page in (a_replication(), a_tuning(), a_fidelity()):
        phone, desk = measured_at_widths(page, tmp_path, (PHONE, DESK))
        assert [phone["scroll"], desk["scroll"]] == [PHONE, DESK], "the page scrolls sideways"
        assert phone["wide"] == desk["wide"] == []
        assert desk["scrolls"] == [], "a desk shows every column"
        cues += phone["cues"]
    assert len(cues) >= 3
    assert set(cues) == {"local, scroll"}


def test_the_measurement_sees_what_is_wrong(tmp_path: Path) -> None:
    chart = '<svg width="300" height="40"><text x="0" y="20">one</text><text x="{}" y="20">two</text></svg>'
    bad = f'<body style="margin:0"><p style="width:700px">wide</p><div class="chart">{chart.format(5)}</div>'
    narrow, *_, wide = measured_at_widths(bad, tmp_path)
    assert narrow["wide"] == ["P wide"]
    assert narrow["scroll"] == 700
    assert wide["wide"] == []
    assert wide["overlapping"] == ["text one / text two"]
    cut = measured_at_widths(f'<body><div class="chart">{chart.format(290)}</div>', tmp_path, (360,))[0]
    assert cut["cut"] == ["text two"]


def a_site(directory: Path, **how: Any) -> Path:
    """Of workloads with parameters, with numbers of eight digits, and of names that nobody expects."""
    records = (a_record(FIVE, tuple(VALUES)), a_study_with_failures(), a_hostile_record())
    with open_store(str(a_store(directory / "store", *records))) as store:
        build(store, directory / "pages", notes=directory / "cache", **how)
    return directory / "pages"


def test_one_page_of_each_kind_of_a_site_fits(tmp_path: Path) -> None:
    site = a_site(tmp_path)
    # Of the histories, those whose labels and numbers are the longest.
    histories = sorted(site.glob("history/hackbench*.html"))
    assert histories
    for page in (site / "index.html", site / "matrix.html", *histories, *sorted(site.glob("results/*.html"))):
        assert_fits(page.as_uri(), tmp_path)


@pytest.mark.nightly
def test_pages_in_brief_and_lists_of_a_site_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_page, "A_PAGE", 1)
    site = a_site(tmp_path, full=0)
    of_many = [*site.glob("results/*.html"), *site.glob("lists/*.html")]
    assert len(of_many) == 3 + 3 + 1
    for page in (site / "index.html", *of_many):
        assert_fits(page.as_uri(), tmp_path)


def a_long_table(page: str) -> str:
    """The page with nothing but its first table, of a hundred rows that have no word in common."""
    before, rest = page.split("<tbody>", 1)
    after = rest[rest.index("</main>") :]
    rows = "".join(f"<tr><th>{at * 7919:x}q</th><td>{at * 104729:x}z</td></tr>" for at in range(1, 101))
    return f"{before}<tbody>{rows}</tbody></table></div></section>{after}"


@pytest.mark.nightly
@pytest.mark.parametrize("repeats", [True, False], ids=["as it is", "not repeated"])
def test_a_table_s_headings_stand_on_each_sheet(repeats: bool, tmp_path: Path) -> None:
    page = a_long_table(report.study_html(a_matrix()))
    if not repeats:  # the sheets tell it
        page = re.sub(r"display: (contents|table-header-group)", "display: block", page)
    _, *inner, _ = sheets(page, tmp_path)
    assert len(inner) > 1
    assert bool(set.intersection(*inner)) is repeats


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["matrix", "functions", "kernel-diff", "tuning"])
def test_on_paper_no_heading_is_split_and_nothing_is_wider_than_the_sheet(name: str, tmp_path: Path) -> None:
    record = a_counted_record()
    page = {
        "matrix": lambda: report.study_html(a_matrix()),
        "functions": lambda: report.study_html(record, whys_for(record)),
        "kernel-diff": a_kernel_difference,
        "tuning": a_tuning,
    }[name]()
    # The page's rules for paper, on a screen as wide as a sheet.
    page = page.replace("@media print", "@media all").replace("@media screen", "@media not all")
    (layout,) = measured_at_widths(page, tmp_path, (PAPER,), ON_PAPER)
    assert layout == {"split": [], "wide": [], "links": 0}
