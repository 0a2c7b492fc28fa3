"""GitHub-flavoured Markdown: text in which nothing is markup by accident, code, folded parts, tables."""

import re

from ktrial.format import labels
from ktrial.format.sanitize import one_line, printable
from ktrial.format.table import Cell, Column, Kind, Output, Table

_LONGEST_CELL = 120
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#~|&!$]|^[-+=]|(?<=^\d)[.)])")
"""What CommonMark and GitHub read as markup, anywhere or at the start of a line."""


def prose(text: str) -> str:
    """Text on one line in which nothing is markup or a mention of somebody."""
    return _MARKUP.sub(r"\\\1", one_line(text)).replace("@", "@\u2060")


def code(text: str) -> str:
    """Text on one line as a code span."""
    line = one_line(text)
    if not line:
        return ""
    if len(line) > _LONGEST_CELL:
        line = line[:_LONGEST_CELL] + "…"
    fence = "`" * (_longest_run("`", line) + 1)
    padding = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{fence}{padding}{line}{padding}{fence}"


def block(text: str, language: str = "") -> str:
    """Text as a fenced block of code."""
    fence = "`" * max(3, _longest_run("`", text) + 1)
    return f"{fence}{language}\n{printable(text).rstrip()}\n{fence}"


def _longest_run(character: str, text: str) -> int:
    return max((len(run) for run in re.findall(f"{re.escape(character)}+", text)), default=0)


def folded(title: str, body: str) -> str:
    """What opens with a click. `title`: as HTML (`bare`)."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def bare(text: str) -> str:
    """Text on one line for inside a tag, where Markdown is not read."""
    line = one_line(text)[:_LONGEST_CELL]
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "@\u2060")


def grid(table: Table) -> str:
    """What Markdown shows of the table: words first, then numbers, as a page cuts wide tables off at the
    right.
    """
    shown = table.shown(Output.MARKDOWN)
    order = sorted(range(len(shown.columns)), key=lambda place: shown.columns[place].numeric)
    columns = [shown.columns[place] for place in order]
    rows = [[_cell(row.cells[place]) for place in order] for row in shown.rows]
    lines = [
        [_heading(column) for column in columns],
        ["--:" if column.numeric else "---" for column in columns],
        *rows,
    ]
    escaped = ([cell.replace("|", "\\|") for cell in cells] for cells in lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in escaped)


def _heading(column: Column) -> str:
    title = "" if column.hidden else column.title
    return code(title) if column.named else title[:1].upper() + title[1:]


def _cell(cell: Cell) -> str:
    text = _text(cell)
    if cell.kind is Kind.CHANGE and cell.verdict:
        text = f"{text} {labels.VERDICTS[cell.verdict].symbol}"
    return f"{text} {labels.SCATTER_MARK}" if cell.scatter else text


def _text(cell: Cell) -> str:
    if cell.kind in (Kind.NAME, Kind.CODE):
        return code(cell.text)
    return prose(cell.text) if cell.kind is Kind.PROSE else cell.text
