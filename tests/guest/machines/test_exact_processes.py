"""QEMU never outlives ktrial, and a terminal's Ctrl-C never reaches it behind ktrial's back."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.guests import ENDLESS, boot_of, qemu_children, work
from tests.support.places import ROOT

from ktrial.kernels import kernel_registry
from ktrial.machines.errors import MachineStopped
from ktrial.machines.exact import ExactMachine
from ktrial.machines.qemu import snapshot, watchdog
from ktrial.machines.qemu.process import QemuProcess
from ktrial.machines.qemu.watchdog import Watcher
from ktrial.model.kernel import Kernel
from ktrial.model.trial import Outcome
from ktrial.target.errors import GuestEnded

pytestmark = pytest.mark.guest
PATIENCE = 300.0
"""Seconds; others may want the CPU, too."""

PROGRAM = """
import sys
from pathlib import Path
from ktrial.kernels import kernel_registry
from ktrial.machines.exact import ExactMachine
from tests.support.guests import ENDLESS, boot_of
with ExactMachine(cache=Path(sys.argv[1])).start(boot_of(kernel_registry.add("debian:6.1"))) as target:
    print("started", flush=True)
    target.perform((ENDLESS,))
"""


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return kernel_registry.add("debian:6.1")


@pytest.fixture
def running(snapshots: Path) -> Iterator[subprocess.Popen[str]]:
    """A ktrial of its own, in a process group of its own, whose guest runs for ever."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = (sys.executable, "-c", PROGRAM, str(snapshots))
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "started\n"
        wait_for(lambda: has_a_lasting_qemu(process.pid))
        yield process
        process.kill()


def has_a_lasting_qemu(parent: int) -> bool:
    """Whether it has one QEMU, and still the same a while later: one that asks for a version ends at once."""
    first = qemu_children(parent)
    time.sleep(1.0)
    return len(first) == 1 and qemu_children(parent) == first


def wait_for(holds: Callable[[], bool], seconds: float = PATIENCE) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_qemu_dies_with_ktrial(running: subprocess.Popen[str], number: signal.Signals) -> None:
    (qemu,) = qemu_children(running.pid)
    running.send_signal(number)
    assert running.wait(PATIENCE) != 0
    wait_for(lambda: not is_alive(qemu))


def test_a_terminals_signals_reach_ktrial_only(running: subprocess.Popen[str]) -> None:
    (qemu,) = qemu_children(running.pid)
    assert os.getpgid(qemu) != os.getpgid(running.pid)
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=PATIENCE)
    assert "KeyboardInterrupt" in said
    wait_for(lambda: not is_alive(qemu))


OwnQemus = Callable[[], list[int]]


@pytest.fixture
def own_qemus() -> OwnQemus:
    """This process's QEMUs, without those that machines of earlier tests still keep."""
    others = set(qemu_children(os.getpid()))
    return lambda: [pid for pid in qemu_children(os.getpid()) if pid not in others]


def test_a_machine_is_stopped_from_another_thread(
    kernel: Kernel, snapshots: Path, own_qemus: OwnQemus
) -> None:
    machine = ExactMachine(cache=snapshots)
    boot = boot_of(kernel)
    machine.prepare(boot, print)

    def stop() -> None:
        wait_for(lambda: len(own_qemus()) >= 1)
        machine.stop()

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(MachineStopped), machine.start(boot) as target:
        target.perform((ENDLESS,))
    thread.join()
    assert own_qemus() == []
    with pytest.raises(MachineStopped):
        machine.prepare(boot, print)


def test_qemu_killed_from_outside_is_a_failure_of_the_machine(
    kernel: Kernel, snapshots: Path, own_qemus: OwnQemus
) -> None:
    """As the host's out-of-memory killer does."""

    def kill() -> None:
        wait_for(lambda: len(own_qemus()) == 1)
        os.kill(own_qemus()[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    with ExactMachine(cache=snapshots).start(boot_of(kernel)) as target:
        thread.start()
        with pytest.raises(GuestEnded, match="QEMU was ended by SIGKILL") as caught:
            target.perform((ENDLESS,))
    thread.join()
    assert caught.value.outcome == Outcome.MACHINE_FAILED.value


MOMENTS: dict[str, tuple[object, str]] = {
    "its monitor is made ready": (QemuProcess, "negotiate"),
    "its state is loaded": (snapshot, "load"),
    "its clock is read": (watchdog, "guest_time"),
    "it is let go": (Watcher, "resume"),
    "it is watched": (Watcher, "watch"),
}
"""What is about to happen when it is over."""


@pytest.fixture(params=MOMENTS)
def just_before(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[], None]], None]:
    """Has something done just before that."""
    owner, name = MOMENTS[request.param]
    goes_on = getattr(owner, name)

    def arrange(action: Callable[[], None]) -> None:
        def acting(*given: object) -> object:
            action()
            return goes_on(*given)

        monkeypatch.setattr(owner, name, acting)

    return arrange


def test_a_machine_is_stopped_at_any_moment(
    kernel: Kernel, snapshots: Path, just_before: Callable[[Callable[[], None]], None], own_qemus: OwnQemus
) -> None:
    machine = ExactMachine(cache=snapshots)
    with machine.start(boot_of(kernel)) as target:
        just_before(machine.stop)
        with pytest.raises(MachineStopped):
            target.perform((ENDLESS,))
    assert own_qemus() == []


def test_qemu_is_killed_at_any_moment(
    kernel: Kernel, snapshots: Path, just_before: Callable[[Callable[[], None]], None], own_qemus: OwnQemus
) -> None:
    """Above all, no second guest is started where the first was killed."""

    def kill() -> None:
        wait_for(lambda: len(own_qemus()) == 1)
        os.kill(own_qemus()[0], signal.SIGKILL)

    with ExactMachine(cache=snapshots).start(boot_of(kernel)) as target:
        just_before(kill)
        with pytest.raises(GuestEnded, match="QEMU was ended by SIGKILL") as caught:
            target.perform((ENDLESS,))
    assert caught.value.outcome == Outcome.MACHINE_FAILED.value


def open_files() -> Counter[str]:
    """What this process's descriptors lead to."""
    with os.scandir("/proc/self/fd") as descriptors:
        return Counter(str(Path(descriptor.path).readlink()) for descriptor in descriptors)


def test_nothing_is_left_behind(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_qemus: OwnQemus
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    before = open_files()
    machine = ExactMachine(cache=tmp_path / "cache")
    with machine.start(boot_of(kernel)) as target:
        target.perform((work("syscall"),))
    assert list((tmp_path / "temporary").iterdir()) == []
    del machine, target  # root's machine keeps the snapshot's RAM in memory
    assert open_files() - before == Counter(), "what an earlier test left open may have gone; nothing is new"
    assert own_qemus() == []
