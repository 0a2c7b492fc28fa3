"""A guest's swap: persistent memory of its own, at the end of the guest's memory, which its kernel swaps to.

A swap device of the host's is no use in exact mode: its answers come when the host has them. One that lies in
the memory that the kernel manages would take a page for each page that it frees. So the guest gets so much
memory more, which `memmap=` keeps from the kernel (Documentation/admin-guide/kernel-parameters.txt), and
which the drivers nd_e820 and nd_pmem make a block device. It is as fast as memory: what swapping costs there
is the kernel's work, not a disk's time.

This host's mkswap and swapon prepare it, inside the guest, before anything else of a trial.
"""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from ktrial.experiment.manipulation import ManipulationCheck, Results, SettingRefused
from ktrial.file_digests import digest_of_file
from ktrial.machines.errors import MachineToolMissing
from ktrial.model.machine import CarriedFile
from ktrial.system_tools import Tool
from ktrial.target import Read, Run, Step
from ktrial.text_lines import lines_of

MODULES = ("nd_e820", "nd_pmem")
"""The kernel's modules that make it a block device."""
TOOLS = (
    Tool("mkswap", "util-linux", "makes the guest's swap"),
    Tool("swapon", "mount", "turns the guest's swap on"),
)
_DEVICE = "/dev/pmem0"
_UUID = "00000000-0000-4000-8000-000000000003"
_SWAPS = "/proc/swaps"
_ABOVE_MIB = 2
"""The firmware keeps its tables at the end of memory: there is some left for them."""
NAME = "swap"


def memory_mib(swap_mib: int) -> int:
    """MiB of memory that the guest has for it, beside what the study says."""
    return swap_mib + _ABOVE_MIB if swap_mib else 0


def boot_parameters(swap_mib: int, memory: int) -> tuple[str, ...]:
    """What keeps the kernel from using its memory for something else; `memory` is the guest's own, in MiB."""
    return (f"memmap={swap_mib}M!{memory}M",) if swap_mib else ()


def programs() -> tuple[str, ...]:
    """The host's programs that prepare it, which the guest is given. Raises MachineToolMissing."""
    return tuple(map(_program, TOOLS))


def _program(tool: Tool) -> str:
    path = tool.path()
    if not path:
        raise MachineToolMissing(
            machine="exact", program=tool.name, where="in PATH or /usr/sbin", package=tool.package
        )
    return str(Path(path).absolute())


def makers(before: Iterable[Step], carried: Iterable[CarriedFile]) -> dict[str, str]:
    """The names of the programs that prepare it, and their digests; none where these steps run none of them.

    Another build of them takes other instructions before the workload, whose timers then fall otherwise.
    """
    names = {tool.name for tool in TOOLS}
    run = {step.argv[0] for step in before if isinstance(step, Run)}
    return {
        Path(file.guest).name: f"sha256:{digest_of_file(file.host)}"
        for file in carried
        if file.guest in run and Path(file.guest).name in names
    }


def check(swap_mib: int) -> ManipulationCheck:
    """Make it and turn it on; after the workload, see that it is still there."""
    mkswap, swapon = programs()
    make = Run(argv=(mkswap, "-q", "-U", _UUID, _DEVICE))
    return ManipulationCheck(
        (make, Run(argv=(swapon, _DEVICE))), (Read(path=_SWAPS),), partial(_in_force, swap_mib)
    )


def _in_force(swap_mib: int, before: Results, after: Results, _console: str) -> dict[str, str]:
    """Its size. Raises SettingRefused where there is none."""
    for tool, result in zip(TOOLS, before, strict=True):
        problem = result.failure.text if result.failure else ""
        if not problem and result.exit != 0:
            problem = f"{tool.name} ended with {result.exit}: {result.stderr.strip()}"
        if problem:
            raise SettingRefused(f"{swap_mib} MiB of swap were asked for, and the guest has none: {problem}")
    (swaps,) = after
    sizes = [line.split()[2] for line in lines_of(swaps.content) if line.startswith(_DEVICE)]
    if not sizes:
        raise SettingRefused(f"{swap_mib} MiB of swap were asked for, and the workload turned it off")
    return {NAME: f"{sizes[0]} kB"}
