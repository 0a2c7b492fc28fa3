"""Booting from switched-off to the snapshot point, and finding out why a kernel does not get there."""

import contextlib
from collections.abc import Iterator

from ktrial.machines.exact.launch import switched_on
from ktrial.machines.exact.setup import Setup
from ktrial.machines.exact.snapshot_cache import Contents
from ktrial.machines.protocol import Progress
from ktrial.machines.qemu import ending as outcome
from ktrial.machines.qemu import migration
from ktrial.machines.qemu.guest_report import Report, read_report
from ktrial.machines.qemu.launch import TooSmall, Unstarted
from ktrial.machines.qemu.process import Children, QemuProcess, memory_file
from ktrial.machines.qemu.watchdog import Ending, Limits, Stop, Watcher
from ktrial.target.errors import GuestEnded
from ktrial.target.frames import Ready

_SECONDS_TO_EXPLAIN = 60.0


@contextlib.contextmanager
def booted(
    setup: Setup, children: Children, ram: int, progress: Progress
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
def started(setup: Setup, children: Children, ram: int, plan: bytes | None = None) -> Iterator[QemuProcess]:
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
def snapshot_contents(setup: Setup, children: Children, progress: Progress) -> Iterator[Contents]:
    """Boot, and yield what a snapshot is made from. Raises GuestEnded or CannotSaveState."""
    with memory_file("ktrial-ram") as ram:
        with booted(setup, children, ram, progress) as (process, ready):
            progress("saving the snapshot")
            state = migration.save(process, ready.tsc, setup.machine)
        yield Contents(ram, state)


def not_booted(
    setup: Setup, children: Children, process: QemuProcess, ending: Ending, report: Report
) -> GuestEnded:
    """Why it did not boot. Kernels boot quietly; one that fails boots once more, the same but talkative."""
    console, said = process.console_text(), process.said()
    process.kill()
    if report.failed:
        found = outcome.agent_failed(report.failed, console)
    else:
        talkative = _talkative_console(setup, children)
        console = talkative if len(talkative) > len(console) else console
        found = outcome.judge(ending, setup.limits, console=console, said=said, ready=False)
    return ended(found, console)


def ended(found: outcome.Verdict, console: str) -> GuestEnded:
    """The error for a guest that ended before it did any step."""
    end = outcome.console_end(console)
    return GuestEnded(outcome=found.outcome.value, reason=found.reason, console=end, results=())


def _talkative_console(setup: Setup, children: Children) -> str:
    limits = Limits(setup.limits.instructions, min(setup.limits.seconds, _SECONDS_TO_EXPLAIN))
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
