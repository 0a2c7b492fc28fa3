"""Files of machine models: TOML in, a ModelledMachine out, and every mistake with its line.

ktrial's own file is `machines.toml` beside this one.
"""

import copy
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ktrial.model import notation
from ktrial.model.base import keys_of
from ktrial.model.machine import DEFAULT_MODEL, NO_MODEL, TRUE_LRU, CacheSize, Cycles, ModelledMachine
from ktrial.studyfile.diagnostics import KeyPath, Mistakes, StudySource, model_in, read_table, shown
from ktrial.studyfile.toml_files import parsed, text_of

OWN_FILE = Path(__file__).with_name("machines.toml")


_ROOT = "machines"


_SAMPLED_SETS = _SAMPLED_LINE = 64


_MOST_LEAVES = 64
"""Ways of a set that is replaced by a tree."""


def machine_model(reference: str, directory: Path) -> ModelledMachine | None:
    """The machine that a study names: `none`, `default`, one of ktrial's own, FILE or FILE#NAME.

    Relative files are looked for in `directory`. Raises StudyUnreadable, StudySyntaxError, StudyMistake.
    """
    if reference == NO_MODEL:
        return None
    ktrials = parsed(text_of(OWN_FILE), OWN_FILE)[_ROOT]
    if reference == DEFAULT_MODEL:
        return _read(OWN_FILE, next(iter(ktrials)), "")
    if reference in ktrials:
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
            names = ", ".join(f'"{path.name}#{machine}"' for machine in machines)
            mistakes.add((_ROOT,), f"which of its {len(machines)} machines? Write model = {names}")
        name = next(iter(machines))
    elif name not in machines:
        mistakes.unknown((_ROOT,), "machine", name, machines)
    mistakes.raise_any()
    machine = _machine(machines, name, file, mistakes)
    mistakes.raise_any()
    if machine is None:
        raise AssertionError("the machine's table was refused without a mistake")
    return machine


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


def _machine(machines: Mapping[str, Any], name: str, file: str, mistakes: Mistakes) -> ModelledMachine | None:
    """The machine, with what it takes from another one, checked."""
    path: KeyPath = (_ROOT, name)
    data = _with_likes(machines, name, mistakes, ())
    if mistakes:
        return None
    keys = ["summary", "like", *keys_of(ModelledMachine)]
    for key in data.keys() - set(keys):
        mistakes.unknown((*path, key), "key", key, keys)
    if not isinstance(summary := data.get("summary", ""), str):
        mistakes.wrong((*path, "summary"), summary, "text: what it is")
    plain = _without_sources(
        {key: data[key] for key in keys[2:] if key in data}, ModelledMachine, path, mistakes
    )
    machine = read_table(ModelledMachine, {"name": name, "file": file, **plain}, path, mistakes, ("value",))
    if machine:
        _check_shapes(machine, path, mistakes)
    return machine


def _without_sources(
    tables: Mapping[str, Any], model: type[BaseModel], path: KeyPath, mistakes: Mistakes
) -> dict[str, Any]:
    """The tables' numbers. Each table says where its numbers come from; one number is `{ value, source }`."""
    plain: dict[str, Any] = {}
    for key, table in tables.items():
        field, where = model.model_fields.get(key), (*path, key)
        below = model_in(field.annotation) if field else None
        plain[key] = table
        if below is Cycles and isinstance(table, dict):
            plain[key] = _without_sources(table, Cycles, where, mistakes)
        elif field is None or key == "sample" or (below and not isinstance(table, dict)):
            continue  # the model says what is wrong
        elif not isinstance(table, dict):
            mistakes.wrong(where, table, f"a table: {field.description}")
            del plain[key]
        else:
            _check_source(table, where, mistakes)
            plain[key] = {inner: value for inner, value in table.items() if inner != "source"}
            if not below:
                for inner in plain[key].keys() - {"value"}:
                    mistakes.unknown((*where, inner), "key", inner, ["value", "source"])
                if "value" not in table:
                    mistakes.add(where, f'the key "value" is missing: {field.description}')
                plain[key] = table.get("value")
    return plain


def _check_source(table: Mapping[str, Any], path: KeyPath, mistakes: Mistakes) -> None:
    allowed = 'where that is from: "Agner Fog, instruction tables: DIV r64"'
    if "source" not in table:
        mistakes.add((*path, "source"), f'the key "source" is missing: {allowed}')
    elif not isinstance(table["source"], str):
        mistakes.wrong((*path, "source"), table["source"], allowed)
    else:
        try:
            notation.plain_text(table["source"])
        except ValueError as error:
            mistakes.add((*path, "source"), f"found {shown(table['source'])}: {error}")


def _with_likes(
    machines: Mapping[str, Any], name: str, mistakes: Mistakes, above: tuple[str, ...]
) -> dict[str, Any]:
    """The machine's keys, on top of those of the machine that it is like."""
    table = machines[name]
    like = table.get("like")
    if like is None:
        return copy.deepcopy(dict(table))
    ktrials = parsed(text_of(OWN_FILE), OWN_FILE)[_ROOT]
    if like in (*above, name):
        mistakes.add((_ROOT, name, "like"), f"{like} is like itself, by way of {name}")
    elif isinstance(like, str) and like in machines:
        return _over(_with_likes(machines, like, mistakes, (*above, name)), table)
    elif isinstance(like, str) and like in ktrials:
        return _over(_with_likes(ktrials, like, mistakes, ()), table)
    else:
        mistakes.unknown((_ROOT, name, "like"), "machine", str(like), [*machines, *ktrials])
    return {}


def _over(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of `above`, and those of `below` that it does not have; constants are taken whole."""
    merged = dict(below)
    for key, value in above.items():
        if key == "cycles" and isinstance(value, dict) and isinstance(below.get(key), dict):
            value = below[key] | value
        merged[key] = value
    return merged


def _check_shapes(machine: ModelledMachine, path: KeyPath, mistakes: Mistakes) -> None:
    """Sets are found by bits of an address: their number is a power of two."""
    for name in ("l1i", "l1d", "l2", "llc"):
        cache = getattr(machine, name)
        if cache is not None:
            _check_cache(cache, (*path, name), mistakes)
            if machine.sample > 1:
                _check_sampled(cache, (*path, name), mistakes)
    for name in ("itlb", "dtlb", "stlb"):
        buffer = getattr(machine, name)
        sets, remainder = divmod(buffer.entries, buffer.ways)
        if remainder or not _is_power_of_two(sets):
            problem = "entries / ways is the number of sets, and must be a power of two"
            mistakes.add((*path, name), f"{buffer.entries} entries in {buffer.ways} ways: {problem}")


def _check_cache(cache: CacheSize, path: KeyPath, mistakes: Mistakes) -> None:
    sets, remainder = divmod(cache.size, cache.ways * cache.line)
    if not _is_power_of_two(cache.line):
        mistakes.add(path, f"a line of {cache.line} bytes is not a power of two")
    elif remainder or not _is_power_of_two(sets):
        problem = "size / (ways × line) is the number of sets, and must be a power of two"
        mistakes.add(path, f"{notation.size_text(cache.size)} in {cache.ways} ways: {problem}")
    elif cache.replacement != TRUE_LRU and not (_is_power_of_two(cache.ways) and cache.ways <= _MOST_LEAVES):
        problem = f"a tree has a power of two of ways, at most {_MOST_LEAVES}"
        mistakes.add(path, f"{cache.replacement} with {cache.ways} ways: {problem}")


def _check_sampled(cache: CacheSize, path: KeyPath, mistakes: Mistakes) -> None:
    """A line's place in its page, one of 64, has to decide which sets it can be in."""
    sets = cache.size // (cache.ways * cache.line)
    if cache.line != _SAMPLED_LINE or sets < _SAMPLED_SETS:
        needed = f"{_SAMPLED_SETS} sets or more with lines of {_SAMPLED_LINE} bytes"
        mistakes.add(path, f"{sets} sets with lines of {cache.line} bytes: sample needs {needed}")


def _is_power_of_two(number: int) -> bool:
    return number > 0 and not number & (number - 1)
