"""A kernel's settings as it boots with them, read in the guest: all small files, and the catalogue's knobs.

The files are those of sysctl, sysfs and debugfs. They are read once for a boot and kept beside the kernel.
What is read has to be a setting: `NO_SETTINGS` says what is none, and why.
"""

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from ktrial.analysis.errors import AnalysisError
from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Resources, default_resources
from ktrial.file_digests import sealed, unsealed
from ktrial.kernels.errors import UnknownModule
from ktrial.kernels.files import file_system_errors, write_atomically
from ktrial.kernels.kernel_cache import SEALED_VALUES, VALUES
from ktrial.kernels.modules import resolve
from ktrial.knobs.catalogue import all_knobs
from ktrial.knobs.lookup import KnobInstance
from ktrial.machines import Machine
from ktrial.model.attribution import KernelValues
from ktrial.model.base import digest
from ktrial.model.kernel import Kernel
from ktrial.model.knob import Knob
from ktrial.model.machine import Boot
from ktrial.model.references import filled
from ktrial.target import LoadModule, Push, Read, Step, Target, Walk, Write

ROOTS = (
    "/proc/sys",
    "/sys/block/*/queue",
    "/sys/devices/system/clocksource/clocksource0",
    "/sys/devices/system/cpu/smt",
    "/sys/devices/system/cpu/vulnerabilities",
    "/sys/kernel/debug/sched",
    "/sys/kernel/debug/x86",
    "/sys/kernel/mm",
    "/sys/kernel/rcu_expedited",
    "/sys/kernel/rcu_normal",
    "/sys/module/*/parameters",
)
"""Where kernels keep settings."""
SKIPPED = ("domains", "power", "stats", "sched_domain", "topo")
"""Directories without settings: run-time power management, statistics, what the CPUs are like."""
NO_SETTINGS = {
    "how much is in use": (
        r"/proc/sys/fs/(aio-nr|dentry-state|file-nr|inode-nr|inode-state)",
        r"/proc/sys/kernel/(ns_last_pid|pty/nr|random/entropy_avail)",
        r"/proc/sys/net/netfilter/nf_conntrack_count",
        r"/sys/kernel/mm/.*/(free|resv|surplus)_hugepages",
    ),
    "how often something happened": (
        r"/sys/kernel/mm/ksm/(pages_|full_scans|stable_node_(chains|dups)|general_profit|ksm_zero_pages).*",
        r"/sys/kernel/mm/transparent_hugepage/khugepaged/(pages_collapsed|full_scans)",
    ),
    "what runs at the moment": (r"/sys/kernel/debug/sched/debug",),
    "drawn anew": (
        r"/proc/sys/kernel/random/(boot_id|uuid)",
        r"/proc/sys/net/core/netdev_rss_key",
        r"/proc/sys/net/.*/(stable_secret|tcp_fastopen_key)",
    ),
    "the name of the kernel or of the system": (
        r"/proc/sys/kernel/(version|osrelease|hostname|domainname)",
        r"/sys/module/acpi/parameters/acpica_version",
        r"/proc/sys/crypto/fips_(name|version)",
    ),
    "follows from how much memory is free at boot": (
        r"/proc/sys/fs/(file-max|epoll/max_user_watches|inotify/max_user_watches|fanotify/max_user_marks)",
        r"/proc/sys/(kernel/threads-max|user/max_.*_namespaces)",
        r"/proc/sys/net/ipv4/(inet_peer_threshold|tcp_mem|tcp_max_orphans|tcp_max_tw_buckets|udp_mem)",
        r"/proc/sys/net/netfilter/nf_conntrack_(buckets|max)",
        r"/proc/sys/vm/(min_free_kbytes|user_reserve_kbytes|admin_reserve_kbytes)",
        r"/sys/module/fuse/parameters/max_user_(bgreq|congthresh)",
    ),
}
"""Why a file is no setting, or follows from another one → patterns of the whole paths of such files."""

_FORMAT = 1
"""Raise it where other files are read, or a disk is another one: what was kept is read anew then."""
_DIRECTORY = "/ktrial/values"
_BLOCK_DEVICES = (("null_blk", "nr_devices=1 max_sectors=8192"), ("brd", "rd_nr=1"), ("loop", "max_loop=1"))
"""Module → parameters, for settings of block devices: guests have no disk. Parameters that a kernel does not
have yet are ignored by it."""
_ROTATES = Write(path="/sys/block/nullb0/queue/rotational", value="1")
"""One disk is as virtual disks are by default. Its read-ahead follows from that in newer kernels: in 6.12
it is 128 KiB all the same, in 6.18 and 7.2 twice the largest request, 8192 KiB."""
_TCP_MEMORY = re.compile(r"/proc/sys/net/ipv4/tcp_[rw]mem")
_OF_TCP_MEMORY = 2
"""Smallest and first size of a socket's buffer; the third, the largest, follows from the memory."""
_NO_SETTING = re.compile(
    "|".join(f"(?:{pattern})" for patterns in NO_SETTINGS.values() for pattern in patterns)
)


def default_values(machine: Machine, boot: Boot) -> KernelValues:
    """The values with which `boot` comes up, from the kernel's cache entry or from a guest.

    Block devices are made for it (null_blk, brd, loop) where the kernel has the modules. Raises
    MachineError, GuestEnded, AnalysisError.
    """
    if stored := kept_values(boot):
        return stored
    values, place = _read_values(machine, boot), _place(boot)
    with file_system_errors(place.parent):
        place.parent.mkdir(exist_ok=True)
        write_atomically(place, sealed(values.model_dump_json().encode()))
    return values


def kept_values(boot: Boot) -> KernelValues | None:
    """What was read of this boot before; None where nothing was."""
    place = _place(boot)
    if not place.is_file():
        return None
    try:
        stored = KernelValues.model_validate_json(unsealed(place.read_bytes()) or b"")
    except ValidationError:
        return None  # damaged, or of another ktrial: it is read again
    return stored.model_copy(update={"kernel": boot.kernel.name})


def is_setting(path: str) -> bool:
    """Whether the file holds a setting of its own, as far as is known."""
    return not _NO_SETTING.fullmatch(path)


def _place(boot: Boot) -> Path:
    """Beside the kernel's other parts: one file for all that decides the values."""
    modules = [path.name for path in boot.modules]
    key = digest([_FORMAT, boot.parameters, boot.memory_mib, boot.cpus, modules])
    return boot.kernel.image.parent / VALUES / f"{key[:32]}{SEALED_VALUES}"


def _read_values(machine: Machine, boot: Boot) -> KernelValues:
    steps = (*_block_devices(boot.kernel), Walk(roots=ROOTS, skip=SKIPPED))
    with machine.start(boot) as target:
        walked = target.perform(steps)[-1]
    if walked.failure or not walked.files:
        problem = walked.failure.text if walked.failure else "there is none"
        raise AnalysisError(
            f"The settings of kernel {boot.kernel.name} cannot be read in its guest: {problem}",
            hint="leave them out: --no-values",
        )
    return KernelValues(
        kernel=boot.kernel.name,
        parameters=boot.parameters,
        values=_settings(walked.files),
        left_out=_settings(walked.left_out),
    )


def _settings(files: dict[str, str]) -> dict[str, str]:
    return {path: _plain(path, text) for path, text in files.items() if is_setting(path)}


def _plain(path: str, text: str) -> str:
    """With single blanks; without what follows from how much memory is free at boot."""
    words = text.split()
    return " ".join(words[:_OF_TCP_MEMORY] if _TCP_MEMORY.fullmatch(path) else words)


def _block_devices(kernel: Kernel) -> Iterable[Step]:
    """A disk of each kind that the kernel has a module for. A module that cannot be loaded makes no disk."""
    for name, parameters in _BLOCK_DEVICES:
        try:
            files = resolve(kernel, [name])
        except UnknownModule:
            continue
        for file in files:
            place = f"{_DIRECTORY}/{file.name}"
            yield Push(path=place, base64=base64.b64encode(file.read_bytes()).decode())
            is_itself = file.stem.replace("-", "_") == name
            yield LoadModule(path=place, parameters=parameters if is_itself else "")
    yield _ROTATES


MODULES = ("null_blk",)
"""Loaded where a kernel has them as modules, so that there is a disk."""
INSTANCES = {
    "disk": ("nullb0",),
    "interface": ("lo", "lo/rx-0"),
    "policy": ("policy0",),
    "cpu": ("cpu0", "cpu0/state0"),
    "group": (),
}
"""What a guest has of the knobs that there are several of."""
MEMORY_MIB = 1024
"""Below 512 MB kernels switch transparent huge pages off."""


@dataclass(frozen=True)
class KnobDifference:
    """A knob that two kernels have with different values, or that one of them has not."""

    knob: Knob
    before: str | None
    """None: that kernel does not have it."""
    after: str | None


def knob_values(
    name: str,
    *,
    machine: Machine | None = None,
    observer: Observer | None = None,
    resources: Resources | None = None,
) -> dict[str, str]:
    """Knob → value, for those of the catalogue that the kernel has in a guest of one CPU and 1 GiB.

    Raises KernelError, MachineError, GuestEnded.
    """
    if machine is None:
        from ktrial.machines.exact import ExactMachine  # not to read what was kept

        machine = ExactMachine()
    observer = observer or Observer()
    resources = resources or default_resources()
    machine.check()
    boot = boot_of(resources.kernel(name, observer.progress_of(name)), resources)
    observer.preparing(boot, "reading its settings")
    with machine.start(boot) as target:
        return {read_knob.knob.name: read_knob.value for read_knob in read_knobs(target) if read_knob.knob}


def boot_of(kernel: Kernel, resources: Resources) -> Boot:
    """What is booted to read a kernel's settings."""
    modules = resources.modules(kernel, MODULES) if kernel.modules else ()
    return Boot(kernel=kernel, memory_mib=MEMORY_MIB, modules=modules)


def read_knobs(target: Target) -> tuple[KnobInstance, ...]:
    """Every knob of the catalogue that the target has, each in the newest of its places that is there."""
    places = [
        (knob, path)
        for knob in all_knobs()
        for place in knob.places
        if place.path
        for path in _paths(knob, place.path)
    ]
    results = target.perform(tuple(Read(path=path) for _, path in places))
    knobs: dict[str, KnobInstance] = {}
    for (knob, path), result in zip(places, results, strict=True):
        if not result.failure:
            knobs.setdefault(
                knob.name, KnobInstance(knob.name, path, knob, result.content.removesuffix("\n"))
            )
    return tuple(knobs.values())


def knob_differences(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[KnobDifference, ...]:
    """Knobs whose values differ, in the catalogue's order."""
    return tuple(
        KnobDifference(knob, before.get(knob.name), after.get(knob.name))
        for knob in all_knobs()
        if before.get(knob.name) != after.get(knob.name)
    )


def _paths(knob: Knob, template: str) -> tuple[str, ...]:
    if "{" not in template:
        return (template,)
    slashes = template.count("{") - 1
    return tuple(
        filled(template, instance) for instance in INSTANCES[knob.instance] if instance.count("/") == slashes
    )
