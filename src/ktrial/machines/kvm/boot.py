"""One boot in real time: what QEMU is given, and the guest that comes of it."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ktrial.machines.host.cpu_affinity_cgroup import cpu_list
from ktrial.machines.host.target import cpu_model
from ktrial.machines.kvm.command_line import kernel_parameters, machine_arguments
from ktrial.machines.qemu import initramfs
from ktrial.machines.qemu.boot_files import BootFiles, boot_files
from ktrial.machines.qemu.command_line import (
    initrd_arguments,
    kernel_arguments,
    plan_arguments,
    snapshot_point_arguments,
)
from ktrial.machines.qemu.launch import check_memory, negotiate
from ktrial.machines.qemu.process import Children, QemuProcess, memory_file
from ktrial.machines.qemu.program import Qemu
from ktrial.machines.qemu.watchdog import Limits
from ktrial.model.boot import Boot, MachineIdentity
from ktrial.model.workload import Mode


@dataclass(frozen=True)
class RealTimeSetup:
    """A boot, ready to be started."""

    machine: str
    boot: Boot
    qemu: Qemu
    files: BootFiles
    arguments: tuple[str, ...]
    """QEMU's, without those that name files."""
    identity: MachineIdentity
    accelerated: bool
    """By KVM; else emulated."""

    @property
    def limits(self) -> Limits:
        """Guest nanoseconds and host seconds, which are the same here."""
        return Limits(self.boot.limit_instructions, self.boot.limit_seconds)


def set_up(boot: Boot, qemu: Qemu, guest: Path, machine: str, *, accelerated: bool) -> RealTimeSetup:
    """Find and check everything. Raises MachineError, GuestProgramsMissing, or GuestEnded (not a kernel)."""
    files = boot_files(boot, guest, machine)
    arguments = machine_arguments(boot, accelerated=accelerated)
    pinned = (f"pin={cpu_list(set(boot.pin))}",) if boot.pin else ()
    identity = MachineIdentity(
        machine=machine,
        mode=Mode.TIMED if accelerated else Mode.EMULATED_TIME,
        qemu=qemu.build,
        cpu_model=cpu_model() if accelerated else "max (emulated)",
        arguments=(*arguments, *pinned),
        command_line=kernel_parameters(boot, accelerated=accelerated),
        agent_digest=files.agent_digest,
    )
    return RealTimeSetup(machine, boot, qemu, files, arguments, identity, accelerated)


@contextlib.contextmanager
def switched_on(setup: RealTimeSetup, children: Children, plan: bytes) -> Iterator[QemuProcess]:
    """A guest at its first instruction, stopped; once it runs it does the plan.

    Raises Unstarted or TooSmall.
    """
    with memory_file("ktrial-initrd") as initrd, memory_file("ktrial-plan", plan) as planned:
        initramfs.write(setup.files.entries, initrd, setup.machine)
        check_memory(setup.boot, initrd)
        arguments = (
            *setup.arguments,
            *kernel_arguments(setup.files.kernel, setup.identity.command_line),
            *initrd_arguments(initrd),
            *plan_arguments(planned),
            *snapshot_point_arguments(stops=False),
        )
        files, cpus = (initrd, planned), setup.boot.pin
        with QemuProcess(setup.qemu, arguments, files, children, lockstep=False, cpus=cpus) as process:
            negotiate(process)
            yield process
