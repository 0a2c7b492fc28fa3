"""Memory and disk: paging, huge pages, NUMA, room."""

import shutil
from pathlib import Path

from ktrial.model.trial import ReadingKind
from ktrial.monitors.environment import EnvironmentReader, Observation, chosen, meminfo, ranges, text
from ktrial.text_lines import lines_of

_MIB = 1 << 10
_GIB = 1 << 20
_LITTLE_KIB = 256 * _MIB
_LITTLE_DISK = 1 << 30
_THP = "/sys/kernel/mm/transparent_hugepage"


def _swap(root: Path) -> Observation:
    facts = meminfo(root)
    total, used = facts["SwapTotal"], facts["SwapTotal"] - facts["SwapFree"]
    if not total:
        return Observation("none: vm.swappiness and its kin do nothing here")
    return Observation(
        f"{total / _GIB:.1f} GiB",
        concern=f"{used / _MIB:.0f} MiB of it are in use: programs wait for the disk" if used else "",
        advice="free memory, then sudo swapoff -a" if used else "",
    )


def _paging(root: Path) -> Observation:
    counters = dict(line.split() for line in lines_of(text(root, "/proc/vmstat")))
    pages = int(counters["pswpin"]) + int(counters["pswpout"])
    return Observation(f"{pages} pages since boot", number=pages)


def _huge_pages(root: Path) -> Observation:
    enabled, defrag = chosen(root, f"{_THP}/enabled"), chosen(root, f"{_THP}/defrag")
    always = enabled == "always"
    return Observation(
        f"{enabled}, defrag {defrag}",
        concern="whether a program gets huge pages depends on how memory is fragmented" if always else "",
        advice="make it a factor, or: ktrial knob set transparent_hugepage/enabled madvise" if always else "",
    )


def _nodes(root: Path) -> Observation:
    numbers = [int(path.name[4:]) for path in root.glob("sys/devices/system/node/node[0-9]*")]
    if len(numbers) < 2:
        return Observation("one node")
    return Observation(
        f"nodes {ranges(numbers)}",
        concern="memory of another node is slower, and where a program's memory lies is chance",
        advice="pin to the CPUs of one node (numactl --hardware)",
    )


def _balancing(root: Path) -> Observation:
    on = text(root, "/proc/sys/kernel/numa_balancing") != "0"
    more_nodes = len(list(root.glob("sys/devices/system/node/node[0-9]*"))) > 1
    return Observation(
        "on" if on else "off",
        concern="the kernel moves pages between nodes while programs run" if on and more_nodes else "",
        advice="ktrial host quiesce" if on and more_nodes else "",
    )


def _ksm(root: Path) -> Observation:
    if text(root, "/sys/kernel/mm/ksm/run") != "1":
        return Observation("off")
    return Observation(
        "on", concern="it compares and merges pages in the background", advice="ktrial host quiesce"
    )


def _available(root: Path) -> Observation:
    available = meminfo(root)["MemAvailable"]
    little = available < _LITTLE_KIB
    return Observation(
        f"{available / _GIB:.1f} GiB",
        number=available / _GIB,
        concern="the kernel has to reclaim memory while programs run" if little else "",
        advice="end other programs" if little else "",
    )


def _disk(root: Path) -> Observation:
    usage = shutil.disk_usage(root / "tmp" if (root / "tmp").is_dir() else root)
    little = usage.free < _LITTLE_DISK
    return Observation(
        f"{usage.free / (1 << 30):.1f} GiB below /tmp",
        number=usage.free / (1 << 30),
        concern="file systems slow down when they are nearly full" if little else "",
        advice="free some space" if little else "",
    )


READERS = (
    EnvironmentReader(
        "swap",
        "room for memory that was paged out",
        "A page that has to come back costs as much as ten thousand that are there.",
        _swap,
        places=("/proc/swaps",),
    ),
    EnvironmentReader(
        "paging",
        "pages that went to swap or came from it",
        "Somebody waited for the disk.",
        _paging,
        ReadingKind.COUNTER,
    ),
    EnvironmentReader(
        "transparent huge pages",
        "whether programs get pages of 2 MiB unasked",
        "The same program is faster or slower by how memory is fragmented at its start.",
        _huge_pages,
        places=(f"{_THP}/enabled", f"{_THP}/defrag"),
    ),
    EnvironmentReader("NUMA", "nodes of memory", "Memory of another node is slower by half.", _nodes),
    EnvironmentReader(
        "NUMA balancing",
        "whether the kernel moves pages to the CPUs that use them",
        "It takes pages away for a moment to see who misses them.",
        _balancing,
        places=("/proc/sys/kernel/numa_balancing",),
    ),
    EnvironmentReader(
        "KSM",
        "whether the kernel merges equal pages",
        "Its thread uses a CPU, and merged pages are copied when they are written.",
        _ksm,
        places=("/sys/kernel/mm/ksm/run",),
    ),
    EnvironmentReader(
        "free memory",
        "what programs can have without paging",
        "Where there is little, the kernel reclaims while it is measured.",
        _available,
        ReadingKind.LEVEL,
    ),
    EnvironmentReader(
        "free disk",
        "below /tmp, where workloads work",
        "A full disk ends a study; a nearly full one slows it down.",
        _disk,
        ReadingKind.LEVEL,
    ),
)
