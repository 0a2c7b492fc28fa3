"""Ctrl-C, SIGTERM and SIGHUP during a run: an event for the loop that runs, else KeyboardInterrupt."""

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """While it is entered, signals that ask for an end do not break off a write to the store.

    The first one calls what `tell` was given; a second one, or one without `tell`, raises KeyboardInterrupt.
    Outside the main thread it does nothing: signals arrive there only.
    """

    def __init__(self) -> None:
        self._before: dict[signal.Signals, signal.Handlers | int | Callable[..., object] | None] = {}
        self._tell: Callable[[], None] | None = None

    def tell(self, tell: Callable[[], None]) -> None:
        """From now on the first signal calls `tell`, which must be safe in a signal handler."""
        self._tell = tell

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                # Who started us with nohup wants SIGHUP ignored.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._arrived)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def _arrived(self, _number: int, _frame: FrameType | None) -> None:
        tell, self._tell = self._tell, None
        if tell is None:
            raise KeyboardInterrupt
        tell()
