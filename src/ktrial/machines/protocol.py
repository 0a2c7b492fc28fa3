"""What the runner asks of a machine, and of the target that it yields."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from ktrial.model.machine import Boot, MachineIdentity
from ktrial.model.workload import Mode
from ktrial.target import Target

Progress = Callable[[str], None]
"""Told what a long step is doing, in a few words: `booting`, `settling`, `saving the snapshot`."""


class BootedTarget(Target, Protocol):
    """A target that says what it runs on."""

    @property
    def identity(self) -> MachineIdentity:
        """What of the machine can change a result; complete once `perform` has returned or raised."""
        ...


class Machine(Protocol):
    """What the runner asks of a machine."""

    name: str
    mode: Mode

    def check(self) -> None:
        """Raise a MachineError that names what is missing, where the machine cannot run here."""
        ...

    def prepare(self, boot: Boot, progress: Progress) -> None:
        """Do what is done once for all trials of `boot` (a snapshot). Raises what `start` would raise."""
        ...

    def start(self, boot: Boot) -> AbstractContextManager[BootedTarget]:
        """Yield a running system. Each `perform` on it starts from the same state.

        Raises MachineError where the machine itself fails, GuestEnded where the guest does.
        """
        ...

    def stop(self) -> None:
        """End at once every boot, preparation and trial under way, from whatever thread they were started.

        What is ended raises MachineError where it was waiting, and so does all that is asked of this machine
        afterwards. Called on Ctrl-C and SIGTERM.
        """
        ...
