"""What is watched while a workload runs: counters read before and after. One module a monitor.

A monitor is a module here, or an entry point in the group `ktrial.monitors`, with an object `MONITOR`.
"""

from collections.abc import Mapping
from functools import cache
from typing import Protocol, runtime_checkable

from ktrial import extensions
from ktrial.model.advice import DataWarning

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


@cache
def found() -> tuple[dict[str, Monitor], tuple[DataWarning, ...]]:
    """Every monitor by its name, sorted, and a warning for each plugin that is broken."""
    own = dict(_check(*item) for item in extensions.built_in(__name__, "MONITOR").items())
    return extensions.outside(_GROUP, "monitor", _check, own)


def watched_files() -> tuple[str, ...]:
    """All files of all monitors, sorted."""
    monitors, _ = found()
    return tuple(sorted({file for monitor in monitors.values() for file in monitor.files}))


def counters(watched: Watched, rusage: Mapping[str, float]) -> dict[str, float]:
    """Every monitor's counters, by name, sorted."""
    monitors, _ = found()
    counted: dict[str, float] = {}
    for monitor in monitors.values():
        counted |= monitor.counters(watched, rusage)
    return dict(sorted(counted.items()))


def _check(_name: str, found: object) -> tuple[str, Monitor]:
    if not isinstance(found, Monitor):
        raise TypeError("it is no monitor")
    return found.name, found
