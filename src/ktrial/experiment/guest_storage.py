"""What a guest keeps files in: a disk of one of the kernel's own drivers, and a limit for its page cache.

The disk is the same on every host, to the last digit. A disk of the host's (virtio-blk, nvme) is no use in
exact mode: its answers come when the host has them. One in the guest's memory answers when the guest's timers
say so (null_blk, whose bandwidth and latency can be set, so that a page cache has something to be faster
than), or at once (brd, pmem).

The settings that kernels choose for it are read after the workload, so that reading them is no part of any
number.

The limit holds the memory of workloads, their page cache included, so that they have less than their files
need: by a control group (version 2) that the guest's agent enters, and with it every program that it starts
later. What it had allocated before stays where it was charged. The disk's own memory is charged to nobody.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from ktrial.experiment.manipulation import ManipulationCheck, Results
from ktrial.experiment.resources import Resources
from ktrial.file_digests import digest_of_file
from ktrial.machines.errors import MachineToolMissing
from ktrial.model.kernel import Kernel
from ktrial.model.machine import CarriedFile, CgroupLimits
from ktrial.model.study import Disk, DiskKind
from ktrial.system_tools import Tool
from ktrial.target import LoadModule, MakeDirectory, Mount, Read, Run, Step, StepResult, Write
from ktrial.target.errors import GuestError

_CONFIGFS = "/sys/kernel/config"
_BLOCK = "4096"
_TIMER = "2"
_NO_TIMER = "0"
_BRD = "/lib/ktrial-disk/brd.ko"
"""Where the guest finds the module: its size is a parameter that it takes when it is loaded only."""
_MODULES = {DiskKind.NULL_BLK: ("null_blk",), DiskKind.BRD: (), DiskKind.PMEM: ("nd_e820", "nd_pmem")}
_ABOVE_PMEM_MIB = 2
"""The firmware keeps its tables at the end of memory: there is some left for them."""
_LARGEST_REQUEST_KIB = 127
"""null_blk's, where nothing else is said (BLK_SAFE_MAX_SECTORS)."""
_OF_TURNING_DISKS_KIB = 4096
_TICKS = 50
"""A second, at which null_blk lets through what its bandwidth allows; a larger request waits for ever."""

_UUID = "00000000-0000-4000-8000-000000000001"
_MAKERS = {
    # Only features that Linux 5.10 has, whatever this host's e2fsprogs would choose; nothing is left for a
    # kernel thread to do later.
    "ext4": (
        *("mke2fs", "-q", "-F", "-t", "ext4", "-b", _BLOCK, "-U", _UUID),
        "-E",
        "lazy_itable_init=0,lazy_journal_init=0,hash_seed=00000000-0000-4000-8000-000000000002",
        "-O",
        "none,has_journal,ext_attr,resize_inode,dir_index,filetype,extent,64bit,flex_bg,sparse_super,large_file,"
        "huge_file,dir_nlink,extra_isize,metadata_csum",
    ),
    "xfs": (
        *("mkfs.xfs", "-q", "-f", "-K", "-m", f"bigtime=0,inobtcount=0,reflink=0,rmapbt=0,uuid={_UUID}"),
        *("-i", "nrext64=0"),
    ),
    "btrfs": ("mkfs.btrfs", "-q", "-f", "-K", "-U", _UUID),
}
_PACKAGES = {"ext4": "e2fsprogs", "xfs": "xfsprogs", "btrfs": "btrfs-progs"}


def modules(disk: Disk) -> tuple[str, ...]:
    """The kernel's modules that are loaded as it boots."""
    return (*_MODULES[disk.kind], disk.filesystem)


def files(disk: Disk, kernel: Kernel, resources: Resources) -> tuple[CarriedFile, ...]:
    """What the guest is given for it. Raises MachineToolMissing, UnknownModule."""
    carried = resources.named_files("the study", (program(disk),))
    if disk.kind is DiskKind.BRD and (paths := resources.modules(kernel, ("brd",))):
        carried += (CarriedFile(host=paths[-1], guest=_BRD),)
    return carried


def memory_mib(disk: Disk) -> int:
    """MiB of memory that the guest has for it, beside what the study says."""
    return disk.size_mib + _ABOVE_PMEM_MIB if disk.kind is DiskKind.PMEM else 0


def boot_parameters(disk: Disk, memory: int) -> tuple[str, ...]:
    """What keeps the kernel from using its memory for something else; `memory` is the guest's own, in MiB."""
    return (f"memmap={disk.size_mib}M!{memory}M",) if disk.kind is DiskKind.PMEM else ()


def program(disk: Disk) -> str:
    """The host's program that makes its file system, which the guest is given. Raises MachineToolMissing."""
    tool = disk_tool(disk)
    path = tool.path()
    if not path:
        raise MachineToolMissing(
            machine="exact", program=tool.name, where="in PATH or /usr/sbin", package=tool.package
        )
    return str(Path(path).absolute())


def disk_tool(disk: Disk) -> Tool:
    """What makes its file system."""
    kind = disk.filesystem
    return Tool(_MAKERS[kind][0], _PACKAGES[kind], f"makes the guest's {kind}")


def maker(disk: Disk, carried: Iterable[CarriedFile]) -> dict[str, str]:
    """The name of the program that makes the file system, and its digest, among what a guest is given.

    Another build of it takes other instructions before the workload, whose timers then fall otherwise.
    """
    tool = _MAKERS[disk.filesystem][0]
    programs = (file for file in carried if Path(file.guest).name == tool)
    return {Path(program.guest).name: f"sha256:{digest_of_file(program.host)}" for program in programs}


def steps(disk: Disk) -> tuple[Step, ...]:
    """Make the disk and its file system, and mount it."""
    device = f"/dev/{disk.device}"
    _, *arguments = _MAKERS[disk.filesystem]
    return (
        *_DRIVERS[disk.kind](disk),
        Run(argv=(program(disk), *arguments, device)),
        Mount(fstype=disk.filesystem, source=device, path=disk.path),
    )


def _null_blk(disk: Disk) -> Iterator[Step]:
    directory = f"{_CONFIGFS}/nullb/{disk.device}"
    attributes = {
        "size": str(disk.size_mib),
        "memory_backed": "1",
        "blocksize": _BLOCK,
        "mbps": str(disk.bandwidth_mib),
        "irqmode": _TIMER if disk.latency_us else _NO_TIMER,
        "completion_nsec": str(round(disk.latency_us * 1000) or 1),
        **_limited_requests(disk),
        "power": "1",
    }
    yield Mount(fstype="configfs", source="configfs", path=_CONFIGFS)
    yield MakeDirectory(path=directory)
    yield from (Write(path=f"{directory}/{key}", value=value) for key, value in attributes.items())
    if disk.rotational:
        yield Write(path=f"/sys/block/{disk.device}/queue/rotational", value="1")


def _limited_requests(disk: Disk) -> dict[str, str]:
    """How large requests may be, where null_blk's own limit is not what is wanted."""
    limit_kib = _OF_TURNING_DISKS_KIB if disk.rotational else _LARGEST_REQUEST_KIB
    in_a_tick = (disk.bandwidth_mib << 10) // _TICKS
    while disk.bandwidth_mib and limit_kib >= in_a_tick:
        limit_kib //= 2
    return {} if limit_kib == _LARGEST_REQUEST_KIB else {"max_sectors": str(2 * limit_kib)}


def _brd(disk: Disk) -> Iterator[Step]:
    yield LoadModule(path=_BRD, parameters=f"rd_nr=1 rd_size={disk.size_mib << 10}")


def _pmem(_disk: Disk) -> Iterator[Step]:
    yield from ()


def _may_lack(result: StepResult) -> bool:
    """Linux 5.10's null_blk has no limit of requests that could be set."""
    failure = result.failure
    return bool(failure and failure.name in {"ENOENT", "EACCES"} and "/max_sectors" in failure.text)


_DRIVERS = {DiskKind.NULL_BLK: _null_blk, DiskKind.BRD: _brd, DiskKind.PMEM: _pmem}


def check(results: tuple[StepResult, ...], disk: Disk) -> None:
    """Raise GuestError where one of the steps failed."""
    for result in results:
        problem = result.failure.text if result.failure else ""
        if result.do == "run" and result.exit != 0:
            problem = (
                problem or f"{_MAKERS[disk.filesystem][0]} ended with {result.exit}: {result.stderr.strip()}"
            )
        if problem and not _may_lack(result):
            raise GuestError(
                f"The guest could not make its disk ({disk.filesystem} on {disk.kind.value}): {problem}",
                hint="a kernel that has both drivers, as Debian's have; [machine.disk] names others",
            )


_SETTINGS = (
    "read_ahead_kb",
    "max_sectors_kb",
    "nr_requests",
    "rotational",
    "scheduler",
    "wbt_lat_usec",
    "write_cache",
)
"""Of the many files there, those that decide what reaches the disk (Documentation/ABI/stable/sysfs-block)."""


def settings_check(disk: Disk) -> ManipulationCheck:
    """One step a setting, after the workload; nothing is asked for."""
    reads = tuple(Read(path=f"{directory(disk)}/{name}") for name in _SETTINGS)
    return ManipulationCheck((), reads, partial(_disk_settings, disk))


def _disk_settings(disk: Disk, _before: Results, after: Results, _console: str) -> dict[str, str]:
    """Path → value; a setting that this kernel does not have, or this disk, is left out."""
    return {
        f"{directory(disk)}/{name}": result.content.strip()
        for name, result in zip(_SETTINGS, after, strict=True)
        if result.failure is None
    }


def directory(disk: Disk) -> str:
    """Where the disk's settings are."""
    return f"/sys/block/{disk.device}/queue"


_ROOT = "/sys/fs/cgroup"
"""The agent has mounted it."""
GROUP = f"{_ROOT}/workload"
"""The workloads' group in the guest."""
_MYSELF = "0"


def memory_limit_steps(limits: CgroupLimits | None) -> tuple[Step, ...]:
    """Make the group, limit it and enter it; nothing without a limit of memory."""
    if limits is None or limits.memory_mib is None:
        return ()
    return (
        Write(path=f"{_ROOT}/cgroup.subtree_control", value="+memory"),
        MakeDirectory(path=GROUP),
        Write(path=f"{GROUP}/memory.max", value=str(limits.memory_mib << 20)),
        Write(path=f"{GROUP}/cgroup.procs", value=_MYSELF),
    )


def check_memory_limit(results: tuple[StepResult, ...]) -> None:
    """Raise GuestError where one of the steps failed."""
    for result in results:
        if result.failure:
            raise GuestError(
                f"The guest could not limit the workloads' memory: {result.failure.text}",
                hint="a kernel with CONFIG_MEMCG, as Debian's; or a smaller guest, without [machine.cgroup]",
            )
