"""What comes with ktrial as data: the guest's own programs, and what is loaded into QEMU."""

from collections.abc import Mapping
from pathlib import Path

from ktrial.file_digests import digest_of_bytes, digest_of_file
from ktrial.installation import package_directory
from ktrial.target.errors import GuestProgramsMissing

AGENT = "agent"
WORK = "work"
TASKS = "tasks"
LOCKSTEP = "lockstep.so"
COALESCE = "coalesce.so"
KSYMBOLS = "ksymbols"
PARALLEL = "parallel.so"
REWIND = "rewind.so"
UNPACK = "unpack"
PUBLISHED = "SHA256SUMS"
"""Their digests as the compiler that is pinned builds them (crates/SHA256SUMS)."""
AGENT_IN_GUEST = "/init"
_KTRIAL_PROGRAMS = (
    "agent",
    "workloads",
    "tasks",
    "unpack",
    "lockstep",
    "coalesce",
    "parallel",
    "plugin",
    "rewind",
)
WORK_IN_GUEST = "/ktrial/work"
"""Where workloads find the program with the built-in ones."""
TASKS_IN_GUEST = "/usr/lib/ktrial/tasks"
"""Where those of several tasks find theirs, which they bring along."""

AGENT_THAT_WAITS = "/ktrial/agent"
"""Where the agent is, as long as another program is `/init`: that puts it there, and starts it."""


def directory(architecture: str = "x86_64") -> Path:
    """Where the programs for an architecture are."""
    return package_directory() / "_guest" / architecture


def programs(where: Path) -> dict[str, Path]:
    """Path in the guest → program on the host. Raises GuestProgramsMissing."""
    missing = [name for name in (AGENT, WORK) if not (where / name).is_file()]
    if missing:
        raise GuestProgramsMissing(architecture=where.name, directory=where, missing=" and ".join(missing))
    return {AGENT_IN_GUEST: where / AGENT, WORK_IN_GUEST: where / WORK}


def programs_before_files(where: Path) -> dict[str, Path]:
    """The same of a guest that is given files after its kernel has booted. Raises GuestProgramsMissing."""
    usual = programs(where)
    return {AGENT_IN_GUEST: unpack(), AGENT_THAT_WAITS: usual.pop(AGENT_IN_GUEST), **usual}


def published(where: Path) -> dict[str, str]:
    """Program → its digest as it is published; empty where no list came with the programs."""
    try:
        lines = (where / PUBLISHED).read_text(encoding="ascii", errors="replace").split("\n")
    except FileNotFoundError:
        return {}
    # Of a line that was damaged, no program has the digest: it is told as one that is not the published one.
    rows = [line.split() for line in lines if not line.startswith("#")]
    return {row[1]: row[0] for row in rows if len(row) == 2}


def unpublished(where: Path) -> tuple[str, ...]:
    """The programs that are there and are others than the published ones, by name."""
    digests, paths = published(where), sorted(path for path in where.glob("*") if path.name != PUBLISHED)
    return tuple(path.name for path in paths if digests.get(path.name) != digest_of_file(path))


def unpublished_digests(executed: Mapping[str, str]) -> tuple[str, ...]:
    """What was executed of ktrial's own (a trial's provenance names it) and is not as it is published."""
    digests = set(published(directory()).values())
    return tuple(name for name in _KTRIAL_PROGRAMS if name in executed and executed[name] not in digests)


def digest_of_all(where: Path) -> str:
    """One digest of all the programs there are, with their names: another build of one makes it another.

    Raises OSError.
    """
    files = sorted(path for path in where.glob("*") if path.name != PUBLISHED and path.is_file())
    return digest_of_bytes("".join(f"{path.name} {digest_of_file(path)}\n" for path in files).encode())


def lockstep() -> Path:
    """The object that is preloaded into QEMU (crates/lockstep). Raises GuestProgramsMissing."""
    return _program_file(LOCKSTEP)


def coalesce() -> Path:
    """Preloaded as well: writes a guest's bytes in pieces. Raises GuestProgramsMissing."""
    return _program_file(COALESCE)


def rewind() -> Path:
    """Preloaded where a QEMU serves many trials (crates/rewind). Raises GuestProgramsMissing."""
    return _program_file(REWIND)


def ksymbols() -> Path:
    """The program that tells the names of generated code (crates/ksymbols). Raises GuestProgramsMissing."""
    return _program_file(KSYMBOLS)


def parallel() -> Path:
    """What is preloaded into QEMU, and its plugin (crates/parallel). Raises GuestProgramsMissing."""
    return _program_file(PARALLEL)


def tasks() -> Path:
    """The program of workloads of several tasks, and of `tasks delays`. Raises GuestProgramsMissing."""
    return _program_file(TASKS)


def unpack() -> Path:
    """What puts a workload's files into the guest (crates/unpack). Raises GuestProgramsMissing."""
    return _program_file(UNPACK)


def _program_file(name: str) -> Path:
    where = directory()
    if not (where / name).is_file():
        raise GuestProgramsMissing(architecture=where.name, directory=where, missing=name)
    return where / name
