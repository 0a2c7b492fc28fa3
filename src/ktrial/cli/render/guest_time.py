"""The guest time of several CPUs as tables for the terminal, and as JSON."""

from typing import Any

from rich.console import Console
from rich.text import Text

from ktrial.analysis.guest_time import (
    CpuTime,
    PlaceDifference,
    TimePart,
    by_cpu,
    differences,
    places,
    together,
)
from ktrial.cli.render.table import rendered
from ktrial.format import number_format
from ktrial.format.sanitize import shortened
from ktrial.format.table import Table, of_texts
from ktrial.model.profile import Profile

_NAME_COLUMNS = 70
_MOST = 8
"""Places that are shown of each part."""
_UNIT = "simulated nanoseconds per operation: an instruction takes one, a pause 50"
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
    console.print(Text(_UNIT, style="dim"))
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
    console.print(Text(f"Guest time of all CPUs. {_UNIT}", style="dim"))
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
        (shortened(name, _NAME_COLUMNS), number_format.number(time), number_format.share(time / (whole or 1)))
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
    return (shortened(name, _NAME_COLUMNS), *numbers, number_format.signed(after - before))
