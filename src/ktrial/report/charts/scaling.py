"""Speed-up over CPUs: one workload, a line a treatment, and the line on which every CPU counts in full."""

from collections.abc import Sequence
from typing import Any

from ktrial.format.sanitize import shortened
from ktrial.model.parallel import ScalingCurve
from ktrial.report.charts import altair_svg, palette
from ktrial.report.charts.levels import styled

WIDTH, HEIGHT = 300, 220
_ROOM = 150
"""Pixels to the right, for the treatments' names."""
_NAME = 22
_APART = 14
"""Pixels between two names."""
_MARKS = (
    (palette.INK, [1, 0], "circle"),
    (palette.MUTED, [6, 3], "square"),
    (palette.BASELINE, [2, 2], "triangle-up"),
    (palette.INK, [2, 4], "diamond"),
)
"""Colour, dashes and shape of the lines, by turns: verdicts' colours mean verdicts."""


def draw(curves: Sequence[ScalingCurve], name: str) -> str:
    """The chart of one workload's curves as an SVG element."""
    title = f"{curves[0].workload}: speed-up over CPUs"
    return altair_svg.inline(lambda: _chart(curves), name, title, describe(curves))


def describe(curves: Sequence[ScalingCurve]) -> str:
    """What the chart shows, in words."""
    lines = (
        f"{curve.treatment or curve.workload}: "
        + ", ".join(f"{point.speed_up:.2f} at {point.cpus}" for point in curve.points)
        for curve in curves
    )
    return f"Speed-up by the number of CPUs. {'; '.join(lines)}."


def _chart(curves: Sequence[ScalingCurve]) -> altair_svg.Drawing:
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
            width=WIDTH,
            height=HEIGHT,
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
            title=title, grid=False, domainColor=palette.RULE, tickColor=palette.RULE, tickSize=4,
            labelColor=palette.MUTED, labelFontSize=11, titleColor=palette.MUTED, titleFontSize=11,
            titleFontWeight="normal", **more,
        )  # fmt: skip


def _perfect(altair: Any, scales: _Scales, counts: Sequence[int]) -> Any:
    ends = [{"cpus": cpus, "speed_up": cpus / counts[0]} for cpus in (counts[0], counts[-1])]
    drawn = altair.Chart(altair.InlineData(values=ends)).mark_line(color=palette.RULE, strokeWidth=1)
    return drawn.encode(x=scales.x(), y=scales.y("speed_up"))


def _line(altair: Any, scales: _Scales, curve: ScalingCurve, place: int) -> tuple[Any, ...]:
    colour, dashes, shape = _MARKS[place % len(_MARKS)]
    one = curve.points[0].throughput
    rows = [
        {
            "cpus": point.cpus,
            "speed_up": point.speed_up,
            "low": point.lowest / one,
            "high": point.highest / one,
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
    apart, above = _APART / HEIGHT * scales.most, float("inf")
    rows = []
    for curve in sorted(curves, key=lambda curve: -curve.points[-1].speed_up):
        above = min(curve.points[-1].speed_up, above - apart)
        text = shortened(curve.treatment or curve.workload, _NAME)
        rows.append({"cpus": curve.points[-1].cpus, "at": above, "name": text})
    chart = altair.Chart(altair.InlineData(values=rows))
    text = chart.mark_text(align="left", dx=9, fontSize=12, color=palette.INK, baseline="middle")
    return text.encode(x=scales.x(), y=scales.y("at"), text="name:N")
