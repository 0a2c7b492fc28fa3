"""Checks the workloads of a study, and makes WorkloadUses of them."""

import os
import shlex
from pathlib import Path

from ktrial.model.workload import Command, Direction, MetricRule, WorkloadUse
from ktrial.studyfile.diagnostics import KeyPath, Mistakes, shown, unknown
from ktrial.studyfile.registry import Registry, parameter_problem
from ktrial.studyfile.schema import MetricTable, WorkloadTable, level
from ktrial.studyfile.validation import keys_of
from ktrial.workloads.errors import WorkloadError


def workload_uses(
    tables: list[WorkloadTable], registry: Registry, directory: Path, mistakes: Mistakes
) -> tuple[WorkloadUse, ...]:
    """The study's workloads; `directory` is where relative files are looked for."""
    if not tables:
        mistakes.add(
            ("workloads",), "there is no workload; a study needs at least one (ktrial workload list)"
        )
    uses: list[WorkloadUse] = []
    seen: dict[str, int] = {}
    for index, table in enumerate(tables):
        path: KeyPath = ("workloads", index)
        use = _command_use(table, registry, directory, path, mistakes) if table.command else None
        use = use or _built_in_use(table, registry, path, mistakes)
        uses.append(use)
        first = seen.setdefault(_identity(use, registry), index)
        if first != index:
            mistakes.add(path, f"{use.label} is here twice: it is workloads[{first}] already")
        if not mistakes:
            _ask_workload(use, registry, path, mistakes)
    return tuple(uses)


def existing_files(files: list[str], directory: Path, path: KeyPath, mistakes: Mistakes) -> tuple[str, ...]:
    """The files' absolute paths; one that is not there is a mistake."""
    paths = tuple(os.path.normpath(directory / Path(file).expanduser()) for file in files)
    for index, (file, absolute) in enumerate(zip(files, paths, strict=True)):
        if not Path(absolute).is_file():
            mistakes.add((*path, index), f"there is no file {shown(file)} (looked for {absolute})")
    return paths


def _ask_workload(use: WorkloadUse, registry: Registry, path: KeyPath, mistakes: Mistakes) -> None:
    """A workload of another package may know more than its description says."""
    try:
        registry.check(use)
    except WorkloadError as error:
        mistakes.add(path, error.message)


def _identity(use: WorkloadUse, registry: Registry) -> str:
    """Equal for uses that do the same: parameters that are set to their defaults make no difference."""
    description = registry.workloads.get(use.name)
    if use.command or description is None:
        return use.name
    defaults: dict[str, int | float | str] = {each.name: each.default for each in description.parameters}
    return use.model_copy(update={"parameters": defaults | use.parameters}).label


def _built_in_use(table: WorkloadTable, registry: Registry, path: KeyPath, mistakes: Mistakes) -> WorkloadUse:
    description = registry.workloads.get(table.name)
    if description is None:
        mistakes.unknown(path, "workload", table.name, registry.workloads)
        return WorkloadUse(name=table.name)
    for key in sorted(table.model_fields_set & {"files", "metrics", "repeats", "discarded", "user"}):
        mistakes.add((*path, key), f'"{key}" is for a workload with a "command"; {table.name} is built in')
    parameters = {each.name: each for each in description.parameters}
    values = {}
    for name, value in table.parameters.items():
        if name not in parameters:
            mistakes.unknown((*path, name), f"parameter of {table.name}", name, parameters)
            continue
        try:
            values[name] = level(value)
        except ValueError as error:
            mistakes.add((*path, name), f"found {shown(value)}: {error}")
            continue
        if problem := parameter_problem(parameters[name], values[name]):
            mistakes.wrong((*path, name), value, problem)
    return WorkloadUse(name=table.name, parameters=values)


def _command_use(
    table: WorkloadTable, registry: Registry, directory: Path, path: KeyPath, mistakes: Mistakes
) -> WorkloadUse:
    if table.name in registry.workloads:
        mistakes.add((*path, "name"), f'"{table.name}" is a built-in workload: give the command another name')
    for key in table.parameters:
        mistakes.add((*path, key), unknown("key", key, keys_of(WorkloadTable)))
    files = existing_files(table.files, directory, (*path, "files"), mistakes)
    argv = _argv(table, path, mistakes)
    command = Command(
        argv=tuple(_carried(word, files, directory) for word in argv),
        files=files,
        metrics=tuple(_rules(table.metrics, (*path, "metrics"), mistakes)),
        repeats=table.repeats,
        discarded=table.discarded,
        user=table.user or "",
    )
    return WorkloadUse(name=table.name, command=command)


def _argv(table: WorkloadTable, path: KeyPath, mistakes: Mistakes) -> list[str]:
    if isinstance(table.command, list):
        return table.command
    try:
        return shlex.split(table.command or "")
    except ValueError as error:
        mistakes.add((*path, "command"), f"found {shown(table.command)}: {str(error).lower()}")
        return []


def _carried(word: str, files: tuple[str, ...], directory: Path) -> str:
    """In the guest a carried file is at the path that it has on the host."""
    absolute = os.path.normpath(directory / word)
    return absolute if absolute in files else word


def _rules(metrics: list[MetricTable], path: KeyPath, mistakes: Mistakes) -> list[MetricRule]:
    names = [metric.name for metric in metrics]
    for index, metric in enumerate(metrics):
        if metric.name in names[:index]:
            mistakes.add((*path, index), f'the metric "{metric.name}" is here twice')
        if metric.regex is not None and metric.json_path is not None:
            mistakes.add((*path, index), 'it has "regex" and "json"; a metric is found by one of them')
    return [
        MetricRule(
            name=metric.name,
            unit=metric.unit,
            direction=Direction(metric.direction),
            regex=metric.regex or "",
            json=metric.json_path or "",
        )
        for metric in metrics
    ]
