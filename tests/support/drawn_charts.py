"""Charts read back from their SVG, and compared with the numbers that the tables beside them have.

Every mark is found by where it was drawn, and its value by the numbers that stand at its axis.
"""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from tests.support.drawings import Axis, Drawing, Line, Symbol, Text, axis, drawing, drawings_in, figure
from tests.support.drawn_courses import assert_series_are_true

from ktrial.format import number_format
from ktrial.format.labels import VERDICTS
from ktrial.model.study import StudyRecord
from ktrial.report import charts, study_summary

_NEAR = 0.75
"""Pixels: what rounding in the SVG may move a mark by."""
_RESULT = re.compile(rf"(?:{'|'.join(re.escape(one.symbol) for one in VERDICTS.values())})\s(\S.*)")
_TICK = re.compile(r"0|[+\u2212][\d,.e+]+\u00a0%")


class RatioRow(NamedTuple):
    """One row of the overview, as it was drawn; numbers are places in pixels."""

    name: str
    result: str
    mark: float | None
    low: float | None
    high: float | None


class LevelRow(NamedTuple):
    """One level's bar, in the metric's unit."""

    name: str
    value: float | None
    samples: tuple[float, ...]
    result: str


def assert_charts_are_true(page: str, record: StudyRecord) -> None:
    """Every chart of a report says what the record does: the overview in both sizes, and every level."""
    drawn = drawings_in(page)
    groups = study_summary.groups(record)
    for size in ("wide", "narrow"):
        assert len(drawn.get(size, [])) == len(groups)
        for element, group in zip(drawn.get(size, []), groups, strict=True):
            _assert_overview(drawing(element), group)
    metrics = study_summary.metric_levels(record)
    assert len(drawn.get("levels", [])) == len(metrics)
    for element, metric in zip(drawn.get("levels", []), metrics, strict=True):
        _assert_levels(drawing(element), metric)
    assert_series_are_true(page, record)


def ratio_axis(chart: Drawing) -> Axis:
    """Pixels → the logarithm of a ratio."""
    marks = {text.x: 1 + figure(text.text) for text in chart.texts if _TICK.fullmatch(text.text)}
    return axis(marks, as_=math.log)


def ratio_rows(chart: Drawing) -> list[RatioRow]:
    """The overview's rows from above: each mark belongs to the row whose result is nearest in height."""
    results = sorted((text for text in chart.texts if _RESULT.match(text.text)), key=lambda text: text.y)
    marks: dict[int, list[Symbol]] = {}
    for symbol in chart.symbols:
        marks.setdefault(_nearest(symbol.y, results), []).append(symbol)
    reaches: dict[int, list[Line]] = {}
    for line in chart.lines:
        if line.width == 3:
            reaches.setdefault(_nearest(line.y, results), []).append(line)
    rows = []
    for place, result in enumerate(results):
        own, reach = marks.get(place, []), reaches.get(place, [])
        assert len(own) <= 1, f"{len(own)} marks in the row {result.text}"
        assert len(reach) <= 1, f"{len(reach)} intervals in the row {result.text}"
        names = [text.text for text in chart.texts if text.y == result.y and text.x < result.x]
        ends = sorted((reach[0].x, reach[0].to_x)) if reach else [None, None]
        rows.append(RatioRow((names or [""])[0], result.text, own[0].x if own else None, *ends))
    return rows


def _nearest(y: float, results: Sequence[Text]) -> int:
    return min(range(len(results)), key=lambda place: abs(results[place].y - y))


def _assert_overview(chart: Drawing, group: study_summary.TreatmentComparisons) -> None:
    rows, at = ratio_rows(chart), _place_of(ratio_axis(chart))
    assert len(rows) == len(group.comparisons)
    names = study_summary.row_names([(one.workload, one.metric) for one in group.comparisons])
    for row, name, one in zip(rows, names, group.comparisons, strict=True):
        where = f"{group.treatment}, {name}: {row}"
        # A long name is shortened in its middle.
        assert not row.name or name.startswith(row.name.split("…")[0]) or "\\x" in row.name, where
        assert row.result == f"{VERDICTS[one.verdict].symbol} {number_format.step(one.ratio, one.value)}"
        _assert_near(row.mark, at(one.ratio), where)
        ends = [end for end in (one.low, one.high) if end is not None and not math.isnan(end)]
        _assert_near(row.low, at(min(ends, default=None)), where)
        _assert_near(row.high, at(max(ends, default=None)), where)
    colours = [symbol.stroke for symbol in sorted(chart.symbols, key=lambda one: one.y)]
    with_mark = [one for one in group.comparisons if at(one.ratio) is not None]
    assert colours == [charts.VERDICT_COLOURS[one.verdict] for one in with_mark]


def _place_of(read: Axis) -> "_Place":
    return _Place(read(0.0), read(1.0) - read(0.0))


class _Place(NamedTuple):
    """Ratio → pixels, by the axis that was read."""

    origin: float
    per_pixel: float

    def __call__(self, ratio: float | None) -> float | None:
        if ratio is None or math.isnan(ratio):
            return None
        shown = min(max(ratio, 1 / charts.FARTHEST), charts.FARTHEST)
        return (math.log(shown) - self.origin) / self.per_pixel


def _assert_near(drawn: float | None, meant: float | None, where: str) -> None:
    assert (drawn is None) == (meant is None), where
    if drawn is not None and meant is not None:
        assert abs(drawn - meant) < _NEAR, f"{where}: drawn at {drawn}, means {meant}"


def _assert_levels(chart: Drawing, metric: study_summary.MetricLevels) -> None:
    rows = level_rows(chart)
    assert len(rows) == len(metric.levels), f"{metric.workload}: {rows}"
    numbers = [abs(value) for level in metric.levels for value in (level.value or 0.0, *level.samples)]
    near = max((value for value in numbers if math.isfinite(value)), default=1.0) / 200 or 0.01
    for row, level in zip(rows, metric.levels, strict=True):
        where = f"{metric.workload}, {level.treatment}: {row}"
        assert level.treatment.startswith(row.name.split("…")[0]) or "\\x" in row.name, where
        value = level.value if level.value is not None and math.isfinite(level.value) else None
        # A bar of no length is not drawn.
        assert abs((row.value or 0.0) - (value or 0.0)) <= near, where
        samples = sorted(one for one in level.samples if math.isfinite(one))
        assert len(row.samples) == len(samples), where
        assert all(abs(a - b) <= near for a, b in zip(row.samples, samples, strict=True)), where
        assert number_format.number(level.value) in row.result, where


def level_rows(chart: Drawing) -> list[LevelRow]:
    """The bars from above: one a name at the left edge, with what was drawn until the next one."""
    foot = max(text.y for text in chart.texts)
    ticks = {text.x: figure(text.text) for text in chart.texts if text.y == foot}
    value, zero = axis(ticks), next(at for at, number in ticks.items() if number == 0)
    heads = [text for text in chart.texts if text.y != foot]
    names = _names(heads)
    rows = []
    for name, end in zip(names, [*(one.y for one in names[1:]), math.inf], strict=True):
        bars = [box for box in chart.boxes if name.y < box.y < end]
        assert len(bars) <= 1
        bar = value(_far_end(bars[0].x, bars[0].width, zero)) if bars else None
        dots = sorted(value(symbol.x) for symbol in chart.symbols if name.y < symbol.y < end)
        (result,) = [one.text for one in heads if name.y <= one.y < end and one is not name]
        rows.append(LevelRow(name.text, bar, tuple(dots), result))
    return rows


def _names(heads: Sequence[Text]) -> list[Text]:
    """Of the names and results above the bars the names: at the left edge, the upper one of two."""
    left = sorted((text for text in heads if text.x < 10), key=lambda text: text.y)
    return left[::2] if len(left) == len(heads) else left


def _far_end(x: float, width: float, zero: float) -> float:
    return x + width if abs(x - zero) < abs(x + width - zero) else x
