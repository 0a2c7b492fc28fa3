"""Saving a stopped guest, and loading one: QEMU's migration, with the RAM left where it is.

With `x-ignore-shared` the stream holds the CPU and the devices only, some 300 KiB. The RAM is a shared file
when it is saved; when it is loaded, the same file is mapped privately (share=off), which costs nothing and
reads no page that the guest does not touch.
"""

import os
import select
import threading

from ktrial.machines.errors import CannotLoadState, CannotSaveState, QemuGone, QemuRefused
from ktrial.machines.exact import saved_clock
from ktrial.machines.qemu.process import QemuProcess
from ktrial.machines.qemu.qmp import Qmp

_CAPABILITIES = [{"capability": name, "state": True} for name in ("x-ignore-shared", "events")]
_PATIENCE = 60.0


def save(process: QemuProcess, time_stamp: int, machine: str) -> bytes:
    """The state of a guest that is stopped, without its RAM.

    `time_stamp` is what the agent read before the stop. Raises CannotSaveState.
    """
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
    except (QemuRefused, QemuGone, TimeoutError) as error:
        problem = error.facts.get("problem", error.message) if isinstance(error, QemuRefused) else str(error)
        raise CannotSaveState(machine=machine, problem=problem) from None
    return saved_clock.canonical(state, time_stamp, machine)


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
