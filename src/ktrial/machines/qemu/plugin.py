"""The QEMU plugin that counts instructions by function: which build, with which arguments, what it wrote.

crates/insn is the plugin, docs/architecture/plugin.md says what it counts and how.
"""

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ktrial.machines import guest_programs
from ktrial.machines.errors import PluginCountsUnreadable
from ktrial.machines.qemu.plugin_counts import (
    GeneratedCode,
    Line,
    RunLines,
    give_names,
    has_unnamed,
    merge,
    named,
    split,
)
from ktrial.machines.qemu.program import Qemu, Version
from ktrial.model.machine import TRUE_LRU, BufferSize, CacheSize, ModelCounts, ModelledMachine
from ktrial.model.profile import (
    CacheCounts,
    CallNode,
    FunctionCount,
    Marking,
    OperationCounts,
    PageCount,
    PluginCounts,
    RegionCounts,
    StringCounts,
    TaskCount,
    inclusive_counts,
)
from ktrial.text_lines import lines_of

FORMAT = 2
"""Version of what the plugin writes."""
_APIS: tuple[tuple[Version, int], ...] = (
    *(((7, 2, 0), 1), ((8, 2, 4), 2), ((9, 1, 0), 3), ((9, 2, 0), 4)),
    ((11, 0, 0), 7),
)
"""From which QEMU on which version of the plugin API: `QEMU_PLUGIN_VERSION` in its qemu-plugin.h.

QEMU takes plugins of older versions too, as long as nothing was taken out: 10.1 and 10.2 take version 4; 11.1
takes none before 7, which gives hooks other arguments.
"""
_PATIENCE = 20.0


@dataclass(frozen=True)
class PluginBuild:
    """One build of the plugin."""

    path: Path
    api: int


@dataclass(frozen=True)
class NoPlugin:
    """Why there is no plugin for a QEMU, in one sentence."""

    reason: str


@dataclass(frozen=True)
class CacheShape:
    """Size and shape of one cache."""

    size: int
    ways: int
    line: int = 64

    def __str__(self) -> str:
        return f"{self.size}:{self.ways}:{self.line}"


@dataclass(frozen=True)
class CacheShapes:
    """The caches that are modelled: instructions and data at the first level, both at the last. LRU."""

    l1i: CacheShape = CacheShape(32 << 10, 8)
    l1d: CacheShape = CacheShape(32 << 10, 8)
    llc: CacheShape = CacheShape(8 << 20, 16)


def find(version: Version, directory: Path | None = None) -> PluginBuild | NoPlugin:
    """The build for a version of QEMU, among those that come with ktrial (or in `directory`)."""
    apis = [api for first, api in _APIS if version >= first]
    if not apis:
        oldest, actual = _dotted(_APIS[0][0]), _dotted(version)
        return NoPlugin(f"QEMU {actual} is too old for the plugin, which needs {oldest} or later")
    path = (directory or guest_programs.directory()) / f"insn-v{apis[-1]}.so"
    if not path.is_file():
        return NoPlugin(f"{path} is missing: this ktrial was installed without its plugin (make guest)")
    return PluginBuild(path, apis[-1])


def check(qemu: Qemu, build: PluginBuild) -> NoPlugin | None:
    """Load the build into an empty machine of this QEMU; None where it loads."""
    command = [
        *(str(qemu.program), "-nodefaults", "-no-user-config", "-display", "none", "-machine", "none"),
        *("-accel", "tcg", "-qmp", "stdio", *arguments(build, Path("/dev/null"))),
    ]
    talk = '{"execute": "qmp_capabilities"}{"execute": "quit"}'
    try:
        finished = subprocess.run(
            command, input=talk, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return NoPlugin(f"{qemu.program} does not load the plugin within {_PATIENCE:.0f} s")
    if finished.returncode == 0:
        return None
    message = (lines_of(finished.stderr.strip()) or [f"status {finished.returncode}"])[-1]
    return NoPlugin(f"{qemu.program} does not load the plugin: {message}")


def arguments(
    build: PluginBuild,
    out: Path,
    symbols: Path | None = None,
    *,
    vector: bool = False,
    calls: bool = False,
    caches: CacheShapes | None = None,
    model: ModelledMachine | None = None,
) -> tuple[str, ...]:
    """QEMU's arguments. `symbols`: kallsyms of the kernel that runs, without KASLR.

    `vector`: each operation's count. With one CPU only: `calls`, who called whom; `caches`, modelled ones;
    `model`, the machine that cycles are modelled on.
    """
    options: dict[str, object] = {"out": out, "symbols": symbols}
    options |= {name: "on" for name, on in (("vector", vector), ("calls", calls)) if on}
    if caches:
        options |= {"l1i": caches.l1i, "l1d": caches.l1d, "llc": caches.llc}
    options |= model_arguments(model) if model else {}
    words = [str(build.path), *(f"{name}={value}" for name, value in options.items() if value is not None)]
    # QEMU takes a doubled comma for one.
    return ("-plugin", ",".join(word.replace(",", ",,") for word in words))


def read(path: Path) -> PluginCounts:
    """What a plugin wrote, region by region. Raises PluginCountsUnreadable."""

    def arrange(lines: list[Line]) -> list[Line]:
        regions = [line for line in lines if "run" not in line]
        give_names([RunLines(regions)], ())
        return regions

    return _read(path, arrange)


def read_runs(
    path: Path, generated: Callable[[], tuple[GeneratedCode, ...]] = tuple
) -> tuple[RegionCounts | None, ...]:
    """What a plugin wrote, one region for each program that the agent ran, in order.

    A program marks each of its passes, or each operation, as a region: they are made one, which needs
    `vector` where a region has more than one operation. `marking` says how they were marked; where no region
    was ended, there is nothing else in it. None for a program that never came to run. `generated` is asked
    what code the kernel made, where some of that ran. Raises PluginCountsUnreadable, also where the end is
    cut off: what is missing might be any run's.
    """
    runs: list[RunLines] = []

    def arrange(lines: list[Line]) -> list[Line]:
        runs.extend(split(lines))
        if has_unnamed(runs):
            give_names(runs, generated())
        return [merge(run.regions) for run in runs if run.regions or run.ended]

    regions = iter(_read(path, arrange, complete_only=True).regions)
    return tuple(
        next(regions).model_copy(update={"marking": _marking(run.ended)})
        if run.regions or run.ended
        else None
        for run in runs
    )


def _marking(ended: Line) -> Marking:
    return Marking.model_validate({name: count for name, count in ended.items() if name != "run"})


def _read(
    path: Path, arrange: Callable[[list[Line]], list[Line]], *, complete_only: bool = False
) -> PluginCounts:
    try:
        lines = path.read_text(encoding="ascii").splitlines(keepends=True)
    except (OSError, UnicodeDecodeError) as error:
        raise PluginCountsUnreadable(machine="exact", path=path, line=0, problem=str(error)) from None
    if complete_only and lines and not lines[-1].endswith("\n"):
        raise PluginCountsUnreadable(machine="exact", path=path, line=len(lines), problem="it is cut off")
    parsed = [_parse(path, number, line) for number, line in _finished(lines)]
    if not parsed or parsed[0].get("insn") != FORMAT:
        problem = f"it does not begin with format {FORMAT}"
        raise PluginCountsUnreadable(machine="exact", path=path, line=1, problem=problem)
    first, *body = parsed
    complete = bool(body) and "end" in body[-1]
    try:
        regions = arrange(body[:-1] if complete else body)
        return PluginCounts(
            api=first["api"],
            symbols=first["symbols"],
            inline=first["inline"],
            complete=complete,
            regions=tuple(_region(line) for line in regions),
        )
    except (KeyError, IndexError, TypeError, ValueError, ValidationError) as error:
        problem = f"its regions are not as they should be: {type(error).__name__}: {error}"
        raise PluginCountsUnreadable(machine="exact", path=path, line=2, problem=problem) from None


def _finished(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    # The last line may be cut off where QEMU was killed, or the disk full.
    return ((number, line) for number, line in enumerate(lines, start=1) if line.endswith("\n"))


def _parse(path: Path, number: int, line: str) -> Line:
    try:
        parsed = json.loads(line)
    except ValueError as error:
        raise PluginCountsUnreadable(machine="exact", path=path, line=number, problem=str(error)) from None
    if not isinstance(parsed, dict):
        raise PluginCountsUnreadable(machine="exact", path=path, line=number, problem="it is not an object")
    return parsed


def _region(line: Line) -> RegionCounts:
    # Its own numbers say in which order code was translated, by this trial or an earlier one of its QEMU.
    by_name = sorted(range(len(line["functions"])), key=line["functions"].__getitem__)
    rows = [line["functions"][number] for number in by_name]
    nodes = _tree(line["tree"], by_name) if "tree" in line else None
    inclusive = inclusive_counts(nodes, len(rows)) if nodes else [None] * len(rows)
    return RegionCounts(
        whole=line["whole"],
        instructions=line["instructions"],
        marks=line["marks"],
        strings=_strings([line["strings"], line["passes"], line["bytes"]]),
        functions=tuple(
            _function(row, total, line.get("copies", {})) for row, total in zip(rows, inclusive, strict=True)
        ),
        pages=tuple(_page(row) for row in sorted(line["pages"])),
        operations=_operations(line["operations"]),
        nodes=nodes,
        tasks=tuple(TaskCount(stack=s, kernel=k, program=p) for s, k, p in line.get("tasks", ())),
        unmatched=line.get("unmatched", 0),
        cycles=line["cycles"] / PER_CYCLE if "cycles" in line else None,
    )


def _tree(rows: list[list[int]], by_name: list[int]) -> tuple[CallNode, ...]:
    """Each place before those that it calls, and these by name; `by_name`: the functions' numbers, sorted."""
    places = {number: place for place, number in enumerate(by_name)}
    called: list[list[int]] = [[] for _ in rows]
    for index, (parent, function, *_) in enumerate(rows[2:], start=2):
        if not (0 <= parent < index and function in places):
            raise ValueError(f"node {index} of the tree comes before its caller, or has no function")
        called[parent].append(index)

    def by_place(indices: list[int]) -> list[int]:
        return sorted(indices, key=lambda index: places[rows[index][1]], reverse=True)

    nodes: list[CallNode] = []
    left = [(index, 0) for index in reversed(range(min(2, len(rows))))]  # the root and the program
    while left:
        index, parent = left.pop()
        _, function, instructions, entered = rows[index]
        place = len(nodes)
        nodes.append(
            CallNode(
                parent=parent, function=places.get(function, -1), instructions=instructions, entered=entered
            )
        )
        if len(nodes) == 2:
            left += [(below, caller) for caller in (1, 0) for below in by_place(called[caller])]
        elif index > 1:
            left += [(below, place) for below in by_place(called[index])]
    return tuple(nodes)


def _function(
    row: list[Any], inclusive: int | None, shared: Mapping[str, Mapping[int, int]]
) -> FunctionCount:
    symbol, module, instructions, entered, *columns = row
    copies = {} if module else shared.get(symbol, {})
    symbol, module = named(symbol, module)
    return FunctionCount(
        symbol=symbol,
        module=module,
        instructions=instructions,
        inclusive=inclusive,
        entered=entered,
        strings=_strings(columns[:3]),
        caches=_caches(columns[3:]),
        modelled=_modelled(columns[3:]),
        copies=tuple(sorted(copies.items())),
    )


def _page(row: list[int]) -> PageCount:
    address, checksum, instructions, *columns = row
    return PageCount(
        address=address,
        checksum=checksum,
        instructions=instructions,
        strings=_strings(columns[:3]),
        caches=_caches(columns[3:]),
        modelled=_modelled(columns[3:]),
    )


def _strings(row: list[int]) -> StringCounts:
    instructions, passes, size = row
    return StringCounts(instructions=instructions, passes=passes, bytes=size)


_OF_CACHES = 5
_OF_MODEL = 8
"""How many columns each adds to a row."""


def _caches(row: list[int]) -> CacheCounts | None:
    if len(row) not in {_OF_CACHES, _OF_CACHES + _OF_MODEL}:
        return None
    loads, stores, code, data, last = row[:_OF_CACHES]
    return CacheCounts(loads=loads, stores=stores, code_misses=code, data_misses=data, last_misses=last)


def _modelled(row: list[int]) -> ModelCounts | None:
    if len(row) < _OF_MODEL:
        return None
    cycles, code, data, second, last, translations, walks, mispredictions = row[-_OF_MODEL:]
    return ModelCounts(
        cycles=cycles / PER_CYCLE,
        code_misses=code,
        data_misses=data,
        second_misses=second,
        last_misses=last,
        translation_misses=translations,
        walks=walks,
        mispredictions=mispredictions,
    )


def _operations(line: Line) -> OperationCounts:
    low, high = line["middle"]
    cycles = line.get("cycles")
    few, many = line.get("bytes", (None, None))
    return OperationCounts(
        count=line["count"],
        total=line["sum"],
        minimum=line["minimum"],
        maximum=line["maximum"],
        median=(low + high) / 2,
        string_bytes=None if few is None else (few + many) / 2,
        cycles=None if cycles is None else sum(cycles) / 2 / PER_CYCLE,
        vector=line.get("vector"),
    )


def _dotted(version: Version) -> str:
    return ".".join(str(part) for part in version)


# A modelled machine as arguments of the plugin: crates/insn/src/machine.rs reads them.
#
# Costs are whole thousandths of a cycle there, so that two runs give the same sum.

NO_CACHE = CacheSize(size=64, ways=1, line=64)
"""Stands for a level that is not there: a cache of one line, which the level before it always has as well."""
PER_CYCLE = 1000
_OTHERWISE = frozenset({"string_bytes", "store_share", "l2", "llc", "memory", "stlb", "walk", "walk_level"})
_AS_WRMSR = ("spec_ctrl", "ibpb", "l1d_flush")
"""What costs as any other `wrmsr` where a machine does not say."""
"""Constants that are not one argument each, in thousandths of a cycle."""


def model_arguments(machine: ModelledMachine) -> dict[str, str]:
    """Name → value."""
    cycles, branches, paging = machine.cycles, machine.branches, machine.paging
    levels = (cycles.l2, cycles.llc, cycles.memory)
    options = {
        "l1i": _cache(machine.l1i),
        "l1d": _cache(machine.l1d),
        "l2": _cache(machine.l2),
        "llc": _cache(machine.llc or NO_CACHE),
        "prefetch": str(machine.prefetch),
        "strides": str(machine.strides),
        "sample": str(machine.sample),
        "itlb": _buffer(machine.itlb),
        "dtlb": _buffer(machine.dtlb),
        "stlb": _buffer(machine.stlb),
        "branches": f"{branches.history_bits}:{branches.returns}:{branches.targets}",
        "levels": ":".join(_thousandths(cost) for cost in levels),
        "stores": str(round(cycles.store_share * 100)),
        "translations": f"{_thousandths(cycles.stlb)}:{_thousandths(cycles.walk)}",
        "walk-level": _thousandths(cycles.walk_level or 0),
        "paging": f"{paging.pde}:{paging.pdpte}:{paging.pml4e}" if paging else "none",
        "string-bytes": str(round(cycles.string_bytes)),
    }
    single = dict.fromkeys(_AS_WRMSR, cycles.wrmsr) | cycles.model_dump(exclude=set(_OTHERWISE))
    for name, cost in single.items():
        options[name.replace("_", "-")] = _thousandths(cost)
    return {f"model-{name}": value for name, value in options.items()}


def _thousandths(cycles: float) -> str:
    return str(round(cycles * PER_CYCLE))


def _cache(size: CacheSize) -> str:
    shape = f"{size.size}:{size.ways}:{size.line}"
    return shape if size.replacement == TRUE_LRU else f"{shape}:{size.replacement}"


def _buffer(size: BufferSize) -> str:
    return f"{size.entries}:{size.ways}"
