"""A headless browser for tests: it shows a page that measures itself and leaves what it found in the page."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_BROWSER = next((path for name in BROWSERS if (path := shutil.which(name))), None)
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--hide-scrollbars", "--disable-background-networking", "--disable-component-update"),
    # By a clock that jumps to the next timer where there is nothing to do.
    "--virtual-time-budget=10000",
    *("--disable-sync", "--allow-file-access-from-files", "--host-resolver-rules=MAP * ~NOTFOUND"),
)
# Whether a page fits, and does what it should, can only be seen in a browser; `make test` installs one.
needs_a_browser = pytest.mark.skipif(_BROWSER is None, reason=f"needs a browser: {', '.join(BROWSERS)}")


def program() -> str:
    """The browser's own path. For tests that need one."""
    assert _BROWSER
    return _BROWSER


WIDTHS = (360, 414, 768, 900, 1280)
"""In pixels: two telephones, a tablet, two desks."""
MEASURE = """
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
    const hidden = box.width === 0 || one.closest('.skip, thead');
    const scrolls = one.parentElement.closest('.scroll, pre');
    if (!hidden && !scrolls && !one.ownerSVGElement && outside(box, view)) wide.push(named(one));
  }
  for (const drawing of page.querySelectorAll('.chart svg, svg.history')) {
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


def measured_at_widths(
    source: str, directory: Path, widths: tuple[int, ...] = WIDTHS, script: str = MEASURE
) -> list[dict[str, Any]]:
    """What the browser made of a page at each width. `source`: the frame's attribute that names it.

    A headless window cannot be narrower than 500 pixels, a frame in it can.
    """
    frames = "".join(
        f'<iframe width="{width}" height="900" style="border:0" {source}></iframe>' for width in widths
    )
    around = directory / "frames.html"
    around.write_text(f"<!DOCTYPE html><meta charset=utf-8><script>{script}</script><body>{frames}")
    answer: list[dict[str, Any]] = found_in(around, directory)
    return answer


def found_in(page: Path, directory: Path) -> Any:
    """What the page has put, as JSON, into its element `measured`. Frames may be files beside it."""
    profile = f"--user-data-dir={directory / 'profile'}"
    command = (program(), *OPTIONS, profile, "--dump-dom", page.as_uri())
    dump = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    match = re.search(r'<pre id="measured">(.*?)</pre>', dump, re.DOTALL)
    assert match, dump[-2000:]
    return json.loads(html.unescape(match[1]))
