"""Tables of any length: Rich lays out a hundred rows well, and ten thousand in a minute."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_LONG = 200
"""Rows from which each has one line, cut at the console's width: Rich would take seconds."""
_BETWEEN = "  "
Row = Sequence[str]


def print_table(headings: Row, rows: Sequence[Row], console: "Console") -> None:
    """Under the headings; a long table's last column is cut at the width, and wrapped in a short one."""
    from rich.table import Table

    if len(rows) >= _LONG:
        console.file.write("\n".join((*_lines(headings, rows, console.width), "")))
        return
    table = Table(*headings, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _lines(headings: Row, rows: Sequence[Row], width: int) -> Iterator[str]:
    from rich.cells import cell_len, set_cell_size

    every = (headings, *rows)
    widths = [max(map(cell_len, column)) for column in zip(*every, strict=True)]
    for row in every:
        cells = (one + " " * (wide - cell_len(one)) for one, wide in zip(row[:-1], widths[:-1], strict=True))
        line = _BETWEEN.join((*cells, row[-1])).rstrip()
        yield line if cell_len(line) <= width else f"{set_cell_size(line, width - 1)}…"
