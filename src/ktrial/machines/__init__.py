"""Where trials run: one module a machine, found by its name; each yields a target."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import Protocol, runtime_checkable

from ktrial import plugin_discovery
from ktrial.machines.errors import MachineUsageError
from ktrial.model.machine import NO_FILES, Boot, FileSet, MachineIdentity
from ktrial.model.notation import nearest
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import CountedBy, Mode
from ktrial.target import Step, StepResult, Target

# What the runner asks of a machine, and of the target that it yields.

PreparationProgress = Callable[[str], None]
"""Told what a long step is doing, in a few words: `booting`, `settling`, `saving the snapshot`."""


class BootedTarget(Target, Protocol):
    """A target that says what it runs on."""

    @property
    def identity(self) -> MachineIdentity:
        """What of the machine can change a result; complete once `perform` has returned or raised."""
        ...


@runtime_checkable
class SpeakingTarget(BootedTarget, Protocol):
    """A target whose kernel's console is read."""

    @property
    def console(self) -> str:
        """The end of the console log of the last `perform`."""
        ...


@runtime_checkable
class CountingTarget(BootedTarget, Protocol):
    """A target that counts by function what its programs do (mode exact-plugin)."""

    def counted(
        self, steps: tuple[Step, ...], symbols: str = "", *, calls: bool = False
    ) -> tuple[StepResult, ...]:
        """As `perform`; what each program did between its marks is its result's `region`.

        `symbols`: /proc/kallsyms of the kernel; without it, all of the kernel is one function. `calls`: tell
        who called whom, too (one CPU only).
        """
        ...

    def kallsyms(self) -> str:
        """What the system says in /proc/kallsyms. Raises NoSymbolsInGuest, GuestEnded, MachineError."""
        ...


@runtime_checkable
class CountsByFunction(Protocol):
    """A target whose system can also be counted by function, which takes longer and changes nothing else."""

    def by_function(self) -> CountingTarget:
        """Starts each time from the same state."""
        ...


@runtime_checkable
class CountingMachine(Protocol):
    """A machine that can be told what counts its instructions."""

    def count_by(self, count: CountedBy | None) -> None:
        """Before `check`. None: as the machine likes best, of what works here."""
        ...


@runtime_checkable
class RemoteMachine(Protocol):
    """A machine that is another system."""

    programs_elsewhere: bool
    """Programs are looked for there."""

    def reach(self, host: str) -> None:
        """Name it, before it is asked for anything."""
        ...

    def close(self) -> None:
        """Put back and take away all that is there."""
        ...


class ExclusiveUse(Protocol):
    """A machine is this process's alone, as far as a store, or a fleet, tells those who use it."""

    @property
    def is_lost(self) -> bool:
        """Whether somebody else has taken it: nothing was heard of this process for too long."""
        ...

    def check(self) -> None:
        """Raise a MachineError where it is lost."""

    def tell_loss(self, callback: Callable[[], None]) -> None:
        """Call `callback`, in some thread, once it is lost."""

    def end(self) -> None:
        """Others may have the machine."""


@runtime_checkable
class LeasedMachine(Protocol):
    """Another system that runs one trial at a time, whoever asks: who uses it holds a lease of it."""

    host: str
    """What its user calls it."""
    leases: dict[str, ExclusiveUse]
    """By the names of what keeps them, stores and fleets. `close` ends them, once all there is put back."""

    def lease_name(self) -> str:
        """What tells it from every other one, whatever its users call it. Nothing is sent to it."""
        ...


@runtime_checkable
class PortableMachine(Protocol):
    """A machine whose numbers are the same, to the last digit, wherever its like runs."""

    def elsewhere(self) -> "Callable[[], Machine]":
        """What makes its like in another process, on another system too; can be pickled. After `check`."""
        ...

    def has_to_agree(self) -> dict[str, str]:
        """What must be the same there, in words: `QEMU` → its build. After `check`. Raises MachineError."""
        ...


@runtime_checkable
class TellsOfBoots(Protocol):
    """A machine that can tell which code a boot executes."""

    def executed_in_boot(self, boot: Boot) -> frozenset[int]:
        """Addresses at which the guest begins blocks of code, until its programs run. After `check`.

        None where the emulator does not tell. Raises MachineError or GuestEnded.
        """
        ...


class Machine(Protocol):
    """What the runner asks of a machine."""

    name: str

    @property
    def mode(self) -> Mode:
        """What its numbers mean: known once `check` has passed. Of a CountingTarget: exact-plugin."""
        ...

    def check(self) -> None:
        """Raise a MachineError that names what is missing, where the machine cannot run here."""
        ...

    def prepare(self, boot: Boot, progress: PreparationProgress) -> None:
        """Do what is done once for all trials of `boot` (a snapshot). Raises what `start` would raise."""
        ...

    def start(self, boot: Boot, carried: FileSet = NO_FILES) -> AbstractContextManager[BootedTarget]:
        """Yield a running system. Each `perform` on it starts from the same state.

        `carried`: files that a guest has before it does the steps; elsewhere programs run where they are.

        Raises MachineError where the machine itself fails, GuestEnded where the guest does.
        """
        ...

    def stop(self) -> None:
        """End at once every boot, preparation and trial under way, from whatever thread they were started.

        What is ended raises MachineError where it was waiting, and so does all that is asked of this machine
        afterwards. Called on Ctrl-C and SIGTERM.
        """
        ...


# Machines by name. A module of this package that has a `MACHINE` is one; others come by entry points.
#
# `MACHINE` makes a machine: a class, or a function, that is called without arguments. Outside this package
# the same is named by an entry point of the group `ktrial.machines`, whose name is the machine's.

Maker = Callable[[], Machine]
_GROUP = "ktrial.machines"


@cache
def installed() -> tuple[dict[str, Maker], tuple[DataWarning, ...]]:
    """Name → what makes the machine, sorted, and a warning for each plugin that is broken."""
    return plugin_discovery.installed(_GROUP, "machine", "MACHINE", ("ktrial.machines",), _check)


def names() -> tuple[str, ...]:
    """All machines' names, sorted."""
    return tuple(installed()[0])


def find(name: str) -> Machine:
    """Make the machine of this name. Raises MachineError, which names those like it."""
    makers, _ = installed()
    if name in makers:
        return makers[name]()
    raise MachineUsageError(
        f"There is no machine {name}{nearest(name, makers)}; there are: {', '.join(makers)}."
    )


def _check(name: str, extension: object) -> tuple[str, Maker]:
    if not callable(extension):
        raise TypeError("it cannot be called")
    declared = getattr(extension, "name", name)
    return (declared if str(declared).replace("-", "_") == name else name), extension


__all__ = [
    "BootedTarget",
    "CountingMachine",
    "CountingTarget",
    "CountsByFunction",
    "ExclusiveUse",
    "LeasedMachine",
    "Machine",
    "PortableMachine",
    "PreparationProgress",
    "RemoteMachine",
    "SpeakingTarget",
    "TellsOfBoots",
    "find",
    "installed",
    "names",
]
