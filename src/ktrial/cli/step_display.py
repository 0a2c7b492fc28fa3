"""The steps of a build or a download: on a terminal one line that changes; in a log, lines now and then."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ktrial.cli.console import messages

if TYPE_CHECKING:
    from ktrial.kernels import Progress

_SECONDS_BETWEEN = 30.0
_COUNT = re.compile(r"(?:: (?:about )?\d|; ).*$")
"""How far a step is: `building: 481 of about 1,563 files, about 13 min left`."""


@contextmanager
def step_display() -> "Iterator[Progress]":
    """On standard error, for as long as the block. A log has the seconds since its beginning, too."""
    console, begin = messages(), time.monotonic()
    if console.is_terminal:
        with console.status("") as status:
            yield lambda what, done=0, total=0: status.update(with_bytes(what, done, total))
        return
    log = StepLog(lambda text: console.print(f"{time.monotonic() - begin:.0f} s: {text}"))
    yield lambda what, done=0, total=0: log.step("", what, done, total)


class StepLog:
    """Lines of a log: each new step, and how far a step is that goes on, each half a minute."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._last: dict[str, tuple[str, float]] = {}
        """Name → its last step, and when a line was written of it."""

    def step(self, name: str, what: str, done: int = 0, total: int = 0) -> None:
        """Of what has this name, which is written before it; `done` and `total` are bytes."""
        now, step = time.monotonic(), _COUNT.sub("", what)
        last, written = self._last.get(name, ("", 0.0))
        counts = step != what or bool(done)
        if step != last or (counts and now - written >= _SECONDS_BETWEEN):
            self._last[name] = step, now
            self._write(f"{name}: {with_bytes(what, done, total)}" if name else with_bytes(what, done, total))

    def begin_anew(self) -> None:
        """The next step is a new one, whatever the last one was."""
        self._last.clear()


def with_bytes(what: str, done: int, total: int) -> str:
    """`fetching: 12.0 MB of 80.1 MB`."""
    from ktrial.kernels.cache.disk_space import shown

    return f"{what}: {shown(done)} of {shown(total)}" if total else what
