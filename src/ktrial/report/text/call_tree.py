"""A difference along the tree of calls: net, with all that a function calls. What cancels below is one row.

A function that is rewritten, split or inlined moves instructions between itself, its callers and what it
calls: by function these are many large rows that cancel. Here the trees of both kernels are laid on each
other, and a row is the difference of everything below one place in them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from ktrial.model.attribution import Explanation
from ktrial.model.profile import Profile
from ktrial.report.charts.call_stacks import Stacks, aligned, stacks_of_both

MOST = 20
"""Rows at most."""
_SMALLEST = 0.01
_SMALLEST_OF_ALL = 0.001
"""Of the whole difference, and of all that the second runs: what is smaller, with all that it calls, has no
row."""
_NAMED = 2
"""Functions that a row names of those that stand in one place."""
_COARSER = 1.25
_CANCELS = 1.5
"""Where parts without their signs are more than that of their sum, they cancel and are one."""


class NetRow(NamedTuple):
    """One place in the tree of calls. Numbers are instructions an operation, of all below it."""

    functions: tuple[str, ...]
    """The function, the innermost last; before it those that call it and do nothing else that differs."""
    depth: int
    """How many rows stand above it, each of which calls the next."""
    before: float | None
    """None where it was not called there."""
    after: float | None
    difference: float
    share: float | None
    """Of the whole difference; None where there is none."""
    rest: float
    """The part of the difference that no row below it has: its own, and what is too small or cancels."""


class LaidStacks(NamedTuple):
    """The stacks of two profiles, those of the first with the functions in them that only the second runs."""

    old: Stacks
    new: Stacks
    in_old: frozenset[str]
    """The functions that the first runs."""


class CallTree(NamedTuple):
    """The rows, callers first: `rest` of all of them, and what no row has, sum to the difference."""

    rows: tuple[NetRow, ...]
    before: float
    after: float
    gross: float
    """The differences by function, without their signs."""
    rest: float
    """What no row has."""


@dataclass
class _Node:
    name: str = ""
    own: list[int] = field(default_factory=lambda: [0, 0])
    """Instructions of the function itself, in the first and the second."""
    below: list[int] = field(default_factory=lambda: [0, 0])
    """The same with all that it calls."""
    ran: list[bool] = field(default_factory=lambda: [False, False])
    known: list[bool] = field(default_factory=lambda: [True, True])
    """Whether each of the two runs it anywhere: the first's stacks are laid on what only the second runs."""
    calls: "dict[str, _Node]" = field(default_factory=dict)
    joined: bool = False
    """It stands for several functions."""

    @property
    def net(self) -> int:
        return self.below[1] - self.below[0]

    @property
    def sides(self) -> tuple[bool, bool]:
        """Whether it is called at this place in each."""
        return self.ran[0] and self.known[0], self.ran[1] and self.known[1]


def call_tree(before: Profile, after: Profile, explanation: Explanation, most: int = MOST) -> CallTree | None:
    """The net differences, the heaviest first among those that one function calls; at most so many.

    None where calls were not followed, or nothing differs.
    """
    if before.region.nodes is None or after.region.nodes is None:
        return None
    return tree_of_stacks(laid_stacks(before, after, explanation), explanation, most)


def laid_stacks(before: Profile, after: Profile, explanation: Explanation) -> LaidStacks:
    """The stacks of both, those of the first laid on the second's."""
    old, new = stacks_of_both(before, after, explanation)
    return LaidStacks(aligned(old, new), new, frozenset(name for stack in old for name in stack))


def tree_of_stacks(laid: LaidStacks, explanation: Explanation, most: int = MOST) -> CallTree | None:
    """The same of stacks that were laid on each other before."""
    if not explanation.total:
        return None
    unit = explanation.before.operations * explanation.after.operations
    root = _tree(laid, unit)
    smallest = max(abs(root.net) * _SMALLEST, root.below[1] * _SMALLEST_OF_ALL)
    _join(root, smallest)
    while len(rows := tuple(_below(root, 0, smallest, unit, root.net))) > most:
        smallest *= _COARSER
    top = sum(one.net for one in _shown(root, smallest))
    gross = sum((abs(explanation.difference(row)) for row in explanation.rows), Fraction(0))
    means = (explanation.before.mean, explanation.after.mean)
    return CallTree(rows, *means, float(gross), (root.net - top) / unit)


def _tree(laid: LaidStacks, unit: int) -> _Node:
    """With all counts in instructions of `unit` operations, which are whole numbers."""
    root = _Node()
    functions = (laid.in_old, frozenset(name for stack in laid.new for name in stack))
    for side, counted in enumerate((laid.old, laid.new)):
        for stack, instructions in counted.items():
            count = instructions.numerator * (unit // instructions.denominator)
            node = root
            for name in stack:
                node.below[side] += count
                called = node.calls.get(name)
                if called is None:
                    called = node.calls[name] = _Node(name, known=[name in one for one in functions])
                node = called
                node.ran[side] = True
            node.below[side] += count
            node.own[side] += count
    return root


def _join(node: _Node, smallest: float) -> None:
    """Take together what one caller calls in the first only and what it calls in the second only, where these
    cancel: the one is there in place of the other. What both call below is then laid on each other.
    """
    large = [one for one in node.calls.values() if abs(one.net) >= smallest]
    gone = [one for one in large if one.sides == (True, False)]
    come = [one for one in large if one.sides == (False, True)]
    if gone and come and _cancel((*gone, *come)) and not node.joined:
        joined = _Node(f"{_names(gone)} → {_names(come)}", ran=[True, True], joined=True)
        for one in (*gone, *come):
            del node.calls[one.name]
            _add(joined, one)
        node.calls[joined.name] = joined
    for one in node.calls.values():
        _join(one, smallest)


def _cancel(nodes: Sequence[_Node], own: int = 0) -> bool:
    """Whether the parts of these, and this one, are together much less than each by itself."""
    net = own + sum(one.net for one in nodes)
    gross = abs(own) + sum(abs(one.net) for one in nodes)
    return gross > _CANCELS * abs(net)


def _names(nodes: Sequence[_Node]) -> str:
    """The heaviest two."""
    ranked = sorted(nodes, key=lambda one: (-abs(one.net), one.name))
    return " + ".join(one.name for one in ranked[:_NAMED])


def _add(node: _Node, other: _Node) -> None:
    """Add what the other has, and all below it, by name."""
    for side in (0, 1):
        node.own[side] += other.own[side]
        node.below[side] += other.below[side]
    for name, one in other.calls.items():
        if name not in node.calls:
            node.calls[name] = one
        else:
            _add(node.calls[name], one)
            node.calls[name].ran = [any(pair) for pair in zip(node.calls[name].ran, one.ran, strict=True)]


def _below(node: _Node, depth: int, smallest: float, unit: int, whole: int) -> Iterator[NetRow]:
    for one in _shown(node, smallest):
        chain, inner = _chain(one, smallest)
        rest = one.net - sum(each.net for each in _shown(inner, smallest))
        yield NetRow(
            functions=chain,
            depth=depth,
            before=inner.below[0] / unit if inner.ran[0] else None,
            after=inner.below[1] / unit if inner.ran[1] else None,
            difference=inner.net / unit,
            share=inner.net / whole if whole else None,
            rest=rest / unit,
        )
        yield from _below(inner, depth + 1, smallest, unit, whole)


def _chain(node: _Node, smallest: float) -> tuple[tuple[str, ...], _Node]:
    """As long as a function only calls the next, as far as differences go: all of these are one row."""
    names = [node.name]
    while len(shown := _shown(node, smallest)) == 1 and abs(node.net - shown[0].net) < smallest:
        node = shown[0]
        names.append(node.name)
    return tuple(names), node


def _shown(node: _Node, smallest: float) -> Sequence[_Node]:
    """What it calls and has a row: large by itself, and nothing that only takes the place of something else.

    What only one of the two calls here, and the function's own part (into which callees are inlined), are
    taken together: where they cancel they are left to the function's rest.
    """
    both = [one for one in node.calls.values() if all(one.sides)]
    alone = [one for one in node.calls.values() if not all(one.sides)]
    own = node.own[1] - node.own[0]
    every = both if _cancel(alone, own) and not node.joined else both + alone
    large = [one for one in every if abs(one.net) >= smallest]
    return sorted(large, key=lambda one: (-abs(one.net), one.name))
