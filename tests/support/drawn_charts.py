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
from ktrial.report.overview_chart import LEAST_BAND

_ABOVE, _BEFORE, _BEHIND = 5, 12, 10
"""Pixels: further left names stand above the plot; between a name, the plot and a result."""
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
    """One level's bar, in the metric's unit; times in seconds."""

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
            _assert_overview(drawing(element), group, record.study.margin)
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


def _assert_overview(chart: Drawing, group: study_summary.TreatmentComparisons, margin: float) -> None:
    compared = study_summary.own_rows(group.comparisons)
    rows, at = ratio_rows(chart), _place_of(chart)
    assert len(rows) == len(compared)
    assert_margin_is_seen(chart, at, margin)
    names = study_summary.row_names([(one.workload, one.metric) for one in compared])
    for row, name, one in zip(rows, names, compared, strict=True):
        where = f"{group.treatment}, {name}: {row}"
        # A long name is shortened in its middle.
        assert not row.name or name.startswith(row.name.split("…")[0]) or "\\x" in row.name, where
        assert (
            row.result
            == f"{VERDICTS[one.verdict].symbol} {number_format.step(one.ratio, one.value, one.unit)}"
        )
        _assert_near(row.mark, at(one.ratio), where)
        ends = [end for end in (one.low, one.high) if end is not None and not math.isnan(end)]
        if ends and (at.is_left_of_all(max(ends)) or at.is_right_of_all(min(ends))):
            assert row.low is row.high is None, where
        else:
            _assert_near(row.low, at(min(ends, default=None)), where)
            _assert_near(row.high, at(max(ends, default=None)), where)
    colours = [symbol.stroke for symbol in sorted(chart.symbols, key=lambda one: one.y)]
    with_mark = [one for one in compared if at(one.ratio) is not None]
    assert colours == [charts.VERDICT_COLOURS[one.verdict] for one in with_mark]


def assert_margin_is_seen(chart: Drawing, at: "_Place", margin: float) -> None:
    """The band is as wide as the margin, and wide enough to be seen where the page is at its smallest."""
    bands = [box for box in chart.boxes if box.fill == charts.BAND]
    assert bands
    for band in bands:
        _assert_near(band.x, at(1 / (1 + margin)), "the margin's band begins")
        _assert_near(band.x + band.width, at(1 + margin), "the margin's band ends")
        assert band.width >= LEAST_BAND - _NEAR


def _place_of(chart: Drawing) -> "_Place":
    read = ratio_axis(chart)
    return _Place(read(0.0), read(1.0) - read(0.0), *_ends(chart))


def _ends(chart: Drawing) -> tuple[float, float]:
    """Where the plot ends, in pixels: names and results stand above its ends, or beside them."""
    result = next(text for text in chart.texts if _RESULT.match(text.text))
    names = [text.x for text in chart.texts if text.y == result.y and text.x < result.x]
    if names and names[0] < _ABOVE:
        return names[0], result.x
    # Without names the treatment's stands above the plot's beginning.
    return names[0] + _BEFORE if names else min(text.x for text in chart.texts), result.x - _BEHIND


class _Place(NamedTuple):
    """Ratio → pixels, by the axis that was read; what lies beyond the plot is drawn at its edge."""

    origin: float
    per_pixel: float
    left: float
    right: float

    def __call__(self, ratio: float | None) -> float | None:
        if ratio is None or math.isnan(ratio):
            return None
        return min(max(self._far(ratio), self.left), self.right)

    def is_left_of_all(self, ratio: float) -> bool:
        return self._far(ratio) < self.left - _NEAR

    def is_right_of_all(self, ratio: float) -> bool:
        return self._far(ratio) > self.right + _NEAR

    def _far(self, ratio: float) -> float:
        if ratio <= 0 or ratio == math.inf:
            return math.copysign(math.inf, ratio - 1)
        return (math.log(ratio) - self.origin) / self.per_pixel


def _assert_near(drawn: float | None, meant: float | None, where: str) -> None:
    assert (drawn is None) == (meant is None), where
    if drawn is not None and meant is not None:
        assert abs(drawn - meant) < _NEAR, f"{where}: drawn at {drawn}, means {meant}"


def _assert_levels(chart: Drawing, metric: study_summary.MetricLevels) -> None:
    rows = level_rows(chart)
    assert len(rows) == len(metric.levels), f"{metric.workload}: {rows}"
    scale = number_format.seconds_in(metric.unit) or 1.0
    numbers = [
        abs(value) * scale for level in metric.levels for value in (level.value or 0.0, *level.samples)
    ]
    near = max((value for value in numbers if math.isfinite(value)), default=1.0) / 200 or 0.01 * scale
    for row, level in zip(rows, metric.levels, strict=True):
        where = f"{metric.workload}, {level.treatment}: {row}"
        assert level.treatment.startswith(row.name.split("…")[0]) or "\\x" in row.name, where
        value = level.value * scale if level.value is not None and math.isfinite(level.value) else None
        # A bar of no length is not drawn.
        assert abs((row.value or 0.0) - (value or 0.0)) <= near, where
        samples = sorted(one * scale for one in level.samples if math.isfinite(one))
        assert len(row.samples) == len(samples), where
        assert all(abs(a - b) <= near for a, b in zip(row.samples, samples, strict=True)), where
        assert number_format.quantity(level.value, metric.unit) in row.result, where


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
