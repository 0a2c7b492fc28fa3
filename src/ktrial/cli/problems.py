"""How errors reach the user: one message, one hint, an exit code; a traceback only for ktrial's own bugs."""

import contextlib
import errno
import os
import platform
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

import platformdirs
import typer

import ktrial
from ktrial.errors import KtrialError

INTERRUPTED = 130
BUG = 70
"""EX_SOFTWARE of sysexits.h."""
TRACEBACK = "KTRIAL_TRACEBACK"


class Ending:
    """Turns whatever a command raises into a message and an exit code.

    A context manager and not an `except`, so that nothing between the two can swallow an error.
    """

    def __init__(self) -> None:
        self.code = 0
        self._signal: int | None = None
        self._before: dict[signal.Signals, signal.Handlers | int | Callable[..., object] | None] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGHUP):
            # Who started us with nohup wants SIGHUP ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._stop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        for number, handler in self._before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        if error is None or isinstance(error, SystemExit):
            return False
        self.code = _code(error)
        if self._signal is not None and self.code == INTERRUPTED:
            self.code = 128 + self._signal
        return True

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        """What runs is ended in the same way as by Ctrl-C."""
        self._signal = number
        raise KeyboardInterrupt


def tell(message: str, hint: str = "", *, kind: str = "error") -> None:
    """One error or warning, on standard error. Where nobody reads it any more, it is lost."""
    text = f"ktrial: {kind}: {_plain(message)}\n"
    with contextlib.suppress(OSError):  # the exit code still tells
        sys.stderr.write(text + (f"hint: {_plain(hint)}\n" if hint else ""))
        sys.stderr.flush()


def _code(error: BaseException) -> int:
    """Print what the error says; return its exit code."""
    if os.environ.get(TRACEBACK) == "1" and not isinstance(error, BrokenPipeError):
        traceback.print_exception(error)
    match error:
        case KtrialError():
            tell(error.message, error.advice)
            return error.exit_code
        case typer.TyperException() if error.message.startswith("Usage: "):
            # A group of commands without a command: Typer's message is the whole help.
            sys.stderr.write(f"{error.message}\n")
            return error.exit_code
        case typer.TyperException():
            command = getattr(getattr(error, "ctx", None), "command_path", "ktrial")
            tell(error.format_message(), f"{command} --help")
            return error.exit_code
        case KeyboardInterrupt() | typer.Abort():
            tell("Interrupted")
            return INTERRUPTED
        case BrokenPipeError():
            _drop_output()
            return 1
        case OSError(errno=errno.ENOSPC, filename=None):
            tell("standard output cannot be written: its disk is full")
            _drop_output()
            return 1
        case _:
            return _bug(error)


def _drop_output() -> None:
    """Nobody reads standard output any more: what Python still holds for it goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def _bug(error: BaseException) -> int:
    what = traceback.format_exception_only(error)[-1].strip()
    place = _saved(error)
    where = f"it, with the traceback in {place}" if place else f"it; {TRACEBACK}=1 shows the traceback"
    tell(f"this is a bug in ktrial, not in your study: {what}", f"please report {where}")
    return BUG


def _saved(error: BaseException) -> Path | None:
    """The file that now holds the traceback; None where no directory would take it."""
    text = "\n".join(
        (
            f"ktrial {ktrial.__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"command: {sys.argv}",
            "",
            "".join(traceback.format_exception(error)),
        )
    )
    name = f"bug-{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}.txt"
    for directory in (Path(platformdirs.user_state_dir("ktrial")), Path(tempfile.gettempdir())):
        try:
            directory.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(text, errors="backslashreplace")
        except OSError:
            continue  # a full or read-only disk must not hide the bug: try the next place
        return directory / name
    return None


def _plain(text: str) -> str:
    """Nothing that a name or a file's content carries may move the terminal's cursor."""
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)
