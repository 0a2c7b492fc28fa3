"""What trials run: built-in operations and the user's own commands."""

from functools import cache

from ktrial import plugin_discovery
from ktrial.model.machine import CarriedFile
from ktrial.model.notation import nearest
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import Parameter, WorkloadDescription, WorkloadUse
from ktrial.workloads.adapter import GROUP
from ktrial.workloads.builtin import DEFAULT, DISK, QUICK, WHOLE_BENCHMARKS, built_ins, several_tasks
from ktrial.workloads.command import NAME as COMMAND
from ktrial.workloads.command import CommandWorkload, check_command
from ktrial.workloads.errors import BadCommand, BadParameter, UnknownParameter, UnknownWorkload
from ktrial.workloads.protocol import CountsOperations, RunsPrograms, WarnsOfRuns, Workload

# All workloads by name. A module of this package with a `WORKLOAD` is one; others come by entry points.

_GROUP = "ktrial.workloads"


@cache
def installed() -> tuple[dict[str, Workload], tuple[DataWarning, ...]]:
    """Name → workload, sorted, and a warning for each plugin that is broken. Raises GuestProgramsMissing."""
    own: dict[str, Workload] = {each.description.name: each for each in (*built_ins(), *several_tasks())}
    packages = ("ktrial.workloads", "ktrial.workloads.adapters")
    return plugin_discovery.installed(_GROUP, "workload", "WORKLOAD", packages, _checked_extension, own)


def catalogue() -> dict[str, Workload]:
    """Every workload by its name; `command` runs the command of a use. Raises GuestProgramsMissing."""
    workloads, _ = installed()
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


def _checked_extension(_name: str, extension: object) -> tuple[str, Workload]:
    if not isinstance(extension, Workload):
        raise TypeError("it is no workload")
    return extension.description.name, extension


def check(use: WorkloadUse) -> WorkloadUse:
    """The use, with its parameters in the types that the workload declares.

    Raises UnknownWorkload, UnknownParameter, BadParameter, BadCommand.
    """
    workload = find(use)
    if use.command:
        check_command(use)
    known = {parameter.name: parameter for parameter in workload.description.parameters}
    return use.model_copy(
        update={"parameters": {name: _checked(use, known, name) for name in use.parameters}}
    )


def _checked(use: WorkloadUse, known: dict[str, Parameter], name: str) -> int | float | str:
    if name not in known:
        names = ", ".join(known) or "none"
        raise UnknownParameter(workload=use.name, parameter=name, similar=nearest(name, known), known=names)
    parameter, value = known[name], use.parameters[name]
    converted = _converted(parameter, value)
    if converted is None or not _allowed(parameter, converted):
        raise BadParameter(
            workload=use.name, parameter=name, value=value, allowed=_what_is_allowed(parameter)
        )
    return converted


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


def _allowed(parameter: Parameter, value: int | float | str) -> bool:
    if isinstance(value, str):
        return not parameter.choices or value in parameter.choices
    low = parameter.minimum is None or value >= parameter.minimum
    return low and (parameter.maximum is None or value <= parameter.maximum)


def _what_is_allowed(parameter: Parameter) -> str:
    if parameter.choices:
        return " or ".join(parameter.choices)
    if isinstance(parameter.default, str):
        return "a text"
    number = "a whole number" if isinstance(parameter.default, int) else "a number"
    low = "" if parameter.minimum is None else f" from {parameter.minimum:g}"
    high = "" if parameter.maximum is None else f" to {parameter.maximum:g}"
    return f"{number}{low}{high}"


# Workloads on another machine: programs that are there already, and ktrial's own.


class RemoteCommand(CommandWorkload):
    """Runs what `use.command` says; its program is looked for on the machine that it runs on."""

    def files(self, use: WorkloadUse) -> tuple[CarriedFile, ...]:
        """None. Raises BadCommand where the study wants some carried there."""
        if use.command and (use.command.files or use.command.directories):
            raise BadCommand(
                workload=use.label, problem="the machine ssh carries no files: put them there first"
            )
        return ()

    def program(self, workload: str, named: str) -> str:
        """As it was named."""
        return named


def only_built_in(use: WorkloadUse, workload: Workload) -> Workload:
    """The workload, if its program comes with ktrial. Raises BadCommand."""
    if workload.description.group == GROUP:
        problem = "it runs a program of this system; on the machine ssh, name the program as a command"
        raise BadCommand(workload=use.label, problem=problem)
    return workload


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
]
