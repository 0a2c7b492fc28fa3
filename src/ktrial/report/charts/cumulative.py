"""A series as a picture: how far each workload is from the base after each patch, in per cent."""

from typing import NamedTuple

from ktrial.format import number_format
from ktrial.report.text.series import changed_workloads
from ktrial.series.result import SeriesResult

WIDTH, HEIGHT = 720.0, 240.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 150.0, 16.0, 36.0


class Course(NamedTuple):
    """One workload."""

    name: str
    path: str
    """A step at each patch."""
    y: float
    """Where its name stands, at the right."""
    change: str


class Picture(NamedTuple):
    """All that the template draws."""

    courses: tuple[Course, ...]
    zero: float
    """The base's height."""
    ticks: tuple[tuple[float, str], ...]
    """Places along the bottom, and the numbers of patches there."""
    description: str


def picture(result: SeriesResult) -> Picture:
    """Of the workloads that changed; without courses where none did."""
    names = changed_workloads(result)
    count = len(result.series.patches)
    courses = {name: _course(result, name) for name in names}
    values = [0.0, *(value for course in courses.values() for value in course)]
    low, high = min(values), max(values)
    room = (high - low) * 0.1 or 1.0

    def x(place: float) -> float:
        return round(_LEFT + place * (WIDTH - _LEFT - _RIGHT) / max(1, count), 1)

    def y(value: float) -> float:
        share = (value - low + room) / (high - low + 2 * room)
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)

    drawn = []
    for name, course in courses.items():
        path = f"M{x(0)},{y(0.0)}" + "".join(
            f"H{x(place)}V{y(value)}" for place, value in enumerate(course, start=1)
        )
        end = course[-1] if course else 0.0
        change = number_format.change(1 + end, percent=False)
        drawn.append(Course(name, f"{path}H{x(count) + 8}", y(end), f"{change}%"))
    every = max(1, count // 12)
    ticks = tuple((x(place), str(place)) for place in range(every, count + 1, every))
    said = "; ".join(f"{one.name} {one.change}" for one in drawn) or "nothing changed"
    return Picture(tuple(drawn), y(0.0), ticks, f"Change from the base after each patch: {said}")


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
