"""The table of one line of a history: a row a version."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ktrial.format import number_format
from ktrial.format.table import (
    Cell,
    Column,
    Emphasis,
    Field,
    Kind,
    Output,
    Table,
    name,
    number,
    table,
    verdict,
)
from ktrial.model.history import ChangePoint, Line, Point

_NAME_COLUMNS = 40


class VersionRow(NamedTuple):
    """One version, and how it stands to others of its line."""

    point: Point
    ratio: float | None
    """To the last version before that has a number."""
    part: float
    """Of the largest value of the line."""
    change: ChangePoint | None
    """The change point that it is."""
    page: str
    """The result's page."""


def versions(line: Line, pages: Mapping[int, str] | None = None) -> Table:
    """A row a version. `pages`: a study's number → its page."""
    return table(_FIELDS, _rows(line, pages or {}), "versions")


def _rows(line: Line, pages: Mapping[int, str]) -> Iterator[VersionRow]:
    changes = {change.place: change for change in line.changes}
    most = max((point.value for point in line.points if point.value is not None), default=0.0)
    before: float | None = None
    for place, point in enumerate(line.points):
        ratio = point.value / before if before and point.value is not None else None
        part = point.value / most if point.value and most > 0 else 0.0
        yield VersionRow(point, ratio, part, changes.get(place), pages.get(point.study_id, ""))
        before = point.value if point.value is not None else before


def _spread(row: VersionRow) -> Cell:
    values = row.point.values
    if not values or min(values) <= 0:
        return Cell()
    spread = max(values) / min(values) - 1
    return Cell(spread, number_format.percentage(spread), emphasis=Emphasis.MUTED)


def _change_before(row: VersionRow) -> Cell:
    return Cell() if row.ratio is None else Cell(row.ratio, number_format.change(row.ratio))


_FIELDS: tuple[Field[VersionRow], ...] = (
    Field(
        Column("version", "version", wraps=True, columns=_NAME_COLUMNS),
        lambda row: name(row.point.version, notes=(row.point.release,)),
    ),
    Field(Column("value", "value", numeric=True), lambda row: number(row.point.value)),
    Field(Column("ratio", "to the one before", numeric=True, outputs=Output.TERMINAL), _change_before),
    Field(
        Column("bar", outputs=Output.TERMINAL),
        lambda row: Cell(row.part, kind=Kind.BAR),
    ),
    Field(
        Column("change", "change", outputs=Output.TERMINAL),
        lambda row: verdict(row.change.verdict) if row.change else Cell(),
    ),
    Field(Column("spread", "spread", numeric=True, outputs=Output.HTML), _spread),
    Field(
        Column("result", "result", outputs=Output.HTML),
        lambda row: name(row.point.study, link=row.page),
    ),
)
