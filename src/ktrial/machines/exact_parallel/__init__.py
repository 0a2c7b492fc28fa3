"""The machine `exact-parallel`: several CPUs in parallel virtual time. Two runs, the same numbers.

QEMU's TCG without instruction counting, and crates/parallel in it. docs/parallel.md: what the numbers mean.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from ktrial.machines import guest_programs
from ktrial.machines.errors import CannotSaveState
from ktrial.machines.exact_parallel.setup import ParallelSetup, check_qemu, prepare
from ktrial.machines.exact_parallel.target import CountingParallelTarget, ParallelTarget
from ktrial.machines.protocol import Progress
from ktrial.machines.qemu import program as qemu
from ktrial.machines.qemu import tools
from ktrial.machines.qemu.boots_in_use import BootsInUse
from ktrial.machines.qemu.process import Children
from ktrial.machines.qemu.snapshot_boot import snapshot_contents
from ktrial.machines.qemu.snapshot_cache import SnapshotCache, snapshots_directory, snapshots_limit
from ktrial.model.machine import Boot
from ktrial.model.workload import CountedBy, Mode
from ktrial.system_tools import Tool

NAME = "exact-parallel"
_Started = TypeVar("_Started", bound=ParallelTarget)


class ParallelMachine:
    """Trials on several CPUs, in simulated time. Needs no privilege, no /dev/kvm and no quiet machine."""

    name = NAME
    mode = Mode.EXACT_PARALLEL

    def __init__(self, guest: Path | None = None, cache: Path | None = None) -> None:
        """Other places than the usual: `guest` for the guest programs, `cache` for the snapshots."""
        self._guest = guest or guest_programs.directory()
        self._children = Children(NAME)
        self._snapshots = SnapshotCache(cache or snapshots_directory(), snapshots_limit(), NAME)
        self._plain_boot_reasons: dict[str, str] = {}
        self._in_use = BootsInUse(NAME)
        self._by_function = False

    @property
    def needed_tools(self) -> tuple[Tool, ...]:
        """Programs of this system."""
        return tools.qemu_tools()

    def count_by(self, count: CountedBy | None) -> None:
        """The plugin: trials are counted by function, too, which takes longer. Else they are not."""
        self._by_function = count is CountedBy.PLUGIN

    def check(self) -> None:
        """Raise MachineError or GuestProgramsMissing where something is missing here."""
        check_qemu(tools.check(NAME), NAME)
        guest_programs.programs(self._guest)
        guest_programs.parallel()

    def elsewhere(self) -> "Callable[[], ParallelMachine]":
        """A machine that counts as this one does. See PortableMachine."""
        return _CountsByFunction() if self._by_function else ParallelMachine

    def has_to_agree(self) -> dict[str, str]:
        """See PortableMachine."""
        programs = guest_programs.digest_of_all(self._guest)
        return qemu.has_to_agree(qemu.find(NAME), programs, self.mode.value)

    def prepare(self, boot: Boot, progress: Progress) -> None:
        """Boot once and keep a snapshot, unless there is one. Raises MachineError or GuestEnded."""
        self._prepare(self._setup(boot), progress)

    @contextmanager
    def start(self, boot: Boot) -> Iterator[ParallelTarget]:
        """Yield a target whose `perform`s start from the snapshot. Raises MachineError or GuestEnded."""
        kind = CountingParallelTarget if self._by_function else ParallelTarget
        yield self._started(boot, kind)

    @contextmanager
    def instrumented(self, boot: Boot) -> Iterator[CountingParallelTarget]:
        """Yield a target that counts by function. Raises MachineError or GuestEnded."""
        yield self._started(boot, CountingParallelTarget)

    def _started(self, boot: Boot, kind: type[_Started]) -> _Started:
        setup = self._setup(boot)
        self._prepare(setup, _silent)
        reason = self._plain_boot_reasons.get(setup.key, "")
        return kind(setup, self._children, self._snapshots, reason)

    def stop(self) -> None:
        """End all at once; this machine is of no more use."""
        self._children.stop()

    def _setup(self, boot: Boot) -> ParallelSetup:
        self._children.check()
        setup = prepare(boot, qemu.find(NAME), self._guest, NAME)
        self._in_use.check(setup)
        return setup

    def _prepare(self, setup: ParallelSetup, progress: Progress) -> None:
        if setup.key in self._plain_boot_reasons:
            return
        with self._snapshots.open(setup.key) as present:
            if present:
                return
        contents = partial(snapshot_contents, setup, self._children, progress)
        try:
            self._snapshots.make(setup.facts, contents, self._children.check)
        except CannotSaveState as error:
            self._plain_boot_reasons[setup.key] = str(error.facts["problem"])


class _CountsByFunction:
    """Makes a machine that does; there is nothing in it, so that it can be pickled."""

    def __call__(self) -> ParallelMachine:
        machine = ParallelMachine()
        machine.count_by(CountedBy.PLUGIN)
        return machine


def _silent(_text: str) -> None:
    pass


MACHINE = ParallelMachine
