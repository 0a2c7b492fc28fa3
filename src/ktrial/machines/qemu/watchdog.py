"""Watching a guest until it stops at the snapshot point, ends, or passes a limit.

QEMU is left alone while the guest runs: whatever wakes its main loop in the instant in which the CPU
halts can make the virtual clock jump by what the CPU executed last (docs/architecture/exact-machine.md).
Only a guest that has run for long on the host is asked for its time, now and then, which tells one that
hangs: its clock chip (`rtc-time`) runs on the virtual clock, where one nanosecond is one instruction.
Programs are held to the same limit by the agent, exactly.

On a busy host a guest takes longer, and is the same guest: seconds are those of CPU that QEMU has used.
The host's clock counts only where nothing moves at all. Then either the guest waits for what never
comes, or this host keeps QEMU from going on (it is stopped, or gets no CPU), which says nothing about
the guest. A guest in real time has so many seconds of the host's clock, unless it had to wait for a CPU
for most of them.
"""

import contextlib
import os
import select
import signal
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

from ktrial.machines.errors import HostHoldsUp, QemuGone, QemuRefused
from ktrial.machines.qemu.boot import CLOCK_BASE
from ktrial.machines.qemu.process import QemuProcess

FIRST_LOOK_SECONDS = 10.0
"""Seconds of the host's clock before the first look at a guest, and between two."""
QUESTION_SECONDS = 60.0
"""Seconds of CPU that a guest which computes has before it is asked for its time, and between two questions.

QEMU's main loop answers, and where the guest's CPU does not idle meanwhile it may halt in that instant: its
clock then jumps, and the last digits are others.
"""
OUTPUT_SECONDS = 1.0
"""Seconds of the host's clock between two looks at what a guest has written. QEMU does not notice them."""
_CLOCK = ("/machine", "rtc-time")
_SHORTEST_PAUSE = 0.1
_STOPPED = "T"
_NO_CHANCE = 0.25
"""Of the limit in real time, spent in waiting for a CPU."""
_MOVES = 0.005
"""Seconds of CPU for each second of the clock: a QEMU that only looks round for timers uses less."""


class StopReason(Enum):
    """Why watching ended."""

    PAUSED = "paused"
    """At the snapshot point, or because the kernel's own pvpanic driver told of a panic."""
    EXITED = "exited"
    """QEMU ended: the agent left, the guest was reset, or QEMU itself failed."""
    INSTRUCTIONS = "instructions"
    SECONDS = "seconds"
    """Of CPU; of the host's clock for a guest in real time."""
    STILL = "still"
    """Nothing moved, and nothing keeps QEMU from moving."""
    OUTPUT = "output"
    """It wrote more than may be kept."""
    DAMAGED = "damaged"
    """What it reported cannot be read."""


@dataclass(frozen=True)
class WatchResult:
    """How it ended."""

    stop: StopReason
    status: int = 0
    """QEMU's exit status, or minus a signal's number."""
    reset: bool = False
    """The guest asked for a reset (a kernel does after a panic, and a triple fault is one)."""
    switched_off: bool = False
    """The guest asked to be switched off."""


@dataclass(frozen=True)
class Limits:
    """What a guest may use."""

    instructions: int
    """From the moment when watching starts."""
    seconds: float
    """Of CPU that QEMU uses; also of the host's clock in which nothing moves."""
    in_real_time: bool = False
    """The seconds are the host's clock's, which is the guest's as well."""
    time_is_up: int | None = None
    """QEMU's exit status where it ends by itself after so many; None: it is asked for the time."""


def guest_time(process: QemuProcess) -> int:
    """Nanoseconds of guest time since it was switched on, in whole seconds."""
    path, name = _CLOCK
    return _nanoseconds(process.qmp.execute("qom-get", path=path, property=name))


def _time_at_start(process: QemuProcess) -> int:
    """As guest_time; 0 where QEMU has ended already, which watching finds out at once, and how it did."""
    try:
        return guest_time(process)
    except QemuGone:
        return 0


@dataclass(frozen=True)
class CpuUse:
    """One reading."""

    seconds: float
    """Of CPU, all threads together, since the process began."""
    held_up: str = ""
    """The states of threads that would go on if this host let them: R (no CPU), D (a disk), T (stopped)."""
    waited: float = 0.0
    """Seconds for which threads could have run and had no CPU, all together; 0 where that is not told."""


class CpuLimit:
    """Whether a process has used so many seconds of CPU, or has not moved for as long."""

    def __init__(self, seconds: float, before: CpuUse | None, moment: float) -> None:
        self._seconds = seconds
        self._first = self._last = before or CpuUse(0.0)
        self._looked = moment
        self.still = 0.0
        """Seconds of the host's clock for which nothing has moved, while this process ran."""
        self.next_look = moment + self._pause()

    def past(self, used: CpuUse, moment: float) -> StopReason | None:
        """Which limit was passed, at this look. Raises HostHoldsUp where this host is in the way."""
        elapsed = min(moment - self._looked, 2 * self._pause())
        moved = used.seconds - self._last.seconds >= _MOVES * elapsed
        self.still = 0.0 if moved else self.still + elapsed
        self._last, self._looked = used, moment
        self.next_look = moment + self._pause()
        if used.seconds - self._first.seconds > self._seconds:
            return StopReason.SECONDS
        if self.still <= self._seconds:
            return None
        if used.held_up:
            raise HostHoldsUp(seconds=round(self.still), states=used.held_up)
        return StopReason.STILL

    def _pause(self) -> float:
        """Its CPU runs in one thread: what is left takes as long at least."""
        left = self._seconds - (self._last.seconds - self._first.seconds)
        return min(max(left, _SHORTEST_PAUSE), FIRST_LOOK_SECONDS)


def check_real_time(seconds: float, before: CpuUse, current: CpuUse) -> None:
    """Raise HostHoldsUp where a guest whose limit of `seconds` of the host's clock is over had no chance.

    It was stopped, or waited for a CPU for longer than it had one. One that sleeps, or runs, has hung.
    """
    waited, used = current.waited - before.waited, current.seconds - before.seconds
    if _STOPPED in current.held_up or (waited >= seconds * _NO_CHANCE and waited > used):
        raise HostHoldsUp(seconds=round(max(waited, 1.0)), states=current.held_up or "R")


def until_look(used: CpuUse, at_last_look: float) -> float:
    """Seconds of CPU that a guest has before it is asked for its time; 0: now.

    To ask one that computes may change its numbers; one that waits answers between two instructions.
    """
    return max(QUESTION_SECONDS - (used.seconds - at_last_look), 0.0) if used.held_up else 0.0


class Watcher:
    """Watches one process."""

    def __init__(self, process: QemuProcess, limits: Limits) -> None:
        self._process = process
        self._limits = limits
        self._panicked = False
        self._halted = False
        self._shut_down = self._reset = self._switched_off = False
        self._start = _time_at_start(process)
        self._continued: int | None = None
        moment = time.monotonic()
        self._deadline = moment + limits.seconds
        self._next_look = moment + FIRST_LOOK_SECONDS
        self._next_output_look = moment + OUTPUT_SECONDS
        before = cpu_use(process.pid)
        self._before = before or CpuUse(0.0)
        self._usage = CpuLimit(limits.seconds, before, moment)
        self._used_at_look = before.seconds if before else 0.0

    def resume(self) -> None:
        """Let the guest run (on)."""
        self._panicked = self._halted = False
        # A short trial ends QEMU before it has answered.
        with contextlib.suppress(QemuGone):
            self._continued = self._process.qmp.send("cont")

    def watch(self) -> WatchResult:
        """Wait for the end or the next pause. Raises MachineStopped where it was stopped meanwhile."""
        while True:
            ending = self._step()
            if ending:
                self._process.check_stopped()
                return ending

    def _step(self) -> WatchResult | None:
        qmp, pidfd = self._process.qmp, self._process.pidfd
        limit = self._deadline if self._limits.in_real_time else self._usage.next_look
        until = min(limit, self._next_look, self._next_output_look) - time.monotonic()
        ready, _, _ = select.select([qmp.fileno(), pidfd], [], [], max(until, 0.0))
        if qmp.fileno() in ready:
            try:
                qmp.receive()
            except QemuGone:
                return self._exited()
        elif pidfd in ready:
            return self._exited()
        if self._continued is not None and qmp.answered(self._continued):
            qmp.answer(self._continued, "cont")
            self._continued = None
        self._take_events()
        if self._shut_down:
            # The guest has said all that it had to say; QEMU only tidies up, and may take a second for that.
            return WatchResult(StopReason.EXITED, 0, self._reset, self._switched_off)
        if self._panicked and self._halted:
            return WatchResult(StopReason.PAUSED)
        return self._past_limit() or self._look_at_the_output() or self._look_at_the_clock()

    def _exited(self) -> WatchResult:
        # What it told last may still wait to be read, or came in place of an answer.
        with contextlib.suppress(QemuGone):
            while True:
                self._process.qmp.receive()
        self._take_events()
        # The connection closes a little before the process ends; what is left of it takes no time.
        status = self._process.wait()
        if status == self._limits.time_is_up:
            return WatchResult(StopReason.INSTRUCTIONS)
        if status == -signal.SIGXFSZ:
            return WatchResult(StopReason.OUTPUT)
        return WatchResult(StopReason.EXITED, status, self._reset, self._switched_off)

    def _take_events(self) -> None:
        events = self._process.qmp.events
        while events:
            event = events.popleft()
            name, data = event["event"], event.get("data", {})
            self._panicked |= name == "GUEST_PANICKED"
            self._halted |= name == "STOP"
            self._shut_down |= name == "SHUTDOWN"
            self._reset |= name == "SHUTDOWN" and data.get("reason") == "guest-reset"
            self._switched_off |= name == "SHUTDOWN" and data.get("reason") == "guest-shutdown"

    def _past_limit(self) -> WatchResult | None:
        if self._limits.in_real_time and time.monotonic() > self._deadline:
            if used := cpu_use(self._process.pid):
                check_real_time(self._limits.seconds, self._before, used)
            return WatchResult(StopReason.SECONDS)
        if not self._limits.in_real_time and (stop := self._look_at_the_use()):
            return WatchResult(stop)
        return None

    def _look_at_the_output(self) -> WatchResult | None:
        moment = time.monotonic()
        if moment < self._next_output_look:
            return None
        self._next_output_look = moment + OUTPUT_SECONDS
        if self._process.has_written_too_much():
            return WatchResult(StopReason.OUTPUT)
        return WatchResult(StopReason.DAMAGED) if self._process.reported().damage else None

    def _look_at_the_use(self) -> StopReason | None:
        moment = time.monotonic()
        if moment < self._usage.next_look:
            return None
        used = cpu_use(self._process.pid)
        return None if used is None else self._usage.past(used, moment)

    def _look_at_the_clock(self) -> WatchResult | None:
        if time.monotonic() < self._next_look or self._limits.time_is_up is not None:
            return None
        self._next_look = time.monotonic() + FIRST_LOOK_SECONDS
        used = cpu_use(self._process.pid)
        if self._usage.still or (used and _STOPPED in used.held_up):
            return None  # it would not answer
        if used and not self._limits.in_real_time:
            if left := until_look(used, self._used_at_look):
                self._next_look = time.monotonic() + max(left, _SHORTEST_PAUSE)
                return None
            self._used_at_look = used.seconds
        try:
            guest_clock = guest_time(self._process)
        except QemuGone:
            return self._exited()
        self._next_look = time.monotonic() + FIRST_LOOK_SECONDS
        return (
            WatchResult(StopReason.INSTRUCTIONS)
            if guest_clock - self._start > self._limits.instructions
            else None
        )


def _nanoseconds(clock: object) -> int:
    if not isinstance(clock, dict):
        raise QemuRefused(machine="exact", command="qom-get rtc-time", problem=f"an odd answer: {clock!r}")
    year, month, *parts = (int(clock[f"tm_{part}"]) for part in ("year", "mon", "mday", "hour", "min", "sec"))
    day, hour, minute, second = parts
    date = datetime(year + 1900, month + 1, day, hour, minute, second, tzinfo=UTC)
    return int((date - CLOCK_BASE).total_seconds()) * 1_000_000_000


# What the kernel says of a process's use of this host's CPUs, and of what its threads wait for.

_TICKS = os.sysconf("SC_CLK_TCK")
_STATE, _USER, _SYSTEM = 0, 11, 12
"""Places in /proc/PID/stat after the program's name (proc_pid_stat(5))."""
_WAITING = frozenset("SI")
"""Asleep until something happens, for which nobody has to give it a CPU or a disk's answer."""


def cpu_use(process: int, proc: Path = Path("/proc")) -> CpuUse | None:
    """Of the process with this id; None where it has ended."""
    directory = proc / str(process)
    try:
        facts = _fields(directory / "stat")
        threads = [_fields(thread / "stat")[_STATE] for thread in (directory / "task").iterdir()]
        waited = sum(_waited(thread / "schedstat") for thread in (directory / "task").iterdir())
    except OSError:
        return None
    used = (int(facts[_USER]) + int(facts[_SYSTEM])) / _TICKS
    return CpuUse(used, "".join(sorted(set(threads) - _WAITING)), waited)


def _waited(path: Path) -> float:
    """The second number of schedstat (Documentation/scheduler/sched-stats.rst); 0 where there is none."""
    try:
        return int(path.read_text(encoding="ascii").split()[1]) / 1e9
    except FileNotFoundError:
        return 0.0


def _fields(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
