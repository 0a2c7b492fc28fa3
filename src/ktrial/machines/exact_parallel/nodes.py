"""NUMA nodes, told to the guest by an ACPI table (SRAT), as QEMU's `-numa` would.

QEMU's own option wants a memory of its own for each node, and a snapshot's RAM is one file. The table says to
which node a CPU and a range of addresses belong; what a kernel makes of it is the same.
ACPI specification 6.5, 5.2.16: System Resource Affinity Table.
"""

import struct
from hashlib import sha256
from pathlib import Path

from ktrial.installation import cache_directory
from ktrial.model.machine import Boot
from ktrial.model.parallel import Topology

_BELOW_4G_MIB = 3072
_FITS_BELOW_4G_MIB = 3584
"""The machine `pc` puts RAM below 3.5 GiB in one piece; of more it puts 3 GiB there, the rest from 4 GiB on
(hw/i386/pc_piix.c, pc_init1)."""
_FROM_4G_MIB = 4096
_OF_CPU, _OF_MEMORY = (0, 16), (1, 40)
"""Type and length of an entry."""
_ENABLED = 1
_HEAD = struct.pack("<I8x", 1)
_PLACE = "acpi"


def node_arguments(boot: Boot) -> tuple[str, ...]:
    """QEMU's arguments that give the guest its nodes; none where there are none.

    The table is kept below ktrial's cache, in a file that is called by its content.
    """
    if not (boot.topology and boot.topology.nodes_mib):
        return ()
    table = affinity(boot.topology)
    path = cache_directory() / _PLACE / f"srat-{sha256(table).hexdigest()[:16]}"
    _keep(path, table)
    return ("-acpitable", f"sig=SRAT,rev=3,oem_id=KTRIAL,oem_table_id=KTRIAL,data={path}")


def affinity(topology: Topology) -> bytes:
    """The table's bytes behind its header: each CPU's node, and each range of RAM's."""
    each = topology.cpus // len(topology.nodes_mib)
    cpus = b"".join(_cpu(_apic_id(topology, cpu), cpu // each) for cpu in range(topology.cpus))
    return _HEAD + cpus + b"".join(_memory(*one) for one in ranges(topology.nodes_mib))


def ranges(nodes_mib: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Node, first address and size in MiB of each range of RAM, in the order of their addresses."""
    below = sum(nodes_mib) if sum(nodes_mib) < _FITS_BELOW_4G_MIB else _BELOW_4G_MIB
    pieces, start = [], 0
    for node, size in enumerate(nodes_mib):
        end = start + size
        if start < below:
            pieces.append((node, start, min(end, below) - start))
        if end > below:
            first = max(start, below)
            pieces.append((node, first - below + _FROM_4G_MIB, end - first))
        start = end
    return pieces


def _apic_id(topology: Topology, cpu: int) -> int:
    """As QEMU has it: threads, cores and sockets have bits of their own (include/hw/i386/topology.h)."""
    core, thread = divmod(cpu, topology.threads)
    socket, core = divmod(core, topology.cores)
    of_threads, of_cores = (topology.threads - 1).bit_length(), (topology.cores - 1).bit_length()
    return (socket << (of_threads + of_cores)) | (core << of_threads) | thread


def _cpu(apic_id: int, node: int) -> bytes:
    return struct.pack("<BBBBIBBBBI", *_OF_CPU, node, apic_id, _ENABLED, 0, 0, 0, 0, 0)


def _memory(node: int, start_mib: int, size_mib: int) -> bytes:
    return struct.pack("<BBIHQQIIQ", *_OF_MEMORY, node, 0, start_mib << 20, size_mib << 20, 0, _ENABLED, 0)


def _keep(path: Path, table: bytes) -> None:
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partly = path.with_suffix(f".{id(table)}.part")
    partly.write_bytes(table)
    partly.replace(path)
