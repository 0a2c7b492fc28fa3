"""Flame graphs of a page as their frames: its script draws each when it is opened.

A drawn frame takes some 300 bytes, and four elements; its numbers take 40.
"""

import json
from collections.abc import Iterator

from markupsafe import Markup

from ktrial.format.sanitize import one_line, printable
from ktrial.report.charts.flame_frames import FlameFrame, Frames, Sides
from ktrial.report.charts.flame_graph import remarks_of

_WITHOUT = Markup('<p class="small muted without">This page’s script draws it, and did not run.</p>')


def in_page(drawn: Frames, title: str) -> str:
    """A differential flame graph's frames, as data in a page with `flame_graph.outline` and the script."""
    data = {
        "title": one_line(title),
        "remark": " ".join(remarks_of(drawn)),
        "frames": [list(_frame(frame)) for frame in drawn.frames],
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'{_WITHOUT}<script type="application/json" class="frames">{text}</script>'


def _frame(frame: FlameFrame) -> Iterator[str | float]:
    """Name, caller, instructions before and after, their difference; its own, where it called something."""
    yield printable(frame.name)
    yield frame.parent
    yield from _sides(frame.whole)
    if frame.own != frame.whole:
        yield from _sides(frame.own)


def _sides(sides: Sides) -> Iterator[float]:
    for value in (sides.before, sides.after, sides.difference):
        yield _short(value)


def _short(value: float) -> float:
    """Eight significant digits, whole numbers without a point: more than any text shows."""
    rounded = float(f"{value:.8g}")
    return int(rounded) if rounded.is_integer() else rounded
