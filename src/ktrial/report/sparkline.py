"""What monitors read over time, as small pictures: a counter's rate, a level as it is. Drawn by hand, as a
result may have some dozens of them.
"""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import NamedTuple

from ktrial.format import number_format
from ktrial.model.study import StudyRecord
from ktrial.model.trial import SampleSeries, Series, SeriesKind, TrialSampled

WIDTH, HEIGHT, ROOM = 300.0, 90.0, 4.0
_FEWEST = 4
"""Moments; fewer are no course of events."""
_MOST = 16

_SHOWN = (
    *("stat.cpu.user", "stat.cpu.system", "stat.cpu.iowait", "stat.ctxt", "vmstat.pgfault"),
    *("meminfo.MemFree", "meminfo.Cached", "meminfo.Dirty", "meminfo.AnonPages", "meminfo.Slab"),
    *("pressure.cpu.some", "pressure.io.some", "pressure.memory.some"),
    *("diskstats.*.read_sectors", "diskstats.*.write_sectors", "diskstats.*.in_flight"),
    *("vmstat.pgpgin", "vmstat.pgpgout", "schedstat.run_delay", "softirqs.NET_RX", "softirqs.BLOCK"),
)
"""Names and patterns of what is drawn, the first ones first; JSON and CSV have all."""


class Course(NamedTuple):
    """One treatment's line."""

    treatment: str
    path: str
    """Of an SVG path, in a box of WIDTH by HEIGHT."""
    dash: str
    """How the line is dashed: treatments are told apart without colours."""


class SeriesPicture(NamedTuple):
    """One number over time, a line for each treatment."""

    name: str
    unit: str
    top: str
    """The largest value; the smallest on the axis is `bottom`."""
    bottom: str
    cut_off: bool
    """Whether the axis does not reach zero."""
    seconds: str
    """The time at the right end."""
    courses: tuple[Course, ...]
    description: str


class WorkloadSeries(NamedTuple):
    """All that is drawn of one workload, and what it cost to read."""

    workload: str
    pictures: tuple[SeriesPicture, ...]
    costs: tuple[str, ...]
    """One sentence for each treatment."""


def by_workload(record: StudyRecord) -> tuple[WorkloadSeries, ...]:
    """The study's workloads of which something was read over time, in the order of reading."""
    names = dict.fromkeys(trial.sampled.workload for trial in record.sampled)
    exact = is_exact(record)
    return tuple(sparkline for name in names if (sparkline := _of(name, record.sampled, exact=exact)))


def is_exact(record: StudyRecord) -> bool:
    """Whether the readings' time is counted in instructions."""
    return record.study.machine.kind == "exact"


def cost(sampled: SampleSeries, *, exact: bool = False) -> str:
    """`13 readings, one every 0.1 s, took 0.098 % of one CPU`; in exact mode in instructions."""
    every = number_format.duration(sampled.interval)
    count = number_format.counted(sampled.readings, "reading")
    share = number_format.percentage(sampled.cost)
    if exact:
        # One guest nanosecond is one instruction.
        instructions = number_format.number(sampled.cost_seconds * 1e9)
        took = f"{instructions} instructions, {share} of the guest’s time"
        return f"{count}, one every {every} of the guest’s, took {took}, counted with the workload’s"
    return f"{count}, one every {every}, took {share} of one CPU"


def whole_cost(record: StudyRecord) -> str:
    """What all readings of the record took, in one sentence; empty where nothing was read over time."""
    if not record.sampled:
        return ""
    exact = is_exact(record)
    worst = max(record.sampled, key=lambda trial: trial.sampled.cost)
    where = f"{worst.sampled.workload}, {worst.treatment}"
    total = number_format.counted(sum(trial.sampled.readings for trial in record.sampled), "reading")
    most = cost(worst.sampled, exact=exact)
    return f"monitors: {total} while programs ran; the dearest, {where}: {most}"


def rate(times: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    """A counter's rise a second between each two moments, at the later one."""
    moments = zip(times, values, strict=True)
    return [(b[0], (b[1] - a[1]) / (b[0] - a[0])) for a, b in pairwise(moments) if b[0] > a[0]]


def _of(workload: str, everything: Sequence[TrialSampled], *, exact: bool) -> WorkloadSeries | None:
    trials = [trial for trial in everything if trial.sampled.workload == workload]
    long = [trial for trial in trials if len(trial.sampled.times) >= _FEWEST]
    pictures = tuple(_pictures(long))[:_MOST]
    costs = tuple(f"{trial.treatment}: {cost(trial.sampled, exact=exact)}." for trial in long)
    return WorkloadSeries(workload, pictures, costs) if pictures else None


def _pictures(trials: Sequence[TrialSampled]) -> Iterator[SeriesPicture]:
    names = sorted({series.name for trial in trials for series in trial.sampled.series})
    shown_names = (name for pattern in _SHOWN for name in names if fnmatchcase(name, pattern))
    for name in dict.fromkeys(shown_names):
        lines = [
            (trial.treatment, points_of(trial.sampled, series), series)
            for trial in trials
            for series in trial.sampled.series
            if series.name == name
        ]
        yield _picture(name, lines)


def points_of(sampled: SampleSeries, series: Series) -> list[tuple[float, float]]:
    """What is drawn of one series: time in seconds and value; a counter's are its rates."""
    if series.kind is SeriesKind.COUNTER:
        return rate(sampled.times, series.values)
    return list(zip(sampled.times, series.values, strict=True))


def _picture(name: str, lines: Sequence[tuple[str, list[tuple[float, float]], Series]]) -> SeriesPicture:
    points = [point for _, points_, _ in lines for point in points_]
    end = max((time for time, _ in points), default=0.0) or 1.0
    values = [value for _, value in points] or [0.0]
    counted = lines[0][2].kind is SeriesKind.COUNTER
    low, high = (0.0 if counted else min(values)), max(values)
    span = (high - low) or 1.0

    def place(point: tuple[float, float]) -> str:
        x = point[0] / end * WIDTH
        y = ROOM + (high - point[1]) / span * (HEIGHT - 2 * ROOM)
        return f"{x:.1f},{y:.1f}"

    dashes = ("", "6 3", "2 2", "8 3 2 3")
    courses = tuple(
        Course(treatment, "M" + "L".join(map(place, points_)), dashes[number % len(dashes)])
        for number, (treatment, points_, _) in enumerate(lines)
        if points_
    )
    unit = lines[0][2].unit
    return SeriesPicture(
        name=name,
        unit=f"{unit}/s" if counted and unit else "a second" if counted else unit,
        top=number_format.number(high),
        bottom=number_format.number(low),
        cut_off=not low <= 0 <= high,
        seconds=number_format.duration(end),
        courses=courses,
        description="; ".join(
            f"{treatment}: {_range([value for _, value in points_])}"
            for treatment, points_, _ in lines
            if points_
        ),
    )


def _range(values: Sequence[float]) -> str:
    return f"{number_format.number(min(values))} to {number_format.number(max(values))}"
