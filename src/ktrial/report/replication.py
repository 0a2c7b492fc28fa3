"""The tables of a replication: verdicts then and now, numbers that are not identical, what else differs."""

from dataclasses import replace

from ktrial.format import number_format
from ktrial.format.sanitize import shortened
from ktrial.format.table import (
    Cell,
    Column,
    Emphasis,
    Field,
    Output,
    Table,
    change,
    interval,
    name,
    own,
    table,
    verdict,
)
from ktrial.model.comparison import Comparison
from ktrial.model.replication import (
    Agreement,
    Circumstance,
    KernelHad,
    NumberPair,
    Replication,
    VerdictPair,
    Word,
)
from ktrial.model.study import StudyRecord
from ktrial.report.templating import environment, style_of

MOST_NUMBERS = 200

_WORDS = {
    Word.CONSISTENT: Emphasis.GOOD,
    Word.CONTRADICTED: Emphasis.BAD,
    Word.UNDECIDED: Emphasis.CAUTION,
    Word.UNBOUNDED: Emphasis.CAUTION,
}

_VALUE_COLUMNS = 60
_NO_PAGE = Output.TERMINAL | Output.MARKDOWN | Output.PROGRAMS


def verdicts(replication: Replication) -> Table:
    """A row a comparison."""
    return table(_VERDICTS, replication.verdicts, "replication")


def numbers(replication: Replication) -> Table:
    """A row a number that is not identical; no more than some."""
    unlike = [pair for pair in replication.numbers if pair.agreement is not Agreement.IDENTICAL]
    return table(_NUMBERS, unlike[:MOST_NUMBERS], "replicated-numbers")


def circumstances(replication: Replication) -> Table:
    """A row a thing that is another than it was."""
    return table(_CIRCUMSTANCES, replication.circumstances, "circumstances")


def kernels(replication: Replication) -> Table:
    """A row a kernel: how it was had."""
    return table(_KERNELS, replication.kernels, "replicated-kernels")


def _change(comparison: Comparison | None) -> Cell:
    """On a page its interval stands below it: beside it, the last columns would not fit a desk."""
    if comparison is None:
        return Cell()
    ends = number_format.interval(comparison.low, comparison.high) or comparison.no_interval
    return replace(change(comparison.ratio), notes=(ends,))


def _interval(comparison: Comparison | None) -> Cell:
    if comparison is None:
        return Cell()
    return interval(comparison.low, comparison.high, comparison.no_interval)


def _verdict(comparison: Comparison | None) -> Cell:
    return verdict(comparison.verdict) if comparison else Cell()


def _word(pair: VerdictPair) -> Cell:
    return own(pair.word.value, emphasis=_WORDS[pair.word], title=pair.reason)


_VERDICTS: tuple[Field[VerdictPair], ...] = (
    Field(Column("workload", "workload", wraps=True), lambda pair: name(pair.before.workload)),
    Field(Column("metric", "metric", wraps=True), lambda pair: name(pair.before.metric)),
    Field(Column("treatment", "treatment", wraps=True), lambda pair: name(pair.before.treatment)),
    Field(Column("before", "then", numeric=True), lambda pair: _change(pair.before)),
    Field(
        Column("before_interval", "interval", numeric=True, outputs=_NO_PAGE),
        lambda pair: _interval(pair.before),
    ),
    Field(Column("before_verdict", "verdict"), lambda pair: _verdict(pair.before)),
    Field(Column("now", "now", numeric=True), lambda pair: _change(pair.now)),
    Field(
        Column("now_interval", "interval", numeric=True, outputs=_NO_PAGE), lambda pair: _interval(pair.now)
    ),
    Field(Column("now_verdict", "verdict"), lambda pair: _verdict(pair.now)),
    Field(Column("word", "replication"), _word),
)


def _value(value: float | None) -> Cell:
    """With all its digits: which of them differs is what is asked."""
    return Cell(value, number_format.NONE if value is None else repr(value))


def _off(pair: NumberPair) -> Cell:
    if pair.now is None or not pair.before:
        return Cell()
    ratio = pair.now / pair.before
    return Cell(ratio, f"{100 * (ratio - 1):+.3g}")


_NUMBERS: tuple[Field[NumberPair], ...] = (
    Field(Column("workload", "workload", wraps=True), lambda pair: name(pair.workload)),
    Field(Column("metric", "metric", wraps=True), lambda pair: name(pair.metric)),
    Field(Column("treatment", "treatment", wraps=True), lambda pair: name(pair.treatment)),
    Field(
        Column("perturbation", "perturbation", numeric=True),
        lambda pair: Cell(pair.perturbation, str(pair.perturbation)),
    ),
    Field(Column("before", "then", numeric=True), lambda pair: _value(pair.before)),
    Field(Column("now", "now", numeric=True), lambda pair: _value(pair.now)),
    Field(Column("off", "off", "%", numeric=True), _off),
    Field(Column("agreement", "agreement"), lambda pair: own(pair.agreement.value)),
)


def _of(circumstance: Circumstance) -> str:
    return ", ".join(circumstance.treatments) or "all"


def _short(text: str) -> Cell:
    return name(shortened(text, _VALUE_COLUMNS) or "none")


_CIRCUMSTANCES: tuple[Field[Circumstance], ...] = (
    Field(Column("what", "what", wraps=True), lambda pair: name(pair.what)),
    Field(Column("before", "then", wraps=True), lambda pair: _short(pair.before)),
    Field(Column("now", "now", wraps=True), lambda pair: _short(pair.now)),
    Field(Column("treatments", "treatments", wraps=True), lambda pair: name(_of(pair))),
)


def _same(kernel: KernelHad) -> Cell:
    if kernel.same:
        return own("the same", emphasis=Emphasis.GOOD)
    return own("stands in" if kernel.how else "not had", emphasis=Emphasis.CAUTION)


_KERNELS: tuple[Field[KernelHad], ...] = (
    Field(Column("kernel", "kernel", wraps=True), lambda pair: name(pair.asked)),
    Field(Column("same", "is"), _same),
    Field(Column("how", "from", wraps=True), lambda pair: name(pair.how or pair.problem)),
    Field(Column("release", "release", wraps=True), lambda pair: name(pair.release)),
)


# The page of a replication: both results side by side, and what differs between the two runs.


def replication_page(replication: Replication, before: StudyRecord, after: StudyRecord) -> str:
    """The page as text: it needs no network and has no script."""
    unlike = len(replication.numbers) - replication.count(Agreement.IDENTICAL)
    return (
        environment()
        .get_template("replication.html.j2")
        .render(
            title=replication.study,
            eyebrow="ktrial replicate",
            question=before.study.question,
            replication=replication,
            answers=(("Then", before.result.answer), ("Now", after.result.answer)),
            verdicts=verdicts(replication),
            numbers=numbers(replication),
            bounds=replication.count(Agreement.UNBOUNDED) + replication.said_of(Word.UNBOUNDED),
            left_out=max(0, unlike - MOST_NUMBERS),
            circumstances=circumstances(replication),
            kernels=kernels(replication),
            crumbs=(),
            sheet="",
            style=style_of(),
            foot="Made by ktrial replicate. Identical: to the last digit.",
        )
    )
