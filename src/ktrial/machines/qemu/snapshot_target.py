"""A target whose each `perform` is one QEMU, from the same saved state."""

import contextlib

from ktrial.machines.errors import CannotLoadState
from ktrial.machines.qemu import outcome as outcome
from ktrial.machines.qemu.boot import Unstarted
from ktrial.machines.qemu.outcome import ProcessFrames, read_report
from ktrial.machines.qemu.process import Children, QemuProcess, memory_file
from ktrial.machines.qemu.snapshot_boot import not_booted, restored, started
from ktrial.machines.qemu.snapshot_cache import SnapshotCache
from ktrial.machines.qemu.snapshot_setup import SnapshotSetup
from ktrial.machines.qemu.watchdog import GuestExit, Stop, Watcher
from ktrial.model.machine import MachineIdentity
from ktrial.target import Run, Step, StepResult
from ktrial.target.errors import GuestEnded
from ktrial.target.guest_plan import GuestPlan


class SnapshotTarget:
    """A system that starts anew, from one state, for every `perform`."""

    def __init__(
        self, setup: SnapshotSetup, children: Children, snapshots: SnapshotCache, plain_boot_reason: str
    ) -> None:
        self._setup = setup
        self._children = children
        self._snapshots = snapshots
        self._plain_boot_reason = plain_boot_reason
        self._console = ""
        self._held: set[int] = set()

    @property
    def identity(self) -> MachineIdentity:
        """What of the machine can change a result."""
        plain = self._plain_boot_reason
        used = {"plain_boot_reason": plain} if plain else {"snapshot": self._setup.key}
        return self._setup.identity.model_copy(update=used)

    @property
    def console(self) -> str:
        """The end of the console log of the last `perform`: at most 200 lines."""
        return self._console

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """Do the steps in a fresh copy of the system. Raises GuestEnded or MachineError."""
        self._console = ""
        self._held = {number for number, step in enumerate(steps) if _is_unlimited(step)}
        plan = GuestPlan(steps=tuple(self._limited(step) for step in steps)).model_dump_json().encode()
        if not self._plain_boot_reason:
            try:
                return self._perform_restored(plan)
            except CannotLoadState as error:
                self._plain_boot_reason = error.message
        return self._perform_plainly(plan)

    def _perform_restored(self, plan: bytes) -> tuple[StepResult, ...]:
        with contextlib.ExitStack() as kept:
            snapshot = kept.enter_context(self._snapshots.open(self._setup.key))
            if snapshot is None:
                raise CannotLoadState(machine=self._setup.machine, problem="it has gone from the cache")
            try:
                process = kept.enter_context(restored(self._setup, self._children, snapshot, plan))
            except Unstarted as error:
                verdict = outcome.judge_unstarted(error.status, error.said)
                raise self._ended(verdict, ()) from None
            return self._results(process, *self._run(process))

    def _perform_plainly(self, plan: bytes) -> tuple[StepResult, ...]:
        setup, children = self._setup, self._children
        with (
            memory_file("ktrial-ram") as ram,
            started(setup, children, ram, plan) as process,
        ):
            ending, report = self._run(process)
            if report.ready is None:
                raise not_booted(setup, children, process, ending, report)
            return self._results(process, ending, report)

    def _run(self, process: QemuProcess) -> tuple[GuestExit, ProcessFrames]:
        watcher = Watcher(process, self._setup.limits)
        watcher.resume()
        ending = watcher.watch()
        return ending, read_report(process)

    def _results(
        self, process: QemuProcess, ending: GuestExit, report: ProcessFrames
    ) -> tuple[StepResult, ...]:
        console = process.console_text()
        self._console = outcome.console_end(console)
        verdict = self._judge(ending, report, console, process.said())
        if verdict:
            raise self._ended(verdict, report.results)
        return report.results

    def _judge(
        self, ending: GuestExit, report: ProcessFrames, console: str, said: str
    ) -> outcome.GuestVerdict | None:
        if report.done:
            return self._judge_done(report, console)
        if report.failed:
            return outcome.agent_failed(report.failed, console)
        if report.damage:
            return outcome.frames_damaged(report.damage)
        return outcome.judge(ending, self._setup.limits, console=console, said=said, ready=True)

    def _judge_done(self, report: ProcessFrames, console: str) -> outcome.GuestVerdict | None:
        killed = sum(result.oom_kills for result in report.results)
        late = any(result.timed_out and result.step in self._held for result in report.results)
        limit = GuestExit(Stop.INSTRUCTIONS)
        return outcome.processes_killed(killed, console) or (
            outcome.judge(limit, self._setup.limits, console="", said="", ready=True) if late else None
        )

    def _limited(self, step: Step) -> Step:
        """A program without a limit of its own is held to that of the boot, in the guest's own time."""
        limit = self._setup.limits.instructions
        return step.model_copy(update={"limit_ns": limit}) if _is_unlimited(step) else step

    def _ended(self, verdict: outcome.GuestVerdict, results: tuple[StepResult, ...]) -> GuestEnded:
        return GuestEnded(
            outcome=verdict.outcome.value, reason=verdict.reason, console=self._console, results=results
        )


def _is_unlimited(step: Step) -> bool:
    return isinstance(step, Run) and not step.limit_ns
