"""A system that is no Linux on x86_64 as a target: commands alone, and their wall time."""

from collections.abc import Callable

from ktrial.machines.guest_programs import TASKS_IN_GUEST, WORK_IN_GUEST
from ktrial.machines.host.step_performer import NumberedRuns, as_run_here, perform_in_rows
from ktrial.machines.ssh.connection import Connection
from ktrial.machines.ssh.programs_there import argv_there
from ktrial.machines.ssh.remote_files import RemoteFiles
from ktrial.machines.ssh.shell_programs import ShellPrograms
from ktrial.model.machine import Boot, MachineIdentity
from ktrial.target import Run, Step, StepResult, Write


class ShellTarget:
    """What its shell does. Files of counters that a step watches are not there, and are left out."""

    def __init__(
        self,
        boot: Boot,
        connection: Connection,
        programs: ShellPrograms,
        identity: MachineIdentity,
        refuse: Callable[[str], None],
    ) -> None:
        """`refuse`: raises UnlikeSystem, told what was wanted."""
        self.identity = identity
        self._boot = boot
        self._connection = connection
        self._programs = programs
        self._files = RemoteFiles(connection)
        self._refuse = refuse

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """Do the steps in order. Raises UnlikeSystem before the first one where a step needs Linux,
        GuestEnded where a command passes the boot's limit, ConnectionLost, MachineError.
        """
        for step in steps:
            if isinstance(step, Write):
                self._refuse("settings")
            if isinstance(step, Run) and step.argv[0] in {WORK_IN_GUEST, TASKS_IN_GUEST}:
                self._refuse("workloads of its own")
        return perform_in_rows(steps, self._boot, self._run, self._files.step)

    def _run(self, runs: NumberedRuns) -> tuple[StepResult, ...]:
        there = [
            (number, as_run_here(run, self._boot, argv_there(self._connection, run))) for number, run in runs
        ]
        return self._programs.run(self._connection, there)
