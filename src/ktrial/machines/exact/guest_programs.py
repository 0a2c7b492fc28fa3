"""The guest's own programs, which come with ktrial: the agent and the built-in workloads."""

from pathlib import Path

import ktrial
from ktrial.errors import GuestProgramsMissing

AGENT = "agent"
WORK = "work"
WORK_IN_GUEST = "/ktrial/work"
"""Where workloads find the program with the built-in ones."""


def directory(architecture: str = "x86_64") -> Path:
    """Where the programs for an architecture are."""
    return Path(ktrial.__file__).parent / "_guest" / architecture


def programs(where: Path) -> dict[str, Path]:
    """Path in the guest → program on the host. Raises GuestProgramsMissing."""
    missing = [name for name in (AGENT, WORK) if not (where / name).is_file()]
    if missing:
        raise GuestProgramsMissing(architecture=where.name, directory=where, missing=" and ".join(missing))
    return {"/init": where / AGENT, WORK_IN_GUEST: where / WORK}
