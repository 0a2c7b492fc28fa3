"""Starting a guest of QEMU's, and the ways in which it does not even start."""

import os

from ktrial.machines.errors import QemuGone
from ktrial.machines.qemu.process import QemuProcess
from ktrial.model.boot import Boot

MOMENT = 2.0
"""Seconds in which a QEMU whose monitor has closed is expected to be gone."""


class Unstarted(Exception):
    """QEMU ended before the guest's first instruction."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status
        self.said = said


class TooSmall(Exception):
    """The guest's memory cannot hold kernel and initial RAM disk: QEMU would lay one over the other."""

    def __init__(self, needed: int, memory: int) -> None:
        super().__init__(f"{needed} of {memory} bytes")
        self.needed = needed
        self.memory = memory


def check_memory(boot: Boot, initrd: int) -> None:
    """Raise TooSmall where kernel and initial RAM disk (an open file) do not fit."""
    known = boot.kernel.boot_image
    needed = (known.memory_end if known else 0) + os.fstat(initrd).st_size
    memory = boot.memory_mib << 20
    if needed > memory:
        raise TooSmall(needed, memory)


def negotiate(process: QemuProcess) -> None:
    """Make the process's monitor ready. Raises Unstarted where QEMU ended instead."""
    try:
        process.negotiate()
    except QemuGone:
        process.check_stopped()
        # The connection closes a little before the process ends: its own status tells more than our signal's.
        process.ended_within(MOMENT)
        process.kill()
        raise Unstarted(process.wait(), process.said()) from None
