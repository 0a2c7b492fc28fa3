"""What comes with ktrial as data: the guest's own programs, and what is loaded into QEMU."""

from pathlib import Path

from ktrial.installation import package_directory
from ktrial.target.errors import GuestProgramsMissing

AGENT = "agent"
WORK = "work"
LOCKSTEP = "lockstep.so"
AGENT_IN_GUEST = "/init"
WORK_IN_GUEST = "/ktrial/work"
"""Where workloads find the program with the built-in ones."""


def directory(architecture: str = "x86_64") -> Path:
    """Where the programs for an architecture are."""
    return package_directory() / "_guest" / architecture


def programs(where: Path) -> dict[str, Path]:
    """Path in the guest → program on the host. Raises GuestProgramsMissing."""
    missing = [name for name in (AGENT, WORK) if not (where / name).is_file()]
    if missing:
        raise GuestProgramsMissing(architecture=where.name, directory=where, missing=" and ".join(missing))
    return {AGENT_IN_GUEST: where / AGENT, WORK_IN_GUEST: where / WORK}


def lockstep() -> Path:
    """The object that is preloaded into QEMU (crates/lockstep). Raises GuestProgramsMissing."""
    where = directory()
    if not (where / LOCKSTEP).is_file():
        raise GuestProgramsMissing(architecture=where.name, directory=where, missing=LOCKSTEP)
    return where / LOCKSTEP
