"""The machine `exact`: QEMU's TCG with instruction counting. Two runs, the same numbers to the last digit.

`docs/architecture/exact-machine.md` says how, and what can break it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ktrial.machines import guest_programs
from ktrial.machines.errors import CannotSaveState, NoPluginHere
from ktrial.machines.exact import cmpxchg_flags
from ktrial.machines.exact.plugin import PluginBuild
from ktrial.machines.exact.setup import Setup, prepare
from ktrial.machines.exact.target import InstrumentedTarget, usable_plugin
from ktrial.machines.protocol import Progress
from ktrial.machines.qemu import program as qemu
from ktrial.machines.qemu import tools
from ktrial.machines.qemu.boots_in_use import BootsInUse
from ktrial.machines.qemu.process import Children
from ktrial.machines.qemu.snapshot_boot import snapshot_contents
from ktrial.machines.qemu.snapshot_cache import SnapshotCache, snapshots_directory, snapshots_limit
from ktrial.machines.qemu.snapshot_target import SnapshotTarget
from ktrial.model.machine import Boot
from ktrial.model.workload import CountedBy, Mode
from ktrial.system_tools import Tool

NAME = "exact"


class ExactMachine:
    """Trials in QEMU, counted in instructions. Needs no privilege, no /dev/kvm and no quiet machine."""

    name = NAME

    def __init__(
        self, guest: Path | None = None, cache: Path | None = None, count: CountedBy | None = None
    ) -> None:
        """Other places than the usual: `guest` for the guest programs, `cache` for the snapshots.

        `count`: see `count_by`.
        """
        self._guest = guest or guest_programs.directory()
        self._children = Children(NAME)
        self._snapshots = SnapshotCache(cache or snapshots_directory(), snapshots_limit(), NAME)
        self._plain_boot_reasons: dict[str, str] = {}
        self._in_use = BootsInUse(NAME)
        self._wanted = count
        self._counting: _Counting | None = None

    def count_by(self, count: CountedBy | None) -> None:
        """What counts the instructions: None is the plugin where it loads here, and the clock elsewhere."""
        self._wanted, self._counting = count, None

    @property
    def needed_tools(self) -> tuple[Tool, ...]:
        """Programs of this system."""
        return tools.qemu_tools()

    @property
    def mode(self) -> Mode:
        """Known once `check` has passed; before, whatever that would raise is raised."""
        return Mode.EXACT_PLUGIN if self._chosen().build else Mode.EXACT_CLOCK

    def check(self) -> None:
        """Raise MachineError or GuestProgramsMissing where something is missing here.

        NoPluginHere among them, where the plugin has to count and does not load.
        """
        tools.check(NAME)
        guest_programs.programs(self._guest)
        self._chosen()

    def elsewhere(self) -> "Callable[[], ExactMachine]":
        """A machine that counts by the same. See PortableMachine."""
        counted = CountedBy.PLUGIN if self.mode is Mode.EXACT_PLUGIN else CountedBy.CLOCK
        return partial(ExactMachine, count=counted)

    def has_to_agree(self) -> dict[str, str]:
        """See PortableMachine."""
        programs = guest_programs.digest_of_all(self._guest)
        return qemu.has_to_agree(qemu.find(NAME), programs, self.mode.value)

    def prepare(self, boot: Boot, progress: Progress) -> None:
        """Boot once and keep a snapshot, unless there is one. Raises MachineError or GuestEnded."""
        self._prepare(self._setup(boot), progress)

    @contextmanager
    def start(self, boot: Boot) -> Iterator[SnapshotTarget]:
        """Yield a target whose every `perform` starts from the snapshot; it can count in mode exact-plugin.

        Raises MachineError or GuestEnded.
        """
        if self.mode is Mode.EXACT_PLUGIN:
            with self.instrumented(boot) as target:
                yield target
            return
        setup = self._setup(boot)
        self._prepare(setup, _silent)
        reason = self._plain_boot_reasons.get(setup.key, "")
        yield SnapshotTarget(setup, self._children, self._snapshots, reason)

    @contextmanager
    def instrumented(self, boot: Boot) -> Iterator[InstrumentedTarget]:
        """Yield a target whose every `counted` is a `perform` under the plugin, in a CPU shown as it is.

        Whatever the machine's own mode is. Raises NoPluginHere, MachineError or GuestEnded.
        """
        self._children.check()
        installed = qemu.find(NAME)
        build = usable_plugin(installed, self._guest, NAME)
        setup = prepare(boot, installed, self._guest, NAME, Mode.EXACT_PLUGIN)
        self._in_use.check(setup, setup.identity.mode)
        self._prepare(setup, _silent)
        reason = self._plain_boot_reasons.get(setup.key, "")
        yield InstrumentedTarget(setup, self._children, self._snapshots, reason, build)

    def stop(self) -> None:
        """End all at once; this machine is of no more use."""
        self._children.stop()

    def _setup(self, boot: Boot) -> Setup:
        self._children.check()
        installed = qemu.find(NAME)
        setup = prepare(boot, installed, self._guest, NAME, self.mode)
        self._in_use.check(setup, setup.identity.mode)
        reasons = {"clock_reason": self._chosen().reason, "flags_reason": cmpxchg_flags.mistaken(installed)}
        told = setup.identity.model_copy(update=reasons)
        return replace(setup, identity=told)

    def _chosen(self) -> "_Counting":
        if self._counting is None:
            self._counting = self._choose()
        return self._counting

    def _choose(self) -> "_Counting":
        if self._wanted is CountedBy.CLOCK:
            return _Counting(None)
        try:
            return _Counting(usable_plugin(qemu.find(NAME), self._guest, NAME))
        except NoPluginHere as error:
            if self._wanted is CountedBy.PLUGIN:
                raise
            return _Counting(None, str(error.facts["problem"]))

    def _prepare(self, setup: Setup, progress: Progress) -> None:
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


@dataclass(frozen=True)
class _Counting:
    """What counts: the plugin's build, or the guest's clock."""

    build: PluginBuild | None
    reason: str = ""
    """Why the plugin does not load, where the clock was not asked for."""


def _silent(_text: str) -> None:
    pass


MACHINE = ExactMachine
