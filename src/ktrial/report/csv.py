"""CSV as RFC 4180 has it: CR LF, a header row, quotes where they are needed."""

import csv
import io

from ktrial.format.sanitize import one_line
from ktrial.format.table import Output, Table, plain


def rendered(table: Table) -> str:
    """What CSV shows of the table. Numbers carry all their digits."""
    shown = table.shown(Output.CSV)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(column.key for column in shown.columns)
    writer.writerows([_cell(cell.value) for cell in row.cells] for row in shown.rows)
    return text.getvalue()


def _cell(value: object) -> object:
    """Text on one line; numbers with all their digits; None is empty; of several values a list with spaces.

    A text that a spreadsheet would take for a formula gets an apostrophe in front (OWASP, 'CSV injection').
    """
    value = " ".join(map(str, value)) if isinstance(value, tuple) else plain(value)
    if not isinstance(value, str):
        return value
    text = one_line(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
