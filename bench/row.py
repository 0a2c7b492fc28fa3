"""One line of the table that `make bench` prints."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A speed of ktrial's, beside that of another program that was measured in the same minutes."""

    what: str
    seconds: float
    """ktrial's: the median of its rounds."""
    against: str = ""
    """The other program; empty where there is none to compare with."""
    other_seconds: float | None = None
    """The other program's median; None where it could not be measured."""
    least_ratio: float | None = None
    """How many times faster than the other ktrial must be."""
    most_slowdown: float | None = None
    """How many times slower than the other ktrial may be."""
    most_seconds: float | None = None
    """What ktrial may take on idle cores."""
    exponent: float | None = None
    """Of processor time over size; None where it could not be told, or nothing grows."""
    most_exponent: float | None = None
    """What the exponent may be: unlike seconds it is the same on a busy machine."""
    note: str = ""
    """Said below the table: why something was not measured, and how it can be."""

    @property
    def ratio(self) -> float | None:
        """How many times faster ktrial is."""
        return None if self.other_seconds is None else self.other_seconds / self.seconds

    @property
    def grows_too_fast(self) -> bool:
        """Whether it costs more than its work as it grows."""
        most = self.most_exponent
        return self.exponent is not None and most is not None and self.exponent > most

    @property
    def holds(self) -> bool | None:
        """Whether it is as fast as is wanted; None where what would tell was not measured."""
        told = []
        if self.least_ratio is not None:
            told.append(None if self.ratio is None else self.ratio >= self.least_ratio)
        if self.most_slowdown is not None:
            told.append(None if self.ratio is None else 1 / self.ratio <= self.most_slowdown)
        if self.most_seconds is not None:
            told.append(self.seconds < self.most_seconds)
        if self.most_exponent is not None:
            told.append(not self.grows_too_fast)
        if False in told:
            return False
        return None if None in told or not told else True


def seconds(action: Callable[[], object]) -> float:
    """Host seconds that the action takes."""
    before = time.monotonic()
    action()
    return time.monotonic() - before


def median(values: list[float]) -> float:
    """The middle one: rounds that another program disturbed do not count."""
    return statistics.median(values)


def told(seconds: float) -> str:
    """`2.31 s`, `2.31 ms`, `23.1 µs`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
