"""A headless browser for tests, told what to do by Chrome's DevTools protocol.

https://chromedevtools.github.io/devtools-protocol/: messages are JSON, each ended by NUL
(--remote-debugging-pipe reads them at descriptor 3, and writes them at 4). One browser serves all tests of a
process: to start one takes a second.
"""

import atexit
import base64
import functools
import html
import json
import os
import re
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

_BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

# Whether a page fits, and does what it should, can only be seen in a browser; `make test` installs one.
needs_a_browser = pytest.mark.skipif(_BROWSER is None, reason="needs a browser: chromium, google-chrome")

_OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--allow-file-access-from-files", "--remote-debugging-pipe"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
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
        self._received = b""
        self._events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def open(self, address: str) -> None:
        """Go there, and wait until it is loaded, with its frames."""
        self._events.clear()
        self.call("Page.navigate", url=address)
        self._wait_until_loaded()

    def follow(self, expression: str) -> None:
        """Do what leads to another page, and wait until that is loaded."""
        self._events.clear()
        self.value(expression)
        self._wait_until_loaded()

    def _wait_until_loaded(self) -> None:
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._events.append(self._message())

    def value(self, expression: str) -> Any:
        """What an expression is in the page; a promise's value, once it has one."""
        facts = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        answer = self.call("Runtime.evaluate", **facts)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Until it holds: it is looked at each time that the page changes."""
        self.value(_WATCH % condition)

    @property
    def complaints(self) -> list[str]:
        """What the browser has logged of the page: refused scripts, failed requests, errors of scripts."""
        self.value("0")
        events = self._events
        logged = [event["params"]["entry"]["text"] for event in events if event["method"] == "Log.entryAdded"]
        thrown = [event for event in events if event["method"] == "Runtime.exceptionThrown"]
        return [*logged, *(json.dumps(event["params"]) for event in thrown)]

    def close(self) -> None:
        """The browser ends when nobody writes to it any more."""
        self._write.close()
        self._read.close()

    def call(self, method: str, **facts: Any) -> dict[str, Any]:
        """Call a method of the protocol."""
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
        while b"\0" not in self._received:
            piece = os.read(self._read.fileno(), 1 << 16)
            assert piece, "the browser has ended"
            self._received += piece
        text, _, self._received = self._received.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message


@contextmanager
def a_page(directory: Path) -> Iterator[Page]:
    """A page of a new browser, whose profile lies in the directory."""
    assert _BROWSER
    ours_read, its_write = os.pipe()
    its_read, ours_write = os.pipe()
    # The browser reads at 3 and writes at 4: bash puts the two there (dash knows numbers of one digit).
    shell = f'exec "$0" "$@" 3<&{its_read} 4>&{its_write}'
    process = subprocess.Popen(
        ("bash", "-c", shell, _BROWSER, *_OPTIONS, f"--user-data-dir={directory / 'profile'}", "about:blank"),
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


@functools.cache
def shared_page() -> Page:
    """The page of this process's browser."""
    at_end = ExitStack()
    atexit.register(at_end.close)
    directory = at_end.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
    return at_end.enter_context(a_page(Path(directory)))


WIDTHS = (360, 414, 768, 900, 1280)
"""In pixels: two telephones, a tablet, two desks."""
_LAYOUT = """
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
    const texts = [...drawing.querySelectorAll('text')].filter(
      text => text.textContent && text.getBoundingClientRect().width);  // others are not drawn
    const boxes = texts.map(text => text.getBoundingClientRect());
    texts.forEach((text, i) => {
      if (outside(boxes[i], frame)) cut.push(named(text));
      for (let j = 0; j < i; j++)
        if (overlap(boxes[i], boxes[j])) overlapping.push(named(texts[j]) + ' / ' + named(text));
    });
  }
  const scrolls = [...page.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth + 1);
  const shown = [...page.querySelectorAll('.chart svg')].filter(one => one.getBoundingClientRect().width);
  return {
    width: Number(frame.width), scroll: page.documentElement.scrollWidth, wide, cut, overlapping,
    charts: shown.length, live: page.querySelectorAll('svg.flame.live').length,
    scrolls: scrolls.map(box => box.getAttribute('aria-label')),
    cues: scrolls.map(box => frame.contentWindow.getComputedStyle(box).backgroundAttachment),
  };
}
"""
"""How a page is laid out: what reaches beyond it, what of its charts is cut off or lies over other text."""


def measured_at_widths(
    source: str, directory: Path, widths: Sequence[int] = WIDTHS, script: str = _LAYOUT
) -> list[dict[str, Any]]:
    """What the script's function `measured` says of a page at each width.

    `source`: an address, or the page itself. A headless window cannot be narrower than 500 pixels, a frame in
    it can.
    """
    is_page = source.lstrip().startswith("<")
    attribute = f'srcdoc="{html.escape(source)}"' if is_page else f'src="{source}"'
    return measured_frames([f'width="{width}" {attribute}' for width in widths], directory, script)


def measured_frames(frames: Sequence[str], directory: Path, script: str) -> list[dict[str, Any]]:
    """What the script's function `measured` says of each frame, which its attributes describe."""
    around = directory / "frames.html"
    tags = "".join(f'<iframe height="900" style="border:0" {attributes}></iframe>' for attributes in frames)
    around.write_text(f"<!DOCTYPE html><meta charset=utf-8><script>{script}</script><body>{tags}")
    page = shared_page()
    page.open(around.as_uri())
    answers: list[dict[str, Any]] = page.value(
        "Promise.all([...document.querySelectorAll('iframe')].map(measured))"
    )
    return answers


@contextmanager
def seen_on(source: str, directory: Path, width: int, *, dark: bool) -> Iterator[Page]:
    """A page, or what is at an address, on a screen of so many pixels across, in light or in dark."""
    page = shared_page()
    if source.lstrip().startswith("<"):
        (directory / "seen.html").write_text(source, encoding="utf-8")
        source = (directory / "seen.html").as_uri()
    theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    page.call(
        "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
    )
    page.call("Emulation.setEmulatedMedia", features=[theme])
    try:
        page.open(source)
        yield page
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")
        page.call("Emulation.setEmulatedMedia", features=[])


AXE = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
_VIOLATIONS = """
axe.run(document, {resultTypes: ['violations']}).then(result => result.violations.flatMap(rule =>
  rule.nodes.map(node => rule.id + ': ' + node.html.slice(0, 160) + ' ' + (node.any[0]?.message || ''))))
"""


def violations(page: Page) -> list[str]:
    """What axe says that the open page keeps somebody from reading."""
    page.value(f"{AXE}; 0")
    violated: list[str] = page.value(_VIOLATIONS)
    return violated


def layout_of(page: Page) -> dict[str, Any]:
    """How the page that is open is laid out."""
    layout: dict[str, Any] = page.value(
        f"(() => {{ {_LAYOUT} return measured({{contentDocument: document, contentWindow: window}}); }})()"
    )
    return layout


def assert_fits(source: str, directory: Path, widths: Sequence[int] = WIDTHS) -> list[dict[str, Any]]:
    """Nothing of the page is cut off, overlaps or scrolls sideways, at any width."""
    layouts = measured_at_widths(source, directory, widths)
    for layout, width in zip(layouts, widths, strict=True):
        assert (layout["width"], layout["scroll"]) == (width, width), "the page scrolls sideways"
        assert layout["wide"] == [], f"wider than {width} pixels"
        assert layout["cut"] == [], f"text outside its chart at {width} pixels"
        assert layout["overlapping"] == [], f"text over text at {width} pixels"
    return layouts


# A page on paper: what the browser prints, and which pieces of text stand on which sheet.

_STREAM = re.compile(rb"stream\r?\n(.*?)endstream", re.DOTALL)
_PIECE = re.compile(rb"BT\b(.*?)\bET", re.DOTALL)
_GLYPHS = re.compile(rb"<([0-9A-F]+)>")


def sheets(page: str, directory: Path) -> list[set[bytes]]:
    """The pieces of text of each sheet, as numbers of the font's glyphs: the same text has the same numbers.

    A PDF holds no words, but what was set at one place stands in one text object (ISO 32000-1, 9.4).
    """
    source = directory / "page.html"
    source.write_text(page, encoding="utf-8")
    shared_page().open(source.as_uri())
    printed = base64.b64decode(shared_page().call("Page.printToPDF")["data"])
    parts = [_pieces(stream[1]) for stream in _STREAM.finditer(printed)]
    return [pieces for pieces in parts if pieces]


def _pieces(stream: bytes) -> set[bytes]:
    try:
        content = zlib.decompress(stream)
    except zlib.error:
        return set()
    return {b"".join(_GLYPHS.findall(piece[1])) for piece in _PIECE.finditer(content)} - {b""}
