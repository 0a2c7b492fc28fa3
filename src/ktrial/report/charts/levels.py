"""One metric at every level: bars from zero, each with the samples of its trials."""

import math
from typing import Any

from ktrial.format import number_format
from ktrial.format.labels import DIRECTIONS, VERDICTS
from ktrial.format.sanitize import shortened
from ktrial.model.comparison import Verdict
from ktrial.report.charts import altair_svg, palette
from ktrial.report.text.study_summary import Level, MetricLevels

WIDTH = 320
_ROW = 42
_TALL_ROW = 58
"""Where a level's name and its result do not fit beside each other, the result goes below the name."""
_CELLS = 46
"""Character cells of text of 12 pixels in the width."""


def draw(metric: MetricLevels, name: str) -> str:
    """The chart as an SVG element."""
    title = f"{metric.workload}, {metric.metric}: every level"
    return altair_svg.inline(lambda: _chart(metric), name, title, describe(metric))


def describe(metric: MetricLevels) -> str:
    """What the chart shows, in words."""
    levels = "; ".join(f"{level.treatment}: {number_format.number(level.value)}" for level in metric.levels)
    return f"{metric.unit} ({DIRECTIONS[metric.direction]}). {levels}."


def _chart(metric: MetricLevels) -> altair_svg.Drawing:
    import altair

    rows = [_row(position, level) for position, level in enumerate(metric.levels)]
    points = [
        {"row": position, "value": value}
        for position, level in enumerate(metric.levels)
        for value in level.samples
        if math.isfinite(value)
    ]
    tall = any(len(row["label"]) + len(row["result"]) + 2 > _CELLS for row in rows)
    y = altair_svg.rows(altair, len(rows))
    lines = altair.Chart(altair.InlineData(values=rows)).encode(y=y)
    marks = altair.Chart(altair.InlineData(values=points)).encode(y=y)
    chart = altair.layer(
        *_bars(altair, lines, marks, _domain(rows, points), tall), *_labels(altair, lines, tall)
    )
    height = (_TALL_ROW if tall else _ROW) * len(rows)
    return styled(
        chart.properties(
            width=WIDTH,
            height=height,
            autosize=altair.AutoSizeParams(type="none"),
            padding={"left": 1, "right": 1, "top": 0, "bottom": 22},
        )
    )


def styled(chart: altair_svg.Drawing) -> altair_svg.Drawing:
    """The chart without background, frame and ARIA noise, in the page's type."""
    configured: altair_svg.Drawing = chart.configure(
        aria=False, background="transparent", font="sans-serif"
    ).configure_view(stroke=None)
    return configured


def _row(position: int, level: Level) -> dict[str, Any]:
    verdict = level.comparison.verdict if level.comparison else None
    return {
        "row": position,
        "value": level.value if level.value is not None and math.isfinite(level.value) else None,
        "label": shortened(level.treatment, _CELLS),
        "result": _result(level),
        "least": min(filter(math.isfinite, level.samples), default=None),
        "most": max(filter(math.isfinite, level.samples), default=None),
        "colour": palette.VERDICTS[verdict] if verdict else palette.BASELINE,
        "opacity": 0.5 if verdict is Verdict.INCONCLUSIVE else 1,
        "ink": palette.VERDICTS[verdict] if verdict else palette.MUTED,
    }


def _result(level: Level) -> str:
    if level.comparison is None:
        return number_format.number(level.value)
    symbol = VERDICTS[level.comparison.verdict].symbol
    change = number_format.step(level.comparison.ratio, level.value)
    return (
        f"{number_format.number(level.value)}{number_format.SPACE * 3}{symbol}{number_format.SPACE}{change}"
    )


def _domain(rows: list[dict[str, Any]], points: list[dict[str, Any]]) -> list[float]:
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
        grid=False, domainColor=palette.RULE, tickColor=palette.RULE, tickSize=4, title=None, labelPadding=3,
        labelFlush=True, labelColor=palette.MUTED, labelFontSize=11,
    )  # fmt: skip
    return altair.X(f"{field}:Q", scale=altair.Scale(domain=domain, nice=False), axis=axis)


def _bars(altair: Any, lines: Any, marks: Any, domain: list[float], tall: bool) -> tuple[Any, ...]:
    down = 17 if tall else 9
    bar = lines.transform_filter("isValid(datum.value)").mark_bar(height=8, yOffset=down)
    reach = lines.mark_rule(strokeWidth=1.5, color=palette.INK, yOffset=down)
    each = marks.mark_point(
        filled=True, size=26, color=palette.INK, stroke=palette.PAPER, strokeWidth=1, opacity=1, yOffset=down
    )
    return (
        bar.encode(
            x=_x(altair, "value", domain),
            color=altair.Color("colour:N", scale=None),
            opacity=altair.Opacity("opacity:Q", scale=None),
        ),
        reach.encode(x=_x(altair, "least", domain), x2="most:Q"),
        each.encode(x=_x(altair, "value", domain)),
    )


def _labels(altair: Any, lines: Any, tall: bool) -> tuple[Any, ...]:
    left = lines.mark_text(align="left", dy=-17 if tall else -8, fontSize=12, color=palette.INK)
    right = lines.mark_text(align="left" if tall else "right", dy=-1 if tall else -8, fontSize=12)
    return (
        left.encode(text="label:N", x=altair.value(0)),
        right.encode(
            text="result:N", x=altair.value(0 if tall else WIDTH), color=altair.Color("ink:N", scale=None)
        ),
    )
