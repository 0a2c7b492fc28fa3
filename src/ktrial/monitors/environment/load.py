"""What else goes on: other programs, interrupts, the hypervisor, limits that somebody set."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from ktrial.model.trial import ReadingKind
from ktrial.monitors.environment import Absent, EnvironmentReader, Observation, text
from ktrial.text_lines import lines_of

_SECONDS = 0.3
_BUSY = 0.05
"""Of a CPU: about what a desktop without anything to do uses."""
_TICKS_A_SECOND = 100
"""USER_HZ, which is the same on every x86."""
_STAT = "/proc/stat"


def _cpu_ticks(root: Path) -> dict[str, int]:
    """proc_stat(5), the line `cpu`."""
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    values = lines_of(text(root, _STAT))[0].split()[1 : 1 + len(names)]
    return dict(zip(names, map(int, values), strict=True))


def _others(root: Path) -> Observation:
    """ktrial sleeps: whoever is busy meanwhile is somebody else."""
    before, start = _cpu_ticks(root), time.monotonic()
    time.sleep(_SECONDS)
    after, seconds = _cpu_ticks(root), time.monotonic() - start
    idle = {"idle", "iowait", "steal"}
    busy = sum(after[name] - before[name] for name in after if name not in idle)
    cpus = busy / _TICKS_A_SECOND / seconds
    return Observation(
        f"{cpus:.2f} CPUs",
        number=cpus,
        concern="other programs use the CPUs" if cpus > _BUSY else "",
        advice="end them (top shows which), or pin to CPUs that they leave alone" if cpus > _BUSY else "",
    )


def _steal(root: Path) -> Observation:
    stolen = _cpu_ticks(root)["steal"] / _TICKS_A_SECOND
    return Observation(f"{stolen:.2f} s since boot", number=stolen)


def _hypervisor(root: Path) -> Observation:
    flags = next((line for line in lines_of(text(root, "/proc/cpuinfo")) if line.startswith("flags")), "")
    if "hypervisor" not in flags.split():
        return Observation("none")
    maker = ""
    for path in ("/sys/hypervisor/type", "/sys/class/dmi/id/sys_vendor"):
        try:
            maker = maker or text(root, path)
        except OSError:  # most have only one of them
            continue
    return Observation(
        maker or "there is one",
        concern="this is a virtual machine: others use its CPUs and caches, and nothing here shows when",
        advice="measure on hardware, or in exact mode, which does not mind",
    )


def _own_limits(root: Path) -> Observation:
    """The quota of this process's control group: cgroup v2, else v1."""
    for path, unlimited in (("/sys/fs/cgroup/cpu.max", "max"), ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1")):
        try:
            content = text(root, path)
        except OSError:  # the root group has none, or the other version is mounted
            continue
        if content.split()[0] == unlimited:
            return Observation("none")
        concern = "a container's quota stops programs in the middle of a run"
        return Observation(content, concern=concern, advice="lift it, or measure outside of the container")
    return Observation("none")


def _interrupts(root: Path) -> Observation:
    mask = text(root, "/proc/irq/default_smp_affinity")
    affinities = {
        file.read_text(errors="replace").strip()
        for file in root.glob("proc/irq/*/smp_affinity_list")
        if file.parent.name.isdecimal()
    }
    return Observation(f"default mask {mask}; in use: {'; '.join(sorted(affinities)) or 'not told'}")


def _balancer(root: Path) -> Observation:
    names = set(_names(root / "proc"))
    if not names:
        raise Absent("no process can be seen")
    if "irqbalance" not in names:
        return Observation("not running")
    concern = "irqbalance moves interrupts from CPU to CPU"
    return Observation("running", concern=concern, advice="sudo systemctl stop irqbalance")


def _names(processes: Path) -> Iterator[str]:
    """Of all programs that run. There may be thousands, and each trial asks."""
    with os.scandir(processes) as directories:
        for process in directories:
            if process.name.isdecimal():
                with contextlib.suppress(OSError):  # it has just ended
                    yield Path(process.path, "comm").read_bytes().decode(errors="replace").strip()


def _watchdog(root: Path) -> Observation:
    if text(root, "/proc/sys/kernel/nmi_watchdog") == "0":
        return Observation("off")
    concern = "it takes a hardware counter, and interrupts every CPU now and then"
    return Observation("on", concern=concern, advice="ktrial host quiesce")


READERS = (
    EnvironmentReader(
        "load of others",
        "CPUs in use while ktrial does nothing",
        "They take CPU time, caches and memory bandwidth.",
        _others,
        ReadingKind.LEVEL,
        takes_time=True,
    ),
    EnvironmentReader(
        "steal time",
        "time in which the hypervisor ran somebody else",
        "It passes on the clock, and no program here had it.",
        _steal,
        ReadingKind.COUNTER,
        places=(_STAT,),
    ),
    EnvironmentReader(
        "hypervisor",
        "whether this is a virtual machine",
        "Its CPUs are shared, and its interrupts and page faults cost more than on hardware.",
        _hypervisor,
    ),
    EnvironmentReader(
        "CPU quota",
        "of ktrial's own control group",
        "When it is used up, everything in the group stands still until the next period.",
        _own_limits,
    ),
    EnvironmentReader(
        "IRQ affinity",
        "which CPUs handle interrupts",
        "An interrupt on the CPU of a workload is a part of what is measured.",
        _interrupts,
        places=("/proc/irq/*",),
    ),
    EnvironmentReader(
        "irqbalance",
        "whether a program moves interrupts about",
        "Interrupts that move make CPUs unlike from run to run.",
        _balancer,
    ),
    EnvironmentReader(
        "NMI watchdog",
        "the kernel's own watch for CPUs that hang",
        "It uses a performance counter, and interrupts.",
        _watchdog,
        places=("/proc/sys/kernel/nmi_watchdog",),
    ),
)
