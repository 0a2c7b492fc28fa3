"""A history for the terminal: a table a line, and its changes in words."""

import re

from rich.console import Console
from rich.text import Text

from ktrial.analysis.history.machine_label import is_plain
from ktrial.cli.render.table import rendered
from ktrial.format import number_format
from ktrial.format.labels import DIRECTIONS, MODE_NAMES, VERDICTS
from ktrial.format.sanitize import one_line
from ktrial.model.history import ChangeKind, ChangePoint, History, Line
from ktrial.report.tables.history import versions

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
    unit = f" ({line.unit})" if line.unit not in ("", line.metric) else ""
    title = f"{line.workload}: {line.metric}{unit}, {DIRECTIONS[line.direction]}"
    console.print(Text(one_line(title), style="bold"))
    system = line.system
    about = [MODE_NAMES[line.mode], system.machine, system.cpu_model, system.settings]
    console.print(Text(one_line("; ".join(part for part in about if part)), style="dim"))
    if line.alone:
        console.print(Text(f"not compared with the lines above: {one_line(line.alone)}", style="yellow"))
    console.print()
    console.print(rendered(versions(line)))
    console.print()
    console.print(one_line(summary(line, history)))
    for change in line.changes:
        console.print(one_line(f"  {sentence(change)}"))
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


def sentence(change: ChangePoint) -> str:
    """`debian:6.1: +19.36 % against debian:5.10, worse`."""
    words = VERDICTS[change.verdict]
    by = number_format.change(change.ratio)
    if change.ratio is None:
        by = f"{number_format.number(change.before)} → {number_format.number(change.after)}"
    how = " (in small steps)" if change.kind is ChangeKind.CREEP else ""
    chance = f", p {change.p:.2g}" if change.p is not None else ""
    return f"{words.symbol} {change.version}: {by} against {change.since}{how}, {words.word}{chance}"
