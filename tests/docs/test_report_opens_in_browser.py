"""A report's sections and tables in a real browser: made when they are opened, packed or not; sorted."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.browser import measured_at_widths, needs_a_browser
from tests.support.report_records import a_counted_matrix, whys_for

from ktrial import report
from ktrial.report import study_page

pytestmark = needs_a_browser

_TRY = """
const soon = () => new Promise(done => setTimeout(done, 300));
function names(table) {
  const rows = [...table.tBodies[0].rows].filter(row => !row.hidden);
  return rows.map(row => row.cells[0].firstChild.textContent.trim());
}
function bars(page) {
  return [...page.querySelectorAll('svg.flame title')].map(title => title.textContent);
}
async function measured(frame) {
  const page = frame.contentDocument, view = frame.contentWindow, answer = {};
  const later = () => page.querySelectorAll('.later').length;
  await soon();
  answer.before = later();
  answer.elements = page.querySelectorAll('*').length;
  const matrix = page.querySelector('table.matrix'), sort = matrix.querySelectorAll('button.sort')[1];
  answer.plain = names(matrix);
  sort.click();
  answer.sorted = names(matrix);
  answer.says = sort.parentElement.getAttribute('aria-sort');
  sort.click(); sort.click();
  answer.again = names(matrix);
  const input = page.querySelector('.tools input');
  input.value = 'better';
  input.dispatchEvent(new view.Event('input'));
  answer.filtered = names(matrix);
  page.querySelector('details.treatment > summary').click();
  await soon();
  answer.rows = page.querySelectorAll('details.treatment[open] tbody tr').length;
  page.querySelector('details.treatment .to-why').click();
  await soon();
  answer.why = page.querySelector('details.why[open]').id;
  page.querySelector('details.why[open] details.graph > summary').click();
  await soon();
  answer.bars = bars(page);
  answer.live = page.querySelectorAll('svg.flame.live').length;
  view.dispatchEvent(new view.Event('beforeprint'));
  answer.printed = page.querySelectorAll('details.treatment[open]').length;
  view.dispatchEvent(new view.Event('afterprint'));
  answer.afterwards = page.querySelectorAll('details.treatment[open]').length;
  page.querySelector('.open-all').click();
  await soon();
  answer.left = later();
  return answer;
}
"""


@pytest.mark.parametrize("large", [pytest.param(study_page.LARGE, marks=pytest.mark.nightly), 1000])
def test_what_is_closed_is_made_when_it_is_opened(
    large: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_page, "LARGE", large)
    record = a_counted_matrix()
    whys = whys_for(record)
    (tmp_path / "page.html").write_text(report.study_html(record, whys))
    (tried,) = measured_at_widths("page.html", tmp_path, (1280,), _TRY)
    _assert_sections_open(tried, drawn_bars(report.study_html(record, whys[:1], whole=True)))
    _assert_tables_sort(tried)


def drawn_bars(page: str) -> list[str]:
    """What the bars of the first flame graph say, as Python draws it."""
    start = page.index('class="flame"')
    return re.findall(r"<title>([^<]*)", page[start : page.index("</details>", start)])


def _assert_sections_open(state: dict[str, Any], bars: list[str]) -> None:
    assert state["before"] > 80
    assert state["elements"] < 10_000
    assert state["rows"] == 21
    assert state["why"] == "why-1"
    assert sorted(state["bars"]) == sorted(bars)
    assert state["live"] == 1
    assert (state["printed"], state["afterwards"]) == (4, 1)
    # The overview of narrow pages is made by width, and not by hand.
    assert state["left"] <= 1


def _assert_tables_sort(state: dict[str, Any]) -> None:
    assert sorted(state["sorted"]) == sorted(state["plain"])
    assert state["sorted"][0].startswith("hackbench"), "the largest number comes first"
    assert state["sorted"] != state["plain"]
    assert state["says"] == "descending"
    assert state["again"] == state["plain"]
    assert state["filtered"] == ["pipe"]
