"""A matrix for the terminal: coloured ratios with the marks of their verdicts, readable without colour."""

from rich.console import Console
from rich.text import Text

from ktrial.cli.console import breakable
from ktrial.cli.render.table import rendered
from ktrial.format import number_format
from ktrial.format.labels import AGREEMENTS, SCATTER_MARK, SCATTER_MEANING, VERDICTS
from ktrial.format.sanitize import one_line, shortened
from ktrial.format.table import Table
from ktrial.model.comparison import Matrix, MatrixCell
from ktrial.model.design import told_apart
from ktrial.model.history import Across
from ktrial.report.matrix import answer_of, heat_map, trials_of

_MOST_WHYS = 5
_HEADING_COLUMNS = 18


def print_matrix(matrix: Matrix, console: Console) -> None:
    """The table, what the marks mean, what went wrong, the largest changes' commands, and the answer."""
    console.print(Text(one_line(f"{matrix.study}: change against {matrix.baseline}"), style="bold"))
    console.print()
    console.print(rendered(_table(matrix)))
    console.print()
    marks = ", ".join(f"{words.symbol} {words.word}" for words in VERDICTS.values())
    if matrix.has_scatter:
        marks += f", {SCATTER_MARK} {SCATTER_MEANING}"
    console.print(Text(f"{marks}; margin {breakable(number_format.percentage(matrix.margin))}", style="dim"))
    console.print(Text(one_line(breakable(trials_of(matrix))), style="dim"))
    for problem in matrix.problems:
        console.print(Text(one_line(problem), style="red"))
    largest = sorted((cell for row in matrix.rows for cell in row.cells if cell.why), key=_size)[:_MOST_WHYS]
    if largest:
        console.print("why, of the largest changes:")
        for cell in largest:
            console.print(f"  {cell.why}", soft_wrap=True)
    sentences = answer_of(matrix)
    for sentence in sentences:
        console.print(Text(one_line(sentence), style="bold"))
    if len(sentences) > 1:
        console.print(f"in words: ktrial show {matrix.study_id}")


def _size(cell: MatrixCell) -> float:
    ratio = cell.comparison.ratio if cell.comparison else None
    return -max(ratio, 1 / ratio) if ratio else -1.0


def _table(matrix: Matrix) -> Table:
    """The heat map with short headings."""
    table = heat_map(matrix, {}, {}).adapted("baseline", heading=_short(matrix.baseline))
    for place, treatment in enumerate(matrix.columns):
        table = table.adapted(f"treatment-{place}", heading=_short(told_apart(treatment, matrix.baseline)))
    return table


def _short(label: str) -> str:
    return shortened(label.removeprefix("debian:"), _HEADING_COLUMNS)


# One change on several machines, in text: what it comes to on each, and over machines like these.


def print_across(row: Across, console: Console) -> None:
    """One change, with a line for each machine."""
    chance = f", p {row.p:.2g}" if row.p is not None else ""
    reason = f" ({row.reason})" if row.reason else ""
    change_of = f"{row.workload}, {row.metric}: {row.before} → {row.after}"
    console.print(one_line(f"{change_of}: {AGREEMENTS[row.agreement]}{chance}{reason}"), style="bold")
    for machine in row.systems:
        system = machine.system
        about = "; ".join(part for part in (system.machine, system.qemu[:24], system.cpu_model) if part)
        change = (
            f"{number_format.change(machine.ratio)} ({number_format.interval(machine.low, machine.high)})"
        )
        console.print(one_line(f"  {change}  {about}; study {machine.study_id}"))
    if over := row.over_machines:
        change = f"{number_format.change(over.ratio)} ({number_format.interval(over.low, over.high)})"
        apart = f"their own changes differ by {number_format.change(over.between)}"
        console.print(one_line(f"  {change}  over machines like these {len(row.systems)}; {apart}"))
