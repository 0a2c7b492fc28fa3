"""QEMUs of other Debian releases, unpacked side by side from the archives that this system's apt knows."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ktrial.kernels import silent
from ktrial.kernels.packages.apt import Package, PrivateApt
from ktrial.kernels.packages.deb import unpack
from ktrial.kernels.providers.debian import debian_archives, system_sources

_NEEDED = ("qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios")
_NAME = "another QEMU"
_PROGRAM = "usr/bin/qemu-system-x86_64"


@dataclass(frozen=True)
class OtherQemu:
    """One that was unpacked, and why it cannot be run here; empty where it can."""

    program: Path
    problem: str


def unpacked(version: str, directory: Path) -> OtherQemu:
    """The newest QEMU of a version (`10.0`) that runs with this system's libraries.

    Raises KernelError where apt knows no archive, or cannot fetch.
    """
    apt = PrivateApt(directory / "apt", "Debian", "amd64", f"^({'|'.join(_NEEDED)})$")
    packages = apt.packages(debian_archives(_NAME, system_sources(_NAME)), _NAME, silent)
    qemu = OtherQemu(Path(_PROGRAM), f"no suite that apt reaches has QEMU {version}")
    for program in _builds(version, packages):
        root = directory / f"{program.suite}-{program.version.replace('/', '_')}"
        qemu = _usable(root, _with_its_parts(program, packages), apt)
        if not qemu.problem:
            break
    return qemu


def _builds(version: str, packages: tuple[Package, ...]) -> list[Package]:
    programs = [each for each in packages if each.name == _NEEDED[0]]
    return [each for each in programs if each.version.partition(":")[2].startswith(f"{version}.")] or [
        each for each in programs if each.version.partition(":")[2].startswith(f"{version}+")
    ]


def _with_its_parts(program: Package, packages: tuple[Package, ...]) -> list[Package]:
    parts = {each.name: each for each in packages if each.suite == program.suite}
    return [program, *(parts[name] for name in _NEEDED[1:] if name in parts)]


def _usable(root: Path, wanted: list[Package], apt: PrivateApt) -> OtherQemu:
    program = root / _PROGRAM
    if not program.exists():
        files = root.with_name(f"{root.name}.debs")
        files.mkdir(parents=True)
        for file in apt.download(wanted, files, _NAME, silent):
            unpack(file, root)
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(
        [program, "--version"], capture_output=True, text=True, check=False, env=environment
    )
    return OtherQemu(program, done.stderr.strip().partition("\n")[0] if done.returncode else "")
