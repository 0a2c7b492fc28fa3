"""A target whose each `perform` is one QEMU, from the same saved state."""

import base64
import contextlib
import os
import select
import signal
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from ktrial.machines import PreparationProgress, guest_programs
from ktrial.machines.errors import CannotLoadState, CannotSaveState, QemuGone, QemuRefused
from ktrial.machines.qemu import carried, initramfs, program, snapshot_cache
from ktrial.machines.qemu import outcome as outcome
from ktrial.machines.qemu.boot import (
    MOMENT,
    BootFiles,
    BootsInUse,
    TooSmall,
    Unstarted,
    boot_files,
    check_memory,
    initrd_arguments,
    kernel_arguments,
    memory_arguments,
    negotiate,
    plan_arguments,
    snapshot_point_arguments,
    with_files,
)
from ktrial.machines.qemu.initramfs import InitramfsEntry
from ktrial.machines.qemu.outcome import ProcessFrames, read_report
from ktrial.machines.qemu.process import Children, QemuProcess, Qmp, are_full, inherited_path, memory_file
from ktrial.machines.qemu.program import Qemu
from ktrial.machines.qemu.snapshot_cache import (
    OpenSnapshot,
    SnapshotCache,
    SnapshotContents,
    snapshots_directory,
    snapshots_limit,
)
from ktrial.machines.qemu.watchdog import Limits, StopReason, Watcher, WatchResult
from ktrial.model.machine import Boot, FileSet, MachineIdentity
from ktrial.system_tools import Tool
from ktrial.target import Collect, GuestPlan, Run, Step, StepResult, Target, Write
from ktrial.target.errors import GuestEnded, NoSymbolsInGuest
from ktrial.target.frames import Ready

# One boot with all that it needs found and hashed: command lines, files, and the key of its snapshot.


@dataclass(frozen=True)
class SnapshotSetup:
    """A boot, ready to be started; each machine that starts from snapshots has its own."""

    machine: str
    boot: Boot
    qemu: Qemu
    files: BootFiles
    facts: dict[str, str]
    """What the snapshot's key is made from."""
    identity: MachineIdentity
    """With QEMU's arguments and the kernel's command line: they are made once, for key, record and start."""
    preload: Path
    """The object that is preloaded into QEMU."""
    verbose_command_line: str = ""
    """The kernel's command line for a boot that is to tell more."""
    plugin: tuple[str, ...] = ()
    """QEMU's arguments that load the plugin. It changes nothing in the guest: no part of the key."""
    inherited: tuple[int, ...] = ()
    """Files without a name that those arguments mean (`inherited_path`)."""
    named: tuple[Path, ...] = ()
    """Files that those arguments name."""
    rewound_by: int | None = None
    """An inherited file by which QEMU is told to serve another trial."""
    base: "SnapshotSetup | None" = None
    """The boot that this one goes on from; None: it begins at the kernel."""
    added: tuple[InitramfsEntry, ...] = ()
    """What it is given there."""

    @property
    def key(self) -> str:
        """The snapshot's."""
        return snapshot_cache.key(self.facts)

    @property
    def limits(self) -> Limits:
        """For the boot, and for each trial."""
        return Limits(self.boot.limit_instructions, self.boot.limit_seconds)

    @property
    def arguments(self) -> tuple[str, ...]:
        """QEMU's, without those that name files."""
        return self.identity.arguments

    @property
    def read_files(self) -> tuple[Path, ...]:
        """All files that QEMU's arguments name."""
        return (self.files.kernel, *self.named)

    def loading(self, state: bytes | None) -> tuple[str, ...]:
        """QEMU's arguments for what counts, for a guest that starts from `state` or switched off."""
        return self.plugin

    def canonical(self, state: bytes, time_stamp: int) -> bytes:
        """The state with the guest's clock where `time_stamp` (ns) has it. Raises CannotSaveState."""
        return canonical(state, time_stamp, self.machine)


Setup = TypeVar("Setup", bound=SnapshotSetup)


class GuestSetup(Protocol):
    """A boot, ready to be started."""

    @property
    def limits(self) -> Limits:
        """For each trial."""
        ...


class GuestTarget:
    """A target whose `perform` is a QEMU: what its guest reported, and what became of it."""

    def __init__(self, setup: GuestSetup) -> None:
        self._limits = setup.limits
        self._console = ""
        self._held: set[int] = set()
        """Programs without a limit of their own."""
        self._asked: tuple[str, ...] = ()
        """What each step does."""

    @property
    def console(self) -> str:
        """The end of the console log of the last `perform`: at most 200 lines."""
        return self._console

    def _plan(self, steps: tuple[Step, ...]) -> bytes:
        """A program without a limit of its own is held to that of the boot, in the guest's own time."""
        limits = self._limits
        limit = round(limits.seconds * 1e9) if limits.in_real_time else limits.instructions
        self._console = ""
        self._asked = tuple(step.do for step in steps)
        self._held = {n for n, step in enumerate(steps) if isinstance(step, Run) and not step.limit_ns}
        limited = (
            step.model_copy(update={"limit_ns": limit}) if number in self._held else step
            for number, step in enumerate(steps)
        )
        return GuestPlan(steps=tuple(limited)).model_dump_json().encode()

    def _run(self, process: QemuProcess) -> tuple[WatchResult, ProcessFrames]:
        watcher = Watcher(process, self._limits)
        watcher.resume()
        ending = watcher.watch()
        return ending, read_report(process)

    def _results(
        self, process: QemuProcess, ending: WatchResult, report: ProcessFrames, *, ready: bool
    ) -> tuple[StepResult, ...]:
        console = process.console_text()
        self._console = outcome.console_end(console)
        damage = outcome.misreport(self._asked, report)
        if damage:
            report = replace(report, results=())
        if report.module_refused:
            verdict: outcome.GuestFailure | None = outcome.module_refused(report.module_refused)
        elif damage:
            verdict = outcome.frames_damaged(damage, ready=ready)
        elif report.finished:
            verdict = self._verdict_on_finished(report, console)
        elif report.failed:
            verdict = outcome.agent_failed(report.failed, console)
        elif report.damage:
            verdict = outcome.frames_damaged(report.damage, ready=ready)
        else:
            messages = process.messages()
            verdict = outcome.judge(ending, self._limits, console=console, messages=messages, ready=ready)
        if verdict:
            raise self._ended(verdict, report.results)
        return report.results

    def _verdict_on_finished(self, report: ProcessFrames, console: str) -> outcome.GuestFailure | None:
        killed = sum(result.oom_kills for result in report.results)
        if verdict := outcome.processes_killed(killed, console):
            return verdict
        if not any(result.timed_out and result.step in self._held for result in report.results):
            return None
        limit = WatchResult(StopReason.SECONDS if self._limits.in_real_time else StopReason.INSTRUCTIONS)
        hung = outcome.judge(limit, self._limits, console="", messages="", ready=True)
        return outcome.headed(hung, console)

    @contextlib.contextmanager
    def _counts_in(self, file: int) -> Iterator[None]:
        """Inside, QEMU writes to this file. A guest that fills it has ended by itself, whatever QEMU says."""
        try:
            yield
        except GuestEnded:
            if are_full(file):
                raise self._ended(outcome.too_much_written()) from None
            raise

    def _ended(self, verdict: outcome.GuestFailure, results: tuple[StepResult, ...] = ()) -> GuestEnded:
        return GuestEnded(
            outcome=verdict.outcome.value, reason=verdict.reason, console=self._console, results=results
        )


class SnapshotTarget(GuestTarget):
    """A system that starts anew, from one state, for every `perform`."""

    def __init__(
        self, setup: SnapshotSetup, children: Children, snapshots: SnapshotCache, plain_boot_reason: str
    ) -> None:
        super().__init__(setup)
        self._setup = setup
        self._children = children
        self._snapshots = snapshots
        self._plain_boot_reason = plain_boot_reason

    @property
    def identity(self) -> MachineIdentity:
        """What of the machine can change a result."""
        plain = self._plain_boot_reason
        used = {"plain_boot_reason": plain} if plain else {"snapshot": self._setup.key}
        return self._setup.identity.model_copy(update=used)

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """Do the steps in a fresh copy of the system. Raises GuestEnded or MachineError."""
        plan = self._plan(steps)
        if not self._plain_boot_reason:
            try:
                return self._perform_restored(plan)
            except CannotLoadState as error:
                self._plain_boot_reason = error.message
        return self._perform_plainly(plan)

    def _perform_restored(self, plan: bytes) -> tuple[StepResult, ...]:
        with contextlib.ExitStack() as resources:
            snapshot = resources.enter_context(self._snapshots.open(self._setup.key))
            if snapshot is None:
                raise CannotLoadState(machine=self._setup.machine, problem="it has gone from the cache")
            try:
                process = resources.enter_context(restored(self._setup, self._children, snapshot, plan))
            except Unstarted as error:
                raise self._ended(outcome.judge_unstarted(error.status, error.messages)) from None
            return self._results(process, *self._run(process), ready=True)

    def _perform_plainly(self, plan: bytes) -> tuple[StepResult, ...]:
        setup, children = self._setup, self._children
        with (
            memory_file("ktrial-ram") as ram,
            started(setup, children, ram, plan) as process,
        ):
            ending, report = self._run(process)
            if report.ready is None:
                raise not_booted(setup, children, process, ending, report)
            return self._results(process, ending, report, ready=True)


# QEMU started for a setup, from switched-off or with a snapshot's state, and booted to the snapshot point.
#
# Where a kernel does not get there, it is found out why.

_FROM_OUTSIDE = (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP)
"""How a QEMU ends that somebody else has ended, such as the host's out-of-memory killer."""


@contextlib.contextmanager
def switched_on(
    setup: SnapshotSetup, children: Children, ram: int, plan: bytes | None = None, *, quiet: bool = True
) -> Iterator[QemuProcess]:
    """A guest at its first instruction, stopped. Its RAM is the file `ram`.

    With a plan it goes on to do that as soon as it is ready; without one it stops at the snapshot point.

    Raises Unstarted or TooSmall.
    """
    with contextlib.ExitStack() as resources:
        initrd = resources.enter_context(memory_file("ktrial-initrd"))
        initramfs.write(setup.files.entries, initrd, setup.machine)
        check_memory(setup.boot, initrd)
        os.ftruncate(ram, setup.boot.memory_mib << 20)
        arguments = [
            *_common(setup, None, quiet=quiet),
            *memory_arguments(setup.boot, inherited_path(ram), shared=True),
            *initrd_arguments(initrd),
            *snapshot_point_arguments(stops=plan is None),
        ]
        inherited = [ram, initrd, *setup.inherited]
        if setup.base and plan is not None:  # all of it in one go
            given = resources.enter_context(carried.archive(setup.added))
            arguments += carried.arguments(given)
            inherited.append(given)
        _add_plan(arguments, inherited, plan, resources)
        process = resources.enter_context(_process(setup, arguments, inherited, children))
        negotiate(process)
        yield process


@contextlib.contextmanager
def restored(
    setup: SnapshotSetup, children: Children, snapshot: OpenSnapshot, plan: bytes
) -> Iterator[QemuProcess]:
    """A guest at the snapshot point, stopped. It needs no initial RAM disk any more.

    Raises Unstarted or CannotLoadState.
    """
    with contextlib.ExitStack() as resources:
        kept = snapshot.in_memory(snapshot)  # the cache is not QEMU's to open for writing
        arguments = [*memory_arguments(setup.boot, inherited_path(kept.descriptor), shared=False)]
        inherited = [kept.descriptor]
        _add_plan(arguments, inherited, plan, resources)
        yield resources.enter_context(_loaded(setup, children, snapshot.state, arguments, inherited))


@contextlib.contextmanager
def going_on(
    setup: SnapshotSetup, children: Children, snapshot: OpenSnapshot, ram: int
) -> Iterator[QemuProcess]:
    """A guest whose kernel has booted, stopped: `snapshot` is of the base. The file `ram` becomes its RAM.

    It goes on to the snapshot point, with what it is given. Raises Unstarted or CannotLoadState.
    """
    snapshot_cache.copy_data(snapshot.ram, ram)
    with carried.archive(setup.added) as given:
        memory = memory_arguments(setup.boot, inherited_path(ram), shared=True)
        arguments = [*memory, *carried.arguments(given)]
        with _loaded(setup, children, snapshot.state, arguments, [ram, given]) as process:
            yield process


@contextlib.contextmanager
def _loaded(
    setup: SnapshotSetup, children: Children, state: bytes, more: list[str], inherited: list[int]
) -> Iterator[QemuProcess]:
    """A QEMU with this state, stopped; the guest stops at the snapshot point, if it comes there."""
    stream = Stream(state)
    arguments = [
        *_common(setup, state, quiet=True),
        *more,
        *("-incoming", "defer"),
        *snapshot_point_arguments(stops=True),
    ]
    with contextlib.ExitStack() as resources:
        try:
            files = [*inherited, stream.reading, *setup.inherited]
            process = resources.enter_context(_process(setup, arguments, files, children))
        finally:
            stream.start()
        negotiate(process)
        _load(process, stream.reading, setup.machine)
        yield process


def _process(
    setup: SnapshotSetup, arguments: list[str], inherited: list[int], children: Children
) -> QemuProcess:
    return QemuProcess(
        setup.qemu,
        tuple(arguments),
        tuple(inherited),
        children,
        memory=setup.boot.memory_mib << 20,
        files=setup.read_files,
        preload=setup.preload,
        rewound_by=setup.rewound_by,
    )


def _common(setup: SnapshotSetup, state: bytes | None, *, quiet: bool) -> list[str]:
    """The arguments that the setup has; a guest that is to say more boots with another command line."""
    parameters = setup.identity.command_line if quiet else setup.verbose_command_line
    return [
        *setup.arguments,
        *setup.loading(state),
        *kernel_arguments(setup.files.kernel, parameters),
    ]


def _add_plan(
    arguments: list[str], inherited: list[int], plan: bytes | None, resources: contextlib.ExitStack
) -> None:
    if plan is not None:
        file = resources.enter_context(memory_file("ktrial-plan", plan))
        arguments += plan_arguments(file)
        inherited.append(file)


def _load(process: QemuProcess, stream: int, machine: str) -> None:
    """Load a snapshot's state. One that QEMU cannot load is no reason to give up; being killed is."""
    try:
        load(process, stream, machine)
    except CannotLoadState:
        status = process.ended_within(MOMENT)
        if status in _FROM_OUTSIDE:
            raise Unstarted(status, process.messages()) from None
        raise


_SECONDS_TO_EXPLAIN = 60.0
"""For a guest that used up its time. One that ended by itself does so again, however busy this machine is."""


@contextlib.contextmanager
def booted(
    setup: SnapshotSetup, children: Children, ram: int, progress: PreparationProgress
) -> Iterator[tuple[QemuProcess, Ready]]:
    """A guest that is stopped at the snapshot point, and what it reported. Raises GuestEnded."""
    progress("booting")
    with contextlib.ExitStack() as resources:
        process = resources.enter_context(started(setup, children, ram))
        watcher = Watcher(process, setup.limits)
        watcher.resume()
        ending = watcher.watch()
        report = read_report(process)
        if ending.stop is not StopReason.PAUSED or report.ready is None:
            raise not_booted(setup, children, process, ending, report)
        if report.module_refused:
            raise ended(outcome.module_refused(report.module_refused), process.console_text())
        yield process, report.ready


@contextlib.contextmanager
def started(
    setup: SnapshotSetup, children: Children, ram: int, plan: bytes | None = None
) -> Iterator[QemuProcess]:
    """A guest at its first instruction, stopped, as `switched_on`. Raises GuestEnded: QEMU refuses it."""
    with contextlib.ExitStack() as resources:
        try:
            process = resources.enter_context(switched_on(setup, children, ram, plan))
        except Unstarted as error:
            raise ended(outcome.judge_unstarted(error.status, error.messages), "") from None
        except TooSmall as error:
            raise ended(outcome.too_small(error.needed, error.memory), "") from None
        yield process


@contextlib.contextmanager
def snapshot_contents(
    setup: SnapshotSetup, children: Children, progress: PreparationProgress
) -> Iterator[SnapshotContents]:
    """Boot, and yield what a snapshot is made from. Raises GuestEnded or CannotSaveState."""
    with memory_file("ktrial-ram") as ram:
        with booted(setup, children, ram, progress) as (process, ready):
            if setup.boot.awaits_files and ready.agent:
                problem = "it allows no ports, so that nothing stops it before the agent runs"
                raise CannotSaveState(machine=setup.machine, problem=problem)
            progress("saving the snapshot")
            state = setup.canonical(save(process, setup.machine), ready.tsc)
        yield SnapshotContents(ram, state)


@contextlib.contextmanager
def contents_with_files(
    setup: SnapshotSetup, children: Children, snapshots: SnapshotCache, progress: PreparationProgress
) -> Iterator[SnapshotContents]:
    """Go on from the base, and yield what a snapshot is made from. Raises GuestEnded or CannotSaveState."""
    progress("bringing files into the guest")
    with contextlib.ExitStack() as resources:
        ram = resources.enter_context(memory_file("ktrial-ram"))
        snapshot = resources.enter_context(snapshots.open(setup.base.key)) if setup.base else None
        if snapshot is None:
            raise CannotSaveState(machine=setup.machine, problem="the kernel's own has gone from the cache")
        try:
            process = resources.enter_context(going_on(setup, children, snapshot, ram))
        except Unstarted as error:
            raise ended(outcome.judge_unstarted(error.status, error.messages), "") from None
        except CannotLoadState as error:
            raise CannotSaveState(machine=setup.machine, problem=error.problem) from None
        watcher = Watcher(process, setup.limits)
        watcher.resume()
        ending = watcher.watch()
        report = read_report(process)
        console = process.console_text()
        if report.failed and (refused := carried.refused(report.failed)):
            raise ended(refused, console)
        if ending.stop is not StopReason.PAUSED or report.ready is None or report.failed:
            raise ended(_why_not_ready(setup, process, ending, report), console)
        if report.module_refused:
            raise ended(outcome.module_refused(report.module_refused), console)
        progress("saving the snapshot")
        state = setup.canonical(save(process, setup.machine), report.ready.tsc)
        yield SnapshotContents(ram, state)


def _why_not_ready(
    setup: SnapshotSetup, process: QemuProcess, ending: WatchResult, report: ProcessFrames
) -> outcome.GuestFailure:
    console = process.console_text()
    if report.failed:
        return outcome.agent_failed(report.failed, console)
    if report.damage:
        return outcome.frames_damaged(report.damage, ready=False)
    return outcome.judge(ending, setup.limits, console=console, messages=process.messages(), ready=False)


def not_booted(
    setup: SnapshotSetup, children: Children, process: QemuProcess, ending: WatchResult, report: ProcessFrames
) -> GuestEnded:
    """Why it did not boot. Kernels boot quietly; one that fails boots once more, the same but verbose."""
    console, messages = process.console_text(), process.messages()
    process.kill()
    if report.failed:
        verdict = outcome.agent_failed(report.failed, console)
    elif report.damage:
        verdict = outcome.frames_damaged(report.damage, ready=False)
    else:
        verbose_command_line = _verbose_console(setup, children, ending)
        console = verbose_command_line if len(verbose_command_line) > len(console) else console
        verdict = outcome.judge(ending, setup.limits, console=console, messages=messages, ready=False)
    return ended(verdict, console)


def ended(verdict: outcome.GuestFailure, console: str) -> GuestEnded:
    """The error for a guest that ended before it did any step."""
    end = outcome.console_end(console)
    return GuestEnded(outcome=verdict.outcome.value, reason=verdict.reason, console=end, results=())


def _verbose_console(setup: SnapshotSetup, children: Children, ending: WatchResult) -> str:
    limits = setup.limits
    if ending.stop is StopReason.SECONDS:
        limits = Limits(limits.instructions, min(limits.seconds, _SECONDS_TO_EXPLAIN))
    with (
        contextlib.suppress(Unstarted),  # it started a moment ago: the first console is all there is
        memory_file("ktrial-ram") as ram,
        switched_on(setup, children, ram, quiet=False) as process,
    ):
        watcher = Watcher(process, limits)
        watcher.resume()
        watcher.watch()
        return process.console_text()
    return ""


# Saving a stopped guest, and loading one: QEMU's migration, with the RAM left where it is.
#
# With `x-ignore-shared` the stream holds the CPU and the devices only, some 300 KiB. The RAM is a shared
# file when it is saved; when it is loaded, the same file is mapped privately (share=off), which costs
# nothing and reads no page that the guest does not touch.
#
# The virtual clock in a saved state is made independent of host time. Stopping a guest at the snapshot
# point leaves its clock at one of two values. QEMU marks the only CPU as stopped before the machine as a
# whole has stopped. In between the main loop sees nothing but idle CPUs, and moves the clock on to the next
# timer (`icount_start_warp_timer`), as it does for every idle guest with `sleep=off`. Whether the CPU
# thread has by then added the instructions that it executed last to the clock depends on how the host
# scheduled the two threads: some milliseconds of guest time, on a busy host in every fifth snapshot
# (measured with QEMU 7.2).
#
# The guest's RAM and registers are the same either way, so the clock is set to a time that only the guest's
# own instructions decide: what the agent read from the time-stamp counter just before, and a fixed
# distance. The host's own clocks, which the state holds as well and which count nothing here, become zero.
#
# Layout, fixed by QEMU's promise that states can move to later versions (vmstate_timers and
# icount_vmstate_timers, big-endian): ticks offset, unused, clock offset (8 bytes each); the subsection's
# name and version; icount bias and icount (8 bytes each). The virtual clock is the sum of the last two.

_CAPABILITIES = [{"capability": name, "state": True} for name in ("x-ignore-shared", "events")]
_PATIENCE = 60.0


def save(process: QemuProcess, machine: str) -> bytes:
    """The state of a guest that is stopped, without its RAM, as QEMU has it. Raises CannotSaveState."""
    try:
        process.qmp.execute("migrate-set-capabilities", capabilities=_CAPABILITIES)
        reading, writing = os.pipe()
        try:
            process.qmp.execute("getfd", (writing,), fdname="ktrial-state")
        finally:
            os.close(writing)
        process.qmp.execute("migrate", uri="fd:ktrial-state")
        with os.fdopen(reading, "rb") as stream:
            state = _read_all(stream.fileno(), process.pidfd)
        _wait_for_migration(process.qmp)
        return state
    except (QemuRefused, QemuGone, TimeoutError) as error:
        problem = error.problem if isinstance(error, QemuRefused) else str(error)
        raise CannotSaveState(machine=machine, problem=problem) from None


class Stream:
    """A saved state on its way into a QEMU that inherits `reading`."""

    def __init__(self, state: bytes) -> None:
        self.reading, self._writing = os.pipe()
        self._state = state
        self._thread = threading.Thread(target=self._feed, daemon=True)

    def start(self) -> None:
        """To be called once QEMU has inherited its end: ours is closed, so that its end is noticed."""
        os.close(self.reading)
        self._thread.start()

    def join(self) -> None:
        """Wait until all is read, or QEMU has ended."""
        self._thread.join()

    def _feed(self) -> None:
        remaining = memoryview(self._state)
        try:
            while remaining:
                remaining = remaining[os.write(self._writing, remaining) :]
        except BrokenPipeError:
            return  # QEMU has ended; who waits for its answer learns that
        finally:
            os.close(self._writing)


def load(process: QemuProcess, stream_descriptor: int, machine: str) -> None:
    """Load the state that comes in on the inherited descriptor. Raises CannotLoadState."""
    try:
        process.qmp.execute("migrate-set-capabilities", capabilities=_CAPABILITIES)
        # A guest that has moved announces itself on its networks, five times within two seconds of host time.
        # Each time the CPU would wait for the main loop, which lockstep.so keeps waiting for the CPU.
        process.qmp.execute("migrate-set-parameters", announce_rounds=0)
        process.qmp.execute("migrate-incoming", uri=f"fd:{stream_descriptor}")
        _wait_for_migration(process.qmp)
    except (QemuRefused, QemuGone) as error:
        process.check_stopped()
        raise CannotLoadState(machine=machine, problem=process.messages() or error.message) from None


def _wait_for_migration(qmp: Qmp) -> None:
    while True:
        while qmp.events:
            event = qmp.events.popleft()
            status = event.get("data", {}).get("status") if event["event"] == "MIGRATION" else None
            if status == "completed":
                return
            if status == "failed":
                reason = qmp.execute("query-migrate").get("error-desc", "QEMU does not say why")
                raise QemuRefused(machine="exact", command="migrate", problem=reason)
        qmp.receive("the migration")


def _read_all(reading: int, pidfd: int) -> bytes:
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([reading, pidfd], [], [], _PATIENCE)
        if not ready:
            raise TimeoutError(f"QEMU wrote nothing for {_PATIENCE:.0f} s")
        part = os.read(reading, 1 << 20) if reading in ready else b""
        if not part:
            return b"".join(parts)
        parts.append(part)


AHEAD_NS = 50_000_000
"""From the agent's reading to the snapshot's clock: more than QEMU's jump to the next timer tick (10 ms)."""
_SECTION = b"\x05timer\x00\x00\x00\x00\x00\x00\x00\x02"
_SUBSECTION = b"\x05\x0ctimer/icount\x00\x00\x00\x01"
_HOST_CLOCKS = struct.Struct(">qqq")
_COUNTS = struct.Struct(">qq")


def canonical(state: bytes, time_stamp: int, machine: str) -> bytes:
    """The state with its virtual clock AHEAD_NS after `time_stamp` (ns), and the host's clocks at zero.

    Raises CannotSaveState where the state is not laid out as expected, or its clock is later than that.
    """
    start, counts = _places(state, machine)
    bias, count = _COUNTS.unpack_from(state, counts)
    clock = time_stamp + AHEAD_NS
    if not time_stamp <= bias + count <= clock:
        problem = f"its clock stands at {bias + count} ns, the agent's at {time_stamp} ns"
        raise CannotSaveState(machine=machine, problem=problem)
    changed = bytearray(state)
    _HOST_CLOCKS.pack_into(changed, start, 0, 0, 0)
    _COUNTS.pack_into(changed, counts, clock - count, count)
    return bytes(changed)


def clocked(state: bytes, time_stamp: int, machine: str) -> bytes:
    """The state of a guest without `-icount`, with its clock AHEAD_NS after `time_stamp` (ns).

    It stands where QEMU keeps the host's own clock, which counts nothing there. Raises CannotSaveState.
    """
    changed = bytearray(state)
    _HOST_CLOCKS.pack_into(changed, _clock_place(state, machine), 0, 0, time_stamp + AHEAD_NS)
    return bytes(changed)


def clock_in(state: bytes, machine: str) -> int:
    """The clock that `clocked` put there, in nanoseconds. Raises CannotLoadState."""
    try:
        *_, clock = _HOST_CLOCKS.unpack_from(state, _clock_place(state, machine))
    except CannotSaveState as error:
        raise CannotLoadState(machine, error.problem) from None
    return int(clock)


def _clock_place(state: bytes, machine: str) -> int:
    """Where the host's clocks stand in a state without a count of instructions."""
    start = state.find(_SECTION) + len(_SECTION)
    unique = start >= len(_SECTION) and state.find(_SECTION, start) < 0
    if not unique or _SUBSECTION in state or len(state) < start + _HOST_CLOCKS.size:
        raise CannotSaveState(machine=machine, problem="its clock is not where QEMU keeps it")
    return start


def _places(state: bytes, machine: str) -> tuple[int, int]:
    """Where the host's clocks and the counts stand."""
    together = state.find(_SUBSECTION)
    start = together - _HOST_CLOCKS.size
    counts = together + len(_SUBSECTION)
    unique = together >= 0 and state.find(_SUBSECTION, counts) < 0
    if not unique or not state[:start].endswith(_SECTION) or len(state) < counts + _COUNTS.size:
        raise CannotSaveState(machine=machine, problem="its clock is not where QEMU keeps it")
    return start, counts


class SnapshotMachine:
    """What machines have in common whose targets start from snapshots."""

    name: str

    def __init__(self, guest: Path | None, cache: Path | None) -> None:
        """Other places than the usual: `guest` for the guest programs, `cache` for the snapshots."""
        self._guest = guest or guest_programs.directory()
        self._children = Children(self.name)
        self._snapshots = SnapshotCache(cache or snapshots_directory(), snapshots_limit(), self.name)
        self._plain_boot_reasons: dict[str, str] = {}
        self._in_use = BootsInUse(self.name)

    @property
    def needed_tools(self) -> tuple[Tool, ...]:
        """Programs of this system."""
        return program.qemu_tools()

    def stop(self) -> None:
        """End all at once; this machine is of no more use."""
        self._children.stop()

    def _with_files(self, alone: Setup, files: FileSet, set_up: Callable[[Boot], Setup]) -> Setup:
        """The setup of trials: of a boot that waits for files, with those; others are what they are.

        Where the kernel's own boot cannot be kept, each trial boots from an initial RAM disk with the files.
        `set_up`: gives a boot's setup. Raises MachineError or GuestEnded.
        """
        if not alone.boot.awaits_files:
            return alone if not files.files else set_up(with_files(alone.boot, files))
        self._ensure_snapshot(alone)
        if alone.key in self._plain_boot_reasons:
            return set_up(with_files(alone.boot, files))
        together = boot_files(
            alone.boot.model_copy(update={"files": (*alone.boot.files, *files.files)}), self._guest, self.name
        )
        added = carried.added(alone.files.entries, together.entries)
        content = files.digest or initramfs.manifest_digest(added)
        facts = alone.facts | {"files": content}
        return replace(alone, base=alone, added=added, facts=facts)

    def _ensure_snapshot(
        self, setup: SnapshotSetup, progress: PreparationProgress = lambda _action: None
    ) -> None:
        """Boot once and keep a snapshot, unless there is one. Raises MachineError or GuestEnded."""
        if setup.key in self._plain_boot_reasons:
            return
        with self._snapshots.open(setup.key) as present:
            if present:
                return
        contents = (
            partial(contents_with_files, setup, self._children, self._snapshots, progress)
            if setup.base
            else partial(snapshot_contents, setup, self._children, progress)
        )
        try:
            self._snapshots.make(setup.facts, contents, self._children.check)
        except CannotSaveState as error:
            self._plain_boot_reasons[setup.key] = error.problem


# What a guest says in /proc/kallsyms: asked for once, and then kept beside the snapshot.

SHOWN = Write(path="/proc/sys/kernel/kptr_restrict", value="0")
"""Where the kernel hides the addresses in /proc/kallsyms from all, even root is told zeros."""
_KALLSYMS = "/proc/kallsyms"
_ASKING = threading.Lock()


def kallsyms(target: Target, snapshots: SnapshotCache, setup: SnapshotSetup) -> str:
    """The text, with the modules that the system has loaded.

    Raises NoSymbolsInGuest, GuestEnded, MachineError.
    """
    with _ASKING:
        text = snapshots.note(setup.key)
        if text is None:
            text = _read_kallsyms(target, setup)
            snapshots.keep_note(setup.key, text)
    return text.decode("ascii", errors="replace")


def _read_kallsyms(target: Target, setup: SnapshotSetup) -> bytes:
    # Every `perform` starts anew: the workload does not see the change.
    *_, result = target.perform((SHOWN, Collect(path=_KALLSYMS)))
    if result.failure:
        name, problem = setup.boot.kernel.name, f"{_KALLSYMS}: {result.failure.text}"
        raise NoSymbolsInGuest(name=name, problem=problem)
    return base64.b64decode(result.content)
