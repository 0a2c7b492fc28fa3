"""A study's result as a table for the terminal: readable at 80 columns, and without colour."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ktrial.model.record import StudyRecord
from ktrial.model.trial import Trial
from ktrial.model.verdict import Comparison, Verdict
from ktrial.report import figures, summary
from ktrial.report.printable import one_line, shortened
from ktrial.report.words import DIRECTIONS, MODE_NAMES, OUTCOMES, VERDICTS

_STYLES = {
    Verdict.BETTER: "green",
    Verdict.WORSE: "red",
    Verdict.EQUIVALENT: "",
    Verdict.INCONCLUSIVE: "yellow",
}
_NAME_COLUMNS = 24


def print_result(record: StudyRecord, console: Console) -> None:
    """The question, the table of verdicts, what went wrong, and the answer."""
    console.print(Text(f"{record.study.name}: {one_line(record.study.question)}".rstrip(": "), style="bold"))
    groups = summary.groups(record)
    if groups:
        console.print(_what_is_shown(record))
        console.print(_pair(groups[0]) if len(groups) == 1 else _many(record))
    _print_reasons(record, console)
    _print_failures(record, console)
    _print_warnings(record, console)
    console.print(Text(one_line(record.result.answer), style="bold"))


def _what_is_shown(record: StudyRecord) -> Text:
    """Unit, direction and mode, where they are the same for all rows."""
    rows = record.result.comparisons
    unit = {(row.metric, row.unit) for row in rows}
    direction = {row.direction for row in rows}
    parts = [one_line(f"{metric} ({unit})" if unit else metric) for metric, unit in unit if len(unit) == 1]
    parts += [DIRECTIONS[one] for one in direction if len(direction) == 1]
    parts += [MODE_NAMES[mode] for mode in summary.modes(record)]
    return Text("; ".join(parts), style="dim")


def _pair(group: summary.Group) -> Table:
    """One treatment against the baseline: a row a metric, both values side by side."""
    table = _table()
    table.add_column("workload", overflow="fold")
    for heading in (group.baseline, group.treatment, "change", "interval, %"):
        table.add_column(shortened(heading, 16), justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    names = _names(group.comparisons)
    for row in group.comparisons:
        table.add_row(
            names[row.workload, row.metric],
            figures.number(row.baseline_value),
            figures.number(row.value),
            figures.change(row.ratio),
            figures.interval(row.low, row.high),
            _verdict(row),
        )
    return table


def _many(record: StudyRecord) -> Table:
    """Several treatments: for each metric the baseline's value, then a row a treatment."""
    table = _table()
    table.add_column("workload", overflow="fold")
    table.add_column("treatment", overflow="fold")
    for heading in ("value", "change", "interval, %"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    rows = record.result.comparisons
    names = _names(rows)
    before = None
    for row in sorted(rows, key=lambda row: list(names).index((row.workload, row.metric))):
        key = (row.workload, row.metric)
        if key != before:
            baseline = figures.number(row.baseline_value)
            table.add_row(names[key], one_line(row.baseline), baseline, "", "", Text("baseline", style="dim"))
        before = key
        interval = figures.interval(row.low, row.high)
        value, change = figures.number(row.value), figures.change(row.ratio)
        table.add_row("", one_line(row.treatment), value, change, interval, _verdict(row))
    return table


def _table() -> Table:
    return Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")


def _names(rows: tuple[Comparison, ...]) -> dict[tuple[str, str], str]:
    """Workload and metric → what the row is called: the metric where one workload has several."""
    keys = list(dict.fromkeys((row.workload, row.metric) for row in rows))
    units = {(row.workload, row.metric): row.unit for row in rows}
    same = len({(metric, units[workload, metric]) for workload, metric in keys}) == 1
    return {
        (workload, metric): shortened(
            workload if same else f"{workload} {metric} {units[workload, metric]}", _NAME_COLUMNS * 2
        )
        for workload, metric in keys
    }


def _verdict(row: Comparison) -> Text:
    words = VERDICTS[row.verdict]
    return Text(f"{words.symbol} {words.word}", style=_STYLES[row.verdict])


def _print_reasons(record: StudyRecord, console: Console) -> None:
    several = len(summary.groups(record)) > 1
    for row in record.result.comparisons:
        if row.reason:
            name = f"{row.workload}, {row.treatment}" if several else row.workload
            console.print(one_line(f"{VERDICTS[row.verdict].word}: {name}: {row.reason}"))


def _print_failures(record: StudyRecord, console: Console) -> None:
    failed = summary.failed_trials(record)
    if not failed:
        return
    console.print(Text(f"{figures.counted(len(failed), 'trial')} of {record.planned} failed:", style="red"))
    for trial in failed:
        console.print(f"  {failure(trial)}")
    console.print(f"  their consoles: ktrial show {record.study.name} --console")


def failure(trial: Trial) -> str:
    """Which trial failed, and how, on one line."""
    planned = trial.planned
    what = f"{planned.treatment.label}, perturbation {planned.perturbation.number}: {OUTCOMES[trial.outcome]}"
    return one_line(f"{what}: {trial.reason}" if trial.reason else what)


def _print_warnings(record: StudyRecord, console: Console) -> None:
    for warning in summary.warnings(record):
        console.print(Text(one_line(f"warning: {warning.text}"), style="yellow"))
        if warning.advice:
            console.print(f"  {one_line(warning.advice)}")
