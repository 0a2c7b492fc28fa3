"""What every machine of QEMU's boots: the kernel's file and the initial RAM disk's, found and hashed."""

from dataclasses import dataclass
from pathlib import Path

from ktrial.file_digests import digest_of_file
from ktrial.machines.errors import MachineError
from ktrial.machines.guest_programs import programs
from ktrial.machines.qemu import initramfs
from ktrial.model.boot import Boot
from ktrial.model.trial import Outcome
from ktrial.target.errors import GuestEnded
from ktrial.target.guest_plan import BootModule, BootPlan


@dataclass(frozen=True)
class BootFiles:
    """The files of one boot."""

    kernel: Path
    """What is booted: the ELF image through its PVH note where there is one, else the bzImage."""
    kernel_digest: str
    entries: tuple[initramfs.Entry, ...]
    """The initial RAM disk's files."""

    @property
    def agent_digest(self) -> str:
        """Of the guest's first program."""
        return next(entry.digest for entry in self.entries if entry.guest == "/init")


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
    return path, digest


def _boot_plan(boot: Boot) -> bytes:
    modules = tuple(BootModule(path=path) for path in initramfs.module_paths(boot))
    return BootPlan(settle_ns=boot.settle_ns, modules=modules).model_dump_json().encode()
