"""Guests that end early, each in its own way: outcome, reason, console, and the results before."""

import os
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.guests import (
    ENDLESS,
    LITTLE_MEMORY_MIB,
    UPTIME,
    boot_of,
    boot_with_programs,
    ending,
    host_program,
    perform,
    versions,
)

from ktrial.kernels import kernel_registry
from ktrial.kernels.image import boot_image
from ktrial.kernels.modules import resolve
from ktrial.machines.errors import HostHoldsUp, MachineError
from ktrial.machines.exact import ExactMachine
from ktrial.machines.qemu import watchdog
from ktrial.machines.qemu.watchdog import cpu_use
from ktrial.model.kernel import Kernel
from ktrial.model.trial import Outcome
from ktrial.target import Run, Write
from ktrial.target.errors import GuestEnded

pytestmark = pytest.mark.guest

CRASH = Write(path="/proc/sysrq-trigger", value="c")
REBOOT = Write(path="/proc/sysrq-trigger", value="b")
A_BOOT = 900_000_000
"""Instructions in which a kernel starts its first program. The guest's clock chip tells whole seconds."""


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return kernel_registry.add("debian:6.1")


@pytest.fixture(scope="module")
def machine(snapshots: Path) -> ExactMachine:
    return ExactMachine(cache=snapshots)


@pytest.fixture
def soon_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a guest hangs is told by its own time, however much of the host's CPU it gets."""
    monkeypatch.setattr(watchdog, "FIRST_LOOK_SECONDS", 1.0)
    monkeypatch.setattr(watchdog, "QUESTION_SECONDS", 1.0)


def check(ended: GuestEnded, outcome: Outcome, reason: str, results: int) -> str:
    """Compare, and return the console."""
    assert ended.outcome == outcome.value, ended.message
    assert re.search(reason, ended.reason), ended.reason
    done = ended.results
    assert isinstance(done, tuple)
    assert len(done) == results
    return ended.console


@pytest.mark.parametrize("name", versions("debian:5.10", "debian:6.1", "debian:7.2"))
def test_a_panic(name: str, machine: ExactMachine) -> None:
    ended = ending(machine, boot_of(kernel_registry.add(name)), UPTIME, CRASH, UPTIME)
    console = check(ended, Outcome.PANICKED, "sysrq triggered crash", 1)
    assert "Kernel panic - not syncing: sysrq triggered crash" in console
    assert len(console.splitlines()) <= 200


@pytest.mark.nightly  # tests/recorded has one for each change
@pytest.mark.parametrize("name", versions("debian:5.10", "debian:6.1", "debian:7.2"))
def test_a_panic_at_boot_is_told_with_the_whole_console(name: str, machine: ExactMachine) -> None:
    """No init: the kernel's own words differ between versions. It boots once more, talkative, to tell why."""
    ended = ending(machine, boot_of(kernel_registry.add(name), parameters=("rdinit=/nope",)), UPTIME)
    console = check(ended, Outcome.NO_INIT, "root fs|No working init", 0)
    assert len(console.splitlines()) > 100


@pytest.mark.nightly
def test_an_init_that_ends(kernel: Kernel, machine: ExactMachine) -> None:
    files, path = host_program("true")
    boot = boot_of(kernel, files=files, parameters=(f"rdinit={path}",))
    check(ending(machine, boot, UPTIME), Outcome.PANICKED, "Attempted to kill init", 0)


def test_a_reset(kernel: Kernel, machine: ExactMachine) -> None:
    check(ending(machine, boot_of(kernel), UPTIME, REBOOT), Outcome.PANICKED, "was reset without a panic", 1)


def test_a_program_that_never_ends_is_held_to_the_instructions(kernel: Kernel, machine: ExactMachine) -> None:
    boot = boot_of(kernel, limit_instructions=1_000_000_000)
    ended = ending(machine, boot, UPTIME, ENDLESS, UPTIME)
    check(ended, Outcome.HUNG, "^1 s of guest time went by", 3)
    again = ending(machine, boot, UPTIME, ENDLESS, UPTIME)
    assert vars(again) == vars(ended)


def test_a_programs_own_limit_is_no_hang(kernel: Kernel, machine: ExactMachine) -> None:
    limited = ENDLESS.model_copy(update={"limit_ns": 300_000_000})
    (result,) = perform(machine, boot_of(kernel), limited)
    assert result.timed_out


def test_a_guest_that_takes_too_long_on_the_host(kernel: Kernel, machine: ExactMachine) -> None:
    boot = boot_of(kernel)
    machine.prepare(boot, print)
    hurried = boot.model_copy(update={"limit_seconds": 2.0})
    ended = ending(machine, hurried, UPTIME, ENDLESS)
    assert ended.outcome == Outcome.HUNG.value
    assert ended.reason.startswith("2 s of CPU time")


class Held:
    """Stops the QEMU that this process has started, and lets it go on after a while each time, or never."""

    def __init__(self, *seconds: float, after: float = 0.0) -> None:
        """`after`: once it has used so many seconds of CPU."""
        self._seconds, self._after = seconds, after
        self.stopped: list[int] = []
        self._thread = threading.Thread(target=self._hold, daemon=True)
        self._thread.start()

    def _hold(self) -> None:
        while not (holders := [pid for pid in _qemus() if _used(pid) >= self._after]):
            time.sleep(0.01)
        for seconds in self._seconds:
            os.kill(holders[0], signal.SIGSTOP)
            self.stopped.append(holders[0])
            time.sleep(seconds)
            try:
                os.kill(holders[0], signal.SIGCONT)
            except ProcessLookupError:
                return  # ktrial has ended it
            time.sleep(0.2)


def _used(process: int) -> float:
    used = cpu_use(process)
    return used.seconds if used else 0.0


def _qemus() -> list[int]:
    """Children of this process that run QEMU, and have used a little CPU."""
    own = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    threads = [Path(f"/proc/{os.getpid()}/task").glob("*/children")]
    every = {*own, *(pid for each in threads for path in each for pid in path.read_text().split())}
    return [int(pid) for pid in every if Path(f"/proc/{pid}/comm").read_text().startswith("qemu")]


@pytest.mark.nightly
def test_a_qemu_that_is_stopped_for_longer_than_its_limit_says_the_same(
    kernel: Kernel, machine: ExactMachine
) -> None:
    """It may use 3 s of CPU, and is stopped twice for 2 s of the clock: some 3 CPU-seconds."""
    boot = boot_of(kernel)
    machine.prepare(boot, print)
    hurried = boot.model_copy(update={"limit_seconds": 3.0})
    limited = ENDLESS.model_copy(update={"limit_ns": 300_000_000})
    undisturbed = perform(machine, hurried, limited)
    held = Held(2.0, 2.0)
    (result,) = perform(machine, hurried, limited)
    assert len(held.stopped) == 2
    assert [result.wall_ns] == [each.wall_ns for each in undisturbed]


@pytest.mark.nightly
def test_a_qemu_that_stays_stopped_is_this_hosts_doing(kernel: Kernel, machine: ExactMachine) -> None:
    boot = boot_of(kernel)
    machine.prepare(boot, print)
    hurried = boot.model_copy(update={"limit_seconds": 2.0})
    held = Held(600.0, after=1.0)
    with pytest.raises(HostHoldsUp, match=r"states of its threads: .*T"):
        perform(machine, hurried, ENDLESS)
    assert held.stopped


@pytest.mark.nightly
@pytest.mark.usefixtures("soon_looked_at")
def test_a_boot_that_hangs(kernel: Kernel, machine: ExactMachine) -> None:
    """The first program is one that never ends, instead of the agent."""
    files, path = host_program("yes")
    boot = boot_of(
        kernel, files=files, limit_instructions=A_BOOT, parameters=(f"rdinit={path}", "console=tty0")
    )
    console = check(ending(machine, boot, UPTIME), Outcome.HUNG, "before the agent was ready", 0)
    assert "Linux version" in console or "as init process" in console


@pytest.mark.nightly
def test_a_workload_that_eats_all_memory(kernel: Kernel, machine: ExactMachine) -> None:
    boot = boot_with_programs(kernel, memory_mib=LITTLE_MEMORY_MIB)
    ended = ending(machine, boot, UPTIME, Run(argv=(host_program("tail")[1], "/dev/zero")), UPTIME)
    check(ended, Outcome.OUT_OF_MEMORY, r"Out of memory: Killed process \d+ \(tail\)", 3)


def test_a_guest_too_small_for_its_files(kernel: Kernel, machine: ExactMachine) -> None:
    ended = ending(machine, boot_of(kernel, memory_mib=80, initrd_padding=60 << 20), UPTIME)
    check(ended, Outcome.OUT_OF_MEMORY, "and the guest has 80 MiB", 0)


@pytest.mark.nightly
def test_files_that_do_not_fit_once_they_are_unpacked(kernel: Kernel, machine: ExactMachine) -> None:
    ended = ending(machine, boot_of(kernel, memory_mib=192, initrd_padding=90 << 20), UPTIME)
    check(ended, Outcome.OUT_OF_MEMORY, "memory", 0)


def garbled(image: Path) -> bytes:
    data = bytearray(image.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 4096] = bytes(4096)
    return bytes(data)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (lambda image: image.read_bytes()[:2_000_000], "cut short"),
        (lambda image: Path("/bin/true").read_bytes(), "QEMU refuses it: .*PVH ELF Note"),
        (garbled, "nothing came on its console|before anything came on the console"),
    ],
    ids=["truncated", "a program", "garbled"],
)
@pytest.mark.usefixtures("soon_looked_at")
def test_what_is_no_kernel(
    content: Callable[[Path], bytes], reason: str, kernel: Kernel, machine: ExactMachine, tmp_path: Path
) -> None:
    (tmp_path / "vmlinuz").write_bytes(content(kernel.image))
    # What the cache knows of the kernel tells a file that was cut; the others only QEMU can judge.
    known = boot_image(kernel.image) if reason == "cut short" else None
    other = kernel.model_copy(update={"image": tmp_path / "vmlinuz", "vmlinux": None, "boot_image": known})
    boot = boot_of(other, limit_instructions=A_BOOT)
    check(ending(machine, boot, UPTIME), Outcome.NOT_A_KERNEL, reason, 0)


def test_a_kernel_that_has_gone(kernel: Kernel, machine: ExactMachine, tmp_path: Path) -> None:
    gone = kernel.model_copy(update={"image": tmp_path / "vmlinuz", "vmlinux": None})
    with pytest.raises(MachineError, match="cannot be read: No such file"):
        machine.prepare(boot_of(gone), print)


@pytest.mark.nightly
def test_a_module_of_another_kernel(kernel: Kernel, machine: ExactMachine) -> None:
    other = resolve(kernel_registry.add("debian:6.12"), ["null_blk"])
    ended = ending(machine, boot_of(kernel, modules=other), UPTIME)
    check(ended, Outcome.REFUSED, "the kernel refused a module .*Exec format", 0)


def test_the_study_goes_on_after_each(kernel: Kernel, machine: ExactMachine) -> None:
    with machine.start(boot_of(kernel)) as target:
        before = target.perform((UPTIME,))
        with pytest.raises(GuestEnded):
            target.perform((CRASH,))
        assert target.perform((UPTIME,)) == before
