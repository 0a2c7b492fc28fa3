"""The frames of a flame graph: a function, called in one way, as wide as what it and its callees ran."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ktrial.report.charts.call_stacks import Stack, Stacks

ALL = "all"
"""The frame below all others."""


class Sides(NamedTuple):
    """Instructions an operation in the two profiles."""

    before: float
    after: float

    @property
    def difference(self) -> float:
        """By how much it grew."""
        return self.after - self.before


class FlameFrame(NamedTuple):
    """One frame; callers come before what they call, so that a frame's index is larger than its parent's."""

    name: str
    parent: int
    """Index of its caller; -1 for the first frame, which is `ALL`."""
    depth: int
    own: Sides
    whole: Sides
    """Its own and what it called."""


class Frames(NamedTuple):
    """What is drawn, and what was too small for that."""

    frames: tuple[FlameFrame, ...]
    left_out: int
    """Frames that are not drawn."""
    limit: float
    """They, with what they call, are below this fraction of both profiles, and of their difference."""


@dataclass
class _Node:
    name: str
    own: list[float] = field(default_factory=lambda: [0.0, 0.0])
    whole: list[float] = field(default_factory=lambda: [0.0, 0.0])
    callees: dict[str, "_Node"] = field(default_factory=dict)


def frames(before: Stacks, after: Stacks, limit: float = 0.0, most: int | None = None) -> Frames:
    """Both sides' stacks as one tree, callees in the order of their names.

    `limit`: a frame is left out, with its callees, where it is below this fraction of each profile and its
    difference below this fraction of the whole difference. `most`: the limit is raised until no more frames
    than so many are left.
    """
    root = _Node(ALL)
    for side, stacks in enumerate((before, after)):
        for stack, instructions in stacks.items():
            _add(root, stack, side, float(instructions))
    least = limit
    reaches = sorted((reach for _, _, _, reach in _walk(root, 0.0)), reverse=True)
    if most is not None and len(reaches) > most:
        # Of frames that are equally large, all or none.
        least = max(least, min((reach for reach in reaches if reach > reaches[most]), default=1.0))
    drawn = tuple(
        FlameFrame(node.name, parent, depth, _sides(node.own), _sides(node.whole))
        for node, parent, depth, _ in _walk(root, least)
    )
    return Frames(drawn, len(reaches) - len(drawn), least)


def _add(root: _Node, stack: Stack, side: int, instructions: float) -> None:
    node = root
    node.whole[side] += instructions
    for name in stack:
        node = node.callees.setdefault(name, _Node(name))
        node.whole[side] += instructions
    node.own[side] += instructions


def _walk(root: _Node, least: float) -> Iterator[tuple[_Node, int, int, float]]:
    """Node, index of its caller, depth, and the limit up to which it is drawn; callers before callees.

    Not by recursion: stacks may be deep.
    """
    wholes = _sizes(root)
    waiting = [(root, -1, 0, 1.0)]
    index = 0
    while waiting:
        node, parent, depth, reach = waiting.pop()
        yield node, parent, depth, reach
        for callee in sorted(node.callees.values(), key=lambda callee: callee.name, reverse=True):
            shares = [size / whole for size, whole in zip(_sizes(callee), wholes, strict=True) if whole]
            reached = min(reach, max(shares, default=0.0))
            if reached > 0 and reached >= least:
                waiting.append((callee, index, depth + 1, reached))
        index += 1


def _sizes(node: _Node) -> tuple[float, ...]:
    """In the two profiles, and of their difference."""
    return *node.whole, abs(node.whole[1] - node.whole[0])


def _sides(values: list[float]) -> Sides:
    return Sides(values[0], values[1])
