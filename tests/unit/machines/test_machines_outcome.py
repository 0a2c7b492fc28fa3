"""What became of a guest, told from its console and from how QEMU ended."""

import re

import pytest

from ktrial.machines.qemu import outcome as outcome
from ktrial.machines.qemu.watchdog import Limits, StopReason, WatchResult
from ktrial.model.trial import Outcome
from ktrial.target import StepResult

LIMITS = Limits(2_000_000_000, 30.0)
RESET = WatchResult(StopReason.EXITED, 0, reset=True)
OFF = WatchResult(StopReason.EXITED, 0, switched_off=True)


@pytest.mark.parametrize(
    ("console", "expected", "reason"),
    [
        (
            "[1.0] Kernel panic - not syncing: sysrq triggered crash\r\n[1.1] ---[ end",
            Outcome.PANICKED,
            "sysrq triggered crash",
        ),
        (
            "Kernel panic - not syncing: No working init found.  Try passing init= option to kernel.",
            Outcome.NO_INIT,
            "No working init found",
        ),
        (
            "Kernel panic - not syncing: Requested init /nope failed (error -2).",
            Outcome.NO_INIT,
            "Requested init /nope failed (error -2).",
        ),
        (
            "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)",
            Outcome.NO_INIT,
            "VFS: Unable to mount root fs",
        ),
        (
            "Kernel panic - not syncing: System is deadlocked on memory",
            Outcome.OUT_OF_MEMORY,
            "deadlocked on memory",
        ),
        (
            "Kernel panic - not syncing: Out of memory and no killable processes...",
            Outcome.OUT_OF_MEMORY,
            "no killable processes",
        ),
        (
            "Initramfs unpacking failed: write error\nKernel panic - not syncing: No working init found.",
            Outcome.OUT_OF_MEMORY,
            "does not fit",
        ),
        (
            "Out of memory: Killed process 1 (init)\nKernel panic - not syncing: Attempted to kill init!",
            Outcome.OUT_OF_MEMORY,
            "killed the agent",
        ),
        ("Kernel panic - not syncing: \n", Outcome.PANICKED, "a panic without a reason"),
    ],
)
def test_the_console_tells(console: str, expected: Outcome, reason: str) -> None:
    judgement = outcome.judge(RESET, LIMITS, console=console, messages="", ready=False)
    assert judgement.outcome is expected
    assert reason in judgement.reason


@pytest.mark.parametrize(
    ("ending", "console", "ready", "expected", "reason"),
    [
        (
            WatchResult(StopReason.INSTRUCTIONS),
            "",
            True,
            Outcome.HUNG,
            "^2 s of guest time went by before the steps were done$",
        ),
        (
            WatchResult(StopReason.SECONDS),
            "",
            True,
            Outcome.HUNG,
            "30 s of CPU time went by before the steps",
        ),
        (WatchResult(StopReason.SECONDS), "Linux version", False, Outcome.HUNG, "before the agent was ready"),
        (
            WatchResult(StopReason.SECONDS),
            " \r\n",
            False,
            Outcome.NOT_A_KERNEL,
            "nothing came on its console",
        ),
        (WatchResult(StopReason.OUTPUT), "spam", True, Outcome.HUNG, "wrote more than 512 MiB"),
        (WatchResult(StopReason.PAUSED), "", True, Outcome.PANICKED, "said nothing"),
        (RESET, "", False, Outcome.NOT_A_KERNEL, "triple fault"),
        (RESET, "", True, Outcome.PANICKED, "reset without a panic"),
        (OFF, "", True, Outcome.WORKLOAD_FAILED, "switched off before the steps were done"),
        (OFF, "", False, Outcome.NO_INIT, "switched itself off"),
        (WatchResult(StopReason.EXITED, 1), "", True, Outcome.MACHINE_FAILED, "status 1: qemu: broken"),
        (WatchResult(StopReason.EXITED, -11), "", True, Outcome.MACHINE_FAILED, "SIGSEGV: qemu: broken"),
    ],
)
def test_how_it_ended_tells_where_the_console_does_not(
    ending: WatchResult, console: str, ready: bool, expected: Outcome, reason: str
) -> None:
    judgement = outcome.judge(
        ending, LIMITS, console=console, messages="a warning\nqemu: broken", ready=ready
    )
    assert judgement.outcome is expected
    assert re.search(reason, judgement.reason)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("qemu: Error loading uncompressed kernel without PVH ELF Note", Outcome.NOT_A_KERNEL),
        ("qemu: could not load kernel '/x': Permission denied", Outcome.NOT_A_KERNEL),
        ("qemu: initrd is too large, cannot support.", Outcome.OUT_OF_MEMORY),
        ("qemu: cannot set up guest memory 'ram': Cannot allocate memory", Outcome.MACHINE_FAILED),
        ("", Outcome.MACHINE_FAILED),
    ],
)
def test_what_qemu_says_where_it_does_not_start(message: str, expected: Outcome) -> None:
    assert outcome.judge_unstarted(1, message).outcome is expected


def test_a_process_killed_for_want_of_memory() -> None:
    console = "[9.1] Out of memory: Killed process 111 (eat) total-vm:62660kB\r\n"
    killed = outcome.processes_killed(1, console)
    assert killed is not None
    assert killed.outcome is Outcome.OUT_OF_MEMORY
    assert killed.reason.endswith("Out of memory: Killed process 111 (eat) total-vm:62660kB")


def test_a_workloads_own_control_group_may_be_out_of_memory() -> None:
    assert outcome.processes_killed(1, "Memory cgroup out of memory: Killed process 111 (eat)") is None
    assert outcome.processes_killed(0, "") is None


def test_an_agent_that_gives_up() -> None:
    assert outcome.agent_failed("no plan", "").outcome is Outcome.MACHINE_FAILED
    full = outcome.agent_failed("no plan", "Initramfs unpacking failed: write error")
    assert full.outcome is Outcome.OUT_OF_MEMORY


def test_damaged_frames_are_the_guests_failure() -> None:
    """A machine's failure would be put down to this host, and the trial tried again for ever."""
    damaged = outcome.frames_damaged("it begins with b'rubb'", ready=True)
    assert damaged.outcome is Outcome.WORKLOAD_FAILED
    assert "port 0xe9" in damaged.reason
    assert outcome.frames_damaged("", ready=False).outcome is Outcome.NO_INIT


@pytest.mark.parametrize(
    ("results", "finished", "problem"),
    [
        ([(0, "push"), (1, "run")], True, ""),
        ([(0, "push")], False, ""),
        ([(0, "push")], True, "1 results of 2 steps"),
        ([(0, "push"), (0, "push")], False, "of step 1 (run) belongs, there is one of 0 (push)"),
        ([(0, "push"), (1, "read")], False, "there is one of 1 (read)"),
        ([(0, "push"), (1, "run"), (2, "run")], True, "more results (3) than there are steps (2)"),
    ],
)
def test_results_belong_to_the_steps(results: list[tuple[int, str]], finished: bool, problem: str) -> None:
    given = tuple(StepResult(step=step, do=do) for step, do in results)
    said = outcome.misreport(("push", "run"), outcome.ProcessFrames(results=given, finished=finished))
    assert problem in said
    assert bool(problem) == bool(said)


def test_a_hostile_console_is_searched_in_no_time() -> None:
    """A search that tried each line with all that follow would take hours."""
    console = "Out of memory: Killed process 7 (x)\n" * 100_000
    judgement = outcome.judge(OFF, LIMITS, console=console, messages="", ready=True)
    assert judgement.outcome is Outcome.WORKLOAD_FAILED


def test_of_a_long_console_the_end_is_kept() -> None:
    console = "".join(f"line {n}\r\n" for n in range(1000))
    assert outcome.console_end(console).splitlines() == [f"line {n}" for n in range(800, 1000)]


# The headline of a dead guest: the first line in which its kernel said that something is wrong.

OOPS = (
    "[    0.812346] BUG: kernel NULL pointer dereference, address: 0000000000000008\r\n"
    "[    0.812360] #PF: supervisor read access in kernel mode\r\n"
    "[    0.812371] Oops: 0000 [#1] PREEMPT SMP NOPTI\r\n"
)
HUNG = "then 2 s of guest time went by before the steps were done"


@pytest.mark.parametrize(
    ("console", "ending", "headline"),
    [
        (
            OOPS,
            WatchResult(StopReason.INSTRUCTIONS),
            f"BUG: kernel NULL pointer dereference, address: 0000000000000008, at 812 ms; {HUNG}",
        ),
        (
            OOPS + "[    1.900001] Kernel panic - not syncing: Fatal exception\r\n",
            RESET,
            "BUG: kernel NULL pointer dereference, address: 0000000000000008, at 812 ms; then Fatal "
            "exception, at 1,900 ms",
        ),
        (
            "[    0.9] sysrq: Trigger a crash\n"
            "[   12.345678] Kernel panic - not syncing: sysrq triggered crash\n",
            RESET,
            "sysrq triggered crash, at 12,346 ms",
        ),
        (
            "[    0.0021][    T1] ------------[ cut here ]------------\n"
            "[    0.0023][    T1] kernel BUG at mm/slub.c:305!\n",
            WatchResult(StopReason.INSTRUCTIONS),
            f"kernel BUG at mm/slub.c:305!, at 2.3 ms; {HUNG}",
        ),
        (
            "WARNING: CPU: 1 PID: 12 at kernel/x.c:3 f+0x1/0x2\n",
            WatchResult(StopReason.INSTRUCTIONS),
            f"WARNING: CPU: 1 PID: 12 at kernel/x.c:3 f+0x1/0x2; {HUNG}",
        ),
        (
            OOPS,
            RESET,
            "BUG: kernel NULL pointer dereference, address: 0000000000000008, at 812 ms; then the machine "
            "was reset without a panic on the console (a triple fault?)",
        ),
    ],
    ids=["a hang after an oops", "a panic after an oops", "a panic", "BUG()", "no time", "a triple fault"],
)
def test_the_headline_is_the_kernels_first_complaint(
    console: str, ending: WatchResult, headline: str
) -> None:
    judgement = outcome.judge(ending, LIMITS, console=console, messages="", ready=True)
    assert judgement.reason == headline


def test_a_complaint_is_no_headline_of_this_hosts_failure() -> None:
    ended = WatchResult(StopReason.EXITED, -9)
    judgement = outcome.judge(ended, LIMITS, console=OOPS, messages="", ready=True)
    assert judgement.outcome is Outcome.MACHINE_FAILED
    assert judgement.reason.startswith("QEMU was ended by SIGKILL")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("[    1.234567] BUG: KCSAN: data-race in a / b", "BUG: KCSAN: data-race in a / b"),
        (
            "[ 12.0][   T12] WARNING: CPU: 1 PID: 12 at mm/x.c:3 f+0x1/0x2",
            "WARNING: CPU: 1 PID: 12 at mm/x.c:3 f+0x1/0x2",
        ),
        (
            "watchdog: BUG: soft lockup - CPU#1 stuck for 22s!",
            "watchdog: BUG: soft lockup - CPU#1 stuck for 22s!",
        ),
        (
            "rcu: INFO: rcu_sched self-detected stall on CPU",
            "rcu: INFO: rcu_sched self-detected stall on CPU",
        ),
        (
            "INFO: task x:12 blocked for more than 120 seconds.",
            "INFO: task x:12 blocked for more than 120 seconds.",
        ),
        (
            "[    1.5] general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP",
            "general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP",
        ),
        ("[    0.5] no warning here, and no bug", ""),
    ],
)
def test_complaints_are_told_without_their_time(line: str, complaint: str) -> None:
    said = [message.text for message in outcome.complaints_in(f"{line}\n{line}\n")]
    assert said == ([complaint] * 2 if complaint else [])


@pytest.mark.timeout(20)
def test_a_hostile_line_is_looked_at_in_no_time() -> None:
    """Its start says what it is."""
    assert list(outcome.complaints_in("rcu: " * 1_000_000)) == []
