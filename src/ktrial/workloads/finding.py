"""All workloads by name. A module of this package with a `WORKLOAD` is one; others come by entry points."""

import difflib
import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from ktrial.errors import UnknownWorkload
from ktrial.model.advice import DataWarning, WarningKind
from ktrial.model.workload import WorkloadDescription, WorkloadUse
from ktrial.workloads.builtin import built_ins
from ktrial.workloads.command import NAME as COMMAND
from ktrial.workloads.protocol import Workload

_GROUP = "ktrial.workloads"
_BROKEN = (ImportError, AttributeError, SyntaxError, NameError, TypeError, ValueError, LookupError, OSError)
"""What the import of another package's module may raise; ktrial goes on without it."""


@cache
def found() -> tuple[dict[str, Workload], tuple[DataWarning, ...]]:
    """Name → workload, sorted, and a warning for each plugin that is broken. Raises GuestProgramsMissing."""
    workloads: dict[str, Workload] = {each.description.name: each for each in built_ins()}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        workload = getattr(importlib.import_module(f"{__package__}.{module.name}"), "WORKLOAD", None)
        if workload is not None:
            workloads[workload.description.name] = workload
    warnings = []
    for entry in entry_points(group=_GROUP):
        try:
            workload = entry.load()
            if not isinstance(workload, Workload):
                raise TypeError(f"{entry.value} is no workload")
            workloads.setdefault(workload.description.name, workload)
        except _BROKEN as error:
            warnings.append(_broken(entry.name, error))
    return dict(sorted(workloads.items())), tuple(warnings)


def catalogue() -> dict[str, Workload]:
    """Every workload by its name; `command` runs the command of a use. Raises GuestProgramsMissing."""
    workloads, _ = found()
    return workloads


def descriptions() -> dict[str, WorkloadDescription]:
    """What can be named in a study without a command of one's own. Raises GuestProgramsMissing."""
    return {name: each.description for name, each in catalogue().items() if name != COMMAND}


def find(use: WorkloadUse) -> Workload:
    """The workload of a use: of its command, or of its name. Raises UnknownWorkload."""
    workloads = catalogue()
    if use.command:
        return workloads[COMMAND]
    if use.name not in workloads or use.name == COMMAND:
        raise UnknownWorkload(workload=use.name, similar=similar(use.name, descriptions()))
    return workloads[use.name]


def similar(name: str, known: Iterable[str]) -> str:
    """` (did you mean fork or vfork?)`; empty where nothing is near."""
    near = difflib.get_close_matches(name, list(known), n=2)
    return f" (did you mean {' or '.join(near)}?)" if near else ""


def _broken(name: str, error: Exception) -> DataWarning:
    return DataWarning(
        kind=WarningKind.PLUGIN_BROKEN,
        text=f"the workload {name} is broken and is left out: {type(error).__name__}: {error}",
        advice="update or uninstall the package that brings it",
    )
