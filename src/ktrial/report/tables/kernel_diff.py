"""The table of facts about two kernels, side by side."""

from dataclasses import replace

from ktrial.format.table import Cell, Column, Emphasis, Field, Kind, Table, own, table
from ktrial.report.text.kernel_diff import Fact, KernelChange

_HEADING_COLUMNS = 30
_WHOLE = 10_000
"""Character cells: a command line is shown as long as it is."""


def facts(change: KernelChange) -> Table:
    """Release, version, source, compiler: muted where both have the same."""
    made = table(_fields(change), change.facts, "sides")
    rows = (
        replace(row, emphasis=Emphasis.MUTED if fact.before == fact.after else Emphasis.PLAIN)
        for row, fact in zip(made.rows, change.facts, strict=True)
    )
    return replace(made, rows=tuple(rows))


def _fields(change: KernelChange) -> tuple[Field[Fact], ...]:
    return (
        Field(Column("what", "what", hidden=True), lambda fact: own(fact.name)),
        Field(_side("before", change.before), lambda fact: Cell(fact.before, fact.before, Kind.CODE)),
        Field(_side("after", change.after), lambda fact: Cell(fact.after, fact.after, Kind.CODE)),
    )


def _side(key: str, kernel: str) -> Column:
    return Column(key, kernel, named=True, wraps=True, columns=_WHOLE, heading_columns=_HEADING_COLUMNS)
