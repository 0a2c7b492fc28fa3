"""The scheduler: slices, migration, real-time limits, NUMA balancing, workqueues."""

from ktrial.knobs.catalogue.declare import DEBUG_SCHED, TO_DEBUGFS, file, scheduler, sysctl
from ktrial.model.knob import Allowed, Default, Knob, KnobKind, KnobLocation, Safety, Successor

_SCALED = "CPUs: this for one, twice as much for two or three, three times for four to seven…"
_RENAMED = "e4ec3318a17f sched/debug: Rename sysctl_sched_min_granularity to sysctl_sched_base_slice"
_WITH_LIMITS = (Allowed(since="5.13"), Allowed(minimum=100_000, maximum=1_000_000_000))
"""debugfs takes any 32-bit number; the sysctls before it had limits."""
_DEBUG = "Documentation/scheduler/sched-debug.rst"
_RT = "Documentation/scheduler/sched-rt-group.rst"
_STARVES = Safety.DURABILITY
"""Without a limit, or with a wide one, a real-time task that runs away leaves nobody a CPU."""
_WORKQUEUE = "Documentation/core-api/workqueue.rst"


def _numa(name: str, summary: str, default: str, unit: str) -> Knob:
    old = KnobLocation(
        path=f"/proc/sys/kernel/numa_balancing_{name}",
        until="5.12",
        config="CONFIG_NUMA_BALANCING",
    )
    return file(
        f"numa_balancing_{name}",
        f"{DEBUG_SCHED}numa_balancing/{name}",
        summary,
        default,
        since="5.13",
        config="CONFIG_NUMA_BALANCING",
        change=TO_DEBUGFS,
        older=(old,),
        documentation=_DEBUG,
        unit=unit,
    )


KNOBS = (
    scheduler(
        "latency_ns",
        "period in which CFS runs each task once, as long as there are few",
        "",
        until="6.5",
        unit="ns",
        defaults=(Default(value="6000000", computed=_SCALED),),
        allowed=_WITH_LIMITS,
        coupled=("sched_min_granularity_ns", "sched_tunable_scaling"),
        successor=Successor(
            name="base_slice_ns",
            difference="EEVDF gives each task this slice, however many there are; CFS divided its latency",
        ),
    ),
    scheduler(
        "min_granularity_ns",
        "time that CFS lets a task run before another may preempt it, however many there are",
        "",
        until="6.5",
        unit="ns",
        defaults=(Default(value="750000", computed=_SCALED),),
        allowed=_WITH_LIMITS,
        coupled=("sched_latency_ns", "sched_tunable_scaling"),
        successor=Successor(
            name="base_slice_ns",
            difference="it has this one's variable under a new name, but EEVDF makes deadlines of it",
        ),
    ),
    scheduler(
        "wakeup_granularity_ns",
        "advantage that a waking task needs over the running one before CFS preempts that",
        "",
        until="6.5",
        unit="ns",
        defaults=(Default(value="1000000", computed=_SCALED),),
        allowed=(Allowed(since="5.13"), Allowed(minimum=0, maximum=1_000_000_000)),
        coupled=("sched_tunable_scaling",),
        successor=Successor(
            name="base_slice_ns",
            difference="EEVDF preempts by deadlines: a longer slice is a later deadline for every task",
        ),
    ),
    file(
        "base_slice_ns",
        f"{DEBUG_SCHED}base_slice_ns",
        "slice that EEVDF gives a task before its next deadline",
        (
            Default(since="6.12", value="700000", computed=_SCALED),
            Default(value="750000", computed=_SCALED),
        ),
        since="6.6",
        change=_RENAMED,
        documentation="Documentation/scheduler/sched-eevdf.rst",
        unit="ns",
        coupled=("sched_tunable_scaling",),
    ),
    scheduler(
        "migration_cost_ns",
        "time since its last run in which a task counts as cache-hot, and is not moved by balancing",
        "500000",
        unit="ns",
        # debugfs_create_u32 refuses -1 ('every task is hot'), which the sysctl took.
        allowed=(Allowed(since="5.13", minimum=0), Allowed()),
    ),
    scheduler(
        "nr_migrate",
        "tasks that one pass of load balancing moves at most, with interrupts off",
        "",
        defaults=(Default(value="8", config="CONFIG_PREEMPT_RT"), Default(value="32")),
    ),
    scheduler(
        "tunable_scaling",
        "how slices grow with the number of CPUs: 0 not at all, 1 with its logarithm, 2 linearly",
        "1",
        choices=("0", "1", "2"),
        coupled=("base_slice_ns", "sched_latency_ns"),
    ),
    file(
        "sched_features",
        f"{DEBUG_SCHED}features",
        "parts of the scheduler by name: NAME switches one on, NO_NAME off",
        (Default(computed="the version"),),
        since="5.13",
        change=TO_DEBUGFS,
        older=(
            KnobLocation(path="/sys/kernel/debug/sched_features", until="5.12", config="CONFIG_SCHED_DEBUG"),
        ),
        documentation=_DEBUG,
        kind=KnobKind.TEXT,
    ),
    file(
        "preempt",
        f"{DEBUG_SCHED}preempt",
        "preemption model of a kernel with CONFIG_PREEMPT_DYNAMIC",
        (
            Default(since="6.13", value="lazy", config="CONFIG_PREEMPT_LAZY"),
            Default(value="none", config="CONFIG_PREEMPT_NONE"),
            Default(value="voluntary", config="CONFIG_PREEMPT_VOLUNTARY"),
            Default(value="full", config="CONFIG_PREEMPT"),
        ),
        since="5.13",
        config="CONFIG_PREEMPT_DYNAMIC",
        change="1011dcce99f8 sched,preempt: Move preempt_dynamic to debug.c",
        boot="preempt",
        documentation="Documentation/admin-guide/kernel-parameters.txt",
        kind=KnobKind.CHOICE,
        allowed=(
            # 7dadeaa6e851 sched: Further restrict the preemption modes
            Allowed(since="7.0", choices=("full", "lazy")),
            Allowed(since="6.13", choices=("none", "voluntary", "full", "lazy")),
            Allowed(choices=("none", "voluntary", "full")),
        ),
    ),
    file(
        "fair_server_runtime",
        f"{DEBUG_SCHED}fair_server/{{cpu}}/runtime",
        "time in each period that ordinary tasks keep although real-time tasks want the CPU",
        "50000000",
        since="6.12",
        change="d741f297bcea sched/fair: Fair server interface",
        documentation=_DEBUG,
        unit="ns",
        coupled=("kernel.sched_rt_runtime_us",),
    ),
    sysctl(
        "kernel.sched_rt_runtime_us",
        "part of each period in which real-time tasks may run; -1: no limit",
        (
            Default(since="7.2", value="1000000"),  # c2e390197ad1: Update default bandwidth … to ONE
            Default(value="950000"),
        ),
        minimum=-1,
        maximum=1_000_000,
        unit="us",
        coupled=("kernel.sched_rt_period_us",),
        safety=_STARVES,
        documentation=_RT,
    ),
    sysctl(
        "kernel.sched_rt_period_us",
        "period over which the running time of real-time tasks is limited",
        "1000000",
        minimum=1,
        unit="us",
        coupled=("kernel.sched_rt_runtime_us",),
        safety=_STARVES,
        documentation=_RT,
    ),
    sysctl(
        "kernel.sched_rr_timeslice_ms",
        "slice of a SCHED_RR task; 0 and less bring the default back",
        "100",
        unit="ms",
    ),
    sysctl(
        "kernel.sched_cfs_bandwidth_slice_us",
        "quota that a CPU takes at once from a group with cpu.max",
        "5000",
        minimum=1,
        unit="us",
        config="CONFIG_CFS_BANDWIDTH",
        documentation="Documentation/scheduler/sched-bwc.rst",
    ),
    sysctl(
        "kernel.sched_autogroup_enabled",
        "each session is a group of its own: a build with many jobs leaves a desktop its share",
        (
            Default(since="6.12", value="1"),
            Default(computed="the distribution: Debian's kernels have a patch that makes it 0"),
        ),
        choices=("0", "1"),
        kind=KnobKind.SWITCH,
        config="CONFIG_SCHED_AUTOGROUP",
        boot="noautogroup",
    ),
    sysctl(
        "kernel.sched_schedstats",
        "scheduler statistics for each task and CPU; they cost time at each switch",
        "0",
        choices=("0", "1"),
        kind=KnobKind.SWITCH,
        config="CONFIG_SCHEDSTATS",
        boot="schedstats",
    ),
    sysctl(
        "kernel.sched_util_clamp_min",
        "largest lower bound on utilisation that a task may ask for",
        "1024",
        minimum=0,
        maximum=1024,
        config="CONFIG_UCLAMP_TASK",
        coupled=("kernel.sched_util_clamp_max",),
    ),
    sysctl(
        "kernel.sched_util_clamp_max",
        "largest upper bound on utilisation that a task may ask for",
        "1024",
        minimum=0,
        maximum=1024,
        config="CONFIG_UCLAMP_TASK",
        coupled=("kernel.sched_util_clamp_min",),
    ),
    sysctl(
        "kernel.timer_migration",
        "timers of an idle CPU may fire on a busy one",
        "1",
        choices=("0", "1"),
        kind=KnobKind.SWITCH,
        config="CONFIG_NO_HZ_COMMON",
    ),
    sysctl(
        "kernel.numa_balancing",
        "pages and tasks are moved to the same NUMA node: 1; 2 moves hot pages to faster memory",
        (Default(value="0", computed="NUMA nodes: 1 where there are several"),),
        allowed=(Allowed(since="5.18", minimum=0, maximum=4), Allowed(minimum=0, maximum=1)),
        config="CONFIG_NUMA_BALANCING",
        boot="numa_balancing",
    ),
    _numa("scan_delay_ms", "age of a task at which its memory is first scanned", "1000", "ms"),
    _numa("scan_period_min_ms", "shortest time between scans of a task's memory", "1000", "ms"),
    _numa("scan_period_max_ms", "longest time between scans of a task's memory", "60000", "ms"),
    _numa("scan_size_mb", "memory that one scan covers", "256", "MB"),
    file(
        "numa_balancing_hot_threshold_ms",
        f"{DEBUG_SCHED}numa_balancing/hot_threshold_ms",
        "time between scan and fault below which a page of slow memory counts as hot",
        "1000",
        since="6.1",
        config="CONFIG_NUMA_BALANCING",
        change="33024536bafd memory tiering: hot page selection with hint page fault latency",
        documentation=_DEBUG,
        unit="ms",
    ),
    sysctl(
        "kernel.numa_balancing_promote_rate_limit_MBps",
        "memory moved to faster memory in a second at most",
        "65536",
        minimum=0,
        since="6.1",
        change="c6833e10008f memory tiering: rate limit NUMA migration throughput",
        config="CONFIG_NUMA_BALANCING",
        unit="MB/s",
    ),
    file(
        "workqueue.power_efficient",
        "/sys/module/workqueue/parameters/power_efficient",
        "work of queues that allow it may run on another CPU, so that idle ones sleep on",
        (Default(value="Y", config="CONFIG_WQ_POWER_EFFICIENT_DEFAULT"), Default(value="N")),
        boot="workqueue.power_efficient",
        documentation=_WORKQUEUE,
        kind=KnobKind.SWITCH,
        needs="a boot: the file is read-only, and queues made before keep what they were",
    ),
    file(
        "workqueue.default_affinity_scope",
        "/sys/module/workqueue/parameters/default_affinity_scope",
        "CPUs that the workers of an unbound queue share",
        (Default(since="7.2", value="cache_shard"), Default(value="cache")),
        since="6.6",
        change="63c5484e7495 workqueue: Add multiple affinity scopes and interface to select them",
        boot="workqueue.default_affinity_scope",
        documentation=_WORKQUEUE,
        kind=KnobKind.CHOICE,
        allowed=(
            Allowed(since="7.2", choices=("cpu", "smt", "cache_shard", "cache", "numa", "system")),
            Allowed(choices=("cpu", "smt", "cache", "numa", "system")),
        ),
    ),
    file(
        "workqueue.cpu_intensive_thresh_us",
        "/sys/module/workqueue/parameters/cpu_intensive_thresh_us",
        "time after which a work item no longer keeps others of its queue waiting",
        (Default(computed="the CPU's speed: 10000 and more where it is slow"),),
        since="6.5",
        change="616db8779b1e workqueue: Automatically mark CPU-hogging work items CPU_INTENSIVE",
        boot="workqueue.cpu_intensive_thresh_us",
        documentation=_WORKQUEUE,
        unit="us",
    ),
    file(
        "workqueue.cpumask",
        "/sys/devices/virtual/workqueue/cpumask",
        "CPUs on which the workers of unbound queues may run",
        (Default(computed="CPUs that are not isolated"),),
        documentation=_WORKQUEUE,
        kind=KnobKind.MASK,
    ),
)
"""Those of this subsystem."""
