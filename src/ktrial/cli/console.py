"""What commands give out: results on standard output, messages on standard error, and files."""

import codecs
import contextlib
import json
import os
import sys
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrial.errors import KtrialError

if TYPE_CHECKING:
    from rich.console import Console

_PIPE_COLUMNS = 100
"""The width of tables that do not go to a terminal; COLUMNS changes it."""


def output() -> "Console":
    """Standard output. Text is printed as it is: no markup, no emoji, no guessed colours."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPE_COLUMNS
    return Console(markup=False, emoji=False, highlight=False, width=width)


def messages() -> "Console":
    """Standard error, for progress and messages. In a log, one message is one line."""
    from rich.console import Console

    in_a_log = not sys.stderr.isatty()
    return Console(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=in_a_log)


def say(text: str) -> None:
    """One message for a person, on standard error."""
    sys.stderr.write(f"{text}\n")


def print_texts(
    headings: Sequence[str],
    rows: Iterable[Iterable[str]],
    *,
    numeric: Container[str] = (),
    unbroken: Container[str] = (),
) -> None:
    """A table on standard output; see `texts_table`."""
    from ktrial.cli.render.table import texts_table

    output().print(texts_table(headings, rows, numeric=numeric, unbroken=unbroken))


def print_json(data: Any) -> None:
    """The only thing on standard output where a command was given --json.

    What the terminal's encoding may lack is escaped as JSON has it.
    """
    has_all = codecs.lookup(sys.stdout.encoding or "ascii").name == "utf-8"
    sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=not has_all, allow_nan=False) + "\n")


def print_link(name: str, file: Path, console: "Console") -> None:
    """`report: /where/it/is.html`, on one line; terminals that know links open it where it is clicked."""
    from rich.text import Text

    line = Text(f"{name}: ").append(str(file), style=f"link {file.as_uri()}")
    console.print(line, soft_wrap=True)


def breakable(text: str) -> str:
    """The text with plain spaces, so that what is printed can be searched for."""
    return text.replace("\u00a0", " ")


class ReportNotWritten(KtrialError):
    """A page cannot be written: where it was to be, why, and the command that writes it later."""

    def __init__(self, path: Path, problem: str | None, again: str) -> None:
        super().__init__(
            f"The report {path} cannot be written: {problem}.",
            hint=f"name another place (--html FILE), or write it later: {again}",
        )


def write_page(path: Path, page: str, again: str) -> Path:
    """Write a page; a half-written one is never left where a whole one was.

    A link stays, and what it leads to is written; a device or a pipe is written to, never replaced. `again`:
    the command that writes it. Raises ReportNotWritten.
    """
    absolute = path.expanduser().absolute()
    place = absolute.resolve()
    partial = place.with_name(f".{place.name}.partial")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists() and not place.is_file():
            place.write_text(page, encoding="utf-8")
        else:
            partial.write_text(page, encoding="utf-8")
            partial.replace(place)
    except OSError as error:
        with contextlib.suppress(OSError):  # it may never have been made
            partial.unlink()
        raise ReportNotWritten(absolute, error.strerror, again) from error
    return absolute


def write_text(path: Path, text: str) -> None:
    """Write a file of the user's. Raises KtrialError."""
    try:
        path.expanduser().write_text(text, encoding="utf-8")
    except OSError as error:
        raise _not_written(path, error.strerror) from None


def append_text(path: Path, text: str) -> None:
    """Add to a file: $GITHUB_STEP_SUMMARY holds what other steps have written. Raises KtrialError."""
    try:
        with path.expanduser().open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise _not_written(path, error.strerror) from None


def check_page(path: Path | None) -> None:
    """Raise KtrialError where a page cannot be written, before a kernel is booted for it."""
    if path is None:
        return
    place = path.expanduser().absolute()
    if place.is_dir():
        raise _not_written(path, "it is a directory", hint="name a file: --html FILE")
    directory = next(directory for directory in place.parents if directory.exists())
    if not directory.is_dir():
        raise _not_written(path, f"{directory} is not a directory", hint="name another place: --html FILE")
    if not os.access(directory, os.W_OK):
        raise _not_written(path, f"{directory} is not writable", hint="name another place: --html FILE")


def check_writable(paths: Sequence[Path | None]) -> None:
    """Raise KtrialError where a file cannot be written, before a kernel is booted for it."""
    for path in filter(None, paths):
        place = path.expanduser()
        if not place.parent.is_dir():
            raise _not_written(path, "No such file or directory")
        if place.is_dir():
            raise _not_written(path, "Is a directory")


def _not_written(path: Path, problem: str | None, *, hint: str = "") -> KtrialError:
    return KtrialError(f"{path} cannot be written: {problem}", hint=hint)
