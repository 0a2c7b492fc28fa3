"""What workloads bring comes into real guests after their kernel's boot, whole, and the same each time."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.guests import boot_of, busy_cores, host_program

from ktrial.kernels import kernel_registry
from ktrial.machines.errors import CannotSaveState
from ktrial.machines.exact import ExactMachine
from ktrial.machines.exact_parallel import ParallelMachine
from ktrial.machines.qemu import snapshot
from ktrial.model.kernel import Kernel
from ktrial.model.machine import Boot, CarriedFile, FileSet
from ktrial.model.trial import Outcome
from ktrial.target import Run, StepResult
from ktrial.target.errors import GuestEnded
from ktrial.workloads.frozen_files import FrozenFiles

pytestmark = pytest.mark.guest

MANY = 4000
SHELL = host_program("sh")[1]


def shell(words: str) -> Run:
    return Run(argv=(SHELL, "-c", words), environment={"PATH": "/usr/bin:/bin"})


SUMS = shell("cd /data && find . -type f | sort | xargs sha256sum | sha256sum")
LARGE = shell("sha256sum </large")


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return kernel_registry.add("debian:6.1")


@pytest.fixture(scope="module")
def machine(snapshots: Path) -> ExactMachine:
    return ExactMachine(cache=snapshots)


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> FrozenFiles:
    return FrozenFiles(tmp_path_factory.mktemp("kept"))


@pytest.fixture
def boots(monkeypatch: pytest.MonkeyPatch) -> list[Boot]:
    """Every boot of a kernel, as it begins."""
    begun: list[Boot] = []
    switched_on = snapshot.switched_on

    def noted(setup: Any, *arguments: Any, **more: Any) -> Any:
        begun.append(setup.boot)
        return switched_on(setup, *arguments, **more)

    monkeypatch.setattr(snapshot, "switched_on", noted)
    return begun


def brought(frozen: FrozenFiles, name: str, *more: CarriedFile) -> FileSet:
    """A few programs, and more files."""
    programs = [
        file
        for each in ("sh", "sha256sum", "find", "sort", "xargs", "stat")
        for file in host_program(each)[0]
    ]
    files = tuple({file.guest: file for file in (*programs, *more)}.values())
    return frozen.of(f"workload {name}", name, lambda: files)


def waiting(kernel: Kernel, **changes: object) -> Boot:
    return boot_of(kernel, awaits_files=True, **changes)


def ran(
    machine: ExactMachine | ParallelMachine, boot: Boot, files: FileSet, *steps: Run
) -> tuple[StepResult, ...]:
    with machine.start(boot, files) as target:
        return target.perform(steps)


@pytest.mark.nightly  # some 20 seconds of CPU time
def test_thousands_of_files_and_a_large_one_arrive_whole(
    machine: ExactMachine, kernel: Kernel, frozen: FrozenFiles, tmp_path: Path
) -> None:
    tree, large = tmp_path / "tree", tmp_path / "large"
    large.write_bytes(os.urandom(1 << 20) * 100)
    tree.mkdir()
    sums, carried = [], []
    for number in range(MANY):
        path = tree / f"{number:04}"
        path.write_bytes(os.urandom(number % 700))
        guest = f"/data/{number % 7}/{number % 11}/{number:04}"
        carried.append(CarriedFile(host=path, guest=guest))
        sums.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  .{guest.removeprefix('/data')}\n")
    files = brought(frozen, "tree", *carried, CarriedFile(host=large, guest="/large"))
    tree_sum, large_sum = ran(machine, waiting(kernel), files, SUMS, LARGE)
    in_order = "".join(sorted(sums, key=lambda line: line[66:]))
    assert tree_sum.stdout.split()[0] == hashlib.sha256(in_order.encode()).hexdigest(), tree_sum
    assert large_sum.stdout.split()[0] == hashlib.sha256(large.read_bytes()).hexdigest(), large_sum


def test_two_workloads_start_from_one_boot_of_their_kernel(
    snapshots: Path, kernel: Kernel, frozen: FrozenFiles, boots: list[Boot], tmp_path: Path
) -> None:
    one = ExactMachine(cache=tmp_path / "snapshots")
    (tmp_path / "data").write_text("data")
    first = brought(frozen, "first")
    second = brought(frozen, "second", CarriedFile(host=tmp_path / "data", guest="/data/it"))
    steps = shell("sha256sum /data/*")
    assert ran(one, waiting(kernel), first, steps)[0].exit != 0
    assert ran(one, waiting(kernel), second, steps)[0].exit == 0
    assert len(boots) == 1


@pytest.mark.nightly
def test_the_numbers_are_the_same_in_a_new_process_and_on_a_busy_host(
    machine: ExactMachine, kernel: Kernel, frozen: FrozenFiles, tmp_path: Path
) -> None:
    files, boot, step = brought(frozen, "again"), waiting(kernel), shell(f"stat {SHELL}")
    with machine.instrumented(boot, files) as target:
        (before,) = target.counted((step,))
    with busy_cores(), ExactMachine(cache=tmp_path / "other").instrumented(boot, files) as target:
        (after,) = target.counted((step,))
    assert before.region
    assert before.region == after.region
    assert before.stdout == after.stdout
    assert "Modify: 1970-01-01 00:00:00" in before.stdout


def test_modes_links_and_directories_are_as_they_were_asked_for(
    machine: ExactMachine, kernel: Kernel, frozen: FrozenFiles, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("it\n")
    files = brought(
        frozen,
        "modes",
        CarriedFile(host=tmp_path / "secret", guest="/data/secret", mode=0o600),
        CarriedFile(host=tmp_path, guest="/data/closed", mode=0o711, directory=True),
        CarriedFile(host=tmp_path, guest="/data/to", link="../data/secret"),
    )
    shown = shell("stat -c '%n %a %F' /data/secret /data/closed /data/to; read x </data/to; echo $x")
    (result,) = ran(machine, waiting(kernel), files, shown)
    assert result.stdout.splitlines()[:3] == [
        "/data/secret 600 regular file",
        "/data/closed 711 directory",
        "/data/to 777 symbolic link",
    ]
    assert result.stdout.splitlines()[-1] == "it"


def test_a_link_takes_the_place_of_a_directory_that_was_booted_with(
    machine: ExactMachine, kernel: Kernel, frozen: FrozenFiles, tmp_path: Path
) -> None:
    (tmp_path / "old").write_text("old\n")
    (tmp_path / "new").write_text("new\n")
    boot = waiting(kernel, files=(CarriedFile(host=tmp_path / "old", guest="/place/old"),))
    link = CarriedFile(host=tmp_path, guest="/place", link="elsewhere")
    files = brought(frozen, "link", link, CarriedFile(host=tmp_path / "new", guest="/place/new"))
    shown = shell("cd /elsewhere; for each in *; do read x <$each; echo $each $x; done; stat -c %N /place")
    (result,) = ran(machine, boot, files, shown)
    assert result.stdout.splitlines() == ["new new", "old old", "'/place' -> 'elsewhere'"]


@pytest.mark.nightly  # some 8 seconds of CPU time
def test_files_that_do_not_fit_are_told(
    machine: ExactMachine, kernel: Kernel, frozen: FrozenFiles, tmp_path: Path
) -> None:
    (tmp_path / "large").write_bytes(bytes(150 << 20))
    files = brought(frozen, "large", CarriedFile(host=tmp_path / "large", guest="/large"))
    with pytest.raises(GuestEnded, match="no room for /large; give it more") as raised:
        ran(machine, waiting(kernel, memory_mib=256), files, LARGE)
    assert raised.value.outcome == Outcome.OUT_OF_MEMORY.value


@pytest.mark.nightly  # some 13 seconds of CPU time
def test_where_no_state_can_be_kept_all_of_it_is_one_boot(
    kernel: Kernel, frozen: FrozenFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(*_: object) -> bytes:
        raise CannotSaveState(machine="exact", problem="so says the test")

    monkeypatch.setattr(snapshot, "save", cannot)
    one = ExactMachine(cache=tmp_path / "none")
    (tmp_path / "data").write_text("data\n")
    files = brought(frozen, "plain", CarriedFile(host=tmp_path / "data", guest="/data/it"))
    with one.start(waiting(kernel), files) as target:
        (result,) = target.perform((shell("read x </data/it; echo $x"),))
        assert target.identity.plain_boot_reason == "so says the test"
    assert result.stdout == "data\n"


@pytest.mark.nightly  # some 11 seconds of CPU time
def test_several_cpus_are_given_files_as_well(kernel: Kernel, frozen: FrozenFiles, snapshots: Path) -> None:
    files, boot = brought(frozen, "parallel"), waiting(kernel, cpus=2)
    step = shell(f"stat -c %n {SHELL}")
    first, second = (ran(ParallelMachine(cache=snapshots), boot, files, step)[0] for _ in range(2))
    assert first.stdout == f"{SHELL}\n"
    assert first.parallel
    assert first.parallel == second.parallel
