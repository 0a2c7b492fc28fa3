"""An analysis as text for the terminal: every family's groups and comparisons, then the audit."""

import textwrap
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from ktrial.cli.render.table import print_table, rendered
from ktrial.format import number_format
from ktrial.format.labels import DIRECTIONS
from ktrial.format.sanitize import one_line, shortened
from ktrial.format.table import Cell, Column, Field, Table, change, name, of_texts, own, table, verdict
from ktrial.importers.undecided import ColumnReading
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.imported import Analysis, Anova, FamilyAnalysis, GroupAnalysis, Pair
from ktrial.model.warnings import DataWarning, WarningKind

_LABEL_COLUMNS = 44


def print_analysis(analysis: Analysis, console: Console) -> None:
    """Families, recomputed scores, audit, answer."""
    percent = f"{analysis.confidence * 100:g} %"
    for reading in analysis.understood:
        console.print(Text(textwrap.fill(one_line(reading), max(20, console.width)), style="dim"))
    if analysis.understood:
        console.print()
    first = tuple(finding for finding in analysis.findings if finding.kind is WarningKind.CONFOUND)
    if first:
        _print_warnings(first, console)
    for family in analysis.families:
        console.print(Text(one_line(f"{family.source}: {family.name}"), style="bold"))
        console.print(Text(_unit_and_direction(family), style="dim"))
        console.print(rendered(_groups(family, percent)))
        for line in _tests(family):
            console.print(Text(line))
        if family.comparisons:
            console.print()
            console.print(rendered(_comparisons(family, percent)))
            for line in _left_open(family):
                console.print(Text(one_line(line)))
        console.print()
    if bound := _widest_bound(analysis.families):
        console.print(Text(bound))
        console.print()
    for score in analysis.scores:
        who = one_line(f"{score.group} {score.run}".strip())
        console.print(
            Text(f"UnixBench score of {who}, recomputed from its twelve results: {score.score:.3f}")
        )
    if analysis.scores:
        console.print()
    _print_findings(tuple(finding for finding in analysis.findings if finding not in first), console)
    console.print(Text(one_line(analysis.answer), style="bold"))


def print_columns(columns: Sequence[ColumnReading], console: Console) -> None:
    """How each column of a table was understood, and the options that say what is open."""
    rows = [
        (
            shortened(one_line(column.name), _LABEL_COLUMNS),
            f"? {column.doubt}" if column.doubt else column.understood,
            one_line(column.options),
        )
        for column in columns
    ]
    print_table(("column", "understood as", "what decides it"), rows, console)


def _unit_and_direction(family: FamilyAnalysis) -> str:
    direction = (
        DIRECTIONS[family.direction] if family.direction else "which way is better is not known (--better)"
    )
    metric = "" if family.metric in family.name.split(" · ") else family.metric
    blocks = "compared within blocks" if family.blocked else ""
    return one_line("; ".join(part for part in (family.unit or metric, direction, blocks) if part))


def _groups(family: FamilyAnalysis, percent: str) -> Table:
    labels = _told_apart([group.label for group in family.groups])
    rows = (
        (
            labels[group.label],
            _runs(group),
            _plain(group.mean),
            _plain(group.sd),
            _span(group.low, group.high),
            _span(group.sd_low, group.sd_high),
        )
        for group in family.groups
    )
    return of_texts(("group", "runs", "mean", "SD", f"mean, {percent}", f"SD, {percent}"), rows)


def _told_apart(labels: list[str]) -> dict[str, str]:
    """Each label in the width of its column; those that would look alike are numbered."""
    short = {label: shortened(label, _LABEL_COLUMNS) for label in labels}
    if len(set(short.values())) == len(set(labels)):
        return short
    return {
        label: short[label] if list(short.values()).count(short[label]) == 1 else f"{at}: {short[label]}"
        for at, label in enumerate(labels, 1)
    }


def _runs(group: GroupAnalysis) -> str:
    """`~3` for a run count that was computed."""
    if group.runs is None:
        return number_format.NONE
    return f"~{group.runs}" if group.runs_recovered else str(group.runs)


def _tests(family: FamilyAnalysis) -> list[str]:
    lines = []
    if family.anova and family.anova.ss_between is not None and family.anova.ss_within is not None:
        sums = f"SS {_sum(family.anova.ss_between)} between, {_sum(family.anova.ss_within)} within"
        lines.append(f"one-way ANOVA: {_f(family.anova)}; {sums}")
    if family.welch:
        lines.append(f"Welch ANOVA: {_f(family.welch)}")
    return lines


def _sum(squares: float) -> str:
    """Four decimals, as tables of papers have them; of times in seconds these would be zeros."""
    return f"{squares:.4f}" if squares >= 1 or not squares else f"{squares:.5g}"


def _f(test: Anova) -> str:
    return f"F({test.between:g}, {test.within:.4g}) = {test.f:.5g}, p = {_p(test.p)}"


def _comparisons(family: FamilyAnalysis, percent: str) -> Table:
    pairs = {pair.group: pair for pair in family.pairs}
    labels = _told_apart([group.label for group in family.groups])

    def difference(comparison: Comparison) -> Cell:
        return own(_difference(pairs.get(comparison.treatment)))

    def probability(comparison: Comparison) -> Cell:
        return own(_p(pairs[comparison.treatment].p) if comparison.treatment in pairs else "")

    fields: tuple[Field[Comparison], ...] = (
        Field(
            Column("treatment", shortened(f"against {family.baseline}", _LABEL_COLUMNS), wraps=True),
            lambda comparison: name(labels[comparison.treatment]),
        ),
        Field(
            Column("change", "change", numeric=True, wraps=True), lambda comparison: change(comparison.ratio)
        ),
        Field(
            Column("interval", f"{percent}, in %", numeric=True, wraps=True),
            lambda comparison: own(
                number_format.interval(comparison.low, comparison.high) or number_format.NONE
            ),
        ),
        Field(Column("difference", "difference, Games-Howell", numeric=True, wraps=True), difference),
        Field(Column("p", "p", numeric=True, wraps=True), probability),
        Field(Column("verdict", "verdict"), lambda comparison: verdict(comparison.verdict)),
    )
    return table(fields, family.comparisons)


def _left_open(family: FamilyAnalysis) -> Iterator[str]:
    """What verdicts leave open: trials that say otherwise; differences whose better side nobody named."""
    for comparison in family.comparisons:
        if family.direction is None and comparison.reason:
            yield f"{shortened(comparison.treatment, _LABEL_COLUMNS)}: {comparison.reason}"
        if comparison.beside:
            yield f"{shortened(comparison.treatment, _LABEL_COLUMNS)}: {comparison.beside}"


def _widest_bound(families: Sequence[FamilyAnalysis]) -> str:
    """What no run has met, once for all tables: that of the fewest runs; what is worse has no such doubt."""
    bounds = [
        (
            comparison.unseen or 0.0,
            comparison.bound.replace(" blocks", " blocks" if family.blocked else " runs"),
        )
        for family in families
        for comparison in family.comparisons
        if comparison.bound and comparison.verdict is not Verdict.WORSE
    ]
    return max(bounds, default=(0.0, ""))[1]


def _difference(pair: Pair | None) -> str:
    if pair is None:
        return ""
    return f"{_plain(pair.difference)} ({_span(pair.low, pair.high)})"


def _print_findings(findings: tuple[DataWarning, ...], console: Console) -> None:
    """Each with its advice, wrapped below it."""
    if not findings:
        console.print(Text("The audit found nothing that cannot be."))
        return
    console.print(Text("Audit", style="bold"))
    _print_warnings(findings, console)


def _print_warnings(findings: tuple[DataWarning, ...], console: Console) -> None:
    width = max(20, console.width - 2)
    for finding in findings:
        text = one_line(f"{finding.kind.value}: {finding.text}")
        console.print(Text(textwrap.fill(text, width, initial_indent="! ", subsequent_indent="  ")))
        if finding.advice:
            advice = textwrap.fill(
                one_line(finding.advice), width, initial_indent="  ", subsequent_indent="  "
            )
            console.print(Text(advice, style="dim"))
    console.print()


def _plain(value: float | None) -> str:
    """Six significant digits: published tables have as many."""
    return number_format.NONE if value is None else f"{value:.6g}"


def _span(low: float | None, high: float | None) -> str:
    return number_format.NONE if low is None or high is None else f"{_plain(low)} … {_plain(high)}"


def _p(p: float) -> str:
    return f"{p:.2g}" if p >= 1e-4 else f"{p:.1e}"
