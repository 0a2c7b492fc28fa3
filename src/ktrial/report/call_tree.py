"""Call stacks of profiles as flame graph tools know them: folded, one line a stack, the outermost first."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import takewhile
from typing import NamedTuple

from ktrial.format import number_format
from ktrial.format.sanitize import one_line
from ktrial.format.table import Cell, Column, Emphasis, Field, Kind, Row, RowKind, Table, number, own, table
from ktrial.model.attribution import Count, Explanation, FunctionDifference, Match
from ktrial.model.comparison import Verdict
from ktrial.model.profile import PROGRAM, UNKNOWN, FunctionCount, Profile
from ktrial.report.stack_tree import (
    ROOT,
    CountedStacks,
    LaidStacks,
    OwnCounts,
    Stacks,
    StackTree,
    counted_of,
    first_of,
    laid,
    stacks_in,
)

Naming = Callable[[FunctionCount], str]
_JOINED = frozenset({Match.MERGED, Match.SPLIT})
_NO_FILE = "(vDSO, generated code)"


def shown_name(function: FunctionCount) -> str:
    """`map [ext4]`; a semicolon, which separates functions, becomes a colon as in stackcollapse-perf.pl."""
    name = f"{function.symbol} [{function.module}]" if function.module else function.symbol
    return _name(name)


def stacks(profile: Profile, name_of: Naming = shown_name) -> Stacks:
    """The profile's stacks. Where calls were not followed, every function is a stack of its own."""
    return stacks_in(counted(profile, name_of))


def counted(profile: Profile, name_of: Naming = shown_name) -> CountedStacks:
    """The same as a tree."""
    tree, own = StackTree(), OwnCounts()
    for node, instructions in _counted(profile, tree, name_of):
        if instructions:
            own[node] = own.get(node, 0) + instructions
    return CountedStacks(tree, own, profile.operations)


def stacks_of_both(before: Profile, after: Profile, explanation: Explanation) -> tuple[Stacks, Stacks]:
    """The stacks of two profiles, with one name for what the explanation takes for one function."""
    old, new = _namings(explanation)
    return stacks(before, old), stacks(after, new)


def folded(profile: Profile) -> Iterator[str]:
    """Lines `entry_SYSCALL_64;do_syscall_64;… instructions` of the whole region: the folded format.

    Source: stackcollapse.pl of github.com/brendangregg/FlameGraph, whose output all flame graph tools read.
    """
    for stack, value in sorted(stacks(profile).items()):
        yield f"{';'.join(stack)} {int(value * profile.operations)}"


def folded_pair(before: Stacks, after: Stacks, operations: int) -> Iterator[str]:
    """Lines `stack count-before count-after`: what difffolded.pl writes and flamegraph.pl draws.

    Counts are instructions in `operations` operations, of both, rounded where the two did not do that many.
    """
    for stack in sorted(before.keys() | after.keys()):
        counts = (round(side.get(stack, Fraction(0)) * operations) for side in (before, after))
        yield f"{';'.join(stack)} {' '.join(map(str, counts))}"


def _counted(profile: Profile, tree: StackTree, name_of: Naming) -> Iterator[tuple[int, int]]:
    """Node and instructions, some of them more than once."""
    region = profile.region
    names = [name_of(function) for function in region.functions]
    if region.nodes is None:
        for name, function in zip(names, region.functions, strict=True):
            yield tree.called(ROOT, name), function.instructions
        yield from _programs(profile, tree, region.program)
        return
    unknown, program, *following = region.nodes
    places = [ROOT, tree.called(ROOT, PROGRAM)]
    yield tree.called(ROOT, UNKNOWN), unknown.instructions
    yield from _programs(profile, tree, program.instructions)
    for node in following:
        # The first node stands for what was entered from outside.
        place = tree.called(places[node.parent], names[node.function])
        places.append(place)
        yield place, node.instructions


def _programs(profile: Profile, tree: StackTree, instructions: int) -> Iterator[tuple[int, int]]:
    """User mode by program; what no program is known for stands in the frame of all of them."""
    whole = tree.called(ROOT, PROGRAM)
    for program in profile.programs:
        yield tree.called(whole, _name(program.program or _NO_FILE)), program.instructions
    yield whole, instructions - sum(program.instructions for program in profile.programs)


def _namings(explanation: Explanation) -> tuple[Naming, Naming]:
    """How functions of the two are called."""
    return (
        _naming(_row_names(explanation, lambda row: row.before)),
        _naming(_row_names(explanation, lambda row: row.after)),
    )


def _row_names(
    explanation: Explanation, count_of: Callable[[FunctionDifference], Count]
) -> Mapping[tuple[str, str], str]:
    """Symbol and module → the name of its row; with an empty module, also where the module has changed."""
    names: dict[tuple[str, str], str] = {}
    # Two functions that stand beside one keep their names: one may have called the other.
    for row in (row_ for row_ in explanation.rows if row_.match not in _JOINED):
        name = f"{row.function} [{row.module}]" if row.module else row.function
        for symbol in count_of(row).names:
            names[symbol, row.module] = _name(name)
    return names


def _naming(names: Mapping[tuple[str, str], str]) -> Naming:
    # A function that moved into the image, or out of it, has the other kernel's module in its row.
    by_symbol = {symbol: name for (symbol, _), name in names.items()}

    def name_of(function: FunctionCount) -> str:
        name = names.get((function.symbol, function.module)) or by_symbol.get(function.symbol)
        return name or shown_name(function)

    return name_of


def _name(text: str) -> str:
    return one_line(text).replace(";", ":")


def aligned(before: Stacks, after: Stacks) -> Stacks:
    """The stacks of `before`, with the functions in them that only `after` runs (`stack_tree.laid`)."""
    return first_of(laid(counted_of(before), counted_of(after)))


# A difference along the tree of calls: net, with all that a function calls. What cancels below is one row.
#
# A function that is rewritten, split or inlined moves instructions between itself, its callers and what it
# calls: by function these are many large rows that cancel. Here the trees of both kernels are laid on each
# other, and a row is the difference of everything below one place in them.

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
    """One place in the tree of calls. Numbers are instructions per operation, of all below it."""

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
    remainder: float
    """The part of the difference that no row below it has: its own, and what is too small or cancels."""


class CallTree(NamedTuple):
    """The rows, callers first: `remainder` of all of them, and what no row has, sum to the difference."""

    rows: tuple[NetRow, ...]
    before: float
    after: float
    gross: float
    """The differences by function, without their signs."""
    remainder: float
    """What no row has."""


class _Node:
    """A function at its place in both trees; counts are in instructions of one number of operations."""

    __slots__ = ("below", "calls", "in_old", "joined", "name", "net", "own_net", "ran", "ranked")

    def __init__(
        self, name: str, below: tuple[int, int], own_net: int, ran: tuple[bool, bool], *, in_old: bool = True
    ) -> None:
        self.name = name
        self.below = below
        """What it and all that it calls ran, in the first and the second."""
        self.net = below[1] - below[0]
        self.own_net = own_net
        """The difference of the function itself."""
        self.ran = ran
        self.in_old = in_old
        """Whether the first runs it anywhere: its stacks are laid on what only the second runs."""
        self.calls: dict[str, _Node] = {}
        self.joined = False
        """It stands for several functions."""
        self.ranked: list[_Node] | None = None
        """What it calls and may have a row, the largest first, once that was asked for."""

    @property
    def sides(self) -> tuple[bool, bool]:
        """Whether it is called at this place in each."""
        return self.ran[0] and self.in_old, self.ran[1]


def call_tree(before: Profile, after: Profile, explanation: Explanation, most: int = MOST) -> CallTree | None:
    """The net differences, the heaviest first among those that one function calls; at most so many.

    None where calls were not followed, or nothing differs.
    """
    if before.region.nodes is None or after.region.nodes is None:
        return None
    return tree_of_stacks(laid_stacks(before, after, explanation), explanation, most)


def laid_stacks(before: Profile, after: Profile, explanation: Explanation) -> LaidStacks:
    """The stacks of both, those of the first laid on the second's."""
    old, new = _namings(explanation)
    return laid(counted(before, old), counted(after, new))


def tree_of_stacks(both: LaidStacks, explanation: Explanation, most: int = MOST) -> CallTree | None:
    """The same of stacks that were laid on each other before."""
    if not explanation.total:
        return None
    unit = explanation.before.operations * explanation.after.operations
    root = _tree(both, unit)
    smallest = max(abs(root.net) * _SMALLEST, root.below[1] * _SMALLEST_OF_ALL)
    _join(root, smallest)
    while len(rows := tuple(_below(root, 0, smallest, unit, root.net))) > most:
        smallest *= _COARSER
    top = sum(node.net for node in _shown(root, smallest))
    gross = explanation.gross(explanation.rows)
    means = (explanation.before.mean, explanation.after.mean)
    return CallTree(rows, *means, float(gross), (root.net - top) / unit)


def _tree(both: LaidStacks, unit: int) -> _Node:
    """With all counts in instructions of `unit` operations, which are whole numbers."""
    tree, (own_old, own_new) = both.tree, both.own
    times_old, times_new = (unit // operations for operations in both.operations)
    old, new = (tree.sums(own) for own in both.own)
    ran_old, ran_new = (tree.ran(own) for own in both.own)
    nodes: dict[int, _Node] = {}
    for place, name in enumerate(tree.names):
        ran = (bool(ran_old[place]), bool(ran_new[place]))
        if place == ROOT or any(ran):
            own_net = own_new.get(place, 0) * times_new - own_old.get(place, 0) * times_old
            below = (old[place] * times_old, new[place] * times_new)
            node = nodes[place] = _Node(name, below, own_net, ran, in_old=name in both.in_old)
            if place != ROOT:
                nodes[tree.callers[place]].calls[name] = node
    return nodes[ROOT]


def _join(node: _Node, smallest: float) -> None:
    """Take together what one caller calls in the first only and what it calls in the second only, where these
    cancel: the one is there in place of the other. What both call below is then laid on each other.
    """
    large = [called for called in node.calls.values() if abs(called.net) >= smallest]
    gone = [called for called in large if called.sides == (True, False)]
    come = [called for called in large if called.sides == (False, True)]
    if gone and come and _cancel((*gone, *come)) and not node.joined:
        joined = _Node(f"{_names(gone)} → {_names(come)}", (0, 0), 0, (True, True))
        joined.joined = True
        for called in (*gone, *come):
            del node.calls[called.name]
            _add(joined, called)
        node.calls[joined.name] = joined
    for called in node.calls.values():
        _join(called, smallest)


def _cancel(nodes: Sequence[_Node], own_net: int = 0) -> bool:
    """Whether the parts of these, and this one, are together much less than each by itself."""
    net = own_net + sum(node.net for node in nodes)
    gross = abs(own_net) + sum(abs(node.net) for node in nodes)
    return gross > _CANCELS * abs(net)


def _names(nodes: Sequence[_Node]) -> str:
    """The heaviest two."""
    ranked = sorted(nodes, key=lambda node: (-abs(node.net), node.name))
    return " + ".join(node.name for node in ranked[:_NAMED])


def _add(node: _Node, added: _Node) -> None:
    """Add what the other has, and all below it, by name."""
    node.below = (node.below[0] + added.below[0], node.below[1] + added.below[1])
    node.net += added.net
    node.own_net += added.own_net
    for name, called in added.calls.items():
        if name not in node.calls:
            node.calls[name] = called
        else:
            _add(node.calls[name], called)
            before, after = node.calls[name].ran
            node.calls[name].ran = (before or called.ran[0], after or called.ran[1])


def _below(node: _Node, depth: int, smallest: float, unit: int, total: int) -> Iterator[NetRow]:
    for called in _shown(node, smallest):
        chain, inner = _chain(called, smallest)
        remainder = called.net - sum(shown_node.net for shown_node in _shown(inner, smallest))
        yield NetRow(
            functions=chain,
            depth=depth,
            before=inner.below[0] / unit if inner.ran[0] else None,
            after=inner.below[1] / unit if inner.ran[1] else None,
            difference=inner.net / unit,
            share=inner.net / total if total else None,
            remainder=remainder / unit,
        )
        yield from _below(inner, depth + 1, smallest, unit, total)


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
    if node.ranked is None:
        both = [called for called in node.calls.values() if all(called.sides)]
        alone = [called for called in node.calls.values() if not all(called.sides)]
        every = both if _cancel(alone, node.own_net) and not node.joined else both + alone
        node.ranked = sorted(every, key=lambda called: (-abs(called.net), called.name))
    return list(takewhile(lambda called: abs(called.net) >= smallest, node.ranked))


# The few places that a difference comes from, for a sentence: net, none inside another, none that cancel.

_NOT_MORE = 1.05
"""Of the place that they are part of: parts that are more than the whole, others take back."""
_ENOUGH = 0.6
"""Of the place that they are part of: with less, the place itself says more."""
_ENOUGH_ALONE = 0.8
"""The same of a single one."""
_OUTWEIGHED = 2.0
"""Of the place above: a place that is larger than so much of it is no way to its parts."""
_CANCELS_ALMOST = 0.7
"""Of the larger of two places with unlike signs: with more, the two are one thing that moved."""


class NetPart(NamedTuple):
    """A place in the tree of calls that a part of the difference comes from, with all that it calls."""

    name: str
    difference: float
    """Instructions per operation."""


def net_parts(tree: CallTree, most: int) -> tuple[NetPart, ...]:
    """At most so many places, the largest first, none of which is part of another; they leave the rest.

    A place is divided into places below it as long as these have its sign, are most of it and not more than
    it: where one function took another one's work, the two cancel, and the function that calls them is named.
    The way in from user mode says nothing: where it has no such parts, those that it calls are named with
    their signs, unless two of them cancel.
    """
    rows, total = tree.rows, tree.after - tree.before
    places = _largest(rows, range(len(rows)), total) or _single_entry(rows, total)
    while len(places) < most:
        for place in places:
            below = _largest(rows, _range_below(rows, place), rows[place].difference)
            if below and len(places) - 1 + len(below) <= most:
                places = [other for other in places if other != place] + below
                break
        else:
            break
    if len(places) == 1 and rows[places[0]].depth == 0:
        places = _opposing(rows, places[0], most) or places
    by_name: dict[str, float] = {}  # one function below two callers is one part
    for place in places:
        name = _place_name(rows[place])
        by_name[name] = by_name.get(name, 0.0) + rows[place].difference
    ranked = sorted(by_name, key=lambda name: -abs(by_name[name]))[:most]
    return tuple(NetPart(name, by_name[name]) for name in ranked)


def _single_entry(rows: Sequence[NetRow], total: float) -> list[int]:
    """The way in that has at least half of the difference, where no others are most of it."""
    outermost = [place for place, row in enumerate(rows) if row.depth == 0]
    large = [place for place in outermost if 0.5 <= rows[place].difference / total <= _OUTWEIGHED]
    return large if len(large) == 1 else []


def _range_below(rows: Sequence[NetRow], place: int) -> range:
    """The rows below this one, which stand after it."""
    end = place + 1
    while end < len(rows) and rows[end].depth > rows[place].depth:
        end += 1
    return range(place + 1, end)


def _largest(rows: Sequence[NetRow], places: range, difference: float) -> list[int]:
    """Of these rows the outermost ones that together are most of the difference, and not more than it."""
    candidates: list[int] = []
    place = places.start
    while place < places.stop:
        row = rows[place]
        if row.difference * difference > 0 and abs(row.difference) <= abs(difference) * _OUTWEIGHED:
            fits = abs(row.difference) <= abs(difference) * _NOT_MORE
            candidates += [place] * fits
            place = _range_below(rows, place).stop if fits else place + 1
        else:
            place = _range_below(rows, place).stop
    chosen: list[int] = []
    room = abs(difference) * _NOT_MORE
    for place in sorted(candidates, key=lambda place: -abs(rows[place].difference)):
        if abs(rows[place].difference) <= room:
            chosen.append(place)
            room -= abs(rows[place].difference)
    covered = sum(abs(rows[place].difference) for place in chosen)
    enough = _ENOUGH if len(chosen) > 1 else _ENOUGH_ALONE
    return chosen if covered >= enough * abs(difference) else []


def _opposing(rows: Sequence[NetRow], above: int, most: int) -> list[int]:
    """The largest places just below, with either sign; none where two of them almost cancel."""
    below = [place for place in _range_below(rows, above) if rows[place].depth == rows[above].depth + 1]
    ranked = sorted(below, key=lambda place: -abs(rows[place].difference))[:most]
    return [] if cancel_almost([rows[place] for place in ranked]) else ranked


def cancel_almost(parts: Sequence[NetRow | NetPart]) -> bool:
    """Whether those that grew and those that shrank are nearly as large: they may be one that moved."""
    more, less = (
        sum(abs(part.difference) for part in parts if (part.difference > 0) is positive)
        for positive in (True, False)
    )
    return min(more, less) > _CANCELS_ALMOST * max(more, less)


def _place_name(row: NetRow) -> str:
    """The function that is called; of the way in from user mode the one where it leads."""
    return row.functions[0 if row.depth and len(row.functions) < _LONG_WAY else -1]


_LONG_WAY = 6
"""Functions: the first of so many that only call the next is far from where the difference is."""


# The table of a difference along the tree of calls: net, with all that is called, callers above.

CALL_TREE_MEANING = (
    "A row is a function with all that it calls, at the same place in both kernels' trees of calls; the rows "
    "below it are what it calls. a → b: the first kernel calls a there, the second calls b. own: "
    "instructions not shown in a row below, because they cancel or are too few."
)

_CALLS = " › "
_BELOW = "· "
_SIDE_COLUMNS = 24
_LEFT_OUT = "…"
_MOST_CALLERS = 1
"""Functions that are named of those that only lead to a row's own."""


def call_tree_table(tree: CallTree, sides: tuple[str, str] | None = None) -> Table:
    """One row a place, then what is elsewhere, then the sum. `sides`: the names that stand above their
    numbers.
    """
    difference = tree.after - tree.before
    elsewhere = NetRow(
        ("elsewhere",), 0, None, None, tree.remainder, tree.remainder / difference, tree.remainder
    )
    last = NetRow(("the sum of own",), 0, tree.before, tree.after, difference, 1.0, difference)
    shown_table = table(tuple(_fields()), (*tree.rows, elsewhere, last), "functions")
    for key, heading in zip(("before", "after"), sides or (), strict=False):
        shown_table = shown_table.adapted(key, heading=heading, named=True, heading_columns=_SIDE_COLUMNS)
    *named, elsewhere_row, total = shown_table.rows
    return replace(
        shown_table, rows=(*named, _in_words(elsewhere_row), replace(_in_words(total), kind=RowKind.SUM))
    )


def _in_words(row: Row) -> Row:
    first, *following = row.cells
    return replace(row, cells=(replace(first, kind=Kind.OWN), *following))


def _fields() -> Iterator[Field[NetRow]]:
    yield Field(Column("function", "with what it calls", wraps=True, columns=90), _function)
    yield Field(Column("before", "baseline", numeric=True, wide=True), lambda row: number(row.before))
    yield Field(Column("after", "value", numeric=True, wide=True), lambda row: number(row.after))
    yield Field(Column("difference", "difference", numeric=True), _difference)
    yield Field(
        Column("share", "share", "%", numeric=True),
        lambda row: Cell(row.share, number_format.share(row.share)),
    )
    yield Field(
        Column("own", "own", numeric=True, wide=True),
        lambda row: own(number_format.signed(row.remainder), emphasis=Emphasis.MUTED),
    )


def _function(row: NetRow) -> Cell:
    *callers, last = row.functions
    if len(callers) > _MOST_CALLERS:
        callers = [callers[0], _LEFT_OUT]
    text = _BELOW * row.depth + _CALLS.join((*callers, last))
    values = f"{number_format.number(row.before)} → {number_format.number(row.after)}"
    values += f"; own {number_format.signed(row.remainder)}"
    return Cell(_CALLS.join(row.functions), text, Kind.CODE, narrow=values, title=_CALLS.join(row.functions))


def _difference(row: NetRow) -> Cell:
    colour = Verdict.WORSE if row.difference > 0 else Verdict.BETTER
    return Cell(row.difference, number_format.signed(row.difference), verdict=colour)
