"""What a check says: on the terminal, as Markdown for a pull request, and as JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from rich.console import Console

from ktrial.analysis.fidelity_citation import cite
from ktrial.analysis.kernel_confounds import listed
from ktrial.cli.console import breakable
from ktrial.cli.render.explanation import citation_as_json, cited, explanation_as_json
from ktrial.cli.render.next_step import same_command
from ktrial.cli.render.screen import Screen
from ktrial.cli.running import series
from ktrial.experiment.regression_check import worst
from ktrial.experiment.watch import News, TargetLook
from ktrial.format import number_format
from ktrial.format.labels import MODE_NAMES, VERDICT_STYLES, VERDICTS, verdict_text
from ktrial.format.sanitize import one_line, printable, shortened
from ktrial.format.table import Cell, Column, Field, Kind, change, interval, name, own, quantity, table
from ktrial.model.attribution import Explanation
from ktrial.model.attribution import FunctionDifference as Part
from ktrial.model.comparison import Verdict
from ktrial.model.fidelity import FidelityCitation
from ktrial.model.regression_check import CheckedMetric, Decision, RegressionCheck
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import STRING_BYTES
from ktrial.program_outputs import is_by_clock
from ktrial.report import patch_series as commits_report
from ktrial.report import patch_series_page
from ktrial.report.attribution import (
    followed_calls,
    locking_sentence,
    net_sentence_of_profiles,
    why_heading,
)
from ktrial.report.markdown import block, code, grid, prose
from ktrial.report.regressions import as_json as regression_as_json
from ktrial.report.regressions import line
from ktrial.series.commit_ranges import CommitsBetween
from ktrial.text_lines import lines_of

_AS_VERDICT = {
    Decision.WITHIN: Verdict.BETTER,
    Decision.ACCEPTED: Verdict.EQUIVALENT,
    Decision.BEYOND: Verdict.WORSE,
    Decision.UNDECIDED: Verdict.INCONCLUSIVE,
    Decision.NOT_EXECUTED: Verdict.NOT_TESTED,
    Decision.SAME_CODE: Verdict.IDENTICAL,
}
"""A decision has the symbol and the colour of a verdict."""
_DECIDED = (Verdict.BETTER, Verdict.WORSE)
_INSTRUCTIONS = "instructions"
_BY_INSTRUCTIONS = "by instructions counted, not time"
_NAME_COLUMNS = 60
_CONSOLE_LINES = 12
_LEAST_OF_THE_LARGEST = Fraction(1, 100)
"""What is smaller than this part of the largest difference explains nothing: a timer tick more, or less."""


def print_check(check: RegressionCheck, top: int, console: Console, *, whole: bool = False) -> None:
    """A row a metric, what makes the difference where it is beyond, and the answer: 25 lines, or all."""
    screen = Screen(console, whole=whole, more=same_command("-v", without="--summary"))
    modes = _modes(check) if check.rows else ""
    screen.title(f"{check.kernel} ({check.release}) against {_baseline(check)}", modes)
    by_decision = sorted(range(len(check.rows)), key=lambda place: _IMPORTANCE[check.rows[place].decision])
    # Bytes of string instructions are part of the instructions: a row of their own only where they decide.
    shown = [
        place
        for place in by_decision
        if whole or not _is_bytes(check.rows[place]) or _decides(check.rows[place])
    ]
    screen.rows(
        table(_FIELDS, [check.rows[place] for place in sorted(shown)]),
        [sorted(shown).index(place) for place in shown],
        "metric",
    )
    screen.leave_out(len(check.rows) - len(shown), "string-bytes row")
    screen.lines(no_intervals(check.rows), "", least=1)
    screen.lines([f"{_name(row)}: {row.reason}" for row in check.rows if row.reason], "reason", least=1)
    explained = [row for row in check.rows if row.explanation and top]
    screen.lines(list(_nets(explained)), "cause", least=1, heading=_why_heading(explained))
    if whole:
        for row in explained:
            screen.lines(
                list(_cause_lines(row, top)), "function", heading=f"{_cause_title(row)}:", wraps=False
            )
    screen.lines(list(_locking(check)), "lock note", least=1)
    screen.lines(list(_routed(check)), "several-CPU row", least=3)
    screen.lines(_cited(check), "time note")
    if check.console.strip():
        heading = "the guest's console ends with:"
        screen.lines(_console_end(check), "line of its console", least=4, heading=heading, wraps=False)
    warnings = [f"{_kind(warning)}: {warning.text}; {warning.advice}" for warning in check.warnings]
    screen.lines(warnings, "warning", least=2)
    verdict = _AS_VERDICT.get(worst(check.decisions))
    style = VERDICT_STYLES[verdict] if verdict else ""
    followed = [row.regression for row in check.rows if row.regression and row.decision is Decision.BEYOND]
    if whole:
        screen.lines([line(item) for item in followed], "regression", heading="for a pull request or a mail:")
    step = "" if not followed else "ktrial history"
    if len(followed) == 1:
        step = f"ktrial history {followed[0].regression.id}"
    if worst(check.decisions) is Decision.NOT_EXECUTED and check.telling is None:
        step = same_command("--find")
    screen.print(answer(check), next_step=step, style=f"bold {style}".strip())


def _nets(explained: Iterable[CheckedMetric]) -> Iterator[str]:
    for row in explained:
        if row.explanation and row.profiles and not _is_bytes(row):
            yield (
                f"{row.comparison.workload} "
                f"{breakable(net_sentence_of_profiles(row.explanation, row.profiles))}"
            )


def _why_heading(explained: Iterable[CheckedMetric]) -> str:
    return why_heading(followed=all(followed_calls(row.profiles) for row in explained if row.profiles))


def _locking(check: RegressionCheck) -> Iterator[str]:
    """`fork: 41 % of this difference is in functions that lock memory: …`, once a workload; not of those that
    were measured on several CPUs.
    """
    measured = {row.comparison.workload for row in check.on_several.rows} if check.on_several else set()
    shares = {row.comparison.workload: row.locking_share for row in check.rows if not _is_bytes(row)}
    for workload, share in shares.items():
        if workload not in measured and (sentence := locking_sentence(share)):
            yield f"{workload}: {sentence}"


def _routed(check: RegressionCheck) -> Iterator[str]:
    """`open2: one CPU −12.0 %; 4 CPUs 1,050 → 1,449, +38.0 % (+37.1 … +38.9): ✗ beyond`, each metric."""
    several = check.on_several
    if several is None:
        return
    if several.problem:
        yield f"{several.cpus} CPUs: not run: {several.problem}"
    alone = {_name(row): row.comparison for row in check.rows}
    for row in several.rows:
        comparison = row.comparison
        before = alone.get(comparison.workload if not row.secondary else _name(row))
        on_one = f"one CPU {number_format.change(before.ratio)}; " if before else ""
        values = (
            number_format.quantity(value, comparison.unit)
            for value in (comparison.baseline_value, comparison.value)
        )
        ends = interval(comparison.low, comparison.high, comparison.no_interval).text
        better = row.decision is Decision.WITHIN and comparison.verdict is Verdict.BETTER
        decision = verdict_text(Verdict.BETTER) if better else _decision(row.decision).text
        yield (
            f"{_name(row)}: {on_one}{several.cpus} CPUs {' → '.join(values)}, "
            f"{number_format.change(comparison.ratio)} ({ends}): {decision}"
        )


def _baseline(check: RegressionCheck) -> str:
    """`debian:6.1 (6.1.0-56-cloud-amd64)`: its name, and which release and flavour that was."""
    release = check.kernels[0].release if check.kernels else ""
    named = not release or release in check.baseline
    return check.baseline if named else f"{check.baseline} ({release})"


def no_intervals(rows: Sequence[CheckedMetric]) -> list[str]:
    """`one perturbation: no interval`, once, where a row has none."""
    return list(dict.fromkeys(filter(None, (row.comparison.no_interval for row in rows))))


def _decides(row: CheckedMetric) -> bool:
    return row.decision not in _SAYS_NO_MORE


_SAYS_NO_MORE = frozenset({Decision.WITHIN, Decision.NOT_EXECUTED, Decision.SAME_CODE})
"""What bytes of string instructions add nothing to: their workload's first row says the same."""


_IMPORTANCE = {
    Decision.BEYOND: 0,
    Decision.NOT_RUN: 1,
    Decision.UNDECIDED: 2,
    Decision.ACCEPTED: 3,
    Decision.NOT_EXECUTED: 4,
    Decision.SAME_CODE: 5,
    Decision.WITHIN: 6,
}


def _kind(warning: DataWarning) -> str:
    return "note" if warning.is_note else "warning"


def answer(check: RegressionCheck) -> str:
    """The whole check in one sentence; with several CPUs, one for these."""
    several = check.on_several
    if several:
        return f"One CPU: {answer(replace(check, on_several=None))} {several.cpus} CPUs: {answer(several)}"
    total = number_format.counted(len(check.rows), "metric")
    beyond = [row for row in check.rows if row.decision is Decision.BEYOND]
    match check.decision:
        case Decision.NOT_RUN:
            return f"Not run: {check.problem.rstrip('.')}."
        case Decision.BEYOND:
            changes = ", ".join(
                breakable(f"{_name(row)} {number_format.change(row.comparison.ratio)}{_state(row)}")
                for row in beyond
            )
            return f"Beyond the limit: {changes}; {len(beyond)} of {total}, {_basis(check)}."
        case Decision.UNDECIDED:
            names = ", ".join(_name(row) for row in check.rows if row.decision is Decision.UNDECIDED)
            return f"Undecided: {names}: a larger --max, or more --perturbations, may decide."
        case Decision.ACCEPTED:
            accepted = [row for row in check.rows if row.decision is Decision.ACCEPTED]
            changes = ", ".join(
                breakable(f"{_name(row)} {number_format.change(row.comparison.ratio)}") for row in accepted
            )
            return f"Within what was accepted: {changes}; {len(accepted)} of {total}, {_basis(check)}."
        case Decision.NOT_EXECUTED:
            return f"Not executed: {_not_executed(check)}: nothing is known of what it costs{_found(check)}."
        case Decision.SAME_CODE:
            return "Same code: the two kernels have the same functions and data: nothing is there to compare."
        case _:
            executed = [row for row in check.rows if row.decision is not Decision.NOT_EXECUTED]
            counted = number_format.counted(len(executed), "metric")
            control = f"; not executed: {_not_executed(check)}" if len(executed) < len(check.rows) else ""
            return f"Within the limit: {counted}, {_basis(check)}{control}."


def _found(check: RegressionCheck) -> str:
    """`; fork and exec run it`: what --find has found."""
    if check.telling is None:
        return ""
    return f"; it runs in {listed(check.telling)}" if check.telling else "; no built-in workload runs it"


def _not_executed(check: RegressionCheck) -> str:
    """`none of the 3 functions that differ (a, b, c) ran in fork and pipe`."""
    names = dict.fromkeys(
        row.comparison.workload for row in check.rows if row.decision is Decision.NOT_EXECUTED
    )
    workloads = listed(list(names))
    if check.reach is None:
        return f"no function that differs ran in {workloads}"
    count, some = check.reach.functions, check.reach.named
    more = ", …" if count > len(some) else ""
    functions = breakable(f"{', '.join(some)}{more}")
    if count == 1:
        return f"the function that differs ({functions}) did not run in {workloads}"
    return f"none of the {count} functions that differ ({functions}) ran in {workloads}"


def _state(row: CheckedMetric) -> str:
    """` (came back)`: what is known of the regression."""
    return f" ({row.regression.state.value})" if row.regression else ""


def _basis(check: RegressionCheck) -> str:
    """What was compared: instructions, or what programs told by the guest's clock."""
    if check.cpus > 1:
        return "in simulated time, where an instruction takes 1 ns"
    told = [_is_told(row) for row in check.rows]
    clock = "by the guest's clock, where an instruction takes 1 ns"
    if all(told):
        return clock
    return f"rates and times {clock}, the others by instructions" if any(told) else _BY_INSTRUCTIONS


def as_markdown(check: RegressionCheck, top: int) -> str:
    """GitHub-flavoured Markdown, with a line feed at its end."""
    parts = [
        f"### ktrial check: {_decision(worst(check.decisions)).text}",
        f"{code(check.kernel)} ({prose(check.release)}) against {code(check.baseline)}",
        f"**{prose(answer(check))}**",
        *(f"{_kind(warning)}: {prose(warning.text)}; {prose(warning.advice)}" for warning in check.warnings),
        grid(table(_FIELDS, check.rows)) if check.rows else "",
        *(_markdown_causes(row, row.explanation, top) for row in check.rows if row.explanation and top),
        *(prose(line(row.regression)) for row in check.rows if row.regression),
        *(prose(sentence) for sentence in (*_locking(check), *_routed(check))),
        *(prose(citation) for citation in _cited(check)),
        block("\n".join(_console_end(check))) if check.console.strip() else "",
        prose(_modes(check)) if check.rows else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def as_json(check: RegressionCheck) -> dict[str, Any]:
    """What `check --json` prints; docs/check.md names every field."""
    return {
        "kernel": check.kernel,
        "release": check.release,
        "baseline": check.baseline,
        "decision": worst(check.decisions).value,
        "answer": breakable(answer(check)),
        "problem": check.problem,
        "console": check.console,
        "warnings": [warning.model_dump(mode="json") for warning in check.warnings],
        "reach": check.reach.model_dump(mode="json") if check.reach else None,
        "telling": list(check.telling) if check.telling is not None else None,
        "rows": [_row_as_json(row, check) for row in check.rows],
        **({"on_several": as_json(check.on_several)} if check.on_several else {}),
        **({"cpus": check.cpus} if check.cpus > 1 else {}),
    }


def _cited(check: RegressionCheck) -> list[str]:
    """Of each change that is decided, how often such changes were changes of time."""
    decided = [row for row in check.rows if row.comparison.verdict in _DECIDED]
    sentences = ((_name(row), cited(_fidelity(row, check), row.comparison.unit)) for row in decided)
    return [f"{name}: {sentence}" for name, sentence in sentences if sentence]


def _fidelity(row: CheckedMetric, check: RegressionCheck) -> FidelityCitation | None:
    """What is known of changes of the row's size; counts are called as fidelity calls them."""
    comparison = row.comparison
    return cite(
        check.fidelity,
        comparison.unit if comparison.unit == _INSTRUCTIONS else comparison.metric,
        comparison.ratio,
    )


def _row_as_json(row: CheckedMetric, check: RegressionCheck) -> dict[str, Any]:
    return {
        **row.comparison.model_dump(mode="json"),
        "limit": row.limit,
        "decision": row.decision.value,
        "reason": row.reason or row.comparison.reason,
        "regression": regression_as_json(row.regression) if row.regression else None,
        "explanation": explanation_as_json(row.explanation) if row.explanation else None,
        "locking_share": row.locking_share,
        "fidelity": citation_as_json(_fidelity(row, check)),
    }


def _modes(check: RegressionCheck) -> str:
    modes = dict.fromkeys(MODE_NAMES[row.comparison.mode] for row in check.rows)
    return "; ".join(["only changes for the worse are limited", *modes])


def _decision(decision: Decision) -> Cell:
    verdict = _AS_VERDICT.get(decision)
    symbol = VERDICTS[verdict].symbol if verdict else number_format.NONE
    text = f"{symbol} {decision.value.replace('-', ' ')}"
    return Cell(decision, text, Kind.VERDICT, verdict)


def _name(row: CheckedMetric) -> str:
    comparison = row.comparison
    return (
        f"{comparison.workload} {comparison.metric}"
        if row.secondary or _is_told(row)
        else comparison.workload
    )


def _is_told(row: CheckedMetric) -> bool:
    """Whether it is a time or a rate that the program found out by itself."""
    return is_by_clock(row.comparison.unit)


def _cause_lines(row: CheckedMetric, top: int) -> Iterator[str]:
    if row.explanation:
        for cause in _causes(row, row.explanation, top):
            function = shortened(cause.function, _NAME_COLUMNS)
            yield f"  {cause.difference:>12}  {cause.share:>6}  {function}"


class _Cause(NamedTuple):
    """One function's part in a difference."""

    function: str
    difference: str
    share: str


def _cause_title(row: CheckedMetric) -> str:
    counted = "bytes of string instructions" if _is_bytes(row) else "instructions"
    return (
        f"{row.comparison.workload}: what the difference is made of, in {counted} per operation under the "
        "first perturbation, each function's own code"
    )


def _causes(row: CheckedMetric, explanation: Explanation, top: int) -> list[_Cause]:
    """The heaviest functions: of the bytes where the row is about them, else of all that weighs."""
    if _is_bytes(row):
        parts = [(part, explanation.byte_difference(part)) for part in explanation.byte_rows]
        total = explanation.byte_total
    else:
        parts = [(part, explanation.difference(part)) for part in explanation.rows]
        total = explanation.total
    least = max((abs(difference) for _, difference in parts), default=0) * _LEAST_OF_THE_LARGEST
    telling = [(part, difference) for part, difference in parts if abs(difference) > least]
    return [_cause(part, difference, total) for part, difference in telling[:top]]


def _cause(part: Part, difference: Fraction, total: Fraction) -> _Cause:
    share = f"{float(difference / total) * 100:.0f} %" if total else number_format.NONE
    signed = number_format.signed(float(difference))
    return _Cause(part.name, signed, share.replace("-", number_format.MINUS))


def _is_bytes(row: CheckedMetric) -> bool:
    return row.comparison.metric == STRING_BYTES.name


def _markdown_causes(row: CheckedMetric, explanation: Explanation, top: int) -> str:
    causes = table(_CAUSE_FIELDS, _causes(row, explanation, top))
    return f"{prose(_cause_title(row))}:\n\n{grid(causes)}"


def _console_end(check: RegressionCheck) -> list[str]:
    return lines_of(printable(check.console).rstrip())[-_CONSOLE_LINES:]


_FIELDS: tuple[Field[CheckedMetric], ...] = (
    Field(Column("workload", "workload", wraps=True), lambda row: name(_name(row))),
    Field(
        Column("baseline", "baseline", numeric=True),
        lambda row: quantity(row.comparison.baseline_value, row.comparison.unit),
    ),
    Field(
        Column("kernel", "kernel", numeric=True),
        lambda row: quantity(row.comparison.value, row.comparison.unit),
    ),
    Field(Column("change", "change", numeric=True), lambda row: change(row.comparison.ratio)),
    Field(
        Column("interval", "interval", "%", numeric=True),
        lambda row: interval(row.comparison.low, row.comparison.high, row.comparison.no_interval),
    ),
    Field(
        Column("limit", "limit", numeric=True),
        lambda row: Cell(row.limit, f"+{number_format.percentage(row.limit)}"),
    ),
    Field(Column("verdict", "verdict"), lambda row: _decision(row.decision)),
)
_CAUSE_FIELDS: tuple[Field[_Cause], ...] = (
    Field(Column("function", "function"), lambda cause: Cell(cause.function, cause.function, Kind.CODE)),
    Field(Column("difference", "difference", numeric=True), lambda cause: own(cause.difference)),
    Field(Column("share", "share", numeric=True), lambda cause: own(cause.share)),
)


# What looks at followed kernels say: in a sentence, as Markdown, and as JSON.


def sentence(look: TargetLook) -> str:
    """One target, in one line."""
    match look.news:
        case News.FIRST:
            return f"{look.target}: first look, {look.kernel}: nothing to compare with yet."
        case News.UNCHANGED:
            return f"{look.target}: nothing new, still {look.kernel}."
        case News.NOT_HAD:
            return f"{look.target}: not to be had: {look.problem.rstrip('.')}."
        case _:
            verdict = answer(look.check) if look.check else f"Not compared: {look.problem}."
            return f"{look.target}: {look.kernel} after {look.before}: {verdict}"


def commits_as_text(commits: CommitsBetween, top: int) -> str:
    """What the commits between two looks cost, or why nobody knows."""
    if commits.result is None:
        return f"The commits between were not measured: {one_line(commits.problem)}.\n"
    return commits_report.as_text(commits.result, commits.command, top)


def looks_as_markdown(looks: Sequence[TargetLook], top: int, between: Mapping[str, CommitsBetween]) -> str:
    """GitHub-flavoured Markdown: a list, then a part for each new kernel."""
    lines = [f"- {code(look.target)}: {prose(sentence(look).partition(': ')[2])}" for look in looks]
    parts = [f"## ktrial watch: {worst(look.decision for look in looks).value}", "\n".join(lines)]
    for look in looks:
        if look.check:
            parts.append(as_markdown(look.check, top).rstrip("\n"))
        if look.target in between:
            parts.append(_commits_as_markdown(between[look.target], top).rstrip("\n"))
    return "\n\n".join(parts) + "\n"


def _commits_as_markdown(commits: CommitsBetween, top: int) -> str:
    if commits.result is None:
        return prose(commits_as_text(commits, top))
    return patch_series_page.as_markdown(commits.result, commits.command, top)


def looks_as_json(looks: Sequence[TargetLook], between: Mapping[str, CommitsBetween]) -> dict[str, Any]:
    """What `watch --json` prints; docs/history.md names every field."""
    return {
        "decision": worst(look.decision for look in looks).value,
        "targets": [
            {
                "target": look.target,
                "news": look.news.value,
                "kernel": look.kernel,
                "before": look.before,
                "decision": look.decision.value,
                "problem": look.problem,
                "check": as_json(look.check) if look.check else None,
                "commits": _commits_as_json(between.get(look.target)),
            }
            for look in looks
        ],
    }


def _commits_as_json(commits: CommitsBetween | None) -> dict[str, Any] | None:
    if commits is None:
        return None
    result = series.as_json(commits.result, commits.command) if commits.result else None
    return {"command": commits.command, "problem": commits.problem, "series": result}
