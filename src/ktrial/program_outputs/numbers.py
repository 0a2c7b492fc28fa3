"""Numbers and units as programs write them."""

import math
import re

from ktrial.model.workload import Direction
from ktrial.program_outputs.errors import OutputDamaged

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
_LONGEST_QUOTE = 60


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


def measured(value: object, format: str, where: str) -> float:
    """A number out of JSON or of text that was measured: 0 or more. Raises OutputDamaged."""
    read = number(value) if isinstance(value, str) else finite(value)
    if read is None or read < 0:
        problem = f"{_quoted(value)} where a number from 0 was expected"
        if isinstance(value, str) and re.search(r"\d,\d", value):
            problem += "; numbers with commas are read from no output: run it with LC_ALL=C"
        raise OutputDamaged(format=format, where=where, problem=problem)
    return read


def _quoted(value: object) -> str:
    text = repr(value) if not isinstance(value, list | dict) else f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"


def direction_of(unit: str) -> Direction | None:
    """Which way is better, told by the unit; None where that tells nothing."""
    if unit in TIMES:
        return Direction.LOWER
    if unit in RATES or unit == "index" or unit.lower().endswith(("/s", "/sec", "per second")):
        return Direction.HIGHER
    return None
