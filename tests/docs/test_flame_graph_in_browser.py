"""Flame graphs in a real browser: they fit a phone; zoom, search and the two widths do what they should."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.browser import measured_at_widths, needs_a_browser
from tests.support.profiles import a_profile, with_calls
from tests.unit.report.test_flame_graph import AFTER, BEFORE

from ktrial.analysis.attribution.decomposition import explain
from ktrial.report import flame_graph

pytestmark = needs_a_browser

_TRY = """
function bars(page) {
  const found = {};
  for (const bar of page.querySelectorAll('.f')) {
    const box = bar.querySelector('rect').getBoundingClientRect();
    const text = bar.querySelector('text'), width = text && text.getBoundingClientRect().width;
    found[bar.querySelector('title').textContent.split('\\n')[0]] = {
      width: getComputedStyle(bar).display === 'none' ? 0 : box.width, left: box.left,
      label: text ? text.textContent : '', tooWide: Boolean(width > box.width), hit: bar.matches('.hit')};
  }
  return found;
}
function said(page) { return [...page.querySelectorAll('.said')].map(line => line.textContent); }
function type(page, text) {
  const input = page.querySelector('input');
  input.value = text;
  input.dispatchEvent(new page.defaultView.Event('input'));
  return input.classList.contains('bad');
}
function click(page, name) {
  const bar = [...page.querySelectorAll('.f')].find(one => one.textContent.startsWith(name));
  bar.dispatchEvent(new page.defaultView.MouseEvent('click', {bubbles: true}));
}
function cutOff(page) {
  const width = page.documentElement.clientWidth;
  const shown = '.title, .said, .quiet, svg.flame > text, .controls *';
  return [...page.querySelectorAll(shown)].filter(one => {
    const box = one.getBoundingClientRect();
    return box.width && (box.right > width + 1 || box.left < -1);
  }).map(one => one.textContent || one.className);
}
async function measured(frame) {
  const page = frame.contentDocument, answer = {width: Number(frame.width)};
  await new Promise(done => setTimeout(done, 100));
  answer.scroll = page.documentElement.scrollWidth;
  answer.cutOff = cutOff(page);
  answer.controls = getComputedStyle(page.querySelector('.controls')).display;
  answer.start = bars(page);
  answer.startSaid = said(page);
  click(page, 'copy');
  answer.zoomed = bars(page);
  answer.zoomedSaid = said(page);
  page.querySelector('.whole').click();
  answer.whole = bars(page);
  answer.bad = type(page, '(');
  type(page, '^(copy|exit)$');
  answer.sought = bars(page);
  answer.soughtSaid = said(page);
  page.defaultView.dispatchEvent(new page.defaultView.KeyboardEvent('keydown', {key: 'Escape'}));
  answer.cleared = bars(page);
  const sides = page.querySelector('.sides');
  if (sides) {
    sides.click();
    answer.before = bars(page);
    answer.beforeText = sides.textContent;
  }
  page.defaultView.dispatchEvent(new page.defaultView.KeyboardEvent('keydown', {key: 'f', ctrlKey: true}));
  answer.focused = page.activeElement && page.activeElement.localName;
  return answer;
}
"""

WIDTHS = (360, 1280)


def tried(svg: str, directory: Path) -> list[dict[str, Any]]:
    """What the flame graph did at each of WIDTHS."""
    (directory / "flame.svg").write_text(svg)
    return measured_at_widths("flame.svg", directory, WIDTHS, _TRY)


@pytest.fixture(scope="module")
def difference(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    before, after = with_calls(BEFORE, kernel="debian:6.1"), with_calls(AFTER, kernel="debian:6.12")
    svg = flame_graph.of_difference(before, after, explain(before, after))
    return tried(svg, tmp_path_factory.mktemp("difference"))


def shown(bars: dict[str, dict[str, Any]]) -> set[str]:
    return {name for name, bar in bars.items() if bar["width"] > 0}


def test_it_fits_a_phone_and_a_desk(difference: list[dict[str, Any]]) -> None:
    for state, width in zip(difference, WIDTHS, strict=True):
        assert state["scroll"] == width
        assert state["cutOff"] == []
        assert state["controls"] == "flex"
        assert state["start"]["all"]["width"] == pytest.approx(width, abs=1)


def test_labels_fit_their_frames(difference: list[dict[str, Any]]) -> None:
    for state in difference:
        assert [name for name, bar in state["start"].items() if bar["tooWide"]] == []
        assert state["start"]["entry"]["label"] == "entry"
        assert [name for name, bar in state["zoomed"].items() if bar["tooWide"]] == []


def test_a_click_zooms_and_shows_the_numbers(difference: list[dict[str, Any]]) -> None:
    for state, width in zip(difference, WIDTHS, strict=True):
        assert state["start"]["copy"]["width"] == pytest.approx(width * 70 / 108, abs=1)
        assert state["zoomed"]["copy"]["width"] == pytest.approx(width, abs=1)
        assert shown(state["zoomed"]) == {"all", "entry", "call", "fork", "copy"}
        assert state["zoomedSaid"][:2] == ["copy", "4 → 7, +3; 375.0\u00a0% of the difference"]
        assert state["whole"] == state["start"]


def test_a_search_marks_what_it_finds_and_sums_it_up(difference: list[dict[str, Any]]) -> None:
    for state in difference:
        assert {name for name, bar in state["sought"].items() if bar["hit"]} == {"copy", "exit"}
        assert state["soughtSaid"][:2] == ["2 frames found", "6 (60.0 %) → 8.5 (78.7 %)"]
        assert state["bad"] is True
        assert not any(bar["hit"] for bar in state["cleared"].values())


def test_the_other_width_shows_what_vanished(difference: list[dict[str, Any]]) -> None:
    for state, width in zip(difference, WIDTHS, strict=True):
        assert "gone" not in shown(state["start"])
        assert state["before"]["gone"]["width"] == pytest.approx(width * 0.3, abs=1)
        assert "new" not in shown(state["before"])
        assert state["beforeText"] == "width: first"


def test_ctrl_f_goes_to_the_search(difference: list[dict[str, Any]]) -> None:
    assert {state["focused"] for state in difference} == {"input"}


def test_one_profile_works_too(tmp_path: Path) -> None:
    functions = {("copy", ""): 30, ("exit", ""): 20}
    for state in tried(flame_graph.of_profile(a_profile(functions, program=50)), tmp_path):
        assert state["cutOff"] == []
        assert state["soughtSaid"][:2] == ["2 frames found", "5 (50.0 %)"]
        assert state["zoomed"]["copy"]["width"] == pytest.approx(state["width"], abs=1)
