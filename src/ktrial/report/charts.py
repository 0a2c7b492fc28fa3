"""Charts as inline SVG: the colours of all, every level of a metric, and speed-up over CPUs."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ktrial.format import number_format
from ktrial.format.labels import DIRECTIONS, VERDICTS, metric_name
from ktrial.format.sanitize import shortened
from ktrial.model.comparison import Verdict
from ktrial.model.parallel import ScalingCurve
from ktrial.model.workload import Direction
from ktrial.report.study_summary import Level, MetricLevels
from ktrial.report.vega_lite import (
    Specification,
    as_it_is,
    inline_svg,
    layer,
    layered,
    quantitative,
    row_encoding,
    text_of,
)

# Colours of the charts: what the SVG says in light, and the page turns into its own (dark, print) by CSS.
#
# Blue and vermilion stay apart for every common kind of colour blindness (Okabe and Ito, 2008); equivalent
# and inconclusive are both grey, and told apart by a filled and a hollow mark. Every colour comes with a
# symbol and a word, so that none is needed.

INK = "#1f2328"
MUTED = "#5d6670"
RULE = "#c9d0d8"
BAND = "#edf0f3"
BASELINE = "#8a939d"
PAPER = "#ffffff"
BETTER = "#0a64ad"
WORSE = "#bf4a0b"
EQUIVALENT = "#67707b"
INCONCLUSIVE = "#667080"

VERDICT_COLOURS = {
    Verdict.BETTER: BETTER,
    Verdict.WORSE: WORSE,
    Verdict.EQUIVALENT: EQUIVALENT,
    Verdict.INCONCLUSIVE: INCONCLUSIVE,
    Verdict.NOT_TESTED: INCONCLUSIVE,
    Verdict.IDENTICAL: EQUIVALENT,
}

VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    RULE: "rule",
    BAND: "band",
    BASELINE: "baseline",
    PAPER: "paper",
    BETTER: "better",
    WORSE: "worse",
    EQUIVALENT: "equivalent",
    INCONCLUSIVE: "inconclusive",
}
"""Colour in the SVG → the page's CSS variable (without its dashes) that replaces it."""


# Round numbers for an axis.

_MOST = 5


def axis_marks(low: float, high: float) -> list[float]:
    """From `low` to `high`: two to five steps of 1, 2 or 5 times a power of ten."""
    size = 10.0 ** math.floor(math.log10(high - low))
    step = next(part * size for part in (0.2, 0.5, 1.0, 2.0) if (high - low) / (part * size) <= _MOST)
    first = math.ceil(low / step)
    return [round(place * step, 12) for place in range(first, math.floor(high / step) + 1)]


# One metric at every level: bars from zero, each with the samples of its trials.

LEVEL_WIDTH = 320
_ROW = 42
_TALL_ROW = 58
"""Where a level's name and its result do not fit beside each other, the result goes below the name."""
_CELLS = 46
"""Character cells of text of 12 pixels in the width."""


def level_chart(metric: MetricLevels, name: str) -> str:
    """The chart as an SVG element."""
    title = f"{metric.workload}, {metric.metric}: every level"
    return inline_svg(_level_chart(metric), name, title, level_description(metric))


def level_description(metric: MetricLevels) -> str:
    """What the chart shows, in words."""
    values = (number_format.quantity(level.value, metric.unit) for level in metric.levels)
    levels = "; ".join(
        f"{level.treatment}: {value}" for level, value in zip(metric.levels, values, strict=True)
    )
    return f"{metric_name(metric.metric, metric.unit)} ({DIRECTIONS[metric.direction]}). {levels}."


def _level_chart(metric: MetricLevels) -> Specification:
    numbers = [value for level in metric.levels for value in (level.value or 0.0, *level.samples)]
    highest = max(filter(math.isfinite, numbers), default=0.0)
    scale, unit = number_format.time_scale(highest, metric.unit)
    rows = [_level_row(position, level, metric.unit, scale) for position, level in enumerate(metric.levels)]
    points = [
        {"row": position, "value": value * scale}
        for position, level in enumerate(metric.levels)
        for value in level.samples
        if math.isfinite(value)
    ]
    tall = any(len(row["label"]) + len(row["result"]) + 2 > _CELLS for row in rows)
    axis = _LevelAxis(_level_domain(rows, points), unit)
    return layered(
        [
            *_bars(rows, points, row_encoding(len(rows)), axis, tall),
            *_labels(rows, row_encoding(len(rows)), tall),
        ],
        width=LEVEL_WIDTH,
        height=(_TALL_ROW if tall else _ROW) * len(rows),
        autosize={"type": "none"},
        padding={"left": 1, "right": 1, "top": 0, "bottom": 22},
    )


def _level_row(position: int, level: Level, unit: str, scale: float) -> dict[str, Any]:
    verdict = level.comparison.verdict if level.comparison else None
    samples = [value * scale for value in level.samples if math.isfinite(value)]
    return {
        "row": position,
        "value": level.value * scale if level.value is not None and math.isfinite(level.value) else None,
        "label": shortened(level.treatment, _CELLS),
        "result": _result(level, unit),
        "least": min(samples, default=None),
        "most": max(samples, default=None),
        "colour": VERDICT_COLOURS[verdict] if verdict else BASELINE,
        "opacity": 0.5 if verdict is Verdict.INCONCLUSIVE else 1,
        "ink": VERDICT_COLOURS[verdict] if verdict else MUTED,
    }


def _result(level: Level, unit: str) -> str:
    value = number_format.quantity(level.value, unit)
    if level.comparison is None:
        return value
    symbol = VERDICTS[level.comparison.verdict].symbol
    change = number_format.step(level.comparison.ratio, level.value, unit)
    return f"{value}{number_format.SPACE * 3}{symbol}{number_format.SPACE}{change}"


def _level_domain(rows: list[dict[str, Any]], points: list[dict[str, Any]]) -> list[float]:
    values = [row["value"] for row in (*rows, *points) if row["value"] is not None]
    low, high = min([0.0, *values]), max([0.0, *values])
    return [low, high * 1.02 if high > low else 1.0]


def _ticks(domain: list[float]) -> list[float]:
    """Zero and up to four round numbers, none so near to an end that its label would be cut off."""
    rough = (domain[1] - domain[0]) / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * digit for digit in (1, 2, 2.5, 5, 10) if unit * digit >= rough)
    room = 0.08 * (domain[1] - domain[0])
    first, last = math.ceil((domain[0] + room) / step), math.floor((domain[1] - room) / step)
    return sorted({0.0, *(place * step for place in range(first, last + 1))})


class _LevelAxis(NamedTuple):
    """The axis along which values lie, the same in every layer."""

    domain: list[float]
    unit: str
    """Of times: that in which all of them are drawn; empty for other values."""

    def x(self, field: str) -> Specification:
        """The encoding of a field."""
        suffix = f"{number_format.SPACE}{self.unit}" if self.unit else ""
        axis = {
            "values": _ticks(self.domain), "format": ".3~s" if self.domain[1] >= 10_000 else ",.4~r",
            "labelExpr": f"datum.value ? datum.label + '{suffix}' : '0'",
            "grid": False, "domainColor": RULE, "tickColor": RULE, "tickSize": 4, "title": None,
            "labelPadding": 3, "labelFlush": True, "labelColor": MUTED, "labelFontSize": 11,
        }  # fmt: skip
        return quantitative(field, scale={"domain": self.domain, "nice": False}, axis=axis)


def _bars(
    rows: list[dict[str, Any]], points: list[dict[str, Any]], y: Specification, axis: _LevelAxis, tall: bool
) -> tuple[Specification, ...]:
    down = 17 if tall else 9
    bar = {
        "x": axis.x("value"),
        "y": y,
        "color": as_it_is("colour"),
        "opacity": quantitative("opacity", scale=None),
    }
    reach = {"x": axis.x("least"), "x2": {"field": "most"}, "y": y}
    samples = {"x": axis.x("value"), "y": y}
    return (
        {
            **layer(rows, "bar", bar, height=8, yOffset=down),
            "transform": [{"filter": "isValid(datum.value)"}],
        },
        layer(rows, "rule", reach, strokeWidth=1.5, color=INK, yOffset=down),
        layer(
            points, "point", samples,
            filled=True, size=26, color=INK, stroke=PAPER, strokeWidth=1, opacity=1, yOffset=down,
        ),
    )  # fmt: skip


def _labels(rows: list[dict[str, Any]], y: Specification, tall: bool) -> tuple[Specification, ...]:
    left = {"text": text_of("label"), "x": {"value": 0}, "y": y}
    right = {
        "text": text_of("result"),
        "x": {"value": 0 if tall else LEVEL_WIDTH},
        "y": y,
        "color": as_it_is("ink"),
    }
    align = "left" if tall else "right"
    return (
        layer(rows, "text", left, align="left", dy=-17 if tall else -8, fontSize=12, color=INK),
        layer(rows, "text", right, align=align, dy=-1 if tall else -8, fontSize=12),
    )


# Speed-up over CPUs: one workload, a line a treatment, and the line on which every CPU counts in full.

_SCALING_WIDTH, _SCALING_HEIGHT = 300, 220
_ROOM = 150
"""Pixels to the right, for the treatments' names."""
_NAME = 22
_APART = 14
"""Pixels between two names."""

_MARKS = (
    (INK, [1, 0], "circle"),
    (MUTED, [6, 3], "square"),
    (BASELINE, [2, 2], "triangle-up"),
    (INK, [2, 4], "diamond"),
)
"""Colour, dashes and shape of the lines, by turns: verdicts' colours mean verdicts."""


def scaling_chart(curves: Sequence[ScalingCurve], name: str) -> str:
    """The chart of one workload's curves as an SVG element."""
    title = f"{curves[0].workload}: speed-up over CPUs"
    return inline_svg(_scaling_chart(curves), name, title, scaling_description(curves))


def scaling_description(curves: Sequence[ScalingCurve]) -> str:
    """What the chart shows, in words."""
    lines = (
        f"{curve.treatment or curve.workload}: "
        + ", ".join(f"{point.speed_up:.2f} at {point.cpus}" for point in curve.points)
        for curve in curves
    )
    return f"Speed-up by the number of CPUs. {'; '.join(lines)}."


def _scaling_chart(curves: Sequence[ScalingCurve]) -> Specification:
    counts = sorted({point.cpus for curve in curves for point in curve.points})
    highest = max(point.speed_up for curve in curves for point in curve.points)
    scales = _Scales(counts, max(highest, counts[-1] / counts[0]) * 1.04)
    return layered(
        [
            _perfect(scales, counts),
            *(part for place, curve in enumerate(curves) for part in _line(scales, curve, place)),
            _names(scales, curves),
        ],
        width=_SCALING_WIDTH,
        height=_SCALING_HEIGHT,
        autosize={"type": "none"},
        padding={"left": 38, "right": _ROOM, "top": 8, "bottom": 36},
    )


class _Scales:
    """Both axes, the same in every layer."""

    def __init__(self, counts: Sequence[int], most: float) -> None:
        self._counts, self.most = counts, most

    def x(self) -> Specification:
        """CPUs, each that was measured with its number."""
        scale = {"domain": [0, self._counts[-1]], "nice": False}
        axis = self._axis("CPUs", values=list(self._counts), format="d")
        return quantitative("cpus", scale=scale, axis=axis)

    def y(self, field: str) -> Specification:
        """Speed-up, from zero."""
        scale = {"domain": [0, self.most], "nice": False}
        return quantitative(field, scale=scale, axis=self._axis("speed-up", tickCount=5))

    def _axis(self, title: str, **more: Any) -> Specification:
        return {
            "title": title, "grid": False, "domainColor": RULE, "tickColor": RULE, "tickSize": 4,
            "labelColor": MUTED, "labelFontSize": 11, "titleColor": MUTED, "titleFontSize": 11,
            "titleFontWeight": "normal", **more,
        }  # fmt: skip


def _perfect(scales: _Scales, counts: Sequence[int]) -> Specification:
    ends = [{"cpus": cpus, "speed_up": cpus / counts[0]} for cpus in (counts[0], counts[-1])]
    return layer(ends, "line", {"x": scales.x(), "y": scales.y("speed_up")}, color=RULE, strokeWidth=1)


def _line(scales: _Scales, curve: ScalingCurve, place: int) -> tuple[Specification, ...]:
    colour, dashes, shape = _MARKS[place % len(_MARKS)]
    first = curve.points[0].value
    rows = [
        {
            "cpus": point.cpus,
            "speed_up": point.speed_up,
            **_reach(point.lowest / first, point.highest / first, curve.direction),
        }
        for point in curve.points
    ]
    reach = {"x": scales.x(), "y": scales.y("low"), "y2": {"field": "high"}}
    line = {"x": scales.x(), "y": scales.y("speed_up")}
    return (
        layer(rows, "rule", reach, color=colour, strokeWidth=1),
        layer(rows, "line", line, color=colour, strokeWidth=1.5, strokeDash=dashes),
        layer(rows, "point", line, filled=True, size=36, color=colour, shape=shape, opacity=1),
    )


def _reach(lowest: float, highest: float, direction: Direction) -> dict[str, float]:
    """Speed-up under the seeds, by the smallest and the largest value: a shorter time is a larger one."""
    if direction is Direction.LOWER:
        lowest, highest = 1 / highest, 1 / lowest
    return {"low": lowest, "high": highest}


def _names(scales: _Scales, curves: Sequence[ScalingCurve]) -> Specification:
    """Each treatment's name at its line's end, no two upon each other."""
    apart, above = _APART / _SCALING_HEIGHT * scales.most, float("inf")
    rows = []
    for curve in sorted(curves, key=lambda curve: -curve.points[-1].speed_up):
        above = min(curve.points[-1].speed_up, above - apart)
        text = shortened(curve.treatment or curve.workload, _NAME)
        rows.append({"cpus": curve.points[-1].cpus, "at": above, "name": text})
    encoding = {"x": scales.x(), "y": scales.y("at"), "text": text_of("name")}
    return layer(rows, "text", encoding, align="left", dx=9, fontSize=12, color=INK, baseline="middle")
