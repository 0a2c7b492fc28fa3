"""A headless browser that is told what to do while a page lives: by Chrome's DevTools protocol.

https://chromedevtools.github.io/devtools-protocol/: messages are JSON, each ended by NUL
(--remote-debugging-pipe reads them at descriptor 3, and writes them at 4).
"""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.browser import program

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
