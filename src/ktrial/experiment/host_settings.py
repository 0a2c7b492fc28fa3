"""Settings of this system in a study: made through the journal of ktrial.knobs, undone after each trial."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from ktrial import machines
from ktrial.experiment.remote_settings import RemoteSettings, result_of
from ktrial.knobs import Changes, changing
from ktrial.knobs.journal.mounts_modules import Kind
from ktrial.machines import Machine, RemoteMachine
from ktrial.machines.host import HostMachine
from ktrial.machines.ssh import SshMachine
from ktrial.model.study import Study
from ktrial.target import LocalTarget, StepResult, Write


@contextmanager
def machine_for(
    study: Study, *, allow_host_changes: bool, say: Callable[[str], None] | None = None
) -> Iterator[Machine | None]:
    """The machine that a study on this system runs on; None where it runs elsewhere.

    With leave, it is the only ktrial that changes knobs here as long as the block lasts; what is left of its
    changes at the end is taken back. Raises JournalHeld, JournalUnsafe, JournalForbidden.
    """
    machine = machines.find(study.machine.kind)
    if isinstance(machine, RemoteMachine):
        machine.reach(study.machine.host)
        if allow_host_changes and isinstance(machine, SshMachine):
            machine.writer = RemoteSettings(machine)
            machine.say = say or machine.say
        try:
            yield machine
        finally:
            machine.close()
        return
    if not isinstance(machine, HostMachine):
        yield None
        return
    machine.allow_changes = allow_host_changes
    if not allow_host_changes:
        yield machine
        return
    with changing(LocalTarget(), f"study {study.name}", say=say) as changes:
        machine.writer = Journaled(changes)
        yield machine


class Journaled:
    """Makes settings, noted on disk before they are made."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    def write(self, step: Write) -> StepResult:
        """Make one. A kernel that refuses is the step's failure. Raises KnobForbidden, JournalError."""
        return result_of(step, lambda wanted: self._changes.apply(wanted, exactly=False))

    def attach(self, kind: Literal["mount", "module"], name: str, attach: Callable[[], None]) -> None:
        """Mount or load something by calling `attach`. Raises what that raises, JournalError."""
        self._changes.attach(Kind(kind), name, attach)

    def undo(self) -> None:
        """Take back all that was made so far."""
        self._changes.undo()
