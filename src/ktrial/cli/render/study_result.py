"""A study's result on the terminal: the answer in 25 lines, or all of it; readable at 60 columns."""

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from ktrial.analysis.answer import told_first
from ktrial.analysis.scaling import changes, curves, waits
from ktrial.cli.console import breakable, output, print_link
from ktrial.cli.render.next_step import (
    NextStep,
    prove_command,
    resume_command,
    store_option,
    tested_by,
    timed_by,
)
from ktrial.cli.render.screen import Screen
from ktrial.cli.render.table import rendered
from ktrial.format import number_format
from ktrial.format.labels import DIRECTIONS, ESTIMANDS, MODE_NAMES, OUTCOMES, SCATTER_MARK, VERDICTS
from ktrial.format.sanitize import one_line, shortened
from ktrial.format.table import Column, Row, Table, own
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.design import told_apart
from ktrial.model.study import StudyRecord
from ktrial.model.trial import Trial
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import BESIDE_THE_OWN, short_labels
from ktrial.report import comparisons, scaling, sparkline, study_summary
from ktrial.report.attribution import Why, net_sentence, notices, why_heading
from ktrial.report.comparisons import one_below_another, side_by_side
from ktrial.report.proof import shares
from ktrial.report.provenance import releases_of
from ktrial.report.study_summary import TreatmentComparisons

_WIDE = 80
"""Columns: on narrower terminals a row takes two lines."""
_QUESTION_COLUMNS = 400
_MOST_FAILURES = 20
_MOST_INTERACTIONS = 3
_MOST_VARIABILITY = 10
_TOLD_ELSEWHERE = {WarningKind.FAILED_TRIALS, WarningKind.NOT_TESTED}
"""By the list of failures; by the answer and the next step."""


def print_study(
    record: StudyRecord,
    reasons: Sequence[Why],
    store: str | None,
    *,
    verbose: bool = False,
    report: Path | None = None,
    next_step: NextStep | None = None,
) -> None:
    """What `run`, `compare` and `show` end with: 25 lines, or all; the answer last."""
    console = output()
    command = (
        resume_command(record, store)
        or tested_by(record)
        or (next_step or prove_command)(record, reasons, store)
        or timed_by(record)
    )
    if verbose:
        print_result(record, console)
        print_whys(reasons, console)
        if report:
            print_link("report", report, console)
        if command:
            console.print(f"next: {command}", soft_wrap=True)
        print_closing(record, console)
        return
    more = shlex.join(["ktrial", "show", str(record.id), "-v", *store_option(store)])
    print_answer(record, reasons, console, more=more, next_step=command, report=str(report) if report else "")


def print_answer(
    record: StudyRecord,
    whys: Sequence[Why],
    console: Console,
    *,
    more: str,
    next_step: str = "",
    report: str = "",
) -> None:
    """The result in at most 25 lines: the table, what it is made of, what went wrong, and the answer last.

    `more`: the command that prints all of it (`print_result`). `report`: where the page is.
    """
    screen = Screen(console, more=more)
    question = shortened(record.study.question, _QUESTION_COLUMNS)
    name = one_line(record.study.name)
    screen.title(f"{name}: {question}" if question else name, breakable(_what_is_shown(record).plain))
    if kernels := releases_of(record):
        screen.lines([kernels], "list of releases", least=len(kernels) <= 2 * screen.width, style="dim")
    screen.gap()
    over_cpus = (*curves(record), *changes(record))
    if over_cpus:
        screen.rows(scaling.brief_table(over_cpus))
    if waiting := scaling.waits_table(waits(record)):
        screen.rows(waiting)
    shown = _main_rows(record)
    if shown.result.comparisons and not over_cpus:
        _add_verdicts(shown, screen)
    limits = [warning for warning in record.result.warnings if warning.kind is WarningKind.SEVERAL_CPUS]
    screen.lines([f"note: {breakable(warning.text)}" for warning in limits], "note", least=1)
    screen.lines(_failures(record), "failure", least=2, style="red")
    if not over_cpus:
        screen.lines(list(_unsteady(shown))[:_MOST_VARIABILITY], "treatment that scatters", least=1)
    cautions, notes = _warnings(record)
    screen.lines(cautions, "warning", least=2, style="yellow")
    screen.lines(
        [f"warning: {breakable(text)}" for text in notices(whys)], "warning", least=1, style="yellow"
    )
    names = short_labels(why.workload for why in whys)
    several = len({row.treatment for row in record.result.comparisons}) > 1
    # Beside an undecided change, what one trial's functions did reads like an answer.
    whys = [why for why in whys if not all(map(_is_undecided, why.comparisons))]
    causes = [
        names[why.workload] + (f", {why.treatment}" if several else "") + f" {breakable(net_sentence(why))}"
        for why in sorted(whys, key=_relative)
    ]
    screen.lines(causes, "cause", least=1, heading=_why_heading(whys))
    if over_cpus:
        screen.leave_out(len(shown.result.comparisons), "verdict")
    else:
        screen.lines(list(_reasons(shown, but=record.result.answer)), "reason", least=1)
        screen.leave_out(len(comparisons.interaction_tables(record)), "interaction table")
    screen.leave_out(len(notes) - len(limits), "note")
    if report:
        screen.lines([f"report: {report}"], "", least=1, wraps=False)
    screen.print(record.result.answer or "There are no numbers yet.", next_step=next_step)


def _is_undecided(row: Comparison) -> bool:
    """Whether an interval says so; one perturbation has none, and its functions are all that is known."""
    return row.verdict is Verdict.INCONCLUSIVE and not row.no_interval


def _relative(why: Why) -> float:
    """The largest relative change first."""
    return -abs(why.total.difference) / why.total.before if why.total.before else -math.inf


def _main_rows(record: StudyRecord) -> StudyRecord:
    """Without the metrics beside a workload's own: -v has them."""
    main = [row for row in record.result.comparisons if row.metric not in BESIDE_THE_OWN]
    scatters = [scatter for scatter in record.result.variability if scatter.metric not in BESIDE_THE_OWN]
    result = record.result.model_copy(update={"comparisons": tuple(main), "variability": tuple(scatters)})
    return record.model_copy(update={"result": result}) if main else record


def _add_verdicts(record: StudyRecord, screen: Screen) -> None:
    """Two treatments stand side by side. Several of one workload stand below one another; of several
    workloads each treatment has a row, with its geometric mean and what changed most.
    """
    every = record.result.comparisons
    groups = study_summary.groups(record)
    workloads = {(row.workload, row.metric) for row in every}
    if len(groups) == 1:
        wide = screen.width >= _WIDE
        table = side_by_side(record, groups[0]) if wide else _two_lines(record, groups[0])
        screen.rows(table, _by_importance(groups[0].comparisons), "row")
    elif len(workloads) == 1:
        ranked = [0, *(place + 1 for place in _by_importance(every))]
        screen.rows(one_below_another(record), ranked, "treatment")
    else:
        ranked = sorted(range(len(groups)), key=lambda place: _largest_change(groups[place].comparisons))
        screen.rows(comparisons.treatments_table(groups), ranked, "treatment")


def _largest_change(rows: Sequence[Comparison]) -> float:
    """Below zero: what changed most comes first."""
    changed = [row for row in rows if row.verdict in (Verdict.BETTER, Verdict.WORSE)]
    return -max((abs((row.ratio or math.inf) - 1) for row in changed), default=0.0)


def _by_importance(rows: Sequence[Comparison]) -> list[int]:
    """Places: what the answer is about before other metrics; of these what changed first, the largest change
    before the others, then what is undecided.
    """
    main = {(row.workload, row.metric) for row in told_first(rows)[0]}

    def importance(place: int) -> tuple[bool, int, float]:
        row = rows[place]
        changed = row.verdict in (Verdict.BETTER, Verdict.WORSE)
        undecided = row.verdict is Verdict.INCONCLUSIVE
        rank = 0 if changed else 1 if undecided else 2
        return ((row.workload, row.metric) not in main, rank, -abs((row.ratio or math.inf) - 1))

    return sorted(range(len(rows)), key=importance)


def _two_lines(record: StudyRecord, group: TreatmentComparisons) -> Table:
    """For narrow terminals: values and interval stand below the name and the change."""
    table = side_by_side(record, group)
    places = {column.key: place for place, column in enumerate(table.columns)}

    def text(row: Row, key: str) -> str:
        return row.cells[places[key]].text

    rows = tuple(
        Row(
            (
                own(f"{text(row, 'name')}\n  {text(row, 'baseline_value')} → {text(row, 'value')}"),
                own(f"{text(row, 'ratio')}\n{text(row, 'interval')}"),
                row.cells[places["verdict"]],
            )
        )
        for row in table.rows
    )
    columns = (
        Column(
            "name", f"{group.baseline} → {group.treatment}", wraps=True, named=True, heading_columns=_WIDE
        ),
        Column("ratio", "change", numeric=True),
        Column("verdict", "verdict"),
    )
    return Table(columns, rows, table.name)


def print_result(record: StudyRecord, console: Console) -> None:
    """All of it: the question, the table of verdicts, what went wrong, and the answer."""
    name, question = one_line(record.study.name), shortened(record.study.question, _QUESTION_COLUMNS)
    console.print(Text(f"{name}: {question}" if question else name, style="bold"))
    if kernels := releases_of(record):
        console.print(Text(one_line(kernels), style="dim"))
    for table in _scaling_tables(record):
        console.print(rendered(table))
        console.print()
    groups = study_summary.groups(record)
    if groups:
        console.print(_what_is_shown(record))
        console.print()
        verdicts = side_by_side(record, groups[0]) if len(groups) == 1 else one_below_another(record)
        console.print(rendered(verdicts))
        console.print()
    _print_variability(record, console)
    _print_interactions(record, console)
    for reason in _reasons(record):
        console.print(reason)
    for place, failure_line in enumerate(_failures(record)):
        console.print(Text(failure_line, style="" if place else "red"))
    _print_warnings(record, console)
    if cost := sparkline.whole_cost(record):
        console.print(Text(one_line(cost), style="dim"))


def print_closing(record: StudyRecord, console: Console) -> None:
    """The answer, after all else."""
    console.print()
    console.print(Text(one_line(record.result.answer or "There are no numbers yet."), style="bold"))


def _scaling_tables(record: StudyRecord) -> list[Table]:
    """Metrics over CPUs, where their number is a factor; where they wait, where that was counted."""
    over_cpus = scaling.scaling_tables(curves(record), changes(record)) or ()
    tables = (*over_cpus, scaling.waits_table(waits(record)))
    return [table for table in tables if table and table.rows]


def _what_is_shown(record: StudyRecord) -> Text:
    """Unit, direction and mode, where they are the same for all rows."""
    rows = record.result.comparisons
    units = {row.unit or row.metric for row in rows if row.metric not in BESIDE_THE_OWN}
    directions = {DIRECTIONS[row.direction] for row in rows}
    parts = [text for texts in (units, directions) if len(texts) == 1 for text in texts]
    parts += [MODE_NAMES[mode] for mode in study_summary.modes(record)]
    parts += [ESTIMANDS[estimand] for estimand in sorted({row.estimand for row in rows if row.estimand})]
    return Text(one_line("; ".join(parts)), style="dim")


def _unsteady(record: StudyRecord) -> Iterator[str]:
    """Treatments that scatter otherwise than the baseline, a line each."""
    several = len(study_summary.groups(record)) > 1
    for scatter in record.result.variability:
        treatment = f"{told_apart(scatter.treatment, scatter.baseline)}: " if several else ""
        metric = f"{treatment}{scatter.workload}, {scatter.metric}"
        yield one_line(f"{SCATTER_MARK} {metric}: {comparisons.scatter_text(scatter)}")


def _print_variability(record: StudyRecord, console: Console) -> None:
    unsteady = list(_unsteady(record))
    for line in unsteady[:_MOST_VARIABILITY]:
        console.print(line)
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


def _reasons(record: StudyRecord, but: str = "") -> Iterator[str]:
    """Each reason once, with the rows that it holds for; their metric where a workload has several. `but`:
    what the answer says needs no line of its own.
    """
    several = len(study_summary.groups(record)) > 1
    metrics = {(row.workload, row.metric) for row in record.result.comparisons}
    of_workload = Counter(workload for workload, metric in metrics if metric not in BESIDE_THE_OWN)
    by_reason: dict[tuple[str, str, str, str], list[str]] = {}
    for row in record.result.comparisons:
        texts = (row.reason, row.beside) if row.verdict is not Verdict.NOT_TESTED else ()
        for text in texts:
            if not text or text in but:
                continue
            treatment = told_apart(row.treatment, row.baseline) if several else ""
            named = row.metric in BESIDE_THE_OWN or of_workload[row.workload] > 1
            metric = row.metric if named else ""
            key = (VERDICTS[row.verdict].word, treatment, metric, text)
            by_reason.setdefault(key, []).append(row.workload)
    for (verdict, treatment, metric, reason), workloads in by_reason.items():
        names = ", ".join(filter(None, (*dict.fromkeys(workloads), metric)))
        where = f"{treatment}: {names}" if treatment else names
        yield one_line(f"{verdict}: {where}: {reason}")


def _failures(record: StudyRecord) -> list[str]:
    """How many trials failed, then how, those that failed alike together; empty where none did."""
    failed = study_summary.failed_trials(record)
    if not failed:
        return []
    count = breakable(number_format.counted(len(failed), "trial"))
    perturbations: dict[tuple[str, str], list[int]] = {}
    for trial in failed:
        numbers = perturbations.setdefault((trial.planned.treatment.label, failure_text(trial)), [])
        numbers.append(trial.planned.perturbation.number)
    lines = [f"{count} of {record.planned} failed:"]
    for (treatment, ending), numbers in list(perturbations.items())[:_MOST_FAILURES]:
        listed = ", ".join(map(str, sorted(numbers)))
        word = "perturbation" if len(numbers) == 1 else "perturbations"
        lines.append(f"  {one_line(f'{treatment}, {word} {listed}: {ending}')}")
    if len(perturbations) > _MOST_FAILURES:
        lines.append(f"  and {len(perturbations) - _MOST_FAILURES} more")
    if any(trial.console for trial in failed):
        lines.append(f"  what the guest said: ktrial show {record.id} --console")
    return lines


def failure(trial: Trial, *, known: bool = False) -> str:
    """Which trial failed, and how, on one line. `known`: how was told of another trial."""
    planned = trial.planned
    how = "as before" if known else failure_text(trial)
    return one_line(f"{planned.treatment.label}, perturbation {planned.perturbation.number}: {how}")


def failure_text(trial: Trial) -> str:
    """How a trial failed."""
    outcome = f"{OUTCOMES[trial.outcome].sentence}{study_summary.others_are_measured(trial)}"
    return f"{outcome}: {trial.reason}" if trial.reason else outcome


def _warnings(record: StudyRecord) -> tuple[list[str], list[str]]:
    """Warnings, then notes; each with what to do about it. Failed trials are told by themselves."""
    cautions: list[str] = []
    notes: list[str] = []
    for shown, more in study_summary.warning_groups(record):
        if shown[0].kind in _TOLD_ELSEWHERE:
            continue
        for warning in (*shown, *more):
            advice = f"; {warning.advice}" if warning.advice else ""
            kind, texts = ("note", notes) if warning.is_note else ("warning", cautions)
            texts.append(f"{kind}: {warning.text}{advice}")
    return cautions, notes


def _print_warnings(record: StudyRecord, console: Console) -> None:
    for shown, more in study_summary.warning_groups(record):
        first = shown[0]
        if first.kind in _TOLD_ELSEWHERE:
            continue
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


def _why_heading(whys: Sequence[Why]) -> str:
    return why_heading(followed=all(why.tree for why in whys))


def print_whys(whys: Sequence[Why], console: Console) -> None:
    """For each workload that has changed, what its calls grew by, net: no parts that cancel."""
    if not whys:
        return
    several = len({why.treatment for why in whys}) > 1
    console.print()
    console.print(Text(_why_heading(whys), style="dim"))
    names = short_labels(why.workload for why in whys)
    for why in whys[:MOST_WORKLOADS]:
        where = names[why.workload] + (f", {why.treatment}" if several else "")
        console.print(f"  {one_line(breakable(f'{where} {net_sentence(why)}'))}")
        if why.proof:
            measured = "; ".join(shares(why.proof))
            console.print(f"    measured by changing it back: {one_line(breakable(measured))}")
        for cause in why.causes:
            console.print(f"    suspected, not measured: setting {one_line(breakable(cause))}")
    if len(whys) > MOST_WORKLOADS:
        console.print("  and more, in the report")
    for notice in notices(whys):
        console.print(Text(f"warning: {breakable(notice)}", style="yellow"))
