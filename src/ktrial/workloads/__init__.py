"""What trials run: built-in operations, installed programs and the user's own commands, by their names.

A module of this package, or of `adapters`, with an object `WORKLOAD` is a workload; others come by entry
points.
"""

from functools import cache

from ktrial import plugin_discovery
from ktrial.model.notation import nearest
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import Parameter, WorkloadDescription, WorkloadUse
from ktrial.workloads.adapter import GROUP as INSTALLED_PROGRAMS
from ktrial.workloads.builtin import (
    DEFAULT,
    DISK,
    QUICK,
    WHOLE_BENCHMARKS,
    built_ins,
    several_tasks,
)
from ktrial.workloads.command import NAME as COMMAND
from ktrial.workloads.command import check_command
from ktrial.workloads.errors import BadWorkload
from ktrial.workloads.protocol import CountsOperations, RunsPrograms, WarnsOfRuns, Workload

__all__ = [
    "DEFAULT",
    "DISK",
    "QUICK",
    "WHOLE_BENCHMARKS",
    "CountsOperations",
    "RunsPrograms",
    "WarnsOfRuns",
    "Workload",
    "catalogue",
    "check",
    "descriptions",
    "find",
    "installed",
    "only_built_in",
]

_GROUP = "ktrial.workloads"


@cache
def installed() -> tuple[dict[str, Workload], tuple[DataWarning, ...]]:
    """Name → workload, sorted, and a warning for each plugin that is broken. Raises GuestProgramsMissing."""
    guest_programs: dict[str, Workload] = {
        workload.description.name: workload for workload in (*built_ins(), *several_tasks())
    }
    packages = ("ktrial.workloads", "ktrial.workloads.adapters")
    return plugin_discovery.installed(
        _GROUP, "workload", "WORKLOAD", packages, _name_and_workload, guest_programs
    )


def _name_and_workload(_module: str, extension: object) -> tuple[str, Workload]:
    if not isinstance(extension, Workload):
        raise TypeError("it is not a workload")
    return extension.description.name, extension


def catalogue() -> dict[str, Workload]:
    """Every workload by its name; `command` runs the command of a use. Raises GuestProgramsMissing."""
    workloads, _ = installed()
    return workloads


def descriptions() -> dict[str, WorkloadDescription]:
    """What can be named in a study without a command of one's own. Raises GuestProgramsMissing."""
    return {name: workload.description for name, workload in catalogue().items() if name != COMMAND}


def find(use: WorkloadUse) -> Workload:
    """The workload of a use: of its command, or of its name. Raises BadWorkload."""
    workloads = catalogue()
    if use.command:
        return workloads[COMMAND]
    if use.name not in workloads or use.name == COMMAND:
        raise BadWorkload(
            f"There is no workload {use.name}{nearest(use.name, descriptions())}.",
            hint="ktrial workload list shows all; a command of yours needs a name and its command line",
        )
    return workloads[use.name]


def check(use: WorkloadUse) -> WorkloadUse:
    """The use, with its parameters in the types that the workload declares. Raises BadWorkload."""
    workload = find(use)
    if use.command:
        check_command(use)
    declared = {parameter.name: parameter for parameter in workload.description.parameters}
    parameters = {}
    for name, value in use.parameters.items():
        hint = f"ktrial workload show {use.name}"
        if name not in declared:
            similar, names = nearest(name, declared), ", ".join(declared) or "none"
            message = f"Workload {use.name} has no parameter {name}{similar}; it has {names}."
            raise BadWorkload(message, hint=hint)
        converted = _converted(declared[name], value)
        if converted is None or not _is_in_range(declared[name], converted):
            allowed = _range_in_words(declared[name])
            raise BadWorkload(f"Workload {use.name}: {name} is {value!r}; give {allowed}.", hint=hint)
        parameters[name] = converted
    return use.model_copy(update={"parameters": parameters})


def _converted(parameter: Parameter, value: int | float | str) -> int | float | str | None:
    """In the type of the default; None where it cannot be."""
    match parameter.default, value:
        case str(), str():
            return value
        case str(), _:
            return None
        case int(), float() if not value.is_integer():
            return None
        case int(), int() | float():
            return int(value)
        case float(), int() | float():
            return float(value)
        case _:
            return None


def _is_in_range(parameter: Parameter, value: int | float | str) -> bool:
    if isinstance(value, str):
        return not parameter.choices or value in parameter.choices
    low = parameter.minimum is None or value >= parameter.minimum
    return low and (parameter.maximum is None or value <= parameter.maximum)


def _range_in_words(parameter: Parameter) -> str:
    if parameter.choices:
        return " or ".join(parameter.choices)
    if isinstance(parameter.default, str):
        return "a text"
    number = "a whole number" if isinstance(parameter.default, int) else "a number"
    low = "" if parameter.minimum is None else f" from {parameter.minimum:g}"
    high = "" if parameter.maximum is None else f" to {parameter.maximum:g}"
    return f"{number}{low}{high}"


def only_built_in(use: WorkloadUse, workload: Workload) -> Workload:
    """The workload, if its program comes with ktrial, as the machine ssh needs it. Raises BadWorkload."""
    if workload.description.group == INSTALLED_PROGRAMS:
        raise BadWorkload(
            f"Workload {use.label}: it runs a program of this system; on the machine ssh, name the program "
            "as a command."
        )
    return workload
