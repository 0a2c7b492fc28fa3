"""The exact machine on real kernels: the same numbers to the last digit, whatever the host does meanwhile."""

import json
from pathlib import Path

import pytest
from tests.support.guests import (
    COUNTERS,
    UPTIME,
    boot_of,
    boot_with_programs,
    busy_cores,
    host_program,
    perform,
    work,
    wrong_pair_flags,
)
from tests.support.runs_of_tests import by_night

from ktrial.file_digests import digest_of_file
from ktrial.kernels import kernel_registry
from ktrial.kernels.modules import resolve
from ktrial.kernels.symbols import parse_symbols
from ktrial.machines import exact, guest_programs
from ktrial.machines.errors import CannotSaveState, HostProblem
from ktrial.machines.exact import OLDEST_FOR_CPUS, ExactMachine
from ktrial.machines.qemu import program, snapshot
from ktrial.machines.qemu.process import QemuProcess
from ktrial.model.kernel import Kernel
from ktrial.model.machine import CarriedFile
from ktrial.model.workload import CountedBy, Mode
from ktrial.target import Collect, Push, Read, Run, Step, StepResult, Write

pytestmark = pytest.mark.guest

STEPS = (
    UPTIME,
    work("syscall", "--operations", "200"),
    work("fork", "--operations", "20"),
    work("pipe", "--operations", "50"),
    Read(path="/proc/interrupts"),
    Read(path="/proc/meminfo"),
    Read(path="/proc/sys/kernel/random/uuid"),
)


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return kernel_registry.add("debian:6.1")


@pytest.fixture(scope="module")
def machine(snapshots: Path) -> ExactMachine:
    return ExactMachine(cache=snapshots)


@pytest.fixture(scope="module")
def reference(machine: ExactMachine, kernel: Kernel) -> tuple[StepResult, ...]:
    return perform(machine, boot_of(kernel), *STEPS)


def test_a_boot_tells_which_code_it_executes(machine: ExactMachine, kernel: Kernel) -> None:
    first, *again = (machine.executed_in_boot(boot_of(kernel)) for _ in range(by_night(2, 1)))
    assert all(boot == first for boot in again)
    with machine.instrumented(boot_of(kernel)) as target:
        symbols = parse_symbols(target.kallsyms())
    addresses = {symbol.name: symbol.address for symbol in symbols}
    looked_at = ("start_kernel", "kernel_execve", "panic", "do_coredump")
    assert [addresses[name] in first for name in looked_at] == [True, True, False, False]


def test_the_workloads_ran(reference: tuple[StepResult, ...]) -> None:
    reports = [json.loads(result.stdout) for result in reference[1:4]]
    assert [report["workload"] for report in reports] == ["syscall", "fork", "pipe"]
    assert 100 < reports[0]["metrics"][0]["median"] < 1000
    assert reference[2].watched["/proc/vmstat"]["pgfault"][0] > 20


def test_two_trials_from_one_snapshot_are_the_same(
    machine: ExactMachine, kernel: Kernel, reference: tuple[StepResult, ...]
) -> None:
    with machine.start(boot_of(kernel)) as target:
        assert target.perform(STEPS) == reference
        assert target.perform(STEPS) == reference


@pytest.mark.nightly  # some 19 seconds of CPU time
def test_another_snapshot_made_and_used_with_all_cores_busy_gives_the_same(
    kernel: Kernel, tmp_path: Path, reference: tuple[StepResult, ...]
) -> None:
    machine, said = ExactMachine(cache=tmp_path), list[str]()
    with busy_cores():
        machine.prepare(boot_of(kernel), said.append)
        assert said == ["booting", "saving the snapshot"]
        assert perform(machine, boot_of(kernel), *STEPS) == reference
    machine.prepare(boot_of(kernel), said.append)
    assert len(said) == 2, "there is a snapshot, and nothing to be said"


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["debian:5.10", "debian:6.12", "debian:7.2"])
def test_other_kernels_repeat_themselves_too(name: str, machine: ExactMachine, tmp_path: Path) -> None:
    boot = boot_of(kernel_registry.add(name))
    first = perform(machine, boot, *STEPS)
    with busy_cores():
        assert perform(ExactMachine(cache=tmp_path), boot, *STEPS) == first


@pytest.mark.nightly
def test_a_bzimage_repeats_itself_too(kernel: Kernel, machine: ExactMachine, tmp_path: Path) -> None:
    """It is booted where no ELF image was found in it."""
    boot = boot_of(kernel.model_copy(update={"vmlinux": None, "boot_image": None}))
    first = perform(machine, boot, UPTIME, STEPS[1])
    assert first[1].exit == 0
    assert perform(ExactMachine(cache=tmp_path), boot, UPTIME, STEPS[1]) == first


@pytest.mark.nightly
def test_without_snapshots_each_trial_is_booted_and_the_same(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_process: QemuProcess, machine: str) -> bytes:
        raise CannotSaveState(machine=machine, problem="a device is not migratable")

    monkeypatch.setattr(snapshot, "save", refused)
    machine = ExactMachine(cache=tmp_path)
    with machine.start(boot_of(kernel)) as target:
        first = target.perform(STEPS)
        assert target.identity.plain_boot_reason == "a device is not migratable"
        assert target.identity.snapshot == ""
        assert target.perform(STEPS) == first


@pytest.mark.nightly
def test_a_snapshot_that_disappears_is_said(kernel: Kernel, tmp_path: Path) -> None:
    machine = ExactMachine(cache=tmp_path)
    with machine.start(boot_of(kernel)) as target:
        with_snapshot = target.perform((STEPS[1],))
        (tmp_path / target.identity.snapshot / "ram").unlink()
        plainly = target.perform((STEPS[1],))
        assert "gone from the cache" in target.identity.plain_boot_reason
    assert plainly[0].exit == with_snapshot[0].exit == 0


def test_trials_do_not_touch_the_snapshot(machine: ExactMachine, kernel: Kernel) -> None:
    write = Write(path="/proc/sys/kernel/hostname", value="changed")
    (changed,) = perform(machine, boot_of(kernel), write)
    (before,) = perform(machine, boot_of(kernel), Read(path="/proc/sys/kernel/hostname"))
    assert (changed.failure, changed.after) == (None, "changed")
    assert before.content.strip() == changed.before == "(none)"


def test_settings_of_the_boot_arrive(kernel: Kernel, machine: ExactMachine, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("carried along\n")
    notes = CarriedFile(host=tmp_path / "notes", guest="/etc/notes", mode=0o600)
    boot = boot_of(kernel, parameters=("ktrial.test=7",), memory_mib=320, files=(notes,))
    command_line, memory, carried = perform(
        machine, boot, Read(path="/proc/cmdline"), Read(path="/proc/meminfo"), Read(path="/etc/notes")
    )
    assert command_line.content.split()[-1] == "ktrial.test=7"
    assert 250_000 < int(memory.content.split()[1]) < 320 * 1024
    assert carried.content == "carried along\n"


def test_what_a_machine_boots_may_not_change_while_it_is_in_use(
    kernel: Kernel, machine: ExactMachine, tmp_path: Path
) -> None:
    (tmp_path / "notes").write_text("carried along\n")
    boot = boot_of(kernel, files=(CarriedFile(host=tmp_path / "notes", guest="/etc/notes"),))
    (before,) = perform(machine, boot, Read(path="/etc/notes"))
    assert before.content == "carried along\n"
    (tmp_path / "notes").write_text("damaged\n")
    with pytest.raises(HostProblem, match=rf"in use: initial RAM disk \({tmp_path}/notes\)"):
        perform(machine, boot, Read(path="/etc/notes"))


def test_modules_are_loaded_before_the_snapshot(kernel: Kernel, machine: ExactMachine) -> None:
    boot = boot_of(kernel, modules=resolve(kernel, ["null_blk"]))
    (loaded,) = perform(machine, boot, Read(path="/proc/modules"))
    assert loaded.content.startswith("null_blk ")


def test_a_program_of_the_host_runs_with_its_libraries(kernel: Kernel, machine: ExactMachine) -> None:
    boot, path = boot_with_programs(kernel), host_program("sort")[1]
    push = Push(path="/tmp/lines", base64="YgphCg==")
    _, sort, collect = perform(
        machine, boot, push, Run(argv=(path, "-o", "/tmp/sorted", "/tmp/lines")), Collect(path="/tmp/sorted")
    )
    assert (sort.exit, sort.stderr) == (0, "")
    assert collect.content == "YQpiCg=="


def test_identity_names_all_that_can_change_a_result(kernel: Kernel, machine: ExactMachine) -> None:
    with machine.start(boot_of(kernel)) as target:
        identity = target.identity
    assert identity.qemu == program.find().build
    assert identity.mode is Mode.EXACT_PLUGIN
    assert identity.cpu_model.startswith("max,family=15,model=107,stepping=1,+fsrm")
    assert "-icount" in identity.arguments
    assert "nokaslr" in identity.command_line
    assert len(identity.agent_digest) == len(identity.snapshot) == 64
    programs = guest_programs.directory()
    assert kernel.boot_image
    assert identity.executed["image"] == kernel.boot_image.digest
    assert identity.executed["workloads"] == digest_of_file(programs / guest_programs.WORK)
    assert identity.executed["lockstep"] == digest_of_file(programs / guest_programs.LOCKSTEP)
    assert len(identity.executed["initial RAM disk"]) == 64
    assert identity.seed == 1


def test_flags_behind_an_exchange_of_a_pair_are_the_processors(
    kernel: Kernel, machine: ExactMachine, tmp_path: Path
) -> None:
    """QEMU 7.2 has an address in them; `lockstep.so` mends that."""
    with machine.start(boot_of(kernel)) as target:
        assert target.identity.flags_reason == ""
        assert wrong_pair_flags(target, tmp_path) == 0


@pytest.mark.parametrize("count", CountedBy)
def test_flags_that_cannot_be_mended_are_told_with_each_trial(
    count: CountedBy, kernel: Kernel, snapshots: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact, "flags_problem", lambda _qemu: "the flags are wrong")
    with ExactMachine(cache=snapshots, count=count).start(boot_of(kernel)) as target:
        assert target.identity.flags_reason == "the flags are wrong"


def test_more_cpus_are_refused_where_qemu_would_hang(kernel: Kernel, machine: ExactMachine) -> None:
    boot = boot_of(kernel, cpus=2)
    if program.find().version[:2] < OLDEST_FOR_CPUS:
        with pytest.raises(HostProblem, match=r"10\.0 or later"):
            machine.prepare(boot, print)
    else:
        (stat,) = perform(machine, boot, Read(path="/proc/stat"))
        assert "\ncpu1 " in stat.content


def test_a_large_report_and_many_steps(kernel: Kernel, machine: ExactMachine) -> None:
    large: tuple[Step, ...] = (
        Push(path="/tmp/large", base64="A" * (4 << 20)),
        Collect(path="/tmp/large"),
    )
    steps = large + (UPTIME,) * 200
    results = perform(machine, boot_of(kernel), *steps)
    assert [result.step for result in results] == list(range(202))
    assert results[1].content == "A" * (4 << 20)


@pytest.mark.nightly
def test_no_room_for_a_snapshot(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_source: int, _target: int) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ktrial.machines.qemu.snapshot_cache.copy_sparse", full)
    with pytest.raises(HostProblem, match="No space left on device"):
        ExactMachine(cache=tmp_path).prepare(boot_of(kernel), print)
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


def test_counters_are_watched(reference: tuple[StepResult, ...]) -> None:
    assert set(reference[1].watched) == set(COUNTERS)
