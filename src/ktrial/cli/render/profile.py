"""A profile as tables for the terminal: by function, by CPU mode, by entry, by task."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from ktrial.analysis.attribution.costs import CostKind, profile_rows
from ktrial.analysis.attribution.subsystems import kernel_entries, subsystem
from ktrial.analysis.guest_time import (
    CpuTime,
    PlaceDifference,
    TimePart,
    by_cpu,
    differences,
    places,
    together,
)
from ktrial.cli.console import breakable
from ktrial.cli.render.table import rendered
from ktrial.format import number_format
from ktrial.format.sanitize import one_line, shortened
from ktrial.format.table import Table, of_texts
from ktrial.model.profile import PROGRAM, CacheCounts, CycleModel, FunctionCount, PageCount, Profile
from ktrial.model.workload import Mode

if TYPE_CHECKING:
    from ktrial.machines.qemu.plugin import CacheShapes


MODELLED_NOT_TIME = (
    "modelled, not measured: how far its changes are changes of time says `ktrial help fidelity`"
)
_NAME_COLUMNS = 60
_UNIT = "instructions per operation, counted, not time; a string instruction counts once"
_UNIT_OF_SEVERAL = "instructions per operation, of all CPUs; a repeated string instruction counts each pass"
_NO_FILE = "(vDSO, generated code)"
_MOST_SYSTEM_CALLS = 10


def print_profile(profile: Profile, top: int, console: Console) -> None:
    """The functions with the most instructions of their own, the rest, the sum; then other views of it."""
    total = number_format.number(profile.per_operation(profile.region.instructions))
    headline = f"{profile.workload} on {profile.label}: {total} instructions per operation"
    console.print(Text(one_line(headline), style="bold"))
    console.print(Text(_UNIT if profile.region.cpus is None else _UNIT_OF_SEVERAL, style="dim"))
    for table in (_functions(profile, top), _modes(profile), _entries(profile), _tasks(profile)):
        if table.rows:
            console.print()
            console.print(rendered(table))
    console.print()
    region = profile.region
    left = number_format.number(profile.per_operation(region.instructions - region.kernel - region.program))
    moved = number_format.number(profile.per_operation(region.strings.bytes))
    console.print(f"The rows sum to {total}; {left} belong to no row.")
    if region.operations.count > 1:
        median = number_format.number(profile.median)
        console.print(f"That is the mean over the operations; the median is {median}.")
    if region.cpus is None:
        console.print(f"String instructions worked on {moved} bytes per operation.")
    print_guest_time(profile, console)


def _ranked(profile: Profile) -> list[FunctionCount]:
    """The functions, those with the most instructions first."""
    functions = profile.region.functions
    return sorted(functions, key=lambda count: (-count.instructions, count.symbol, count.module))


def _functions(profile: Profile, top: int) -> Table:
    ranked = _ranked(profile)
    rows: list[tuple[str, ...]] = []
    for function in ranked[:top]:
        instructions, called = (
            _of_whole(profile, function.instructions),
            _calls(profile, function.inclusive, function.entered),
        )
        rows.append((_name(function), *instructions, *called, subsystem(function.symbol, function.module)))
    hidden = ranked[top:]
    hidden_name = number_format.counted(len(hidden), "other function")
    rows.append(
        (hidden_name, *_of_whole(profile, sum(function.instructions for function in hidden)), "", "", "")
    )
    for program in profile.programs:
        name = one_line(f"{PROGRAM} {program.program or _NO_FILE}")
        rows.append((name, *_of_whole(profile, program.instructions), "", "", ""))
    headings = ("function", "self", "%", "inclusive", "entered", "subsystem")
    return of_texts(headings, rows).adapted("number-4", numeric=False)


def _modes(profile: Profile) -> Table:
    modes = (("kernel", profile.region.kernel), ("user", profile.region.program))
    rows = ((name, *_of_whole(profile, count)) for name, count in modes)
    return of_texts(("CPU mode", "instructions", "%"), rows)


def _entries(profile: Profile) -> Table:
    every = kernel_entries(profile.region)
    ways = [entry for entry in every if not entry.system_call]
    calls = [entry for entry in every if entry.system_call]
    rows: list[tuple[str, ...]] = []
    for entry in (*ways, *calls[:_MOST_SYSTEM_CALLS]):
        shown = shortened(entry.name, _NAME_COLUMNS)
        name = f"  {shown}" if entry.system_call else shown
        share = "" if entry.inclusive is None else _of_whole(profile, entry.inclusive)[1]
        inclusive, entered = _calls(profile, entry.inclusive, entry.entered)
        rows.append((name, entered, inclusive, share))
    if len(calls) > _MOST_SYSTEM_CALLS:
        hidden_name = number_format.counted(len(calls) - _MOST_SYSTEM_CALLS, "other system call")
        rows.append((f"  {hidden_name}", "", "", ""))
    return of_texts(("entry", "entered", "inclusive", "%"), rows)


def _tasks(profile: Profile) -> Table:
    """Tasks have no names in what the plugin sees: they are numbered in the order in which they ran."""
    rows = []
    for number, task in enumerate(profile.region.tasks, start=1):
        name = f"task {number}" if task.stack else "before a task was known"
        kernel, user = (
            number_format.number(profile.per_operation(count)) for count in (task.kernel, task.program)
        )
        rows.append((name, kernel, user, _of_whole(profile, task.kernel + task.program)[1]))
    return of_texts(("task", "kernel", "user", "%"), rows)


def _name(function: FunctionCount, columns: int = _NAME_COLUMNS) -> str:
    name = f"{function.symbol} [{function.module}]" if function.module else function.symbol
    return shortened(name, columns)


def _calls(profile: Profile, inclusive: int | None, entered: int) -> tuple[str, str]:
    counted = None if inclusive is None else profile.per_operation(inclusive)
    return number_format.number(counted), number_format.number(profile.per_operation(entered))


def _of_whole(profile: Profile, instructions: int) -> tuple[str, str]:
    share = instructions / (profile.region.instructions or 1)
    return number_format.number(profile.per_operation(instructions)), number_format.share(share)


# The guest time of several CPUs as tables for the terminal, and as JSON.

_GUEST_TIME_NAME_COLUMNS = 70
_MOST = 8
"""Places that are shown of each part."""
_GUEST_TIME_UNIT = "simulated nanoseconds per operation: an instruction takes one, a pause 50"
_HEADINGS = {
    TimePart.WAITING: "waiting in a loop ← for",
    TimePart.LINES: "waiting for cache lines in",
    TimePart.IDLE: "idle after a task slept in ← called by",
}
_TIMES = ("work", "waiting", "lines", "idle")
_EVENTS = ("interrupts", "switches", "wakeups", "migrations")


def print_guest_time(profile: Profile, console: Console) -> None:
    """What each CPU did with its time, and where it waited and idled; nothing where they are one."""
    cpus = by_cpu(profile)
    if not cpus:
        return
    console.print()
    console.print(Text(_GUEST_TIME_UNIT, style="dim"))
    console.print(rendered(_cpus(cpus)))
    total = together(cpus).whole
    for part in _HEADINGS:
        rows = [(place.name, time) for place, time in list(places(profile, part).items())[:_MOST]]
        if rows:
            console.print()
            console.print(rendered(_places(_HEADINGS[part], rows, total)))


def print_guest_time_difference(before: Profile, after: Profile, console: Console) -> None:
    """By how much the CPUs' work, waiting and idling differ, and where; nothing where they are one."""
    old, new = by_cpu(before), by_cpu(after)
    if not old or not new:
        return
    console.print()
    console.print(Text(f"Guest time of all CPUs. {_GUEST_TIME_UNIT}", style="dim"))
    console.print(rendered(_parts(together(old), together(new))))
    for part in _HEADINGS:
        rows = [row for row in differences(before, after, part) if row.difference][:_MOST]
        if rows:
            console.print()
            console.print(rendered(_differences(_HEADINGS[part], rows)))


def guest_time_as_json(profile: Profile) -> dict[str, Any]:
    """Of a profile; empty where CPUs are not told apart."""
    cpus = by_cpu(profile)
    if not cpus:
        return {}
    rows = [{"cpu": number, **vars(cpu)} for number, cpu in enumerate(cpus)]
    parts = {
        part.value: [
            {"function": place.function, "caller": place.caller, "ns": time}
            for place, time in places(profile, part).items()
        ]
        for part in _HEADINGS
    }
    return {"guest_time": {"unit": "ns/operation", "cpus": rows, "all": vars(together(cpus)), **parts}}


def guest_time_difference_as_json(before: Profile, after: Profile) -> dict[str, Any]:
    """Of two profiles; empty where CPUs are not told apart."""
    if not (by_cpu(before) and by_cpu(after)):
        return {}
    parts = {
        part.value: [
            {
                "function": row.place.function,
                "caller": row.place.caller,
                "from": row.before,
                "to": row.after,
                "difference": row.difference,
            }
            for row in differences(before, after, part)
            if row.difference
        ]
        for part in TimePart
    }
    sides = {name: vars(together(by_cpu(profile))) for name, profile in (("from", before), ("to", after))}
    return {"guest_time": {"unit": "ns/operation", **sides, **parts}}


def _cpus(cpus: tuple[CpuTime, ...]) -> Table:
    named = [*((str(number), cpu) for number, cpu in enumerate(cpus)), ("all", together(cpus))]
    shown = [field for field in (*_TIMES, *_EVENTS) if field != "lines" or together(cpus).lines]
    rows = [
        (name, *(number_format.quantity(getattr(cpu, field), _unit(field)) for field in shown))
        for name, cpu in named
    ]
    return of_texts(("CPU", *shown), rows)


def _places(heading: str, rows: list[tuple[str, float]], total: float) -> Table:
    texts = [
        (
            shortened(name, _GUEST_TIME_NAME_COLUMNS),
            number_format.quantity(time, "ns"),
            number_format.share(time / (total or 1)),
        )
        for name, time in rows
    ]
    return of_texts((heading, "time", "% of CPU time"), texts)


def _unit(field: str) -> str:
    return "" if field in _EVENTS else "ns"


def _parts(old: CpuTime, new: CpuTime) -> Table:
    fields = [field for field in _TIMES if field != "lines" or old.lines or new.lines]
    named = {**{field: field for field in (*fields, *_EVENTS)}, "all CPUs": "whole"}
    rows = [
        _from_to(name, getattr(old, field), getattr(new, field), _unit(field))
        for name, field in named.items()
    ]
    return of_texts(("per operation", "from", "to", "difference"), rows)


def _differences(heading: str, rows: list[PlaceDifference]) -> Table:
    texts = [_from_to(row.place.name, row.before, row.after, "ns") for row in rows]
    return of_texts((heading, "from", "to", "difference"), texts)


def _from_to(name: str, before: float, after: float, unit: str) -> tuple[str, ...]:
    numbers = (number_format.quantity(before, unit), number_format.quantity(after, unit))
    return (shortened(name, _GUEST_TIME_NAME_COLUMNS), *numbers, number_format.signed(after - before, unit))


# What modelled caches missed, by function, as a table for the terminal.

_CACHE_MISSES_NAME_COLUMNS = 48
_COSTS = CycleModel()
_NONE = CacheCounts()
_CACHE_MISSES_HEADINGS = ("function", "modelled cycles", "%", "L1i misses", "L1d misses", "last-level misses")


@dataclass(frozen=True)
class _Row:
    """A function, or several; all numbers are of the whole region."""

    name: str
    cycles: float
    code: int
    data: int
    last: int


def print_caches(profile: Profile, top: int, shapes: "CacheShapes", console: Console) -> None:
    """The functions with the most modelled cycles, the rest, the sum; and what a cycle is made of."""
    region = profile.region
    functions = [
        _row(_name(function, _CACHE_MISSES_NAME_COLUMNS), [function]) for function in region.functions
    ]
    ranked = sorted([*functions, _row(PROGRAM, region.pages)], key=lambda row: (-row.cycles, row.name))
    total = _row("the sum", [*region.functions, *region.pages])
    hidden_name = breakable(number_format.counted(len(ranked[top:]), "other row"))
    rows = (*ranked[:top], _together(hidden_name, ranked[top:]), total)
    console.print()
    console.print(rendered(of_texts(_CACHE_MISSES_HEADINGS, (_texts(profile, row, total) for row in rows))))
    console.print()
    console.print(
        f"Modelled caches, as bytes:ways:line: L1i {shapes.l1i}, L1d {shapes.l1d}, last level {shapes.llc}."
    )
    console.print(
        f"A modelled cycle is no time: {_COSTS.instruction:g} for an instruction, 1 for "
        f"{1 / _COSTS.string_byte:g} string bytes, {_COSTS.first_miss:g} for a first-level miss, "
        f"{_COSTS.last_miss:g} more for a last-level miss."
    )


def _row(name: str, counts: Iterable[FunctionCount | PageCount]) -> _Row:
    rows = []
    for count in counts:
        caches = count.caches or _NONE
        cycles = _COSTS.cycles(count.instructions, count.strings, caches)
        rows.append(_Row(name, cycles, caches.code_misses, caches.data_misses, caches.last_misses))
    return _together(name, rows)


def _together(name: str, rows: Iterable[_Row]) -> _Row:
    summed = list(rows)
    return _Row(
        name,
        sum(row.cycles for row in summed),
        sum(row.code for row in summed),
        sum(row.data for row in summed),
        sum(row.last for row in summed),
    )


def _texts(profile: Profile, row: _Row, total: _Row) -> list[str]:
    numbers = (
        row.cycles / profile.operations,
        *(profile.per_operation(misses) for misses in (row.code, row.data)),
    )
    cycles, code, data = map(number_format.number, numbers)
    share = f"{row.cycles / (total.cycles or 1) * 100:.1f}"
    return [row.name, cycles, share, code, data, number_format.number(profile.per_operation(row.last))]


# Profiles and explanations as JSON, for other programs; docs/explain.md names the fields.

UNIT_AS_JSON = "instructions/operation"


def profile_as_json(profile: Profile) -> dict[str, Any]:
    """What `profile --json` prints."""
    region = profile.region
    return {
        **profile.model_dump(mode="json", exclude={"region", "programs"}),
        "mode": (Mode.EXACT_PARALLEL if region.cpus else Mode.EXACT_PLUGIN).value,
        "unit": UNIT_AS_JSON,
        "instructions": region.instructions,
        "per_operation": profile.per_operation(region.instructions),
        "median_per_operation": profile.median if region.operations.count else None,
        "string_bytes": region.strings.bytes,
        "functions": [_function(profile, function) for function in _ranked(profile) if function.instructions],
        "programs": [
            {
                "program": program.program,
                "instructions": program.instructions,
                "per_operation": profile.per_operation(program.instructions),
            }
            for program in profile.programs
        ],
        "cpu_modes": {"kernel": region.kernel, "user": region.program},
        "entries": [entry.model_dump(mode="json") for entry in kernel_entries(region)],
        "tasks": [task.model_dump(mode="json") for task in region.tasks],
        **guest_time_as_json(profile),
    }


def _function(profile: Profile, function: FunctionCount) -> dict[str, Any]:
    return {
        **_caches(function),
        "function": function.symbol,
        "module": function.module,
        "subsystem": subsystem(function.symbol, function.module),
        "instructions": function.instructions,
        "inclusive": function.inclusive,
        "entered": function.entered,
        "string_bytes": function.strings.bytes,
        "per_operation": profile.per_operation(function.instructions),
    }


def _caches(function: FunctionCount) -> dict[str, Any]:
    """Only where caches were modelled."""
    if function.caches is None:
        return {}
    cycles = CycleModel().cycles(function.instructions, function.strings, function.caches)
    return {"caches": function.caches.model_dump(mode="json"), "modelled_cycles": cycles}


def print_profile_costs(profile: Profile, by: str | None, top: int, console: Console) -> None:
    """The functions with the most modelled cycles, or misses."""
    kind = CostKind(by or CostKind.CYCLES)
    rows = profile_rows(profile, kind)
    if not rows:
        return
    total = sum(amount for _, amount in rows)
    texts = [
        (
            shortened(one_line(name), _NAME_COLUMNS),
            number_format.number(amount),
            number_format.share(amount / total),
        )
        for name, amount in rows[:top]
    ]
    console.print()
    console.print(Text(f"by {words_of(kind)}, per operation; the kernel's functions alone", style="bold"))
    console.print(Text(MODELLED_NOT_TIME, style="dim"))
    console.print(rendered(of_texts(("function", words_of(kind), "%"), texts)))


def words_of(kind: CostKind) -> str:
    """`modelled cycles`, `code misses`."""
    return "modelled cycles" if kind is CostKind.CYCLES else kind.value.replace("-", " ")
