"""Flame graphs as SVG: one profile, or the difference between two.

As in Brendan Gregg's flamegraph.pl (his differential flame graphs, 2014): a frame is as wide as what it and
its callees ran in the second profile (or the first, for what vanished), and its colour says by how much its
own instructions grew (red) or shrank (blue). There are flamegraph.pl (Perl) and inferno (Rust); no library
for Python was found that draws a difference as one file, and none that shows both profiles' numbers.
"""

import json
import math
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from markupsafe import Markup

from ktrial.format import number_format
from ktrial.format.sanitize import one_line, printable, shortened
from ktrial.model.attribution import Explanation
from ktrial.model.profile import Profile
from ktrial.report.call_tree import laid_stacks, stacks
from ktrial.report.stack_tree import LaidStacks, Sizes, Stacks, beside
from ktrial.report.templating import environment, text_of

SMALLEST = 0.0001
"""In a file of its own, a frame below this share is left out: a ninth of a pixel on a usual screen."""
_WIDTHS = ("width: first", "width: second")
_ROW = 17
_IN_PAGE = 4
"""Where the legend of a drawing in a page begins."""
_LEGEND_HEIGHT = 58
_LINE = 18
_STATIC_WIDTH = 1200
_COLUMN = 6.7
"""Pixels: what labels are made for where no script fits them to the window."""
_STRENGTHS = 6
_REMARKS = ("Instructions per operation; counted, not time.", "Tap a frame to zoom; Ctrl-F to search.")
_KERNEL_COLOURS = 5


class Width(IntEnum):
    """Which profile's instructions make a frame wide."""

    BEFORE = 0
    AFTER = 1


class _Bar(NamedTuple):
    x: str
    y: int
    width: str
    facts: str
    """Its caller's index and both widths, for the script."""
    tooltip: str
    """Name and numbers, a line each."""
    colour: str
    label: str


class _Legend(NamedTuple):
    swatches: tuple[str, ...]
    text: str


class _Around(NamedTuple):
    """What makes a drawing a file of its own."""

    style: Markup
    script: Markup


_DIFFERENCE = _Legend(("m6", "m4", "m2", "d0", "p2", "p4", "p6"), "own instructions: fewer, more")
_SINGLE = _Legend(("k0", "k1", "k2", "module", "user"), "kernel; green: module; blue: user program")


def of_profile(profile: Profile) -> str:
    """One profile's flame graph: an SVG file that needs nothing else."""
    drawn = flame_frames({}, stacks(profile), SMALLEST)
    total = drawn.frames[0].inclusive.after
    heading = (f"{number_format.number(total)} instructions per operation",)
    title = f"{profile.workload} on {profile.label}"
    return _draw(drawn, title, heading, Width.AFTER, difference=False, alone=True)


def of_difference(
    before: Profile, after: Profile, explanation: Explanation, width: Width = Width.AFTER
) -> str:
    """The differential flame graph of what `explanation` explains: an SVG file that needs nothing else."""
    drawn = frames_of(laid_stacks(before, after, explanation), SMALLEST)
    return _draw(drawn, _title(explanation), _heading(explanation), width, difference=True, alone=True)


class Sides(NamedTuple):
    """Instructions per operation in the two profiles."""

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
    exclusive: Sides
    inclusive: Sides
    """Its own and what it called."""


class Frames(NamedTuple):
    """What is drawn, and what was too small for that."""

    frames: tuple[FlameFrame, ...]
    left_out: int
    """Frames that are not drawn."""
    limit: float
    """They, with what they call, are below this fraction of both profiles, and of their difference."""


def drawn_in_page(drawn: Frames, title: str) -> str:
    """A differential flame graph as an element of a page that has `style` and `script`."""
    return _draw(drawn, title, (), Width.AFTER, difference=True, alone=False)


def outline() -> str:
    """What the graphs of a page have in common, without bars, for the script that draws them."""
    template = environment().get_template("flame_graph.svg.j2")
    drawn = template.render(
        title="", heading=(), kind="difference", side=Width.AFTER.value, widths=_WIDTHS, around=None,
        legend=_DIFFERENCE, legend_top=_IN_PAGE, top=_IN_PAGE + _LEGEND_HEIGHT, bars=(), resting=(),
        remarks=(), said_top=0, height=0,
    )  # fmt: skip
    return f'<template id="flame">{drawn.strip()}</template>'


def style() -> str:
    """The style sheet of a page with flame graphs."""
    return text_of("flame_graph.css")


def script() -> str:
    """The script of a page with flame graphs. Without it they are pictures with tooltips."""
    return text_of("flame_graph.js")


def _title(explanation: Explanation) -> str:
    return f"{explanation.workload}: what the difference is made of"


def _heading(explanation: Explanation) -> tuple[str, ...]:
    before, after = explanation.before, explanation.after
    change = number_format.change(after.mean / before.mean if before.mean else None)
    return (
        f"{shortened(before.label, 40)}: {number_format.number(before.mean)}",
        f"→ {shortened(after.label, 40)}: {number_format.number(after.mean)} ({change})",
    )


def _draw(
    drawn: Frames, title: str, heading: Sequence[str], width: Width, *, difference: bool, alone: bool
) -> str:
    legend_top = (34 + _LINE * len(heading)) if alone else _IN_PAGE
    top = legend_top + _LEGEND_HEIGHT
    depth = max(frame.depth for frame in drawn.frames)
    bottom = top + _ROW * depth
    colours = _differences(drawn.frames) if difference else _kinds(drawn.frames)
    resting = _tooltip(drawn.frames[0], drawn.frames[0], difference=difference)
    remarks = remarks_of(drawn, alone=alone)
    said_top = bottom + _ROW + _LINE
    template = environment().get_template("flame_graph.svg.j2")
    return template.render(
        title=one_line(title),
        heading=heading,
        kind="difference" if difference else "one",
        side=width.value,
        widths=_WIDTHS,
        around=_Around(Markup(style()), Markup(script())) if alone else None,
        legend=_DIFFERENCE if difference else _SINGLE,
        legend_top=legend_top,
        top=top,
        bars=_bars(drawn.frames, bottom, colours, width, difference=difference),
        resting=resting,
        remarks=remarks,
        said_top=said_top,
        height=said_top + _LINE * (len(resting) + len(remarks)),
    )


def remarks_of(drawn: Frames, *, alone: bool = False) -> tuple[str, ...]:
    """What is said below a drawing: how much was left out; in a file also what its numbers are."""
    left_out = f"{number_format.counted(drawn.left_out, 'smaller frame')} not drawn"
    limit = f"(below {number_format.percentage(drawn.limit)})"
    return (*(_REMARKS if alone else ()), *((f"{left_out} {limit}",) if drawn.left_out else ()))


def _bars(
    drawn: Sequence[FlameFrame], bottom: int, colours: Sequence[str], width: Width, *, difference: bool
) -> list[_Bar]:
    total = drawn[0].inclusive[width] or 1.0
    starts: list[float] = []
    next_start: list[float] = []
    bars = []
    for frame, colour in zip(drawn, colours, strict=True):
        start = next_start[frame.parent] if frame.parent >= 0 else 0.0
        share = frame.inclusive[width] / total
        if frame.parent >= 0:
            next_start[frame.parent] += share
        starts.append(start)
        next_start.append(start)
        bars.append(
            _Bar(
                x=_six_digits(start * 100),
                y=bottom - _ROW * frame.depth,
                width=_six_digits(share * 100),
                facts=" ".join((str(frame.parent), *map(_six_digits, frame.inclusive))),
                tooltip="\n".join(_tooltip(frame, drawn[0], difference=difference)),
                colour=colour,
                label=_label(frame.name, share),
            )
        )
    return bars


def _label(name: str, share: float) -> str:
    fits = int((share * _STATIC_WIDTH - 5) / _COLUMN)
    if fits < 2:
        return ""
    return name if len(name) <= fits else f"{name[: fits - 1]}…"


def _tooltip(frame: FlameFrame, root: FlameFrame, *, difference: bool) -> tuple[str, ...]:
    if not difference:
        share = number_format.share_of(frame.inclusive.after / (root.inclusive.after or 1.0))
        return (
            frame.name,
            f"{number_format.number(frame.inclusive.after)} instructions per operation; {share}",
            f"its own: {number_format.number(frame.exclusive.after)}",
        )
    part = frame.inclusive.difference / root.inclusive.difference if root.inclusive.difference else None
    of_all = f"; {number_format.share_of(part)} of the difference" if part is not None else ""
    return (
        frame.name,
        f"{_change(frame.inclusive.before, frame.inclusive.after)}{of_all}",
        f"its own: {_change(frame.exclusive.before, frame.exclusive.after)}",
    )


def _change(before: float, after: float) -> str:
    values = f"{number_format.number(before)} → {number_format.number(after)}"
    return f"{values}, {number_format.signed(after - before)}"


def _differences(drawn: Sequence[FlameFrame]) -> list[str]:
    """Classes by own difference; strength by its square root, so that the largest hides no others."""
    most = max(abs(frame.exclusive.difference) for frame in drawn) or 1.0

    def colour(difference: float) -> str:
        strength = round(_STRENGTHS * math.sqrt(abs(difference) / most))
        return f"{'p' if difference > 0 else 'm'}{strength}" if strength else "d0"

    return [colour(frame.exclusive.difference) for frame in drawn]


def _kinds(drawn: Sequence[FlameFrame]) -> list[str]:
    """Classes by what a frame is; shades by the functions' names, to tell them apart."""
    colours: list[str] = []
    for frame in drawn:
        above = colours[frame.parent] if frame.parent > 0 else ""
        if frame.name.startswith("[program]") or above == "user":
            colours.append("user")
        elif frame.name.endswith("]"):
            colours.append("module")
        else:
            colours.append(f"k{sum(frame.name.encode()) % _KERNEL_COLOURS}")
    return colours


def _six_digits(value: float) -> str:
    """Six significant digits: a frame's place to a thousandth of a pixel."""
    return f"{value:.6g}"


# The frames of a flame graph: a function, called in one way, as wide as what it and its callees ran.

ALL = "all"
"""The frame below all others."""


def flame_frames(before: Stacks, after: Stacks, limit: float = 0.0, most: int | None = None) -> Frames:
    """Both sides' stacks as one tree, callees in the order of their names (`frames_of`)."""
    return frames_of(beside(before, after), limit, most)


def frames_of(both: LaidStacks, limit: float = 0.0, most: int | None = None) -> Frames:
    """The frames of two profiles, callees in the order of their names.

    `limit`: a frame is left out, with its callees, where it is below this fraction of each profile and its
    difference below this fraction of the whole difference. `most`: the limit is raised until no more frames
    than so many are left.
    """
    sizes = Sizes(both)
    least = limit
    reaches = sorted((reach for reach in sizes.reaches if reach > 0), reverse=True)
    if most is not None and len(reaches) > most:
        # Of frames that are equally large, all or none.
        least = max(least, min((reach for reach in reaches if reach > reaches[most]), default=1.0))
    drawn = tuple(
        FlameFrame(place.name or ALL, place.caller, place.depth, Sides(*place.own), Sides(*place.whole))
        for place in sizes.drawn(least)
    )
    return Frames(drawn, len(reaches) - len(drawn), least)


# Flame graphs of a page as their frames: its script draws each when it is opened.
#
# A drawn frame takes some 300 bytes, and four elements; its numbers take 40.

_WITHOUT = Markup('<p class="small muted without">This page’s script draws it, and did not run.</p>')


def frames_in_page(drawn: Frames, title: str) -> str:
    """A differential flame graph's frames, as data in a page with `flame_graph.outline` and the script."""
    data = {
        "title": one_line(title),
        "remark": " ".join(remarks_of(drawn)),
        "frames": [list(_frame_data(frame)) for frame in drawn.frames],
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'{_WITHOUT}<script type="application/json" class="frames">{text}</script>'


def _frame_data(frame: FlameFrame) -> Iterator[str | float]:
    """Name, caller, instructions before and after, their difference; its own, where it called something."""
    yield printable(frame.name)
    yield frame.parent
    yield from _sides_data(frame.inclusive)
    if frame.exclusive != frame.inclusive:
        yield from _sides_data(frame.exclusive)


def _sides_data(sides: Sides) -> Iterator[float]:
    for value in (sides.before, sides.after, sides.difference):
        yield _eight_digits(value)


def _eight_digits(value: float) -> float:
    """Eight significant digits, whole numbers without a point: more than any text shows."""
    rounded = float(f"{value:.8g}")
    return int(rounded) if rounded.is_integer() else rounded
