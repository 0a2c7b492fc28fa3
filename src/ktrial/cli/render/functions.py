"""Explanations as tables for the terminal: functions, subsystems, and whether they add up."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ktrial.cli.console import breakable
from ktrial.format import number_format
from ktrial.format.sanitize import one_line, shortened
from ktrial.model.attribution import Count, Explanation, Match, Row, Side

_NAME_COLUMNS = 60
_LABEL_COLUMNS = 24
_UNIT = "instructions per operation, counted, not time; a string instruction counts once"
_COUNTED_ANEW = "The stored trials were not counted by function: {} were counted anew for this."
_MOST_EVIDENCE = 5
_SMALLEST = 0.5
"""A difference that is shown as 0 by the table of subsystems is left out of it."""


def print_explanation(
    explanation: Explanation, top: int | None, console: Console, *, counted_anew: Sequence[str] = ()
) -> None:
    """The functions with the largest differences, the rest, the sum; then the same by subsystem.

    `top` None: all of them. `counted_anew`: treatments whose stored trials had no counts by function.
    """
    console.print(Text(one_line(_headline(explanation)), style="bold"), soft_wrap=True)
    console.print(Text(_UNIT, style="dim"))
    if counted_anew:
        console.print(one_line(_COUNTED_ANEW.format(" and ".join(counted_anew))))
    console.print()
    shown = [row for row in explanation.rows if explanation.weight(row)][:top]
    console.print(_functions(explanation, shown))
    console.print()
    if any(abs(part) >= _SMALLEST for part in explanation.subsystems.values()):
        console.print(_subsystems(explanation))
        console.print()
    for line in _closing(explanation, shown):
        console.print(line)


def _functions(explanation: Explanation, shown: Sequence[Row]) -> Table:
    """The rows, what is left of them, and the sum; bytes only where string instructions differ."""
    before, after = explanation.before, explanation.after
    headings = [*short_labels(explanation), "difference", "share, %"]
    bytes_too = bool(explanation.byte_rows)
    table = _table("function", *headings, *(["bytes"] if bytes_too else []))
    rest = [row for row in explanation.rows if row not in shown]

    def add(name: str, rows: Sequence[Row], values: Iterable[str], style: str = "") -> None:
        moved = _bytes_of(explanation, rows) if bytes_too else ()
        table.add_row(name, *values, *moved, style=style)

    for row in shown:
        values = (_value(row.before, before), _value(row.after, after))
        part = _part(explanation, explanation.difference(row))
        add(shortened(row.name, _NAME_COLUMNS), (row,), (*values, *part))
    add(breakable(number_format.counted(len(rest), "other row")), rest, _together(explanation, rest))
    add("the sum", explanation.rows, _together(explanation, explanation.rows), "bold")
    return table


def short_labels(explanation: Explanation) -> tuple[str, str]:
    """The two labels without the words that both begin with, as headings of columns."""
    old, new = explanation.before.label.split(), explanation.after.label.split()
    while old[1:] and new[1:] and old[0] == new[0]:
        old, new = old[1:], new[1:]
    return shortened(" ".join(old), _LABEL_COLUMNS), shortened(" ".join(new), _LABEL_COLUMNS)


def _bytes_of(explanation: Explanation, rows: Iterable[Row]) -> tuple[str]:
    moved = sum((explanation.byte_difference(row) for row in rows), Fraction(0))
    return (_signed(float(moved)) if moved else "",)


def _headline(explanation: Explanation) -> str:
    before, after = explanation.before, explanation.after
    change = breakable(number_format.change(after.mean / before.mean))
    total = _signed(float(explanation.total))
    pair = f"{before.label} → {after.label}"
    return f"{explanation.workload}: {pair}: {total} instructions an operation ({change})"


def _value(count: Count, side: Side) -> str:
    return number_format.number(count.instructions / side.operations if count.names else None)


def _part(explanation: Explanation, part: Fraction) -> tuple[str, str]:
    share = explanation.share(part)
    return _signed(float(part)), number_format.NONE if share is None else _percent(share)


def _percent(share: float) -> str:
    text = f"{share * 100:.1f}"
    return "0.0" if text == "-0.0" else text.replace("-", number_format.MINUS)


def _together(explanation: Explanation, rows: Sequence[Row]) -> tuple[str, ...]:
    before = sum(row.before.instructions for row in rows) / explanation.before.operations
    after = sum(row.after.instructions for row in rows) / explanation.after.operations
    part = sum((explanation.difference(row) for row in rows), Fraction(0))
    return (number_format.number(before), number_format.number(after), *_part(explanation, part))


def _subsystems(explanation: Explanation) -> Table:
    table = _table("subsystem", "difference", "share, %")
    for name, part in explanation.subsystems.items():
        if abs(part) >= _SMALLEST:
            table.add_row(name, *_part(explanation, part))
    return table


def _closing(explanation: Explanation, shown: Iterable[Row]) -> Iterable[str]:
    before, after = explanation.before, explanation.after
    total, left = float(explanation.total), float(explanation.unexplained)
    means = f"{number_format.number(before.mean)} → {number_format.number(after.mean)}"
    medians = f"{number_format.number(before.median)} → {number_format.number(after.median)}"
    yield f"Measured: {means}, the mean over the operations; the median is {medians}."
    unexplained = number_format.number(left)
    yield f"The rows sum to {_signed(total - left)} of {_signed(total)}; unexplained: {unexplained}."
    yield from _bytes(explanation)
    matches = {row.match for row in shown}
    if matches & {Match.ONLY_FROM, Match.ONLY_TO}:
        yield (
            f"{number_format.NONE}: the function did not run there: it is not there, inlined, or not called."
        )
    yield from _evidence(shown)


def _evidence(shown: Iterable[Row]) -> Iterable[str]:
    """Why rows with an arrow are taken for one function."""
    named = [row for row in shown if row.match is Match.RENAMED]
    placed = [row for row in shown if row.match in {Match.PLACED, Match.MERGED, Match.SPLIT}]
    if named:
        yield "old → new: taken for one function, by their names."
    if placed:
        yield "Taken for one function, by their place in the tree of calls:"
        yield from (f"  {one_line(row.name)}: {one_line(row.evidence)}" for row in placed[:_MOST_EVIDENCE])
    if len(placed) > _MOST_EVIDENCE:
        yield f"  and {len(placed) - _MOST_EVIDENCE} more; --json has the evidence for all."


def _bytes(explanation: Explanation) -> Iterable[str]:
    before, after = explanation.before, explanation.after
    sizes = [number_format.number(side.string_bytes / side.operations) for side in (before, after)]
    yield f"String instructions worked on {sizes[0]} → {sizes[1]} bytes an operation."
    if explanation.byte_rows:
        yield "bytes: what they worked on more; rows are ranked by instructions and bytes, 32 bytes as one."
        yield "Shares are of the instructions alone."


def _signed(value: float) -> str:
    text = number_format.number(value)
    return f"+{text}" if value > 0 and text != "0" else text


def _table(name: str, *numbers: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column(name, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table
