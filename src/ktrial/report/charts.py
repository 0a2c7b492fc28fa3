"""Charts as inline SVG: drawn by Altair and vl-convert, or by hand where each mark has its exact place."""

import math
import re
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ktrial.format import number_format
from ktrial.format.labels import DIRECTIONS, VERDICTS, metric_name
from ktrial.format.sanitize import one_line, shortened
from ktrial.model.comparison import Verdict
from ktrial.model.parallel import ScalingCurve
from ktrial.model.workload import Direction
from ktrial.report.study_summary import Level, MetricLevels

if TYPE_CHECKING:
    import altair


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


# From an Altair chart to an SVG element that sits in a page: small, named, the same every time.

Drawing: TypeAlias = "altair.LayerChart | altair.FacetChart"
_TAG = re.compile(r"<[^<>]+>")
_NUMBER = re.compile(r"-?\d+\.\d{3,}")

_NOISE = re.compile(
    r' (?:role|aria-[a-z]+|class|pointer-events|stroke-miterlimit|version|xmlns:xlink)="[^"]*"|'
    # What a page's style sheet says, or is so without being said.
    r' font-family="sans-serif"| opacity="1"| text-anchor="start"'
)

_EMPTY = re.compile(r'<path d=""[^>]*/>|<path d="M0,0h0v0h0Z"[^>]*/>|<g></g>')
_ID = re.compile(r'(\bid="|url\(#|href="#)')
_SIZE = re.compile(r'<svg [^>]*viewBox="([^"]+)"[^>]*>')


def row_encoding(altair: Any, count: int) -> Any:
    """The encoding of the field `row`: so many rows below each other, as high as they are in every layer.

    Without the domain each layer has the rows that it draws: Vega-Lite takes those without a number out of a
    layer, and what remains moves up.
    """
    scale = altair.Scale(domain=list(range(count)), paddingInner=0, paddingOuter=0)
    return altair.Y("row:O", axis=None, scale=scale)


def inline_svg(draw: Callable[[], "Drawing"], name: str, title: str, description: str) -> str:
    """The chart as `<svg>`, its ids prefixed with `name`, with a title and a description for screen readers.

    No text in the chart may hold control characters (format.sanitize.one_line takes them out): vl-convert
    ends the whole process on one.
    """
    drawn = _TAG.sub(lambda tag: _cleaned(tag[0], name), as_svg(draw))
    while (emptied := _EMPTY.sub("", drawn)) != drawn:
        drawn = emptied
    return _SIZE.sub(lambda root: _opening(root[1], name, title, description), drawn, count=1)


def as_svg(draw: Callable[[], "Drawing"]) -> str:
    """The chart by vl-convert, without the comparisons of each of its parts with Vega-Lite's schema.

    These take more than half of the time; tests make them for every chart (`to_dict(validate=True)`).
    """
    from altair.utils import schemapi
    from altair.utils.mimebundle import spec_to_mimebundle

    with schemapi.debug_mode(False):
        spec = draw().to_dict(validate=False, context={"pre_transform": False})
    bundle = spec_to_mimebundle(spec, format="svg", mode="vega-lite")
    return str(bundle["image/svg+xml"])


def _cleaned(tag: str, name: str) -> str:
    short = _NUMBER.sub(lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), tag)
    return _ID.sub(rf"\g<1>{name}-", _NOISE.sub("", short))


def _opening(view_box: str, name: str, title: str, description: str) -> str:
    width, height = view_box.split()[2:]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view_box}" width="{width}" height="{height}" '
        f'role="img" aria-labelledby="{name}-title {name}-description">'
        f'<title id="{name}-title">{escape(one_line(title))}</title>'
        f'<desc id="{name}-description">{escape(one_line(description))}</desc>'
    )


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
    return inline_svg(lambda: _level_chart(metric), name, title, level_description(metric))


def level_description(metric: MetricLevels) -> str:
    """What the chart shows, in words."""
    values = (number_format.quantity(level.value, metric.unit) for level in metric.levels)
    levels = "; ".join(
        f"{level.treatment}: {value}" for level, value in zip(metric.levels, values, strict=True)
    )
    return f"{metric_name(metric.metric, metric.unit)} ({DIRECTIONS[metric.direction]}). {levels}."


def _level_chart(metric: MetricLevels) -> Drawing:
    import altair

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
    y = row_encoding(altair, len(rows))
    lines = altair.Chart(altair.InlineData(values=rows)).encode(y=y)
    marks = altair.Chart(altair.InlineData(values=points)).encode(y=y)
    chart = altair.layer(
        *_bars(lines, marks, _LevelAxis(altair, _level_domain(rows, points), unit), tall),
        *_labels(altair, lines, tall),
    )
    height = (_TALL_ROW if tall else _ROW) * len(rows)
    return styled(
        chart.properties(
            width=LEVEL_WIDTH,
            height=height,
            autosize=altair.AutoSizeParams(type="none"),
            padding={"left": 1, "right": 1, "top": 0, "bottom": 22},
        )
    )


def styled(chart: Drawing) -> Drawing:
    """The chart without background, frame and ARIA noise, in the page's type."""
    configured: Drawing = chart.configure(
        aria=False, background="transparent", font="sans-serif"
    ).configure_view(stroke=None)
    return configured


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

    altair: Any
    domain: list[float]
    unit: str
    """Of times: that in which all of them are drawn; empty for other values."""

    def x(self, field: str) -> Any:
        """The encoding of a field."""
        suffix = f"{number_format.SPACE}{self.unit}" if self.unit else ""
        axis = self.altair.Axis(
            values=_ticks(self.domain), format=".3~s" if self.domain[1] >= 10_000 else ",.4~r",
            labelExpr=f"datum.value ? datum.label + '{suffix}' : '0'",
            grid=False, domainColor=RULE, tickColor=RULE, tickSize=4, title=None, labelPadding=3,
            labelFlush=True, labelColor=MUTED, labelFontSize=11,
        )  # fmt: skip
        return self.altair.X(f"{field}:Q", scale=self.altair.Scale(domain=self.domain, nice=False), axis=axis)


def _bars(lines: Any, marks: Any, axis: _LevelAxis, tall: bool) -> tuple[Any, ...]:
    altair = axis.altair
    down = 17 if tall else 9
    bar = lines.transform_filter("isValid(datum.value)").mark_bar(height=8, yOffset=down)
    reach = lines.mark_rule(strokeWidth=1.5, color=INK, yOffset=down)
    samples = marks.mark_point(
        filled=True, size=26, color=INK, stroke=PAPER, strokeWidth=1, opacity=1, yOffset=down
    )
    return (
        bar.encode(
            x=axis.x("value"),
            color=altair.Color("colour:N", scale=None),
            opacity=altair.Opacity("opacity:Q", scale=None),
        ),
        reach.encode(x=axis.x("least"), x2=altair.X2("most:Q")),
        samples.encode(x=axis.x("value")),
    )


def _labels(altair: Any, lines: Any, tall: bool) -> tuple[Any, ...]:
    left = lines.mark_text(align="left", dy=-17 if tall else -8, fontSize=12, color=INK)
    right = lines.mark_text(align="left" if tall else "right", dy=-1 if tall else -8, fontSize=12)
    return (
        left.encode(text=altair.Text("label:N"), x=altair.XValue(0)),
        right.encode(
            text=altair.Text("result:N"),
            x=altair.XValue(0 if tall else LEVEL_WIDTH),
            color=altair.Color("ink:N", scale=None),
        ),
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
    return inline_svg(lambda: _scaling_chart(curves), name, title, scaling_description(curves))


def scaling_description(curves: Sequence[ScalingCurve]) -> str:
    """What the chart shows, in words."""
    lines = (
        f"{curve.treatment or curve.workload}: "
        + ", ".join(f"{point.speed_up:.2f} at {point.cpus}" for point in curve.points)
        for curve in curves
    )
    return f"Speed-up by the number of CPUs. {'; '.join(lines)}."


def _scaling_chart(curves: Sequence[ScalingCurve]) -> Drawing:
    import altair

    counts = sorted({point.cpus for curve in curves for point in curve.points})
    highest = max(point.speed_up for curve in curves for point in curve.points)
    scales = _Scales(altair, counts, max(highest, counts[-1] / counts[0]) * 1.04)
    chart = altair.layer(
        _perfect(altair, scales, counts),
        *(layer for place, curve in enumerate(curves) for layer in _line(altair, scales, curve, place)),
        _names(altair, scales, curves),
    )
    return styled(
        chart.properties(
            width=_SCALING_WIDTH,
            height=_SCALING_HEIGHT,
            autosize=altair.AutoSizeParams(type="none"),
            padding={"left": 38, "right": _ROOM, "top": 8, "bottom": 36},
        )
    )


class _Scales:
    """Both axes, the same in every layer."""

    def __init__(self, altair: Any, counts: Sequence[int], most: float) -> None:
        self._altair, self._counts, self.most = altair, counts, most

    def x(self) -> Any:
        """CPUs, each that was measured with its number."""
        return self._altair.X(
            "cpus:Q",
            scale=self._altair.Scale(domain=[0, self._counts[-1]], nice=False),
            axis=self._axis("CPUs", values=list(self._counts), format="d"),
        )

    def y(self, field: str) -> Any:
        """Speed-up, from zero."""
        scale = self._altair.Scale(domain=[0, self.most], nice=False)
        return self._altair.Y(f"{field}:Q", scale=scale, axis=self._axis("speed-up", tickCount=5))

    def _axis(self, title: str, **more: Any) -> Any:
        return self._altair.Axis(
            title=title, grid=False, domainColor=RULE, tickColor=RULE, tickSize=4,
            labelColor=MUTED, labelFontSize=11, titleColor=MUTED, titleFontSize=11,
            titleFontWeight="normal", **more,
        )  # fmt: skip


def _perfect(altair: Any, scales: _Scales, counts: Sequence[int]) -> Any:
    ends = [{"cpus": cpus, "speed_up": cpus / counts[0]} for cpus in (counts[0], counts[-1])]
    drawn = altair.Chart(altair.InlineData(values=ends)).mark_line(color=RULE, strokeWidth=1)
    return drawn.encode(x=scales.x(), y=scales.y("speed_up"))


def _line(altair: Any, scales: _Scales, curve: ScalingCurve, place: int) -> tuple[Any, ...]:
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
    base = altair.Chart(altair.InlineData(values=rows)).encode(x=scales.x())
    reach = base.mark_rule(color=colour, strokeWidth=1).encode(y=scales.y("low"), y2=altair.Y2("high:Q"))
    line = base.mark_line(color=colour, strokeWidth=1.5, strokeDash=dashes).encode(y=scales.y("speed_up"))
    point = base.mark_point(filled=True, size=36, color=colour, shape=shape, opacity=1)
    return reach, line, point.encode(y=scales.y("speed_up"))


def _reach(lowest: float, highest: float, direction: Direction) -> dict[str, float]:
    """Speed-up under the seeds, by the smallest and the largest value: a shorter time is a larger one."""
    if direction is Direction.LOWER:
        lowest, highest = 1 / highest, 1 / lowest
    return {"low": lowest, "high": highest}


def _names(altair: Any, scales: _Scales, curves: Sequence[ScalingCurve]) -> Any:
    """Each treatment's name at its line's end, no two upon each other."""
    apart, above = _APART / _SCALING_HEIGHT * scales.most, float("inf")
    rows = []
    for curve in sorted(curves, key=lambda curve: -curve.points[-1].speed_up):
        above = min(curve.points[-1].speed_up, above - apart)
        text = shortened(curve.treatment or curve.workload, _NAME)
        rows.append({"cpus": curve.points[-1].cpus, "at": above, "name": text})
    chart = altair.Chart(altair.InlineData(values=rows))
    text = chart.mark_text(align="left", dx=9, fontSize=12, color=INK, baseline="middle")
    return text.encode(x=scales.x(), y=scales.y("at"), text=altair.Text("name:N"))
