"""What programs of others print or write: one reader for a workload's metrics and for `ktrial analyze`.

A format is a module in `formats` with an object `FORMAT` that has the methods of `OutputFormat`, or an entry
point in the group `ktrial.output_formats`.
"""

from collections import Counter
from functools import cache
from typing import Protocol, runtime_checkable

from ktrial import plugin_discovery
from ktrial.model.warnings import DataWarning
from ktrial.program_outputs.errors import FormatNotKnown, OutputDamaged, OutputEmpty, OutputError
from ktrial.program_outputs.reports import Column, Measured, Note, Report, Spread
from ktrial.program_outputs.units import is_by_clock, is_count

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
    "Spread",
    "find",
    "installed",
    "is_by_clock",
    "is_count",
]
_GROUP = "ktrial.output_formats"


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
