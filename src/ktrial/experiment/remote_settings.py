"""Settings of another machine in a study: noted there before they are made, and put back by that machine."""

from collections.abc import Callable

from ktrial.knobs.errors import KnobError, KnobForbidden, KnobRefused
from ktrial.knobs.journal.apply import Applied, KnobSetting, apply, undoing
from ktrial.knobs.journal.journal import Entry, Stage
from ktrial.knobs.lookup import KnobInstance, coupled_paths
from ktrial.knobs.system import System
from ktrial.machines.ssh import SshMachine
from ktrial.machines.ssh.remote_files import RemoteFiles
from ktrial.target import Failure, Read, StepResult, Write

_UNSET = {"", "0"}


class RemoteSettings:
    """Makes settings on the machine, whose keeper knows each before it is made."""

    def __init__(self, machine: SshMachine) -> None:
        self._machine = machine

    def write(self, step: Write) -> StepResult:
        """Make one. A kernel that refuses is the step's failure. Raises KnobForbidden, MachineError."""
        files = RemoteFiles(self._machine.connection())
        return result_of(step, lambda wanted: apply(files, (wanted,), _NotedThere(files), exactly=False))


class _NotedThere:
    """Tells the keeper what is to be put back."""

    def __init__(self, files: RemoteFiles) -> None:
        self._files = files

    def planned(self, system: System, knob: KnobInstance, before: str, value: str) -> Entry | None:
        """Note it there, what the kernel clears with it first: the keeper puts back the latest first."""
        old = undoing(knob, before, value)
        for path in coupled_paths(system, knob):
            (beside,) = self._files.perform((Read(path=path),))
            if (text := beside.content.removesuffix("\n")) not in _UNSET:
                self._files.note(path, text)
        self._files.note(knob.path, old)
        return None

    def noted(self, entry: Entry, stage: Stage, made: str = "") -> Entry:
        """The keeper needs to know no more."""
        return entry


def result_of(step: Write, change: Callable[[KnobSetting], tuple[Applied, ...]]) -> StepResult:
    """What came of a setting as the step's result. Raises KnobForbidden, and what is no KnobError."""
    done = StepResult(step=0, do=step.do)
    try:
        (applied,) = change((step.knob or step.path, step.value))
    except KnobForbidden:
        raise
    except KnobRefused as error:
        # Which knob, and which value, says whoever wanted it.
        return done.model_copy(update={"failure": Failure(text=str(error.facts["answer"]))})
    except KnobError as error:
        return done.model_copy(update={"failure": Failure(text=error.message)})
    return done.model_copy(update={"before": applied.before, "after": applied.now})
