"""A series as a picture: how far each workload is from the base after each patch, in per cent."""

from typing import NamedTuple

from ktrial.format import number_format
from ktrial.report.text.series import changed_workloads
from ktrial.series.result import SeriesResult

WIDTH, HEIGHT = 720.0, 240.0
NARROW = 340.0
"""The width on a telephone: a wider picture would be scrolled, and its step not seen."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 8.0, 166.0, 16.0, 36.0
_LINE = 14.0
"""Between the names of two courses."""


class Course(NamedTuple):
    """One workload."""

    name: str
    path: str
    """A step at each patch."""
    y: float
    """Where its name stands, at the right."""
    change: str


class CumulativePicture(NamedTuple):
    """All that the template draws."""

    name: str
    width: float
    courses: tuple[Course, ...]
    zero: float
    """The base's height."""
    end: float
    """Where its line ends."""
    names: float
    """Where the courses' names begin."""
    ticks: tuple[tuple[float, str], ...]
    """Places along the bottom, and the numbers of patches there."""
    description: str


def picture(result: SeriesResult, name: str = "course-wide", width: float = WIDTH) -> CumulativePicture:
    """Of the workloads that changed; without courses where none did."""
    names = changed_workloads(result)
    count = len(result.series.patches)
    courses = {name: _course(result, name) for name in names}
    values = [0.0, *(value for course in courses.values() for value in course)]
    low, high = min(values), max(values)
    room = (high - low) * 0.1 or 1.0

    def x(place: float) -> float:
        return round(_LEFT + place * (width - _LEFT - _RIGHT) / max(1, count), 1)

    def y(value: float) -> float:
        share = (value - low + room) / (high - low + 2 * room)
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)

    drawn = []
    places = apart([y(course[-1] if course else 0.0) for course in courses.values()])
    for (workload, course), place in zip(courses.items(), places, strict=True):
        path = f"M{x(0)},{y(0.0)}" + "".join(
            f"H{x(at)}V{y(value)}" for at, value in enumerate(course, start=1)
        )
        end = course[-1] if course else 0.0
        change = number_format.change(1 + end, percent=False)
        drawn.append(Course(workload, f"{path}H{x(count) + 8}", place, f"{change}%"))
    every = max(1, count // (12 if width == WIDTH else 6))
    ticks = tuple((x(place), str(place)) for place in range(every, count + 1, every))
    said = "; ".join(f"{one.name} {one.change}" for one in drawn) or "nothing changed"
    said = f"Change from the base after each patch: {said}"
    return CumulativePicture(name, width, tuple(drawn), y(0.0), x(count) + 8, x(count) + 16, ticks, said)


def apart(heights: list[float]) -> list[float]:
    """The same, from the top moved down as far as no two names stand on each other."""
    places, lowest = dict[int, float](), float("-inf")
    for number in sorted(range(len(heights)), key=heights.__getitem__):
        lowest = places[number] = max(heights[number], lowest + _LINE)
    beyond = max(0.0, lowest - (HEIGHT - _BOTTOM))
    return [places[number] - beyond for number in range(len(heights))]


def _course(result: SeriesResult, name: str) -> list[float]:
    """The relative difference from the base after each patch; a patch without a number changes nothing."""
    base = next((one.before for one in result.totals if one.workload == name), None)
    total, course = 0.0, list[float]()
    for patch in result.series.patches:
        cell = result.cell(patch.number, name)
        if cell and base:
            total += float(cell.difference / base)
        course.append(total)
    return course
