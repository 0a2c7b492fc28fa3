"""A QEMU that serves many trials counts what a fresh one counts; it ends with a bad trial, or with ktrial."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.golden_guests import GOLDEN, Guests
from tests.support.guests import UPTIME, boot_of, qemu_children, work
from tests.support.places import ROOT

from ktrial.experiment.resources import default_resources
from ktrial.file_digests import digest_of_file
from ktrial.kernels import kernel_registry
from ktrial.machines import guest_programs
from ktrial.machines.exact import ExactMachine
from ktrial.machines.qemu import kept, program
from ktrial.model.kernel import Kernel
from ktrial.model.workload import CountedBy
from ktrial.target import Read, Run, Step, StepResult, Write
from ktrial.target.errors import GuestEnded

pytestmark = [
    pytest.mark.guest,
    pytest.mark.skipif(
        not kept.can_be_kept(program.find("exact").version, 1, b""),
        reason="crates/rewind knows QEMU 7.2 only",
    ),
]

RANDOM = Read(path="/proc/sys/kernel/random/uuid")
STEPS: tuple[Step, ...] = (UPTIME, work("pipe", "--operations", "50"), Read(path="/proc/vmstat"), RANDOM)
OTHER: tuple[Step, ...] = (
    Write(path="/proc/sys/vm/swappiness", value="7"),
    work("fork", "--operations", "20"),
)
CRASH = Write(path="/proc/sysrq-trigger", value="c")
PATIENCE = 300.0


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return kernel_registry.add("debian:6.1")


@pytest.fixture
def machine(snapshots: Path, monkeypatch: pytest.MonkeyPatch) -> ExactMachine:
    monkeypatch.setattr(kept, "CHECKED_SHARE", 0.0)
    return ExactMachine(cache=snapshots, keeps=True)


def counted(
    machine: ExactMachine, kernel: Kernel, *steps: Step, calls: bool = False
) -> tuple[StepResult, ...]:
    with machine.instrumented(boot_of(kernel)) as target:
        return target.counted(steps, target.kallsyms(), calls=calls)


def qemus() -> set[int]:
    return set(qemu_children(os.getpid()))


@pytest.mark.parametrize(
    "calls", [pytest.param(False, marks=pytest.mark.nightly, id="plain"), pytest.param(True, id="calls")]
)
def test_each_trial_of_one_qemu_counts_what_a_fresh_one_counts(
    machine: ExactMachine, kernel: Kernel, snapshots: Path, *, calls: bool
) -> None:
    alone = ExactMachine(cache=snapshots, keeps=False)
    before = qemus()
    expected = [counted(alone, kernel, *steps, calls=calls) for steps in (STEPS, OTHER)]
    assert qemus() <= before, "those of other machines may end meanwhile"
    assert counted(machine, kernel, *STEPS, calls=calls) == expected[0]
    (waiting,) = qemus() - before
    assert [counted(machine, kernel, *steps, calls=calls) for steps in (OTHER, STEPS, STEPS)] == [
        *expected[1:],
        *2 * [expected[0]],
    ]
    assert qemus() - before == {waiting}


def test_a_thread_has_one_qemu_at_a_time_which_many_trials_do_not_make_larger(
    machine: ExactMachine, kernel: Kernel
) -> None:
    before = qemus()
    counted(machine, kernel, *STEPS)
    (waiting,) = qemus() - before
    first = own_memory(waiting)
    for _ in range(5):
        counted(machine, kernel, *STEPS)
    assert qemus() - before == {waiting}
    assert own_memory(waiting) < 1.5 * first
    counted(machine, kernel, UPTIME, calls=True)
    (other,) = qemus() - before
    assert other != waiting


def test_the_identity_of_a_machine_that_keeps_qemus_names_what_rewinds_them(
    machine: ExactMachine, kernel: Kernel, snapshots: Path
) -> None:
    alone = ExactMachine(cache=snapshots, keeps=False)
    with machine.instrumented(boot_of(kernel)) as target, alone.instrumented(boot_of(kernel)) as other:
        executed, without = target.identity.executed, other.identity.executed
    assert executed == without | {"rewind": digest_of_file(guest_programs.rewind())}


def own_memory(pid: int) -> int:
    """kB that no other process has."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("Private_", "Swap:")))


def test_a_trial_that_ends_badly_ends_its_qemu_and_is_told_as_by_a_fresh_one(
    machine: ExactMachine, kernel: Kernel, snapshots: Path
) -> None:
    before = qemus()
    reference = counted(machine, kernel, *STEPS)
    with pytest.raises(GuestEnded) as ended:
        counted(machine, kernel, UPTIME, CRASH)
    assert qemus() == before
    with pytest.raises(GuestEnded) as expected:
        counted(ExactMachine(cache=snapshots, keeps=False), kernel, UPTIME, CRASH)
    assert (ended.value.outcome, ended.value.reason) == (expected.value.outcome, expected.value.reason)
    assert counted(machine, kernel, *STEPS) == reference


def test_some_trials_are_done_once_more_in_a_fresh_qemu_and_must_agree(
    machine: ExactMachine, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "CHECKED_SHARE", 1.0)
    reference = counted(machine, kernel, *STEPS)
    assert counted(machine, kernel, *STEPS) == reference
    with machine.instrumented(boot_of(kernel)) as target:
        more = (UPTIME, Run(argv=("/ktrial/work", "pipe", "--operations", "51", "--clock", "tsc")))
        other = target.counted(more, target.kallsyms())
        with pytest.raises(kept.KeptDiffers, match=r"counted [0-9,]+, a fresh one [0-9,]+"):
            target.check_same(other, reference[:2])


PROGRAM = """
import sys, time
from pathlib import Path
from ktrial.kernels import kernel_registry
from ktrial.machines.exact import ExactMachine
from tests.support.golden_guests import GOLDEN, Guests
from tests.support.guests import UPTIME, boot_of
machine = ExactMachine(cache=Path(sys.argv[1]), keeps=True)
with machine.instrumented(boot_of(kernel_registry.add("debian:6.1"))) as target:
    target.counted((UPTIME,))
print("done", flush=True)
time.sleep(600)
"""


def test_a_qemu_that_waits_dies_with_ktrial(kernel: Kernel, snapshots: Path) -> None:
    command = (sys.executable, "-c", PROGRAM, str(snapshots))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout
        assert process.stdout.readline() == "done\n"
        (waiting,) = qemu_children(process.pid)
        process.kill()
        process.wait()
        until = time.monotonic() + PATIENCE
        while Path(f"/proc/{waiting}/exe").exists():
            assert time.monotonic() < until, "it is still there"
            time.sleep(0.02)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in GOLDEN if GOLDEN[name].count is CountedBy.PLUGIN])
def test_each_trial_of_a_golden_guest_is_what_a_fresh_one_is(
    name: str, snapshots: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "CHECKED_SHARE", 1.0)
    machine = ExactMachine(cache=snapshots, count=CountedBy.PLUGIN, keeps=True)
    machine.check()
    GOLDEN[name].does(Guests(machine, default_resources(), tmp_path))


@pytest.mark.nightly
@pytest.mark.parametrize("calls", [False, True], ids=["plain", "calls"])
@pytest.mark.parametrize("name", ["debian:6.1", "debian:6.12"])
def test_250_trials_in_any_order_are_what_fresh_ones_are(
    name: str, machine: ExactMachine, snapshots: Path, *, calls: bool
) -> None:
    kernel = kernel_registry.add(name)
    alone = ExactMachine(cache=snapshots, keeps=False)
    names = (
        "context-switch",
        "epoll",
        "fork",
        "mmap",
        "open",
        "pipe",
        "socketpair",
        "syscall",
        "thread",
        "vfork",
    )
    programs = [(work(name, "--operations", str(count)),) for name in names for count in (20, 33)]
    expected = [counted(alone, kernel, *steps, calls=calls) for steps in programs]
    drawn = random.Random(name).choices(range(len(programs)), k=250)
    for number in drawn:
        counts = counted(machine, kernel, *programs[number], calls=calls)
        assert counts == expected[number], programs[number]
