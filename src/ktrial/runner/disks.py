"""A disk inside the guest, of the kernel's own driver null_blk: the same on every host, to the last digit.

A disk of the host's (virtio-blk, nvme) is no use in exact mode: its answers come when the host has them. One
in the guest's memory answers when the guest's timers say so. Its bandwidth and latency can be set, so that a
page cache has something to be faster than.
"""

import shutil
from pathlib import Path

from ktrial.errors import DiskNotMade, MachineToolMissing
from ktrial.model.study import Disk
from ktrial.target import MakeDirectory, Mount, Run, Step, StepResult, Write

_CONFIGFS = "/sys/kernel/config"
# Loading null_blk makes nullb0, which has no memory behind it. A disk that configfs makes has the next number
# for its name, in newer kernels that of its directory. This name is both.
_NAME = "nullb1"
_DEVICE = f"/dev/{_NAME}"
_BLOCK = "4096"
_TIMER = "2"
_NO_TIMER = "0"

_MAKERS = {
    # Only features that Linux 5.10 has, whatever this host's e2fsprogs would choose; nothing is left for a
    # kernel thread to do later.
    "ext4": (
        *("mke2fs", "-q", "-F", "-t", "ext4", "-b", _BLOCK, "-U", "00000000-0000-4000-8000-000000000001"),
        "-E",
        "lazy_itable_init=0,lazy_journal_init=0,hash_seed=00000000-0000-4000-8000-000000000002",
        "-O",
        "none,has_journal,ext_attr,resize_inode,dir_index,filetype,extent,64bit,flex_bg,sparse_super,large_file,"
        "huge_file,dir_nlink,extra_isize,metadata_csum",
    ),
    "xfs": ("mkfs.xfs", "-q", "-f", "-m", "uuid=00000000-0000-4000-8000-000000000001"),
    "btrfs": ("mkfs.btrfs", "-q", "-f", "-U", "00000000-0000-4000-8000-000000000001"),
}
_PACKAGES = {"ext4": "e2fsprogs", "xfs": "xfsprogs", "btrfs": "btrfs-progs"}
_PLACES = ("/usr/sbin", "/sbin", "/usr/bin", "/bin")


def modules(disk: Disk) -> tuple[str, ...]:
    """The kernel's modules that it needs."""
    return ("null_blk", disk.filesystem)


def program(disk: Disk) -> str:
    """The host's program that makes its file system, which the guest is given. Raises MachineToolMissing."""
    name = _MAKERS[disk.filesystem][0]
    found = shutil.which(name) or shutil.which(name, path=":".join(_PLACES))
    if not found:
        package = _PACKAGES[disk.filesystem]
        raise MachineToolMissing(machine="exact", program=name, where="in PATH or /usr/sbin", package=package)
    return str(Path(found).absolute())


def steps(disk: Disk) -> tuple[Step, ...]:
    """Make the disk and its file system, and mount it."""
    directory = f"{_CONFIGFS}/nullb/{_NAME}"
    attributes = {
        "size": str(disk.size_mib),
        "memory_backed": "1",
        "blocksize": _BLOCK,
        "mbps": str(disk.bandwidth_mib),
        "irqmode": _TIMER if disk.latency_us else _NO_TIMER,
        "completion_nsec": str(round(disk.latency_us * 1000) or 1),
        "power": "1",
    }
    _, *arguments = _MAKERS[disk.filesystem]
    return (
        Mount(fstype="configfs", source="configfs", path=_CONFIGFS),
        MakeDirectory(path=directory),
        *(Write(path=f"{directory}/{name}", value=value) for name, value in attributes.items()),
        Run(argv=(program(disk), *arguments, _DEVICE)),
        Mount(fstype=disk.filesystem, source=_DEVICE, path=disk.path),
    )


def check(results: tuple[StepResult, ...], disk: Disk) -> None:
    """Raise DiskNotMade where one of the steps failed."""
    for result in results:
        said = result.failure.text if result.failure else ""
        if result.do == "run" and result.exit != 0:
            said = said or f"{_MAKERS[disk.filesystem][0]} ended with {result.exit}: {result.stderr.strip()}"
        if said:
            raise DiskNotMade(filesystem=disk.filesystem, problem=said)
