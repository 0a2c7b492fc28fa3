"""Checks the workloads of a study, and makes WorkloadUses of them."""

import os
import re
import shlex
from pathlib import Path

from ktrial import program_outputs
from ktrial.model.workload import Command, Direction, MetricRule, WorkloadUse
from ktrial.studyfile.diagnostics import (
    KeyPath,
    Mistakes,
    StudySource,
    keys_of,
    read_workload,
    shown,
    unknown,
)
from ktrial.studyfile.references import Registry, parameter_problem
from ktrial.studyfile.tables import FROM_FILE, MetricTable, WorkloadTable, level
from ktrial.studyfile.toml_files import parsed, text_of
from ktrial.workloads.errors import WorkloadError
from ktrial.workloads.host_files import is_pattern, matches

_NEEDS_A_SHELL = (
    "found {command}: {found} is for a shell, and commands run without one; write a path out, or have a "
    'shell: command = ["sh", "-c", "…"]; to pass it on as it is, quote it: \'…\''
)


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
    if table.command:
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


def existing_files(files: list[str], directory: Path, path: KeyPath, mistakes: Mistakes) -> tuple[str, ...]:
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

    Raises StudyUnreadable, StudySyntaxError, StudyMistake.
    """
    text = text_of(path)
    data = parsed(text, path)
    mistakes = Mistakes(StudySource(str(path), text), data)
    for key in data.keys() - {TABLE}:
        mistakes.add((key,), f"the file of a workload has one table, [{TABLE}]")
    table = read_workload(data, TABLE, mistakes)
    if table and not table.command:
        mistakes.add(
            (TABLE,), f'the key "command" is missing: {WorkloadTable.model_fields["command"].description}'
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
    *("metrics", "repeats", "discarded", "notes", "user"),
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
    argv = _argv(table, path, mistakes)
    command = Command(
        argv=tuple(_carried(word, files, directory) for word in argv),
        files=files,
        directories=tuple(table.directories),
        keep_links=table.keep_links,
        directory=table.directory or "",
        environment=table.environment,
        metrics=tuple(_rules(table.metrics, (*path, "metrics"), mistakes)),
        repeats=table.repeats,
        discarded=table.discarded,
        notes=tuple(table.notes),
        user=table.user or "",
    )
    return WorkloadUse(name=table.name, command=command)


def _argv(table: WorkloadTable, path: KeyPath, mistakes: Mistakes) -> list[str]:
    if isinstance(table.command, list):
        return table.command
    if shell_word := _for_a_shell(table.command or ""):
        mistakes.add(
            (*path, "command"), _NEEDS_A_SHELL.format(found=shell_word, command=shown(table.command))
        )
        return []
    try:
        return shlex.split(table.command or "")
    except ValueError as error:
        mistakes.add((*path, "command"), f"found {shown(table.command)}: {str(error).lower()}")
        return []


def _for_a_shell(command: str) -> str:
    """The first of its words that only a shell would read, unquoted: `|`, `>file`, `~/x`, `$HOME`, `*.c`."""
    plain = re.sub(r"\\.|'[^']*'", "x", command, flags=re.DOTALL)
    if match := re.search(r"[$`]\S*", plain):
        return match[0]
    match = re.search(r"(?<!\S)~\S*|\d?[|&;<>()]+\S*|\S*[*?]\S*", re.sub(r'"[^"]*"', "x", plain))
    return match[0] if match else ""


def _carried(word: str, files: tuple[str, ...], directory: Path) -> str:
    """In the guest a carried file is at the path that it has on the host."""
    absolute = os.path.normpath(directory / word)
    return absolute if absolute in files else word


def _rules(metrics: list[MetricTable], path: KeyPath, mistakes: Mistakes) -> list[MetricRule]:
    names = [metric.name or metric.metric or metric.format for metric in metrics]
    for index, metric in enumerate(metrics):
        if names[index] in names[:index]:
            mistakes.add((*path, index), f'the metric "{names[index]}" is here twice')
        if metric.format is None:
            _check_rule(metric, (*path, index), mistakes)
        else:
            _check_format(metric, metric.format, path, index, mistakes)
    return [_rule(metric) for metric in metrics]


def _check_rule(metric: MetricTable, path: KeyPath, mistakes: Mistakes) -> None:
    if metric.name is None:
        allowed = MetricTable.model_fields["name"].description
        mistakes.add(path, f'the key "name" is missing: {allowed}')
    if metric.metric is not None:
        mistakes.add((*path, "metric"), 'it is for a metric of a "format"')
    if metric.regex is not None and metric.json_path is not None:
        mistakes.add(path, 'it has "regex" and "json"; a metric is found by one of them')


_TOLD_BY_FORMAT = {"unit", "direction", "regex", "json_path"}


def _check_format(metric: MetricTable, format: str, path: KeyPath, index: int, mistakes: Mistakes) -> None:
    """`metrics = "fio-json"` has no keys to point to."""
    at = path if metric.model_fields_set == {"format"} else (*path, index)
    formats, _ = program_outputs.installed()
    if format not in formats:
        mistakes.unknown(at, "format of metrics", format, formats)
    for key in sorted(metric.model_fields_set & _TOLD_BY_FORMAT):
        mistakes.add(at, f'"{key.removesuffix("_path")}" is told by the format: leave it out')
    if metric.name and not metric.metric:
        mistakes.add(at, f'which metric of {format} is "{metric.name}"? metric = "…" says it')


def _rule(metric: MetricTable) -> MetricRule:
    return MetricRule(
        name=metric.name or metric.metric or "",
        unit=metric.unit,
        direction=Direction(metric.direction),
        regex=metric.regex or "",
        json=metric.json_path or "",
        format=metric.format or "",
        metric=metric.metric or "",
    )
