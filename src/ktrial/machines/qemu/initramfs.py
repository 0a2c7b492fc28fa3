"""The initial RAM disk: agent, workloads, carried files and modules. Same inputs, same bytes.

GNU cpio writes the archive (`--reproducible`, owner 0:0), from a copy of the files whose times are set to 0.
Carried links keep their targets. A file whose path leads through one lies where the link leads, and no file
is written here through a link: where a path leads is found out from the links' texts alone.
"""

import os
import posixpath
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ktrial.file_digests import digest_of_bytes, digest_of_file
from ktrial.machines.errors import FileToCarry, MachineError, MachineToolMissing
from ktrial.model.base import digest
from ktrial.model.machine import Boot, CarriedFile, guest_path_problem
from ktrial.target import BOOT_PLAN_PATH

FORMAT = 1
"""Raised when the same entries make other bytes: a snapshot's key holds it."""
BALLAST = "/ktrial/ballast"
_DIRECTORIES = ("/dev", "/proc", "/sys", "/tmp")
_COMMAND = ("cpio", "--create", "--format=newc", "--reproducible", "--owner=+0:+0", "--null", "--quiet")
_MOST_LINKS = 40
"""Those that a kernel follows for one path (MAXSYMLINKS)."""


@dataclass(frozen=True)
class InitramfsEntry:
    """One file of the archive; by its mode a directory (no source), or a link (its target)."""

    guest: str
    mode: int
    source: Path | bytes

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory that was asked for; the others are made as needed."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return stat.S_ISLNK(self.mode)

    @property
    def digest(self) -> str:
        """SHA-256 of the content. Raises OSError where the host's file is not readable."""
        return digest_of_bytes(self.source) if isinstance(self.source, bytes) else digest_of_file(self.source)


def entries(
    boot: Boot, programs: dict[str, Path], boot_file: bytes, machine: str
) -> tuple[InitramfsEntry, ...]:
    """Every file of the archive, in its order. Raises FileToCarry."""
    by_path = {guest: InitramfsEntry(guest, 0o755, host) for guest, host in programs.items()}
    by_path[BOOT_PLAN_PATH] = InitramfsEntry(BOOT_PLAN_PATH, 0o644, boot_file)
    if boot.initrd_padding:
        by_path[BALLAST] = InitramfsEntry(BALLAST, 0o644, bytes(boot.initrd_padding))
    links = _links(boot, machine)
    by_path |= links
    for host, path in zip(boot.modules, module_paths(boot), strict=True):
        guest = _real_path(host, path, links, machine)
        by_path[guest] = _module(host, guest, machine)
    for carried in boot.files:
        if not carried.link:
            entry = _carried(carried, links, machine)
            by_path[entry.guest] = entry
    return tuple(by_path[guest] for guest in sorted(by_path))


def _carried(carried: CarriedFile, links: dict[str, InitramfsEntry], machine: str) -> InitramfsEntry:
    guest = _real_path(carried.host, carried.guest, links, machine)
    if carried.directory:
        return InitramfsEntry(guest, stat.S_IFDIR | carried.mode | 0o500, b"")
    return InitramfsEntry(guest, carried.mode | 0o400, _regular(carried.host, machine))


def _links(boot: Boot, machine: str) -> dict[str, InitramfsEntry]:
    """The carried links by their paths, none of which leads through another one of them."""
    targets = {
        _guest_path(carried.host, carried.guest, machine): carried.link.encode()
        for carried in boot.files
        if carried.link
    }
    raw = {guest: InitramfsEntry(guest, stat.S_IFLNK | 0o777, target) for guest, target in targets.items()}
    links = {}
    for guest in raw:
        above, _, name = guest.rpartition("/")
        real = f"{_real_path(Path(guest), above, raw, machine) if above else ''}/{name}"
        if real in raw:
            links[real] = raw[real]
    return links


def _real_path(host: Path, guest: str, links: dict[str, InitramfsEntry], machine: str) -> str:
    """Where the guest has what is carried to `guest`: the links on the way followed. Raises FileToCarry."""
    path = _guest_path(host, guest, machine)
    targets = {
        link: entry.source.decode() for link, entry in links.items() if isinstance(entry.source, bytes)
    }
    try:
        real = followed(path, targets)
    except TooManyLinks:
        problem = f"{guest} leads through symbolic links in a circle"
        raise FileToCarry(machine=machine, path=host, problem=problem) from None
    return path if real == path else _guest_path(host, real, machine)


def module_paths(boot: Boot) -> tuple[str, ...]:
    """Where the guest finds the boot's modules; numbered, for two modules may have files of one name."""
    directory = f"/lib/modules/{boot.kernel.release}"
    return tuple(f"{directory}/{n:03}-{path.name}" for n, path in enumerate(boot.modules))


def manifest_digest(files: tuple[InitramfsEntry, ...]) -> str:
    """SHA-256 over names, modes and contents: the archive's identity, without making the archive."""
    return digest([FORMAT, [[entry.guest, entry.mode, entry.digest] for entry in files]])


def write(files: tuple[InitramfsEntry, ...], output: int, machine: str) -> None:
    """Write the archive to the open file `output`. Raises MachineError or MachineToolMissing."""
    if not shutil.which(_COMMAND[0]):
        raise MachineToolMissing(machine=machine, program=_COMMAND[0], where="in PATH", package="cpio")
    with tempfile.TemporaryDirectory(prefix="ktrial-initramfs-") as staging:
        root = Path(staging)
        try:
            names = _stage(files, root)
        except OSError as error:
            problem = f"{error.strerror}: {error.filename}"
            raise MachineError(
                machine=machine, problem=f"cannot stage the initial RAM disk: {problem}"
            ) from None
        finished = subprocess.run(
            _COMMAND, cwd=root, input=b"\0".join(names), stdout=output, stderr=subprocess.PIPE, check=False
        )
    if finished.returncode:
        message = finished.stderr.decode(errors="replace").strip()
        raise MachineError(
            machine=machine, problem=f"cpio fails with status {finished.returncode}: {message}"
        )


def _stage(files: tuple[InitramfsEntry, ...], root: Path) -> list[bytes]:
    for entry in files:
        if entry.is_link:
            continue
        place = root / entry.guest.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if entry.is_directory:
            place.mkdir(exist_ok=True)
            continue
        if isinstance(entry.source, bytes):
            place.write_bytes(entry.source)
        else:
            shutil.copyfile(entry.source, place)
        place.chmod(entry.mode)
    for directory in _DIRECTORIES:
        (root / directory.lstrip("/")).mkdir(parents=True, exist_ok=True)
    modes = {
        root / entry.guest.lstrip("/"): stat.S_IMODE(entry.mode) for entry in files if entry.is_directory
    }
    # Last, and never followed here: nothing may be written through one.
    for entry in files:
        if entry.is_link and isinstance(entry.source, bytes):
            place = root / entry.guest.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(entry.source.decode())
    paths = sorted(path for path in root.rglob("*"))
    for path in reversed(paths):
        if path.is_dir() and not path.is_symlink():
            path.chmod(modes.get(path, 0o755))
        os.utime(path, (0, 0), follow_symlinks=False)
    return [os.fsencode(path.relative_to(root)) for path in paths]


def _guest_path(host: Path, guest: str, machine: str) -> str:
    if problem := guest_path_problem(guest):
        raise FileToCarry(machine=machine, path=host, problem=problem)
    return str(PurePosixPath(guest))


def _regular(host: Path, machine: str) -> Path:
    try:
        mode = host.stat().st_mode
        with host.open("rb"):
            pass
    except OSError as error:
        raise FileToCarry(machine=machine, path=host, problem=str(error.strerror)) from None
    if not stat.S_ISREG(mode):
        raise FileToCarry(machine=machine, path=host, problem="it is not a regular file")
    return host


def _module(host: Path, guest: str, machine: str) -> InitramfsEntry:
    with _regular(host, machine).open("rb") as file:
        if file.read(4) != b"\x7fELF":
            raise FileToCarry(machine=machine, path=host, problem="a module must be an unpacked ELF file")
    return InitramfsEntry(guest, 0o644, host)


class TooManyLinks(Exception):
    """Links that lead in a circle, or through more than a kernel follows."""


def followed(path: str, targets: Mapping[str, str]) -> str:
    """The absolute path with every link on its way followed, its last part too. Raises TooManyLinks.

    `targets`: the path of a link → what it holds. A target that leads above the root means the root.
    """
    real, waiting, followed_links = "/", path.strip("/").split("/"), 0
    while waiting:
        part = waiting.pop(0)
        if part in {"", "."}:
            continue
        candidate = posixpath.dirname(real) if part == ".." else posixpath.join(real, part)
        target = targets.get(candidate)
        if target is None or part == "..":
            real = candidate
            continue
        followed_links += 1
        if followed_links > _MOST_LINKS:
            raise TooManyLinks
        real = "/" if target.startswith("/") else real
        waiting = [*target.split("/"), *waiting]
    return real
