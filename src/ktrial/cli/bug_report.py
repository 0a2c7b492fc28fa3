"""Keeps the traceback of a bug in ktrial, for whoever is to mend it."""

import os
import platform
import sys
import tempfile
import traceback
from datetime import UTC, datetime
from pathlib import Path

import platformdirs

from ktrial.installation import VERSION
from ktrial.store.location import masked


def save(error: BaseException) -> tuple[str, Path | None]:
    """What went wrong, on one line, and the file that now holds the traceback.

    The file is None where no directory would take it.
    """
    what = traceback.format_exception_only(error)[-1].strip()
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
            (directory / name).write_text(text, errors="backslashreplace")
        except OSError:
            continue  # a full or read-only disk must not hide the bug: try the next place
        return what, directory / name
    return what, None
