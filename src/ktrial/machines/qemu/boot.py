"""What every machine of QEMU's boots with: kernel and initial RAM disk, hashed; and the start."""

import os
from dataclasses import dataclass
from pathlib import Path

from ktrial.file_digests import digest_of_file, has_digest
from ktrial.machines.errors import FileChanged, MachineError, QemuGone
from ktrial.machines.guest_programs import TASKS_IN_GUEST, WORK_IN_GUEST, programs
from ktrial.machines.qemu import initramfs
from ktrial.machines.qemu.process import QemuProcess
from ktrial.model.machine import Boot
from ktrial.model.trial import Outcome
from ktrial.target.errors import GuestEnded
from ktrial.target.guest_plan import BootModule, BootPlan


@dataclass(frozen=True)
class BootFiles:
    """The files of one boot."""

    kernel: Path
    """What is booted: the ELF image through its PVH note where there is one, else the bzImage."""
    kernel_digest: str
    entries: tuple[initramfs.InitramfsEntry, ...]
    """The initial RAM disk's files."""

    @property
    def agent_digest(self) -> str:
        """Of the guest's first program."""
        return next(entry.digest for entry in self.entries if entry.guest == "/init")

    @property
    def executed(self) -> dict[str, str]:
        """The digests of what the guest executes."""
        programs = {"/init": "agent", WORK_IN_GUEST: "workloads", TASKS_IN_GUEST: "tasks"}
        return {
            "image": self.kernel_digest,
            "initial RAM disk": initramfs.manifest_digest(self.entries),
            **{programs[one.guest]: one.digest for one in self.entries if one.guest in programs},
        }


def boot_files(boot: Boot, guest: Path, machine: str) -> BootFiles:
    """Find and hash them. Raises MachineError, GuestProgramsMissing, or GuestEnded (not a kernel)."""
    kernel, digest = _kernel(boot, machine)
    return BootFiles(kernel, digest, initramfs.entries(boot, programs(guest), _boot_plan(boot), machine))


def _kernel(boot: Boot, machine: str) -> tuple[Path, str]:
    path, known = boot.kernel.vmlinux or boot.kernel.image, boot.kernel.boot_image
    try:
        size = path.stat().st_size
        digest = digest_of_file(path)
    except OSError as error:
        text = f"the kernel's image {path} cannot be read: {error.strerror}"
        raise MachineError(machine=machine, problem=text) from None
    if known and size < known.size:
        reason = f"{path} is not a kernel for this machine: it is cut short: {size} bytes of {known.size}"
        raise GuestEnded(outcome=Outcome.NOT_A_KERNEL.value, reason=reason, console="", results=())
    if known and known.digest and not has_digest(path, known.digest):
        raise FileChanged(machine=machine, path=path, before=known.digest[:12], now=digest[:12])
    return path, digest


def _boot_plan(boot: Boot) -> bytes:
    modules = tuple(BootModule(path=path) for path in initramfs.module_paths(boot))
    return BootPlan(settle_ns=boot.settle_ns, modules=modules).model_dump_json().encode()


MOMENT = 2.0
"""Seconds in which a QEMU whose monitor has closed is expected to be gone."""


class Unstarted(Exception):
    """QEMU ended before the guest's first instruction."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status
        self.said = said


class TooSmall(Exception):
    """The guest's memory cannot hold kernel and initial RAM disk: QEMU would lay one over the other."""

    def __init__(self, needed: int, memory: int) -> None:
        super().__init__(f"{needed} of {memory} bytes")
        self.needed = needed
        self.memory = memory


def check_memory(boot: Boot, initrd: int) -> None:
    """Raise TooSmall where kernel and initial RAM disk (an open file) do not fit."""
    known = boot.kernel.boot_image
    needed = (known.memory_end if known else 0) + os.fstat(initrd).st_size
    memory = boot.memory_mib << 20
    if needed > memory:
        raise TooSmall(needed, memory)


def negotiate(process: QemuProcess) -> None:
    """Make the process's monitor ready. Raises Unstarted where QEMU ended instead."""
    try:
        process.negotiate()
    except QemuGone:
        process.check_stopped()
        # The connection closes a little before the process ends: its own status tells more than our signal's.
        process.ended_within(MOMENT)
        process.kill()
        raise Unstarted(process.wait(), process.said()) from None
