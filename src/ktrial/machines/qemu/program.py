"""QEMU: finding the program, and telling which build it is."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ktrial.file_digests import digest_of_bytes, digest_of_file
from ktrial.machines.errors import HostProblem, MachineToolMissing, QemuUnusable, VariableNamesNoProgram
from ktrial.system_tools import Tool, missing_of, packages_of
from ktrial.text_lines import lines_of

PROGRAM = "qemu-system-x86_64"
VARIABLE = "KTRIAL_QEMU"
PACKAGE = "qemu-system-x86"
OLDEST = (6, 2)
"""Older ones are not tested. `-action panic=pause`, which the snapshot point needs, is there since 6.0."""
Version = tuple[int, int, int]
_FIRMWARE = ("bios-256k.bin", "kvmvapic.bin", "linuxboot_dma.bin", "pvh.bin")
_PATIENCE = 20.0


@dataclass(frozen=True)
class Qemu:
    """One build of QEMU."""

    program: Path
    version: Version
    text: str
    """Version and distribution's package: `7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)`."""
    digest: str
    """SHA-256 of the program."""
    firmware: str
    """SHA-256 over the firmware that the PC machine runs before the kernel."""

    @property
    def build(self) -> str:
        """What a result names: the version, its package, and the program's hash."""
        return f"{self.text} sha256:{self.digest}"


def has_to_agree(installed: Qemu, guest: str, mode: str) -> dict[str, str]:
    """What two systems must have in common to count the same: in words → what this one has.

    `guest`: the digest of all guest programs. `mode`: what counts.
    """
    return {
        "QEMU": installed.build,
        "QEMU's firmware": installed.firmware,
        "the guest's programs": guest,
        "what counts": mode,
    }


def find(machine: str = "exact") -> Qemu:
    """The QEMU that `KTRIAL_QEMU` names, or else the first `qemu-system-x86_64` in PATH.

    Raises MachineToolMissing, QemuUnusable (it does not run, or is not QEMU) or HostProblem.
    """
    return _probe(_program(machine), machine)


@lru_cache
def cpu_flags(program: Path) -> frozenset[str]:
    """The CPUID flags that this QEMU has names for: `-cpu max,-NAME` fails with any other."""
    return frozenset(_output(program, "exact", "-cpu", "help").partition("CPUID flags:")[2].split())


def version_in(text: str) -> Version | None:
    """The version in what `--version` prints; None where it is not QEMU's."""
    match = re.match(r"QEMU emulator version (\d+)\.(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def _program(machine: str) -> Path:
    named = os.environ.get(VARIABLE, "")
    path = shutil.which(named or PROGRAM)
    if path:
        return Path(path)
    if named:
        raise VariableNamesNoProgram(variable=VARIABLE, program=named)
    raise MachineToolMissing(machine=machine, program=PROGRAM, where="in PATH", package=PACKAGE)


@lru_cache
def _probe(program: Path, machine: str) -> Qemu:
    first = _output(program, machine, "--version").partition("\n")[0]
    version = version_in(first)
    if version is None:
        raise _unusable(machine, program, f"is not QEMU: it says {first!r}")
    if version < OLDEST:
        needed = ".".join(str(part) for part in OLDEST)
        raise HostProblem(
            f"Machine {machine} needs QEMU {needed} or later; {program} is {'.'.join(map(str, version))}.",
            hint="install a later one; one that is not the first in PATH is named with "
            "KTRIAL_QEMU=/path/to/program",
        )
    text = first.removeprefix("QEMU emulator version ")
    return Qemu(program, version, text, digest_of_file(program), _firmware(program, machine))


def _firmware(program: Path, machine: str) -> str:
    directories = [Path(line) for line in lines_of(_output(program, machine, "-L", "help"))]
    digests = {
        name: next((digest_of_file(d / name) for d in directories if (d / name).is_file()), "")
        for name in _FIRMWARE
    }
    return digest_of_bytes(repr(sorted(digests.items())).encode())


def _output(program: Path, machine: str, *arguments: str) -> str:
    try:
        finished = subprocess.run(
            [program, *arguments], capture_output=True, text=True, timeout=_PATIENCE, check=True
        )
    except subprocess.CalledProcessError as error:
        lines = lines_of((error.stderr or error.stdout or "").strip())
        problem = f"fails with status {error.returncode}: {lines[-1] if lines else 'it says nothing'}"
    except subprocess.TimeoutExpired:
        problem = f"does not answer {' '.join(arguments)} within {_PATIENCE:.0f} s"
    except OSError as error:
        problem = f"cannot be run: {error.strerror}"
    else:
        return finished.stdout
    raise _unusable(machine, program, problem)


def _unusable(machine: str, program: Path, problem: str) -> QemuUnusable:
    hint = VariableNamesNoProgram.hint.format(variable=VARIABLE) if os.environ.get(VARIABLE) else ""
    return QemuUnusable(machine=machine, program=program, problem=problem, hint=hint)


# The programs that every machine of QEMU's runs here, QEMU itself among them.

CPIO = Tool("cpio", "cpio", "packs the guest's first file system")
SETPRIV = Tool("setpriv", "util-linux", "ends QEMU when ktrial ends")
TASKSET = Tool("taskset", "util-linux", "keeps QEMU on the CPUs that the study names")


def qemu_tools(*more: Tool) -> tuple[Tool, ...]:
    """What a machine needs that boots guests; `more`: what this one needs beside."""
    named = os.environ.get(VARIABLE, "")
    qemu = Tool(named or PROGRAM, PACKAGE, "boots the kernels", variable=VARIABLE if named else "")
    return (qemu, CPIO, SETPRIV, *more)


def check(machine: str, *more: Tool) -> Qemu:
    """The QEMU that is here. Raises MachineToolMissing, HostProblem."""
    installed = find(machine)
    if missing := missing_of(qemu_tools(*more)):
        names = ", ".join(tool.name for tool in missing)
        raise MachineToolMissing(
            machine=machine, program=names, where="in PATH", package=packages_of(missing)
        )
    return installed
