"""A matrix for the terminal: coloured ratios with the marks of their verdicts, readable without colour."""

from rich.console import Console
from rich.text import Text

from ktrial.cli.console import breakable
from ktrial.cli.render.table import rendered
from ktrial.format import number_format
from ktrial.format.labels import SCATTER_MARK, SCATTER_MEANING, VERDICTS
from ktrial.format.sanitize import one_line, shortened
from ktrial.format.table import Table
from ktrial.model.levels import told_apart
from ktrial.model.matrix import Matrix, MatrixCell
from ktrial.report.tables.matrix import answer_of, heat_map

_MOST_WHYS = 5
_HEADING_COLUMNS = 18


def print_matrix(whole: Matrix, console: Console) -> None:
    """The table, what the marks mean, what went wrong, the largest changes' commands, and the answer."""
    console.print(Text(one_line(f"{whole.study}: change against {whole.baseline}"), style="bold"))
    console.print()
    console.print(rendered(_table(whole)))
    console.print()
    marks = ", ".join(f"{words.symbol} {words.word}" for words in VERDICTS.values())
    if whole.has_scatter:
        marks += f", {SCATTER_MARK} {SCATTER_MEANING}"
    console.print(Text(f"{marks}; margin {breakable(number_format.percentage(whole.margin))}", style="dim"))
    for problem in whole.problems:
        console.print(Text(one_line(problem), style="red"))
    largest = sorted((cell for row in whole.rows for cell in row.cells if cell.why), key=_size)[:_MOST_WHYS]
    if largest:
        console.print("why, of the largest changes:")
        for cell in largest:
            console.print(f"  {cell.why}", soft_wrap=True)
    sentences = answer_of(whole)
    for sentence in sentences:
        console.print(Text(one_line(sentence), style="bold"))
    if len(sentences) > 1:
        console.print(f"in words: ktrial show {whole.study_id}")


def _size(cell: MatrixCell) -> float:
    ratio = cell.comparison.ratio if cell.comparison else None
    return -max(ratio, 1 / ratio) if ratio else -1.0


def _table(whole: Matrix) -> Table:
    """The heat map with short headings."""
    made = heat_map(whole, {}, {}).adapted("baseline", heading=_short(whole.baseline))
    for place, treatment in enumerate(whole.columns):
        made = made.adapted(f"treatment-{place}", heading=_short(told_apart(treatment, whole.baseline)))
    return made


def _short(label: str) -> str:
    return shortened(label.removeprefix("debian:"), _HEADING_COLUMNS)
