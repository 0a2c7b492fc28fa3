"""Reading files, and numbers in them, that somebody else wrote: complete or not at all."""

import json
import math
import os
import re
import stat
from pathlib import Path

from ktrial.importers.errors import MeasurementsDamaged, MeasurementsTooLarge, MeasurementsUnreadable
from ktrial.importers.protocol import Choices, SourceFile
from ktrial.model.imported import Rounded
from ktrial.model.workload import Direction

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
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise MeasurementsUnreadable(file=path, problem="it is not a regular file")
            if status.st_size > limit:
                raise MeasurementsTooLarge(file=path, size=status.st_size // _MIB, limit=LARGEST_MIB)
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
        value = json.loads(file.text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _damaged(file, format, where, f"this is not JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        problem = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _damaged(file, format, "somewhere in it", problem) from error
    if not isinstance(value, dict):
        raise _damaged(file, format, "line 1", "an object ({…}) was expected")
    return value


def objects(file: SourceFile, format: str, where: str, value: object) -> list[dict[str, object]]:
    """A list of objects. Raises MeasurementsDamaged."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise _damaged(file, format, where, "a list of objects was expected")
    return value


def text_of(value: object) -> str:
    """A string; empty where it is none."""
    return value if isinstance(value, str) else ""


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number that can be compared")


def _damaged(file: SourceFile, format: str, where: str, problem: str) -> MeasurementsDamaged:
    return MeasurementsDamaged(file=file.path, format=format, where=where, problem=problem)


_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")


_LONGEST = 40


SMALLEST, LARGEST = 1e-30, 1e30


RATES = (
    "MB/s",
    "KB/s",
    "GB/s",
    "MiB/s",
    "KiB/s",
    "GiB/s",
    "KBps",
    "MBps",
    "lps",
    "lpm",
    "MWIPS",
    "ops/s",
    "fps",
)


TIMES = ("s", "ms", "us", "µs", "ns", "seconds", "second", "milliseconds", "microseconds", "nanoseconds")


_POWERS_OF_TEN = {"s": 0, "ms": -3, "us": -6, "µs": -6, "ns": -9}


def same_time_unit(unit: str, other: str) -> bool:
    """Whether both are units of time, so that `in_unit` turns one into the other."""
    return unit in _POWERS_OF_TEN and other in _POWERS_OF_TEN


def in_unit(value: float, unit: str, wanted: str) -> float:
    """A time in another unit: 1.5 ms is 1500 us. Raises KeyError where either is no unit of time."""
    power = _POWERS_OF_TEN[unit] - _POWERS_OF_TEN[wanted]
    scale = float(10 ** abs(power))
    return value * scale if power >= 0 else value / scale


def number(text: str) -> float | None:
    """A decimal number between 1e-30 and 1e30 (or 0, or below it); None where the text is none."""
    stripped = text.strip()
    if len(stripped) > _LONGEST or not _NUMBER.fullmatch(stripped):
        return None
    return _sensible(float(stripped))


def _sensible(value: float) -> float | None:
    """The value, unless it is one that no machine measures, and that no square has room for."""
    if not math.isfinite(value) or (value and not SMALLEST <= abs(value) <= LARGEST):
        return None
    return value


def finite(value: object) -> float | None:
    """A number out of JSON, in the same range; None where it is something else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        converted = float(value)
    except OverflowError:  # JSON's integers have no limit
        return None
    return _sensible(converted)


def decimals(text: str) -> int:
    """Digits after the point; 0 for numbers with an exponent."""
    stripped = text.strip()
    return len(stripped.partition(".")[2]) if "e" not in stripped.lower() else 0


def rounded(value: float, places: int) -> Rounded:
    """A number that was printed with so many decimals."""
    return Rounded(value=value, half_unit=0.5 * 10.0**-places)


def direction_of(unit: str) -> Direction | None:
    """Which way is better, told by the unit; None where that tells nothing."""
    if unit in TIMES:
        return Direction.LOWER
    if unit in RATES or unit == "index" or unit.lower().endswith(("/s", "/sec", "per second")):
        return Direction.HIGHER
    return None
