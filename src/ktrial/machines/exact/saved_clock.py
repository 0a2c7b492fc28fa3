"""The virtual clock in a saved state, made independent of host time.

Stopping a guest at the snapshot point leaves its clock at one of two values. QEMU marks the only CPU as
stopped before the machine as a whole has stopped. In between the main loop sees nothing but idle CPUs, and
moves the clock on to the next timer (`icount_start_warp_timer`), as it does for every idle guest with
`sleep=off`. Whether the CPU thread has by then added the instructions that it executed last to the clock
depends on how the host scheduled the two threads: some milliseconds of guest time, on a busy host in every
fifth snapshot (measured with QEMU 7.2).

The guest's RAM and registers are the same either way, so the clock is set to a time that only the guest's
own instructions decide: what the agent read from the time-stamp counter just before, and a fixed distance.
The host's own clocks, which the state holds as well and which count nothing here, become zero.

Layout, fixed by QEMU's promise that states can move to later versions (vmstate_timers and
icount_vmstate_timers, big-endian): ticks offset, unused, clock offset (8 bytes each); the subsection's name
and version; icount bias and icount (8 bytes each). The virtual clock is the sum of the last two.
"""

import struct

from ktrial.machines.errors import CannotSaveState

AHEAD_NS = 50_000_000
"""From the agent's reading to the snapshot's clock: more than QEMU's jump to the next timer tick (10 ms)."""

_SECTION = b"\x05timer\x00\x00\x00\x00\x00\x00\x00\x02"
_SUBSECTION = b"\x05\x0ctimer/icount\x00\x00\x00\x01"
_HOST_CLOCKS = struct.Struct(">qqq")
_COUNTS = struct.Struct(">qq")


def canonical(state: bytes, time_stamp: int, machine: str) -> bytes:
    """The state with its virtual clock AHEAD_NS after `time_stamp` (ns), and the host's clocks at zero.

    Raises CannotSaveState where the state is not laid out as expected, or its clock is later than that.
    """
    start, counts = _places(state, machine)
    bias, count = _COUNTS.unpack_from(state, counts)
    wanted = time_stamp + AHEAD_NS
    if not time_stamp <= bias + count <= wanted:
        problem = f"its clock stands at {bias + count} ns, the agent's at {time_stamp} ns"
        raise CannotSaveState(machine=machine, problem=problem)
    made = bytearray(state)
    _HOST_CLOCKS.pack_into(made, start, 0, 0, 0)
    _COUNTS.pack_into(made, counts, wanted - count, count)
    return bytes(made)


def _places(state: bytes, machine: str) -> tuple[int, int]:
    """Where the host's clocks and the counts stand."""
    together = state.find(_SUBSECTION)
    start = together - _HOST_CLOCKS.size
    counts = together + len(_SUBSECTION)
    unique = together >= 0 and state.find(_SUBSECTION, counts) < 0
    if not unique or not state[:start].endswith(_SECTION) or len(state) < counts + _COUNTS.size:
        raise CannotSaveState(machine=machine, problem="its clock is not where QEMU keeps it")
    return start, counts
