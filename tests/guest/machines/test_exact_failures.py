"""Guests that end early, each in its own way: outcome, reason, console, and the results before."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.exact_guests import ENDLESS, UPTIME, boot_of, ending, host_program, perform
from tests.support.kernel_versions import versions

from ktrial import kernels
from ktrial.kernels.image.image import boot_image
from ktrial.machines.errors import MachineError
from ktrial.machines.exact import ExactMachine
from ktrial.machines.qemu import watchdog
from ktrial.model.kernel import Kernel
from ktrial.model.trial import Outcome
from ktrial.target import Run, Write
from ktrial.target.errors import GuestEnded

pytestmark = pytest.mark.guest

CRASH = Write(path="/proc/sysrq-trigger", value="c")
REBOOT = Write(path="/proc/sysrq-trigger", value="b")


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return kernels.add("debian:6.1")


@pytest.fixture(scope="module")
def machine(snapshots: Path) -> ExactMachine:
    return ExactMachine(cache=snapshots)


@pytest.fixture
def soon_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a guest hangs is told by its own time, however much of the host's CPU it gets."""
    monkeypatch.setattr(watchdog, "FIRST_LOOK_SECONDS", 1.0)


def check(ended: GuestEnded, outcome: Outcome, reason: str, results: int) -> str:
    """Compare, and return the console."""
    assert ended.facts["outcome"] == outcome.value, ended.message
    assert re.search(reason, str(ended.facts["reason"])), ended.facts["reason"]
    done = ended.facts["results"]
    assert isinstance(done, tuple)
    assert len(done) == results
    return str(ended.facts["console"])


@pytest.mark.parametrize("name", versions("debian:5.10", "debian:6.1", "debian:7.2"))
def test_a_panic(name: str, machine: ExactMachine) -> None:
    ended = ending(machine, boot_of(kernels.add(name)), UPTIME, CRASH, UPTIME)
    console = check(ended, Outcome.PANICKED, "sysrq triggered crash", 1)
    assert "Kernel panic - not syncing: sysrq triggered crash" in console
    assert len(console.splitlines()) <= 200


@pytest.mark.parametrize("name", versions("debian:5.10", "debian:6.1", "debian:7.2"))
def test_a_panic_at_boot_is_told_with_the_whole_console(name: str, machine: ExactMachine) -> None:
    """No init: the kernel's own words differ between versions. It boots once more, talkative, to tell why."""
    ended = ending(machine, boot_of(kernels.add(name), parameters=("rdinit=/nope",)), UPTIME)
    console = check(ended, Outcome.NO_INIT, "root fs|No working init", 0)
    assert len(console.splitlines()) > 100


def test_an_init_that_ends(kernel: Kernel, machine: ExactMachine) -> None:
    files, path = host_program("true")
    boot = boot_of(kernel, files=files, parameters=(f"rdinit={path}",))
    check(ending(machine, boot, UPTIME), Outcome.PANICKED, "Attempted to kill init", 0)


def test_a_reset(kernel: Kernel, machine: ExactMachine) -> None:
    check(ending(machine, boot_of(kernel), UPTIME, REBOOT), Outcome.PANICKED, "was reset without a panic", 1)


def test_a_program_that_never_ends_is_held_to_the_instructions(kernel: Kernel, machine: ExactMachine) -> None:
    boot = boot_of(kernel, limit_instructions=1_000_000_000)
    ended = ending(machine, boot, UPTIME, ENDLESS, UPTIME)
    check(ended, Outcome.HUNG, "^1,000,000,000 guest instructions", 3)
    again = ending(machine, boot, UPTIME, ENDLESS, UPTIME)
    assert again.facts == ended.facts


def test_a_programs_own_limit_is_no_hang(kernel: Kernel, machine: ExactMachine) -> None:
    limited = ENDLESS.model_copy(update={"limit_ns": 300_000_000})
    (result,) = perform(machine, boot_of(kernel), limited)
    assert result.timed_out


def test_a_guest_that_takes_too_long_on_the_host(kernel: Kernel, machine: ExactMachine) -> None:
    boot = boot_of(kernel)
    machine.prepare(boot, print)
    hurried = boot.model_copy(update={"limit_seconds": 2.0})
    facts = ending(machine, hurried, UPTIME, ENDLESS).facts
    assert facts["outcome"] == Outcome.HUNG.value
    assert str(facts["reason"]).startswith("2 s of host time")


@pytest.mark.usefixtures("soon_looked_at")
def test_a_boot_that_hangs(kernel: Kernel, machine: ExactMachine) -> None:
    """The first program is one that never ends, instead of the agent."""
    files, path = host_program("yes")
    boot = boot_of(
        kernel, files=files, limit_instructions=2_000_000_000, parameters=(f"rdinit={path}", "console=tty0")
    )
    console = check(ending(machine, boot, UPTIME), Outcome.HUNG, "before the agent was ready", 0)
    assert "Linux version" in console or "as init process" in console


def test_a_workload_that_eats_all_memory(kernel: Kernel, machine: ExactMachine) -> None:
    files, path = host_program("tail")
    boot = boot_of(kernel, files=files)
    ended = ending(machine, boot, UPTIME, Run(argv=(path, "/dev/zero")), UPTIME)
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
    boot = boot_of(other, limit_instructions=2_000_000_000)
    check(ending(machine, boot, UPTIME), Outcome.NOT_A_KERNEL, reason, 0)


def test_a_kernel_that_has_gone(kernel: Kernel, machine: ExactMachine, tmp_path: Path) -> None:
    gone = kernel.model_copy(update={"image": tmp_path / "vmlinuz", "vmlinux": None})
    with pytest.raises(MachineError, match="cannot be read: No such file"):
        machine.prepare(boot_of(gone), print)


@pytest.mark.nightly
def test_a_module_of_another_kernel(kernel: Kernel, machine: ExactMachine) -> None:
    other = kernels.resolve(kernels.add("debian:6.12"), ["null_blk"])
    ended = ending(machine, boot_of(kernel, modules=other), UPTIME)
    check(ended, Outcome.REFUSED, "the kernel refused a module .*Exec format", 0)


def test_the_study_goes_on_after_each(kernel: Kernel, machine: ExactMachine) -> None:
    with machine.start(boot_of(kernel)) as target:
        before = target.perform((UPTIME,))
        with pytest.raises(GuestEnded):
            target.perform((CRASH,))
        assert target.perform((UPTIME,)) == before
