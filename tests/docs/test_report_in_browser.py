"""The report in a real browser, at a phone's, a tablet's and a desk's width: nothing is cut off or overlaps.

Each page is put into frames of several widths (a headless window cannot be narrower than 500 pixels); a
script in the page around them measures what the browser made of it.
"""

import html
from pathlib import Path

import pytest
from tests.docs.browser import found_in, needs_a_browser
from tests.unit.report_records import ALL
from tests.unit.report_whys import a_counted_record, whys_for

from ktrial import report

WIDTHS = (360, 414, 768, 900, 1280)
pytestmark = needs_a_browser

_MEASURE = """
const SLACK = 1;
function outside(box, frame) { return box.left < frame.left - SLACK || box.right > frame.right + SLACK; }
function named(element) { return element.tagName + ' ' + (element.textContent || '').trim().slice(0, 40); }
function overlap(a, b) {
  return Math.min(a.right, b.right) - Math.max(a.left, b.left) > SLACK
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
}
function measured(frame) {
  const page = frame.contentDocument, wide = [], cut = [], overlapping = [];
  const view = {left: 0, right: page.documentElement.clientWidth};
  for (const one of page.querySelectorAll('body *')) {
    const box = one.getBoundingClientRect();
    const hidden = box.width === 0 || one.closest('.skip, thead') || one.matches('td.value');
    const scrolls = one.parentElement.closest('.scroll, pre');
    if (!hidden && !scrolls && !one.ownerSVGElement && outside(box, view)) wide.push(named(one));
  }
  for (const drawing of page.querySelectorAll('.chart svg')) {
    const frame = drawing.getBoundingClientRect();
    if (frame.width === 0) continue;
    const texts = [...drawing.querySelectorAll('text')].filter(text => text.textContent);
    const boxes = texts.map(text => text.getBoundingClientRect());
    texts.forEach((text, i) => {
      if (outside(boxes[i], frame)) cut.push(named(text));
      for (let j = 0; j < i; j++)
        if (overlap(boxes[i], boxes[j])) overlapping.push(named(texts[j]) + ' / ' + named(text));
    });
  }
  const shown = [...page.querySelectorAll('.chart svg')].filter(one => one.getBoundingClientRect().width);
  const live = page.querySelectorAll('svg.flame.live').length;
  return {live, width: frame.width, scroll: page.documentElement.scrollWidth, wide, cut, overlapping,
          charts: shown.length};
}
addEventListener('load', () => {
  const found = [...document.querySelectorAll('iframe')].map(measured);
  const answer = document.createElement('pre');
  answer.id = 'measured';
  answer.textContent = JSON.stringify(found);
  document.body.replaceChildren(answer);
});
"""


def measured(page: str, directory: Path) -> list[dict[str, object]]:
    """What the browser made of the page at each of WIDTHS."""
    frames = "".join(
        f'<iframe width="{width}" height="900" style="border:0" srcdoc="{html.escape(page)}"></iframe>'
        for width in WIDTHS
    )
    around = directory / "frames.html"
    around.write_text(f"<!DOCTYPE html><meta charset=utf-8><script>{_MEASURE}</script><body>{frames}")
    answer: list[dict[str, object]] = found_in(around, directory)
    return answer


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_cut_off_or_overlaps(name: str, tmp_path: Path) -> None:
    record = ALL[name]()
    found = measured(report.html(record), tmp_path)
    assert [one["width"] for one in found] == [str(width) for width in WIDTHS]
    for one, width in zip(found, WIDTHS, strict=True):
        assert one["scroll"] == width, "the page scrolls sideways"
        assert one["wide"] == [], f"wider than {width} pixels"
        assert one["cut"] == [], f"text outside its chart at {width} pixels"
        assert one["overlapping"] == [], f"text over text at {width} pixels"
        assert bool(one["charts"]) == bool(record.trials)


@pytest.mark.parametrize("opened", [False, True])
def test_the_functions_of_a_difference_fit_and_their_flame_graphs_live(opened: bool, tmp_path: Path) -> None:
    record = a_counted_record()
    whys = whys_for(record)
    page = report.html(record, whys)
    if opened:
        page = page.replace("<details", "<details open")
    for one, width in zip(measured(page, tmp_path), WIDTHS, strict=True):
        assert one["scroll"] == width, "the page scrolls sideways"
        assert one["wide"] == [], f"wider than {width} pixels"
        # The page's own rules for scripts let this one run.
        assert one["live"] == len(whys)


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
