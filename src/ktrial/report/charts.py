"""Charts as inline SVG: drawn by Altair and vl-convert, or by hand where each mark has its exact place."""

import math
import re
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ktrial.format import number_format
from ktrial.format.labels import DIRECTIONS, VERDICTS
from ktrial.format.sanitize import one_line, shortened
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.parallel import ScalingCurve
from ktrial.report.study_summary import Level, MetricLevels, TreatmentComparisons
from ktrial.report.study_summary import row_names as row_names_of

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
EQUIVALENT = "#6b7480"
INCONCLUSIVE = "#6a7381"

VERDICT_COLOURS = {
    Verdict.BETTER: BETTER,
    Verdict.WORSE: WORSE,
    Verdict.EQUIVALENT: EQUIVALENT,
    Verdict.INCONCLUSIVE: INCONCLUSIVE,
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
    levels = "; ".join(f"{level.treatment}: {number_format.number(level.value)}" for level in metric.levels)
    return f"{metric.unit} ({DIRECTIONS[metric.direction]}). {levels}."


def _level_chart(metric: MetricLevels) -> Drawing:
    import altair

    rows = [_level_row(position, level) for position, level in enumerate(metric.levels)]
    points = [
        {"row": position, "value": value}
        for position, level in enumerate(metric.levels)
        for value in level.samples
        if math.isfinite(value)
    ]
    tall = any(len(row["label"]) + len(row["result"]) + 2 > _CELLS for row in rows)
    y = row_encoding(altair, len(rows))
    lines = altair.Chart(altair.InlineData(values=rows)).encode(y=y)
    marks = altair.Chart(altair.InlineData(values=points)).encode(y=y)
    chart = altair.layer(
        *_bars(altair, lines, marks, _level_domain(rows, points), tall), *_labels(altair, lines, tall)
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


def _level_row(position: int, level: Level) -> dict[str, Any]:
    verdict = level.comparison.verdict if level.comparison else None
    return {
        "row": position,
        "value": level.value if level.value is not None and math.isfinite(level.value) else None,
        "label": shortened(level.treatment, _CELLS),
        "result": _result(level),
        "least": min(filter(math.isfinite, level.samples), default=None),
        "most": max(filter(math.isfinite, level.samples), default=None),
        "colour": VERDICT_COLOURS[verdict] if verdict else BASELINE,
        "opacity": 0.5 if verdict is Verdict.INCONCLUSIVE else 1,
        "ink": VERDICT_COLOURS[verdict] if verdict else MUTED,
    }


def _result(level: Level) -> str:
    if level.comparison is None:
        return number_format.number(level.value)
    symbol = VERDICTS[level.comparison.verdict].symbol
    change = number_format.step(level.comparison.ratio, level.value)
    return (
        f"{number_format.number(level.value)}{number_format.SPACE * 3}{symbol}{number_format.SPACE}{change}"
    )


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


def _x(altair: Any, field: str, domain: list[float]) -> Any:
    axis = altair.Axis(
        values=_ticks(domain), format=".3~s" if domain[1] >= 10_000 else ",.4~r",
        labelExpr="datum.value ? datum.label : '0'",
        grid=False, domainColor=RULE, tickColor=RULE, tickSize=4, title=None, labelPadding=3,
        labelFlush=True, labelColor=MUTED, labelFontSize=11,
    )  # fmt: skip
    return altair.X(f"{field}:Q", scale=altair.Scale(domain=domain, nice=False), axis=axis)


def _bars(altair: Any, lines: Any, marks: Any, domain: list[float], tall: bool) -> tuple[Any, ...]:
    down = 17 if tall else 9
    bar = lines.transform_filter("isValid(datum.value)").mark_bar(height=8, yOffset=down)
    reach = lines.mark_rule(strokeWidth=1.5, color=INK, yOffset=down)
    samples = marks.mark_point(
        filled=True, size=26, color=INK, stroke=PAPER, strokeWidth=1, opacity=1, yOffset=down
    )
    return (
        bar.encode(
            x=_x(altair, "value", domain),
            color=altair.Color("colour:N", scale=None),
            opacity=altair.Opacity("opacity:Q", scale=None),
        ),
        reach.encode(x=_x(altair, "least", domain), x2="most:Q"),
        samples.encode(x=_x(altair, "value", domain)),
    )


def _labels(altair: Any, lines: Any, tall: bool) -> tuple[Any, ...]:
    left = lines.mark_text(align="left", dy=-17 if tall else -8, fontSize=12, color=INK)
    right = lines.mark_text(align="left" if tall else "right", dy=-1 if tall else -8, fontSize=12)
    return (
        left.encode(text="label:N", x=altair.value(0)),
        right.encode(
            text="result:N",
            x=altair.value(0 if tall else LEVEL_WIDTH),
            color=altair.Color("ink:N", scale=None),
        ),
    )


# The overview: every ratio to the baseline with its interval, on a log axis, with the margin as a band.

SHAPES = {
    Verdict.BETTER: "circle",
    Verdict.WORSE: "diamond",
    Verdict.EQUIVALENT: "square",
    Verdict.INCONCLUSIVE: "circle",
    Verdict.IDENTICAL: "square",
}
"""The inconclusive one is hollow."""

_STEPS = (0.001, 0.003, 0.005, 0.01, 0.03, 0.05, 0.1, 0.3, 0.5, 1.0, 3.0, 9.0, 99.0, 999.0)
"""Relative changes that may be marked on the axis, upwards; downwards their reciprocals lie as far away."""
FARTHEST = 1000.0
"""Ratios beyond this, or below its reciprocal, are drawn at the edge."""


class Layout(NamedTuple):
    """Where things go, in pixels."""

    width: int
    """Of the plot itself."""
    left: int
    right: int
    row: int
    cells: int
    """Character cells for a row's name; 0: the names stand in the drawing to the left."""
    name_above: bool = False
    """Name and result above the interval, not beside it."""
    intervals: bool = False
    """Intervals in figures as well."""
    top: int = 4
    """More than this: the treatment's name stands above the plot."""


ALONE = Layout(width=420, left=240, right=240, row=26, cells=29, intervals=True)
"""One treatment on a wide screen."""
NARROW = Layout(width=320, left=1, right=1, row=38, cells=33, name_above=True)
"""One treatment on a narrow screen, or among others."""
_BESIDE = 960
"""Width of the drawings that stand beside each other."""
_NAMES = 200
_RESULT = 96


def rows_of_panels(names: list[str]) -> list[list[Layout]]:
    """Layouts for treatments beside each other, up to four a row: as many as leave room for their names.

    A row's first one has the workloads. All drawings of a row are as wide as their layouts together, so that
    lines meet.
    """
    longest = max(len(one_line(name)) for name in names)
    most = next((many for many in (4, 3, 2) if longest <= _title_cells(_panel(many))), 1)
    rows = math.ceil(len(names) / most)
    beside = math.ceil(len(names) / rows)
    first, following = _panel(beside), _panel(beside)._replace(left=10, cells=0)
    layouts = [first if place % beside == 0 else following for place in range(len(names))]
    return [layouts[start : start + beside] for start in range(0, len(names), beside)]


def _panel(beside: int) -> Layout:
    plot = (_BESIDE - _NAMES) // beside - _RESULT - 10
    return Layout(plot, _NAMES, _RESULT, row=26, cells=24, top=30)


def _title_cells(layout: Layout) -> int:
    """Character cells of bold text of 13 pixels above a panel."""
    return (layout.width + layout.right) // 9


def ratio_chart(
    group: TreatmentComparisons,
    every: tuple[TreatmentComparisons, ...],
    margin: float,
    layout: Layout,
    name: str,
) -> str:
    """The intervals of one treatment as an SVG element, on the axis that all of `every` fit on."""
    domain = _domain(every, margin)
    title = f"{group.treatment} compared with {group.baseline}: change of every metric"
    return inline_svg(
        lambda: _ratio_chart(group, domain, margin, layout), name, title, ratio_description(group)
    )


def ratio_description(group: TreatmentComparisons) -> str:
    """What the chart shows, in words."""
    return "; ".join(
        f"{name}: {number_format.step(comparison.ratio, comparison.value)}, {comparison.verdict}"
        for name, comparison in zip(group_row_names(group), group.comparisons, strict=True)
    )


def group_row_names(group: TreatmentComparisons) -> tuple[str, ...]:
    """The workload's name; with the metric where the workload has several."""
    return row_names_of([(comparison.workload, comparison.metric) for comparison in group.comparisons])


def _domain(every: tuple[TreatmentComparisons, ...], margin: float) -> tuple[float, float]:
    ends = [
        _clamped(end)
        for group in every
        for comparison in group.comparisons
        for end in (comparison.ratio, comparison.low, comparison.high)
        if end is not None and not math.isnan(end)
    ]
    low, high = min([1 / (1 + 2 * margin), *ends]), max([1 + 2 * margin, *ends])
    low = max(low, 1 / FARTHEST)
    room = (high / low) ** 0.04
    return low / room, high * room


def _clamped(ratio: float) -> float:
    return min(max(ratio, 1 / FARTHEST), FARTHEST)


def _ratio_chart(
    group: TreatmentComparisons, domain: tuple[float, float], margin: float, layout: Layout
) -> Drawing:
    import altair

    rows = [
        _row(position, name, comparison, layout)
        for position, (name, comparison) in enumerate(
            zip(group_row_names(group), group.comparisons, strict=True)
        )
    ]
    scale = altair.Scale(type="log", domain=list(domain), nice=False)
    y = row_encoding(altair, len(rows))
    lines = altair.Chart(altair.InlineData(values=rows)).encode(y=y)
    chart = (
        altair.layer(
            *_ground(altair, scale, domain, margin, layout, len(rows)),
            *_intervals(altair, lines, scale, layout),
            *_texts(altair, lines, layout),
            *_title(altair, group, layout),
        )
        .resolve_scale(y="independent")
        .properties(
            width=layout.width,
            height=layout.row * len(rows),
            autosize=altair.AutoSizeParams(type="none"),
            padding={"left": layout.left, "right": layout.right, "top": layout.top, "bottom": 26},
        )
    )
    return styled(chart)


def _row(position: int, name: str, comparison: Comparison, layout: Layout) -> dict[str, Any]:
    ends = [end for end in (comparison.low, comparison.high) if end is not None and not math.isnan(end)]
    ratio = comparison.ratio
    spread = number_format.interval(comparison.low, comparison.high)
    return {
        "row": position,
        "ratio": _clamped(ratio) if ratio is not None and not math.isnan(ratio) else None,
        "low": _clamped(min(ends)) if ends else None,
        "high": _clamped(max(ends)) if ends else None,
        "name": shortened(name, layout.cells) if layout.cells else "",
        "result": f"{VERDICTS[comparison.verdict].symbol} {number_format.step(ratio, comparison.value)}",
        "spread": f"[{spread}]" if spread and layout.intervals else "",
        "colour": VERDICT_COLOURS[comparison.verdict],
        "fill": PAPER if comparison.verdict is Verdict.INCONCLUSIVE else VERDICT_COLOURS[comparison.verdict],
        "shape": SHAPES[comparison.verdict],
    }


def _ground(
    altair: Any, scale: Any, domain: tuple[float, float], margin: float, layout: Layout, rows: int
) -> tuple[Any, ...]:
    """The margin's band, the line of no change and the axis: behind the intervals, never behind text."""
    x = altair.X("at:Q", scale=scale, axis=None)
    every_row = range(rows) if layout.name_above else (0,)
    top = {True: 18, False: 0}[layout.name_above]
    tall = layout.row if layout.name_above else layout.row * rows
    ends = [{"top": row * tall + top, "end": (row + 1) * tall} for row in every_row]
    band = altair.Chart(
        altair.InlineData(values=[{"at": 1 / (1 + margin), "to": 1 + margin, **end} for end in ends])
    )
    none = altair.Chart(altair.InlineData(values=[{"at": 1.0, **end} for end in ends]))
    y = altair.Y(
        "top:Q", scale=altair.Scale(domain=[0, layout.row * rows], reverse=True, nice=False), axis=None
    )
    return (
        band.mark_rect(color=BAND, opacity=1).encode(x=x, x2="to:Q", y=y, y2="end:Q"),
        *_axis(altair, x, domain, layout, rows),
        none.mark_rule(color=MUTED).encode(x=x, y=y, y2="end:Q"),
    )


def _axis(altair: Any, x: Any, domain: tuple[float, float], layout: Layout, rows: int) -> tuple[Any, ...]:
    height = layout.row * rows
    ticks = altair.Chart(altair.InlineData(values=ticks_within(domain, most=max(2, layout.width // 55))))
    from_y = altair.value(height if layout.name_above else 0)
    return (
        ticks.mark_rule(color=RULE, strokeDash=[] if layout.name_above else [1, 3]).encode(
            x=x, y=from_y, y2=altair.value(height + 4)
        ),
        ticks.mark_text(fontSize=11, color=MUTED, baseline="top", dy=8).encode(
            x=x, y=altair.value(height), text="label:N"
        ),
    )


def ticks_within(domain: tuple[float, float], most: int = 7) -> list[dict[str, Any]]:
    """Ratios to mark on the axis: no change, and round changes whose labels fit beside each other."""
    reach = math.log(domain[1] / domain[0])
    first, last = domain[0] * math.exp(0.08 * reach), domain[1] / math.exp(0.08 * reach)
    placed = [1.0]
    for step in reversed(_STEPS):
        for ratio in (1 + step, 1 - step if step < 1 else 1 / (1 + step)):
            apart = min(abs(math.log(ratio / mark)) for mark in placed)
            if first <= ratio <= last and apart > reach / most:
                placed.append(ratio)
    return [{"at": ratio, "label": _tick_label(ratio)} for ratio in sorted(placed)]


def _tick_label(ratio: float) -> str:
    if ratio == 1:
        return "0"
    percent = (ratio - 1) * 100
    text = f"{abs(percent):.3g}" if abs(percent) < 1000 else f"{abs(percent):.0f}"
    return f"{'+' if percent > 0 else number_format.MINUS}{text}{number_format.SPACE}%"


def _intervals(altair: Any, lines: Any, scale: Any, layout: Layout) -> tuple[Any, ...]:
    down = 8 if layout.name_above else 0
    colour = altair.Color("colour:N", scale=None)
    reach = lines.mark_rule(strokeWidth=3, yOffset=down)
    point = lines.mark_point(size=56, strokeWidth=1.75, opacity=1, yOffset=down)
    return (
        reach.encode(x=altair.X("low:Q", scale=scale, axis=None), x2="high:Q", color=colour),
        point.encode(
            x=altair.X("ratio:Q", scale=scale, axis=None),
            stroke=altair.Stroke("colour:N", scale=None),
            fill=altair.Fill("fill:N", scale=None),
            shape=altair.Shape("shape:N", scale=None),
        ),
    )


def _texts(altair: Any, lines: Any, layout: Layout) -> tuple[Any, ...]:
    colour = altair.Color("colour:N", scale=None)
    if layout.name_above:
        name = lines.mark_text(align="left", dy=-8, fontSize=12, color=INK)
        result = lines.mark_text(align="right", dy=-8, fontSize=12)
        return (
            name.encode(text="name:N", x=altair.value(0)),
            result.encode(text="result:N", x=altair.value(layout.width), color=colour),
        )
    name = lines.mark_text(align="right", fontSize=13, color=INK)
    result = lines.mark_text(align="left", fontSize=13 if layout.intervals else 12)
    spread = lines.mark_text(align="left", fontSize=12, color=MUTED)
    texts = (
        name.encode(text="name:N", x=altair.value(-12)),
        result.encode(text="result:N", x=altair.value(layout.width + 10), color=colour),
        spread.encode(text="spread:N", x=altair.value(layout.width + 104)),
    )
    return tuple(
        text for text, shown in zip(texts, (layout.cells, True, layout.intervals), strict=True) if shown
    )


def _title(altair: Any, group: TreatmentComparisons, layout: Layout) -> tuple[Any, ...]:
    """The treatment's name above its panel, where panels stand beside each other."""
    if layout.name_above or layout.intervals:
        return ()
    name = shortened(group.treatment, _title_cells(layout))
    where = altair.Chart(altair.InlineData(values=[{"text": name}]))
    title = where.mark_text(align="left", fontSize=13, fontWeight=600, color=INK)
    return (title.encode(text="text:N", x=altair.value(0), y=altair.value(-15)),)


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
    unit = curve.points[0].throughput
    rows = [
        {
            "cpus": point.cpus,
            "speed_up": point.speed_up,
            "low": point.lowest / unit,
            "high": point.highest / unit,
        }
        for point in curve.points
    ]
    base = altair.Chart(altair.InlineData(values=rows)).encode(x=scales.x())
    reach = base.mark_rule(color=colour, strokeWidth=1).encode(y=scales.y("low"), y2="high:Q")
    line = base.mark_line(color=colour, strokeWidth=1.5, strokeDash=dashes).encode(y=scales.y("speed_up"))
    point = base.mark_point(filled=True, size=36, color=colour, shape=shape, opacity=1)
    return reach, line, point.encode(y=scales.y("speed_up"))


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
    return text.encode(x=scales.x(), y=scales.y("at"), text="name:N")
