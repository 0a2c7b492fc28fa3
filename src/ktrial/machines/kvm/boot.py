"""One boot in real time: what QEMU is given, and the guest that comes of it."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ktrial.machines.errors import QemuGone
from ktrial.machines.exact.command_line import snapshot_point_arguments
from ktrial.machines.exact.launch import TooSmall, Unstarted
from ktrial.machines.exact.setup import prepare
from ktrial.machines.host.cpu_affinity_cgroup import cpu_list
from ktrial.machines.host.target import cpu_model
from ktrial.machines.kvm.command_line import kernel_parameters, machine_arguments
from ktrial.machines.qemu import initramfs, kernel_image
from ktrial.machines.qemu.process import Children, QemuProcess, inherited_path, memory_file
from ktrial.machines.qemu.program import Qemu
from ktrial.machines.qemu.watchdog import Limits
from ktrial.model.boot import Boot, MachineIdentity
from ktrial.model.workload import Mode
from ktrial.target.guest_plan import PLAN_FW_CFG_NAME


@dataclass(frozen=True)
class RealTimeSetup:
    """A boot, ready to be started."""

    machine: str
    boot: Boot
    qemu: Qemu
    kernel: Path
    entries: tuple[initramfs.Entry, ...]
    """The initial RAM disk's files."""
    identity: MachineIdentity
    accelerated: bool
    """By KVM; else emulated."""

    @property
    def limits(self) -> Limits:
        """Guest nanoseconds and host seconds, which are the same here."""
        return Limits(self.boot.limit_instructions, self.boot.limit_seconds)


def set_up(boot: Boot, qemu: Qemu, guest: Path, machine: str, *, accelerated: bool) -> RealTimeSetup:
    """Find and check everything. Raises MachineError, GuestProgramsMissing, or GuestEnded (not a kernel)."""
    # Exact mode finds kernel and files; how many CPUs it could count on does not matter here.
    found = prepare(boot.model_copy(update={"cpus": 1}), qemu, guest, machine)
    pinned = (f"pin={cpu_list(set(boot.pin))}",) if boot.pin else ()
    identity = MachineIdentity(
        machine=machine,
        mode=Mode.TIMED if accelerated else Mode.EMULATED_TIME,
        qemu=qemu.build,
        cpu_model=cpu_model() if accelerated else "max (emulated)",
        arguments=(*machine_arguments(boot, accelerated=accelerated), *pinned),
        command_line=kernel_parameters(boot, accelerated=accelerated),
        agent_digest=found.identity.agent_digest,
    )
    return RealTimeSetup(machine, boot, qemu, found.kernel, found.entries, identity, accelerated)


@contextlib.contextmanager
def switched_on(setup: RealTimeSetup, children: Children, plan: bytes) -> Iterator[QemuProcess]:
    """A guest at its first instruction, stopped; once it runs it does the plan.

    Raises Unstarted or TooSmall.
    """
    memory = setup.boot.memory_mib << 20
    with memory_file("ktrial-initrd") as initrd, memory_file("ktrial-plan", plan) as planned:
        initramfs.write(setup.entries, initrd, setup.machine)
        needed = kernel_image.memory_end(setup.kernel) + os.fstat(initrd).st_size
        if needed > memory:
            raise TooSmall(needed, memory)
        parameters = kernel_parameters(setup.boot, accelerated=setup.accelerated)
        arguments = (
            *machine_arguments(setup.boot, accelerated=setup.accelerated),
            *("-S", "-kernel", str(setup.kernel), "-append", parameters),
            *("-initrd", inherited_path(initrd)),
            *("-fw_cfg", f"name={PLAN_FW_CFG_NAME},file={inherited_path(planned)}"),
            *snapshot_point_arguments(stops=False),
        )
        files, cpus = (initrd, planned), setup.boot.pin
        with QemuProcess(setup.qemu, arguments, files, children, lockstep=False, cpus=cpus) as process:
            try:
                process.negotiate()
            except QemuGone:
                process.check_stopped()
                process.kill()
                raise Unstarted(process.wait(), process.said()) from None
            yield process
