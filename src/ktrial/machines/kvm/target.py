"""The target that the machine `kvm` yields: each `perform` is one boot."""

from ktrial.machines.kvm.boot import RealTimeSetup, switched_on
from ktrial.machines.qemu import ending as outcome
from ktrial.machines.qemu.guest_report import Report, read_report
from ktrial.machines.qemu.launch import TooSmall, Unstarted
from ktrial.machines.qemu.process import Children, QemuProcess
from ktrial.machines.qemu.watchdog import Ending, Stop, Watcher
from ktrial.model.boot import MachineIdentity
from ktrial.target import Run, Step, StepResult
from ktrial.target.errors import GuestEnded
from ktrial.target.guest_plan import GuestPlan


class RealTimeTarget:
    """A system that boots for every `perform`."""

    def __init__(self, setup: RealTimeSetup, children: Children) -> None:
        self._setup = setup
        self._children = children
        self._console = ""

    @property
    def identity(self) -> MachineIdentity:
        """What of the machine can change a result."""
        return self._setup.identity

    @property
    def console(self) -> str:
        """The end of the console log of the last `perform`: at most 200 lines."""
        return self._console

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """Boot, do the steps, and end. Raises GuestEnded or MachineError."""
        self._console = ""
        held = {number for number, step in enumerate(steps) if isinstance(step, Run) and not step.limit_ns}
        limited = tuple(self._limited(step) for step in steps)
        plan = GuestPlan(steps=limited).model_dump_json().encode()
        try:
            with switched_on(self._setup, self._children, plan) as process:
                return self._results(process, held)
        except Unstarted as error:
            raise self._ended(outcome.judge_unstarted(error.status, error.said)) from None
        except TooSmall as error:
            raise self._ended(outcome.too_small(error.needed, error.memory)) from None

    def _results(self, process: QemuProcess, held: set[int]) -> tuple[StepResult, ...]:
        watcher = Watcher(process, self._setup.limits)
        watcher.resume()
        ending = watcher.watch()
        report = read_report(process)
        console = process.console_text()
        self._console = outcome.console_end(console)
        found = self._judge(ending, report, console, process.said(), held)
        if found:
            raise self._ended(found, report.results)
        return report.results

    def _judge(
        self, ending: Ending, report: Report, console: str, said: str, held: set[int]
    ) -> outcome.Verdict | None:
        if report.module_refused:
            return outcome.module_refused(report.module_refused)
        if report.done:
            return self._judge_done(report, console, held)
        if report.failed:
            return outcome.agent_failed(report.failed, console)
        if report.damage:
            return outcome.frames_damaged(report.damage)
        ready = report.ready is not None
        return outcome.judge(ending, self._setup.limits, console=console, said=said, ready=ready)

    def _judge_done(self, report: Report, console: str, held: set[int]) -> outcome.Verdict | None:
        killed = sum(result.oom_kills for result in report.results)
        if found := outcome.processes_killed(killed, console):
            return found
        late = any(result.timed_out and result.step in held for result in report.results)
        end, limits = Ending(Stop.SECONDS), self._setup.limits
        return outcome.judge(end, limits, console="", said="", ready=True) if late else None

    def _limited(self, step: Step) -> Step:
        """A program without a limit of its own is held to the boot's, which is host time."""
        if isinstance(step, Run) and not step.limit_ns:
            return step.model_copy(update={"limit_ns": round(self._setup.limits.seconds * 1e9)})
        return step

    def _ended(self, found: outcome.Verdict, results: tuple[StepResult, ...] = ()) -> GuestEnded:
        return GuestEnded(
            outcome=found.outcome.value, reason=found.reason, console=self._console, results=results
        )
