"""A history for the terminal: a table a line, and its changes in words."""

import re

from rich.console import Console
from rich.text import Text

from ktrial.analysis.history.stored_numbers import is_plain
from ktrial.cli.console import breakable
from ktrial.cli.render.table import rendered
from ktrial.format import number_format
from ktrial.format.labels import (
    AGREEMENTS,
    DIRECTIONS,
    MODE_NAMES,
    SCATTER_MARK,
    SCATTER_MEANING,
    VERDICTS,
    metric_name,
)
from ktrial.format.sanitize import one_line, shortened
from ktrial.format.table import Table
from ktrial.model.comparison import Matrix, MatrixCell
from ktrial.model.design import told_apart
from ktrial.model.history import Across, ChangeKind, ChangePoint, History, Line
from ktrial.report.history import versions
from ktrial.report.matrix import answer_of, heat_map, trials_of

_HAS_PARAMETERS = re.compile(r"\(.*\)$")
_LEAST_TO_JUDGE = 16


def print_history(history: History, console: Console) -> None:
    """Every line: its points with bars, then what changed, then what is missing."""
    for line in history.lines:
        _print_line(line, history, console)
    if history.missing:
        console.print(one_line(f"no number: {', '.join(history.missing)}"))
        console.print(f"  measure: {_how_to_measure(history)}", soft_wrap=True)


def _print_line(line: Line, history: History, console: Console) -> None:
    title = f"{line.workload}: {metric_name(line.metric, line.unit)}, {DIRECTIONS[line.direction]}"
    console.print(Text(one_line(title), style="bold"))
    system = line.system
    about = [MODE_NAMES[line.mode], system.machine, system.cpu_model, system.settings]
    console.print(Text(one_line("; ".join(part for part in about if part)), style="dim"))
    console.print(Text(one_line(line.trials), style="dim"))
    if line.alone:
        console.print(Text(f"not compared with the lines above: {one_line(line.alone)}", style="yellow"))
    console.print()
    console.print(rendered(versions(line)))
    console.print()
    console.print(one_line(summary(line, history)))
    for change in line.changes:
        console.print(one_line(f"  {sentence(change, line.unit)}"))
        if change.why:
            console.print(f"    why: {change.why}", soft_wrap=True)
    console.print()


def _how_to_measure(history: History) -> str:
    line = history.lines[0]
    if is_plain(line.system.settings) and not _HAS_PARAMETERS.search(history.workload):
        # A matrix is of two versions at least.
        versions = dict.fromkeys((line.points[0].version, *history.missing))
        return f"ktrial matrix --kernels {','.join(versions)} --workloads {history.workload}"
    study = max(line.points, key=lambda point: point.study_id).study
    return one_line(f"add them to the kernels of study {study}, and run it again")


def summary(line: Line, history: History) -> str:
    """How many changes there are, and by which rule."""
    if sum(point.value is not None for point in line.points) < 2:
        return "One version: there is nothing to compare it with yet."
    count = number_format.counted(len(line.changes), "change point")
    if line.mode.value.startswith("exact"):
        return f"{count}: beyond the margin of {number_format.percentage(history.margin)} and the spread."
    numbers = max(len(line.points), sum(len(point.values) for point in line.points))
    if numbers < _LEAST_TO_JUDGE:
        return f"Not judged: {numbers} numbers are too few for a test; {_LEAST_TO_JUDGE} are needed."
    return f"{count}: by a test with a rate of false alarms of {number_format.percentage(history.alpha)}."


def sentence(change: ChangePoint, unit: str) -> str:
    """`debian:6.1: +19.36 % against debian:5.10, worse`."""
    words = VERDICTS[change.verdict]
    by = number_format.change(change.ratio)
    if change.ratio is None:
        before, after = (number_format.quantity(value, unit) for value in (change.before, change.after))
        by = f"{before} → {after}"
    steps = " (in small steps)" if change.kind is ChangeKind.CREEP else ""
    chance = f", p {change.p:.2g}" if change.p is not None else ""
    levels = "" if change.is_paired else ", between levels of unpaired trials"
    return (
        f"{words.symbol} {change.version}: {by} against {change.since}{steps}, {words.word}{levels}{chance}"
    )


# A matrix for the terminal: coloured ratios with the marks of their verdicts, readable without colour.

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
