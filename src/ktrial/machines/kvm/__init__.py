"""The machine `kvm`: the kernels, the agent and the workloads of exact mode, in real time.

Each `perform` is one boot, so that no workload finds what another left behind, and every boot draws its own
address-space layout. Where KVM is of no use here, and the study says that this will do, the guest is
emulated: its times say little about any hardware, and every number is marked so.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ktrial.machines import guest_programs
from ktrial.machines.errors import KvmUnusable
from ktrial.machines.host.cpu_affinity_cgroup import check_pin
from ktrial.machines.kvm import probe as kvm_probe
from ktrial.machines.kvm.target import RealTimeSetup, RealTimeTarget, set_up
from ktrial.machines.protocol import Progress
from ktrial.machines.qemu import program as qemu
from ktrial.machines.qemu import tools
from ktrial.machines.qemu.process import Children
from ktrial.model.machine import Boot
from ktrial.model.workload import Mode
from ktrial.system_tools import Tool

NAME = "kvm"


class KvmMachine:
    """Trials in QEMU, in real time."""

    name = NAME
    host_matters = True
    """What else this host does can change the numbers: it is looked at before each trial."""

    def __init__(self, guest: Path | None = None, probe: kvm_probe.KvmProbe | None = None) -> None:
        """`guest`: another place for the guest programs. `probe`: what is known of KVM already."""
        self._guest = guest or guest_programs.directory()
        self._children = Children(NAME)
        self._probed = probe

    @property
    def needed_tools(self) -> tuple[Tool, ...]:
        """Programs of this system."""
        return tools.qemu_tools(tools.TASKSET)

    @property
    def mode(self) -> Mode:
        """Timed where KVM is of use, else emulated time. The first look tries KVM, for some seconds."""
        return Mode.TIMED if self.probe.usable else Mode.EMULATED_TIME

    @property
    def probe(self) -> kvm_probe.KvmProbe:
        """Whether KVM is of use here, and how that was found out."""
        if self._probed is None:
            self._probed = kvm_probe.probe()
        return self._probed

    def check(self) -> None:
        """Raise MachineError or GuestProgramsMissing where something is missing; KVM is tried."""
        self._children.check()
        tools.check(NAME, tools.TASKSET)
        guest_programs.programs(self._guest)
        _ = self.probe

    def prepare(self, boot: Boot, progress: Progress) -> None:
        """Find and check everything; nothing is kept. Raises MachineError, KvmUnusable, GuestEnded."""
        progress("checking the kernel")
        self._set_up(boot)

    @contextmanager
    def start(self, boot: Boot) -> Iterator[RealTimeTarget]:
        """Yield a target whose every `perform` is a boot. Raises MachineError, KvmUnusable, GuestEnded."""
        yield RealTimeTarget(self._set_up(boot), self._children)

    def stop(self) -> None:
        """End all at once; this machine is of no more use."""
        self._children.stop()

    def _set_up(self, boot: Boot) -> RealTimeSetup:
        self._children.check()
        if not self.probe.usable and not boot.allow_emulated_time:
            raise KvmUnusable(machine=NAME, reason=self.probe.reason)
        check_pin(boot.pin, NAME)
        return set_up(boot, qemu.find(NAME), self._guest, NAME, accelerated=self.probe.usable)


MACHINE = KvmMachine
