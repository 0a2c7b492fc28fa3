"""A study's result as a table for the terminal: readable at 80 columns, and without colour."""

from collections import Counter
from collections.abc import Container

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ktrial.cli.console import breakable
from ktrial.format import number_format
from ktrial.format.labels import DIRECTIONS, MODE_NAMES, OUTCOMES, VERDICTS
from ktrial.format.sanitize import one_line, shortened
from ktrial.model.comparison import Comparison, Interaction, Verdict
from ktrial.model.design import told_apart
from ktrial.model.study_record import StudyRecord
from ktrial.model.trial import Trial
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import STRING_BYTES, short_labels
from ktrial.report.charts import sparkline
from ktrial.report.text import comparisons, dispersion, interactions

_STYLES = {
    Verdict.BETTER: "green",
    Verdict.WORSE: "red",
    Verdict.EQUIVALENT: "",
    Verdict.INCONCLUSIVE: "yellow",
}
_NAME_COLUMNS = 60
_QUESTION_COLUMNS = 400
_MOST_FAILURES = 20
_MOST_INTERACTIONS = 3
_MOST_VARIABILITY = 10


def print_result(record: StudyRecord, console: Console) -> None:
    """The question, the table of verdicts, what went wrong, and the answer."""
    name, question = one_line(record.study.name), shortened(record.study.question, _QUESTION_COLUMNS)
    console.print(Text(f"{name}: {question}" if question else name, style="bold"))
    groups = comparisons.groups(record)
    if groups:
        console.print(_what_is_shown(record))
        console.print()
        console.print(_pair(groups[0], record) if len(groups) == 1 else _many(record))
        console.print()
    _print_variability(record, console)
    _print_interactions(record, console)
    _print_reasons(record, console)
    _print_failures(record, console)
    _print_warnings(record, console)
    if cost := sparkline.whole_cost(record):
        console.print(Text(one_line(cost), style="dim"))
    answer = record.result.answer or "There are no numbers yet."
    console.print(Text(one_line(answer), style="bold"))


def _what_is_shown(record: StudyRecord) -> Text:
    """Unit, direction and mode, where they are the same for all rows."""
    rows = record.result.comparisons
    units = {row.unit or row.metric for row in rows if row.metric != STRING_BYTES.name}
    directions = {DIRECTIONS[row.direction] for row in rows}
    parts = [text for texts in (units, directions) if len(texts) == 1 for text in texts]
    parts += [MODE_NAMES[mode] for mode in comparisons.modes(record)]
    return Text(one_line("; ".join(parts)), style="dim")


def _pair(group: comparisons.Group, record: StudyRecord) -> Table:
    """One treatment against the baseline: a row a metric, both values side by side."""
    table = _table()
    table.add_column("workload", overflow="fold")
    for heading in (group.baseline, group.treatment, "change", "interval, %"):
        table.add_column(shortened(heading, 16), justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    names, unsteady = _names(group.comparisons), dispersion.by_place(record)
    for row in group.comparisons:
        table.add_row(
            names[row.workload, row.metric],
            number_format.number(row.baseline_value),
            number_format.number(row.value),
            breakable(number_format.change(row.ratio)),
            number_format.interval(row.low, row.high),
            _marked(row, unsteady),
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
    names, unsteady = _names(rows), dispersion.by_place(record)
    before = None
    for row in sorted(rows, key=lambda row: list(names).index((row.workload, row.metric))):
        key = (row.workload, row.metric)
        if key != before:
            baseline = number_format.number(row.baseline_value)
            table.add_row(names[key], one_line(row.baseline), baseline, "", "", Text("baseline", style="dim"))
        before = key
        interval = number_format.interval(row.low, row.high)
        value, change = number_format.number(row.value), breakable(number_format.change(row.ratio))
        table.add_row(
            "",
            one_line(told_apart(row.treatment, row.baseline)),
            value,
            change,
            interval,
            _marked(row, unsteady),
        )
    return table


def _table() -> Table:
    return Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")


def _names(rows: tuple[Comparison, ...]) -> dict[tuple[str, str], str]:
    """Workload and metric → what the row is called: the workload, and what tells its rows apart."""
    units = {(row.workload, row.metric): row.unit for row in rows}
    others = {key: unit for key, unit in units.items() if key[1] != STRING_BYTES.name}
    metrics = Counter(workload for workload, _ in others)
    same_unit = len(set(others.values())) == 1
    short = short_labels(workload for workload, _ in units)

    def name(workload: str, metric: str, unit: str) -> str:
        if metric == STRING_BYTES.name:
            return _name(short[workload], metric, unit)
        return _name(short[workload], metric if metrics[workload] > 1 else "", "" if same_unit else unit)

    return {(workload, metric): name(workload, metric, unit) for (workload, metric), unit in units.items()}


def _name(workload: str, metric: str, unit: str) -> str:
    # Spaces let long names go to the next line.
    parts = (workload.replace("(", " ("), metric, unit and f"[{unit}]")
    return shortened(" ".join(part for part in parts if part), _NAME_COLUMNS)


def _verdict(row: Comparison | Interaction) -> Text:
    words = VERDICTS[row.verdict]
    return Text(f"{words.symbol} {words.word}", style=_STYLES[row.verdict])


def _marked(row: Comparison, unsteady: Container[dispersion.Place]) -> Text:
    """With a mark where the treatment scatters otherwise than the baseline."""
    verdict = _verdict(row)
    return verdict.append(f" {dispersion.MARK}") if dispersion.place_of(row) in unsteady else verdict


def _print_variability(record: StudyRecord, console: Console) -> None:
    several = len(comparisons.groups(record)) > 1
    found = record.result.variability
    for one in found[:_MOST_VARIABILITY]:
        treatment = f"{told_apart(one.treatment, one.baseline)}: " if several else ""
        what = f"{treatment}{one.workload}, {one.metric}"
        console.print(one_line(f"{dispersion.MARK} {what}: {dispersion.beside(one)}"))
    if len(found) > _MOST_VARIABILITY:
        left = breakable(number_format.counted(len(found) - _MOST_VARIABILITY, "more treatment"))
        console.print(f"{dispersion.MARK} {left} that scatter otherwise than the baseline: in the report")
    if found:
        console.print()


def _print_interactions(record: StudyRecord, console: Console) -> None:
    """For every two factors: what the first changes, beside each level of the second."""
    found = interactions.tables(record)
    for table in found[:_MOST_INTERACTIONS]:
        shown = _table()
        shown.add_column("workload", overflow="fold")
        for heading in (table.alone, table.beside, "interaction", "interval, %"):
            shown.add_column(shortened(heading, 16), justify="right", no_wrap=True)
        shown.add_column("verdict", no_wrap=True)
        for row in table.rows:
            one = row.interaction
            changes = [
                breakable(number_format.change(each)) for each in (one.effect, one.effect_beside, one.ratio)
            ]
            interval = number_format.interval(one.low, one.high)
            shown.add_row(shortened(row.name, _NAME_COLUMNS), *changes, interval, _verdict(one))
        console.print(one_line(f"{table.title}: what the first changes, with and without the second"))
        console.print(shown)
        console.print()
    if len(found) > _MOST_INTERACTIONS:
        left = number_format.counted(len(found) - _MOST_INTERACTIONS, "more table")
        console.print(f"{left} of interactions: in the report")


def _print_reasons(record: StudyRecord, console: Console) -> None:
    """Each reason once, with the rows that it holds for."""
    several = len(comparisons.groups(record)) > 1
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in record.result.comparisons:
        if row.reason:
            treatment = told_apart(row.treatment, row.baseline) if several else ""
            key = (VERDICTS[row.verdict].word, treatment, row.reason)
            found.setdefault(key, []).append(row.workload)
    for (verdict, treatment, reason), workloads in found.items():
        names = ", ".join(dict.fromkeys(workloads))
        where = f"{treatment}: {names}" if treatment else names
        console.print(one_line(f"{verdict}: {where}: {reason}"))


def _print_failures(record: StudyRecord, console: Console) -> None:
    failed = comparisons.failed_trials(record)
    if not failed:
        return
    count = breakable(number_format.counted(len(failed), "trial"))
    console.print(Text(f"{count} of {record.planned} failed:", style="red"))
    told: dict[tuple[str, str], list[int]] = {}
    for trial in failed:
        numbers = told.setdefault((trial.planned.treatment.label, how(trial)), [])
        numbers.append(trial.planned.perturbation.number)
    for (treatment, what), numbers in list(told.items())[:_MOST_FAILURES]:
        listed = ", ".join(map(str, sorted(numbers)))
        word = "perturbation" if len(numbers) == 1 else "perturbations"
        console.print(f"  {one_line(f'{treatment}, {word} {listed}: {what}')}")
    if len(told) > _MOST_FAILURES:
        console.print(f"  and {len(told) - _MOST_FAILURES} more")
    if any(trial.console for trial in failed):
        console.print(f"  what the guest said: ktrial show {record.id} --console")


def failure(trial: Trial) -> str:
    """Which trial failed, and how, on one line."""
    planned = trial.planned
    return one_line(f"{planned.treatment.label}, perturbation {planned.perturbation.number}: {how(trial)}")


def how(trial: Trial) -> str:
    """How a trial failed."""
    what = OUTCOMES[trial.outcome]
    return f"{what}: {trial.reason}" if trial.reason else what


def _print_warnings(record: StudyRecord, console: Console) -> None:
    for shown, more in comparisons.warning_groups(record):
        first = shown[0]
        if first.kind is WarningKind.FAILED_TRIALS:
            continue  # _print_failures has said more
        kind, style = ("note", "") if first.is_note else ("warning", "yellow")
        for warning in shown:
            console.print(Text(one_line(f"{kind}: {warning.text}"), style=style))
            if warning.advice and not more:
                console.print(f"  {one_line(warning.advice)}")
        if more:
            console.print(Text(f"{kind}: and {len(more)} more like these, in the report", style=style))
            if first.advice:
                console.print(f"  {one_line(first.advice)}")
