"""GitHub-flavoured Markdown for a pull request: the answer, the table; the rest folded."""

import re
from collections.abc import Container, Iterator, Sequence

from ktrial.format import labels, number_format
from ktrial.format.sanitize import one_line, printable
from ktrial.model.comparison import Comparison
from ktrial.model.study_record import StudyRecord
from ktrial.model.trial import Trial
from ktrial.model.warnings import DataWarning
from ktrial.report.text import comparisons, dispersion, interactions, provenance, reproduction
from ktrial.report.text.attribution import Part, Why
from ktrial.report.text.kernel_builds import built_kernels
from ktrial.report.text.kernel_diff import OptionLine, shown
from ktrial.studyfile.writer import study_toml

_CONSOLE_LINES = 12
_LONGEST_CELL = 120
_MOST_PARTS = 8
_MOST_MENUS = 40
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#~|&!$]|^[-+=]|(?<=^\d)[.)])")
"""What CommonMark and GitHub read as markup, anywhere or at the start of a line."""


def text(record: StudyRecord, whys: Sequence[Why] = ()) -> str:
    """The report as Markdown, with a line feed at its end."""
    parts = [
        *_head(record),
        *_tables(record),
        *_variability(record),
        *_interactions(record),
        *_reasons(whys),
        *_keep_in_mind(record),
        *_kernels(record),
        *_failed(record),
        *_about(record),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


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


def _head(record: StudyRecord) -> Iterator[str]:
    yield f"### ktrial: {prose(record.study.name)}"
    yield prose(record.study.question)
    yield f"**{prose(record.result.answer or 'Nothing was compared.')}**"
    counts = comparisons.verdict_counts(record)
    yield " · ".join(
        f"{labels.VERDICTS[verdict].symbol} {count} {labels.VERDICTS[verdict].word}"
        for verdict, count in counts
    )


def _tables(record: StudyRecord) -> Iterator[str]:
    compared, unsteady = comparisons.groups(record), dispersion.by_place(record)
    if len(compared) > 1:
        yield _matrix(record, compared)
    for group in compared:
        table = _table(group, unsteady)
        title = f"{code(group.treatment)} against {code(group.baseline)}"
        yield f"{title}\n\n{table}" if len(compared) == 1 else folded(bare(group.treatment), table)


def _matrix(record: StudyRecord, compared: tuple[comparisons.Group, ...]) -> str:
    header = ["Workload", code(compared[0].baseline), *(code(group.treatment) for group in compared)]
    rows = [
        [code(row.name), number_format.number(row.baseline_value), *(_cell(one) for one in row.comparisons)]
        for row in comparisons.matrix(record)
    ]
    return grid(header, rows, left=1)


def _variability(record: StudyRecord) -> Iterator[str]:
    """What stands beside a verdict: a spread, or a number of modes, that is not the baseline's."""
    yield "\n".join(
        f"- {dispersion.MARK} {code(one.workload)}, {code(one.metric)}, {code(one.treatment)}: "
        f"{prose(dispersion.beside(one))}"
        for one in record.result.variability
    )


def _interactions(record: StudyRecord) -> Iterator[str]:
    for table in interactions.tables(record):
        header = [
            "Workload",
            code(table.alone),
            code(table.beside),
            "Interaction",
            "Interval in %",
            "Verdict",
        ]
        rows = [_interaction(row) for row in table.rows]
        meaning = prose(interactions.MEANING)
        yield folded(f"Interaction: {bare(table.title)}", f"{meaning}\n\n{grid(header, rows, left=1)}")


def _interaction(row: interactions.Row) -> list[str]:
    one = row.interaction
    changes = [number_format.change(ratio) for ratio in (one.effect, one.effect_beside, one.ratio)]
    verdict = labels.VERDICTS[one.verdict]
    return [
        code(row.name),
        *changes,
        number_format.interval(one.low, one.high),
        f"{verdict.symbol} {verdict.word}",
    ]


def _reasons(whys: Sequence[Why]) -> Iterator[str]:
    """The heaviest functions of each workload that has changed."""
    for why in whys:
        difference = f"{number_format.signed(why.whole.difference)} instructions an operation"
        title = f"Why: {bare(why.workload)}, {bare(why.treatment)}: {difference}"
        header = ["Function", "Baseline", "Value", "Difference", "Share, %"]
        shown = [_part(part, code(part.name)) for part in why.parts[:_MOST_PARTS]]
        rest = [_part(part, prose(part.name)) for part in (*_left(why), why.whole)]
        yield folded(title, grid(header, [*shown, *rest], left=1))


def _left(why: Why) -> Iterator[Part]:
    """What is below the rows that are shown: other functions as one row."""
    left = [*why.parts[_MOST_PARTS:], why.others]
    shares = [part.share for part in left if part.share is not None]
    yield Part(
        name="all others",
        before=sum(part.before or 0 for part in left),
        after=sum(part.after or 0 for part in left),
        difference=sum(part.difference for part in left),
        share=sum(shares) if shares else None,
    )


def _part(part: Part, name: str) -> list[str]:
    values = (
        number_format.number(part.before),
        number_format.number(part.after),
        number_format.signed(part.difference),
    )
    return [name, *values, number_format.share(part.share)]


def _cell(comparison: Comparison | None) -> str:
    if comparison is None:
        return number_format.NONE
    change = number_format.step(comparison.ratio, comparison.value)
    return f"{change} {labels.VERDICTS[comparison.verdict].symbol}"


def _table(group: comparisons.Group, unsteady: Container[dispersion.Place]) -> str:
    header = ["Workload", "Metric", "Mode", "Verdict", "Baseline", "Value", "Change", "Interval in %"]
    rows = [
        [
            code(one.workload),
            code(comparisons.metric_name(one.metric, one.unit)),
            one.mode.value,
            f"{labels.VERDICTS[one.verdict].symbol} {labels.VERDICTS[one.verdict].word}"
            + f" {dispersion.MARK}" * (dispersion.place_of(one) in unsteady),
            number_format.number(one.baseline_value),
            number_format.number(one.value),
            number_format.change(one.ratio),
            number_format.interval(one.low, one.high),
        ]
        for one in group.comparisons
    ]
    return grid(header, rows, left=4)


def grid(header: list[str], rows: list[list[str]], *, left: int) -> str:
    """A table whose first `left` columns are set flush left, and the others flush right."""
    line = ["---"] * left + ["--:"] * (len(header) - left)
    escaped = ([cell.replace("|", "\\|") for cell in cells] for cells in (header, line, *rows))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in escaped)


def _keep_in_mind(record: StudyRecord) -> Iterator[str]:
    groups = comparisons.warning_groups(record)
    found = [one for group in groups for one in group.shown]
    said = [_warning(one) for one in found if not one.is_note]
    if len(record.trials) < record.planned:
        ended = f"{len(record.trials)} of {number_format.counted(record.planned, 'trial')} ended"
        said.insert(0, f"The study is not complete: {ended}.")
    yield "\n".join(f"> ⚠ {warning}<br>" for warning in said)
    yield "\n".join(f"> ℹ {_warning(one)}<br>" for one in found if one.is_note)
    for more in (group.more for group in groups if group.more):
        lines = "\n".join(f"- {prose(one.text)}" for one in more)
        yield folded(f"{len(more)} more warnings like these", lines)
    reasons = {
        f"- {code(one.workload)}, {code(one.treatment)}: {prose(one.reason)}"
        for one in record.result.comparisons
        if one.reason
    }
    if reasons:
        yield folded("Why a verdict is inconclusive", "\n".join(sorted(reasons)))


def _warning(warning: DataWarning) -> str:
    return prose(warning.text) + (f" → {prose(warning.advice)}" if warning.advice else "")


def _kernels(record: StudyRecord) -> Iterator[str]:
    """What differs from the baseline's kernel to each other one."""
    for change in map(shown, record.kernels):
        facts = [[fact.name, code(fact.before), code(fact.after)] for fact in change.facts]
        table = grid(["", code(change.before), code(change.after)], facts, left=3)
        lines = [f"- {prose(group.title)}: {_options(group.lines)}" for group in change.groups]
        lines += [
            f"- {prose(listing.title)}: {len(listing.names)}"
            for listing in (*change.patches, *change.folded, *change.modules)
        ]
        lines += [f"- not known: {prose(one)}" for one in change.unknown]
        left = len(lines) - _MOST_MENUS
        more = [f"- and {left} more menus and lists: ktrial kernel diff shows them"] if left > 0 else []
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
    failed = comparisons.failed_trials(record)
    if failed:
        yield folded(number_format.counted(len(failed), "failed trial"), "\n\n".join(map(_failure, failed)))


def _failure(trial: Trial) -> str:
    planned = trial.planned
    where = f"{code(planned.treatment.label)}, perturbation {planned.perturbation.number}"
    head = f"**{labels.OUTCOMES[trial.outcome]}**: {where}"
    reason = f"\n\n{prose(trial.reason)}" if trial.reason else ""
    console = printable(trial.console).rstrip().splitlines()[-_CONSOLE_LINES:]
    return head + reason + ("\n\n" + block("\n".join(console)) if console else "")


def _about(record: StudyRecord) -> Iterator[str]:
    meanings = [paragraph for mode in comparisons.modes(record) for paragraph in labels.MODES[mode]]
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
    recipe = reproduction.recipe(record)
    steps = f"{code(recipe.file)}:\n\n{block(study_toml(record.study), 'toml')}"
    yield folded("How to repeat it", f"{steps}\n\n{block(chr(10).join(recipe.commands), 'sh')}")


def folded(title: str, body: str) -> str:
    """What opens with a click. `title`: as HTML (`bare`)."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def bare(text: str) -> str:
    """Text on one line for inside a tag, where Markdown is not read."""
    line = one_line(text)[:_LONGEST_CELL]
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "@\u2060")
