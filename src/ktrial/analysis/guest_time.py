"""Guest time of several CPUs, split: what they worked, waited in loops, and idled; and what sent interrupts.

The parts of a CPU add up to the time that passed, but for a quantum at the ends of each region.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter

from ktrial.model.parallel import CpuCounts, CpuShare
from ktrial.model.profile import Profile

_INTERRUPTS = (
    "asm_sysvec_reschedule_ipi",
    "asm_sysvec_call_function",
    "asm_sysvec_call_function_single",
)
"""Entries of interrupts that one CPU sends another (arch/x86/include/asm/idtentry.h, since Linux 5.8)."""
_SWITCH = "__switch_to_asm"
_WAKEUP = "try_to_wake_up"
_MIGRATION = "set_task_cpu"


class TimePart(Enum):
    """What a CPU does with its time."""

    WORK = "work"
    WAITING = "waiting"
    """In a loop with `pause`."""
    LINES = "cache lines"
    """For a line that another CPU had, where that is modelled."""
    IDLE = "idle"


@dataclass(frozen=True)
class CpuTime:
    """One CPU's guest time, or that of all, in nanoseconds per operation; and events per operation."""

    work: float
    waiting: float
    lines: float
    idle: float
    instructions: float
    interrupts: float
    """That other CPUs sent."""
    switches: float
    """Changes from one task to another."""
    wakeups: float
    """Calls of the function that wakes a task."""
    migrations: float
    """Tasks that were given to this CPU's run queue from another one's by what ran here."""

    @property
    def whole(self) -> float:
        """All of it."""
        return self.work + self.waiting + self.lines + self.idle


@dataclass(frozen=True)
class TimePlace:
    """A part of the time, and where it was spent."""

    part: TimePart
    function: str
    caller: str = ""

    @property
    def name(self) -> str:
        """As tables have it."""
        return f"{self.function or '[before a task was seen]'}{f' ← {self.caller}' if self.caller else ''}"


@dataclass(frozen=True)
class PlaceDifference:
    """What a place took before and after, in nanoseconds of all CPUs per operation."""

    place: TimePlace
    before: float
    after: float

    @property
    def difference(self) -> float:
        """After less before."""
        return self.after - self.before


def by_cpu(profile: Profile) -> tuple[CpuTime, ...]:
    """Each CPU's; empty where CPUs were not told apart."""
    counts = profile.region.cpus
    if counts is None:
        return ()
    return tuple(_of_cpu(counts, cpu, profile.operations) for cpu in range(len(counts.program.cpus)))


def together(cpus: Iterable[CpuTime]) -> CpuTime:
    """The sum of all CPUs."""
    rows = [vars(cpu) for cpu in cpus]
    return CpuTime(**{name: sum(row[name] for row in rows) for name in CpuTime.__annotations__})


def places(profile: Profile, part: TimePart) -> dict[TimePlace, float]:
    """Nanoseconds per operation by place, all CPUs together, the longest first.

    Work and cache lines go by function.
    """
    counts = profile.region.cpus
    sums: dict[TimePlace, float] = {}
    for place, nanoseconds in _places(counts, part) if counts else ():
        sums[place] = sums.get(place, 0.0) + nanoseconds / profile.operations
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0].name)))


def differences(before: Profile, after: Profile, part: TimePart) -> list[PlaceDifference]:
    """Places of both, those that differ most first."""
    old, new = places(before, part), places(after, part)
    rows = [PlaceDifference(place, old.get(place, 0.0), new.get(place, 0.0)) for place in old | new]
    return sorted(rows, key=lambda row: (-abs(row.difference), row.place.name))


def _places(counts: CpuCounts, part: TimePart) -> Iterable[tuple[TimePlace, float]]:
    if part is TimePart.WAITING:
        for wait in counts.waits:
            caller = _named(wait.caller, wait.caller_module)
            yield TimePlace(part, _named(wait.symbol, wait.module), caller), wait.ns
    elif part is TimePart.IDLE:
        for idle in counts.idle:
            caller = _named(idle.caller, idle.caller_module)
            yield TimePlace(part, _named(idle.symbol, idle.module), caller), idle.ns
    else:
        for function in counts.every:
            spent = sum(_spent(share, part) for share in function.cpus)
            if spent:
                yield TimePlace(part, _named(function.symbol, function.module)), spent


def _spent(share: CpuShare, part: TimePart) -> int:
    return share.lines_ns if part is TimePart.LINES else share.instructions - share.waited


def _named(symbol: str, module: str) -> str:
    return f"{symbol} [{module}]" if module else symbol


def _of_cpu(counts: CpuCounts, cpu: int, operations: int) -> CpuTime:
    shares = [function.cpus[cpu] for function in counts.every]
    entered = {
        function.symbol: function.cpus[cpu].entered for function in counts.functions if not function.module
    }
    instructions = sum(map(attrgetter("instructions"), shares))
    waited = sum(map(attrgetter("waited"), shares))
    idle = sum(wait.ns for wait in counts.idle if wait.cpu == cpu)
    return CpuTime(
        work=(instructions - waited) / operations,
        waiting=sum(map(attrgetter("waiting_ns"), shares)) / operations,
        lines=sum(map(attrgetter("lines_ns"), shares)) / operations,
        idle=idle / operations,
        instructions=instructions / operations,
        interrupts=sum(entered.get(name, 0) for name in _INTERRUPTS) / operations,
        switches=entered.get(_SWITCH, 0) / operations,
        wakeups=entered.get(_WAKEUP, 0) / operations,
        migrations=entered.get(_MIGRATION, 0) / operations,
    )
