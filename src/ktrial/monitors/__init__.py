"""What is watched while a workload runs: counters read before and after. One module a monitor.

A monitor is a module here, or an entry point in the group `ktrial.monitors`, with an object `monitor`.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Protocol, runtime_checkable

from ktrial.model.advice import DataWarning, WarningKind

Watched = Mapping[str, Mapping[str, tuple[float, ...]]]
"""File → line's first word → by how much each number on that line rose (StepResult.watched)."""

_GROUP = "ktrial.monitors"
_BROKEN = (ImportError, AttributeError, SyntaxError, NameError, TypeError, ValueError, LookupError, OSError)
"""What the import of another package's module may raise; ktrial goes on without it."""


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
    monitors: dict[str, Monitor] = {}
    for module in pkgutil.iter_modules(__path__):
        built_in = importlib.import_module(f"{__name__}.{module.name}").monitor
        monitors[built_in.name] = built_in
    warnings = []
    for entry in entry_points(group=_GROUP):
        try:
            monitor = entry.load()
            if not isinstance(monitor, Monitor):
                raise TypeError(f"{entry.value} is no monitor")
            monitors[monitor.name] = monitor
        except _BROKEN as error:
            warnings.append(_broken(entry.name, error))
    return dict(sorted(monitors.items())), tuple(warnings)


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


def _broken(name: str, error: Exception) -> DataWarning:
    return DataWarning(
        kind=WarningKind.PLUGIN_BROKEN,
        text=f"the monitor {name} is broken and is left out: {type(error).__name__}: {error}",
        advice="update or uninstall the package that brings it",
    )
