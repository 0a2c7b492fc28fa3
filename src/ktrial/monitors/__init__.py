"""What is watched while a workload runs. One module a monitor.

A monitor is a module here, or an entry point in the group `ktrial.monitors`, with an object `MONITOR`. There
are three kinds. A Monitor names counters that are read before and after a program, on every machine. A
SampledMonitor understands the text of files that are read at several moments. A Tracer is a program
that watches others, on the machine `host`, for studies that ask for it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Protocol, runtime_checkable

from ktrial import plugin_discovery
from ktrial.model.base import digest
from ktrial.model.trial import Series, SeriesKind
from ktrial.model.warnings import DataWarning
from ktrial.target import TracerProgram
from ktrial.text_lines import lines_of

Watched = Mapping[str, Mapping[str, tuple[float, ...]]]
"""File → line's first word → by how much each number on that line rose (StepResult.watched)."""
Texts = Mapping[str, str]
"""File → its text at one moment. A file that this kernel does not have is not in it."""
_GROUP = "ktrial.monitors"


@runtime_checkable
class Monitor(Protocol):
    """Names the counters in some kernel files, or in what wait4 says about a program."""

    @property
    def name(self) -> str:
        """First part of its counters' names: `vmstat` of `vmstat.pgfault`."""
        ...

    @property
    def summary(self) -> str:
        """What it counts, in one line."""
        ...

    @property
    def files(self) -> tuple[str, ...]:
        """Kernel files that are read before and after a program runs; one that is not there is left out."""
        ...

    def counters(self, watched: Watched, rusage: Mapping[str, float]) -> dict[str, float]:
        """Name → by how much it rose. Counters that did not change may be left out."""
        ...


@dataclass(frozen=True)
class Reading:
    """One number at one moment."""

    name: str
    value: float
    unit: str = ""
    kind: SeriesKind = SeriesKind.COUNTER


@runtime_checkable
class SampledMonitor(Protocol):
    """Understands what some kernel files say at a moment."""

    @property
    def name(self) -> str:
        """First part of its readings' names: `meminfo` of `meminfo.Cached`."""
        ...

    @property
    def summary(self) -> str:
        """What it reads, in one line."""
        ...

    @property
    def sampled(self) -> tuple[str, ...]:
        """Kernel files that are read whole; one that is not there, or is forbidden, is left out."""
        ...

    @property
    def costly(self) -> bool:
        """Reading them takes milliseconds: that is done before and after all programs only."""
        ...

    def readings(self, texts: Texts) -> Iterable[Reading]:
        """Every number in them. A line that it does not know is passed over."""
        ...


class Prepared(NamedTuple):
    """How a program is run that watches others, as it was found to work here."""

    tracer: TracerProgram
    program: str
    """Its version and what it was asked for: a trial keeps that."""
    warnings: tuple[DataWarning, ...] = ()
    """What it cannot watch here."""


@runtime_checkable
class Tracer(Protocol):
    """A program that watches others from outside while they run."""

    @property
    def name(self) -> str:
        """First part of its counters' names: `perf-stat` of `perf-stat.cycles`."""
        ...

    @property
    def summary(self) -> str:
        """What it counts, in one line."""
        ...

    def prepare(self) -> Prepared:
        """How it is run, tried on this very system; cheap the second time. Raises MonitorUnusable."""
        ...

    def counted(self, printed: str) -> dict[str, float]:
        """Name → by how much it rose, from what the program printed. Raises ValueError where that is none of
        its own.
        """
        ...


AnyMonitor = Monitor | SampledMonitor | Tracer


@cache
def installed() -> tuple[dict[str, AnyMonitor], tuple[DataWarning, ...]]:
    """Every monitor by its name, sorted, and a warning for each plugin that is broken."""
    packages = (f"{__name__}.procfs", f"{__name__}.tracers")
    return plugin_discovery.installed(_GROUP, "monitor", "MONITOR", packages, _check)


def _check(_name: str, extension: object) -> tuple[str, AnyMonitor]:
    if not isinstance(extension, AnyMonitor):
        raise TypeError("it is not a monitor")
    return extension.name, extension


def installed_tracers() -> dict[str, Tracer]:
    """The monitors that a study has to ask for, by name, sorted."""
    return {name: monitor for name, monitor in installed()[0].items() if isinstance(monitor, Tracer)}


def watched_files() -> tuple[str, ...]:
    """All files whose counters are read before and after a program, sorted."""
    return tuple(sorted({file for monitor in _counting() for file in monitor.files}))


def sampled_files() -> tuple[str, ...]:
    """All files that are read at several moments, sorted: those of counters among them."""
    more = {file for monitor in _sampling() if not monitor.costly for file in monitor.sampled}
    return tuple(sorted(more.union(watched_files())))


def costly_files() -> tuple[str, ...]:
    """All files that are read before and after all programs only, sorted."""
    return tuple(sorted({file for monitor in _sampling() if monitor.costly for file in monitor.sampled}))


def watched_digest() -> str:
    """Of the names of all those files: to read one more of them moves exact counts in the last digits."""
    return digest([watched_files(), sampled_files(), costly_files()])


def counters(watched: Watched, rusage: Mapping[str, float]) -> dict[str, float]:
    """Every monitor's counters, by name, sorted."""
    counted: dict[str, float] = {}
    for monitor in _counting():
        counted |= monitor.counters(watched, rusage)
    return dict(sorted(counted.items()))


def series(moments: Sequence[Texts]) -> tuple[Series, ...]:
    """Every monitor's readings over time; those that never change are left out."""
    return as_series([tuple(_readings(texts)) for texts in moments])


def _readings(texts: Texts) -> Iterator[Reading]:
    watched = {file: numbers(texts[file]) for file in watched_files() if file in texts}
    for name, value in counters(watched, {}).items():
        yield Reading(name, value)
    for monitor in _sampling():
        yield from monitor.readings(texts)


def _counting() -> list[Monitor]:
    return [monitor for monitor in installed()[0].values() if isinstance(monitor, Monitor)]


def _sampling() -> list[SampledMonitor]:
    return [monitor for monitor in installed()[0].values() if isinstance(monitor, SampledMonitor)]


def as_series(moments: Sequence[Iterable[Reading]]) -> tuple[Series, ...]:
    """Readings at several moments as series, sorted by name; those that never change are left out.

    What is not there at a moment is what it was before, and 0 where it never was: a cache that is new.
    """
    first: dict[str, Reading] = {}
    values: dict[str, list[float]] = {}
    for place, readings in enumerate(moments):
        for reading in readings:
            first.setdefault(reading.name, reading)
            column = values.setdefault(reading.name, [0.0] * place)
            column += [column[-1] if column else 0.0] * (place - len(column))
            column.append(reading.value)
    return tuple(
        _series(first[name], values[name], len(moments))
        for name in sorted(first)
        if len(set(values[name])) > 1
    )


def _series(of: Reading, values: list[float], moments: int) -> Series:
    complete = values + values[-1:] * (moments - len(values))
    first = complete[0] if of.kind is SeriesKind.COUNTER else 0.0
    return Series(name=of.name, unit=of.unit, kind=of.kind, values=tuple(value - first for value in complete))


def numbers(text: str) -> dict[str, tuple[float, ...]]:
    """A line's first word, without its colon → the numbers after it; equal first words are added up.

    As the guest's agent reads files of counters (crates/probes/src/counters.rs).
    """
    rows: dict[str, tuple[float, ...]] = {}
    for line in lines_of(text):
        words = line.split()
        values = tuple(float(word) for word in words[1:] if is_number(word))
        if values:
            name = words[0].removesuffix(":")
            rows[name] = _added(rows.get(name, ()), values)
    return rows


def is_number(word: str) -> bool:
    """Whether it is a decimal number, as the kernel writes them."""
    return word.removeprefix("-").replace(".", "", 1).isdecimal() and word.isascii()


def _added(sums: tuple[float, ...], values: tuple[float, ...]) -> tuple[float, ...]:
    length = max(len(sums), len(values))
    padded = (row + (0.0,) * (length - len(row)) for row in (sums, values))
    return tuple(map(sum, zip(*padded, strict=True)))
