"""Files of machine models: TOML in, a ModelledMachine out, and every mistake with its line.

ktrial's own file is `machines.toml` beside this one.
"""

import copy
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from ktrial.model import quantities
from ktrial.model.machine_model import (
    DEFAULT_MODEL,
    NO_MODEL,
    TRUE_LRU,
    BranchPredictor,
    BufferSize,
    CacheSize,
    Cycles,
    ModelledMachine,
    PagingCaches,
)
from ktrial.studyfile.diagnostics import KeyPath, Mistakes, StudySource, shown
from ktrial.studyfile.machine_models.tables import (
    BufferTable,
    CacheTable,
    CyclesTable,
    MachineModelTable,
)
from ktrial.studyfile.toml_text import parsed, text_of

OWN_FILE = Path(__file__).with_name("machines.toml")
_ROOT = "machines"
_SAMPLED_SETS = _SAMPLED_LINE = 64
_MOST_LEAVES = 64
"""Ways of a set that is replaced by a tree."""


def machine_model(reference: str, directory: Path) -> ModelledMachine | None:
    """The machine that a study names: `none`, `default`, one of ktrial's own, FILE or FILE#NAME.

    Relative files are looked for in `directory`. Raises StudyUnreadable, StudySyntaxError, StudyMistake,
    StudyMistakes.
    """
    if reference == NO_MODEL:
        return None
    own = parsed(text_of(OWN_FILE), OWN_FILE)[_ROOT]
    if reference == DEFAULT_MODEL:
        return _read(OWN_FILE, next(iter(own)), "")
    if reference in own:
        return _read(OWN_FILE, reference, "")
    text, _, name = reference.partition("#")
    path = Path(os.path.normpath(directory / Path(text).expanduser()))
    return _read(path, name, str(path))


def own_machines() -> tuple[str, ...]:
    """The names of the machines that come with ktrial; the first is the default."""
    return tuple(parsed(text_of(OWN_FILE), OWN_FILE)[_ROOT])


def _read(path: Path, name: str, file: str) -> ModelledMachine:
    text = text_of(path)
    data = parsed(text, path)
    mistakes = Mistakes(StudySource(str(path), text), data)
    machines = _machines(data, mistakes)
    mistakes.raise_any()
    if not name:
        if len(machines) > 1:
            names = ", ".join(f'"{path.name}#{one}"' for one in machines)
            mistakes.add((_ROOT,), f"which of its {len(machines)} machines? Write model = {names}")
        name = next(iter(machines))
    elif name not in machines:
        mistakes.unknown((_ROOT,), "machine", name, machines)
    mistakes.raise_any()
    table = _table(machines, name, mistakes)
    mistakes.raise_any()
    if table is None:
        raise AssertionError("the machine's table was refused without a mistake")
    return _machine(table, name, file)


def _machines(data: Mapping[str, Any], mistakes: Mistakes) -> dict[str, Any]:
    """The file's machines; what else it has is a mistake."""
    for key in data.keys() - {_ROOT}:
        mistakes.unknown((key,), "key", key, [_ROOT])
    machines = data.get(_ROOT)
    if not isinstance(machines, dict) or not machines:
        mistakes.add((), "there is no machine; the file of a model has at least one table [machines.NAME]")
        return {}
    for name, table in machines.items():
        if not isinstance(table, dict):
            mistakes.wrong((_ROOT, name), table, "a table [machines.NAME]")
    return machines


def _table(machines: Mapping[str, Any], name: str, mistakes: Mistakes) -> MachineModelTable | None:
    """The machine's table, with what it takes from another one, checked."""
    data = _with_likes(machines, name, mistakes, ())
    if mistakes:
        return None
    try:
        table = MachineModelTable.model_validate(data)
    except ValidationError as error:
        for details in error.errors():
            path: KeyPath = (_ROOT, name, *details["loc"])
            match details["type"]:
                case "extra_forbidden":
                    allowed = (
                        MachineModelTable if len(details["loc"]) == 1 else _model_at(details["loc"][:-1])
                    )
                    mistakes.unknown(path, "key", str(details["loc"][-1]), allowed.model_fields)
                case "missing":
                    mistakes.add(
                        path, f'the key "{details["loc"][-1]}" is missing: {_allowed(details["loc"])}'
                    )
                case "value_error":
                    mistakes.add(path, f"found {shown(details['input'])}: {details['ctx']['error']}")
                case _:
                    mistakes.wrong(path, details["input"], _allowed(details["loc"]))
        return None
    _check_shapes(table, (_ROOT, name), mistakes)
    return table


def _with_likes(
    machines: Mapping[str, Any], name: str, mistakes: Mistakes, above: tuple[str, ...]
) -> dict[str, Any]:
    """The machine's keys, on top of those of the machine that it is like."""
    table = machines[name]
    like = table.get("like")
    if like is None:
        return copy.deepcopy(dict(table))
    own = parsed(text_of(OWN_FILE), OWN_FILE)[_ROOT]
    if like in (*above, name):
        mistakes.add((_ROOT, name, "like"), f"{like} is like itself, by way of {name}")
    elif like in machines:
        return _over(_with_likes(machines, like, mistakes, (*above, name)), table)
    elif like in own:
        return _over(_with_likes(own, like, mistakes, ()), table)
    else:
        mistakes.unknown((_ROOT, name, "like"), "machine", str(like), [*machines, *own])
    return {}


def _over(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of `above`, and those of `below` that it does not have; constants are taken whole."""
    merged = dict(below)
    for key, value in above.items():
        if key == "cycles" and isinstance(value, dict) and isinstance(below.get(key), dict):
            value = below[key] | value
        merged[key] = value
    return merged


def _model_at(loc: tuple[int | str, ...]) -> type[BaseModel]:
    """The table that stands at a place below `[machines.NAME]`."""
    table: type[BaseModel] = MachineModelTable
    for part in loc:
        kind = table.model_fields[str(part)].annotation
        table = next(each for each in (kind, *get_args(kind)) if isinstance(each, type))
    return table


def _allowed(loc: tuple[int | str, ...]) -> str:
    field = _model_at(loc[:-1]).model_fields[str(loc[-1])]
    return field.description or ""


def _check_shapes(table: MachineModelTable, path: KeyPath, mistakes: Mistakes) -> None:
    """Sets are found by bits of an address: their number is a power of two."""
    for name in ("l1i", "l1d", "l2", "llc"):
        cache = getattr(table, name)
        if cache is not None:
            _check_cache(cache, (*path, name), mistakes)
            if table.sample > 1:
                _check_sampled(cache, (*path, name), mistakes)
    for name in ("itlb", "dtlb", "stlb"):
        buffer = getattr(table, name)
        sets, rest = divmod(buffer.entries, buffer.ways)
        if rest or not _is_power_of_two(sets):
            problem = "entries / ways is the number of sets, and must be a power of two"
            mistakes.add((*path, name), f"{buffer.entries} entries in {buffer.ways} ways: {problem}")


def _check_cache(cache: CacheTable, path: KeyPath, mistakes: Mistakes) -> None:
    sets, rest = divmod(quantities.size_bytes(cache.size), cache.ways * cache.line)
    if not _is_power_of_two(cache.line):
        mistakes.add(path, f"a line of {cache.line} bytes is no power of two")
    elif rest or not _is_power_of_two(sets):
        problem = "size / (ways × line) is the number of sets, and must be a power of two"
        mistakes.add(path, f"{cache.size} in {cache.ways} ways: {problem}")
    elif cache.replacement != TRUE_LRU and not (_is_power_of_two(cache.ways) and cache.ways <= _MOST_LEAVES):
        problem = f"a tree has a power of two of ways, at most {_MOST_LEAVES}"
        mistakes.add(path, f"{cache.replacement} with {cache.ways} ways: {problem}")


def _check_sampled(cache: CacheTable, path: KeyPath, mistakes: Mistakes) -> None:
    """A line's place in its page, one of 64, has to decide which sets it can be in."""
    sets = quantities.size_bytes(cache.size) // (cache.ways * cache.line)
    if cache.line != _SAMPLED_LINE or sets < _SAMPLED_SETS:
        needed = f"{_SAMPLED_SETS} sets or more with lines of {_SAMPLED_LINE} bytes"
        mistakes.add(path, f"{sets} sets with lines of {cache.line} bytes: sample needs {needed}")


def _is_power_of_two(number: int) -> bool:
    return number > 0 and not number & (number - 1)


def _machine(table: MachineModelTable, name: str, file: str) -> ModelledMachine:
    return ModelledMachine(
        name=name,
        file=file,
        l1i=_cache(table.l1i),
        l1d=_cache(table.l1d),
        l2=_cache(table.l2),
        llc=_cache(table.llc) if table.llc else None,
        sample=table.sample,
        prefetch=table.prefetch.value,
        strides=table.strides.value if table.strides else 0,
        itlb=_buffer(table.itlb),
        dtlb=_buffer(table.dtlb),
        stlb=_buffer(table.stlb),
        paging=PagingCaches(**table.paging.model_dump(exclude={"source"})) if table.paging else None,
        branches=BranchPredictor(**table.branches.model_dump(exclude={"source"})),
        cycles=_cycles(table.cycles),
    )


def _cache(table: CacheTable) -> CacheSize:
    size = quantities.size_bytes(table.size)
    return CacheSize(size=size, ways=table.ways, line=table.line, replacement=table.replacement)


def _buffer(table: BufferTable) -> BufferSize:
    return BufferSize(entries=table.entries, ways=table.ways)


def _cycles(table: CyclesTable) -> Cycles:
    given = {name: getattr(table, name) for name in CyclesTable.model_fields}
    return Cycles(**{name: constant.value for name, constant in given.items() if constant})
