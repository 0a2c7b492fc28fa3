"""Any table for the terminal: no lines, headings in bold, readable without colour."""

from rich.table import Table as RichTable
from rich.text import Text

from ktrial.cli.console import breakable, without_columns
from ktrial.format import labels
from ktrial.format.sanitize import one_line, shortened
from ktrial.format.table import Cell, Column, Emphasis, Kind, Output, Row, RowKind, Table

_BAR = 24
"""Character cells of a whole bar."""
_EMPHASIS = {
    Emphasis.PLAIN: "",
    Emphasis.MUTED: "dim",
    Emphasis.STRONG: "bold",
    Emphasis.GOOD: "green",
    Emphasis.CAUTION: "yellow",
    Emphasis.BAD: "red",
}


def rendered(table: Table, *, heading_style: str = "bold") -> RichTable:
    """What the terminal shows of the table."""
    shown = table.shown(Output.TERMINAL)
    drawn = without_columns(heading_style)
    drawn.show_header = any(column.heading and not column.hidden for column in shown.columns)
    for column in shown.columns:
        drawn.add_column(
            _heading(column),
            justify="right" if column.numeric else "left",
            no_wrap=not column.wraps,
            overflow="fold" if column.wraps else "ellipsis",
        )
    for row in shown.rows:
        drawn.add_row(*_cells(row, shown.columns), style=_style(row))
    return drawn


def _heading(column: Column) -> str:
    if column.hidden:
        return ""
    return shortened(column.heading, column.heading_columns) if column.named else column.title


def _style(row: Row) -> str:
    return "bold" if row.kind is RowKind.SUM else _EMPHASIS[row.emphasis]


def _cells(row: Row, columns: tuple[Column, ...]) -> list[Text]:
    pairs = list(zip(row.cells, columns, strict=False))
    texts = [_text(cell, column) for cell, column in pairs]
    if row.kind is RowKind.PART:
        texts[0] = Text("  ").append_text(texts[0])
    return texts


def _text(cell: Cell, column: Column) -> Text:
    text = _words(cell, column)
    if cell.kind is Kind.CHANGE and cell.verdict:
        text = f"{text} {labels.VERDICTS[cell.verdict].symbol}"
    drawn = Text(breakable(text), style=_cell_style(cell))
    return drawn.append(f" {labels.SCATTER_MARK}") if cell.scatter else drawn


def _words(cell: Cell, column: Column) -> str:
    if cell.kind is Kind.BAR:
        return "█" * round(_BAR * float(cell.value))
    if cell.kind in (Kind.NAME, Kind.CODE):
        return shortened(cell.text, column.columns)
    return one_line(cell.text) if cell.kind is Kind.PROSE else cell.text


def _cell_style(cell: Cell) -> str:
    """Colour by verdict; a strong change is set in reverse."""
    if cell.kind is Kind.BAR:
        return "dim"
    if cell.verdict is None or cell.kind not in (Kind.VERDICT, Kind.CHANGE):
        return _EMPHASIS[cell.emphasis]
    colour = labels.VERDICT_STYLES[cell.verdict]
    return f"{colour} reverse" if colour and cell.emphasis is Emphasis.STRONG else colour
