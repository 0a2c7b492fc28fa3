"""Files of machine models: TOML in, a ModelledMachine out, and every mistake with its line.

ktrial's own file is `machines.toml` beside this one.
"""

import copy
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from ktrial.model import notation
from ktrial.model.machine import (
    DEFAULT_MODEL,
    NO_MODEL,
    TRUE_LRU,
    BranchPredictor,
    BufferSize,
    CacheSize,
    Cycles,
    ModelledMachine,
    PagingCaches,
    Replacement,
)
from ktrial.studyfile.diagnostics import KeyPath, Mistakes, StudySource, shown
from ktrial.studyfile.tables import KeyTable, Name, Prose, Text
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


class SourcedTable(KeyTable):
    """A table that says where its numbers come from."""

    source: Text = Field(description='where that is from: "Agner Fog, instruction tables: DIV r64"')


class BranchTable(SourcedTable):
    """The branch predictor."""

    history_bits: int = Field(ge=1, le=20, description="a whole number from 1 to 20")
    returns: int = Field(ge=1, le=1024, description="a whole number from 1 to 1024: return addresses")
    targets: int = Field(
        ge=4, le=1 << 16, multiple_of=4, description="a multiple of 4 from 4 to 65536: indirect branches"
    )


# The tables of a file of machine models. Each field's description says what it may be; messages quote it.

_MOST_ENTRIES = 1 << 20


class BufferTable(SourcedTable):
    """One translation buffer."""

    entries: int = Field(ge=1, le=_MOST_ENTRIES, description=f"a whole number from 1 to {_MOST_ENTRIES}")
    ways: int = Field(ge=1, le=1024, description="a whole number from 1 to 1024")


_LARGEST = 1 << 30


def _size(text: str) -> str:
    size = notation.size_bytes(text)
    if not 64 <= size <= _LARGEST:
        raise ValueError("a cache has 64 bytes to 1G")
    return text


class CacheTable(SourcedTable):
    """One cache."""

    size: Annotated[Text, AfterValidator(_size)] = Field(description='a size, as text: "32K", "8M"')
    ways: int = Field(ge=1, le=1024, description="a whole number from 1 to 1024")
    line: int = Field(64, ge=8, le=4096, description="bytes, a power of two from 8 to 4096")
    replacement: Replacement = Field(TRUE_LRU, description='"lru" or "tree-plru"')


class CostTable(SourcedTable):
    """One constant."""

    value: float = Field(ge=0, le=1e6, allow_inf_nan=False, description="a number from 0 to 1000000")


class RateTable(SourcedTable):
    """Bytes in a cycle."""

    value: int = Field(ge=1, le=4096, description="a whole number of bytes from 1 to 4096")


class ShareTable(SourcedTable):
    """A part of a whole."""

    value: float = Field(ge=0, le=1, allow_inf_nan=False, description="a share from 0 to 1")


_A_COST = 'a table: { value = 26, source = "…" }, in cycles'


class CyclesTable(KeyTable):
    """`[machines.NAME.cycles]`."""

    instruction: CostTable = Field(description=_A_COST)
    string_bytes: RateTable = Field(description='a table: { value = 32, source = "…" }, in bytes a cycle')
    string: CostTable = Field(description=_A_COST)
    l2: CostTable = Field(description=_A_COST)
    llc: CostTable = Field(description=_A_COST)
    memory: CostTable = Field(description=_A_COST)
    store_share: ShareTable = Field(description='a table: { value = 0.5, source = "…" }, from 0 to 1')
    stlb: CostTable = Field(description=_A_COST)
    walk: CostTable = Field(description=_A_COST)
    walk_level: CostTable | None = Field(None, description=_A_COST)
    misprediction: CostTable = Field(description=_A_COST)
    interrupt: CostTable = Field(description=_A_COST)
    device: CostTable = Field(description=_A_COST)
    divide: CostTable = Field(description=_A_COST)
    locked: CostTable = Field(description=_A_COST)
    fence: CostTable = Field(description=_A_COST)
    pause: CostTable = Field(description=_A_COST)
    rdtsc: CostTable = Field(description=_A_COST)
    cpuid: CostTable = Field(description=_A_COST)
    rdmsr: CostTable = Field(description=_A_COST)
    wrmsr: CostTable = Field(description=_A_COST)
    spec_ctrl: CostTable | None = Field(None, description=_A_COST)
    ibpb: CostTable | None = Field(None, description=_A_COST)
    l1d_flush: CostTable | None = Field(None, description=_A_COST)
    invlpg: CostTable = Field(description=_A_COST)
    mov_cr3: CostTable = Field(description=_A_COST)
    mov_cr: CostTable = Field(description=_A_COST)
    swapgs: CostTable = Field(description=_A_COST)
    verw: CostTable = Field(description=_A_COST)
    port: CostTable = Field(description=_A_COST)
    syscall: CostTable = Field(description=_A_COST)
    sysret: CostTable = Field(description=_A_COST)
    iret: CostTable = Field(description=_A_COST)


class InstructionsTable(SourcedTable):
    """A number of instructions that a table has room for."""

    value: int = Field(ge=0, le=1024, description="a whole number from 0 to 1024")


class LinesTable(SourcedTable):
    """A number of lines."""

    value: int = Field(ge=0, le=16, description="a whole number from 0 to 16")


_PAGING = Field(ge=0, le=4096, description="a whole number of entries from 0 to 4096")


class PagingTable(SourcedTable):
    """The paging-structure caches."""

    pde: int = _PAGING
    pdpte: int = _PAGING
    pml4e: int = _PAGING


class MachineModelTable(KeyTable):
    """`[machines.NAME]`."""

    summary: Prose = Field("", description="text: what it is")
    like: Name | None = Field(
        None, description="a machine of this file, or one of ktrial's: what is not named is its"
    )
    l1i: CacheTable = Field(description='a table: { size = "32K", ways = 8, line = 64, source = "…" }')
    l1d: CacheTable = Field(description='a table: { size = "32K", ways = 8, line = 64, source = "…" }')
    l2: CacheTable = Field(description='a table: { size = "256K", ways = 4, line = 64, source = "…" }')
    llc: CacheTable | None = Field(None, description='a table: { size = "8M", ways = 16, source = "…" }')
    prefetch: LinesTable = Field(description='a table: { value = 1, source = "…" }, in lines')
    strides: InstructionsTable | None = Field(
        None, description='a table: { value = 24, source = "…" }, in instructions'
    )
    sample: Literal[1, 3, 7, 9, 21, 63] = Field(1, description="one of 1, 3, 7, 9, 21, 63: divisors of 63")
    itlb: BufferTable = Field(description='a table: { entries = 128, ways = 8, source = "…" }')
    dtlb: BufferTable = Field(description='a table: { entries = 64, ways = 4, source = "…" }')
    stlb: BufferTable = Field(description='a table: { entries = 1536, ways = 12, source = "…" }')
    paging: PagingTable | None = Field(
        None, description='a table: { pde = 32, pdpte = 4, pml4e = 0, source = "…" }, in entries'
    )
    branches: BranchTable = Field(
        description='a table: { history_bits = 16, returns = 16, targets = 4096, source = "…" }'
    )
    cycles: CyclesTable = Field(description="a table of constants: [machines.NAME.cycles]")


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
    ktrials = parsed(text_of(OWN_FILE), OWN_FILE)[_ROOT]
    if like in (*above, name):
        mistakes.add((_ROOT, name, "like"), f"{like} is like itself, by way of {name}")
    elif like in machines:
        return _over(_with_likes(machines, like, mistakes, (*above, name)), table)
    elif like in ktrials:
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


def _model_at(loc: tuple[int | str, ...]) -> type[BaseModel]:
    """The table that stands at a place below `[machines.NAME]`."""
    table: type[BaseModel] = MachineModelTable
    for part in loc:
        kind = table.model_fields[str(part)].annotation
        table = next(candidate for candidate in (kind, *get_args(kind)) if isinstance(candidate, type))
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
        sets, remainder = divmod(buffer.entries, buffer.ways)
        if remainder or not _is_power_of_two(sets):
            problem = "entries / ways is the number of sets, and must be a power of two"
            mistakes.add((*path, name), f"{buffer.entries} entries in {buffer.ways} ways: {problem}")


def _check_cache(cache: CacheTable, path: KeyPath, mistakes: Mistakes) -> None:
    sets, remainder = divmod(notation.size_bytes(cache.size), cache.ways * cache.line)
    if not _is_power_of_two(cache.line):
        mistakes.add(path, f"a line of {cache.line} bytes is no power of two")
    elif remainder or not _is_power_of_two(sets):
        problem = "size / (ways × line) is the number of sets, and must be a power of two"
        mistakes.add(path, f"{cache.size} in {cache.ways} ways: {problem}")
    elif cache.replacement != TRUE_LRU and not (_is_power_of_two(cache.ways) and cache.ways <= _MOST_LEAVES):
        problem = f"a tree has a power of two of ways, at most {_MOST_LEAVES}"
        mistakes.add(path, f"{cache.replacement} with {cache.ways} ways: {problem}")


def _check_sampled(cache: CacheTable, path: KeyPath, mistakes: Mistakes) -> None:
    """A line's place in its page, one of 64, has to decide which sets it can be in."""
    sets = notation.size_bytes(cache.size) // (cache.ways * cache.line)
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
    size = notation.size_bytes(table.size)
    return CacheSize(size=size, ways=table.ways, line=table.line, replacement=table.replacement)


def _buffer(table: BufferTable) -> BufferSize:
    return BufferSize(entries=table.entries, ways=table.ways)


def _cycles(table: CyclesTable) -> Cycles:
    constants = {name: getattr(table, name) for name in CyclesTable.model_fields}
    return Cycles(**{name: constant.value for name, constant in constants.items() if constant})
