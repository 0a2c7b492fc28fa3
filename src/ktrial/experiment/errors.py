"""Errors about running a study."""

from ktrial.errors import KtrialError
from ktrial.kernels.errors import (
    BuildCutShort,
    BuildToolsMissing,
    CacheFull,
    CacheUnusable,
    ProcessesSpent,
    SandboxFailed,
    ToolMissing,
)
from ktrial.machines.errors import HostProblem, MachineError
from ktrial.store.errors import StoreError
from ktrial.target.errors import GuestProgramsMissing


class MachineHeld(MachineError):
    """Somebody else has the machine: who may wait asks again."""


class SystemNotReady(KtrialError):
    """Something that the command needs is not installed here, or there is too little of it."""


class StudyRefused(KtrialError):
    """The study cannot tell what it is to tell: no factor can act, no kernel has a setting."""

    exit_code = 2


class FilesChanged(StudyRefused):
    """Trials are stored already that had other files of this host: one study would mix two programs."""

    hint = (
        "put the files back as they were, and the same command goes on; or run the study anew, in a store of "
        "its own: --store NEW.db"
    )

    def __init__(self, workload: str, files: str) -> None:
        which = f": {files}" if files else ""
        super().__init__(
            f"Workload {workload}: its files are others than those of the trials that are stored{which}."
        )


class TrialsNotMeasured(KtrialError):
    """The machine failed while it ran trials, each time that they were tried: nothing is concluded."""

    def __init__(self, message: str, *, hint: str, problem: str) -> None:
        super().__init__(message, hint=hint)
        self.problem = problem
        """What the first of them said."""


HOST_PROBLEMS: tuple[type[KtrialError], ...] = (
    BuildCutShort,
    BuildToolsMissing,
    CacheFull,
    CacheUnusable,
    GuestProgramsMissing,
    HostProblem,
    ProcessesSpent,
    SandboxFailed,
    StoreError,
    SystemNotReady,
    ToolMissing,
)
"""They say something about this host and nothing about a treatment, and end a run at once: a trial that met
one of them is not stored, since it has not been tried."""
