"""Reading files, and numbers in them, that somebody else wrote: complete or not at all."""

import os
import stat
from pathlib import Path

from ktrial.importers.errors import MeasurementsTooLarge, MeasurementsUnreadable
from ktrial.importers.protocol import Choices, SourceFile
from ktrial.model.imported import Rounded

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


def decimals(text: str) -> int:
    """Digits after the point; 0 for numbers with an exponent."""
    stripped = text.strip()
    return len(stripped.partition(".")[2]) if "e" not in stripped.lower() else 0


def rounded(value: float, places: int) -> Rounded:
    """A number that was printed with so many decimals."""
    return Rounded(value=value, half_unit=0.5 * 10.0**-places)
