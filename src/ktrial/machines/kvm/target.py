"""The target that the machine `kvm` yields: each `perform` is one boot in real time.

What QEMU and the kernel are given for it is here as well.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ktrial.machines.host.cpu_affinity_cgroup import cpu_list
from ktrial.machines.host.target import cpu_model
from ktrial.machines.qemu import initramfs
from ktrial.machines.qemu import outcome as outcome
from ktrial.machines.qemu.arguments import (
    BOARD,
    DEVICES,
    HEADLESS,
    date_arguments,
    initrd_arguments,
    kernel_arguments,
    plan_arguments,
    size_arguments,
    snapshot_point_arguments,
)
from ktrial.machines.qemu.boot import BootFiles, TooSmall, Unstarted, boot_files, check_memory, negotiate
from ktrial.machines.qemu.outcome import ProcessFrames, read_report
from ktrial.machines.qemu.process import Children, QemuProcess, memory_file
from ktrial.machines.qemu.program import Qemu
from ktrial.machines.qemu.watchdog import GuestExit, Limits, Stop, Watcher
from ktrial.model.machine import Boot, MachineIdentity
from ktrial.model.workload import Mode
from ktrial.target import Run, Step, StepResult
from ktrial.target.errors import GuestEnded
from ktrial.target.guest_plan import GuestPlan

_ACCELERATED = ("-accel", "kvm", "-cpu", "host,migratable=off,+invtsc")
"""The host's own CPU, with the time-stamp counter that it shares with the host."""
_EMULATED = ("-accel", "tcg,thread=multi", "-cpu", "max")

_PARAMETERS = ("console=ttyS0", "panic=-1", "quiet", "cryptomgr.notests")
_WHEN_EMULATED = ("no_timer_check",)
"""A busy host may keep the emulated timer from ticking while the kernel looks whether it does."""


def kernel_parameters(boot: Boot, *, accelerated: bool) -> str:
    """The kernel's command line: few parameters of the machine's own, then those of the boot.

    Address-space layouts stay random, of the kernel (KASLR) and of programs: each boot draws one, and what
    a layout does to a number averages out over boots instead of being mistaken for a treatment's effect.
    """
    own = _PARAMETERS if accelerated else _PARAMETERS + _WHEN_EMULATED
    return " ".join((*own, *boot.parameters))


def machine_arguments(boot: Boot, *, accelerated: bool) -> tuple[str, ...]:
    """QEMU's arguments that decide what the guest sees, without those that name files.

    The guest's memory is there from the start: no page of it is found by a fault while a workload runs.
    """
    memory = f"memory-backend-ram,id=ram,size={boot.memory_mib}M,prealloc=on"
    return (
        *HEADLESS,
        *(_ACCELERATED if accelerated else _EMULATED),
        *BOARD,
        *("-object", memory),
        *size_arguments(boot),
        *date_arguments("host"),
        *DEVICES,
    )


@dataclass(frozen=True)
class RealTimeSetup:
    """A boot, ready to be started."""

    machine: str
    boot: Boot
    qemu: Qemu
    files: BootFiles
    arguments: tuple[str, ...]
    """QEMU's, without those that name files."""
    identity: MachineIdentity
    accelerated: bool
    """By KVM; else emulated."""

    @property
    def limits(self) -> Limits:
        """Guest nanoseconds and host seconds, which are the same here."""
        return Limits(self.boot.limit_instructions, self.boot.limit_seconds, in_real_time=True)


def set_up(boot: Boot, qemu: Qemu, guest: Path, machine: str, *, accelerated: bool) -> RealTimeSetup:
    """Find and check everything. Raises MachineError, GuestProgramsMissing, or GuestEnded (not a kernel)."""
    files = boot_files(boot, guest, machine)
    arguments = machine_arguments(boot, accelerated=accelerated)
    pinned = (f"pin={cpu_list(set(boot.pin))}",) if boot.pin else ()
    identity = MachineIdentity(
        machine=machine,
        mode=Mode.TIMED if accelerated else Mode.EMULATED_TIME,
        qemu=qemu.build,
        cpu_model=cpu_model() if accelerated else "max (emulated)",
        arguments=(*arguments, *pinned),
        command_line=kernel_parameters(boot, accelerated=accelerated),
        agent_digest=files.agent_digest,
        executed=files.executed,
    )
    return RealTimeSetup(machine, boot, qemu, files, arguments, identity, accelerated)


@contextlib.contextmanager
def switched_on(setup: RealTimeSetup, children: Children, plan: bytes) -> Iterator[QemuProcess]:
    """A guest at its first instruction, stopped; once it runs it does the plan.

    Raises Unstarted or TooSmall.
    """
    with memory_file("ktrial-initrd") as initrd, memory_file("ktrial-plan", plan) as planned:
        initramfs.write(setup.files.entries, initrd, setup.machine)
        check_memory(setup.boot, initrd)
        arguments = (
            *setup.arguments,
            *kernel_arguments(setup.files.kernel, setup.identity.command_line),
            *initrd_arguments(initrd),
            *plan_arguments(planned),
            *snapshot_point_arguments(stops=False),
        )
        files, cpus = (initrd, planned), setup.boot.pin
        with QemuProcess(setup.qemu, arguments, files, children, cpus=cpus) as process:
            negotiate(process)
            yield process


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
        verdict = self._judge(ending, report, console, process.said(), held)
        if verdict:
            raise self._ended(verdict, report.results)
        return report.results

    def _judge(
        self, ending: GuestExit, report: ProcessFrames, console: str, said: str, held: set[int]
    ) -> outcome.GuestVerdict | None:
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

    def _judge_done(self, report: ProcessFrames, console: str, held: set[int]) -> outcome.GuestVerdict | None:
        killed = sum(result.oom_kills for result in report.results)
        if verdict := outcome.processes_killed(killed, console):
            return verdict
        late = any(result.timed_out and result.step in held for result in report.results)
        end, limits = GuestExit(Stop.SECONDS), self._setup.limits
        return outcome.judge(end, limits, console="", said="", ready=True) if late else None

    def _limited(self, step: Step) -> Step:
        """A program without a limit of its own is held to the boot's, which is host time."""
        if isinstance(step, Run) and not step.limit_ns:
            return step.model_copy(update={"limit_ns": round(self._setup.limits.seconds * 1e9)})
        return step

    def _ended(self, verdict: outcome.GuestVerdict, results: tuple[StepResult, ...] = ()) -> GuestEnded:
        return GuestEnded(
            outcome=verdict.outcome.value, reason=verdict.reason, console=self._console, results=results
        )
