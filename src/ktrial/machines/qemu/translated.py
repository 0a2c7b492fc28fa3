"""Which code a boot executes, by what QEMU translates.

The plugin counts between marks, which programs make: it knows nothing of a boot. But QEMU translates a block
of the guest's code when the guest is about to execute it for the first time, and its trace event
`translate_block` tells where that block begins (accel/tcg/trace-events; QEMU's docs/devel/tracing.rst).
A boot of Linux 6.1 has 50,000 blocks: 4 MB of text, and no CPU time to speak of.
"""

import os
import re
from dataclasses import replace

from ktrial.machines.qemu.process import Children, inherited_path, memory_file
from ktrial.machines.qemu.snapshot import SnapshotSetup, booted

_EVENT = "translate_block"
_BLOCK = re.compile(rb"^translate_block \S+ pc:0x([0-9a-f]+),", re.MULTILINE)


def executed_in(setup: SnapshotSetup, children: Children) -> frozenset[int]:
    """Where blocks of code begin that one more boot executes until the guest is ready; virtual addresses.

    None where this QEMU has no such event. Raises MachineError or GuestEnded.
    """
    with memory_file("ktrial-translated") as out, memory_file("ktrial-ram") as ram:
        log = ("-trace", _EVENT, "-D", inherited_path(out))
        told = replace(setup, plugin=(*setup.plugin, *log), inherited=(*setup.inherited, out))
        with booted(told, children, ram, lambda _action: None):
            text = os.pread(out, os.fstat(out).st_size, 0)
    return frozenset(int(address, 16) for address in _BLOCK.findall(text))
