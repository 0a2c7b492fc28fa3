"""A profile as tables for the terminal: by function, by CPU mode, by entry, by task."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

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
from ktrial.model.attribution import Attribution, Count, Explanation, FunctionDifference, ProfileSide
from ktrial.model.profile import PROGRAM, CacheCounts, CycleModel, FunctionCount, PageCount, Profile
from ktrial.model.workload import Mode
from ktrial.report.call_tree import call_tree

if TYPE_CHECKING:
    from ktrial.machines.qemu.plugin import CacheShapes


_NAME_COLUMNS = 60


_UNIT = "instructions per operation, counted, not time; a string instruction counts once"


_UNIT_OF_SEVERAL = "instructions per operation, of all CPUs; a repeated string instruction counts each pass"


_NO_FILE = "(vDSO, generated code)"


_MOST_SYSTEM_CALLS = 10


def print_profile(profile: Profile, top: int, console: Console) -> None:
    """The functions with the most instructions of their own, the rest, the sum; then other views of it."""
    whole = number_format.number(profile.per_operation(profile.region.instructions))
    headline = f"{profile.workload} on {profile.label}: {whole} instructions per operation"
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
    console.print(f"The rows sum to {whole}; {left} belong to no row.")
    if region.operations.count > 1:
        median = number_format.number(profile.median)
        console.print(f"That is the mean over the operations; the median is {median}.")
    if region.cpus is None:
        console.print(f"String instructions worked on {moved} bytes an operation.")
    print_guest_time(profile, console)


def _functions(profile: Profile, top: int) -> Table:
    ranked = sorted(profile.region.functions, key=lambda each: (-each.instructions, each.symbol, each.module))
    rows: list[tuple[str, ...]] = []
    for each in ranked[:top]:
        own, called = _of_whole(profile, each.instructions), _each(profile, each.inclusive, each.entered)
        rows.append((_name(each), *own, *called, subsystem(each.symbol, each.module)))
    rest = ranked[top:]
    others = number_format.counted(len(rest), "other function")
    rows.append((others, *_of_whole(profile, sum(each.instructions for each in rest)), "", "", ""))
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
    ways = [each for each in every if not each.system_call]
    calls = [each for each in every if each.system_call]
    rows: list[tuple[str, ...]] = []
    for each in (*ways, *calls[:_MOST_SYSTEM_CALLS]):
        shown = shortened(each.name, _NAME_COLUMNS)
        name = f"  {shown}" if each.system_call else shown
        share = "" if each.inclusive is None else _of_whole(profile, each.inclusive)[1]
        inclusive, entered = _each(profile, each.inclusive, each.entered)
        rows.append((name, entered, inclusive, share))
    if len(calls) > _MOST_SYSTEM_CALLS:
        others = number_format.counted(len(calls) - _MOST_SYSTEM_CALLS, "other system call")
        rows.append((f"  {others}", "", "", ""))
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


def _name(function: FunctionCount) -> str:
    name = f"{function.symbol} [{function.module}]" if function.module else function.symbol
    return shortened(name, _NAME_COLUMNS)


def _each(profile: Profile, inclusive: int | None, entered: int) -> tuple[str, str]:
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
    whole = together(cpus).whole
    for part in _HEADINGS:
        rows = [(place.name, time) for place, time in list(places(profile, part).items())[:_MOST]]
        if rows:
            console.print()
            console.print(rendered(_places(_HEADINGS[part], rows, whole)))


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
    told = {part.value: _places_as_json(profile, part) for part in _HEADINGS}
    return {"guest_time": {"unit": "ns/operation", "cpus": rows, "all": vars(together(cpus)), **told}}


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


def _places_as_json(profile: Profile, part: TimePart) -> list[dict[str, Any]]:
    return [
        {"function": place.function, "caller": place.caller, "ns": time}
        for place, time in places(profile, part).items()
    ]


def _cpus(cpus: tuple[CpuTime, ...]) -> Table:
    named = [*((str(number), cpu) for number, cpu in enumerate(cpus)), ("all", together(cpus))]
    shown = [field for field in (*_TIMES, *_EVENTS) if field != "lines" or together(cpus).lines]
    rows = [
        (
            name,
            *(number_format.number(getattr(cpu, field)) for field in shown),
        )
        for name, cpu in named
    ]
    return of_texts(("CPU", *shown), rows)


def _places(heading: str, rows: list[tuple[str, float]], whole: float) -> Table:
    texts = [
        (
            shortened(name, _GUEST_TIME_NAME_COLUMNS),
            number_format.number(time),
            number_format.share(time / (whole or 1)),
        )
        for name, time in rows
    ]
    return of_texts((heading, "ns", "% of CPU time"), texts)


def _parts(old: CpuTime, new: CpuTime) -> Table:
    fields = [field for field in _TIMES if field != "lines" or old.lines or new.lines]
    named = {**{field: field for field in (*fields, *_EVENTS)}, "all CPUs": "whole"}
    rows = [_from_to(name, getattr(old, field), getattr(new, field)) for name, field in named.items()]
    return of_texts(("an operation", "from", "to", "difference"), rows)


def _differences(heading: str, rows: list[PlaceDifference]) -> Table:
    texts = [_from_to(row.place.name, row.before, row.after) for row in rows]
    return of_texts((heading, "from", "to", "difference"), texts)


def _from_to(name: str, before: float, after: float) -> tuple[str, ...]:
    numbers = (number_format.number(before), number_format.number(after))
    return (shortened(name, _GUEST_TIME_NAME_COLUMNS), *numbers, number_format.signed(after - before))


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
    functions = [_row(_cache_misses_name(each), [each]) for each in region.functions]
    ranked = sorted([*functions, _row(PROGRAM, region.pages)], key=lambda row: (-row.cycles, row.name))
    whole = _row("the sum", [*region.functions, *region.pages])
    others = breakable(number_format.counted(len(ranked[top:]), "other row"))
    rows = (*ranked[:top], _together(others, ranked[top:]), whole)
    console.print()
    console.print(rendered(of_texts(_CACHE_MISSES_HEADINGS, (_texts(profile, row, whole) for row in rows))))
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
    for each in counts:
        caches = each.caches or _NONE
        cycles = _COSTS.cycles(each.instructions, each.strings, caches)
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


def _texts(profile: Profile, row: _Row, whole: _Row) -> list[str]:
    numbers = (row.cycles / profile.operations, *(profile.per_operation(one) for one in (row.code, row.data)))
    cycles, code, data = map(number_format.number, numbers)
    share = f"{row.cycles / (whole.cycles or 1) * 100:.1f}"
    return [row.name, cycles, share, code, data, number_format.number(profile.per_operation(row.last))]


def _cache_misses_name(function: FunctionCount) -> str:
    name = f"{function.symbol} [{function.module}]" if function.module else function.symbol
    return shortened(name, _CACHE_MISSES_NAME_COLUMNS)


# Profiles and explanations as JSON, for other programs; docs/explain.md names the fields.

_PROFILE_JSON_UNIT = "instructions/operation"


def profile_as_json(profile: Profile) -> dict[str, Any]:
    """What `profile --json` prints."""
    region = profile.region
    ranked = sorted(region.functions, key=lambda each: (-each.instructions, each.symbol, each.module))
    return {
        **profile.model_dump(mode="json", exclude={"region", "programs"}),
        "mode": (Mode.EXACT_PARALLEL if region.cpus else Mode.EXACT_PLUGIN).value,
        "unit": _PROFILE_JSON_UNIT,
        "instructions": region.instructions,
        "per_operation": profile.per_operation(region.instructions),
        "median_per_operation": profile.median if region.operations.count else None,
        "string_bytes": region.strings.bytes,
        "functions": [_function(profile, each) for each in ranked if each.instructions],
        "programs": [
            {
                "program": each.program,
                "instructions": each.instructions,
                "per_operation": profile.per_operation(each.instructions),
            }
            for each in profile.programs
        ],
        "cpu_modes": {"kernel": region.kernel, "user": region.program},
        "entries": [each.model_dump(mode="json") for each in kernel_entries(region)],
        "tasks": [each.model_dump(mode="json") for each in region.tasks],
        **guest_time_as_json(profile),
    }


def _function(profile: Profile, each: FunctionCount) -> dict[str, Any]:
    return {
        **_caches(each),
        "function": each.symbol,
        "module": each.module,
        "subsystem": subsystem(each.symbol, each.module),
        "instructions": each.instructions,
        "inclusive": each.inclusive,
        "entered": each.entered,
        "string_bytes": each.strings.bytes,
        "per_operation": profile.per_operation(each.instructions),
    }


def _caches(each: FunctionCount) -> dict[str, Any]:
    """Only where caches were modelled."""
    if each.caches is None:
        return {}
    cycles = CycleModel().cycles(each.instructions, each.strings, each.caches)
    return {"caches": each.caches.model_dump(mode="json"), "modelled_cycles": cycles}


def explanation_as_json(explanation: Explanation) -> dict[str, Any]:
    """An explanation, without what differs around it."""
    return {
        "workload": explanation.workload,
        "mode": Mode.EXACT_PLUGIN.value,
        "unit": _PROFILE_JSON_UNIT,
        "from": _side(explanation.before),
        "to": _side(explanation.after),
        "difference": float(explanation.total),
        "unexplained": float(explanation.unexplained),
        "string_bytes_difference": float(explanation.byte_total),
        "functions": [_profile_json_row(explanation, row) for row in explanation.rows],
        "subsystems": [
            {"subsystem": name, **_part(explanation, part)} for name, part in explanation.subsystems.items()
        ],
    }


def why_as_json(why: Attribution) -> dict[str, Any]:
    """What `explain --json` prints: the explanation, and what differs around it."""
    differences = why.differences.model_dump(mode="json")
    tree = call_tree(why.before, why.after, why.explanation)
    return {
        **explanation_as_json(why.explanation),
        "tree": [one._asdict() for one in tree.rows] if tree else None,
        **({"mode": Mode.EXACT_PARALLEL.value} if why.before.region.cpus else {}),
        "counted_anew": list(why.counted_anew),
        "differences": differences,
        **guest_time_difference_as_json(why.before, why.after),
    }


def _side(side: ProfileSide) -> dict[str, Any]:
    return {**side.model_dump(mode="json"), "mean": side.mean}


def _profile_json_row(explanation: Explanation, row: FunctionDifference) -> dict[str, Any]:
    return {
        "function": row.function,
        "module": row.module,
        "subsystem": row.subsystem,
        "file": row.file,
        "match": row.match.value,
        "evidence": row.evidence,
        "from": _count(row.before, explanation.before),
        "to": _count(row.after, explanation.after),
        "string_bytes_difference": float(explanation.byte_difference(row)),
        "weight": float(explanation.weight(row)),
        **_part(explanation, explanation.difference(row)),
    }


def _count(count: Count, side: ProfileSide) -> dict[str, Any]:
    return {**count.model_dump(mode="json"), "per_operation": count.instructions / side.operations}


def _part(explanation: Explanation, part: Fraction) -> dict[str, Any]:
    return {"difference": float(part), "share": explanation.share(part)}
