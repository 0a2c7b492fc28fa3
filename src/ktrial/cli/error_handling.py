"""How commands end: an error is a message, a hint and an exit code; a traceback is for ktrial's own bugs.

`check`, `series` and `watch` end in the terms of `git bisect run`. git takes 0 for good, 125 for
'cannot be tested', any other code below 128 for bad, and stops the bisection at 128 and above
(git-bisect(1)). So nothing but a verdict may end with 1, and what says nothing about the kernel ends with
128: a bisection must not walk on over a full disk.
"""

import contextlib
import errno
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ktrial import interruption
from ktrial.cli import memory, usage_mistakes
from ktrial.errors import KtrialError
from ktrial.installation import VERSION

if TYPE_CHECKING:
    from ktrial.model.regression_check import Decision
    from ktrial.model.warnings import DataWarning

INTERRUPTED = 130
BUG = 70
"""EX_SOFTWARE of sysexits.h."""
TRACEBACK = "KTRIAL_TRACEBACK"
WITHIN, BEYOND, SKIP = 0, 1, 125
BAD_USAGE, HOST_PROBLEM = 2, 128
_FIRST_THAT_STOPS_A_BISECTION = 128
_NO_UTF8 = re.compile("[\ud800-\udfff]")
"""What Python has for bytes of a name that are no UTF-8."""


class ErrorHandling:
    """Turns whatever a command raises into a message and an exit code.

    A context manager and not an `except`, so that nothing between the two can swallow an error.
    """

    def __init__(self) -> None:
        self.code = 0
        self._signals = interruption.caught()

    def __enter__(self) -> Self:
        usage_mistakes.begin()
        self._signals.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        with interruption.deferred(then_raise=False):
            handled = error is not None and not isinstance(error, SystemExit)
            if error is not None and handled:
                self.code = tell_error(error)
            self._signals.__exit__(None, None, None)
        return handled


class CheckEndings:
    """Turns what a check raises into an exit code that cannot be mistaken for a verdict."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from typer import Exit

        # Ctrl-C and SIGTERM end with 130 and 143 in any case.
        if error is None or isinstance(error, KeyboardInterrupt | SystemExit | Exit):
            return
        code = tell_error(error)
        if _is_of_the_kernel(error):
            code = SKIP
        elif code == BAD_USAGE:
            code = usage_code()
        elif code < _FIRST_THAT_STOPS_A_BISECTION:
            code = HOST_PROBLEM
        raise SystemExit(code) from None


def _is_of_the_kernel(error: BaseException) -> bool:
    """Whether the kernel under test cannot be built, or is none: what tells of the kernel itself."""
    from ktrial.kernels.errors import BuildFailed, ImageError, OptionNotTaken
    from ktrial.target.errors import GuestEnded

    return isinstance(error, BuildFailed | OptionNotTaken | ImageError | GuestEnded)


def code_of(decision: "Decision") -> int:
    """The exit code for a check's decision."""
    from ktrial.model.regression_check import Decision

    within = (Decision.WITHIN, Decision.ACCEPTED, Decision.NOT_EXECUTED, Decision.SAME_CODE)
    codes = dict.fromkeys(within, WITHIN) | {Decision.BEYOND: BEYOND}
    return codes.get(decision, SKIP)


def usage_code() -> int:
    """2; or 128 in a tree that is being bisected, where git would take 2 for a bad commit."""
    try:
        answer = subprocess.run(
            ["git", "rev-parse", "--git-path", "BISECT_START"],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except FileNotFoundError:
        return BAD_USAGE  # without git nobody bisects
    is_bisected = answer.returncode == 0 and Path(answer.stdout.strip()).exists()
    return HOST_PROBLEM if is_bisected else BAD_USAGE


def tell(message: str, hint: str = "", *, kind: str = "error") -> None:
    """One error or warning, on standard error. Where nobody reads it any more, it is lost."""
    text = f"ktrial: {kind}: {_plain(message)}\n"
    with contextlib.suppress(OSError):  # the exit code still tells
        sys.stderr.write(text + (f"hint: {_plain(hint)}\n" if hint else ""))
        sys.stderr.flush()


def tell_warnings(warnings: "Iterable[DataWarning]") -> None:
    """Tell each, such as which extensions are broken and left out."""
    for warning in warnings:
        tell(warning.text, warning.advice, kind="note" if warning.is_note else "warning")


def tell_error(error: BaseException) -> int:
    """Print what the error says; return its exit code, which tells the signal where one has ended ktrial."""
    code = _tell_and_code(error)
    return interruption.exit_status() if code == INTERRUPTED or interruption.is_asked_for() else code


def _tell_and_code(error: BaseException) -> int:
    if os.environ.get(TRACEBACK) == "1" and not isinstance(error, BrokenPipeError):
        import traceback

        traceback.print_exception(error)
    if no_memory := memory.why_memory_ended(error):
        tell(*no_memory)
        return memory.NOT_ENOUGH_MEMORY
    import typer

    match error:
        case KtrialError():
            is_usage = error.exit_code == BAD_USAGE
            tell(error.message, error.advice or (usage_mistakes.help_of_command() if is_usage else ""))
            return error.exit_code
        case typer.TyperException() if error.message.startswith("Usage: "):
            # A group of commands without a command: Typer's message is the whole help.
            sys.stderr.write(f"{error.message}\n")
            return error.exit_code
        case typer.TyperException():
            tell(*usage_mistakes.message_and_hint(error))
            return error.exit_code
        case KeyboardInterrupt() | typer.Abort():
            tell("Interrupted")
            return INTERRUPTED
        case UnicodeEncodeError(reason="surrogates not allowed"):
            words = re.split(r"[\s'\"]+", error.object)
            name = next(word for word in words if _NO_UTF8.search(word))
            tell(
                f"The name {name} is not UTF-8: ktrial can neither store nor show it.", "give it another name"
            )
            return BAD_USAGE
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
            try:
                bug, report = save_bug_report(error)
            except (MemoryError, OSError, RuntimeError) as second:
                # Who has no memory for a report had none for the work: a library gave that another name.
                if (no_memory := memory.why_memory_ended(second)) is None:
                    raise
                tell(*no_memory)
                return memory.NOT_ENOUGH_MEMORY
            where = (
                f"it, with the traceback in {report}" if report else f"it; {TRACEBACK}=1 shows the traceback"
            )
            tell(f"this is a bug in ktrial, not in your study: {bug}", f"please report {where}")
            return BUG


def _terminal_is_closed() -> bool:
    """Whether standard output is a terminal that has been closed: a device, and no terminal any more."""
    file = sys.stdout.fileno()
    return stat.S_ISCHR(os.fstat(file).st_mode) and not os.isatty(file)


def _drop_output() -> None:
    """Nobody reads standard output any more: what Python still holds for it goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def save_bug_report(error: BaseException) -> tuple[str, Path | None]:
    """What went wrong, on one line, and the file that now holds the traceback, for whoever is to mend it.

    The file is None where no directory would take it.
    """
    import platform
    import tempfile
    import traceback

    import platformdirs

    from ktrial.store.location import masked

    bug = traceback.format_exception_only(error)[-1].strip()
    text = "\n".join(
        (
            f"ktrial {VERSION}, Python {platform.python_version()}, {platform.platform()}",
            masked(f"command: {sys.argv}"),
            "",
            masked("".join(traceback.format_exception(error))),
        )
    )
    name = f"bug-{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}.txt"
    for directory in (Path(platformdirs.user_state_dir("ktrial")), Path(tempfile.gettempdir())):
        try:
            directory.mkdir(parents=True, exist_ok=True)
            # A new file: others may have put a link there, in a directory that is everybody's.
            with (directory / name).open("x", errors="backslashreplace") as report:
                report.write(text)
        except OSError:
            continue  # a full or read-only disk must not hide the bug: try the next place
        return bug, directory / name
    return bug, None


def _plain(text: str) -> str:
    """Nothing that a name or a file's content carries may move the terminal's cursor."""
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)
