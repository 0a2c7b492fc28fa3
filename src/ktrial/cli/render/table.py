"""Any table for the terminal: no lines, headings in bold, readable without colour."""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

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
    drawn = FittedTable(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style=heading_style)
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


def fits(table: Table, console: Console) -> bool:
    """Whether no number of it is cut: names may stand on lines of their own, above what their rows say."""
    return sum(_widths(table, console)) <= console.width - _INDENT + _BESIDE


def in_blocks(table: Table, console: Console) -> list[Table]:
    """The table; where its columns do not fit beside each other, several with the same names."""
    blocks: list[list[int]] = [[]]
    room = console.width - _INDENT + _BESIDE
    for place, width in enumerate(_widths(table, console), start=1):
        if blocks[-1] and width > room:
            blocks.append([])
            room = console.width - _INDENT + _BESIDE
        blocks[-1].append(place)
        room -= width
    return [_of_columns(table, (0, *block)) for block in blocks]


def _of_columns(table: Table, places: Iterable[int]) -> Table:
    chosen = tuple(places)
    columns = tuple(table.columns[place] for place in chosen)
    rows = (
        row if row.kind is RowKind.HEADING else replace(row, cells=tuple(row.cells[at] for at in chosen))
        for row in table.rows
    )
    return replace(table, columns=columns, rows=tuple(rows))


def natural_width(table: Table, console: Console) -> int:
    """The columns that it takes where there is room."""
    endless = console.options.update(max_width=_ENDLESS)
    return console.measure(rendered(table), options=endless).maximum


def _widths(table: Table, console: Console) -> list[int]:
    """Of each column behind the names, with the space behind it."""
    numbers = replace(table, rows=tuple(row for row in table.rows if row.kind is not RowKind.HEADING))
    return [
        natural_width(_of_columns(numbers, (place,)), console) + _BESIDE
        for place in range(1, len(table.columns))
    ]


_INDENT, _BESIDE = 2, 2
"""Before what stands below a name, and between two columns."""
_ENDLESS = 100_000


def texts_table(
    headings: Sequence[str],
    rows: Iterable[Iterable[str]],
    *,
    numeric: Container[str] = (),
    unbroken: Container[str] = (),
) -> RichTable:
    """A table of texts. By their headings: columns that are set flush right, and those that stay unbroken."""
    columns = tuple(
        Column(
            heading,
            heading,
            numeric=heading in numeric,
            wraps=heading not in numeric and heading not in unbroken,
        )
        for heading in headings
    )
    return rendered(Table(columns, tuple(Row(tuple(Cell(text, text) for text in texts)) for texts in rows)))


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
    text, style = _words(cell, column), "dim" if cell.kind is Kind.BAR else _EMPHASIS[cell.emphasis]
    mark = ""
    if cell.verdict or cell.scatter:
        from ktrial.format import labels  # with what is measured: tables of texts do without

        if cell.verdict and cell.kind in (Kind.VERDICT, Kind.CHANGE):
            style = labels.VERDICT_STYLES[cell.verdict]
            if style and cell.emphasis is Emphasis.STRONG:
                style += " reverse"
            if cell.kind is Kind.CHANGE:
                text += f" {labels.VERDICTS[cell.verdict].symbol}"
        mark = f" {labels.SCATTER_MARK}" if cell.scatter else ""
    return Text(text.replace("\u00a0", " "), style=style).append(mark)


def _words(cell: Cell, column: Column) -> str:
    if cell.kind is Kind.BAR:
        return "█" * round(_BAR * float(cell.value))
    if cell.kind in (Kind.NAME, Kind.CODE):
        return shortened(cell.text, column.columns)
    return one_line(cell.text) if cell.kind is Kind.PROSE else cell.text


class FittedTable(RichTable):
    """A table without lines whose rows keep their names, however narrow the terminal is."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """As it is; where names would be cut, each on a line of its own, above what its row says."""
        width = self.width
        lines = self._without_names(console, options) if width is None else []
        if not lines:
            yield from super().__rich_console__(console, options)
            return
        names = list(self.columns[0].cells)
        above = [None, *names] if self.show_header else names
        for name, line in zip(above, lines, strict=True):
            if name is not None:
                yield name
            yield Segment("  ")
            yield from line
            yield Segment.line()

    def _without_names(self, console: Console, options: ConsoleOptions) -> list[list[Segment]]:
        """The lines of all other columns, one a row; none where the table fits, or has no such lines."""
        columns = self.columns[1:]
        if not columns or not all(column.no_wrap for column in columns):
            return []
        table = RichTable(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style=self.header_style)
        table.show_header = self.show_header
        table.columns = [replace(column, _index=place) for place, column in enumerate(columns)]
        table.rows = self.rows
        words = [word for cell in self.columns[0].cells for word in str(cell).split()]
        needed = max(map(len, words), default=0) + 2
        room = options.max_width - Measurement.get(console, options, table).maximum
        if room >= needed:
            return []
        lines = console.render_lines(table, options.update_width(options.max_width - 2), pad=False)
        return lines if len(lines) == len(self.rows) + self.show_header else []


_LONG = 200
"""Rows from which each has one line, cut at the console's width: Rich lays out ten thousand in a minute."""
_BETWEEN = "  "


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], console: Console) -> None:
    """Under the headings; a long table's last column is cut at the width, and wrapped in a short one."""
    if len(rows) >= _LONG:
        console.file.write("\n".join((*_lines(headings, rows, console.width), "")))
        return
    table = RichTable(*headings, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _lines(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    from rich.cells import cell_len, set_cell_size

    lines = (headings, *rows)
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    for row in lines:
        pairs = zip(row[:-1], widths[:-1], strict=True)
        cells = (cell + " " * (width_of_column - cell_len(cell)) for cell, width_of_column in pairs)
        line = _BETWEEN.join((*cells, row[-1])).rstrip()
        yield line if cell_len(line) <= width else f"{set_cell_size(line, width - 1)}…"
