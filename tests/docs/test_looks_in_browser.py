"""How every kind of page looks, small and large, on a telephone and on a desk, in light and in dark.

No number is cut, no label lies over another, the margin is seen, and axe finds nothing that keeps anybody
from reading it.

https://github.com/dequelabs/axe-core looks for what the Web Content Accessibility Guidelines forbid.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.browser import Page, layout_of, needs_a_browser, seen_on, violations
from tests.support.page_kinds import MORE_PAGES, PAGES
from tests.support.report_records import FIVE, a_record, a_study_with_failures
from tests.support.stored_results import fill

from ktrial.report.charts import BAND
from ktrial.report.site import front_page
from ktrial.report.site.site import build
from ktrial.store.store import open_store

pytestmark = needs_a_browser

PHONE, DESK = 390, 1280
LEAST_BAND = 6
"""Pixels of the margin's band."""
_BANDS = f"""
[...document.querySelectorAll('.chart svg [fill="{BAND}"]')].map(band => band.getBoundingClientRect())
  .filter(box => box.height).map(box => box.width)
"""
_BROKEN_NUMBERS = """
[...document.querySelectorAll('td.number, th.number, .chart text')].flatMap(cell => {
  const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), broken = [];
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    for (const number of cell.closest('thead') ? [] : text.data.matchAll(/[+\u2212]?\\d[\\d.,]*/g)) {
      const range = document.createRange();
      range.setStart(text, number.index);
      range.setEnd(text, number.index + number[0].length);
      const lines = [...range.getClientRects()].filter(box => box.width).map(box => Math.round(box.top));
      if (new Set(lines).size > 1) broken.push(number[0]);
    }
  }
  return broken;
})
"""
BY_DAY = [(name, *screen) for name in PAGES for screen in ((DESK, False), (PHONE, True))]
BY_NIGHT = [
    (name, width, dark)
    for name in (*PAGES, *MORE_PAGES)
    for width in (PHONE, DESK)
    for dark in (False, True)
    if (name, width, dark) not in BY_DAY
]


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """Pages that were made in this process, by their names."""
    return {}


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [*BY_DAY, *(pytest.param(*look, marks=pytest.mark.nightly) for look in BY_NIGHT)],
)
def test_a_page_is_whole_apart_and_readable(
    name: str, width: int, dark: bool, made: dict[str, str], tmp_path: Path
) -> None:
    if name not in made:
        made[name] = (PAGES | MORE_PAGES)[name]()
    with seen_on(made[name], tmp_path, width, dark=dark) as page:
        _assert_looks_right(page, width)
        bands = page.value(_BANDS)
        assert bool(bands) == ("interval" in made[name] and 'class="key"' in made[name])
        assert all(band >= LEAST_BAND for band in bands), bands


KINDS_OF_A_SITE = (
    *("index", "matrix", "compare", "history/fork", "results/1", "results/2", "lists/1"),
    *("regressions", "regressions/*"),
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of results that are whole and in brief, of kernels and of a search."""
    directory = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch, open_store(str(directory / "s.db")) as store:
        patch.setattr(front_page, "A_PAGE", 1)
        fill(store, a_record(FIVE, ("fork", "pipe")), a_study_with_failures())
        build(store, directory / "pages", full=1, notes=directory / "notes")
        yield directory / "pages"


@pytest.mark.parametrize(
    ("kind", "width", "dark"),
    [
        pytest.param(kind, width, dark, marks=() if dark is (width == PHONE) else pytest.mark.nightly)
        for kind in KINDS_OF_A_SITE
        for width in (PHONE, DESK)
        for dark in (False, True)
    ],
)
def test_a_page_of_a_site_is_whole_apart_and_readable(
    kind: str, width: int, dark: bool, site: Path, tmp_path: Path
) -> None:
    first, *_ = sorted(site.glob(f"{kind}.html"))
    with seen_on(first.as_uri(), tmp_path, width, dark=dark) as page:
        _assert_looks_right(page, width)


def _assert_looks_right(page: Page, width: int) -> None:
    layout = layout_of(page)
    assert layout["scroll"] == width, "the page scrolls sideways"
    assert layout["wide"] == [], f"wider than {width} pixels"
    assert layout["cut"] == [], "text outside its chart"
    assert layout["overlapping"] == [], "text over text"
    assert page.value(_BROKEN_NUMBERS) == []
    assert violations(page) == []


def test_what_is_wrong_is_seen(tmp_path: Path) -> None:
    """A number in two lines, a band of two pixels, grey on grey, a picture that says nothing.

    What lies over something else or is cut is what tests/docs/test_pages_in_browser.py shows.
    """
    bad = f"""<!DOCTYPE html><html lang="en"><title>bad</title><main><h1>bad</h1>
      <style>td {{ width: 1em; overflow-wrap: anywhere }}</style>
      <table><tr><td class="number">+31,020,920 … 4</td></tr></table>
      <div class="chart"><svg width="50" height="50"><rect width="2" height="9" fill="{BAND}"/></svg></div>
      <p style="color: #999; background: #aaa">grey</p><img src="data:,"></main></html>"""
    with seen_on(bad, tmp_path, PHONE, dark=False) as page:
        assert page.value(_BROKEN_NUMBERS) == ["+31,020,920"]
        assert page.value(_BANDS) == [2]
        assert {violation.partition(":")[0] for violation in violations(page)} >= {
            "color-contrast",
            "image-alt",
        }
