"""Examines this machine: what ktrial needs, what is there, and the command that brings what is missing."""

import getpass
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from ktrial.errors import KtrialError
from ktrial.experiment.guest_storage import disk_tool
from ktrial.kernels.build.patches import PATCH
from ktrial.kernels.build.requests import asked_options, build_tools
from ktrial.kernels.depmod import DEPMOD
from ktrial.kernels.errors import BUBBLEWRAP, KernelError, NoDebianSource, NoSuchRelease
from ktrial.kernels.packages.apt import APT
from ktrial.kernels.packages.deb import DPKG_DEB
from ktrial.machines.errors import NoPluginHere
from ktrial.machines.qemu.program import CPIO, SETPRIV
from ktrial.model.base import Model
from ktrial.model.kernel import GUEST
from ktrial.model.study import Disk
from ktrial.package_names import INSTALL, on_this_system
from ktrial.system_tools import Tool, missing_of, packages_of
from ktrial.text_lines import lines_of
from ktrial.workloads.strace import STRACE

if TYPE_CHECKING:
    from ktrial.machines.qemu.program import Qemu

CheckProgress = Callable[[str], None]

_GIB = 1 << 30
_CACHE_ROOM = 2 * _GIB
"""Two kernels with their modules, and their snapshots."""
_STORE_ROOM = _GIB // 4
_MEMORY_ROOM = _GIB
"""One guest of 512 MiB, QEMU, and ktrial itself."""
_NO_SUCH_VERSION = "0"


class State(StrEnum):
    """What a check found."""

    FINE = "fine"
    LIMITED = "limited"
    """Something does not work, but exact mode does."""
    MISSING = "missing"
    """Exact mode cannot run."""


class SystemCheck(Model):
    """One thing that was looked at."""

    name: str
    state: State
    found: str
    remedy: str = ""
    """The command that brings what is missing, or what to do; empty where all is fine."""


def examine(progress: CheckProgress) -> Iterator[SystemCheck]:
    """Look at everything, one check after another. `progress` is told what takes long."""
    yield _python()
    yield from _qemu()
    yield _guest_programs()
    yield from (_tool(tool, State.MISSING) for tool in (CPIO, SETPRIV, DEPMOD))
    yield from (_tool(tool, State.LIMITED) for tool in (APT, DPKG_DEB, disk_tool(Disk()), STRACE))
    yield _kernel_builds()
    progress("asking the mirrors for their kernels")
    yield _debian_kernels()
    progress("trying KVM")
    yield _kvm()
    yield from _monitors(progress)
    yield _room("cache", _cache_directory(), _CACHE_ROOM, "KTRIAL_CACHE")
    yield _room("store", _store_directory(), _STORE_ROOM, "KTRIAL_STORE")
    yield _memory()


def _python() -> SystemCheck:
    return SystemCheck(
        name="Python", state=State.FINE, found=f"{platform.python_version()} ({sys.executable})"
    )


def _qemu() -> Iterator[SystemCheck]:
    from ktrial.machines.qemu import program as qemu

    try:
        program = qemu.find()
    except KtrialError as error:
        yield SystemCheck(name="QEMU", state=State.MISSING, found=error.message, remedy=error.advice)
        return
    yield SystemCheck(name="QEMU", state=State.FINE, found=f"{program.text} ({program.program})")
    yield _jail(program)
    yield _plugin(program)
    yield _several_cpus(program)


def _jail(program: "Qemu") -> SystemCheck:
    from ktrial.machines.qemu import jail

    name = "QEMU's jail"
    examined = jail.examined(program.program)
    if examined.lacks:
        remedy = "guests run without it, too; for strangers' kernels and programs, use a host that has it"
        return SystemCheck(name=name, state=State.LIMITED, found="; ".join(examined.lacks), remedy=remedy)
    user = f", as user {jail.TENANT}" if examined.is_tenant else ""
    whole = f"whole: few system calls, no new rights, limits on memory and files{user}"
    return SystemCheck(name=name, state=State.FINE, found=whole)


def _plugin(program: "Qemu") -> SystemCheck:
    from ktrial.machines import exact, guest_programs

    name = "QEMU plugin"
    try:
        build = exact.usable_plugin(program, guest_programs.directory(), "exact")
    except NoPluginHere as error:
        problem = f"{error.problem}; instructions are counted by the guest's clock instead"
        return SystemCheck(name=name, state=State.LIMITED, found=problem, remedy=error.advice)
    return SystemCheck(name=name, state=State.FINE, found=f"{build.path.name} loads, and counts by function")


def _several_cpus(program: "Qemu") -> SystemCheck:
    """The machine exact-parallel works with the inside of QEMU, of versions that it knows."""
    from ktrial.machines import exact_parallel
    from ktrial.machines.exact_parallel import NAME

    name = "several CPUs"
    try:
        exact_parallel.check_qemu(program, NAME)
    except KtrialError as error:
        return SystemCheck(name=name, state=State.LIMITED, found=error.message, remedy=error.advice)
    return SystemCheck(name=name, state=State.FINE, found=f"machine {NAME} knows the inside of this QEMU")


def _guest_programs() -> SystemCheck:
    from ktrial.machines import guest_programs

    where = guest_programs.directory()
    try:
        guest_programs.programs(where)
    except KtrialError as error:
        return SystemCheck(
            name="guest programs", state=State.MISSING, found=error.message, remedy=error.advice
        )
    unpublished = guest_programs.unpublished(where)
    if unpublished:
        text = (
            f"{where}: {', '.join(unpublished)} are not the published ones; "
            "numbers may differ in the last digits"
        )
        remedy = "rustup, which takes the compiler that rust-toolchain.toml names; then make guest"
        return SystemCheck(name="guest programs", state=State.LIMITED, found=text, remedy=remedy)
    return SystemCheck(name="guest programs", state=State.FINE, found=f"{where}, as they are published")


def _tool(tool: Tool, otherwise: State) -> SystemCheck:
    if path := tool.path():
        return SystemCheck(name=tool.name, state=State.FINE, found=path)
    problem = f"not installed; it {tool.purpose}"
    return SystemCheck(name=tool.name, state=otherwise, found=problem, remedy=_installing((tool,)))


def _kernel_builds() -> SystemCheck:
    """What builds a kernel in ktrial's own configuration for guests, with patches, in the sandbox."""
    name = "kernel builds"
    missing = missing_of((*build_tools(asked_options(GUEST, {}), {}), PATCH, BUBBLEWRAP))
    if not missing:
        return SystemCheck(name=name, state=State.FINE, found="all that builds kernels is installed")
    problem = f"not installed: {', '.join(tool.name for tool in missing)}"
    return SystemCheck(name=name, state=State.LIMITED, found=problem, remedy=_installing(missing))


def _installing(missing: Iterable[Tool]) -> str:
    return on_this_system(f"{INSTALL} {packages_of(missing)}")


def _debian_kernels() -> SystemCheck:
    """Ask for a version that no mirror has: the answer names those that there are."""
    from ktrial.kernels import kernel_registry

    name = "Debian kernels"
    try:
        kernel_registry.add(f"debian:{_NO_SUCH_VERSION}")
    except NoSuchRelease as error:
        return SystemCheck(name=name, state=State.FINE, found=error.advice)
    except NoDebianSource as error:
        problem = "this system's apt knows no Debian archive"
        return SystemCheck(name=name, state=State.LIMITED, found=problem, remedy=error.advice)
    except KernelError as error:
        problem = error.problem or error.message
        return SystemCheck(name=name, state=State.LIMITED, found=problem, remedy=error.advice)
    raise AssertionError(f"there is a kernel {_NO_SUCH_VERSION}")


def _kvm() -> SystemCheck:
    from ktrial.machines import kvm as kvm_probe

    kvm = kvm_probe.probe_kvm()
    if kvm.usable:
        return SystemCheck(name="KVM", state=State.FINE, found=f"usable: {kvm.reason}")
    return SystemCheck(
        name="KVM",
        state=State.LIMITED,
        found=f"not usable: {kvm.reason}",
        remedy=f"exact mode needs none; for the others: {_kvm_remedy(kvm_probe.DEVICE)}",
    )


def _kvm_remedy(device: Path) -> str:
    if not device.exists():
        return "switch virtualization on in the firmware, then sudo modprobe kvm_intel (or kvm_amd)"
    if not os.access(device, os.R_OK | os.W_OK):
        return f"sudo adduser {getpass.getuser()} kvm, then log in again"
    return "a host whose KVM runs guests (nested virtualization often does not)"


def _monitors(progress: CheckProgress) -> Iterator[SystemCheck]:
    """What can watch programs of this system, beside the kernel's own files."""
    from ktrial import monitors

    for name, monitor in monitors.installed_tracers().items():
        progress(f"trying the monitor {name}")
        try:
            prepared = monitor.prepare()
        except KtrialError as error:
            problem = str(error.facts.get("problem", error.message))
            remedy = str(error.facts.get("remedy", ""))
            yield SystemCheck(name=f"monitor {name}", state=State.LIMITED, found=problem, remedy=remedy)
        else:
            left_out = "".join(f"; {warning.text.removeprefix(f'{name}: ')}" for warning in prepared.warnings)
            yield SystemCheck(name=f"monitor {name}", state=State.FINE, found=f"{prepared.program}{left_out}")


def _cache_directory() -> Path:
    from ktrial.installation import cache_directory

    return cache_directory()


def _store_directory() -> Path | None:
    from ktrial.store.location import default_location

    where = default_location()
    return None if "://" in where else Path(where).expanduser().absolute().parent


def _room(name: str, directory: Path | None, needed: int, variable: str) -> SystemCheck:
    """Whether the directory, or what it will be made in, can be written and has room."""
    if directory is None:
        return SystemCheck(name=f"{name} directory", state=State.FINE, found="on a server")
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    if not os.access(existing, os.W_OK | os.X_OK) or not existing.is_dir():
        problem = f"{directory} cannot be written"
        return SystemCheck(
            name=f"{name} directory", state=State.MISSING, found=problem, remedy=f"set {variable}"
        )
    free = shutil.disk_usage(existing).free
    enough = free >= needed
    return SystemCheck(
        name=f"{name} directory",
        state=State.FINE if enough else State.LIMITED,
        found=f"{directory}, {free / _GIB:.1f} GiB free",
        remedy="" if enough else f"free {needed / _GIB:.2g} GiB there, or set {variable}",
    )


def _memory() -> SystemCheck:
    lines = lines_of(Path("/proc/meminfo").read_text())
    facts = dict(line.split(":", 1) for line in lines)
    available = int(facts["MemAvailable"].split()[0]) * 1024
    enough = available >= _MEMORY_ROOM
    return SystemCheck(
        name="memory",
        state=State.FINE if enough else State.LIMITED,
        found=f"{available / _GIB:.1f} GiB available",
        remedy="" if enough else "end other programs, or run one trial at a time: --jobs 1",
    )
