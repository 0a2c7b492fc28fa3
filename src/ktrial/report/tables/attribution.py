"""The tables of what a difference is made of: kernel functions, what is left of them, and the sum."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ktrial.format import number_format
from ktrial.format.table import (
    Cell,
    Column,
    Emphasis,
    Field,
    Kind,
    Output,
    Row,
    RowKind,
    Table,
    number,
    own,
    table,
)
from ktrial.model.attribution import Explanation
from ktrial.model.attribution import FunctionDifference as FunctionRow
from ktrial.model.comparison import Verdict
from ktrial.report.text.attribution import DifferencePart, Why, part_of, sum_of

_MOST_IN_MARKDOWN = 8
_SIDE_COLUMNS = 24


def of_page(why: Why) -> Table:
    """All functions that are shown by name, the others together, the sum."""
    return _table(why.rows, with_bytes=why.bytes)


def of_document(why: Why) -> Table:
    """Fewer of them, for a pull request."""
    shown = why.parts[:_MOST_IN_MARKDOWN]
    return _table((*shown, _others(why), why.whole), with_bytes=why.bytes)


def of_explanation(explanation: Explanation, shown: Sequence[FunctionRow], sides: tuple[str, str]) -> Table:
    """The functions that are shown, the others, the sum. `sides`: what stands above their numbers."""
    places = {id(row) for row in shown}
    left = [row for row in explanation.rows if id(row) not in places]
    parts = (
        *(part_of(explanation, row) for row in shown),
        sum_of(explanation, left, number_format.counted(len(left), "other row")),
        sum_of(explanation, explanation.rows, "the sum"),
    )
    made = _table(parts, with_bytes=bool(explanation.byte_rows))
    for key, heading in zip(("before", "after"), sides, strict=True):
        made = made.adapted(key, heading=heading, named=True, heading_columns=_SIDE_COLUMNS)
    return made


def of_subsystems(explanation: Explanation, smallest: float) -> Table:
    """The same by subsystem, without those that are shown as 0."""
    parts = (
        DifferencePart(subsystem, None, None, float(difference), explanation.share(difference))
        for subsystem, difference in explanation.subsystems.items()
        if abs(difference) >= smallest
    )
    return table(
        (
            Field[DifferencePart](Column("subsystem", "subsystem"), lambda part: own(part.name)),
            Field(Column("difference", "difference", numeric=True), _difference),
            Field(Column("share", "share", "%", numeric=True), _share),
        ),
        parts,
    )


def _others(why: Why) -> DifferencePart:
    """What is below the rows that are shown: other functions as one row."""
    left = [*why.parts[_MOST_IN_MARKDOWN:], why.others]
    shares = [part.share for part in left if part.share is not None]
    return DifferencePart(
        name="all others",
        before=sum(part.before or 0 for part in left),
        after=sum(part.after or 0 for part in left),
        difference=sum(part.difference for part in left),
        share=sum(shares) if shares else None,
        byte_difference=sum(part.byte_difference for part in left),
    )


def _table(parts: Sequence[DifferencePart], *, with_bytes: bool) -> Table:
    """The last two rows are others together, and the sum."""
    made = table(tuple(_fields(with_bytes=with_bytes)), parts, "functions")
    *named, others, whole = made.rows
    return replace(made, rows=(*named, _in_words(others), replace(_in_words(whole), kind=RowKind.SUM)))


def _in_words(row: Row) -> Row:
    first, *others = row.cells
    return replace(row, cells=(replace(first, kind=Kind.OWN), *others))


def _fields(*, with_bytes: bool) -> Iterator[Field[DifferencePart]]:
    yield Field(Column("function", "function", wraps=True), _function)
    yield Field(
        Column("before", "baseline", numeric=True, wide=True),
        lambda part: number(part.before),
    )
    yield Field(Column("after", "value", numeric=True, wide=True), lambda part: number(part.after))
    yield Field(Column("difference", "difference", numeric=True), _difference)
    yield Field(
        Column("share", "share", "%", numeric=True),
        _share,
    )
    if with_bytes:
        yield Field(Column("bytes", "bytes", numeric=True, wide=True), _bytes)
    yield Field(
        Column("subsystem", "subsystem", outputs=Output.HTML, wide=True),
        lambda part: own(part.subsystem, emphasis=Emphasis.MUTED),
    )


def _function(part: DifferencePart) -> Cell:
    values = f"{number_format.number(part.before)} → {number_format.number(part.after)}"
    moved = f"; {number_format.signed(part.byte_difference)} bytes" if part.byte_difference else ""
    return Cell(part.name, part.name, Kind.CODE, narrow=values + moved)


def _difference(part: DifferencePart) -> Cell:
    colour = Verdict.WORSE if part.difference > 0 else Verdict.BETTER
    return Cell(part.difference, number_format.signed(part.difference), verdict=colour)


def _share(part: DifferencePart) -> Cell:
    return Cell(part.share, number_format.share(part.share))


def _bytes(part: DifferencePart) -> Cell:
    text = number_format.signed(part.byte_difference) if part.byte_difference else ""
    return Cell(part.byte_difference, text)
