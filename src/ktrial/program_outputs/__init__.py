"""What programs of others print or write: one reader for a workload's metrics and for `ktrial analyze`.

A format is a module in `formats` with an object `FORMAT` that has the methods of `OutputFormat`, or an entry
point in the group `ktrial.output_formats`.
"""

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol, runtime_checkable

from ktrial import plugin_discovery
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import Direction
from ktrial.program_outputs.errors import FormatNotKnown, OutputDamaged, OutputEmpty, OutputError
from ktrial.program_outputs.units import is_by_clock

__all__ = [
    "Column",
    "FormatNotKnown",
    "Measured",
    "Note",
    "OutputDamaged",
    "OutputEmpty",
    "OutputError",
    "OutputFormat",
    "Report",
    "find",
    "installed",
    "is_by_clock",
]
_GROUP = "ktrial.output_formats"


@dataclass(frozen=True)
class Column:
    """A metric that a format may have, as documentation names it."""

    metric: str
    unit: str
    direction: Direction


@dataclass(frozen=True)
class Measured:
    """One metric of one thing that was measured, with a number for each repetition in the output."""

    metric: str
    values: tuple[float, ...]
    unit: str
    direction: Direction
    of: str = ""
    """The job, benchmark or command; empty where an output holds one only, which has no name."""
    failed: int = 0
    """Repetitions that gave no number."""
    parameters: dict[str, str] = field(default_factory=dict)

    @property
    def by_clock(self) -> bool:
        """Whether it is a time, or so much a time: what the program's own clock told."""
        return is_by_clock(self.unit)


@dataclass(frozen=True)
class Note:
    """Something to be known about an output."""

    text: str
    advice: str = ""


@dataclass(frozen=True)
class Report:
    """Everything that was read from one output."""

    measured: tuple[Measured, ...]
    """In the output's order; the first is what it is about."""
    failures: tuple[Note, ...] = ()
    """Runs, jobs or benchmarks that gave no number, and are left out of `measured`."""
    notes: tuple[Note, ...] = ()

    def named(self) -> dict[str, Measured]:
        """Name → metric: `time`, or `sleep 1: time` where several things were measured."""
        several = len({measurement.of for measurement in self.measured}) > 1
        return {
            f"{metric.of}: {metric.metric}" if several else metric.metric: metric for metric in self.measured
        }


@runtime_checkable
class OutputFormat(Protocol):
    """Reads what one program prints. To add one, put an object `FORMAT` into a module of `formats`.

    Other packages name theirs by an entry point of the group `ktrial.output_formats`.
    """

    @property
    def name(self) -> str:
        """`fio-json`."""
        ...

    @property
    def summary(self) -> str:
        """How the program is told to print it, in one line."""
        ...

    @property
    def columns(self) -> tuple[Column, ...]:
        """The metrics that an output may have, for people to read."""
        ...

    @property
    def remarks(self) -> str:
        """What is left out, and what is refused: a sentence or two."""
        ...

    @property
    def of_groups(self) -> bool:
        """Whether the things that one output measures are to be compared with each other."""
        ...

    def recognises(self, text: str) -> bool:
        """Whether the text looks like this program's."""
        ...

    def read(self, text: str) -> Report:
        """Its numbers. Raises OutputDamaged, OutputEmpty."""
        ...


@cache
def installed() -> tuple[dict[str, OutputFormat], tuple[DataWarning, ...]]:
    """Every format by its name, sorted, and a warning for each plugin that is broken."""
    packages = ("ktrial.program_outputs.formats",)
    return plugin_discovery.installed(_GROUP, "output format", "FORMAT", packages, _check)


def find(name: str) -> OutputFormat:
    """The format of this name. Raises FormatNotKnown, which suggests one."""
    formats, _ = installed()
    if name not in formats:
        raise FormatNotKnown(name, formats)
    return formats[name]


def _check(name: str, extension: object) -> tuple[str, OutputFormat]:
    if not isinstance(extension, OutputFormat):
        raise TypeError(f"{name} is not an output format")
    return extension.name, extension


def distinct(names: list[str]) -> list[str]:
    """The same name twice is two: `a`, `a (2)`."""
    seen: Counter[str] = Counter()
    numbered = []
    for name in names:
        seen[name] += 1
        numbered.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return numbered
