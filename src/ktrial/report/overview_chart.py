"""The overview of a study: every ratio to the baseline with its interval, on a log axis, with the margin as a
band. One panel a treatment; many are small multiples on one axis.

The axis serves the workloads' own metrics, and the margin: what does not fit on it is marked at its edge.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from markupsafe import Markup

from ktrial.format import number_format
from ktrial.format.labels import VERDICTS
from ktrial.format.sanitize import one_line, shortened
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.study import StudyRecord
from ktrial.model.workload import BESIDE_THE_OWN
from ktrial.report import study_summary
from ktrial.report.charts import (
    BAND,
    INK,
    MUTED,
    PAPER,
    RULE,
    VERDICT_COLOURS,
)
from ktrial.report.study_summary import TreatmentComparisons, own_rows
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

# Panels, and where things go in them.


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


class Panel(NamedTuple):
    """The intervals of one treatment."""

    treatment: str
    width: int
    """In pixels, as drawn."""
    drawing: Markup


class Overview(NamedTuple):
    """All ratios, drawn twice."""

    wide: list[list[Panel]]
    """Rows of panels beside each other."""
    narrow: list[Panel]
    """For a narrow screen."""
    has_beyond: bool
    """Whether a change is beyond the axis."""


def overview(record: StudyRecord) -> Overview:
    """A panel a treatment, all on one axis."""
    every, margin = study_summary.groups(record), record.study.margin
    axis_of = cache(partial(ratio_axis, every, margin))

    def panel(number: int, layout: Layout, name: str) -> Panel:
        group = every[number]
        drawing = ratio_chart(group, axis_of(layout.width), layout, f"{name}-{number + 1}")
        return Panel(group.treatment, layout.left + layout.width + layout.right, Markup(drawing))

    rows = rows_of_panels(every, margin) if len(every) > 1 else [[ALONE]] * len(every)
    numbers = iter(range(len(every)))
    ratios = [row.ratio for group in every for row in own_rows(group.comparisons) if row.ratio is not None]
    axes = [axis_of(layout.width) for layout in (NARROW, *(row[0] for row in rows[:1]))]
    return Overview(
        has_beyond=any(axis.clamped(ratio) != ratio for axis in axes for ratio in ratios),
        wide=[[panel(next(numbers), layout, "wide") for layout in row] for row in rows],
        narrow=[panel(number, NARROW, "narrow") for number in range(len(every))],
    )


def rows_of_panels(every: Sequence[TreatmentComparisons], margin: float) -> list[list[Layout]]:
    """Layouts for treatments beside each other, up to three a row: as many as leave room for their names, and
    for an axis on which everything is; where none is so wide, as many as leave room for their names.

    A row's first one has the workloads. All drawings of a row are as wide as their layouts together, so that
    lines meet.
    """
    longest = max(len(one_line(group.treatment)) for group in every)
    named = [beside for beside in (3, 2) if longest <= _title_cells(_panel(beside))] or [1]
    most = next(
        (beside for beside in (*named, 1) if ratio_axis(every, margin, _panel(beside).width).is_whole),
        named[0],
    )
    rows = math.ceil(len(every) / most)
    beside = math.ceil(len(every) / rows)
    first, following = _panel(beside), _panel(beside)._replace(left=_BETWEEN, cells=0)
    layouts = [first if place % beside == 0 else following for place in range(len(every))]
    return [layouts[start : start + beside] for start in range(0, len(every), beside)]


_BETWEEN = 10


def _panel(beside: int) -> Layout:
    plot = (_BESIDE - _NAMES) // beside - _RESULT - _BETWEEN
    return Layout(plot, _NAMES, _RESULT, row=26, cells=24, top=30)


def _title_cells(layout: Layout) -> int:
    """Character cells of bold text of 13 pixels above a panel."""
    return (layout.width + layout.right) // 9


# The axis: where it begins and ends, and which changes are marked on it.

LEAST_BAND = 10
"""Pixels of the margin's band: on the smallest screens a drawing is two thirds as large, and 6 are left."""
FARTHEST = 1000.0
"""Ratios beyond this, or below its reciprocal, are on no axis."""
_LABEL = 7.5
"""Pixels of a character below the axis."""


class RatioAxis(NamedTuple):
    """From the lowest ratio to the highest that a plot of this width shows, and the margin."""

    low: float
    high: float
    margin: float
    width: int
    is_whole: bool
    """Whether every interval of a workload's own metric is on it."""

    def place(self, ratio: float) -> float:
        """Pixels from its left end."""
        return math.log(ratio / self.low) / math.log(self.high / self.low) * self.width

    def clamped(self, ratio: float) -> float:
        """The ratio, or the end beyond which it lies."""
        return min(max(ratio, self.low), self.high)


def ratio_axis(every: Sequence[TreatmentComparisons], margin: float, width: int) -> RatioAxis:
    """The axis for all of these in plots of one width: as long as the workloads' own metrics need it, and the
    margin's band leaves room.

    Where not all are on it, it has as many changes as it can, and of those as many as lie nearest to none.
    """
    band = 2 * math.log1p(margin)
    longest = band * width / LEAST_BAND
    rows = [row for group in every for row in own_rows(group.comparisons)]
    main = [row for row in rows if row.metric not in BESIDE_THE_OWN] or rows
    ends = [end for row in main for end in (row.ratio, row.low, row.high) if _is_on_an_axis(end)]
    least, most = _around(ends, band)
    if most - least <= longest:
        whole = len(ends) == sum(end is not None for row in main for end in (row.ratio, row.low, row.high))
        return RatioAxis(math.exp(least), math.exp(most), margin, width, whole)
    changes = [math.log(row.ratio) for row in main if row.ratio and _is_on_an_axis(row.ratio)]
    room = 0.04 * longest
    starts = {change - room for change in changes} | {change + room - longest for change in changes}
    allowed = [start for start in {*starts, -longest / 2} if band - longest <= start <= -band]

    changes.sort()

    def suits(start: float) -> tuple[int, float]:
        from_here, to_here = start + room / 2, start + longest - room / 2
        count = bisect_right(changes, to_here) - bisect_left(changes, from_here)
        return count, -abs(start + longest / 2)

    start = max(allowed, key=suits)
    low, high = math.exp(start), math.exp(start + longest)
    # What is on it may need less: then the band is wider.
    shown = [row for row in main if row.ratio and low <= row.ratio <= high]
    ends = [end for row in shown for end in (row.ratio, row.low, row.high) if _is_on_an_axis(end)]
    least, most = _around([min(max(end or 1.0, low), high) for end in ends], band)
    least, most = max(least, start), min(most, start + longest)
    return RatioAxis(math.exp(least), math.exp(most), margin, width, is_whole=False)


def _is_on_an_axis(ratio: float | None) -> bool:
    return ratio is not None and not math.isnan(ratio) and 1 / FARTHEST <= ratio <= FARTHEST


def _around(ratios: Sequence[float | None], band: float) -> tuple[float, float]:
    """Logarithms of the ends of an axis that has all of these, and twice the margin, with some room."""
    logs = [math.log(ratio) for ratio in ratios if ratio]
    low, high = min([-band, *logs]), max([band, *logs])
    room = 0.04 * (high - low)
    return low - room, high + room


class MarkedChange(NamedTuple):
    """A change that is marked on the axis."""

    at: float
    """The ratio."""
    label: str


def ticks_on(axis: RatioAxis, *, left: float = 0.0, right: float = 0.0) -> list[MarkedChange]:
    """No change, and round changes whose labels have room beside each other.

    `left`, `right`: pixels beside the plot that labels may reach into.
    """
    ticks = [MarkedChange(1.0, "0")]
    for change in _round_changes():
        for ratio in (1 + change, 1 - change if change < 1 else 1 / (1 + change)):
            tick, at = MarkedChange(ratio, _tick_label(ratio)), axis.place(ratio)
            half = _LABEL * len(tick.label) / 2
            free = all(
                abs(at - axis.place(other.at)) > half + _LABEL * len(other.label) / 2 + 8 for other in ticks
            )
            if free and 4 <= at <= axis.width - 4 and half - left <= at <= axis.width + right - half:
                ticks.append(tick)
    return sorted(ticks)


def _round_changes() -> list[float]:
    """From the largest one on the axis downwards; downwards of 1 their reciprocals lie as far away."""
    small = [digit * 10.0**power for power in range(-1, -5, -1) for digit in (5, 2, 1)]
    return [999.0, 99.0, 9.0, 3.0, 1.0, *small]


def _tick_label(ratio: float) -> str:
    percent = (ratio - 1) * 100
    text = f"{abs(percent):.3g}" if abs(percent) < 1000 else f"{abs(percent):.0f}"
    return f"{'+' if percent > 0 else number_format.MINUS}{text}{number_format.SPACE}%"


# The chart of one treatment.

SHAPES = {
    Verdict.BETTER: "circle",
    Verdict.WORSE: "diamond",
    Verdict.EQUIVALENT: "square",
    Verdict.INCONCLUSIVE: "circle",
    Verdict.NOT_TESTED: "cross",
    Verdict.IDENTICAL: "square",
}
"""The inconclusive one is hollow."""
BEYOND = {-1: "triangle-left", 1: "triangle-right"}
"""What stands at the edge for a change beyond the axis."""


def ratio_chart(group: TreatmentComparisons, axis: RatioAxis, layout: Layout, name: str) -> str:
    """The intervals of one treatment as an SVG element."""
    title = f"{group.treatment} compared with {group.baseline}: change of every metric"
    return inline_svg(_ratio_chart(group, axis, layout), name, title, ratio_description(group))


def ratio_description(group: TreatmentComparisons) -> str:
    """What the chart shows, in words."""
    rows = own_rows(group.comparisons)
    return "; ".join(
        f"{name}: {_change(row)}, {row.verdict}" for name, row in zip(_row_names(rows), rows, strict=True)
    )


def _row_names(rows: Sequence[Comparison]) -> tuple[str, ...]:
    """The workload's name; with the metric where the workload has several."""
    return study_summary.row_names([(row.workload, row.metric) for row in rows])


def _change(comparison: Comparison) -> str:
    """`+13.78 %`; where there is no ratio, what it came to."""
    return number_format.step(comparison.ratio, comparison.value, comparison.unit)


def _ratio_chart(group: TreatmentComparisons, axis: RatioAxis, layout: Layout) -> Specification:
    every = own_rows(group.comparisons)
    rows = [
        _row(position, name, row, axis, layout)
        for position, (name, row) in enumerate(zip(_row_names(every), every, strict=True))
    ]
    scale = {"type": "log", "domain": [axis.low, axis.high], "nice": False}
    return layered(
        [
            *_ground(scale, axis, layout, len(rows)),
            *_intervals(rows, scale, layout),
            *_texts(rows, layout),
            *_title(group, layout),
        ],
        resolve={"scale": {"y": "independent"}},
        width=layout.width,
        height=layout.row * len(rows),
        autosize={"type": "none"},
        padding={"left": layout.left, "right": layout.right, "top": layout.top, "bottom": 26},
    )


def _row(position: int, name: str, row: Comparison, axis: RatioAxis, layout: Layout) -> dict[str, Any]:
    ends = [end for end in (row.low, row.high) if end is not None and not math.isnan(end)]
    # An interval that is wholly beyond the axis has no place on it.
    shown = ends and min(ends) <= axis.high and max(ends) >= axis.low
    ratio = None if row.ratio is None or math.isnan(row.ratio) else row.ratio
    beyond = 0 if ratio is None else (ratio > axis.high) - (ratio < axis.low)
    spread = number_format.interval(row.low, row.high)
    return {
        "row": position,
        "ratio": axis.clamped(ratio) if ratio is not None else None,
        "low": axis.clamped(min(ends)) if shown else None,
        "high": axis.clamped(max(ends)) if shown else None,
        "name": shortened(name, layout.cells) if layout.cells else "",
        "result": f"{VERDICTS[row.verdict].symbol} {_change(row)}",
        # On the right the result itself stands beside the edge; a narrow row has no room above its interval.
        "edge": _change(row) if beyond < 0 and not (shown and layout.name_above) else "",
        "spread": f"[{spread}]" if spread and layout.intervals else "",
        "colour": VERDICT_COLOURS[row.verdict],
        "fill": PAPER if row.verdict is Verdict.INCONCLUSIVE else VERDICT_COLOURS[row.verdict],
        "shape": BEYOND[beyond] if beyond else SHAPES[row.verdict],
    }


def _ground(scale: Specification, axis: RatioAxis, layout: Layout, rows: int) -> tuple[Specification, ...]:
    """The margin's band, the line of no change and the axis: behind the intervals, never behind text."""
    x = quantitative("at", scale=scale, axis=None)
    every_row = range(rows) if layout.name_above else (0,)
    top = {True: 18, False: 0}[layout.name_above]
    tall = layout.row if layout.name_above else layout.row * rows
    ends = [{"top": row * tall + top, "end": (row + 1) * tall} for row in every_row]
    margin = {"at": 1 / (1 + axis.margin), "to": 1 + axis.margin}
    heights = {"domain": [0, layout.row * rows], "reverse": True, "nice": False}
    line = {"x": x, "y": quantitative("top", scale=heights, axis=None), "y2": {"field": "end"}}
    return (
        layer(
            [{**margin, **end} for end in ends],
            "rect",
            {**line, "x2": {"field": "to"}},
            color=BAND,
            opacity=1,
        ),
        *_marked(x, axis, layout, rows),
        layer([{"at": 1.0, **end} for end in ends], "rule", line, color=MUTED),
    )


def _marked(x: Specification, axis: RatioAxis, layout: Layout, rows: int) -> tuple[Specification, ...]:
    height = layout.row * rows
    marks = [tick._asdict() for tick in ticks_on(axis, left=layout.left, right=layout.right)]
    from_y = height if layout.name_above else 0
    tick = {"x": x, "y": {"value": from_y}, "y2": {"value": height + 4}}
    label = {"x": x, "y": {"value": height}, "text": text_of("label")}
    dashes = [] if layout.name_above else [1, 3]
    return (
        layer(marks, "rule", tick, color=RULE, strokeDash=dashes),
        layer(marks, "text", label, fontSize=11, color=MUTED, baseline="top", dy=8),
    )


def _intervals(rows: list[dict[str, Any]], scale: Specification, layout: Layout) -> tuple[Specification, ...]:
    down = 8 if layout.name_above else 0
    y, colour = row_encoding(len(rows)), as_it_is("colour")
    reach = {
        "x": quantitative("low", scale=scale, axis=None),
        "x2": {"field": "high"},
        "y": y,
        "color": colour,
    }
    point = {
        "x": quantitative("ratio", scale=scale, axis=None),
        "y": y,
        "stroke": as_it_is("colour"),
        "fill": as_it_is("fill"),
        "shape": as_it_is("shape"),
    }
    edge = {"text": text_of("edge"), "x": {"value": 0}, "y": y, "color": colour}
    # Above the interval, which may reach to the edge.
    edge_down = down if layout.name_above else -8
    return (
        layer(rows, "rule", reach, strokeWidth=3, yOffset=down),
        layer(rows, "point", point, size=56, strokeWidth=1.75, opacity=1, yOffset=down),
        layer(rows, "text", edge, align="left", fontSize=11, dx=10, dy=edge_down),
    )


def _texts(rows: list[dict[str, Any]], layout: Layout) -> tuple[Specification, ...]:
    colour = as_it_is("colour")

    def text(field: str, x: float, **style: Any) -> Specification:
        encoding = {"text": text_of(field), "x": {"value": x}, "y": row_encoding(len(rows))}
        return layer(rows, "text", encoding | ({} if "color" in style else {"color": colour}), **style)

    if layout.name_above:
        return (
            text("name", 0, align="left", dy=-8, fontSize=12, color=INK),
            text("result", layout.width, align="right", dy=-8, fontSize=12),
        )
    size = 13 if layout.intervals else 12
    texts = (
        text("name", -12, align="right", fontSize=13, color=INK),
        text("result", layout.width + 10, align="left", fontSize=size),
        text("spread", layout.width + 104, align="left", fontSize=12, color=MUTED),
    )
    return tuple(
        text for text, shown in zip(texts, (layout.cells, True, layout.intervals), strict=True) if shown
    )


def _title(group: TreatmentComparisons, layout: Layout) -> tuple[Specification, ...]:
    """The treatment's name above its panel, where panels stand beside each other."""
    if layout.name_above or layout.intervals:
        return ()
    name = shortened(group.treatment, _title_cells(layout))
    encoding = {"text": text_of("text"), "x": {"value": 0}, "y": {"value": -15}}
    return (layer([{"text": name}], "text", encoding, align="left", fontSize=13, fontWeight=600, color=INK),)
