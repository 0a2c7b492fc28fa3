"""Writes a page: whole, or not at all."""

import contextlib
from pathlib import Path

from ktrial.cli.options.profiling import FileNotWritten


def write_page(path: Path, text: str) -> Path:
    """Write the text; a half-written file is never left where a whole one was. Raises FileNotWritten."""
    absolute = path.expanduser().absolute()
    partial = absolute.with_name(f".{absolute.name}.partial")
    try:
        absolute.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8")
        partial.replace(absolute)
    except OSError as error:
        with contextlib.suppress(OSError):  # it may never have been made
            partial.unlink()
        raise FileNotWritten(path=absolute, problem=error.strerror) from error
    return absolute
