"""What is watched while a workload runs. One module a monitor.

A monitor is a module here, or an entry point in the group `ktrial.monitors`, with an object `MONITOR`. There
are three kinds. A Monitor names counters that are read before and after a program, on every machine. A
SampledMonitor understands the text of files that are read at several moments. A Tracer is a program
that watches others, on the machine `host`, for studies that ask for it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple, Protocol, runtime_checkable

from ktrial import plugin_discovery
from ktrial.model.trial import Series
from ktrial.model.warnings import DataWarning
from ktrial.monitors import time_series as sampled
from ktrial.monitors.time_series import Reading, Texts
from ktrial.target import TracerProgram

Watched = Mapping[str, Mapping[str, tuple[float, ...]]]
"""File → line's first word → by how much each number on that line rose (StepResult.watched)."""

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


def counters(watched: Watched, rusage: Mapping[str, float]) -> dict[str, float]:
    """Every monitor's counters, by name, sorted."""
    counted: dict[str, float] = {}
    for monitor in _counting():
        counted |= monitor.counters(watched, rusage)
    return dict(sorted(counted.items()))


def series(moments: Sequence[Texts]) -> tuple[Series, ...]:
    """Every monitor's readings over time; those that never change are left out."""
    return sampled.series([tuple(_readings(texts)) for texts in moments])


def _readings(texts: Texts) -> Iterator[Reading]:
    watched = {file: sampled.numbers(texts[file]) for file in watched_files() if file in texts}
    for name, value in counters(watched, {}).items():
        yield Reading(name, value)
    for monitor in _sampling():
        yield from monitor.readings(texts)


def _counting() -> list[Monitor]:
    return [monitor for monitor in installed()[0].values() if isinstance(monitor, Monitor)]


def _sampling() -> list[SampledMonitor]:
    return [monitor for monitor in installed()[0].values() if isinstance(monitor, SampledMonitor)]


def _check(_name: str, extension: object) -> tuple[str, AnyMonitor]:
    if not isinstance(extension, AnyMonitor):
        raise TypeError("it is no monitor")
    return extension.name, extension
