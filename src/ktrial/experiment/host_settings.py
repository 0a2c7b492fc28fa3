"""Settings of this system in a study: made through the journal of ktrial.knobs, undone after each trial."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from ktrial import machines
from ktrial.knobs import Changes, changing
from ktrial.knobs.errors import KnobError, KnobForbidden, KnobRefused
from ktrial.knobs.journal.mounts_modules import Kind
from ktrial.machines import Machine
from ktrial.machines.host import HostMachine
from ktrial.model.study import Study
from ktrial.target import Failure, LocalTarget, StepResult, Write


@contextmanager
def machine_for(
    study: Study, *, allow_host_changes: bool, say: Callable[[str], None] | None = None
) -> Iterator[Machine | None]:
    """The machine that a study on this system runs on; None where it runs elsewhere.

    With leave, it is the only ktrial that changes knobs here as long as the block lasts; what is left of its
    changes at the end is taken back. Raises JournalHeld, JournalUnsafe, JournalForbidden.
    """
    machine = machines.find(study.machine.kind)
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
        done = StepResult(step=0, do=step.do)
        try:
            (applied,) = self._changes.apply((step.knob or step.path, step.value), exactly=False)
        except KnobForbidden:
            raise
        except KnobRefused as error:
            # Which knob, and which value, says whoever wanted it.
            return done.model_copy(update={"failure": Failure(text=str(error.facts["answer"]))})
        except KnobError as error:
            return done.model_copy(update={"failure": Failure(text=error.message)})
        return done.model_copy(update={"before": applied.before, "after": applied.now})

    def attach(self, kind: Literal["mount", "module"], name: str, attach: Callable[[], None]) -> None:
        """Mount or load something by calling `attach`. Raises what that raises, JournalError."""
        self._changes.attach(Kind(kind), name, attach)

    def undo(self) -> None:
        """Take back all that was made so far."""
        self._changes.undo()
