"""A matrix for the terminal: coloured ratios with the marks of their verdicts, readable without colour."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ktrial.cli.console import breakable
from ktrial.cli.render.history import STYLES
from ktrial.format import number_format
from ktrial.format.labels import VERDICTS
from ktrial.format.sanitize import one_line, shortened
from ktrial.model.comparison import Verdict
from ktrial.model.design import told_apart
from ktrial.model.matrix import Cell, Matrix
from ktrial.model.workload import short_labels
from ktrial.report.html.matrix import answer_of
from ktrial.report.text import dispersion

_STRONG = 0.1
"""From this change on a cell is set in reverse."""
_MOST_WHYS = 5
_LONGEST_NAME = 40


def print_matrix(found: Matrix, console: Console) -> None:
    """The table, what the marks mean, what went wrong, the largest changes' commands, and the answer."""
    console.print(Text(one_line(f"{found.study}: change against {found.baseline}"), style="bold"))
    console.print()
    console.print(_table(found))
    console.print()
    marks = ", ".join(f"{words.symbol} {words.word}" for words in VERDICTS.values())
    if found.has_scatter:
        marks += f", {dispersion.MARK} {dispersion.MEANING}"
    console.print(Text(f"{marks}; margin {breakable(number_format.percentage(found.margin))}", style="dim"))
    for problem in found.problems:
        console.print(Text(one_line(problem), style="red"))
    largest = sorted((cell for row in found.rows for cell in row.cells if cell.why), key=_size)[:_MOST_WHYS]
    if largest:
        console.print("why, of the largest changes:")
        for cell in largest:
            console.print(f"  {cell.why}", soft_wrap=True)
    sentences = answer_of(found)
    for sentence in sentences:
        console.print(Text(one_line(sentence), style="bold"))
    if len(sentences) > 1:
        console.print(f"in words: ktrial show {found.study_id}")


def _size(cell: Cell) -> float:
    ratio = cell.comparison.ratio if cell.comparison else None
    return -max(ratio, 1 / ratio) if ratio else -1.0


def _table(found: Matrix) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("workload", overflow="fold")
    table.add_column(_short(found.baseline), justify="right", no_wrap=True)
    for column in found.columns:
        table.add_column(_short(told_apart(column, found.baseline)), justify="right", no_wrap=True)
    names = short_labels(workload for workload, _ in found.by_workload)
    for workload, rows in found.by_workload:
        if len(rows) > 1:
            table.add_row(shortened(names[workload], _LONGEST_NAME))
        for row in rows:
            cells = [_cell(cell) for cell in row.cells]
            inside = "  " if len(rows) > 1 else ""
            own = row.name.replace(workload, names[workload], 1)
            name = inside + shortened(row.metric if inside else own, _LONGEST_NAME)
            table.add_row(name, number_format.number(row.baseline), *cells)
    return table


def _short(label: str) -> str:
    return shortened(label.removeprefix("debian:"), 18)


def _cell(cell: Cell) -> Text:
    one = cell.comparison
    if one is None:
        return Text("–")
    strong = (
        one.ratio is not None and abs(one.ratio - 1) >= _STRONG and one.verdict is not Verdict.INCONCLUSIVE
    )
    style = f"{STYLES[one.verdict]}{' reverse' if strong and STYLES[one.verdict] else ''}"
    mark = f" {dispersion.MARK}" if cell.scatter else ""
    shown = f"{breakable(number_format.step(one.ratio, one.value))} {VERDICTS[one.verdict].symbol}{mark}"
    return Text(shown, style=style.strip())
