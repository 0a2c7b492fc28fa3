"""Documents in Markdown."""

import re
import shlex
from collections.abc import Iterator, Sequence

from ktrial.analysis.scaling import changes, curves, waits
from ktrial.format import labels, number_format
from ktrial.format.sanitize import one_line, printable
from ktrial.format.table import Cell, Column, Kind, Output, Table
from ktrial.model.attribution import Proof
from ktrial.model.comparison import Verdict
from ktrial.model.study import StudyRecord
from ktrial.model.trial import Trial
from ktrial.model.warnings import DataWarning
from ktrial.report import attribution, comparisons, matrix, provenance, scaling, study_summary
from ktrial.report import kernel_diff as kernel_tables
from ktrial.report import proof as proof_table
from ktrial.report.attribution import Why
from ktrial.report.comparisons import of_group
from ktrial.report.kernel_diff import OptionLine, shown
from ktrial.report.proof import closing, headline
from ktrial.report.provenance import built_kernels
from ktrial.studyfile.writer import study_toml
from ktrial.text_lines import lines_of

# GitHub-flavoured Markdown for a pull request: the answer, the table; the rest folded.

_CONSOLE_LINES = 12
_MOST_PARTS = 8
_MOST_MENUS = 40


def study_markdown(record: StudyRecord, whys: Sequence[Why] = ()) -> str:
    """The report as Markdown, with a line feed at its end."""
    parts = [
        *_head(record),
        *_scaling(record),
        *_tables(record),
        *_variability(record),
        *(
            folded(
                f"Interaction: {bare(interaction.title)}",
                f"{prose(comparisons.INTERACTION_MEANING)}\n\n{grid(interaction.table)}",
            )
            for interaction in comparisons.interaction_tables(record)
        ),
        *_reasons(whys),
        *_keep_in_mind(record),
        *_kernels(record),
        *_failed(record),
        *_about(record),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(record: StudyRecord) -> Iterator[str]:
    yield f"### ktrial: {prose(record.study.name)}"
    yield prose(record.study.question)
    yield f"**{prose(record.result.answer or 'Nothing was compared.')}**"
    counts = study_summary.verdict_counts(record)
    tally = " · ".join(
        f"{labels.VERDICTS[verdict].symbol} {count} {labels.VERDICTS[verdict].word}"
        for verdict, count in counts
    )
    if tally:
        yield f"{study_summary.counted(record.result.comparisons)}: {tally}"


def _tables(record: StudyRecord) -> Iterator[str]:
    compared = study_summary.groups(record)
    if len(compared) > 1:
        yield grid(matrix.flat(matrix.matrix(record, all_metrics=True)))
    for group in compared:
        notes = study_summary.string_byte_notes(group.comparisons)
        lines = "\n".join(f"- {code(workload)}: {prose(note)}" for (workload, *_), note in notes.items())
        table = "\n\n".join(filter(None, (grid(of_group(record, group)), lines)))
        title = f"{code(group.treatment)} against {code(group.baseline)}"
        yield f"{title}\n\n{table}" if len(compared) == 1 else folded(bare(group.treatment), table)


def _scaling(record: StudyRecord) -> Iterator[str]:
    """Throughput over CPUs, where their number is a factor; where they wait, where that was counted."""
    tables = scaling.scaling_tables(curves(record), changes(record))
    if tables:
        yield prose(scaling.SCALING_MEANING)
        yield grid(tables.points) if tables.points.rows else ""
        yield grid(tables.laws) if tables.laws.rows else ""
        if tables.changes.rows:
            yield prose(scaling.CHANGES_MEANING)
            yield grid(tables.changes)
    if table := scaling.waits_table(waits(record)):
        yield prose(scaling.WAITS_MEANING)
        yield grid(table)


def _variability(record: StudyRecord) -> Iterator[str]:
    """What stands beside a verdict: a spread, or a number of modes, that is not the baseline's."""
    yield "\n".join(
        f"- {labels.SCATTER_MARK} {code(finding.workload)}, {code(finding.metric)}, "
        f"{code(finding.treatment)}: {prose(comparisons.scatter_text(finding))}"
        for finding in record.result.variability
    )


def _reasons(whys: Sequence[Why]) -> Iterator[str]:
    """The heaviest functions of each workload that has changed."""
    for why in whys:
        means = " → ".join(map(number_format.number, (why.total.before, why.total.after)))
        difference = f"{number_format.signed(why.total.difference)} instructions per operation ({means})"
        title = f"Why: {bare(why.workload)}, {bare(why.treatment)}: {difference}, under one perturbation"
        proved = list(_proved(why.proof)) if why.proof else []
        yield folded(title, "\n\n".join([grid(attribution.functions_of_document(why)), *proved]))
    yield "\n".join(f"> ⚠ {prose(notice)}<br>" for notice in attribution.notices(whys))


def _proved(proof: Proof) -> Iterator[str]:
    """What was measured by taking causes back."""
    table = proof_table.causes_table(proof)
    yield prose(headline(proof))
    if table.rows:
        yield grid(table)
    yield "\n".join(f"- {prose(line)}" for line in closing(proof))


def _keep_in_mind(record: StudyRecord) -> Iterator[str]:
    groups = study_summary.warning_groups(record)
    shown_warnings = [item for group in groups for item in group.shown]
    cautions = [_warning(item) for item in shown_warnings if not item.is_note]
    if len(record.trials) < record.planned:
        ended = f"{len(record.trials)} of {number_format.counted(record.planned, 'trial')} ended"
        cautions.insert(0, f"The study is not complete: {ended}.")
    yield "\n".join(f"> ⚠ {warning}<br>" for warning in cautions)
    yield "\n".join(f"> ℹ {_warning(item)}<br>" for item in shown_warnings if item.is_note)
    for more in (group.more for group in groups if group.more):
        lines = "\n".join(f"- {prose(item.text)}" for item in more)
        yield folded(f"{len(more)} more warnings like these", lines)
    beside = {
        f"- {code(item.workload)}, {code(item.treatment)}: {prose(item.beside)}"
        for item in record.result.comparisons
        if item.beside
    }
    yield "\n".join(sorted(beside))
    reasons = {
        f"- {code(item.workload)}, {code(item.treatment)}: {prose(item.reason)}"
        for item in record.result.comparisons
        if item.reason and item.verdict is not Verdict.NOT_TESTED
    }
    if reasons:
        yield folded("Why a verdict is inconclusive", "\n".join(sorted(reasons)))


def _warning(warning: DataWarning) -> str:
    return prose(warning.text) + (f" → {prose(warning.advice)}" if warning.advice else "")


def _kernels(record: StudyRecord) -> Iterator[str]:
    """What differs from the baseline's kernel to each other one."""
    for change in map(shown, record.kernels):
        table = grid(kernel_tables.facts_table(change))
        lines = [f"- {prose(group.title)}: {_options(group.lines)}" for group in change.groups]
        lines += [
            f"- {prose(listing.title)}: {len(listing.names)}"
            for listing in (*change.patches, *change.folded, *change.modules)
        ]
        lines += [f"- not known: {prose(fact)}" for fact in change.unknown]
        left = len(lines) - _MOST_MENUS
        command = code(shlex.join(["ktrial", "kernel", "diff", change.before, change.after, "--all"]))
        more = [f"- and {left} more menus and lists: {command}"] if left > 0 else []
        title = f"Kernels: {bare(change.before)} → {bare(change.after)}: {bare(change.sentence)}"
        yield folded(title, f"{table}\n\n" + "\n".join([*lines[:_MOST_MENUS], *more]))


def _options(lines: Sequence[OptionLine]) -> str:
    shown_lines = [
        code(line.text) + (f" (and {len(line.followers)} that follow)" if line.followers else "")
        for line in lines[:_MOST_PARTS]
    ]
    left = len(lines) - _MOST_PARTS
    return ", ".join(shown_lines) + (f" and {left} more" if left > 0 else "")


def _failed(record: StudyRecord) -> Iterator[str]:
    failed = study_summary.failed_trials(record)
    if failed:
        timed = record.study.timing is not None
        endings = "\n\n".join(_failure(trial, timed=timed) for trial in failed)
        yield folded(number_format.counted(len(failed), "failed trial"), endings)


def _failure(trial: Trial, *, timed: bool) -> str:
    planned = trial.planned
    place = f"block {planned.block}" if timed else f"perturbation {planned.perturbation.number}"
    where = f"{code(planned.treatment.label)}, {place}"
    others = study_summary.others_are_measured(trial)
    head = f"**{labels.OUTCOMES[trial.outcome].sentence}{others}**: {where}"
    reason = f"\n\n{prose(trial.reason)}" if trial.reason else ""
    console = lines_of(printable(trial.console).rstrip())[-_CONSOLE_LINES:]
    return head + reason + ("\n\n" + block("\n".join(console)) if console else "")


def _about(record: StudyRecord) -> Iterator[str]:
    meanings = [paragraph for mode in study_summary.modes(record) for paragraph in labels.MODES[mode]]
    yield folded("What the numbers mean", "\n\n".join(meanings)) if meanings else ""
    facts = [
        f"- {kernel.name}: {kernel.release} {kernel.package} {kernel.digest}"
        for kernel in provenance.kernels(record)
    ]
    facts += [
        f"- {kernel.name}: built from: {'; '.join(': '.join(fact) for fact in kernel.facts)}"
        for kernel in built_kernels(record)
    ]
    facts += [
        f"- {' · '.join((fact.name, *fact.treatments))}: {fact.value}" for fact in provenance.machine(record)
    ]
    yield folded("Environment", block("\n".join(map(one_line, facts)))) if facts else ""
    recipe = provenance.recipe(record)
    steps = f"{code(recipe.file)}:\n\n{block(study_toml(record.study), 'toml')}"
    yield folded("How to repeat it", f"{steps}\n\n{block(chr(10).join(recipe.commands), 'sh')}")


# GitHub-flavoured Markdown: text in which nothing is markup by accident, code, folded parts, tables.

_LONGEST_CELL = 120
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#~|&!$]|^[-+=]|(?<=^\d)[.)])")
"""What CommonMark and GitHub read as markup, anywhere or at the start of a line."""


def prose(text: str) -> str:
    """Text on one line in which nothing is markup or a mention of somebody."""
    return _MARKUP.sub(r"\\\1", one_line(text)).replace("@", "@\u2060")


def code(text: str) -> str:
    """Text on one line as a code span."""
    line = one_line(text)
    if not line:
        return ""
    if len(line) > _LONGEST_CELL:
        line = line[:_LONGEST_CELL] + "…"
    fence = "`" * (_longest_run("`", line) + 1)
    padding = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{fence}{padding}{line}{padding}{fence}"


def block(text: str, language: str = "") -> str:
    """Text as a fenced block of code."""
    fence = "`" * max(3, _longest_run("`", text) + 1)
    return f"{fence}{language}\n{printable(text).rstrip()}\n{fence}"


def _longest_run(character: str, text: str) -> int:
    return max((len(run) for run in re.findall(f"{re.escape(character)}+", text)), default=0)


def folded(title: str, body: str) -> str:
    """What opens with a click. `title`: as HTML (`bare`)."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def bare(text: str) -> str:
    """Text on one line for inside a tag, where Markdown is not read."""
    line = one_line(text)[:_LONGEST_CELL]
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "@\u2060")


def grid(table: Table) -> str:
    """What Markdown shows of the table: words first, then numbers, as a page cuts wide tables off at the
    right.
    """
    shown = table.shown(Output.MARKDOWN)
    order = sorted(range(len(shown.columns)), key=lambda place: shown.columns[place].numeric)
    columns = [shown.columns[place] for place in order]
    rows = [[_cell(row.cells[place]) for place in order] for row in shown.rows]
    lines = [
        [_heading(column) for column in columns],
        ["--:" if column.numeric else "---" for column in columns],
        *rows,
    ]
    escaped = ([cell.replace("|", "\\|") for cell in cells] for cells in lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in escaped)


def _heading(column: Column) -> str:
    title = "" if column.hidden else column.title
    return code(title) if column.named else title[:1].upper() + title[1:]


def _cell(cell: Cell) -> str:
    text = _text(cell)
    if cell.kind is Kind.CHANGE and cell.verdict:
        text = f"{text} {labels.VERDICTS[cell.verdict].symbol}"
    return f"{text} {labels.SCATTER_MARK}" if cell.scatter else text


def _text(cell: Cell) -> str:
    if cell.kind in (Kind.NAME, Kind.CODE):
        return code(cell.text)
    return prose(cell.text) if cell.kind is Kind.PROSE else cell.text
