"""Control groups, version 2: shares and limits of CPU, memory, disks. One of each for every group."""

from typing import Any

from ktrial.knobs.catalogue.declare import file
from ktrial.model.knob import Allowed, Equipment, Knob, KnobKind, Safety

_DOCUMENTATION = "Documentation/admin-guide/cgroup-v2.rst"
_KILLS = Safety.DURABILITY
"""A limit that is too low has the group's programs killed."""


def _group(name: str, summary: str, default: str, **more: Any) -> Knob:
    return file(
        name,
        f"/sys/fs/cgroup/{{group}}/{name}",
        summary,
        default,
        needs=f"a group with the controller {name.partition('.')[0]}",
        documentation=_DOCUMENTATION,
        **more,
    )


KNOBS = (
    _group(
        "cpu.max",
        "CPU time in each period, and the period: `50000 100000` is half a CPU",
        "max 100000",
        kind=KnobKind.TEXT,
        unit="us",
        config="CONFIG_CFS_BANDWIDTH",
        coupled=("cpu.max.burst", "kernel.sched_cfs_bandwidth_slice_us"),
    ),
    _group(
        "cpu.max.burst",
        "CPU time not used that may be saved for later periods",
        "0",
        unit="us",
        minimum=0,
        since="5.14",
        change="f4183717b370 sched/fair: Introduce the burstable CFS controller",
        config="CONFIG_CFS_BANDWIDTH",
        coupled=("cpu.max",),
    ),
    _group("cpu.weight", "share of CPU time among its siblings", "100", minimum=1, maximum=10000),
    _group(
        "cpu.idle",
        "the group runs only where nobody else wants the CPU",
        "0",
        choices=("0", "1"),
        since="5.15",
        change="304000390f88 sched: Cgroup SCHED_IDLE support",
        coupled=("cpu.weight",),
    ),
    _group(
        "memory.max",
        "memory that the group may have; beyond it, its programs are killed",
        "max",
        unit="bytes",
        kind=KnobKind.TEXT,
        safety=_KILLS,
        config="CONFIG_MEMCG",
        coupled=("memory.high",),
    ),
    _group(
        "memory.high",
        "memory beyond which the group is throttled and reclaimed",
        "max",
        unit="bytes",
        kind=KnobKind.TEXT,
        config="CONFIG_MEMCG",
    ),
    _group(
        "memory.low",
        "memory that is reclaimed last",
        "0",
        unit="bytes",
        kind=KnobKind.TEXT,
        config="CONFIG_MEMCG",
    ),
    _group(
        "memory.min",
        "memory that is never reclaimed",
        "0",
        unit="bytes",
        kind=KnobKind.TEXT,
        safety=_KILLS,
        config="CONFIG_MEMCG",
    ),
    _group(
        "memory.swap.max",
        "swap that the group may have",
        "max",
        unit="bytes",
        kind=KnobKind.TEXT,
        config="CONFIG_SWAP",
        safety=_KILLS,
        acts_on=Equipment.SWAP,
    ),
    _group(
        "memory.oom.group",
        "where one of its programs is killed for lack of memory, all are",
        "0",
        choices=("0", "1"),
        config="CONFIG_MEMCG",
        safety=_KILLS,
    ),
    _group(
        "io.max",
        "bytes and requests in a second, for each disk: `8:0 rbps=1048576 wiops=120`",
        "",
        kind=KnobKind.TEXT,
        config="CONFIG_BLK_DEV_THROTTLING",
    ),
    _group(
        "io.latency",
        "latency that the group is kept to, for each disk: `8:0 target=10000`",
        "",
        kind=KnobKind.TEXT,
        config="CONFIG_BLK_CGROUP_IOLATENCY",
    ),
    _group(
        "cpuset.cpus",
        "CPUs that the group's programs may use; empty: its parent's",
        "",
        kind=KnobKind.TEXT,
        config="CONFIG_CPUSETS",
        coupled=("cpuset.mems",),
    ),
    _group(
        "cpuset.mems",
        "NUMA nodes whose memory the group's programs may use; empty: its parent's",
        "",
        kind=KnobKind.TEXT,
        config="CONFIG_CPUSETS",
        coupled=("cpuset.cpus",),
    ),
    _group(
        "pids.max",
        "processes and threads that the group may have",
        "max",
        kind=KnobKind.TEXT,
        config="CONFIG_CGROUP_PIDS",
        allowed=(Allowed(minimum=0),),
    ),
)
"""Those of this subsystem."""
