"""The program `ktrial`: runs the command line, and ends with what it means."""

import gc
import io
import locale
import os
import signal
import stat
import sys
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

from ktrial.cli import memory
from ktrial.cli.error_handling import BUG, INTERRUPTED, ErrorHandling, tell
from ktrial.cli.plain_characters import write_plainly
from ktrial.errors import KtrialError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_OBJECTS_BETWEEN_COLLECTIONS = 100_000
STOPS_A_BISECTION = 128
"""`git bisect run` takes smaller exit codes for a verdict on the commit; a bug of ktrial's own is none."""


def main() -> NoReturn:
    """Run the command line, and exit with what it means."""
    _take_names_for_utf8()
    closed = _put_in_place_of_closed_streams()
    stderr = sys.__stderr__
    if stderr is not None and stderr is sys.stderr:
        sys.stderr = _messages_that_end_nothing(stderr)
    for stream in (sys.stdout, sys.stderr):
        write_plainly(stream)
    with ErrorHandling() as ending, warnings.catch_warnings():
        warnings.showwarning = _warn
        # ktrial_launcher left SIGINT to its default action, which says nothing and puts nothing back.
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        # Kernels, programs and stores that anybody may write are anybody's to falsify.
        os.umask(os.umask(0o077) | stat.S_IWOTH)
        memory.prepare()
        # Here, so that Ctrl-C during half a second of imports ends like any other.
        import typer

        from ktrial.cli.app import app

        # What was imported stays. Commands build large results that also stay until they end: looking through
        # them for cycles every 700 objects took a seventh of the CPU time of `ktrial report`.
        gc.freeze()
        gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, 50, 50)
        if closed:
            raise KtrialError(
                "Standard output is closed: what this command prints would be lost.",
                hint="to discard the output, send it to /dev/null: ktrial … >/dev/null",
            )
        result = typer.main.get_command(app).main(prog_name="ktrial", standalone_mode=False)
        sys.stdout.flush()
        ending.code = result if isinstance(result, int) else 0
        if ending.code == INTERRUPTED:  # Typer turns KeyboardInterrupt into this
            raise KeyboardInterrupt
    if ending.code == BUG and sys.argv[1:2] == ["check"]:
        ending.code = STOPS_A_BISECTION
    sys.exit(ending.code)


def _take_names_for_utf8() -> None:
    """Start Python again where it takes names for ASCII (LC_ALL=C PYTHONUTF8=0).

    It could neither store nor tell the name of a home with an umlaut. The terminal stays what it is.
    """
    if sys.getfilesystemencoding() == "ascii" and "utf8" not in sys._xoptions:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    if sys.flags.utf8_mode and os.environ.get("PYTHONUTF8") == "0":
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding=locale.getencoding())


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


class _NeverFails(io.FileIO):
    def write(self, data: "ReadableBuffer", /) -> int:
        """As many bytes as there are, written or not."""
        try:
            return super().write(data) or 0
        except BlockingIOError:
            raise
        except OSError:
            return memoryview(data).nbytes


def _messages_that_end_nothing(stream: TextIO) -> TextIO:
    """The same stream for messages; but what cannot be written is lost, and raises nothing.

    A terminal may be closed, a reader may go, a disk may be full: the run goes on, or puts back what it has
    changed. Results go to standard output, where an error is an error.
    """
    try:
        raw = _NeverFails(stream.fileno(), "w", closefd=False)
    except (OSError, ValueError):
        return stream  # it is no file
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=stream.encoding, errors=stream.errors, line_buffering=True
    )


def main_with_parent() -> None:
    """The program `ktrial` as another ktrial starts it: when that one is gone, it ends as on Ctrl-C."""
    _take_names_for_utf8()
    end_with_parent()
    main()


def end_with_parent() -> None:
    """From now on SIGTERM comes when standard input closes, which nobody else sees: it is empty for them.

    Standard input is a pipe whose other end the parent has, which writes nothing: it closes with that
    process, however that ends (SIGKILL, out of memory).
    """
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    threading.Thread(target=_wait, args=(pipe,), name="parent", daemon=True).start()


def _wait(pipe: int) -> None:
    while os.read(pipe, 1):
        pass
    # Nobody reads messages any more: that must not be an error while the machine is given back.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
