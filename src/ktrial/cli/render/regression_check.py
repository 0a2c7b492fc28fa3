"""What a check says: on the terminal, as Markdown for a pull request, and as JSON."""

from fractions import Fraction
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ktrial.cli.console import breakable
from ktrial.cli.render.profile_json import explanation_as_json
from ktrial.experiment.regression_check import Check, Decision, Row
from ktrial.format import number_format
from ktrial.format.labels import MODE_NAMES
from ktrial.format.sanitize import one_line, printable, shortened
from ktrial.model.attribution import Explanation
from ktrial.model.attribution import Row as Part
from ktrial.model.workload import STRING_BYTES
from ktrial.report.markdown.markup import block, code, prose

_SYMBOLS = {
    Decision.WITHIN: "✓ within",
    Decision.BEYOND: "✗ beyond",
    Decision.UNDECIDED: "? undecided",
    Decision.NOT_RUN: "– not run",
}
_STYLES = {Decision.WITHIN: "green", Decision.BEYOND: "red", Decision.UNDECIDED: "yellow"}
_NAME_COLUMNS = 60
_CONSOLE_LINES = 12
_LEAST_OF_THE_LARGEST = Fraction(1, 100)
"""What is smaller than this part of the largest difference explains nothing: a timer tick more, or less."""


def print_check(check: Check, top: int, console: Console) -> None:
    """A line a metric, what makes the difference where it is beyond, and the answer."""
    console.print(Text(one_line(f"{check.kernel} ({check.release}) against {check.baseline}"), style="bold"))
    if check.rows:
        console.print(Text(_what(check), style="dim"))
        console.print()
        console.print(_table(check))
    for row in check.rows:
        _print_reason(row, top, console)
    console.print()
    if check.console.strip():
        console.print("the guest's console ends with:")
        for line in _console_end(check):
            console.print(f"  {line}")
    style = _STYLES.get(check.decision, "")
    console.print(Text(one_line(answer(check)), style=f"bold {style}".strip()))


def answer(check: Check) -> str:
    """The whole check in one sentence."""
    total = number_format.counted(len(check.rows), "metric")
    beyond = [row for row in check.rows if row.decision is Decision.BEYOND]
    match check.decision:
        case Decision.NOT_RUN:
            return f"Not run: {check.problem.rstrip('.')}."
        case Decision.BEYOND:
            changes = ", ".join(f"{_name(row)} {_change(row)}" for row in beyond)
            return (
                f"Beyond the limit: {changes}; {len(beyond)} of {total}, by instructions counted, not time."
            )
        case Decision.UNDECIDED:
            names = ", ".join(_name(row) for row in check.rows if row.decision is Decision.UNDECIDED)
            return f"Undecided: {names}: a larger --max, or more --perturbations, may decide."
        case _:
            return f"Within the limit: {total}, by instructions counted, not time."


def as_markdown(check: Check, top: int) -> str:
    """GitHub-flavoured Markdown, with a line feed at its end."""
    parts = [
        f"### ktrial check: {_SYMBOLS[check.decision]}",
        f"{code(check.kernel)} ({prose(check.release)}) against {code(check.baseline)}",
        f"**{prose(answer(check))}**",
        _markdown_table(check) if check.rows else "",
        *(_markdown_causes(row, row.explanation, top) for row in check.rows if row.explanation and top),
        block("\n".join(_console_end(check))) if check.console.strip() else "",
        prose(_what(check)) if check.rows else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def as_json(check: Check) -> dict[str, Any]:
    """What `check --json` prints; docs/check.md names every field."""
    return {
        "kernel": check.kernel,
        "release": check.release,
        "baseline": check.baseline,
        "decision": check.decision.value,
        "answer": breakable(answer(check)),
        "problem": check.problem,
        "console": check.console,
        "rows": [_row_as_json(row) for row in check.rows],
    }


def _row_as_json(row: Row) -> dict[str, Any]:
    return {
        **row.comparison.model_dump(mode="json"),
        "limit": row.limit,
        "decision": row.decision.value,
        "reason": row.reason or row.comparison.reason,
        "explanation": explanation_as_json(row.explanation) if row.explanation else None,
    }


def _what(check: Check) -> str:
    modes = dict.fromkeys(MODE_NAMES[row.comparison.mode] for row in check.rows)
    return "; ".join(["only changes for the worse are limited", *modes])


def _table(check: Check) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("workload", overflow="fold")
    for heading in ("baseline", "kernel", "change", "interval, %", "limit"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in check.rows:
        verdict = Text(_SYMBOLS[row.decision], style=_STYLES[row.decision])
        table.add_row(*_cells(row), verdict)
    return table


def _cells(row: Row) -> tuple[str, ...]:
    one = row.comparison
    return (
        shortened(_name(row), _NAME_COLUMNS),
        number_format.number(one.baseline_value),
        number_format.number(one.value),
        _change(row),
        number_format.interval(one.low, one.high),
        f"+{breakable(number_format.percentage(row.limit))}",
    )


def _name(row: Row) -> str:
    one = row.comparison
    return f"{one.workload} {one.metric}" if row.secondary else one.workload


def _change(row: Row) -> str:
    return breakable(number_format.change(row.comparison.ratio))


def _print_reason(row: Row, top: int, console: Console) -> None:
    if row.reason:
        console.print(one_line(f"{_name(row)}: {row.reason}"))
    if row.explanation and top:
        console.print()
        console.print(f"{_cause_title(row)}:")
        for cause in _causes(row, row.explanation, top):
            name = shortened(cause.function, _NAME_COLUMNS)
            console.print(f"  {cause.difference:>12}  {cause.share:>6}  {name}")


class _Cause(NamedTuple):
    """One function's part in a difference."""

    function: str
    difference: str
    share: str


def _cause_title(row: Row) -> str:
    counted = "bytes of string instructions" if _is_bytes(row) else "instructions"
    return f"{row.comparison.workload}: what the difference is made of, in {counted} an operation"


def _causes(row: Row, explanation: Explanation, top: int) -> list[_Cause]:
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
    number = number_format.number(float(difference))
    share = (
        f"{float(difference / total) * 100:.0f}".replace("-", number_format.MINUS)
        if total
        else number_format.NONE
    )
    return _Cause(part.name, f"+{number}" if difference > 0 else number, f"{share} %" if total else share)


def _is_bytes(row: Row) -> bool:
    return row.comparison.metric == STRING_BYTES.name


def _markdown_table(check: Check) -> str:
    header = ["Workload", "Verdict", "Baseline", "Kernel", "Change", "Interval in %", "Limit"]
    lines = [header, ["---", "---", *["--:"] * 5]]
    for row in check.rows:
        name, *numbers = _cells(row)
        lines.append([code(name).replace("|", "\\|"), _SYMBOLS[row.decision], *numbers])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _markdown_causes(row: Row, explanation: Explanation, top: int) -> str:
    lines = ["| Function | Difference | Share |", "| --- | --: | --: |"]
    for cause in _causes(row, explanation, top):
        lines.append(f"| {code(cause.function)} | {cause.difference} | {cause.share} |")
    return f"{prose(_cause_title(row))}:\n\n" + "\n".join(lines)


def _console_end(check: Check) -> list[str]:
    return printable(check.console).rstrip().splitlines()[-_CONSOLE_LINES:]
