"""Call stacks as a tree whose nodes are numbered: two profiles' stacks, laid on each other.

A profile has some thousand stacks, which share most of their beginnings. In the tree each beginning is one
node, a whole number; sums go from the leaves to the root in one pass. Counts are whole numbers too.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

Stack = tuple[str, ...]
"""Names of functions, the outermost first."""
Stacks = dict[Stack, Fraction]
"""Stack → instructions per operation that its last function ran itself."""
OwnCounts = dict[int, int]
"""Node → instructions that its function ran itself, where it was called so."""

ROOT = 0


class StackTree:
    """Ways in which functions were called. A node's number is larger than its caller's; 0 calls the first."""

    def __init__(self) -> None:
        self.callers, self.names = [-1], [""]
        self.calls: list[dict[str, int]] = [{}]
        """Node → name of a function that it calls → that one's node."""

    def __len__(self) -> int:
        return len(self.names)

    def called(self, node: int, name: str) -> int:
        """The node of the function where this one calls it; it is made where there is none."""
        callee = self.calls[node].get(name)
        if callee is None:
            callee = self.calls[node][name] = len(self.names)
            self.callers.append(node)
            self.names.append(name)
            self.calls.append({})
        return callee

    def node_of(self, stack: Iterable[str]) -> int:
        """The node of a stack's last function."""
        node = ROOT
        for name in stack:
            node = self.called(node, name)
        return node

    def stack(self, node: int) -> Stack:
        """The functions from the outermost to this node's."""
        names = []
        while node != ROOT:
            names.append(self.names[node])
            node = self.callers[node]
        return tuple(reversed(names))

    def sums(self, counts: OwnCounts) -> list[int]:
        """By node: what it and all that it calls ran."""
        sums = [0] * len(self)
        for node, count in counts.items():
            sums[node] = count
        callers = self.callers
        for node in range(len(sums) - 1, 0, -1):
            sums[callers[node]] += sums[node]
        return sums

    def ran(self, counts: OwnCounts) -> bytearray:
        """By node: whether it, or something that it calls, was counted."""
        ran = bytearray(len(self))
        for node in counts:
            while node > ROOT and not ran[node]:
                ran[node] = True
                node = self.callers[node]
        ran[ROOT] = bool(counts)
        return ran

    def functions(self, ran: bytearray) -> frozenset[str]:
        """The names of those that ran."""
        return frozenset(name for name, did in zip(self.names, ran, strict=True) if did) - {""}


class CountedStacks(NamedTuple):
    """One profile's stacks, in a tree."""

    tree: StackTree
    own: OwnCounts
    operations: int
    """Counts are the instructions of so many."""


class LaidStacks(NamedTuple):
    """The stacks of two profiles in one tree, those of the first with the functions in them that only the
    second runs.
    """

    tree: StackTree
    own: tuple[OwnCounts, OwnCounts]
    operations: tuple[int, int]
    in_old: frozenset[str]
    """The functions that the first runs."""
    in_new: frozenset[str]


def counted_of(stacks: Mapping[Stack, Fraction], tree: StackTree | None = None) -> CountedStacks:
    """The stacks in a tree: in this one, where there is one."""
    tree = tree or StackTree()
    operations = math.lcm(*(count.denominator for count in stacks.values()))
    own = {
        tree.node_of(stack): count.numerator * (operations // count.denominator)
        for stack, count in stacks.items()
    }
    return CountedStacks(tree, own, operations)


def beside(old: Mapping[Stack, Fraction], new: Mapping[Stack, Fraction]) -> LaidStacks:
    """Both in one tree, as they are."""
    after = counted_of(new)
    before = counted_of(old, after.tree)
    functions = (after.tree.functions(after.tree.ran(side.own)) for side in (before, after))
    return LaidStacks(after.tree, (before.own, after.own), (before.operations, after.operations), *functions)


def laid(old: CountedStacks, new: CountedStacks) -> LaidStacks:
    """The stacks of `old` with the functions in them that only `new` runs, where the callers agree.

    A function that only `old` runs stands where it did, with its own instructions; what it called is under
    the same callers as in `new`, if it is called there. Nothing is lost: the sum is that of `old`.
    """
    ran_old, ran_new = old.tree.ran(old.own), new.tree.ran(new.own)
    in_old, in_new = old.tree.functions(ran_old), new.tree.functions(ran_new)
    common, shared = in_old & in_new, StackTree()
    places = _places(new, ran_new, common, shared)
    tree, place, short = new.tree, [ROOT] * len(old.tree), [ROOT] * len(old.tree)
    own: OwnCounts = {}
    for node in range(1, len(old.tree)):
        if not ran_old[node]:
            continue
        caller, name = old.tree.callers[node], old.tree.names[node]
        outer = None
        short[node] = short[caller]
        if name in common:
            short[node] = shared.called(short[caller], name)
            outer = places.get(short[node])
        place[node] = tree.called(place[caller], name) if outer is None else outer
    for node, count in old.own.items():
        own[place[node]] = own.get(place[node], 0) + count
    return LaidStacks(tree, (own, new.own), (old.operations, new.operations), in_old, in_new)


def _places(new: CountedStacks, ran: bytearray, common: frozenset[str], shared: StackTree) -> dict[int, int]:
    """Path without functions of one kernel only, a node of `shared` → the path that is taken for it: the
    heaviest; of equally heavy ones the first by its names.
    """
    tree, weights = new.tree, new.tree.sums(new.own)
    places: dict[int, int] = {}
    short = [ROOT] * len(tree)
    for node in range(1, len(tree)):
        if not ran[node]:
            continue
        short[node] = short[tree.callers[node]]
        if tree.names[node] in common:
            short[node] = shared.called(short[node], tree.names[node])
            other = places.get(short[node])
            if other is None or _is_first(tree, weights, node, other):
                places[short[node]] = node
    return places


def _is_first(tree: StackTree, weights: list[int], node: int, other: int) -> bool:
    if weights[node] != weights[other]:
        return weights[node] > weights[other]
    return tree.stack(node) < tree.stack(other)


def stacks_in(counted: CountedStacks) -> Stacks:
    """The stacks by their names again."""
    tree = counted.tree
    return {tree.stack(node): Fraction(count, counted.operations) for node, count in counted.own.items()}


def first_of(both: LaidStacks) -> Stacks:
    """The first's stacks, as they were laid."""
    return stacks_in(CountedStacks(both.tree, both.own[0], both.operations[0]))


# What is drawn of a tree: every place by its share of the wholes.


class DrawnNode(NamedTuple):
    """One node that is drawn, callers first."""

    name: str
    caller: int
    """Index among those that are drawn; -1 for the root."""
    depth: int
    own: tuple[float, float]
    """Instructions per operation, in the first and the second."""
    whole: tuple[float, float]
    """The same with all that it calls."""


class Sizes:
    """How large the nodes of a tree are."""

    def __init__(self, both: LaidStacks) -> None:
        self._both = both
        before, after = (
            [count / operations for count in both.tree.sums(own)]
            for own, operations in zip(both.own, both.operations, strict=True)
        )
        self._wholes = (before, after)
        self.reaches = list(self._reached(before, after))
        """By node: the limit up to which it is drawn."""

    def _reached(self, before: list[float], after: list[float]) -> Iterator[float]:
        """The largest share of the first, the second, and their difference; no more than its caller's."""
        first, second, apart = before[ROOT], after[ROOT], abs(after[ROOT] - before[ROOT])
        reaches = [1.0]
        yield 1.0
        for old, new, caller in zip(before[1:], after[1:], self._both.tree.callers[1:], strict=True):
            share = old / first if first else 0.0
            if second and new / second > share:
                share = new / second
            if apart and abs(new - old) / apart > share:
                share = abs(new - old) / apart
            reaches.append(min(reaches[caller], share))
            yield reaches[-1]

    def drawn(self, least: float) -> Iterator[DrawnNode]:
        """The root, and all that reach the limit and are not empty; what one calls by name.

        Not by recursion: stacks may be deep.
        """
        tree, (own_old, own_new), (before, after) = self._both.tree, self._both.own, self._wholes
        old_operations, new_operations = self._both.operations
        waiting = [(ROOT, -1, 0)]
        index = 0
        while waiting:
            node, caller, depth = waiting.pop()
            own = (own_old.get(node, 0) / old_operations, own_new.get(node, 0) / new_operations)
            yield DrawnNode(tree.names[node], caller, depth, own, (before[node], after[node]))
            for _, callee in sorted(tree.calls[node].items(), reverse=True):
                if self.reaches[callee] > 0 and self.reaches[callee] >= least:
                    waiting.append((callee, index, depth + 1))
            index += 1
