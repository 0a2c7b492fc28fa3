"""A history for the terminal: 25 lines with the answer last, or every line with its changes in words."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from ktrial.analysis.history.answer import LEAST_TO_JUDGE, magnitude
from ktrial.analysis.history.stored_numbers import is_plain
from ktrial.cli.console import breakable
from ktrial.cli.render.next_step import store_option
from ktrial.cli.render.screen import Screen
from ktrial.cli.render.table import rendered
from ktrial.format import number_format
from ktrial.format.labels import DIRECTIONS, MODE_NAMES, VERDICTS, metric_name
from ktrial.format.sanitize import one_line, shortened
from ktrial.format.table import Cell, Column, Output, Row, Table, own
from ktrial.model.history import ChangeKind, ChangePoint, History, Line
from ktrial.report.history import versions

_HAS_PARAMETERS = re.compile(r"\(.*\)$")
_WITH_BARS, _WIDE = 100, 80
"""Columns from which bars are drawn, and from which a row has one line."""
_NAME_COLUMNS = 36
_MOST_LINES = 3
"""Of a command: a longer one is left to -v."""


def print_history(
    history: History,
    console: Console,
    *,
    whole: bool = False,
    notes: Sequence[str] = (),
    more: str = "",
    store: str | None = None,
    next_step: str = "",
) -> None:
    """The first line's table, what stands apart from it, what is missing, and the answer last.

    `whole`: every line with each change in words. `notes`: what the command adds. `more`: the command that
    prints the whole. `store`: as it was given. `next_step`: where no change can be explained.
    """
    if whole:
        _print_all(history, notes, console)
        return
    line, *others = history.lines
    screen = Screen(console, more=more)
    screen.title(breakable(_title(line)), breakable(_about(line)))
    screen.lines([breakable(line.trials)], "", least=1, style="dim")
    screen.gap()
    screen.rows(_table(line, screen.width), _by_importance(line), "version")
    apart = [f"apart, {other.alone or 'a line of its own'}: {other.answer}" for other in others]
    screen.lines(apart, "line", least=1)
    screen.leave_out(sum(len(other.points) for other in others), "other lines' version")
    next_step = _why(history, store) or next_step
    if history.missing:
        count = breakable(number_format.counted(len(history.missing), "kernel"))
        missing = f"{count} without a number: {', '.join(history.missing)}"
        screen.lines([missing], "", least=1, style="yellow")
        measure = _how_to_measure(history)
        next_step = measure if len(measure) < _MOST_LINES * screen.width else more
    screen.lines(notes, "", least=1, wraps=False)
    screen.print(history.answer, next_step=next_step)


def _title(line: Line) -> str:
    return f"{line.workload}: {metric_name(line.metric, line.unit)}, {DIRECTIONS[line.direction]}"


def _about(line: Line) -> str:
    system = line.system
    machine = "" if MODE_NAMES[line.mode].startswith(f"{system.machine} mode") else system.machine
    about = [MODE_NAMES[line.mode], machine, system.cpu_model, system.settings]
    return "; ".join(part for part in about if part)


def _table(line: Line, width: int) -> Table:
    """Without bars where there is no room for them; below 80 columns two lines a row."""
    table = versions(line).adapted("version", columns=_NAME_COLUMNS)
    if width >= _WITH_BARS:
        return table
    table = table.adapted("bar", outputs=Output.HTML)
    return table if width >= _WIDE else _two_lines(table)


def _two_lines(table: Table) -> Table:
    """The value stands below the version, the ratio beside the change."""
    places = {column.key: place for place, column in enumerate(table.columns)}

    def folded(row: Row) -> Row:
        def cell(key: str) -> Cell:
            return row.cells[places[key]]

        name = shortened(cell("version").text, _NAME_COLUMNS)
        return Row((own(f"{name}\n  {cell('value').text}"), cell("ratio"), cell("change")))

    columns = (
        Column("version", "version, value", wraps=True),
        replace(table.columns[places["ratio"]], outputs=Output.ALL),
        replace(table.columns[places["change"]], outputs=Output.ALL),
    )
    return Table(columns, tuple(map(folded, table.rows)), table.name)


def _by_importance(line: Line) -> list[int]:
    """Places: where it changed, the largest change first; the two ends; then the newest."""
    changes = sorted(line.changes, key=lambda change: -magnitude(change))
    last = len(line.points) - 1
    first = [change.place for change in changes]
    return list(dict.fromkeys([*first, last, 0, *range(last, -1, -1)]))


def _why(history: History, store: str | None) -> str:
    """The command that says what the largest change is made of; empty where nothing can."""
    explained = [change for line in history.lines for change in line.changes if change.why]
    if not explained:
        return ""
    return " ".join((max(explained, key=magnitude).why, *map(shlex.quote, store_option(store))))


def _print_all(history: History, notes: Sequence[str], console: Console) -> None:
    """Every line: its points with bars, then what changed, then what is missing; the answer last."""
    for line in history.lines:
        _print_line(line, history, console)
    if history.missing:
        console.print(one_line(f"no number: {', '.join(history.missing)}"))
        console.print(f"next: {_how_to_measure(history)}", soft_wrap=True)
    for note in notes:
        console.print(one_line(note), soft_wrap=True)
    console.print(Text(one_line(history.answer), style="bold"))


def _print_line(line: Line, history: History, console: Console) -> None:
    console.print(Text(one_line(_title(line)), style="bold"))
    console.print(Text(one_line(_about(line)), style="dim"))
    console.print(Text(one_line(line.trials), style="dim"))
    if line.alone:
        console.print(Text(f"not compared with the lines above: {one_line(line.alone)}", style="yellow"))
    console.print()
    console.print(rendered(_table(line, console.width)))
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
    if numbers < LEAST_TO_JUDGE:
        return f"Not judged: {numbers} numbers are too few for a test; {LEAST_TO_JUDGE} are needed."
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
