"""The table of a difference along the tree of calls: net, with all that is called, callers above."""

from collections.abc import Iterator
from dataclasses import replace

from ktrial.format import number_format
from ktrial.format.table import Cell, Column, Emphasis, Field, Kind, Row, RowKind, Table, number, own, table
from ktrial.model.comparison import Verdict
from ktrial.report.text.call_tree import CallTree, NetRow

MEANING = (
    "Net: each row with all that it calls, at the same place in both kernels' trees of calls; below it what "
    "it calls. a → b: only the first calls a there, only the second b. own: what no row below it has, "
    "because it cancels or is too small."
)
_CALLS = " › "
_BELOW = "· "
_SIDE_COLUMNS = 24
_LEFT_OUT = "…"
_MOST_CALLERS = 1
"""Functions that are named of those that only lead to a row's own."""


def of_tree(tree: CallTree, sides: tuple[str, str] | None = None) -> Table:
    """One row a place, then what is elsewhere, then the sum. `sides`: the names that stand above their
    numbers.
    """
    whole = tree.after - tree.before
    rest = NetRow(("elsewhere",), 0, None, None, tree.rest, tree.rest / whole, tree.rest)
    last = NetRow(("the sum of own",), 0, tree.before, tree.after, whole, 1.0, whole)
    made = table(tuple(_fields()), (*tree.rows, rest, last), "functions")
    for key, heading in zip(("before", "after"), sides or (), strict=False):
        made = made.adapted(key, heading=heading, named=True, heading_columns=_SIDE_COLUMNS)
    *named, others, total = made.rows
    return replace(made, rows=(*named, _in_words(others), replace(_in_words(total), kind=RowKind.SUM)))


def _in_words(row: Row) -> Row:
    first, *others = row.cells
    return replace(row, cells=(replace(first, kind=Kind.OWN), *others))


def _fields() -> Iterator[Field[NetRow]]:
    yield Field(Column("function", "with what it calls", wraps=True, columns=90), _function)
    yield Field(Column("before", "baseline", numeric=True, wide=True), lambda row: number(row.before))
    yield Field(Column("after", "value", numeric=True, wide=True), lambda row: number(row.after))
    yield Field(Column("difference", "difference", numeric=True), _difference)
    yield Field(
        Column("share", "share", "%", numeric=True),
        lambda row: Cell(row.share, number_format.share(row.share)),
    )
    yield Field(
        Column("own", "own", numeric=True, wide=True),
        lambda row: own(number_format.signed(row.rest), emphasis=Emphasis.MUTED),
    )


def _function(row: NetRow) -> Cell:
    *callers, last = row.functions
    if len(callers) > _MOST_CALLERS:
        callers = [callers[0], _LEFT_OUT]
    text = _BELOW * row.depth + _CALLS.join((*callers, last))
    values = f"{number_format.number(row.before)} → {number_format.number(row.after)}"
    values += f"; own {number_format.signed(row.rest)}"
    return Cell(_CALLS.join(row.functions), text, Kind.CODE, narrow=values, title=_CALLS.join(row.functions))


def _difference(row: NetRow) -> Cell:
    colour = Verdict.WORSE if row.difference > 0 else Verdict.BETTER
    return Cell(row.difference, number_format.signed(row.difference), verdict=colour)
