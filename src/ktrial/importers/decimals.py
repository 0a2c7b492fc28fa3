"""What the commas and points of a table's numbers mean: decimals, or groups of three digits.

`10,077` may be ten or ten thousand. Another number of its column, or of another one, may say which:
`10,5` and `1.234,5` have decimal commas, `1,234,567` and `1,234.5` group by commas. Nothing else is evidence,
and without any the user is asked.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ktrial.importers.cells import MISSING, CsvLine
from ktrial.importers.column_names import is_measured_by_name
from ktrial.importers.errors import MeasurementsDamaged
from ktrial.importers.protocol import SourceFile

_SPACE = "[\u202f\u00a0\u2009'\u2019 ]"
"""What groups digits by threes, besides commas and points."""
_TOKEN = re.compile(rf"[0-9]{{1,3}}(?:{_SPACE}[0-9]{{3}})+(?![0-9])(?:[.,][0-9]+)?|[0-9]+(?:[.,][0-9]+)*")
_UNIT = r"\s*[^\d\s.,±+-][^\d±]{0,11}"
_CELL = re.compile(
    rf"[-+]?(?:{_TOKEN.pattern})(?:[eE][-+]?[0-9]{{1,3}})?(?:{_UNIT})?"
    rf"(?:\s*(?:±|\+/-|\+-)\s*(?:{_TOKEN.pattern})(?:{_UNIT})?)?"
)
_OF_COMMAS = re.compile(r"[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]+|[0-9]+,[0-9]+")
_OF_POINTS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3}){2,}(?:\.[0-9]+)?|[0-9]{1,3}(?:,[0-9]{3})+\.[0-9]+")
_EITHER = re.compile(r"[1-9][0-9]{0,2},[0-9]{3}")
_BY_POINTS = re.compile(r"[1-9][0-9]{0,2}(?:\.[0-9]{3})+")
_WITH_POINT = re.compile(r"[0-9]+\.[0-9]+")
_LONG = re.compile(r"[0-9]{4,}")


class Mark(StrEnum):
    """What stands before the decimals."""

    COMMA = "comma"
    POINT = "point"


_CHANGES: dict[str, Callable[[str], str]] = {
    "decimal commas": lambda token: token.replace(".", "").replace(",", "."),
    "commas by threes": lambda token: token.replace(",", ""),
    "points by threes": lambda token: token.replace(".", ""),
    "spaces by threes": lambda token: token,
}
"""What becomes of a number whose spaces are gone."""
_COMMAS_DIVIDE, _COMMAS_GROUP, _POINTS_GROUP, _SPACES_GROUP = _CHANGES


@dataclass(frozen=True)
class _WrittenNumbers:
    """The numbers of a column, each as it is written; none where a cell is something else."""

    name: str
    tokens: tuple[str, ...]
    spaced: bool = False
    """Whether spaces grouped digits; they are gone here."""

    def has(self, pattern: re.Pattern[str]) -> bool:
        """Whether a number has this form."""
        return any(map(pattern.fullmatch, self.tokens))

    @property
    def mark(self) -> Mark | None:
        """What its own numbers say; None where they say nothing, or both."""
        commas = any(_OF_COMMAS.fullmatch(token) and not _EITHER.fullmatch(token) for token in self.tokens)
        points = self.has(_OF_POINTS)
        if self.has(_EITHER):
            commas, points = commas or self.has(_LONG), points or self.has(_WITH_POINT)
        return None if commas == points else Mark.COMMA if commas else Mark.POINT

    @property
    def is_open(self) -> bool:
        """Whether nothing in it says what its commas are."""
        return self.has(_EITHER) and self.mark is None and not (self.has(_OF_POINTS) or self.has(_WITH_POINT))


def with_points(
    file: SourceFile, header: Sequence[str], rows: list[CsvLine]
) -> tuple[list[CsvLine], list[str]]:
    """The rows, with decimal points alone in their numbers, and how these were taken.

    Raises MeasurementsDamaged, with the line and the option that answers, where a comma may be either.
    """
    columns = [_column(name, [row.cells[name] for row in rows]) for name in header]
    chosen = Mark(file.choices.decimal) if file.choices.decimal else None
    shown = chosen or _shown(columns)
    changes: dict[str, str] = {}
    names: dict[str, list[str]] = {}
    for column in columns:
        if column.is_open and shown is None:
            raise _open(file, column, rows)
        if change := _change(column, chosen or column.mark or shown, file.choices.value):
            doubt = f" (--decimal {_other(shown)})" if column.is_open and shown and not chosen else ""
            names.setdefault(change, []).append(f"{column.name}{doubt}")
            changes[column.name] = change
    plain = [
        CsvLine(row.line, {name: _plain(cell, changes.get(name, "")) for name, cell in row.cells.items()})
        for row in rows
    ]
    return plain, [f"{change} in {', '.join(of_change)}" for change, of_change in names.items()]


def _column(name: str, cells: Iterable[str]) -> _WrittenNumbers:
    present = [cell for cell in cells if cell.lower() not in MISSING]
    if not all(map(_CELL.fullmatch, present)):
        return _WrittenNumbers(name, ())
    tokens = [token[0] for cell in present for token in _TOKEN.finditer(cell)]
    plain = tuple(re.sub(_SPACE, "", token) for token in tokens)
    return _WrittenNumbers(name, plain, plain != tuple(tokens))


def _shown(columns: Sequence[_WrittenNumbers]) -> Mark | None:
    """What the numbers of all columns together say; a point counts where the name is of measurements."""
    marks = {mark for column in columns if (mark := column.mark) is not None}
    measured = [column for column in columns if is_measured_by_name(column.name)]
    if any(
        _WITH_POINT.fullmatch(token) and not _BY_POINTS.fullmatch(token)
        for column in measured
        for token in column.tokens
    ):
        marks.add(Mark.POINT)
    return marks.pop() if len(marks) == 1 else None


def _change(column: _WrittenNumbers, mark: Mark | None, value: str) -> str:
    """What becomes of a column's numbers; empty: nothing."""
    whole = [token for token in column.tokens if "," not in token]
    if len(whole) < len(column.tokens) and mark is Mark.POINT:
        return _COMMAS_GROUP if all(_is_grouped(token) for token in column.tokens) else ""
    if len(whole) < len(column.tokens) and mark is Mark.COMMA:
        return "" if any("." in token for token in whole) else _COMMAS_DIVIDE
    measured = is_measured_by_name(column.name) or column.name == value
    with_point = [token for token in column.tokens if "." in token]
    if mark is Mark.COMMA and measured and with_point and all(map(_BY_POINTS.fullmatch, with_point)):
        return _POINTS_GROUP
    return _SPACES_GROUP if column.spaced else ""


def _is_grouped(token: str) -> bool:
    """Whether its commas group, or there are none."""
    return "," not in token or bool(_OF_POINTS.fullmatch(token) or _EITHER.fullmatch(token))


def _plain(cell: str, change: str) -> str:
    if not change:
        return cell
    return _TOKEN.sub(lambda token: _CHANGES[change](re.sub(_SPACE, "", token[0])), cell)


def _other(mark: Mark) -> Mark:
    return Mark.POINT if mark is Mark.COMMA else Mark.COMMA


def _open(file: SourceFile, column: _WrittenNumbers, rows: Sequence[CsvLine]) -> MeasurementsDamaged:
    row = next(row for row in rows if any(map(_EITHER.fullmatch, _TOKEN.findall(row.cells[column.name]))))
    token = next(token for token in _TOKEN.findall(row.cells[column.name]) if _EITHER.fullmatch(token))
    problem = f"{column.name} is {token}: decimals, or grouped by threes? Nothing says it"
    hint = f"--decimal comma: {token.replace(',', '.')}; --decimal point: {token.replace(',', '')}"
    return MeasurementsDamaged(file.path, "csv", f"line {row.line}", problem, hint)
