"""Signals wait."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Inside, Ctrl-C, SIGTERM and SIGHUP are remembered; afterwards the first of them is delivered.

    Only the main thread is interrupted by Python's signal handlers: elsewhere nothing is to be done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def remember(number: int, _frame: FrameType | None) -> None:
        arrived.append(number)

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    # None: a handler that was not set from Python, and cannot be put back.
    mine = [number for number, handler in before.items() if handler not in {None, signal.SIG_IGN}]
    try:
        for number in mine:
            signal.signal(number, remember)
        yield
    finally:
        for number in mine:
            signal.signal(number, before[number])
        if arrived:
            os.kill(os.getpid(), arrived[0])
