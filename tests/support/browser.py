"""A headless browser for tests: it shows a page that measures itself and leaves what it found in the page."""

import html
import json
import os
import re
import shutil
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
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


# A headless browser that is told what to do while a page lives: by Chrome's DevTools protocol.
#
# https://chromedevtools.github.io/devtools-protocol/: messages are JSON, each ended by NUL
# (--remote-debugging-pipe reads them at descriptor 3, and writes them at 4).

_WATCH = """
new Promise(resolve => {
  const holds = () => Boolean(%s);
  if (holds()) return resolve(true);
  const seen = new MutationObserver(() => { if (holds()) { seen.disconnect(); resolve(true); } });
  const all = {childList: true, subtree: true, attributes: true, characterData: true};
  seen.observe(document.documentElement, all);
})
"""


class Page:
    """One page of a browser."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = os.fdopen(read, "rb"), os.fdopen(write, "wb")
        self._number = 0
        self._session = ""
        self._events: list[dict[str, Any]] = []
        target = self._asked("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._asked("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._asked(f"{domain}.enable")

    def open(self, address: str) -> None:
        """Go there, and wait until it is loaded."""
        self._events.clear()
        self._asked("Page.navigate", url=address)
        self._wait_until_loaded()

    def follow(self, expression: str) -> None:
        """Do what leads to another page, and wait until that is loaded."""
        self._events.clear()
        self.value(expression)
        self._wait_until_loaded()

    def _wait_until_loaded(self) -> None:
        while not any(one["method"] == "Page.loadEventFired" for one in self._events):
            self._events.append(self._message())

    def value(self, expression: str) -> Any:
        """What an expression is in the page; a promise's value, once it has one."""
        facts = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        answer = self._asked("Runtime.evaluate", **facts)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Until it holds: it is looked at each time that the page changes."""
        self.value(_WATCH % condition)

    @property
    def complaints(self) -> list[str]:
        """What the browser has logged of the page: refused scripts, failed requests, errors of scripts."""
        self.value("0")
        logged = [one["params"]["entry"]["text"] for one in self._events if one["method"] == "Log.entryAdded"]
        thrown = [one for one in self._events if one["method"] == "Runtime.exceptionThrown"]
        return [*logged, *(json.dumps(one["params"]) for one in thrown)]

    def close(self) -> None:
        """The browser ends when nobody writes to it any more."""
        self._write.close()
        self._read.close()

    def _asked(self, method: str, **facts: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": facts}
        if self._session:
            message["sessionId"] = self._session
        self._write.write(json.dumps(message).encode() + b"\0")
        self._write.flush()
        while (answer := self._message()).get("id") != self._number:
            self._events.append(answer)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def _message(self) -> dict[str, Any]:
        text = bytearray()
        while (byte := self._read.read(1)) != b"\0":
            assert byte, "the browser has ended"
            text += byte
        message: dict[str, Any] = json.loads(text)
        return message


@contextmanager
def a_page(directory: Path) -> Iterator[Page]:
    """A page of a new browser, whose profile lies in the directory."""
    ours_read, its_write = os.pipe()
    its_read, ours_write = os.pipe()
    options = (
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-pipe"),
        f"--user-data-dir={directory / 'profile'}",
    )
    # The browser reads at 3 and writes at 4: bash puts the two there (dash knows numbers of one digit).
    shell = f'exec "$0" "$@" 3<&{its_read} 4>&{its_write}'
    process = subprocess.Popen(
        ("bash", "-c", shell, str(program()), *options, "about:blank"),
        pass_fds=(its_read, its_write),
        stderr=subprocess.DEVNULL,
    )
    os.close(its_read)
    os.close(its_write)
    page = Page(ours_read, ours_write)
    try:
        yield page
    finally:
        page.close()
        process.terminate()
        process.wait()


# A page on paper: what the browser prints, and which pieces of text stand on which sheet.

_STREAM = re.compile(rb"stream\r?\n(.*?)endstream", re.DOTALL)


_PIECE = re.compile(rb"BT\b(.*?)\bET", re.DOTALL)


_GLYPHS = re.compile(rb"<([0-9A-F]+)>")


def sheets(page: str, directory: Path) -> list[set[bytes]]:
    """The pieces of text of each sheet, as numbers of the font's glyphs: the same text has the same numbers.

    A PDF holds no words, but what was set at one place stands in one text object (ISO 32000-1, 9.4).
    """
    source, printed = directory / "page.html", directory / "page.pdf"
    source.write_text(page, encoding="utf-8")
    command = (program(), *OPTIONS, f"--user-data-dir={directory / 'profile'}", "--no-pdf-header-footer")
    subprocess.run(
        (*command, f"--print-to-pdf={printed}", source.as_uri()),
        capture_output=True,
        timeout=120,
        check=True,
    )
    parts = [_pieces(each[1]) for each in _STREAM.finditer(printed.read_bytes())]
    return [pieces for pieces in parts if pieces]


def _pieces(stream: bytes) -> set[bytes]:
    try:
        content = zlib.decompress(stream)
    except zlib.error:
        return set()
    return {b"".join(_GLYPHS.findall(each[1])) for each in _PIECE.finditer(content)} - {b""}
