"""QEMU started for a setup, from switched-off or with a snapshot's state, and booted to the snapshot point.

Where a kernel does not get there, it is found out why.
"""

import contextlib
import os
import signal
from collections.abc import Iterator

from ktrial.machines.errors import CannotLoadState
from ktrial.machines.protocol import Progress
from ktrial.machines.qemu import initramfs, migration
from ktrial.machines.qemu import outcome as outcome
from ktrial.machines.qemu.arguments import (
    initrd_arguments,
    kernel_arguments,
    memory_arguments,
    plan_arguments,
    snapshot_point_arguments,
)
from ktrial.machines.qemu.boot import MOMENT, TooSmall, Unstarted, check_memory, negotiate
from ktrial.machines.qemu.outcome import ProcessFrames, read_report
from ktrial.machines.qemu.process import Children, QemuProcess, inherited_path, memory_file
from ktrial.machines.qemu.snapshot_cache import OpenSnapshot, SnapshotContents
from ktrial.machines.qemu.snapshot_setup import SnapshotSetup
from ktrial.machines.qemu.watchdog import GuestExit, Limits, Stop, Watcher
from ktrial.target.errors import GuestEnded
from ktrial.target.frames import Ready

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
    with contextlib.ExitStack() as kept:
        initrd = kept.enter_context(memory_file("ktrial-initrd"))
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
        _add_plan(arguments, inherited, plan, kept)
        process = kept.enter_context(_process(setup, arguments, inherited, children))
        negotiate(process)
        yield process


@contextlib.contextmanager
def restored(
    setup: SnapshotSetup, children: Children, snapshot: OpenSnapshot, plan: bytes
) -> Iterator[QemuProcess]:
    """A guest at the snapshot point, stopped. It needs no initial RAM disk any more.

    Raises Unstarted or CannotLoadState.
    """
    with contextlib.ExitStack() as kept:
        stream = migration.Stream(snapshot.state)
        arguments = [
            *_common(setup, snapshot.state, quiet=True),
            *memory_arguments(setup.boot, inherited_path(snapshot.ram), shared=False),
            *("-incoming", "defer"),
            *snapshot_point_arguments(stops=True),
        ]
        inherited = [snapshot.ram, stream.reading, *setup.inherited]
        _add_plan(arguments, inherited, plan, kept)
        try:
            process = kept.enter_context(_process(setup, arguments, inherited, children))
        finally:
            stream.start()
        negotiate(process)
        _load(process, stream.reading, setup.machine)
        yield process


def _process(
    setup: SnapshotSetup, arguments: list[str], inherited: list[int], children: Children
) -> QemuProcess:
    return QemuProcess(setup.qemu, tuple(arguments), tuple(inherited), children, preload=setup.preload)


def _common(setup: SnapshotSetup, state: bytes | None, *, quiet: bool) -> list[str]:
    """The arguments that the setup has; a guest that is to say more boots with another command line."""
    parameters = setup.identity.command_line if quiet else setup.talkative
    return [
        *setup.arguments,
        *setup.loading(state),
        *kernel_arguments(setup.files.kernel, parameters),
    ]


def _add_plan(
    arguments: list[str], inherited: list[int], plan: bytes | None, kept: contextlib.ExitStack
) -> None:
    if plan is not None:
        file = kept.enter_context(memory_file("ktrial-plan", plan))
        arguments += plan_arguments(file)
        inherited.append(file)


def _load(process: QemuProcess, stream: int, machine: str) -> None:
    """Load a snapshot's state. One that QEMU cannot load is no reason to give up; being killed is."""
    try:
        migration.load(process, stream, machine)
    except CannotLoadState:
        status = process.ended_within(MOMENT)
        if status in _FROM_OUTSIDE:
            raise Unstarted(status, process.said()) from None
        raise


_SECONDS_TO_EXPLAIN = 60.0
"""For a guest that used up its time. One that ended by itself does so again, however busy this machine is."""


@contextlib.contextmanager
def booted(
    setup: SnapshotSetup, children: Children, ram: int, progress: Progress
) -> Iterator[tuple[QemuProcess, Ready]]:
    """A guest that is stopped at the snapshot point, and what it reported. Raises GuestEnded."""
    progress("booting")
    with contextlib.ExitStack() as kept:
        process = kept.enter_context(started(setup, children, ram))
        watcher = Watcher(process, setup.limits)
        watcher.resume()
        ending = watcher.watch()
        report = read_report(process)
        if ending.stop is not Stop.PAUSED or report.ready is None:
            raise not_booted(setup, children, process, ending, report)
        if report.module_refused:
            raise ended(outcome.module_refused(report.module_refused), process.console_text())
        yield process, report.ready


@contextlib.contextmanager
def started(
    setup: SnapshotSetup, children: Children, ram: int, plan: bytes | None = None
) -> Iterator[QemuProcess]:
    """A guest at its first instruction, stopped, as `switched_on`. Raises GuestEnded: QEMU refuses it."""
    with contextlib.ExitStack() as kept:
        try:
            process = kept.enter_context(switched_on(setup, children, ram, plan))
        except Unstarted as error:
            raise ended(outcome.judge_unstarted(error.status, error.said), "") from None
        except TooSmall as error:
            raise ended(outcome.too_small(error.needed, error.memory), "") from None
        yield process


@contextlib.contextmanager
def snapshot_contents(
    setup: SnapshotSetup, children: Children, progress: Progress
) -> Iterator[SnapshotContents]:
    """Boot, and yield what a snapshot is made from. Raises GuestEnded or CannotSaveState."""
    with memory_file("ktrial-ram") as ram:
        with booted(setup, children, ram, progress) as (process, ready):
            progress("saving the snapshot")
            state = setup.canonical(migration.save(process, setup.machine), ready.tsc)
        yield SnapshotContents(ram, state)


def not_booted(
    setup: SnapshotSetup, children: Children, process: QemuProcess, ending: GuestExit, report: ProcessFrames
) -> GuestEnded:
    """Why it did not boot. Kernels boot quietly; one that fails boots once more, the same but talkative."""
    console, said = process.console_text(), process.said()
    process.kill()
    if report.failed:
        verdict = outcome.agent_failed(report.failed, console)
    else:
        talkative = _talkative_console(setup, children, ending)
        console = talkative if len(talkative) > len(console) else console
        verdict = outcome.judge(ending, setup.limits, console=console, said=said, ready=False)
    return ended(verdict, console)


def ended(verdict: outcome.GuestVerdict, console: str) -> GuestEnded:
    """The error for a guest that ended before it did any step."""
    end = outcome.console_end(console)
    return GuestEnded(outcome=verdict.outcome.value, reason=verdict.reason, console=end, results=())


def _talkative_console(setup: SnapshotSetup, children: Children, ending: GuestExit) -> str:
    limits = setup.limits
    if ending.stop is Stop.SECONDS:
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
