"""Which code a guest executes from its first instruction on, by what QEMU translates.

The plugin counts between marks, which programs make: it knows nothing of a boot. But QEMU translates a block
of the guest's code when the guest is about to execute it for the first time, and its trace event
`translate_block` tells where that block begins (accel/tcg/trace-events; QEMU's log, docs/devel/tracing.rst).
A boot of Linux 6.1 has 50,000 blocks: 4 MB of text, and no CPU time to speak of.
"""

import os
import re

from ktrial.machines.qemu.process import inherited_path

_EVENT = "translate_block"
_BLOCK = re.compile(rb"^translate_block \S+ pc:0x([0-9a-f]+),", re.MULTILINE)


def arguments(out: int) -> tuple[str, ...]:
    """QEMU's arguments, for a log in this open file, which it inherits."""
    return ("-trace", _EVENT, "-D", inherited_path(out))


def addresses(out: int) -> frozenset[int]:
    """Where blocks begin, in the guest's virtual addresses; none where this QEMU has no such event."""
    text = os.pread(out, os.fstat(out).st_size, 0)
    return frozenset(int(address, 16) for address in _BLOCK.findall(text))
