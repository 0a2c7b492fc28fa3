"""The machine exact-parallel without a guest: what is refused, seeds, clocks and counts."""

import struct
from pathlib import Path

import pytest
from tests.support.scripted import a_kernel

from ktrial import machines
from ktrial.machines.errors import (
    CannotLoadState,
    CannotSaveState,
    MachineError,
    MachineUsageError,
    PluginCountsUnreadable,
)
from ktrial.machines.exact_parallel import (
    CPU_MODEL,
    ParallelMachine,
    check_cpus,
    check_qemu,
    counts_in,
    machine_arguments,
    plugin_arguments,
    seed_of,
    with_counts,
)
from ktrial.machines.qemu.program import Qemu
from ktrial.machines.qemu.snapshot import AHEAD_NS, clock_in, clocked
from ktrial.model.machine import Boot
from ktrial.model.parallel import MemoryModel, Topology
from ktrial.target import Read, Run, StepResult

HEAD = b"\x05timer\x00\x00\x00\x00\x00\x00\x00\x02"
COUNTED = (
    '{"regions": 3, "instructions": 900, "operations": 4, "sum": 800, "middle": [190, 210], '
    '"cpus": [5, 6], "idle": [7, 8], "clock": 9, "rounds": 10, "fingerprint": "00ff"}\n'
)


def qemu(*version: int) -> Qemu:
    major, minor, micro = version
    return Qemu(Path("/usr/bin/qemu"), (major, minor, micro), f"{major}.{minor}.{micro}", "d", "f")


def test_it_is_found_by_its_name() -> None:
    assert isinstance(machines.find("exact-parallel"), ParallelMachine)


@pytest.mark.parametrize("version", [(7, 2, 22), (10, 0, 2), (10, 0, 13)])
def test_a_qemu_whose_inside_is_known(version: tuple[int, int, int]) -> None:
    check_qemu(qemu(*version), "exact-parallel")


@pytest.mark.parametrize("version", [(7, 1, 0), (8, 2, 2), (9, 0, 1), (10, 1, 0), (11, 0, 0)])
def test_another_qemu_is_refused_and_the_ones_that_do_are_named(version: tuple[int, int, int]) -> None:
    with pytest.raises(MachineError, match=r"supports 7\.2 and 10\.0: ") as raised:
        check_qemu(qemu(*version), "exact-parallel")
    assert "KTRIAL_QEMU" in raised.value.advice


def test_more_cpus_than_the_machine_has() -> None:
    with pytest.raises(MachineUsageError, match="at most 64 CPUs: 65"):
        check_cpus(Boot(kernel=a_kernel(), cpus=65), "exact-parallel")


@pytest.mark.parametrize(
    ("config", "cpus", "most"),
    [("CONFIG_SMP=y\nCONFIG_NR_CPUS=2\n", 3, 2), ("# CONFIG_SMP is not set\n", 2, 1)],
)
def test_more_cpus_than_the_kernel_was_built_for(tmp_path: Path, config: str, cpus: int, most: int) -> None:
    (tmp_path / "config").write_text(config)
    kernel = a_kernel().model_copy(update={"config": tmp_path / "config"})
    check_cpus(Boot(kernel=kernel, cpus=most), "exact-parallel")
    with pytest.raises(MachineUsageError, match=f"{cpus} CPUs are asked for.*for {most} "):
        check_cpus(Boot(kernel=kernel, cpus=cpus), "exact-parallel")


def test_cpus_take_turns_in_one_thread_and_instructions_are_not_counted_by_qemu() -> None:
    arguments = machine_arguments(Boot(kernel=a_kernel(), cpus=4), CPU_MODEL)
    assert arguments[arguments.index("-accel") + 1] == "tcg,thread=single"
    assert arguments[arguments.index("-smp") + 1] == "4"
    assert "-icount" not in arguments


def test_a_topology_is_the_guests() -> None:
    boot = Boot(kernel=a_kernel(), cpus=4, topology=Topology(sockets=2, threads=2))
    arguments = machine_arguments(boot, CPU_MODEL)
    assert arguments[arguments.index("-smp") + 1] == "4,sockets=2,cores=1,threads=2"
    with pytest.raises(MachineUsageError, match="are 4 CPUs, and 3 are asked for"):
        check_cpus(boot.model_copy(update={"cpus": 3}), "exact-parallel")


def test_a_memory_model_is_the_plugins() -> None:
    boot = Boot(kernel=a_kernel(), memory_model=MemoryModel.COHERENCE)
    assert plugin_arguments(boot, Path("/p.so"), seed=3, clock=7)[1].endswith(",transfer=40")


def test_the_plugin_is_told_quantum_seed_clock_and_limit() -> None:
    boot = Boot(kernel=a_kernel(), quantum_ns=500, limit_instructions=10**9)
    option, arguments = plugin_arguments(boot, Path("/p.so"), seed=3, clock=7, out="/o")
    assert option == "-plugin"
    assert arguments == "/p.so,quantum=500,seed=3,clock=7,limit=1000000000,out=/o"


def test_the_seed_is_that_of_the_perturbation() -> None:
    steps = (
        Read(path="/x"),
        Run(argv=("a",)),
        Run(argv=("b",), layout_seed=5),
        Run(argv=("c",), layout_seed=6),
    )
    assert seed_of(steps) == 5
    assert seed_of(steps[:2]) == 0


def state(head: bytes = HEAD, tail: bytes = b"~after") -> bytes:
    return b"before" + head + struct.pack(">qqq", 1, 2, 3) + tail


def test_a_state_carries_the_guests_clock() -> None:
    result = clocked(state(), 1_000, "exact-parallel")
    assert result == b"before" + HEAD + struct.pack(">qqq", 0, 0, 1_000 + AHEAD_NS) + b"~after"
    assert clock_in(result, "exact-parallel") == 1_000 + AHEAD_NS


@pytest.mark.parametrize(
    "damaged", [b"", state(b""), state() * 2, state(tail=b"\x05\x0ctimer/icount\x00\x00\x00\x01")]
)
def test_a_state_without_a_place_for_it_is_refused(damaged: bytes) -> None:
    with pytest.raises(CannotSaveState, match="not where QEMU keeps it"):
        clocked(damaged, 1_000, "exact-parallel")
    with pytest.raises(CannotLoadState, match="not where QEMU keeps it"):
        clock_in(damaged, "exact-parallel")


def test_each_program_has_its_own_counts(tmp_path: Path) -> None:
    (tmp_path / "out").write_text(COUNTED * 2)
    counts = counts_in(tmp_path / "out", "exact-parallel")
    results = tuple(StepResult(step=number, do=do) for number, do in enumerate(("run", "read", "run")))
    counted = with_counts(results, counts)
    assert [entry.parallel is not None for entry in counted] == [True, False, True]
    assert counts[0].median == 200
    assert with_counts(results[:1], counts) == results[:1]


def test_counts_that_cannot_be_read_are_told_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "out").write_text(COUNTED + "{\n")
    with pytest.raises(PluginCountsUnreadable, match="line 2"):
        counts_in(tmp_path / "out", "exact-parallel")
