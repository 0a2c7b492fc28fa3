"""Saving a stopped guest, and loading one: QEMU's migration, with the RAM left where it is.

With `x-ignore-shared` the stream holds the CPU and the devices only, some 300 KiB. The RAM is a shared file
when it is saved; when it is loaded, the same file is mapped privately (share=off), which costs nothing and
reads no page that the guest does not touch.

The virtual clock in a saved state is made independent of host time. Stopping a guest at the snapshot point
leaves its clock at one of two values. QEMU marks the only CPU as stopped before the machine as a whole has
stopped. In between the main loop sees nothing but idle CPUs, and moves the clock on to the next timer
(`icount_start_warp_timer`), as it does for every idle guest with `sleep=off`. Whether the CPU thread has by
then added the instructions that it executed last to the clock depends on how the host scheduled the two
threads: some milliseconds of guest time, on a busy host in every fifth snapshot (measured with QEMU 7.2).

The guest's RAM and registers are the same either way, so the clock is set to a time that only the guest's own
instructions decide: what the agent read from the time-stamp counter just before, and a fixed distance. The
host's own clocks, which the state holds as well and which count nothing here, become zero.

Layout, fixed by QEMU's promise that states can move to later versions (vmstate_timers and
icount_vmstate_timers, big-endian): ticks offset, unused, clock offset (8 bytes each); the subsection's name
and version; icount bias and icount (8 bytes each). The virtual clock is the sum of the last two.
"""

import os
import select
import struct
import threading

from ktrial.machines.errors import CannotLoadState, CannotSaveState, QemuGone, QemuRefused
from ktrial.machines.qemu.process import QemuProcess
from ktrial.machines.qemu.qmp import Qmp

_CAPABILITIES = [{"capability": name, "state": True} for name in ("x-ignore-shared", "events")]
_PATIENCE = 60.0


def save(process: QemuProcess, machine: str) -> bytes:
    """The state of a guest that is stopped, without its RAM, as QEMU has it. Raises CannotSaveState."""
    try:
        process.qmp.execute("migrate-set-capabilities", capabilities=_CAPABILITIES)
        reading, writing = os.pipe()
        try:
            process.qmp.execute("getfd", (writing,), fdname="ktrial-state")
        finally:
            os.close(writing)
        process.qmp.execute("migrate", uri="fd:ktrial-state")
        with os.fdopen(reading, "rb") as stream:
            state = _read_all(stream.fileno(), process.pidfd)
        _wait_for_migration(process.qmp)
        return state
    except (QemuRefused, QemuGone, TimeoutError) as error:
        problem = error.facts.get("problem", error.message) if isinstance(error, QemuRefused) else str(error)
        raise CannotSaveState(machine=machine, problem=problem) from None


class Stream:
    """A saved state on its way into a QEMU that inherits `reading`."""

    def __init__(self, state: bytes) -> None:
        self.reading, self._writing = os.pipe()
        self._state = state
        self._thread = threading.Thread(target=self._feed, daemon=True)

    def start(self) -> None:
        """To be called once QEMU has inherited its end: ours is closed, so that its end is noticed."""
        os.close(self.reading)
        self._thread.start()

    def join(self) -> None:
        """Wait until all is read, or QEMU has ended."""
        self._thread.join()

    def _feed(self) -> None:
        rest = memoryview(self._state)
        try:
            while rest:
                rest = rest[os.write(self._writing, rest) :]
        except BrokenPipeError:
            return  # QEMU has ended; who waits for its answer learns that
        finally:
            os.close(self._writing)


def load(process: QemuProcess, stream_descriptor: int, machine: str) -> None:
    """Load the state that comes in on the inherited descriptor. Raises CannotLoadState."""
    try:
        process.qmp.execute("migrate-set-capabilities", capabilities=_CAPABILITIES)
        # A guest that has moved announces itself on its networks, five times within two seconds of host time.
        # Each time the CPU would wait for the main loop, which lockstep.so keeps waiting for the CPU.
        process.qmp.execute("migrate-set-parameters", announce_rounds=0)
        process.qmp.execute("migrate-incoming", uri=f"fd:{stream_descriptor}")
        _wait_for_migration(process.qmp)
    except (QemuRefused, QemuGone) as error:
        process.check_stopped()
        raise CannotLoadState(machine=machine, problem=process.said() or error.message) from None


def _wait_for_migration(qmp: Qmp) -> None:
    while True:
        while qmp.events:
            event = qmp.events.popleft()
            status = event.get("data", {}).get("status") if event["event"] == "MIGRATION" else None
            if status == "completed":
                return
            if status == "failed":
                reason = qmp.execute("query-migrate").get("error-desc", "QEMU does not say why")
                raise QemuRefused(machine="exact", command="migrate", problem=reason)
        qmp.receive("the migration")


def _read_all(reading: int, pidfd: int) -> bytes:
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([reading, pidfd], [], [], _PATIENCE)
        if not ready:
            raise TimeoutError(f"QEMU wrote nothing for {_PATIENCE:.0f} s")
        part = os.read(reading, 1 << 20) if reading in ready else b""
        if not part:
            return b"".join(parts)
        parts.append(part)


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


def clocked(state: bytes, time_stamp: int, machine: str) -> bytes:
    """The state of a guest without `-icount`, with its clock AHEAD_NS after `time_stamp` (ns).

    It stands where QEMU keeps the host's own clock, which counts nothing there. Raises CannotSaveState.
    """
    made = bytearray(state)
    _HOST_CLOCKS.pack_into(made, _clock_place(state, machine), 0, 0, time_stamp + AHEAD_NS)
    return bytes(made)


def clock_in(state: bytes, machine: str) -> int:
    """The clock that `clocked` put there, in nanoseconds. Raises CannotLoadState."""
    try:
        *_, clock = _HOST_CLOCKS.unpack_from(state, _clock_place(state, machine))
    except CannotSaveState as error:
        raise CannotLoadState(machine=machine, problem=str(error.facts["problem"])) from None
    return int(clock)


def _clock_place(state: bytes, machine: str) -> int:
    """Where the host's clocks stand in a state without a count of instructions."""
    start = state.find(_SECTION) + len(_SECTION)
    unique = start >= len(_SECTION) and state.find(_SECTION, start) < 0
    if not unique or _SUBSECTION in state or len(state) < start + _HOST_CLOCKS.size:
        raise CannotSaveState(machine=machine, problem="its clock is not where QEMU keeps it")
    return start


def _places(state: bytes, machine: str) -> tuple[int, int]:
    """Where the host's clocks and the counts stand."""
    together = state.find(_SUBSECTION)
    start = together - _HOST_CLOCKS.size
    counts = together + len(_SUBSECTION)
    unique = together >= 0 and state.find(_SUBSECTION, counts) < 0
    if not unique or not state[:start].endswith(_SECTION) or len(state) < counts + _COUNTS.size:
        raise CannotSaveState(machine=machine, problem="its clock is not where QEMU keeps it")
    return start, counts
