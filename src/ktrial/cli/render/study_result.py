"""A study's result on the terminal: tables, reasons, failures, warnings; readable at 80 columns."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ktrial.analysis.scaling import curves, waits
from ktrial.cli.console import breakable
from ktrial.cli.render.table import rendered
from ktrial.format import number_format
from ktrial.format.labels import DIRECTIONS, MODE_NAMES, OUTCOMES, SCATTER_MARK, VERDICTS
from ktrial.format.sanitize import one_line, shortened
from ktrial.model.design import told_apart
from ktrial.model.study import StudyRecord
from ktrial.model.trial import Trial
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import BESIDE_THE_OWN, short_labels
from ktrial.report import comparisons, scaling, sparkline, study_summary
from ktrial.report.attribution import Why, notices
from ktrial.report.comparisons import one_below_another, side_by_side
from ktrial.report.proof import shares

_NAME_COLUMNS = 60
_QUESTION_COLUMNS = 400
_MOST_FAILURES = 20
_MOST_INTERACTIONS = 3
_MOST_VARIABILITY = 10


def print_result(record: StudyRecord, console: Console) -> None:
    """The question, the table of verdicts, what went wrong, and the answer."""
    name, question = one_line(record.study.name), shortened(record.study.question, _QUESTION_COLUMNS)
    console.print(Text(f"{name}: {question}" if question else name, style="bold"))
    _print_scaling(record, console)
    groups = study_summary.groups(record)
    if groups:
        console.print(_what_is_shown(record))
        console.print()
        verdicts = side_by_side(record, groups[0]) if len(groups) == 1 else one_below_another(record)
        console.print(rendered(verdicts))
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


def _print_scaling(record: StudyRecord, console: Console) -> None:
    """Throughput over CPUs, where their number is a factor; where they wait, where that was counted."""
    tables = (*(scaling.scaling_tables(curves(record)) or ()), scaling.waits_table(waits(record)))
    for table in tables:
        if table and table.rows:
            console.print(rendered(table))
            console.print()


def _what_is_shown(record: StudyRecord) -> Text:
    """Unit, direction and mode, where they are the same for all rows."""
    rows = record.result.comparisons
    units = {row.unit or row.metric for row in rows if row.metric not in BESIDE_THE_OWN}
    directions = {DIRECTIONS[row.direction] for row in rows}
    parts = [text for texts in (units, directions) if len(texts) == 1 for text in texts]
    parts += [MODE_NAMES[mode] for mode in study_summary.modes(record)]
    return Text(one_line("; ".join(parts)), style="dim")


def _print_variability(record: StudyRecord, console: Console) -> None:
    several = len(study_summary.groups(record)) > 1
    unsteady = record.result.variability
    for scatter in unsteady[:_MOST_VARIABILITY]:
        treatment = f"{told_apart(scatter.treatment, scatter.baseline)}: " if several else ""
        metric = f"{treatment}{scatter.workload}, {scatter.metric}"
        console.print(one_line(f"{SCATTER_MARK} {metric}: {comparisons.scatter_text(scatter)}"))
    if len(unsteady) > _MOST_VARIABILITY:
        left = breakable(number_format.counted(len(unsteady) - _MOST_VARIABILITY, "more treatment"))
        console.print(f"{SCATTER_MARK} {left} that scatter otherwise than the baseline: in the report")
    if unsteady:
        console.print()


def _print_interactions(record: StudyRecord, console: Console) -> None:
    """For every two factors: what the first changes, beside each level of the second."""
    every = comparisons.interaction_tables(record)
    for interaction in every[:_MOST_INTERACTIONS]:
        console.print(one_line(f"{interaction.title}: what the first changes, with and without the second"))
        console.print(rendered(interaction.table))
        console.print()
    if len(every) > _MOST_INTERACTIONS:
        left = number_format.counted(len(every) - _MOST_INTERACTIONS, "more table")
        console.print(f"{left} of interactions: in the report")


def _print_reasons(record: StudyRecord, console: Console) -> None:
    """Each reason once, with the rows that it holds for; their metric where a workload has several."""
    several = len(study_summary.groups(record)) > 1
    metrics = {(row.workload, row.metric) for row in record.result.comparisons}
    of_workload = Counter(workload for workload, metric in metrics if metric not in BESIDE_THE_OWN)
    by_reason: dict[tuple[str, str, str, str], list[str]] = {}
    for row in record.result.comparisons:
        if row.reason:
            treatment = told_apart(row.treatment, row.baseline) if several else ""
            named = row.metric in BESIDE_THE_OWN or of_workload[row.workload] > 1
            metric = row.metric if named else ""
            key = (VERDICTS[row.verdict].word, treatment, metric, row.reason)
            by_reason.setdefault(key, []).append(row.workload)
    for (verdict, treatment, metric, reason), workloads in by_reason.items():
        names = ", ".join(filter(None, (*dict.fromkeys(workloads), metric)))
        where = f"{treatment}: {names}" if treatment else names
        console.print(one_line(f"{verdict}: {where}: {reason}"))


def _print_failures(record: StudyRecord, console: Console) -> None:
    failed = study_summary.failed_trials(record)
    if not failed:
        return
    count = breakable(number_format.counted(len(failed), "trial"))
    console.print(Text(f"{count} of {record.planned} failed:", style="red"))
    perturbations: dict[tuple[str, str], list[int]] = {}
    for trial in failed:
        numbers = perturbations.setdefault((trial.planned.treatment.label, failure_text(trial)), [])
        numbers.append(trial.planned.perturbation.number)
    for (treatment, ending), numbers in list(perturbations.items())[:_MOST_FAILURES]:
        listed = ", ".join(map(str, sorted(numbers)))
        word = "perturbation" if len(numbers) == 1 else "perturbations"
        console.print(f"  {one_line(f'{treatment}, {word} {listed}: {ending}')}")
    if len(perturbations) > _MOST_FAILURES:
        console.print(f"  and {len(perturbations) - _MOST_FAILURES} more")
    if any(trial.console for trial in failed):
        console.print(f"  what the guest said: ktrial show {record.id} --console")


def failure(trial: Trial) -> str:
    """Which trial failed, and how, on one line."""
    planned = trial.planned
    return one_line(
        f"{planned.treatment.label}, perturbation {planned.perturbation.number}: {failure_text(trial)}"
    )


def failure_text(trial: Trial) -> str:
    """How a trial failed."""
    outcome = OUTCOMES[trial.outcome].sentence
    return f"{outcome}: {trial.reason}" if trial.reason else outcome


def _print_warnings(record: StudyRecord, console: Console) -> None:
    for shown, more in study_summary.warning_groups(record):
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


# What a study's differences are made of, in a line each.

MOST_WORKLOADS = 12
"""Lines that are printed."""
_MOST_FUNCTIONS = 3


def print_whys(whys: Sequence[Why], console: Console) -> None:
    """For each workload that has changed, the functions with the largest parts in it."""
    if not whys:
        return
    several = len({why.treatment for why in whys}) > 1
    console.print()
    console.print(Text("why, by kernel function (instructions an operation):", style="dim"))
    names = short_labels(why.workload for why in whys)
    for why in whys[:MOST_WORKLOADS]:
        where = names[why.workload] + (f", {why.treatment}" if several else "")
        shown = [
            f"{part.name} {number_format.signed(part.difference)}" for part in why.parts[:_MOST_FUNCTIONS]
        ]
        parts = ", ".join(shown) or "no function differs"
        text = f"{where}: {number_format.signed(why.total.difference)}: {parts}"
        left = len(why.parts) > _MOST_FUNCTIONS
        console.print(f"  {one_line(breakable(text))}{', …' if left else ''}")
        if why.proof:
            measured = "; ".join(shares(why.proof))
            console.print(f"    measured by taking it back: {one_line(breakable(measured))}")
        for cause in why.causes:
            console.print(f"    suspected, not measured: setting {one_line(breakable(cause))}")
    if len(whys) > MOST_WORKLOADS:
        console.print("  and more, in the report")
    for notice in notices(whys):
        console.print(Text(f"warning: {breakable(notice)}", style="yellow"))
