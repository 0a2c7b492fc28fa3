"""Explanations as tables for the terminal: functions, subsystems, and whether they add up."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from ktrial.cli.console import breakable
from ktrial.cli.render.table import rendered
from ktrial.format import number_format
from ktrial.format.sanitize import one_line, shortened
from ktrial.model.attribution import Explanation, FunctionDifference, Match
from ktrial.report.tables import attribution as tables
from ktrial.report.tables.call_tree import MEANING, of_tree
from ktrial.report.text.call_tree import CallTree

_LABEL_COLUMNS = 24
_UNIT = "instructions per operation, counted, not time; a string instruction counts once"
_COUNTED_ANEW = "The stored trials were not counted by function: {} were counted anew for this."
_MOST_EVIDENCE = 5
_SMALLEST = 0.5
"""A difference that is shown as 0 by the table of subsystems is left out of it."""


def print_explanation(
    explanation: Explanation,
    top: int | None,
    console: Console,
    *,
    counted_anew: Sequence[str] = (),
    tree: CallTree | None = None,
) -> None:
    """The net differences along the tree of calls, where that is known; the functions with the largest
    differences of their own, the rest, the sum; then the same by subsystem.

    `top` None: all of them. `counted_anew`: treatments whose stored trials had no counts by function.
    """
    console.print(Text(one_line(_headline(explanation)), style="bold"), soft_wrap=True)
    console.print(Text(_UNIT, style="dim"))
    if counted_anew:
        console.print(one_line(_COUNTED_ANEW.format(" and ".join(counted_anew))))
    console.print()
    if tree:
        _print_tree(tree, explanation, console)
    shown = [row for row in explanation.rows if explanation.weight(row)][:top]
    functions = tables.of_explanation(explanation, shown, side_headings(explanation))
    console.print(rendered(functions))
    console.print()
    if any(abs(part) >= _SMALLEST for part in explanation.subsystems.values()):
        console.print(rendered(tables.of_subsystems(explanation, _SMALLEST)))
        console.print()
    for line in _closing(explanation, shown):
        console.print(line)


def _print_tree(tree: CallTree, explanation: Explanation, console: Console) -> None:
    console.print(rendered(of_tree(tree, side_headings(explanation))))
    console.print(Text(MEANING, style="dim"))
    console.print()
    gross, net = number_format.number(tree.gross), number_format.signed(float(explanation.total))
    title = f"by function, without what it calls (without their signs {gross} for a difference of {net})"
    console.print(Text(breakable(title), style="bold"))


def side_headings(explanation: Explanation) -> tuple[str, str]:
    """The two labels without the words that both begin with, as headings of columns."""
    old, new = explanation.before.label.split(), explanation.after.label.split()
    while old[1:] and new[1:] and old[0] == new[0]:
        old, new = old[1:], new[1:]
    return shortened(" ".join(old), _LABEL_COLUMNS), shortened(" ".join(new), _LABEL_COLUMNS)


def _headline(explanation: Explanation) -> str:
    before, after = explanation.before, explanation.after
    change = breakable(number_format.change(after.mean / before.mean))
    total = number_format.signed(float(explanation.total))
    pair = f"{before.label} → {after.label}"
    return f"{explanation.workload}: {pair}: {total} instructions an operation ({change})"


def _closing(explanation: Explanation, shown: Iterable[FunctionDifference]) -> Iterable[str]:
    before, after = explanation.before, explanation.after
    total, left = float(explanation.total), float(explanation.unexplained)
    means = f"{number_format.number(before.mean)} → {number_format.number(after.mean)}"
    medians = f"{number_format.number(before.median)} → {number_format.number(after.median)}"
    yield f"Measured: {means}, the mean over the operations; the median is {medians}."
    unexplained = number_format.number(left)
    explained, whole = number_format.signed(total - left), number_format.signed(total)
    yield f"The rows sum to {explained} of {whole}; unexplained: {unexplained}."
    yield from _bytes(explanation)
    matches = {row.match for row in shown}
    if matches & {Match.ONLY_FROM, Match.ONLY_TO}:
        yield (
            f"{number_format.NONE}: the function did not run there: it is not there, inlined, or not called."
        )
    yield from _evidence(shown)


def _evidence(shown: Iterable[FunctionDifference]) -> Iterable[str]:
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
