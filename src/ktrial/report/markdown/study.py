"""GitHub-flavoured Markdown for a pull request: the answer, the table; the rest folded."""

import shlex
from collections.abc import Iterator, Sequence

from ktrial.analysis import scaling as waiting
from ktrial.analysis.scaling import curves
from ktrial.format import labels, number_format
from ktrial.format.sanitize import one_line, printable
from ktrial.model.attribution import Proof
from ktrial.model.study import StudyRecord
from ktrial.model.trial import Trial
from ktrial.model.warnings import DataWarning
from ktrial.report.markdown.markup import bare, block, code, folded, grid, prose
from ktrial.report.tables import attribution, interactions, matrix, scaling, waits
from ktrial.report.tables import kernel_diff as kernel_tables
from ktrial.report.tables import proof as proof_table
from ktrial.report.tables.comparisons import of_group
from ktrial.report.text import dispersion, provenance, reproduction, study_summary
from ktrial.report.text.attribution import Why
from ktrial.report.text.kernel_diff import OptionLine, shown
from ktrial.report.text.proof import closing, headline
from ktrial.report.text.provenance import built_kernels
from ktrial.studyfile.writer import study_toml

_CONSOLE_LINES = 12
_MOST_PARTS = 8
_MOST_MENUS = 40


def text(record: StudyRecord, whys: Sequence[Why] = ()) -> str:
    """The report as Markdown, with a line feed at its end."""
    parts = [
        *_head(record),
        *_scaling(record),
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


def _head(record: StudyRecord) -> Iterator[str]:
    yield f"### ktrial: {prose(record.study.name)}"
    yield prose(record.study.question)
    yield f"**{prose(record.result.answer or 'Nothing was compared.')}**"
    counts = study_summary.verdict_counts(record)
    yield " · ".join(
        f"{labels.VERDICTS[verdict].symbol} {count} {labels.VERDICTS[verdict].word}"
        for verdict, count in counts
    )


def _tables(record: StudyRecord) -> Iterator[str]:
    compared = study_summary.groups(record)
    if len(compared) > 1:
        yield grid(matrix.flat(matrix.matrix(record, all_metrics=True)))
    for group in compared:
        table = grid(of_group(record, group))
        title = f"{code(group.treatment)} against {code(group.baseline)}"
        yield f"{title}\n\n{table}" if len(compared) == 1 else folded(bare(group.treatment), table)


def _scaling(record: StudyRecord) -> Iterator[str]:
    """Throughput over CPUs, where their number is a factor; where they wait, where that was counted."""
    tables = scaling.both(curves(record))
    if tables:
        yield prose(scaling.MEANING)
        yield grid(tables.points)
        yield grid(tables.laws) if tables.laws.rows else ""
    if table := waits.of_all(waiting.waits(record)):
        yield prose(waits.MEANING)
        yield grid(table)


def _variability(record: StudyRecord) -> Iterator[str]:
    """What stands beside a verdict: a spread, or a number of modes, that is not the baseline's."""
    yield "\n".join(
        f"- {labels.SCATTER_MARK} {code(one.workload)}, {code(one.metric)}, {code(one.treatment)}: "
        f"{prose(dispersion.beside(one))}"
        for one in record.result.variability
    )


def _interactions(record: StudyRecord) -> Iterator[str]:
    meaning = prose(interactions.MEANING)
    for one in interactions.tables(record):
        yield folded(f"Interaction: {bare(one.title)}", f"{meaning}\n\n{grid(one.table)}")


def _reasons(whys: Sequence[Why]) -> Iterator[str]:
    """The heaviest functions of each workload that has changed."""
    for why in whys:
        difference = f"{number_format.signed(why.whole.difference)} instructions an operation"
        title = f"Why: {bare(why.workload)}, {bare(why.treatment)}: {difference}"
        proved = list(_proved(why.proof)) if why.proof else []
        yield folded(title, "\n\n".join([grid(attribution.of_document(why)), *proved]))


def _proved(proof: Proof) -> Iterator[str]:
    """What was measured by taking causes back."""
    table = proof_table.of_proof(proof)
    yield prose(headline(proof))
    if table.rows:
        yield grid(table)
    yield "\n".join(f"- {prose(line)}" for line in closing(proof))


def _keep_in_mind(record: StudyRecord) -> Iterator[str]:
    groups = study_summary.warning_groups(record)
    shown_warnings = [one for group in groups for one in group.shown]
    said = [_warning(one) for one in shown_warnings if not one.is_note]
    if len(record.trials) < record.planned:
        ended = f"{len(record.trials)} of {number_format.counted(record.planned, 'trial')} ended"
        said.insert(0, f"The study is not complete: {ended}.")
    yield "\n".join(f"> ⚠ {warning}<br>" for warning in said)
    yield "\n".join(f"> ℹ {_warning(one)}<br>" for one in shown_warnings if one.is_note)
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
        table = grid(kernel_tables.facts(change))
        lines = [f"- {prose(group.title)}: {_options(group.lines)}" for group in change.groups]
        lines += [
            f"- {prose(listing.title)}: {len(listing.names)}"
            for listing in (*change.patches, *change.folded, *change.modules)
        ]
        lines += [f"- not known: {prose(one)}" for one in change.unknown]
        left = len(lines) - _MOST_MENUS
        whole = code(shlex.join(["ktrial", "kernel", "diff", change.before, change.after, "--all"]))
        more = [f"- and {left} more menus and lists: {whole}"] if left > 0 else []
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
        yield folded(number_format.counted(len(failed), "failed trial"), "\n\n".join(map(_failure, failed)))


def _failure(trial: Trial) -> str:
    planned = trial.planned
    where = f"{code(planned.treatment.label)}, perturbation {planned.perturbation.number}"
    head = f"**{labels.OUTCOMES[trial.outcome].sentence}**: {where}"
    reason = f"\n\n{prose(trial.reason)}" if trial.reason else ""
    console = printable(trial.console).rstrip().splitlines()[-_CONSOLE_LINES:]
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
    recipe = reproduction.recipe(record)
    steps = f"{code(recipe.file)}:\n\n{block(study_toml(record.study), 'toml')}"
    yield folded("How to repeat it", f"{steps}\n\n{block(chr(10).join(recipe.commands), 'sh')}")
