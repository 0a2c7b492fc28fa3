"""Ctrl-C, SIGTERM and SIGHUP: one way for all of ktrial, and at every instant.

The first of them asks for an end. Where nothing can be left half done, it raises KeyboardInterrupt at once.
While settings of this system are changed or put back (`deferred`) nothing is broken off: it is remembered,
and raised where the work looks for it (`check`), or at the end. A loop that waits for events is told
(`listening`). What has been asked for stays asked for: a block, a batch or a candidate that is about to
begin does not.

All of it is the main thread's, where Python delivers signals; in other threads it does nothing.
"""

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE_SECONDS = 3.0
"""What ends on a KeyboardInterrupt is not interrupted again so soon, however often a key is pressed."""
_WITHOUT_SIGNAL = 130
"""Exit status of a KeyboardInterrupt that no signal has raised."""
_WAIT = b"ktrial: it is ending already: what was changed is put back first\n"

_Handler = signal.Handlers | int | Callable[..., object]


@dataclass
class _Asked:
    """Of this process, as signals are."""

    catching: int = 0
    """How many blocks of `caught` have been entered, one in another."""
    deferred: int = 0
    number: int = 0
    """The first signal; 0: none has arrived."""
    raised: bool = False
    when: float = -math.inf
    """The last time that KeyboardInterrupt was raised, by the monotonic clock."""
    tell: Callable[[], None] | None = None
    told: bool = False
    before: dict[signal.Signals, _Handler] = field(default_factory=dict)

    def arrived(self, number: int, _frame: FrameType | None) -> None:
        """The signal handler."""
        again, self.number = bool(self.number), self.number or number
        if self.tell and not self.told:
            self.told = True
            self.tell()
        elif again and (self.tell or self.deferred or time.monotonic() - self.when < PATIENCE_SECONDS):
            _say(_WAIT)
        elif self.tell is None and not self.deferred:
            self.interrupt()

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt."""
        self.raised, self.when = True, time.monotonic()
        raise KeyboardInterrupt


_asked = _Asked()


@contextmanager
def caught() -> Iterator[None]:
    """Inside, signals are handled as this module says; what has raised nothing is delivered at the end."""
    if not _in_main_thread():
        yield
        return
    _asked.catching += 1
    try:
        if _asked.catching == 1:
            _install()
        yield
    finally:
        _asked.catching -= 1
        if not _asked.catching:
            _remove()


def _install() -> None:
    for number in SIGNALS:
        handler = signal.getsignal(number)
        # Who started us with nohup wants SIGHUP ignored. None: a handler that is not Python's.
        if handler is not None and handler is not signal.SIG_IGN:
            _asked.before[number] = handler
            signal.signal(number, _asked.arrived)


def _remove() -> None:
    number, raised = _asked.number, _asked.raised
    for signal_number, handler in _asked.before.items():
        signal.signal(signal_number, handler)
    _asked.before.clear()
    _asked.number, _asked.raised, _asked.when = 0, False, -math.inf
    if number and not raised:
        os.kill(os.getpid(), number)


@contextmanager
def deferred(*, then_raise: bool = True) -> Iterator[None]:
    """Inside, a signal raises nothing but where it is looked for (`check`); it is raised at the end.

    `then_raise`: without it, what was done inside is done, and the next one who looks will see the signal.
    """
    if not _in_main_thread():
        yield
        return
    with caught():
        _asked.deferred += 1
        try:
            yield
        finally:
            _asked.deferred -= 1
        if then_raise and _asked.catching > 1:
            raise_remembered()


@contextmanager
def listening(tell: Callable[[], None]) -> Iterator[None]:
    """Inside, the first signal calls `tell` instead, which must be safe in a signal handler; once.

    Where one has arrived before, `tell` is called at the beginning.
    """
    if not _in_main_thread():
        yield
        return
    before, _asked.told, _asked.tell = (_asked.tell, _asked.told), False, tell
    try:
        if _asked.number and not _asked.told:
            _asked.told = True
            tell()
        yield
    finally:
        _asked.tell, _asked.told = before
    raise_remembered()


def check() -> None:
    """Raise KeyboardInterrupt if an end has been asked for, now or before."""
    if _in_main_thread() and _asked.number:
        _asked.interrupt()


def raise_remembered() -> None:
    """Raise KeyboardInterrupt if a signal has arrived that has raised nothing yet, and nothing forbids it."""
    if _asked.number and not (_asked.raised or _asked.deferred or _asked.tell):
        _asked.interrupt()


def is_asked_for() -> bool:
    """Whether a signal has asked for an end."""
    return bool(_asked.number)


def exit_status() -> int:
    """With which a process ends that was asked to: 128 and the signal's number, as a shell has it."""
    return 128 + _asked.number if _asked.number else _WITHOUT_SIGNAL


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _say(text: bytes) -> None:
    try:
        os.write(2, text)
    except OSError:
        return  # nobody reads it
