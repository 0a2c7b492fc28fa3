"""The machine `ssh`: another system, as it runs, in real time, over the user's own OpenSSH client.

Nothing has to be there beforehand but a POSIX shell: ktrial brings its static programs into a directory of
its own, and takes them away. What is set there is put back by that machine itself (see `keeper`).
"""

import atexit
import contextlib
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ktrial.file_digests import digest_of_file
from ktrial.machines import guest_programs
from ktrial.machines.errors import MachineError, MachineStopped
from ktrial.machines.guest_programs import TASKS, TASKS_IN_GUEST, WORK, WORK_IN_GUEST
from ktrial.machines.host.launcher import Launchers, launch_program
from ktrial.machines.protocol import Progress
from ktrial.machines.ssh import system
from ktrial.machines.ssh.connection import NAME, Connection
from ktrial.machines.ssh.target import SettingWriter, SshTarget
from ktrial.model.boot import Boot, MachineIdentity
from ktrial.model.kernel import Kernel
from ktrial.model.workload import Mode


class SshMachine:
    """Trials on another system. Connects when it is first asked; `close` takes everything away there."""

    name = NAME
    programs_elsewhere = True
    """Programs are looked for there, not on this system."""
    mode = Mode.TIMED

    def __init__(self, host: str = "", *, guest: Path | None = None) -> None:
        """`guest`: where ktrial's own programs are."""
        self.host = host
        self.writer: SettingWriter | None = None
        """Does the steps that write settings; None: none may be written."""
        self._guest = guest or guest_programs.directory()
        self._connection: Connection | None = None
        self._programs: dict[str, str] = {}
        self._stopped = False
        self._launchers = Launchers(NAME, self._launched)
        atexit.register(_close, weakref.ref(self))

    def reach(self, host: str) -> None:
        """Name the other system, before it is asked for anything."""
        self.host = host

    def check(self) -> None:
        """Connect. Raises MachineError."""
        launch_program(self._guest)
        guest_programs.programs(self._guest)
        self.connection()

    def connection(self) -> Connection:
        """The one that stands, or a new one in place of one that was lost. Raises MachineError."""
        if self._stopped:
            raise MachineStopped(machine=NAME)
        if self._connection is not None and not self._connection.is_alive:
            self.close()
        if self._connection is None:
            self._connection = Connection(self.host)
        return self._connection

    def kernel(self) -> Kernel:
        """The kernel that runs there. Raises MachineError."""
        return system.running_kernel(self.connection())

    def prepare(self, boot: Boot, progress: Progress) -> None:
        """Bring the programs there. Raises MachineError."""
        progress("sending programs")
        self._brought(self.connection())

    @contextmanager
    def start(self, boot: Boot) -> Iterator[SshTarget]:
        """Yield the other system; what was set is put back at the end. Raises MachineError."""
        if boot.cgroup is not None:
            raise MachineError(machine=NAME, problem="it makes no control groups")
        connection = self.connection()
        programs = self._brought(connection)
        identity = self._identity(boot, connection)
        try:
            yield SshTarget(boot, connection, self._launchers, programs, identity, self.writer)
        except BaseException:
            with contextlib.suppress(MachineError):  # what ended it is told; the keeper acts alone
                self._put_back(connection)
            raise
        self._put_back(connection)

    def stop(self) -> None:
        """End all programs at once; this machine is of no more use."""
        self._stopped = True
        self._launchers.stop()

    def close(self) -> None:
        """Put back and take away all that is there, and hang up."""
        connection, self._connection, self._programs = self._connection, None, {}
        if connection is not None:
            connection.close()

    def _put_back(self, connection: Connection) -> None:
        if self.writer is not None:
            connection.undo()

    def _brought(self, connection: Connection) -> dict[str, str]:
        if not self._programs:
            names = {"launch": "launch", WORK_IN_GUEST: WORK, TASKS_IN_GUEST: TASKS}
            contents = {key: (self._guest / name).read_bytes() for key, name in names.items()}
            self._programs = {key: connection.send(contents[key], name) for key, name in names.items()}
        return self._programs

    def _identity(self, boot: Boot, connection: Connection) -> MachineIdentity:
        command_line = connection.script("cat /proc/cmdline 2>/dev/null; :\n").decode(errors="replace")
        pin = (f"pin={','.join(map(str, boot.pin))}",) if boot.pin else ()
        return MachineIdentity(
            machine=NAME,
            mode=Mode.TIMED,
            cpu_model=system.cpu_model(connection),
            arguments=(f"host={connection.host}", *pin),
            command_line=command_line.strip(),
            agent_digest=digest_of_file(launch_program(self._guest)),
        )

    def _launched(self, program: str) -> list[str]:
        return self.connection().command(f"exec {program}")


def _close(machine: "weakref.ref[SshMachine]") -> None:
    if (one := machine()) is not None:
        one.close()


MACHINE = SshMachine
