"""NUMA nodes of the machine `exact-parallel`: which node a CPU and an address belong to."""

import struct
from pathlib import Path

import pytest
from tests.support.scripted import a_kernel

from ktrial.machines.errors import MachineUsageError
from ktrial.machines.exact_parallel import affinity, check_cpus, node_arguments, ranges
from ktrial.model.machine import Boot
from ktrial.model.parallel import Topology

SIX = Topology(sockets=2, cores=3, nodes_mib=(256, 256))


def entries(table: bytes) -> list[bytes]:
    tables, remainder = [], table[12:]
    while remainder:
        tables.append(remainder[: remainder[1]])
        remainder = remainder[remainder[1] :]
    return tables


def test_each_cpu_is_told_by_the_number_that_qemu_gives_it() -> None:
    cpus = [entry for entry in entries(affinity(SIX)) if entry[0] == 0]
    assert [(entry[3], entry[2]) for entry in cpus] == [(0, 0), (1, 0), (2, 0), (4, 1), (5, 1), (6, 1)]


def test_each_range_of_memory_is_told_with_its_node() -> None:
    memory = [struct.unpack_from("<xxIHQQ", entry) for entry in entries(affinity(SIX)) if entry[0] == 1]
    assert [(node, start, size) for node, _, start, size in memory] == [
        (0, 0, 256 << 20),
        (1, 256 << 20, 256 << 20),
    ]


def test_memory_above_the_hole_below_4_gib_goes_on_at_4_gib() -> None:
    assert ranges((2048, 2048)) == [(0, 0, 2048), (1, 2048, 1024), (1, 4096, 1024)]
    assert ranges((1024, 1024)) == [(0, 0, 1024), (1, 1024, 1024)]


def test_qemu_reads_the_table_from_a_file_called_by_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path))
    option, value = node_arguments(Boot(kernel=a_kernel(), cpus=6, topology=SIX))
    assert option == "-acpitable"
    assert Path(value.partition("data=")[2]).read_bytes() == affinity(SIX)
    assert not node_arguments(Boot(kernel=a_kernel(), cpus=6, topology=Topology(cores=6)))


@pytest.mark.parametrize(
    ("cpus", "nodes", "message"),
    [
        (4, (256, 128), "384 MiB together, and memory is 512 MiB"),
        (4, (256, 128, 128), "4 CPUs cannot be shared out evenly among 3 nodes"),
    ],
)
def test_nodes_that_cannot_be_are_named(cpus: int, nodes: tuple[int, ...], message: str) -> None:
    boot = Boot(kernel=a_kernel(), cpus=cpus, topology=Topology(cores=cpus, nodes_mib=nodes))
    with pytest.raises(MachineUsageError, match=message):
        check_cpus(boot, "exact-parallel")
