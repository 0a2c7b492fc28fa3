"""The target that the exact machine yields: each `perform` is one QEMU, from the same state."""

import contextlib

from ktrial.errors import CannotLoadState, GuestEnded
from ktrial.machines.exact import cold, outcome
from ktrial.machines.exact.launch import Unstarted, restored
from ktrial.machines.exact.process import Children, QemuProcess, memory_file
from ktrial.machines.exact.report import Report, read_report
from ktrial.machines.exact.setup import Setup
from ktrial.machines.exact.snapshot import SnapshotCache
from ktrial.machines.exact.watch import Ending, Watcher
from ktrial.model.machine import MachineIdentity
from ktrial.target import Step, StepResult
from ktrial.target.plan import Plan


class ExactTarget:
    """A system that starts anew, from one state, for every `perform`."""

    def __init__(
        self, setup: Setup, children: Children, snapshots: SnapshotCache, plain_boot_reason: str
    ) -> None:
        self._setup = setup
        self._children = children
        self._snapshots = snapshots
        self._plain_boot_reason = plain_boot_reason
        self._console = ""

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
        plan = Plan(steps=steps).model_dump_json().encode()
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
                found = outcome.judge_unstarted(error.status, error.said)
                raise self._ended(found, ()) from None
            return self._run(process)

    def _perform_plainly(self, plan: bytes) -> tuple[StepResult, ...]:
        with (
            memory_file("ktrial-ram") as ram,
            cold.booted(self._setup, self._children, ram, _silent, plan) as process,
        ):
            return self._run(process)

    def _run(self, process: QemuProcess) -> tuple[StepResult, ...]:
        before = len(process.console_text())
        watcher = Watcher(process, self._setup.limits)
        watcher.resume()
        ending = watcher.watch()
        console = process.console_text()[before:]
        self._console = outcome.console_end(console)
        report = read_report(process)
        found = self._judge(ending, report, console, process.said())
        if found:
            raise self._ended(found, report.results)
        return report.results

    def _judge(self, ending: Ending, report: Report, console: str, said: str) -> outcome.Verdict | None:
        if report.done:
            killed = sum(result.oom_kills for result in report.results)
            return outcome.processes_killed(killed, console)
        if report.failed:
            return outcome.agent_failed(report.failed)
        if report.damage:
            return outcome.frames_damaged(report.damage)
        return outcome.judge(ending, self._setup.limits, console=console, said=said, ready=True)

    def _ended(self, found: outcome.Verdict, results: tuple[StepResult, ...]) -> GuestEnded:
        return GuestEnded(
            outcome=found.outcome.value, reason=found.reason, console=self._console, results=results
        )


def _silent(_text: str) -> None:
    pass
