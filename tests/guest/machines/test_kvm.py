"""The machine `kvm` on real kernels: emulated where KVM is of no use, the same but for the time."""

import time
from collections.abc import Iterator

import pytest

from ktrial.kernels import kernel_registry
from ktrial.machines.errors import HostHoldsUp
from ktrial.machines.kvm import KvmMachine, RealTimeTarget
from ktrial.model.machine import Boot
from ktrial.model.workload import Mode
from ktrial.target import Read, Run, Write
from ktrial.target.errors import GuestEnded

pytestmark = pytest.mark.guest
KERNEL = "debian:6.12"


@pytest.fixture(scope="module")
def machine() -> KvmMachine:
    made = KvmMachine()
    made.check()
    return made


def boot(**settings: object) -> Boot:
    plain = {"kernel": kernel_registry.add(KERNEL), "settle_ns": 0, "allow_emulated_time": True}
    return Boot.model_validate(plain | settings)


@pytest.fixture
def target(machine: KvmMachine) -> Iterator[RealTimeTarget]:
    with machine.start(boot()) as started:
        yield started


@pytest.mark.nightly
def test_a_boot_does_its_steps_in_real_time(machine: KvmMachine, target: RealTimeTarget) -> None:
    start = time.monotonic()
    written, release, piped, worked = target.perform(
        (
            Write(path="/proc/sys/vm/swappiness", value="10"),
            Read(path="/proc/sys/kernel/osrelease"),
            Run(argv=("/ktrial/work", "pipe", "--clock", "monotonic")),
            Run(argv=("/ktrial/work", "syscall", "--clock", "monotonic")),
        )
    )
    assert written.after == "10"
    assert release.content.startswith("6.12")
    assert piped.exit == worked.exit == 0
    assert '"clock":"monotonic"' in worked.stdout
    assert worked.wall_ns < (time.monotonic() - start) * 1e9
    assert target.identity.mode is machine.mode
    assert machine.mode in {Mode.TIMED, Mode.EMULATED_TIME}
    assert "-icount" not in target.identity.arguments


@pytest.mark.nightly
def test_each_perform_is_a_boot_of_its_own(target: RealTimeTarget) -> None:
    boot_id = Read(path="/proc/sys/kernel/random/boot_id")
    assert target.perform((boot_id,))[0].content != target.perform((boot_id,))[0].content


def test_a_kernel_that_panics_is_an_outcome(machine: KvmMachine) -> None:
    # rdinit names a program that is not there, and there is no root device either.
    with machine.start(boot(parameters=("rdinit=/nowhere",))) as started, pytest.raises(GuestEnded) as caught:
        started.perform((Read(path="/proc/version"),))
    assert caught.value.outcome == "no-init"


def test_a_limit_in_host_time_ends_it(machine: KvmMachine) -> None:
    """Where the host is too busy to let it run that long, that is told of the host, and no guest has hung."""
    ended = pytest.raises((GuestEnded, HostHoldsUp))
    with machine.start(boot(limit_seconds=1.0)) as started, ended as caught:
        started.perform((Run(argv=("/ktrial/work", "nqueens", "--size", "16")),))
    if isinstance(caught.value, GuestEnded):
        assert caught.value.outcome in {"hung", "not-a-kernel"}
    else:
        assert caught.value.facts["states"]
