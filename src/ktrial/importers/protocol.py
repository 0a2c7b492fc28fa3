"""What an importer is, and the file that it is given."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from ktrial.importers.errors import TooManyGroups
from ktrial.model.imported import Imported

MOST_GROUPS = 200


@dataclass(frozen=True)
class Choices:
    """What the user said about the columns of a table; only importers of tables ask."""

    group_by: tuple[str, ...] = ()
    """Columns that tell the groups apart; empty: all that are nothing else."""
    value: str = ""
    """The column of numbers; empty: found by its name."""


@dataclass(frozen=True)
class SourceFile:
    """A file that was read: complete, and not too large."""

    path: Path
    text: str
    label: str = ""
    """What the user calls the group that the file holds: `slub=FILE`; else its name says it."""
    choices: Choices = field(default_factory=Choices)

    @property
    def name(self) -> str:
        """Without directories."""
        return self.path.name

    @property
    def group(self) -> str:
        """The group's label, for a file that holds one group."""
        return self.label or self.path.stem


def check_groups(file: SourceFile, groups: int) -> None:
    """Raises TooManyGroups where one family has so many that nobody could read the comparison."""
    if groups > MOST_GROUPS:
        raise TooManyGroups(file=file.path, most=MOST_GROUPS)


@runtime_checkable
class Importer(Protocol):
    """Reads what one tool writes."""

    @property
    def name(self) -> str:
        """`hyperfine`."""
        ...

    @property
    def summary(self) -> str:
        """What it reads, in one line."""
        ...

    @property
    def one_group(self) -> bool:
        """Whether a file holds one group: several files are then compared with each other."""
        ...

    def recognises(self, file: SourceFile) -> bool:
        """Whether the file looks like this tool's."""
        ...

    def read(self, file: SourceFile) -> Imported:
        """Its measurements. Raises MeasurementsDamaged, NoMeasurements, UnsafeXml, ColumnUnknown."""
        ...
