"""A table that is not read before the user says more: how each column was understood, and what to say."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from ktrial.importers.errors import ImportFailed, some_of
from ktrial.importers.protocol import SourceFile

_LONGEST = 150
"""Characters of the options that are suggested."""


@dataclass(frozen=True)
class ColumnReading:
    """One column, as far as it was understood."""

    name: str
    understood: str
    """What it was taken for; empty where that is not decided."""
    doubt: str = ""
    """Why it is not decided."""
    options: str = ""
    """What decides it: `--value`, `--value or --group-by`."""


class ColumnsUndecided(ImportFailed):
    """Which columns of a table were measured, or what they compare, is not told by their names alone."""

    def __init__(
        self,
        file: SourceFile,
        line: int,
        columns: Sequence[ColumnReading],
        value: Sequence[str],
        group_by: Sequence[str],
    ) -> None:
        """`value` and `group_by`: what the options may name, as a suggestion."""
        self.columns = tuple(columns)
        self.options = _options(value, group_by)
        doubtful = [column.name for column in columns if column.doubt]
        what = some_of(doubtful) if doubtful else "no column is called as one of measurements"
        counts = f"{len(doubtful)} of {len(columns)} columns" if doubtful else "the columns"
        command = () if file.choices.several else ("ktrial analyze", shlex.quote(str(file.path)))
        super().__init__(
            f"{file.path}, line {line}: {counts} may mean several things, so nothing is read: {what}.",
            hint=f"say what they mean: {' '.join((*command, *self.options))}",
        )


def _options(value: Sequence[str], group_by: Sequence[str]) -> tuple[str, ...]:
    """As they are typed; without the last groups where all are too long to be read."""
    values, groups = list(value), list(group_by)
    while True:
        names = (shlex.quote(",".join(part) or "COLUMN") for part in (values, groups))
        parts = tuple(part for pair in zip(("--value", "--group-by"), names, strict=True) for part in pair)
        longest = max((values, groups), key=len)
        if len(" ".join(parts)) <= _LONGEST or len(longest) == 1:
            return parts
        longest.pop()
