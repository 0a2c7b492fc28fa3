"""Reading a file that somebody else wrote: complete or not at all, and never more than fits."""

import json
import os
import stat
from pathlib import Path

from ktrial.importers.errors import MeasurementsDamaged, MeasurementsTooLarge, MeasurementsUnreadable
from ktrial.importers.protocol import Choices, SourceFile

LARGEST_MIB = 32
_MIB = 1024 * 1024


def source_file(path: Path, label: str = "", choices: Choices | None = None) -> SourceFile:
    """The file's text. Raises MeasurementsUnreadable and MeasurementsTooLarge."""
    raw = _bytes(path)
    if b"\0" in raw:
        raise MeasurementsUnreadable(file=path, problem="it is binary, not text")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"byte {error.start} is not UTF-8"
        raise MeasurementsUnreadable(file=path, problem=problem) from error
    if not text.strip():
        raise MeasurementsUnreadable(file=path, problem="it is empty")
    return SourceFile(path, text.replace("\r\n", "\n").replace("\r", "\n"), label, choices or Choices())


def _bytes(path: Path) -> bytes:
    limit = LARGEST_MIB * _MIB
    try:
        # A FIFO that nobody writes to would hold an open() up for ever; a device has no end.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise MeasurementsUnreadable(file=path, problem="it is not a regular file")
            if found.st_size > limit:
                raise MeasurementsTooLarge(file=path, size=found.st_size // _MIB, limit=LARGEST_MIB)
            raw = file.read(limit + 1)
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise MeasurementsUnreadable(file=path, problem=problem) from error
    if len(raw) > limit:  # /proc files have size 0
        raise MeasurementsTooLarge(file=path, size=len(raw) // _MIB, limit=LARGEST_MIB)
    return raw


def is_json_object(file: SourceFile) -> bool:
    """Whether it begins like one."""
    return file.text.lstrip()[:1] == "{"


def json_object(file: SourceFile, format: str) -> dict[str, object]:
    """The object in the file. Raises MeasurementsDamaged."""
    try:
        found = json.loads(file.text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _damaged(file, format, where, f"this is not JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        problem = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _damaged(file, format, "somewhere in it", problem) from error
    if not isinstance(found, dict):
        raise _damaged(file, format, "line 1", "an object ({…}) was expected")
    return found


def objects(file: SourceFile, format: str, where: str, found: object) -> list[dict[str, object]]:
    """A list of objects. Raises MeasurementsDamaged."""
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise _damaged(file, format, where, "a list of objects was expected")
    return found


def text_of(found: object) -> str:
    """A string; empty where it is none."""
    return found if isinstance(found, str) else ""


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number that can be compared")


def _damaged(file: SourceFile, format: str, where: str, problem: str) -> MeasurementsDamaged:
    return MeasurementsDamaged(file=file.path, format=format, where=where, problem=problem)
