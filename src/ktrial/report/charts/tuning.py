"""A search as a picture: its runs along the bottom, each relative to the baseline upwards."""

import math
from collections.abc import Callable
from typing import NamedTuple

from ktrial.format import number_format
from ktrial.model.tuning import Observation, Purpose, Tuned
from ktrial.model.workload import Direction
from ktrial.report.charts.round_marks import round_marks

LEFT, RIGHT, TOP, BOTTOM = 78.0, 16.0, 16.0, 40.0
WIDE, NARROW, HEIGHT = 900.0, 400.0, 300.0
"""Of a picture, in its own units: on a telephone a wide one would have letters that nobody can read."""
_PLACE_OF_A_NUMBER = 70.0
_Scale = Callable[[float], float]


class Dot(NamedTuple):
    """One run."""

    x: float
    y: float
    purpose: str
    baseline: bool
    failed: bool
    title: str


class Tick(NamedTuple):
    """A number beside an axis."""

    at: float
    text: str


class TuningPicture(NamedTuple):
    """All that the template draws."""

    width: float
    height: float
    left: float
    right: float
    """Where lines across it begin and end."""
    dots: tuple[Dot, ...]
    best: str
    """The path of the best run so far while exploring."""
    zero: float
    """Where the baseline is."""
    ticks: tuple[Tick, ...]
    runs: tuple[Tick, ...]
    description: str


def picture(tuned: Tuned, width: float = WIDE) -> TuningPicture | None:
    """Of the first objective; None where no run has a number. Drift, as the baseline saw it, is taken out."""
    ratios = _ratios(tuned)
    numbers = [ratio for ratio in ratios if ratio is not None]
    if not numbers:
        return None
    low, high = min(*numbers, 1.0), max(*numbers, 1.0)
    room = (high - low) * 0.08 or 0.02
    low, high = low - room, high + room
    count = len(tuned.observations)

    def x(place: float) -> float:
        return round(LEFT + (place + 0.5) / count * (width - LEFT - RIGHT), 1)

    def y(ratio: float) -> float:
        return round(TOP + (high - ratio) / (high - low) * (HEIGHT - TOP - BOTTOM), 1)

    dots = tuple(
        Dot(
            x=x(place),
            y=y(ratio) if ratio is not None else HEIGHT - BOTTOM,
            purpose=one.purpose.value,
            baseline=not one.configuration,
            failed=ratio is None,
            title=_title(one, ratio),
        )
        for place, (one, ratio) in enumerate(zip(tuned.observations, ratios, strict=True))
    )
    return TuningPicture(
        width=width,
        height=HEIGHT,
        left=LEFT,
        right=width - RIGHT,
        dots=dots,
        best=_best(tuned, ratios, x, y),
        zero=y(1.0),
        ticks=tuple(Tick(y(one), text) for one, text in _ticks(low, high).items()),
        runs=tuple(
            Tick(x(place), str(place + 1)) for place in _places(count, int(width / _PLACE_OF_A_NUMBER))
        ),
        description=f"{count} runs; the best single one {number_format.change(tuned.seen)}",
    )


def _ratios(tuned: Tuned) -> list[float | None]:
    metric = tuned.goal.objectives[0].metric
    before = tuned.baseline.get(metric)
    ratios: list[float | None] = []
    for place, one in enumerate(tuned.observations):
        level = tuned.drift[place] if place < len(tuned.drift) else 1.0
        value = one.values.get(metric)
        known = value is not None and bool(before) and bool(level)
        ratio = value / before / level if known and value is not None and before else None
        ratios.append(ratio if ratio is not None and math.isfinite(ratio) else None)
    return ratios


def _best(tuned: Tuned, ratios: list[float | None], x: _Scale, y: _Scale) -> str:
    higher = tuned.goal.objectives[0].direction is Direction.HIGHER
    best: float | None = None
    steps: list[str] = []
    for place, (one, ratio) in enumerate(zip(tuned.observations, ratios, strict=True)):
        if one.purpose not in {Purpose.CALIBRATE, Purpose.EXPLORE} or ratio is None:
            continue
        better = best is None or (ratio > best if higher else ratio < best)
        best = ratio if better else best
        steps.append(f"{x(place)},{y(best or 1.0)}")
    return f"M{'L'.join(steps)}" if steps else ""


def _title(one: Observation, ratio: float | None) -> str:
    what = ", ".join(f"{name}={value}" for name, value in one.configuration.items()) or "as it was"
    said = one.failure or number_format.change(ratio)
    return f"run {one.order + 1}, {one.purpose.value}: {what}: {said}"


def _ticks(low: float, high: float) -> dict[float, str]:
    """Ratio → its text: round changes in per cent."""
    changes = round_marks((low - 1) * 100, (high - 1) * 100)
    return {1 + one / 100: f"{number_format.signed(one)}{number_format.SPACE}%" for one in changes}


def _places(count: int, most: int) -> list[int]:
    every = max(1, -(-count // most))
    return list(range(0, count, every))
