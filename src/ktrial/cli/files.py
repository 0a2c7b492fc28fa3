"""Files that the user named: written whole, or not at all."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from ktrial.errors import KtrialError


class FileNotWritten(KtrialError):
    """{path} cannot be written: {problem}"""


class ReportNotWritten(KtrialError):
    """The report {path} cannot be written: {problem}."""

    hint = "name another place (--html FILE), or write it later: {again}"


def write_page(path: Path, page: str, again: str) -> Path:
    """Write a page; a half-written one is never left where a whole one was.

    `again`: the command that writes it. Raises ReportNotWritten.
    """
    absolute = path.expanduser().absolute()
    partial = absolute.with_name(f".{absolute.name}.partial")
    try:
        absolute.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(page, encoding="utf-8")
        partial.replace(absolute)
    except OSError as error:
        with contextlib.suppress(OSError):  # it may never have been made
            partial.unlink()
        raise ReportNotWritten(path=absolute, problem=error.strerror, again=again) from error
    return absolute


def write_text(path: Path, text: str) -> None:
    """Write a file of the user's. Raises FileNotWritten."""
    try:
        path.expanduser().write_text(text, encoding="utf-8")
    except OSError as error:
        raise FileNotWritten(path=path, problem=error.strerror) from None


def append_text(path: Path, text: str) -> None:
    """Add to a file: $GITHUB_STEP_SUMMARY holds what other steps have written. Raises FileNotWritten."""
    try:
        with path.expanduser().open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise FileNotWritten(path=path, problem=error.strerror) from None


def check_writable(paths: Sequence[Path]) -> None:
    """Raise FileNotWritten where a file cannot be written, before a kernel is booted for it."""
    for path in paths:
        place = path.expanduser()
        if not place.parent.is_dir():
            raise FileNotWritten(path=path, problem="No such file or directory")
        if place.is_dir():
            raise FileNotWritten(path=path, problem="Is a directory")
