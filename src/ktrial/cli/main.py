"""The program `ktrial`: runs the command line, and ends with what it means."""

import io
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import NoReturn, TextIO

from ktrial.cli.error_handling import BUG, INTERRUPTED, ErrorHandling, tell
from ktrial.cli.lasting_messages import messages_that_end_nothing
from ktrial.errors import KtrialError

STOPS_A_BISECTION = 128
"""`git bisect run` takes smaller exit codes for a verdict on the commit; a bug of ktrial's own is none."""


class OutputClosed(KtrialError):
    """Standard output is closed: what this command has to say would be lost."""

    hint = "where nobody is to read it, send it to /dev/null: ktrial … >/dev/null"


def main() -> NoReturn:
    """Run the command line, and exit with what it means."""
    closed = _put_in_place_of_closed_streams()
    said = sys.__stderr__
    if said is not None and said is sys.stderr:
        sys.stderr = messages_that_end_nothing(said)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    with ErrorHandling() as ending, warnings.catch_warnings():
        warnings.showwarning = _warn
        _hear_interrupts()
        # Here, so that Ctrl-C during half a second of imports ends like any other.
        import typer

        from ktrial.cli.app import app

        if closed:
            raise OutputClosed
        result = typer.main.get_command(app).main(prog_name="ktrial", standalone_mode=False)
        sys.stdout.flush()
        ending.code = result if isinstance(result, int) else 0
        if ending.code == INTERRUPTED:  # Typer turns KeyboardInterrupt into this
            raise KeyboardInterrupt
    if ending.code == BUG and sys.argv[1:2] == ["check"]:
        ending.code = STOPS_A_BISECTION
    sys.exit(ending.code)


def _hear_interrupts() -> None:
    """`ktrial_launcher` left SIGINT to its default action, which says nothing and puts nothing back."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _put_in_place_of_closed_streams() -> bool:
    """Python has None for a stream whose descriptor is closed (`>&-`). Whether standard output was."""
    closed = sys.stdout is None
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for the process's life
            setattr(sys, name, nowhere)
    return closed


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Python's warnings (a broken plugin of another package) in ktrial's form."""
    tell(str(message), kind="warning")
