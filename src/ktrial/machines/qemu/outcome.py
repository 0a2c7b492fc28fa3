"""What a guest reported in frames, and what became of one that ended early.

The latter is told from its console and from how QEMU ended.
"""

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ktrial.machines.qemu.process import OUTPUT_LIMIT, QemuProcess
from ktrial.machines.qemu.watchdog import Limits, StopReason, WatchResult
from ktrial.model.trial import Outcome
from ktrial.target import StepResult
from ktrial.target.frames import Done, Failed, Ready
from ktrial.text_lines import lines_of


@dataclass(frozen=True)
class ProcessFrames:
    """All frames of one process, sorted by what they say."""

    ready: Ready | None = None
    results: tuple[StepResult, ...] = ()
    finished: bool = False
    failed: str = ""
    """Why the agent could not go on; empty where it could."""
    damage: str = ""
    """What is wrong with the first damaged frame; those before it count."""

    @property
    def module_refused(self) -> str:
        """The first module that the kernel did not take at boot, and its answer; empty where it took all."""
        failures = self.ready.failures if self.ready else ()
        refused = (f.failure.text for f in failures if f.what.startswith("module "))
        return next(refused, "")


def read_report(process: QemuProcess) -> ProcessFrames:
    """What there is. A frame that is not complete yet is left out."""
    reported = process.reported()
    payloads = reported.payloads
    return ProcessFrames(
        ready=next((payload for payload in payloads if isinstance(payload, Ready)), None),
        results=tuple(payload for payload in payloads if isinstance(payload, StepResult)),
        finished=any(isinstance(payload, Done) for payload in payloads),
        failed=next((payload.text for payload in payloads if isinstance(payload, Failed)), ""),
        damage=reported.damage,
    )


# What a kernel says of its own failure.

_COMPLAINTS = re.compile(
    r"WARNING: .*|BUG: .*|kernel BUG at .*|UBSAN: .*|Oops: .*|Kernel panic - .*|PANIC: .*"
    r"|(?:general protection fault|invalid opcode|divide error|double fault|stack segment|int3)\b.*\[#\d+\].*"
    r"|INFO: task .* blocked for more than .*"
    r"|.*(?:rcu_\w+|rcu:.*) (?:self-)?detected (?:expedited )?stalls?.*|.*lockup.*"
)
"""Of a WARN, a BUG, a sanitizer, an oops, a panic, a hung task, a stall, a lockup."""
_BEFORE_MESSAGE = re.compile(r"(?:<\d>)?(?:\[\s*(?P<seconds>\d+\.\d+)\]\s*)?(?:\[[^\]]*\]\s*)*")
"""Level, time and caller, as printk writes them (CONFIG_PRINTK_TIME, CONFIG_PRINTK_CALLER)."""
_LONGEST_MESSAGE = 300


@dataclass(frozen=True)
class Complaint:
    """One line in which a kernel says that it failed, or that something is wrong with it."""

    text: str
    """Without its time stamp."""
    milliseconds: float | None
    """Since the kernel started, in the guest's time; None where its messages have no time."""

    def __str__(self) -> str:
        return f"{self.text}{_moment(self.milliseconds)}"


def complaints_in(console: str) -> Iterator[Complaint]:
    """The kernel's complaints on its console, in their order."""
    for line in lines_of(console):
        # A line may be as long as the console: its start says what it is.
        start = line.strip()[:_LONGEST_MESSAGE]
        before = _BEFORE_MESSAGE.match(start)
        message = start[before.end() :] if before else start
        if _COMPLAINTS.fullmatch(message):
            seconds = before["seconds"] if before else None
            yield Complaint(message, float(seconds) * 1000 if seconds else None)


def _moment(milliseconds: float | None) -> str:
    """`, at 812 ms`; empty where the time is not known."""
    if milliseconds is None:
        return ""
    return f", at {milliseconds:,.0f} ms" if milliseconds >= 100 else f", at {milliseconds:.3g} ms"


# What became of a guest that ended early.

CONSOLE_LINES = 200
_MIB = 1 << 20
_PANIC_WORDS = "Kernel panic - "
_PANIC = r"Kernel panic - not syncing: (?P<said>[^\n]*)"
_ON_CONSOLE: tuple[tuple[str, Outcome, str], ...] = (
    # init/initramfs.c: writing into the root file system, which is RAM, failed.
    (
        r"Initramfs unpacking failed: write error",
        Outcome.OUT_OF_MEMORY,
        "the initial RAM disk does not fit the guest's memory",
    ),
    # mm/oom_kill.c; before 4.19 the panic was called `Out of memory and no killable processes`.
    (
        r"Kernel panic - not syncing: (?P<said>(?:System is deadlocked on memory|Out of memory)[^\n]*)",
        Outcome.OUT_OF_MEMORY,
        "{said}",
    ),
    # init/main.c and init/do_mounts.c. Without a usable rdinit= the kernel looks for a root device instead.
    (
        r"Kernel panic - not syncing: (?P<said>(?:No working init found|No init found|Requested init "
        r"|VFS: Unable to mount root fs)[^\n]*)",
        Outcome.NO_INIT,
        "{said}",
    ),
    (_PANIC, Outcome.PANICKED, "{said}"),
)
_KILLED_FOR_MEMORY = re.compile(r"Out of memory: Kill(?:ed)? process")
_KILLED_INIT = "Attempted to kill init!"
_DEAD = frozenset({Outcome.PANICKED, Outcome.HUNG, Outcome.WORKLOAD_FAILED})
"""Outcomes that a kernel's failure may be the cause of: its first complaint is their headline."""
_REFUSALS: tuple[tuple[str, Outcome], ...] = (
    # hw/i386/x86.c: what QEMU says of files that it cannot boot.
    (
        r"PVH ELF Note|could not (?:open|load) kernel|linux kernel too old|invalid kernel",
        Outcome.NOT_A_KERNEL,
    ),
    (r"initrd is too large|kernel is too large", Outcome.OUT_OF_MEMORY),
)


@dataclass(frozen=True)
class GuestFailure:
    """An outcome and why, in one sentence."""

    outcome: Outcome
    reason: str


def judge(ending: WatchResult, limits: Limits, *, console: str, messages: str, ready: bool) -> GuestFailure:
    """What became of a guest that did not do all its steps.

    `messages` is what QEMU itself printed; `ready` whether the agent had reported.
    """
    failure = (
        _from_console(console)
        or _from_limit(ending, limits, console=console, ready=ready)
        or _from_exit(ending, console=console, messages=messages, ready=ready)
    )
    return headed(failure, console)


def headed(failure: GuestFailure, console: str) -> GuestFailure:
    """The failure; its reason begins with the kernel's first complaint where that came before."""
    complaint = next(complaints_in(console), None) if failure.outcome in _DEAD else None
    if complaint is None or complaint.text.startswith(_PANIC_WORDS):
        return failure
    return replace(failure, reason=f"{complaint}; then {failure.reason}")


def judge_unstarted(status: int, messages: str) -> GuestFailure:
    """What became of a guest whose QEMU ended before its first instruction."""
    last = _last(messages)
    for pattern, outcome in _REFUSALS:
        if re.search(pattern, messages):
            return GuestFailure(outcome, f"QEMU refuses it: {last}")
    return _qemu_failed(status, last)


def agent_failed(text: str, console: str) -> GuestFailure:
    """What became of a guest whose agent gave up: the kernel may have said why."""
    failed = GuestFailure(Outcome.MACHINE_FAILED, f"the agent could not go on: {text}")
    return headed(_from_console(console) or failed, console)


def module_refused(text: str) -> GuestFailure:
    """What became of a guest whose kernel does not take a module of the study."""
    return GuestFailure(Outcome.REFUSED, f"the kernel refused a {text}")


def frames_damaged(damage: str, *, ready: bool) -> GuestFailure:
    """What became of a guest whose frames cannot be read. Only what runs in the guest can write there."""
    outcome = Outcome.WORKLOAD_FAILED if ready else Outcome.NO_INIT
    cause = "a program or the kernel in the guest wrote to the agent's port 0xe9, or changed its memory"
    return GuestFailure(outcome, f"what the guest reported cannot be read: {damage}. So {cause}")


def misreport(steps: tuple[str, ...], report: ProcessFrames) -> str:
    """What is wrong with results that do not belong to these steps (what each does); empty where all do."""
    results = report.results
    for number, (result, do) in enumerate(zip(results, steps, strict=False)):
        if (result.step, result.do) != (number, do):
            other = f"{result.step} ({result.do})"
            return f"where the result of step {number} ({do}) belongs, there is one of {other}"
    if len(results) > len(steps):
        return f"it has more results ({len(results)}) than there are steps ({len(steps)})"
    if report.finished and len(results) < len(steps):
        return f"it says that all is done, and has {len(results)} results of {len(steps)} steps"
    return ""


def processes_killed(count: int, console: str) -> GuestFailure | None:
    """What became of a guest in which the kernel killed `count` processes for want of memory.

    Nothing, where a control group of the workload's own was out of memory: that may be its purpose.
    """
    if not count or "Memory cgroup out of memory" in console:
        return None
    match = re.search(r"Out of memory: Kill(?:ed)? process[^\r\n]*", console)
    victim = match[0] if match else f"{count} processes killed"
    return GuestFailure(Outcome.OUT_OF_MEMORY, f"the guest ran out of memory: {victim}")


def too_much_written() -> GuestFailure:
    """What became of a guest that made QEMU write without end."""
    most = f"{OUTPUT_LIMIT // _MIB} MiB"
    places = "its console, its frames, or what is counted of it"
    return GuestFailure(Outcome.HUNG, f"the guest wrote more than {most} to {places}")


def too_small(needed: int, memory: int) -> GuestFailure:
    """What becomes of a guest whose memory cannot hold the kernel and its RAM disk (sizes in bytes)."""
    sizes = f"{-(-needed // _MIB)} MiB, and the guest has {memory // _MIB} MiB"
    return GuestFailure(Outcome.OUT_OF_MEMORY, f"the kernel and its initial RAM disk need {sizes}")


def console_end(console: str) -> str:
    """The last 200 lines of a console log."""
    return "\n".join(lines_of(console.replace("\r\n", "\n"))[-CONSOLE_LINES:])


def _from_console(console: str) -> GuestFailure | None:
    # Two searches, not one expression: that would take the square of a hostile console's length.
    init_killed = console.rfind(_KILLED_INIT)
    if init_killed >= 0 and _KILLED_FOR_MEMORY.search(console, 0, init_killed):
        return GuestFailure(Outcome.OUT_OF_MEMORY, "the kernel ran out of memory and killed the agent")
    for pattern, outcome, reason in _ON_CONSOLE:
        match = re.search(pattern, console)
        if match:
            words = match.groupdict().get("said", "").strip() or "a panic without a reason"
            line = console[console.rfind("\n", 0, match.start()) + 1 : match.end()]
            moment = _moment(next((said.milliseconds for said in complaints_in(line)), None))
            return GuestFailure(outcome, reason.format(said=f"{words}{moment}"))
    return None


def _from_limit(ending: WatchResult, limits: Limits, *, console: str, ready: bool) -> GuestFailure | None:
    if ending.stop is StopReason.OUTPUT:
        return too_much_written()
    passed = {
        StopReason.INSTRUCTIONS: f"{limits.instructions / 1e9:g} s of guest time",
        StopReason.SECONDS: f"{limits.seconds:g} s of {'host time' if limits.in_real_time else 'CPU time'}",
        StopReason.STILL: f"{limits.seconds:g} s in which nothing moved",
    }.get(ending.stop)
    if passed is None:
        return None
    if not ready and not console.strip():
        reason = f"nothing came on its console within {passed}"
        return GuestFailure(Outcome.NOT_A_KERNEL, reason)
    stage = "the steps were done" if ready else "the agent was ready"
    return GuestFailure(Outcome.HUNG, f"{passed} went by before {stage}")


def _from_exit(ending: WatchResult, *, console: str, messages: str, ready: bool) -> GuestFailure:
    if ending.stop is StopReason.PAUSED:
        return GuestFailure(Outcome.PANICKED, "the kernel panicked, and said nothing on its console")
    if ending.reset and not ready and not console.strip():
        return GuestFailure(
            Outcome.NOT_A_KERNEL, "the CPU was reset (a triple fault) before anything came on the console"
        )
    if ending.reset:
        return GuestFailure(
            Outcome.PANICKED, "the machine was reset without a panic on the console (a triple fault?)"
        )
    if ending.switched_off and ready:
        return GuestFailure(Outcome.WORKLOAD_FAILED, "the guest was switched off before the steps were done")
    if ending.switched_off:
        return GuestFailure(Outcome.NO_INIT, "the guest switched itself off before the agent was ready")
    return _qemu_failed(ending.status, _last(messages))


def _last(messages: str) -> str:
    """What tells most of what QEMU said: the plugin's complaint, which QEMU follows up, or the last line."""
    lines = lines_of(messages) or ["it said nothing"]
    return next((line for line in reversed(lines) if line.startswith(("insn: ", "parallel: "))), lines[-1])


def _qemu_failed(status: int, last: str) -> GuestFailure:
    ending = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    if status == -signal.SIGKILL:
        ending += ", as where memory ends (dmesg tells)"
    return GuestFailure(Outcome.MACHINE_FAILED, f"QEMU {ending}: {last}")
