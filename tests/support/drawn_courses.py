"""Drawings of histories, searches and series, read back from their SVG and compared with their numbers."""

import math
from collections.abc import Callable, Sequence
from xml.etree.ElementTree import Element

import html5lib
import pytest
from tests.support.drawings import Axis, Drawing, axis, drawing, drawings_in, figure

from ktrial.format.sanitize import shortened
from ktrial.model.history import History, Line
from ktrial.model.series_result import SeriesResult
from ktrial.model.study import StudyRecord
from ktrial.model.tuning import Tuned
from ktrial.report import sparkline

_NEAR = 0.75
_TOP, _FOOT = 30.0, 182.0
"""Where the axis of a history ends, in pixels."""
_XHTML = "{http://www.w3.org/1999/xhtml}"


def assert_histories_are_true(page: str, history: History) -> None:
    """Every line of a history's page has each version where its value is, and each change between its two."""
    drawn = drawings_in(page).get("picture", [])
    assert len(drawn) == len(history.lines)
    for element, line in zip(drawn, history.lines, strict=True):
        _assert_line(drawing(element), line)


def _assert_line(chart: Drawing, line: Line) -> None:
    value, near = _beside_grid(chart)
    points = [(place, one) for place, one in enumerate(line.points) if one.value is not None]
    dots = sorted(chart.symbols, key=lambda dot: dot.x)
    reaches = sorted(points for name, points in chart.paths if name == "dot")
    assert len(dots) == len(reaches) == len(points)
    for (_, point), dot, reach in zip(points, dots, reaches, strict=True):
        assert dot.title.startswith(shortened(point.version, 80)), dot
        assert abs(value(dot.y) - (point.value or 0.0)) <= near, f"{point.version}: {dot}"
        (x, top), (_, bottom) = reach
        assert abs(x - dot.x) < _NEAR
        assert abs(value(top) - max(point.values)) <= near, point.version
        assert abs(value(bottom) - min(point.values)) <= near, point.version
    cut_off = any(name == "break" for name, _ in chart.paths)
    assert cut_off == (value(_FOOT) > 0 or value(_TOP) < 0), "an axis without zero is marked"
    through = [points for name, points in chart.paths if name == "through"]
    assert through == ([[(dot.x, dot.y) for dot in dots]] if dots else [])
    _assert_changes(chart, line, {place: dot.x for (place, _), dot in zip(points, dots, strict=True)})


def _assert_changes(chart: Drawing, line: Line, places: dict[int, float]) -> None:
    marks = sorted(points[0][0] for name, points in chart.paths if name.startswith("mark "))
    assert len(marks) == len(line.changes)
    for at, change in zip(marks, sorted(line.changes, key=lambda one: one.place), strict=True):
        before = max((x for place, x in places.items() if place < change.place), default=-math.inf)
        assert before < at < places[change.place], f"{change.version}: its mark is at {at}"


def assert_searches_are_true(page: str, tuned: Tuned) -> None:
    """The path of a search, in both sizes: each run in its order, at its ratio to the baseline."""
    drawn = drawings_in(page)
    for size in ("path-wide", "path-narrow"):
        (element,) = drawn[size]
        _assert_path(drawing(element), tuned)


def _assert_path(chart: Drawing, tuned: Tuned) -> None:
    ratio, near = _beside_grid(chart, lambda text: 1 + figure(text))
    metric = tuned.goal.objectives[0].metric
    before = tuned.baseline[metric]
    ran = [place for place, one in enumerate(tuned.observations) if metric in one.values]
    dots = sorted(chart.symbols, key=lambda dot: dot.x)
    assert len(dots) == len(ran)
    for place, dot in zip(ran, dots, strict=True):
        one = tuned.observations[place]
        drift = tuned.drift[place] if place < len(tuned.drift) else 1.0
        assert dot.title.startswith(f"run {one.order + 1}, {one.purpose.value}: "), dot
        assert abs(ratio(dot.y) - one.values[metric] / before / drift) <= near, dot
    (zero,) = [points for name, points in chart.paths if name == "zero"]
    assert abs(ratio(zero[0][1]) - 1) <= near
    failed = [points for name, points in chart.paths if name == "failed"]
    assert len(failed) == len(tuned.observations) - len(ran)


def assert_corners_are_true(page: str, tuned: Tuned) -> None:
    """The small pictures of two knobs together: four heights, in proportion to what was measured."""
    elements = [
        one for named in drawings_in(page).values() for one in named if one.get("preserveAspectRatio")
    ]
    assert len(elements) == len(tuned.interactions)
    for element, one in zip(elements, tuned.interactions, strict=True):
        paths = dict(drawing(element).paths)
        heights = [at[1] for name in ("without", "with") for at in paths[name]]
        neither, first, second, both = one.corners
        _assert_proportional([neither, first, second, both], [-height for height in heights])


def assert_series_are_true(page: str, record: StudyRecord) -> None:
    """Every small picture of a number over time: its line goes through what was read."""
    figures = [
        figure
        for figure in html5lib.parse(page).iter(f"{_XHTML}figure")
        for drawn in figure.iter("{http://www.w3.org/2000/svg}svg")
        if drawn.get("viewBox") == "0 0 300 90"
    ]
    pictures = [(one.workload, picture) for one in sparkline.by_workload(record) for picture in one.pictures]
    assert len(figures) == len(pictures)
    for element, (workload, picture) in zip(figures, pictures, strict=True):
        _assert_series(element, record, workload, picture.name)


def _assert_series(element: Element, record: StudyRecord, workload: str, name: str) -> None:
    caption = "".join(next(element.iter(f"{_XHTML}figcaption")).itertext())
    low, _, rest = caption.rsplit(": ", 1)[1].partition(" to ")
    high = figure(rest.split(", ")[0] if ", " in rest else rest)
    (svg,) = [one for one in element.iter("{http://www.w3.org/2000/svg}svg") if one.get("role") == "img"]
    value = axis({4.0: high, 86.0: figure(low)}) if high != figure(low) else (lambda _at: high)
    lines = [points for _, points in drawing(svg).paths[1:]]
    wanted = [one for one in record.sampled if one.sampled.workload == workload]
    near = abs(high - figure(low)) / 80 + abs(high) / 1000 + 1e-9
    assert len(lines) == len(wanted)
    for line, one in zip(lines, wanted, strict=True):
        (series,) = [each for each in one.sampled.series if each.name == name]
        points = sparkline.points_of(one.sampled, series)
        assert [value(y) for _, y in line] == pytest.approx([number for _, number in points], abs=near)
        _assert_proportional([time for time, _ in points], [x for x, _ in line])


def assert_steps_are_true(page: str, result: SeriesResult) -> None:
    """The course of a patch series, in both sizes: each patch's step at its number, as high as it is."""
    for size in ("course-wide", "course-narrow"):
        (element,) = drawings_in(page)[size]
        _assert_steps(drawing(element), result)


def _assert_steps(chart: Drawing, result: SeriesResult) -> None:
    (_, base), *courses = chart.paths
    totals = {one.workload: one for one in result.totals}
    numbers = {text.text: text.x for text in chart.texts if text.text.isdigit()}
    names = [text.text for text in chart.texts if not text.text.isdigit()]
    assert len(courses) == len(names)
    for (_, points), text in zip(courses, names, strict=True):
        name, _, change = text.rpartition(" ")
        (total,) = [one for workload, one in totals.items() if workload.startswith(name.split("…")[0])]
        steps = [cell.difference if (cell := result.cell(one.number, total.workload)) else 0
                 for one in result.series.patches]  # fmt: skip
        reached = [0.0, *(float(sum(steps[: place + 1]) / total.before) for place in range(len(steps)))]
        assert figure(change) == pytest.approx(reached[-1], abs=5e-5)
        corners = dict(points)  # of two points at one place the later one: where the step arrives
        places = [points[0][0], *(numbers[str(number + 1)] for number in range(len(steps)))]
        assert points[0][1] == base[0][1], "it begins at the base's height"
        _assert_proportional(reached, [-corners[x] for x in places])


def _assert_proportional(numbers: Sequence[float], places: Sequence[float]) -> None:
    """Places in pixels lie to each other as the numbers do."""
    low, high = min(numbers), max(numbers)
    if high == low:
        assert max(places) - min(places) < _NEAR
        return
    origin, end = places[numbers.index(low)], places[numbers.index(high)]
    for number, place in zip(numbers, places, strict=True):
        meant = origin + (number - low) / (high - low) * (end - origin)
        assert abs(place - meant) < _NEAR, (numbers, places)


def _beside_grid(chart: Drawing, read: Callable[[str], float] = figure) -> tuple[Axis, float]:
    """The axis by the numbers beside its grid lines, and what a pixel is on it."""
    marks = {}
    for name, points in chart.paths:
        if name == "grid-line":
            (text,) = [t for t in chart.texts if abs(t.y - points[0][1] - 4) < 0.01 and t.x < points[0][0]]
            marks[points[0][1]] = read(text.text)
    value = axis(marks)
    slack = max(abs(number) for number in marks.values()) * 1e-4
    return value, abs(value(1.0) - value(0.0)) * _NEAR + slack
