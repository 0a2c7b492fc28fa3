"""How errors reach the user: one message, one hint, an exit code; a traceback only for ktrial's own bugs."""

import contextlib
import errno
import os
import stat
import sys
from types import TracebackType
from typing import Self

from ktrial import interruption
from ktrial.errors import KtrialError

INTERRUPTED = 130
BUG = 70
"""EX_SOFTWARE of sysexits.h."""
TRACEBACK = "KTRIAL_TRACEBACK"


class ErrorHandling:
    """Turns whatever a command raises into a message and an exit code.

    A context manager and not an `except`, so that nothing between the two can swallow an error.
    """

    def __init__(self) -> None:
        self.code = 0
        self._caught = interruption.caught()

    def __enter__(self) -> Self:
        self._caught.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        with interruption.deferred(then_raise=False):
            told = error is not None and not isinstance(error, SystemExit)
            if error is not None and told:
                self.code = tell_error(error)
            self._caught.__exit__(None, None, None)
        return told


def tell(message: str, hint: str = "", *, kind: str = "error") -> None:
    """One error or warning, on standard error. Where nobody reads it any more, it is lost."""
    text = f"ktrial: {kind}: {_plain(message)}\n"
    with contextlib.suppress(OSError):  # the exit code still tells
        sys.stderr.write(text + (f"hint: {_plain(hint)}\n" if hint else ""))
        sys.stderr.flush()


def tell_error(error: BaseException) -> int:
    """Print what the error says; return its exit code, which tells the signal where one has ended ktrial."""
    code = _told(error)
    return interruption.exit_status() if code == INTERRUPTED or interruption.is_asked_for() else code


def _told(error: BaseException) -> int:
    import typer

    if os.environ.get(TRACEBACK) == "1" and not isinstance(error, BrokenPipeError):
        import traceback

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
        case OSError(errno=errno.EIO, filename=None) if _terminal_is_closed():
            tell("standard output cannot be written: its terminal is closed")
            _drop_output()
            return 1
        case _:
            return _bug(error)


def _terminal_is_closed() -> bool:
    """Whether standard output is a terminal that has been closed: a device, and no terminal any more."""
    file = sys.stdout.fileno()
    return stat.S_ISCHR(os.fstat(file).st_mode) and not os.isatty(file)


def _drop_output() -> None:
    """Nobody reads standard output any more: what Python still holds for it goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def _bug(error: BaseException) -> int:
    from ktrial.cli import bug_report

    what, place = bug_report.save(error)
    where = f"it, with the traceback in {place}" if place else f"it; {TRACEBACK}=1 shows the traceback"
    tell(f"this is a bug in ktrial, not in your study: {what}", f"please report {where}")
    return BUG


def _plain(text: str) -> str:
    """Nothing that a name or a file's content carries may move the terminal's cursor."""
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)
