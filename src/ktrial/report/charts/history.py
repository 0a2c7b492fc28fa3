"""A history as a picture: versions along the bottom, the metric upwards, changes marked.

Drawn by hand: a site has some dozens of them, and Altair takes a second for ten.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ktrial.format import number_format
from ktrial.format.labels import VERDICTS
from ktrial.format.sanitize import shortened
from ktrial.model.history import Line
from ktrial.report.charts.round_marks import round_marks

LEFT, RIGHT, TOP, BOTTOM = 74.0, 22.0, 30.0, 58.0
_PER_CHARACTER, _GAP = 7.0, 10.0
HEIGHT = 240.0
_LEAST_WIDTH, _PER_POINT, _MOST_WIDTH = 340.0, 92.0, 960.0
_MOST_LABELS = 14
_NAME = 16
_BREAK = "v-3l-6,-3l12,-4l-12,-4l6,-3v-3"
"""The zigzag that marks an axis which is cut off."""
_Scale = Callable[[float], float]


class Dot(NamedTuple):
    """One version."""

    x: float
    y: float
    top: float
    bottom: float
    """Its largest and its smallest value."""
    label: str
    """Below the axis; empty where there is no room."""
    title: str


class Mark(NamedTuple):
    """One change point: between two versions."""

    x: float
    verdict: str
    text: str
    title: str


class Tick(NamedTuple):
    """A number beside the axis."""

    y: float
    text: str


class HistoryPicture(NamedTuple):
    """All that the template draws."""

    width: float
    height: float
    left: float
    """Where the numbers beside the axis end, and the lines begin."""
    dots: tuple[Dot, ...]
    path: str
    """Through the versions that have a number."""
    marks: tuple[Mark, ...]
    ticks: tuple[Tick, ...]
    break_mark: str
    """A path across the axis where it does not reach zero; empty where it does."""
    description: str


def picture(line: Line) -> HistoryPicture:
    """Where everything stands. The axis begins near the smallest value: a line shows changes, not sizes."""
    count = max(1, len(line.points))
    values = [value for point in line.points for value in point.values]
    low, high = _limits(values)
    texts = {value: number_format.number(value) for value in round_marks(low, high)}
    left = max(LEFT, _GAP + _PER_CHARACTER * max(map(len, texts.values()), default=0))
    width = max(_LEAST_WIDTH, min(_MOST_WIDTH, left + RIGHT + _PER_POINT * count))
    step = (width - left - RIGHT) / count

    def y(value: float) -> float:
        return round(TOP + (high - value) / (high - low) * (HEIGHT - TOP - BOTTOM), 1)

    def x(place: float) -> float:
        return round(left + (place + 0.5) * step, 1)

    dots = tuple(_dots(line, x, y))
    return HistoryPicture(
        width=width,
        height=HEIGHT,
        left=left,
        dots=dots,
        path="M" + "L".join(f"{dot.x},{dot.y}" for dot in dots) if dots else "",
        marks=tuple(
            Mark(
                x(one.place - 0.5),
                one.verdict.value,
                f"{VERDICTS[one.verdict].symbol} {number_format.step(one.ratio, one.after)}",
                f"{one.since} → {one.version}",
            )
            for one in line.changes
        ),
        ticks=tuple(Tick(y(value), text) for value, text in texts.items()),
        break_mark="" if low <= 0 <= high else f"M{left},{HEIGHT - BOTTOM}{_BREAK}",
        description=_described(line),
    )


def _dots(line: Line, x: _Scale, y: _Scale) -> Iterator[Dot]:
    every = -(-len(line.points) // _MOST_LABELS)
    for place, point in enumerate(line.points):
        if point.value is None:
            continue
        name = shortened(point.version.removeprefix("debian:"), _NAME)
        yield Dot(
            x=x(place),
            y=y(point.value),
            top=y(max(point.values)),
            bottom=y(min(point.values)),
            label=name if place % every == 0 else "",
            title=f"{shortened(point.version, 80)}: {number_format.number(point.value)} ({point.release})",
        )


def _limits(values: list[float]) -> tuple[float, float]:
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    room = (high - low) * 0.1 or abs(high) * 0.05 or 1.0
    return low - room, high + room


def _described(line: Line) -> str:
    points = "; ".join(f"{point.version}: {number_format.number(point.value)}" for point in line.points)
    changes = "; ".join(
        f"{one.version} {number_format.step(one.ratio, one.after)} {one.verdict.value}"
        for one in line.changes
    )
    return f"{points}. Changes: {changes or 'none'}."
