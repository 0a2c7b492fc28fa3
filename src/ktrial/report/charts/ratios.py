"""The overview: every ratio to the baseline with its interval, on a log axis, with the margin as a band."""

import math
from typing import Any, NamedTuple

from ktrial.format import number_format
from ktrial.format.labels import VERDICTS
from ktrial.format.sanitize import one_line, shortened
from ktrial.model.comparison import Comparison, Verdict
from ktrial.report.charts import altair_svg, palette
from ktrial.report.charts.levels import styled
from ktrial.report.text.study_summary import TreatmentComparisons
from ktrial.report.text.study_summary import row_names as row_names_of

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
    first, other = _panel(beside), _panel(beside)._replace(left=10, cells=0)
    layouts = [first if place % beside == 0 else other for place in range(len(names))]
    return [layouts[start : start + beside] for start in range(0, len(names), beside)]


def _panel(beside: int) -> Layout:
    plot = (_BESIDE - _NAMES) // beside - _RESULT - 10
    return Layout(plot, _NAMES, _RESULT, row=26, cells=24, top=30)


def _title_cells(layout: Layout) -> int:
    """Character cells of bold text of 13 pixels above a panel."""
    return (layout.width + layout.right) // 9


def draw(
    group: TreatmentComparisons,
    every: tuple[TreatmentComparisons, ...],
    margin: float,
    layout: Layout,
    name: str,
) -> str:
    """The intervals of one treatment as an SVG element, on the axis that all of `every` fit on."""
    domain = _domain(every, margin)
    title = f"{group.treatment} compared with {group.baseline}: change of every metric"
    return altair_svg.inline(lambda: _chart(group, domain, margin, layout), name, title, describe(group))


def describe(group: TreatmentComparisons) -> str:
    """What the chart shows, in words."""
    return "; ".join(
        f"{name}: {number_format.step(comparison.ratio, comparison.value)}, {comparison.verdict}"
        for name, comparison in zip(row_names(group), group.comparisons, strict=True)
    )


def row_names(group: TreatmentComparisons) -> tuple[str, ...]:
    """The workload's name; with the metric where the workload has several."""
    return row_names_of([(one.workload, one.metric) for one in group.comparisons])


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


def _chart(
    group: TreatmentComparisons, domain: tuple[float, float], margin: float, layout: Layout
) -> altair_svg.Drawing:
    import altair

    rows = [
        _row(position, name, comparison, layout)
        for position, (name, comparison) in enumerate(zip(row_names(group), group.comparisons, strict=True))
    ]
    scale = altair.Scale(type="log", domain=list(domain), nice=False)
    y = altair_svg.rows(altair, len(rows))
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
        "colour": palette.VERDICTS[comparison.verdict],
        "fill": palette.PAPER
        if comparison.verdict is Verdict.INCONCLUSIVE
        else palette.VERDICTS[comparison.verdict],
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
        band.mark_rect(color=palette.BAND, opacity=1).encode(x=x, x2="to:Q", y=y, y2="end:Q"),
        *_axis(altair, x, domain, layout, rows),
        none.mark_rule(color=palette.MUTED).encode(x=x, y=y, y2="end:Q"),
    )


def _axis(altair: Any, x: Any, domain: tuple[float, float], layout: Layout, rows: int) -> tuple[Any, ...]:
    height = layout.row * rows
    ticks = altair.Chart(altair.InlineData(values=ticks_within(domain, most=max(2, layout.width // 55))))
    from_y = altair.value(height if layout.name_above else 0)
    return (
        ticks.mark_rule(color=palette.RULE, strokeDash=[] if layout.name_above else [1, 3]).encode(
            x=x, y=from_y, y2=altair.value(height + 4)
        ),
        ticks.mark_text(fontSize=11, color=palette.MUTED, baseline="top", dy=8).encode(
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
            apart = min(abs(math.log(ratio / other)) for other in placed)
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
        name = lines.mark_text(align="left", dy=-8, fontSize=12, color=palette.INK)
        result = lines.mark_text(align="right", dy=-8, fontSize=12)
        return (
            name.encode(text="name:N", x=altair.value(0)),
            result.encode(text="result:N", x=altair.value(layout.width), color=colour),
        )
    name = lines.mark_text(align="right", fontSize=13, color=palette.INK)
    result = lines.mark_text(align="left", fontSize=13 if layout.intervals else 12)
    spread = lines.mark_text(align="left", fontSize=12, color=palette.MUTED)
    texts = (
        name.encode(text="name:N", x=altair.value(-12)),
        result.encode(text="result:N", x=altair.value(layout.width + 10), color=colour),
        spread.encode(text="spread:N", x=altair.value(layout.width + 104)),
    )
    return tuple(
        text for text, wanted in zip(texts, (layout.cells, True, layout.intervals), strict=True) if wanted
    )


def _title(altair: Any, group: TreatmentComparisons, layout: Layout) -> tuple[Any, ...]:
    """The treatment's name above its panel, where panels stand beside each other."""
    if layout.name_above or layout.intervals:
        return ()
    name = shortened(group.treatment, _title_cells(layout))
    where = altair.Chart(altair.InlineData(values=[{"text": name}]))
    title = where.mark_text(align="left", fontSize=13, fontWeight=600, color=palette.INK)
    return (title.encode(text="text:N", x=altair.value(0), y=altair.value(-15)),)
