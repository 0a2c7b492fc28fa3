"""Workloads of one to many tasks at the same time: operations of the guest program `tasks` (crates/tasks)."""

from pathlib import Path

from ktrial.installation import package_directory
from ktrial.model.boot import CarriedFile
from ktrial.model.workload import WorkloadUse
from ktrial.workloads.builtin import BuiltIn, listed

TASKS = "/usr/lib/ktrial/tasks"
"""Where a guest finds the program."""
_MODE = 0o755


class SeveralTasks(BuiltIn):
    """One operation of `tasks`. Its value is the median over the passes, while all tasks work."""

    program = TASKS

    def files(self, use: WorkloadUse) -> tuple[CarriedFile, ...]:
        """The program, which other workloads' guests do not have: theirs stay as they were."""
        return (CarriedFile(host=_directory() / "tasks", guest=TASKS, mode=_MODE),)


def several_tasks(guest: Path | None = None) -> tuple[SeveralTasks, ...]:
    """All operations of the program in the directory `guest` (the installed one by default).

    Raises GuestProgramsMissing.
    """
    return tuple(SeveralTasks(each) for each in listed(guest or _directory(), "tasks", "tasks.json"))


def _directory() -> Path:
    return package_directory() / "_guest" / "x86_64"
