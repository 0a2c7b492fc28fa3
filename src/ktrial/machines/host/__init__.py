"""The machine `host`: this system, as it runs, in real time. The unit is a knob setting, not a boot.

Programs are started by `launch` (crates/launch), which sleeps while they run, as ktrial does. Nothing of the
system is changed unless the machine was given leave, and then settings go through what the runner puts into
`writer`: the journal that puts them back.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from ktrial.machines import guest_programs
from ktrial.machines.host.cpu_affinity_cgroup import check_pin, control_group
from ktrial.machines.host.launcher import Launchers, launch_program
from ktrial.machines.host.target import HostTarget, Writer, running_kernel
from ktrial.machines.protocol import Progress
from ktrial.model.kernel import Kernel
from ktrial.model.machine import Boot
from ktrial.model.workload import Mode

NAME = "host"


class HostMachine:
    """Trials on this system. Without `allow_changes` it only looks at it, and runs programs."""

    name = NAME
    host_matters = True
    """What else this host does can change the numbers: it is looked at before each trial."""
    mode = Mode.TIMED

    def __init__(
        self,
        *,
        allow_changes: bool = False,
        writer: Writer | None = None,
        guest: Path | None = None,
    ) -> None:
        """`writer` does the steps that write settings; without one none is written. `guest`: the programs."""
        self.allow_changes = allow_changes
        self.writer = writer
        self._guest = guest or guest_programs.directory()
        self._launchers = Launchers(NAME)

    def check(self) -> None:
        """Raise GuestProgramsMissing or MachineStopped."""
        self._launchers.check()
        launch_program(self._guest)
        guest_programs.programs(self._guest)

    def kernel(self) -> Kernel:
        """The running kernel: the one kernel that trials on this machine can have."""
        return running_kernel()

    def prepare(self, boot: Boot, progress: Progress) -> None:
        """Look whether CPUs and control group can be had. Raises MachineError."""
        self._launchers.check()
        check_pin(boot.pin, NAME)
        with self._control_group(boot):
            progress("ready")

    @contextmanager
    def start(self, boot: Boot) -> Iterator[HostTarget]:
        """Yield this system. What is mounted or loaded is taken back at the end. Raises MachineError."""
        self._launchers.check()
        check_pin(boot.pin, NAME)
        with self._control_group(boot) as group:
            target = HostTarget(
                boot,
                self._launchers,
                guest=self._guest,
                cgroup=group,
                allow_changes=self.allow_changes,
                writer=self.writer,
            )
            with target:
                yield target

    def stop(self) -> None:
        """End all programs at once; this machine is of no more use."""
        self._launchers.stop()

    def _control_group(self, boot: Boot) -> AbstractContextManager[str]:
        if boot.cgroup is None:
            return nullcontext("")
        return control_group(boot.cgroup, NAME, allowed=self.allow_changes)


MACHINE = HostMachine
