"""Another machine as a target: `launch` runs programs there, its shell reads and sets kernel files."""

import base64
import contextlib
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ktrial.machines.errors import HostChangeForbidden, MachineError
from ktrial.machines.guest_programs import TASKS_IN_GUEST, WORK_IN_GUEST
from ktrial.machines.host.launcher import Launchers, WorkingPlace
from ktrial.machines.host.step_performer import NumberedRuns, as_run_here, perform_in_rows
from ktrial.machines.ssh.connection import NAME, Connection
from ktrial.machines.ssh.errors import ConnectionLost
from ktrial.machines.ssh.own_commands import Console
from ktrial.machines.ssh.programs_there import argv_there
from ktrial.machines.ssh.remote_files import RemoteFiles
from ktrial.model.machine import Boot, MachineIdentity
from ktrial.target import Collect, Failure, Run, Step, StepResult, Write

_COLLECT_LIMIT = 64 << 20


class SettingWriter(Protocol):
    """Makes settings on the other machine, which it puts back by itself."""

    def write(self, step: Write) -> StepResult:
        """Make one; its result is the step's."""
        ...


class SshTarget:
    """Another machine."""

    def __init__(
        self,
        boot: Boot,
        connection: Connection,
        launchers: Launchers,
        programs: dict[str, str],
        identity: MachineIdentity,
        writer: SettingWriter | None,
    ) -> None:
        """`programs`: path in a guest, or `launch` → path on that machine."""
        self.identity = identity
        self._boot = boot
        self._connection = connection
        self._launchers = launchers
        self._programs = programs
        self._files = RemoteFiles(connection)
        self._writer = writer

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """Do the steps in order; programs that follow each other are handed to one launcher.

        Raises HostChangeForbidden before the first step where one would change that system without leave,
        GuestEnded where a program passes the boot's limit, ConnectionLost, MachineError.
        """
        for step in steps:
            if isinstance(step, Write) and self._writer is None:
                raise HostChangeForbidden(machine=NAME, what=f"write {step.value!r} to {step.path}")
        return perform_in_rows(steps, self._boot, self._run, self._do)

    def _run(self, runs: NumberedRuns) -> tuple[StepResult, ...]:
        place = WorkingPlace(self._boot.pin)
        there = [(number, as_run_here(run, self._boot, self._argv(run))) for number, run in runs]
        try:
            return self._launchers.run(Path(self._programs["launch"]), there, place)
        except MachineError:
            if self._connection.answers():
                raise
            problem = "while programs ran"
            raise ConnectionLost(machine=NAME, host=self._connection.host, problem=problem) from None

    def _argv(self, run: Run) -> tuple[str, ...]:
        """ktrial's own programs lie in its directory there; a name is looked for in its PATH."""
        first = run.argv[0]
        if first in {WORK_IN_GUEST, TASKS_IN_GUEST}:
            return (self._programs[first], *run.argv[1:])
        return argv_there(self._connection, run)

    def _do(self, number: int, step: Step) -> StepResult:
        match step:
            case Write() if self._writer is not None:
                return self._writer.write(step).model_copy(update={"step": number})
            case Collect():
                return self._collect(number, step)
            case _:
                return self._files.step(number, step)

    def _collect(self, number: int, step: Collect) -> StepResult:
        result = StepResult(step=number, do=step.do)
        content = b""
        with contextlib.suppress(ConnectionLost):
            content = self._connection.script(f"cat <{shlex.quote(step.path)}\n")
            if len(content) <= _COLLECT_LIMIT:
                return result.model_copy(update={"content": base64.b64encode(content).decode()})
        problem = f"longer than {_COLLECT_LIMIT} bytes" if content else "it cannot be read"
        failure = Failure(text=f"collect {step.path}: {problem}")
        return result.model_copy(update={"failure": failure})


class BootedSshTarget(SshTarget):
    """Another machine in a kernel that it was booted into: when that goes down, the trial says so."""

    def __init__(self, target: SshTarget, explain: Callable[[], None], console: Console) -> None:
        """`explain`: told of a lost connection, raises GuestEnded where the kernel went with it."""
        vars(self).update(vars(target))
        self._explain = explain
        self._listened = console

    @property
    def console(self) -> str:
        """What the user's own console command has printed."""
        return self._listened.text

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """As any other. Raises GuestEnded, too, where the kernel goes down meanwhile."""
        try:
            return super().perform(steps)
        except ConnectionLost:
            self._explain()
            raise
