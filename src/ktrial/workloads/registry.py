"""All workloads by name. A module of this package with a `WORKLOAD` is one; others come by entry points."""

from functools import cache

from ktrial import plugin_discovery
from ktrial.model.suggestions import nearest
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import WorkloadDescription, WorkloadUse
from ktrial.workloads.builtin import built_ins
from ktrial.workloads.command import NAME as COMMAND
from ktrial.workloads.errors import UnknownWorkload
from ktrial.workloads.protocol import Workload

_GROUP = "ktrial.workloads"


@cache
def found() -> tuple[dict[str, Workload], tuple[DataWarning, ...]]:
    """Name → workload, sorted, and a warning for each plugin that is broken. Raises GuestProgramsMissing."""
    own: dict[str, Workload] = {each.description.name: each for each in built_ins()}
    own |= dict(
        _check(*item)
        for item in plugin_discovery.built_in(
            "WORKLOAD", "ktrial.workloads", "ktrial.workloads.adapters"
        ).items()
    )
    return plugin_discovery.outside(_GROUP, "workload", _check, own)


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
        raise UnknownWorkload(workload=use.name, similar=nearest(use.name, descriptions()))
    return workloads[use.name]


def _check(_name: str, found: object) -> tuple[str, Workload]:
    if not isinstance(found, Workload):
        raise TypeError("it is no workload")
    return found.description.name, found
