"""Checks the workloads of a study, and makes WorkloadUses of them."""

import os
from collections.abc import Sequence
from pathlib import Path

from ktrial import program_outputs
from ktrial.model.base import keys_of
from ktrial.model.workload import Command, MetricRule, WorkloadUse
from ktrial.studyfile.diagnostics import (
    KeyPath,
    Mistakes,
    StudySource,
    read_table,
    shown,
    unknown,
)
from ktrial.studyfile.errors import StudyError, StudyUnreadable
from ktrial.studyfile.references import Registry, parameter_problem
from ktrial.studyfile.tables import FROM_FILE, WorkloadTable, level
from ktrial.studyfile.toml_files import parsed, text_of
from ktrial.workloads.errors import WorkloadError
from ktrial.workloads.host_files import is_pattern, matches


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
        use = workload_use(table, registry, directory, path, mistakes)
        uses.append(use)
        first = seen.setdefault(_identity(use, registry), index)
        if first != index:
            mistakes.add(path, f"{use.label} is here twice: it is workloads[{first}] already")
        if not mistakes:
            _ask_workload(use, registry, path, mistakes)
    return tuple(uses)


def workload_use(
    table: WorkloadTable, registry: Registry, directory: Path, path: KeyPath, mistakes: Mistakes
) -> WorkloadUse:
    """What one table stands for: a built-in workload, a command, or the file of one."""
    if table.file:
        return _use_from_file(table, registry, directory, path, mistakes)
    if table.argv:
        return _command_use(table, registry, directory, path, mistakes)
    return _built_in_use(table, registry, path, mistakes)


_WITH_A_FILE = {"file", "name", "repeats", "discarded"}
"""What a table that names the file of a workload may say beside it."""


def _use_from_file(
    table: WorkloadTable, registry: Registry, directory: Path, path: KeyPath, mistakes: Mistakes
) -> WorkloadUse:
    """Raises what is wrong with that file, by its own name and lines."""
    for key in sorted((table.model_fields_set | table.parameters.keys()) - _WITH_A_FILE):
        allowed = ", ".join(sorted(_WITH_A_FILE))
        mistakes.add(
            (*path, key), f'"{key}" stands in the file of the workload; beside "file" there is {allowed}'
        )
    use = workload_from_file(directory / Path(table.file or "").expanduser(), registry)
    overriding = table.model_fields_set & {"repeats", "discarded"}
    overrides: dict[str, int] = {key: getattr(table, key) for key in sorted(overriding)}
    command = use.command.model_copy(update=overrides) if use.command else None
    name = use.name if table.name == FROM_FILE else table.name
    return use.model_copy(update={"name": name, "command": command})


def existing_files(
    files: Sequence[str], directory: Path, path: KeyPath, mistakes: Mistakes
) -> tuple[str, ...]:
    """The files', directories' and patterns' absolute paths; one that finds nothing is a mistake."""
    paths = tuple(os.path.normpath(directory / Path(file).expanduser()) for file in files)
    for index, (file, absolute) in enumerate(zip(files, paths, strict=True)):
        if is_pattern(absolute):
            if not matches(absolute):
                mistakes.add((*path, index), f"no file matches {shown(file)} (looked for {absolute})")
        elif not Path(absolute).is_file() and not Path(absolute).is_dir():
            mistakes.add((*path, index), f"there is no file {shown(file)} (looked for {absolute})")
    return paths


TABLE = "workload"
"""The only table of a workload's file."""


def workload_from_file(path: Path, registry: Registry) -> WorkloadUse:
    """The workload in a file of its own. Relative files in it are looked for beside it.

    Raises StudyError.
    """
    try:
        text = text_of(path)
    except StudyUnreadable as error:
        message = error.message.replace("Study", "The file of a workload", 1)
        raise StudyError(message, hint="ktrial workload capture -- COMMAND writes one") from None
    data = parsed(text, path)
    mistakes = Mistakes(StudySource(str(path), text), data)
    for key in data.keys() - {TABLE}:
        mistakes.add((key,), f"the file of a workload has one table, [{TABLE}]")
    table = None
    if isinstance(data.get(TABLE), dict):
        table = read_table(WorkloadTable, data[TABLE], (TABLE,), mistakes)
    else:
        mistakes.add((TABLE,), f"there is no table [{TABLE}]; it says name, command and what they need")
    if table and not table.argv:
        mistakes.add(
            (TABLE,), f'the key "command" is missing: {WorkloadTable.model_fields["argv"].description}'
        )
    if table and table.file:
        mistakes.add((TABLE, "file"), "this is the file of a workload already")
    mistakes.raise_any()
    if table is None:
        raise AssertionError("the workload's table was refused without a mistake")
    use = _command_use(table, registry, path.absolute().parent, (TABLE,), mistakes)
    if not mistakes:
        _ask_workload(use, registry, (TABLE,), mistakes)
    mistakes.raise_any()
    return use


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
    defaults: dict[str, int | float | str] = {
        parameter.name: parameter.default for parameter in description.parameters
    }
    return use.model_copy(update={"parameters": defaults | use.parameters}).label


_OF_COMMANDS = {
    *("files", "directories", "keep_links", "directory", "environment"),
    *("metrics", "repeats", "discarded", "notes", "user", "after", "skip_start"),
}


def _built_in_use(table: WorkloadTable, registry: Registry, path: KeyPath, mistakes: Mistakes) -> WorkloadUse:
    description = registry.workloads.get(table.name)
    if description is None:
        mistakes.unknown(path, "workload", table.name, registry.workloads)
        return WorkloadUse(name=table.name)
    for key in sorted(table.model_fields_set & _OF_COMMANDS):
        mistakes.add((*path, key), f'"{key}" is for a workload with a "command"; {table.name} is built in')
    parameters = {parameter.name: parameter for parameter in description.parameters}
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
    keys = {name: getattr(table, name) for name in Command.model_fields}
    keys["argv"] = tuple(_carried(word, files, directory) for word in table.argv)
    rules = _rules(table.metrics, (*path, "metrics"), mistakes)
    return WorkloadUse(name=table.name, command=Command(**keys | {"files": files, "metrics": rules}))


def _carried(word: str, files: tuple[str, ...], directory: Path) -> str:
    """In the guest a carried file is at the path that it has on the host."""
    absolute = os.path.normpath(directory / word)
    return absolute if absolute in files else word


def _rules(metrics: Sequence[MetricRule], path: KeyPath, mistakes: Mistakes) -> tuple[MetricRule, ...]:
    """The rules, each with a name where its format's metric gives one."""
    names = [metric.name or metric.metric or metric.format for metric in metrics]
    for index, metric in enumerate(metrics):
        if names[index] in names[:index]:
            mistakes.add((*path, index), f'the metric "{names[index]}" is here twice')
        if metric.format:
            _check_format(metric, path, index, mistakes)
        else:
            _check_rule(metric, (*path, index), mistakes)
    return tuple(metric.model_copy(update={"name": metric.name or metric.metric}) for metric in metrics)


def _check_rule(metric: MetricRule, path: KeyPath, mistakes: Mistakes) -> None:
    if not metric.name:
        allowed = MetricRule.model_fields["name"].description
        mistakes.add(path, f'the key "name" is missing: {allowed}')
    if metric.metric:
        mistakes.add((*path, "metric"), 'it is for a metric of a "format"')
    if metric.regex and metric.json_path:
        mistakes.add(path, 'it has "regex" and "json"; a metric is found by one of them')


def _check_format(metric: MetricRule, path: KeyPath, index: int, mistakes: Mistakes) -> None:
    """`metrics = "fio-json"` has no keys to point to."""
    at = path if metric.model_fields_set == {"format"} else (*path, index)
    formats, _ = program_outputs.installed()
    if metric.format not in formats:
        mistakes.unknown(at, "format of metrics", metric.format, formats)
    for key in sorted(metric.model_fields_set & {"unit", "direction", "regex", "json_path"}):
        mistakes.add(at, f'"{key.removesuffix("_path")}" is given by the format: leave it out')
    if metric.name and not metric.metric:
        mistakes.add(at, f'which metric of {metric.format} is "{metric.name}"? metric = "…" says it')
