"""A QEMU that serves many trials of one kernel, so that what it has translated stays.

Translating a kernel's code is half of what a short trial costs. `rewind.so` (crates/rewind, preloaded) takes
the guest back to the snapshot; what it keeps is code that a fresh QEMU would translate to the same, and that
the plugin counts in the same way (crates/insn/src/rewound.rs). A trial that ends in any other way than by
saying that all is done ends its QEMU. The page that both sides share is
laid out in crates/rewind/src/control.rs.
"""

import contextlib
import enum
import os
import random
import re
import struct
import threading
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from pathlib import Path

from ktrial.machines.errors import CannotLoadState, HostProblem, MachineError
from ktrial.machines.qemu.process import Children, QemuProcess, inherited_path, memory_file
from ktrial.machines.qemu.program import Version
from ktrial.machines.qemu.snapshot import SnapshotSetup, restored
from ktrial.machines.qemu.snapshot_cache import SnapshotCache
from ktrial.target import PLAN_FW_CFG_NAME

MOST_TRIALS = 64
"""Of one QEMU: it does not give back the memory of what it has translated and dropped."""
CHECKED_SHARE = 0.02
"""Of the trials in a QEMU that has served others: they are done once more in a fresh one."""
_KNOWN: tuple[int, int] = (7, 2)
"""crates/rewind knows the inside of this version only."""
_MOST_OUTPUT = 32 << 20
"""Bytes of frames, console and counts after which a QEMU is not kept."""

_COMMAND = struct.Struct("<I")
_HEAD = struct.Struct("<4I16Q64s64s")
_REWIND, _PLAN = 1, 2
_DONE, _OTHER_CODE, _DOUBTFUL = 1, 4, 8
"""Answers: crates/rewind/src/control.rs."""
_MOST_RANGES = 8
_CONTROL_SIZE = 1 << 20
_QUESTIONS = 50
"""Times that QEMU is asked whether it has done what it was told: it has, as soon as it answers anything."""

_FREES_MODULES = re.compile(r"^([0-9a-f]+) \w free_module(?:\.\S+)?$", re.MULTILINE)
_ADDRESS = re.compile(r"^([0-9a-f]+) ", re.MULTILINE)


def can_be_kept(version: Version, cpus: int, plan: bytes) -> bool:
    """Whether a QEMU of this version serves more than one trial."""
    return version[:2] == _KNOWN and cpus == 1 and _HEAD.size + len(plan) <= _CONTROL_SIZE


def code_that_frees_modules(symbols: str) -> tuple[tuple[int, int], ...]:
    """Where it begins and ends, by the kernel's symbols: once it has run, code is another's at its address.

    The plugin then names all modules' code anew, which a QEMU that keeps translations does not ask it for.
    """
    ranges = []
    for symbol in _FREES_MODULES.finditer(symbols):
        start = int(symbol[1], 16)
        later = (int(line[1], 16) for line in _ADDRESS.finditer(symbols, symbol.end()))
        ranges.append((start, next((address for address in later if address > start), start + 1)))
    return tuple(ranges[:_MOST_RANGES])


class Afterwards(enum.Enum):
    """What becomes of a QEMU whose trial has ended well."""

    SERVES = enum.auto()
    """It is at the snapshot point, and serves another trial."""
    ENDS = enum.auto()
    """It may not serve another one."""
    DOUBTFUL = enum.auto()
    """Nor is it certain that this trial was counted as in a fresh one."""


class KeptQemu:
    """One process. Its guest is stopped at the snapshot point, with a plan, or has done that."""

    def __init__(
        self,
        setup: SnapshotSetup,
        children: Children,
        snapshots: SnapshotCache,
        plan: bytes,
        counting: Callable[[Path, Path | None], tuple[str, ...]],
        symbols: str,
    ) -> None:
        """`counting`: QEMU's arguments for the plugin, which writes to a file and reads symbols from another.

        Raises CannotLoadState, Unstarted or MachineError.
        """
        self._trials = 1
        self._read = 0
        self._head = b""
        self._never_kept = code_that_frees_modules(symbols)
        with contextlib.ExitStack() as resources:
            names = resources.enter_context(memory_file("ktrial-symbols", symbols.encode("ascii", "replace")))
            self._out = resources.enter_context(memory_file("ktrial-counts"))
            self._control = resources.enter_context(memory_file("ktrial-rewind"))
            os.ftruncate(self._control, _CONTROL_SIZE)
            with snapshots.open(setup.key) as snapshot:
                if snapshot is None:
                    raise CannotLoadState(machine=setup.machine, problem="it has gone from the cache")
                self._state = resources.enter_context(memory_file("ktrial-state", snapshot.state))
                named = Path(inherited_path(names)) if symbols else None
                kept = replace(
                    setup,
                    plugin=counting(Path(inherited_path(self._out)), named),
                    inherited=(self._out, names, self._state, self._control),
                    rewound_by=self._control,
                )
                self.process: QemuProcess = resources.enter_context(restored(kept, children, snapshot, plan))
            self.process.qmp.execute("set-action", shutdown="pause")
            self._resources = resources.pop_all()

    def close(self) -> None:
        """End it."""
        self._resources.close()

    def __del__(self) -> None:
        """Its thread has ended, or the machine is of no more use."""
        if hasattr(self, "_resources"):
            self.close()

    @contextlib.contextmanager
    def counts(self) -> Iterator[Path]:
        """What the plugin has written of the last trial, as if it had been the only one."""
        written = os.pread(self._out, os.fstat(self._out).st_size - self._read, self._read)
        self._read += len(written)
        self._head = self._head or written.split(b"\n", 1)[0] + b"\n"
        content = written if written.startswith(self._head) else self._head + written
        with memory_file("ktrial-counts", content) as file:
            yield Path(inherited_path(file))

    def rewind(self) -> Afterwards:
        """Take the guest back to the snapshot point; whether it may serve another trial."""
        answer = self._answer(_REWIND)
        is_first, self._trials = self._trials == 1, self._trials + 1
        if answer in (_OTHER_CODE, _DOUBTFUL) and not is_first:
            return Afterwards.DOUBTFUL
        used = self._read + os.fstat(self.process.frames).st_size + os.fstat(self.process.console).st_size
        if answer != _DONE or self._trials > MOST_TRIALS or used > _MOST_OUTPUT:
            return Afterwards.ENDS
        return Afterwards.SERVES

    def give(self, plan: bytes) -> bool:
        """What the guest does next; whether it has it."""
        self.process.begin_anew()
        return self._answer(_PLAN, plan) == _DONE

    def _answer(self, command: int, plan: bytes = b"") -> int:
        """What rewind.so says; 0 where it says nothing."""
        ranges = [address for pair in self._never_kept for address in pair]
        ranges += [0] * (2 * _MOST_RANGES - len(ranges))
        state, name = inherited_path(self._state).encode(), PLAN_FW_CFG_NAME.encode()
        head = _HEAD.pack(0, 0, len(plan), len(self._never_kept), *ranges, state, name)
        os.pwrite(self._control, head + plan, 0)
        os.pwrite(self._control, _COMMAND.pack(command), 0)
        try:
            for _ in range(_QUESTIONS):
                self.process.qmp.execute("query-status")
                if answer := _COMMAND.unpack(os.pread(self._control, _COMMAND.size, _COMMAND.size))[0]:
                    self.process.qmp.events.clear()
                    return int(answer)
        except MachineError:
            self.process.check_stopped()
        return 0


class IdleQemu(threading.local):
    """The QEMU that waits for a trial, each thread's own: the kernel ends it with that thread.

    A thread has one QEMU at a time, as if each trial had its own: two need twice the memory.
    """

    def __init__(self) -> None:
        self._waiting: tuple[Hashable, KeptQemu] | None = None

    def take(self, key: Hashable) -> KeptQemu | None:
        """The one with this key, that is the caller's from here on; another one ends."""
        if self._waiting and self._waiting[0] == key:
            _, kept = self._waiting
            self._waiting = None
            return kept
        self.end()
        return None

    def keep(self, key: Hashable, kept: KeptQemu) -> None:
        """Have it wait."""
        self.end()
        self._waiting = key, kept

    def end(self) -> None:
        """End what waits in this thread."""
        if self._waiting:
            _, kept = self._waiting
            self._waiting = None
            kept.close()

    def is_to_be_checked(self) -> bool:
        """Whether the trial that has just ended is one of those that are done once more."""
        return random.random() < CHECKED_SHARE


class KeptDiffers(HostProblem):
    """A trial in a QEMU that had served others gave other numbers than in a fresh one."""

    text = "Machine {machine}: a QEMU that was used again counted {kept}, a fresh one {fresh}."
    hint = "this is a bug of ktrial's: please report it; KTRIAL_KEEP=0 has each trial start a QEMU of its own"
