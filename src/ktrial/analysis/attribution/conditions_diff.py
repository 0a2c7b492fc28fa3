"""What differs between two treatments beside their functions: levels, configuration, settings, counters."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from ktrial.errors import KtrialError
from ktrial.kernels.kernel_difference import ConfigSide, known_of, paired
from ktrial.knobs.values import same
from ktrial.model.attribution import (
    CounterDifference,
    Differences,
    Explanation,
    Governed,
    KernelValues,
    LevelDifference,
    OptionDifference,
    ValueDifference,
)
from ktrial.model.design import FactorKind, Treatment
from ktrial.model.kernel import Kernel, KernelDifference
from ktrial.model.machine import Boot
from ktrial.model.study import Study
from ktrial.model.trial import OPERATIONS, Trial

_SMALL = 10.0
"""Added to both sides of a ratio, over the whole run; and what is less apart is no finding."""
_SMALLEST_DIFFERENCE = math.log(1.01)
_LAST = "network"
_DISKS = "/sys/block/"
_TIMES = re.compile(r".*_ns|.*_time|.*run_delay|stat\.cpu\..*|rusage\.maxrss_kib")
"""Counters that are no events: times, which most kernels only sample at each tick."""
Values = Callable[[Boot], KernelValues | None]
"""A boot's settings; None where they are not to be read. May raise KtrialError."""


@dataclass(frozen=True)
class ProfiledArm:
    """One treatment, with what is known of it."""

    treatment: Treatment
    boot: Boot | None
    """None where its kernel is not there any more."""
    trial: Trial | None
    """The trial that was profiled; None where it was not kept."""


@dataclass
class _Unknowns:
    unknown: list[str] = field(default_factory=list)


def differences(
    study: Study,
    explanation: Explanation,
    before: ProfiledArm,
    after: ProfiledArm,
    values: Values,
    kernels: Sequence[KernelDifference] = (),
) -> Differences:
    """Everything that differs. What cannot be told is said in `unknown`; nothing is raised for it.

    `kernels`: what is known of the differences between the study's kernels, to fold options by.
    """
    unknowns = _Unknowns()
    first, second = ((arm.boot.parameters if arm.boot else ()) for arm in (before, after))
    return Differences(
        levels=_levels(study, before.treatment, after.treatment),
        boot_before=tuple(parameter for parameter in first if parameter not in second),
        boot_after=tuple(parameter for parameter in second if parameter not in first),
        options=_options(explanation, before, after, unknowns, kernels),
        values=_with_effects(
            study, explanation, before, after, _values(explanation, before, after, values, unknowns)
        ),
        counters=_counters(explanation, before, after, unknowns),
        unknown=tuple(unknowns.unknown),
    )


def differing_values(before: KernelValues, after: KernelValues) -> tuple[ValueDifference, ...]:
    """Settings with other values first, then those that only one of the two has; each by path.

    A file that could not be read in one of the two is no difference, nor is `Y` for `1`.
    """
    unknown = before.left_out.keys() | after.left_out.keys()
    paths = sorted((before.values.keys() | after.values.keys()) - unknown)
    settings = [
        ValueDifference(
            path=path,
            before=before.values.get(path),
            after=after.values.get(path),
            subsystem=setting_owner(path),
        )
        for path in paths
    ]
    differing = [difference for difference in settings if not _is_same(difference.before, difference.after)]
    return tuple(sorted(differing, key=_one_sided))


def _one_sided(difference: ValueDifference) -> bool:
    return None in (difference.before, difference.after)


def _rank(subsystem: str, heavy: list[str]) -> int:
    """Those of heavy subsystems first; the network's, which are many, last."""
    if subsystem in heavy:
        return heavy.index(subsystem)
    return len(heavy) + (subsystem == _LAST)


def _is_same(before: str | None, after: str | None) -> bool:
    return before == after or (before is not None and after is not None and same(before, after))


def _levels(study: Study, before: Treatment, after: Treatment) -> tuple[LevelDifference, ...]:
    kinds = {factor.name: factor.kind for factor in study.factors}
    return tuple(
        LevelDifference(factor=name, before=_shown(kinds.get(name), old), after=_shown(kinds.get(name), new))
        for name, old in before.levels.items()
        if (new := after.levels[name]) != old
    )


def _shown(kind: FactorKind | None, level: object) -> str:
    """A boot parameter without a value is not given at all."""
    return str(level) if str(level) or kind is not FactorKind.BOOT else "(not given)"


def _options(
    explanation: Explanation,
    before: ProfiledArm,
    after: ProfiledArm,
    unknowns: _Unknowns,
    kernels: Sequence[KernelDifference],
) -> tuple[OptionDifference, ...]:
    kernels_booted = [arm.boot.kernel if arm.boot else None for arm in (before, after)]
    for arm, kernel in zip((before, after), kernels_booted, strict=True):
        if kernel is None or _known(kernel) is None:
            unknowns.unknown.append(f"options: the configuration of {arm.treatment.label} is not known")
            return ()
    follows = _follows(kernels, before, after)
    return owned_options(explanation, _differing(*filter(None, kernels_booted), tuple(follows.items())))


@lru_cache(maxsize=16)
def _known(kernel: Kernel) -> ConfigSide | None:
    return known_of(kernel, None)


@lru_cache(maxsize=16)
def _paired(before: Kernel, after: Kernel) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Both kernels' options, under one name where they were renamed."""
    sides = list(filter(None, map(_known, (before, after))))
    pair = paired(sides[0], sides[1])
    return pair.before.config, pair.after.config


@lru_cache(maxsize=16)
def _differing(
    before: Kernel, after: Kernel, follows: tuple[tuple[str, str], ...]
) -> "tuple[DifferingOption, ...]":
    """The same for all workloads of a study."""
    return tuple(option_groups(*_paired(before, after), dict(follows)))


def _follows(
    kernels: Sequence[KernelDifference], before: ProfiledArm, after: ProfiledArm
) -> Mapping[str, str]:
    """Option → the option that it follows from, as the study has kept it; empty where it has not."""
    pair = {arm.boot.kernel.digest for arm in (before, after) if arm.boot}
    for kernel_difference in kernels:
        if {kernel_difference.before.digest, kernel_difference.after.digest} == pair:
            return {change.option: change.follows for change in kernel_difference.options if change.follows}
    return {}


def _with_effects(
    study: Study,
    explanation: Explanation,
    before: ProfiledArm,
    after: ProfiledArm,
    settings: tuple[ValueDifference, ...],
) -> tuple[ValueDifference, ...]:
    """With the settings of the study's own disk; those that affect what was measured come first."""
    if study.machine.disk:
        settings = tuple(setting for setting in settings if not setting.path.startswith(_DISKS))
    measured = _measured(explanation, before, after)
    settings_with_effects = [
        setting.model_copy(
            update={
                "governs": affected_metrics(
                    setting.path, setting.before, setting.after, measured, study.margin
                )
            }
        )
        if setting.before is not None and setting.after is not None
        else setting
        for setting in (*_of_disk(before, after), *settings)
    ]
    return tuple(sorted(settings_with_effects, key=lambda setting: not setting.governs))


def _of_disk(before: ProfiledArm, after: ProfiledArm) -> Iterable[ValueDifference]:
    """What the disk had while the workloads ran, as both trials tell it."""
    old, new = (arm.trial.settings if arm.trial else {} for arm in (before, after))
    for path in sorted(old.keys() & new.keys()):
        if path.startswith(_DISKS) and not _is_same(old[path], new[path]):
            yield ValueDifference(path=path, before=old[path], after=new[path], subsystem=setting_owner(path))


def _measured(
    explanation: Explanation, before: ProfiledArm, after: ProfiledArm
) -> dict[str, tuple[float, float]]:
    """Metric → what both trials measured of it."""
    old, new = (
        {
            sample.metric: sample.value
            for sample in (arm.trial.samples if arm.trial else ())
            if sample.workload == explanation.workload
        }
        for arm in (before, after)
    )
    return {name: (old[name], new[name]) for name in old.keys() & new.keys()}


def _values(
    explanation: Explanation, before: ProfiledArm, after: ProfiledArm, values: Values, unknowns: _Unknowns
) -> tuple[ValueDifference, ...]:
    if before.boot == after.boot:
        return ()
    heavy = heavy_subsystems(explanation)
    of_arms: list[KernelValues] = []
    for arm in (before, after):
        try:
            read = values(arm.boot) if arm.boot else None
        except KtrialError as error:
            unknowns.unknown.append(f"settings of {arm.treatment.label}: {error.message}")
            return ()
        if read is None:
            unknowns.unknown.append(f"settings: those of {arm.treatment.label} were not read")
            return ()
        of_arms.append(read)
    differing = differing_values(of_arms[0], of_arms[1])
    return tuple(
        sorted(differing, key=lambda difference: (_one_sided(difference), _rank(difference.subsystem, heavy)))
    )


def _counters(
    explanation: Explanation, before: ProfiledArm, after: ProfiledArm, unknowns: _Unknowns
) -> tuple[CounterDifference, ...]:
    if before.trial is None or after.trial is None:
        unknowns.unknown.append("counters: a trial that was profiled is not in the store")
        return ()
    old, new = (_deltas(arm.trial, explanation.workload) for arm in (before, after) if arm.trial)
    sides = explanation.before, explanation.after
    counted = all(deltas.get(OPERATIONS) for deltas in (old, new))
    operations = [
        deltas.pop(OPERATIONS, 0.0) if counted else float(side.operations)
        for deltas, side in zip((old, new), sides, strict=True)
    ]
    differing = {
        name: abs(_size(new.get(name, 0.0), operations[1]) - _size(old.get(name, 0.0), operations[0]))
        for name in (old.keys() | new.keys()) - {OPERATIONS}
        if _events_apart(old.get(name, 0.0), new.get(name, 0.0), operations) >= _SMALL
    }
    return tuple(
        CounterDifference(
            counter=name, before=old.get(name, 0.0) / operations[0], after=new.get(name, 0.0) / operations[1]
        )
        for name in _ranked(differing)
    )


def _deltas(trial: Trial, workload: str) -> dict[str, float]:
    return {
        counter.name: counter.delta
        for counter in trial.counters
        if counter.workload == workload and not _TIMES.fullmatch(counter.name)
    }


def _events_apart(before: float, after: float, operations: list[float]) -> float:
    """By how many events the second differs from the first, had it done as many operations."""
    return abs(after * operations[0] / operations[1] - before)


def _ranked(differing: Mapping[str, float]) -> Iterable[str]:
    large = [name for name, distance in differing.items() if distance >= _SMALLEST_DIFFERENCE]
    return sorted(large, key=lambda name: (-differing[name], name))


def _size(delta: float, operations: float) -> float:
    return math.log((max(delta, 0.0) + _SMALL) / operations)


# Which `.config` options plausibly change which functions.
#
# Told by the option's name, as a subsystem is by its functions': it says where to look, not what was the
# cause.

ALL_CODE = "all code"
"""The compiler, and what it is told for every function."""
OWNED = {
    ALL_CODE: """
        CC_VERSION_TEXT CC_OPTIMIZE.* LTO.* CFI.* CALL_PADDING CALL_THUNKS FUNCTION_ALIGNMENT.*
        FUNCTION_PADDING.* (MITIGATION_)?(RETPOLINE|RETHUNK|SLS|CALL_DEPTH_TRACKING)
        X86_KERNEL_IBT STACKPROTECTOR.* INIT_STACK.* ZERO_CALL_USED_REGS FORTIFY_SOURCE UBSAN.*
        KASAN.* KCSAN.* KMSAN.* KCOV.* FUNCTION_TRACER (DYNAMIC_)?FTRACE.* PREEMPT.* SMP NUMA
        PARAVIRT.* JUMP_LABEL RANDSTRUCT.* LIST_HARDENED DEBUG_LIST BUG_ON_DATA_CORRUPTION
        GCC_PLUGIN.* FRAME_POINTER UNWINDER.* CC_IMPLICIT.*
    """,
    "string operations": "HARDENED_USERCOPY.* INIT_ON_.* X86_SMAP CC_OPT_INLINE_MEMSET",
    "maple tree": "DEBUG_MAPLE_TREE PER_VMA_LOCK LOCK_MM_AND_FIND_VMA",
    "slab": """
        SLUB.* SLAB.* SLOB.* RANDOM_KMALLOC_CACHES INIT_ON_.* KFENCE.* MEMCG_KMEM
        MEM_ALLOC_PROFILING.* DEBUG_KMEMLEAK.* FAILSLAB STACKDEPOT.*
    """,
    "page allocator": """
        INIT_ON_.* SHUFFLE_PAGE_ALLOCATOR PAGE_(POISONING|REPORTING|OWNER|EXTENSION).*
        DEBUG_PAGEALLOC.* COMPACTION UNACCEPTED_MEMORY PCP_BATCH_SCALE_MAX CMA.*
        MEM_ALLOC_PROFILING.* FAIL_PAGE_ALLOC MEMORY_ISOLATION ARCH_FORCE_MAX_ORDER ZONE_DMA.*
        DEFERRED_STRUCT_PAGE_INIT BALLOON_COMPACTION
    """,
    "page tables": """
        PGTABLE.* X86_5LEVEL (MITIGATION_)?PAGE_TABLE_ISOLATION TRANSPARENT_HUGEPAGE.* PT_RECLAIM
        SPLIT_P.*PTLOCK.* PAGE_TABLE_CHECK.* MMU_GATHER.* MMU_LAZY_TLB.* PTE_MARKER.*
        USERFAULTFD.* HUGETLB.* X86_PAT HAVE_MOVE_P[MU]D MEM_SOFT_DIRTY X86_MEM_ENCRYPT
        AMD_MEM_ENCRYPT
    """,
    "page faults": """
        PER_VMA_LOCK LOCK_MM_AND_FIND_VMA USERFAULTFD.* TRANSPARENT_HUGEPAGE.* X86_INTEL_MEM.*KEYS
    """,
    "memory control groups": "MEMCG.* LRU_GEN.* CGROUP_HUGETLB",
    "mm": """
        LRU_GEN.* SWAP ZSWAP.* FRONTSWAP KSM MIGRATION NUMA_BALANCING.* SPARSEMEM.* VM_EVENT.*
        PER_VMA_LOCK READ_ONLY_THP_FOR_FS SHMEM TMPFS.* SECRETMEM IDLE_PAGE.* PAGE_IDLE.* GUP_.*
        MEMFD_CREATE COMPAT_BRK
    """,
    "per-CPU memory": "PERCPU.* NEED_PER_CPU.* MEM_ALLOC_PROFILING.* MEMCG_KMEM",
    "scheduler": """
        SCHED.* FAIR_GROUP.* CFS_BANDWIDTH RT_GROUP.* CGROUP_CPUACCT CGROUP_SCHED UCLAMP.* PSI.*
        NO_HZ.* HZ(_.*)? VIRT_CPU_ACCOUNTING.* TICK_CPU.* CONTEXT_TRACKING.* NUMA_BALANCING.*
        CORE_SCHED.* PROXY_EXEC CPUSETS.* PREEMPT.* TASK_DELAY_ACCT IRQ_TIME_ACCOUNTING MM_ID
        GROUP_SCHED.* CPU_ISOLATION
    """,
    "locks": """
        (DEBUG_)?(LOCK|MUTEX|RWSEM|SPINLOCK|RT_MUTEX|WW_MUTEX).* PROVE.*
        (UN)?INLINE_(SPIN|READ|WRITE).* QUEUED_.* PARAVIRT_SPINLOCKS .*SPIN_ON_OWNER
    """,
    "RCU": "RCU.* TINY.*RCU TREE.*RCU TASKS.*RCU.* .*SRCU PREEMPT.*",
    "processes": """
        NAMESPACES .*_NS CHECKPOINT_RESTORE TASKSTATS TASK_.* BSD_PROCESS_ACCT.* STACK_?.*
        VMAP_STACK THREAD_INFO_IN_TASK RANDOMIZE_KSTACK.* SCHED_MM_CID SECCOMP.* PROC_EVENTS
        PROC_CHILDREN FUTEX.* UPROBES X86_FPU.* COREDUMP CORE_DUMP.* BINFMT.*
        X86_USER_SHADOW_STACK AUDIT.* FREEZER
    """,
    "signals": "DYNAMIC_SIGFRAME SIGNALFD",
    "timers": """
        HZ(_.*)? NO_HZ.* HIGH_RES_TIMERS POSIX_TIMERS.* POSIX_CPU_TIMERS.* CLOCKSOURCE.* TIMER.*
        HRTIMER.*
    """,
    "interrupts": "IRQ.* GENERIC_IRQ.* X86_X2APIC X86_LOCAL_APIC SOFTIRQ.* FORCE_IRQ.* HARDIRQS.*",
    "entry and exit": """
        MITIGATION_.* CPU_(IBPB_ENTRY|IBRS_ENTRY|UNRET_ENTRY|SRSO|SUP_.*) RSEQ.*
        (MITIGATION_)?PAGE_TABLE_ISOLATION RANDOMIZE_KSTACK.*
        DEBUG_RSEQ X86_FRED GENERIC_ENTRY CONTEXT_TRACKING.* AUDITSYSCALL SECCOMP.*
        IA32_EMULATION.* X86_X32.* LIVEPATCH
    """,
    "file systems": """
        FSNOTIFY FANOTIFY.* INOTIFY.* DNOTIFY FILE_LOCKING MANDATORY_FILE_LOCKING FS_.* EPOLL
        EVENTFD AIO TMPFS.* PROC_.* SYSFS.* KERNFS QUOTA.* OVERLAY_FS.* EXT4.* XFS.* BTRFS.*
        BUFFER_HEAD LEGACY_DIRECT_IO CACHESTAT_SYSCALL DCACHE.* WATCH_QUEUE
    """,
    "block devices": "BLK.* BLOCK.* IOSCHED.* MQ_IOSCHED.*",
    "network": """
        NET NET_.* INET.* TCP.* IPV6.* NETFILTER.* NF_.* XFRM.* BPF_.* MPTCP.* UNIX.* AF_UNIX.*
        SOCK.* SKB.* MAX_SKB_FRAGS RPS RFS_ACCEL XPS BQL DEFAULT_.*(CUBIC|BBR|RENO|TCP_CONG)
        PCPU_DEV_REFCNT SYN_COOKIES
    """,
    "control groups": "CGROUP.* CPUSETS.* BLK_CGROUP.*",
    "futexes": "FUTEX.*",
    "security": """
        LSM SECURITY.* DEFAULT_SECURITY.* IMA.* EVM.* INTEGRITY.* BPF_LSM KEYS.*
    """,
    "audit": "AUDIT.*",
    "BPF": "BPF.* .*_BPF",
    "performance events": "PERF_EVENTS.* GUEST_PERF_EVENTS KPROBES.* UPROBE.* .*RETHOOK",
    "tracing": ".*TRAC(E|ER|ERS|ING).* .*_EVENTS FPROBE.*",
    "work queues": "WQ_.*",
    "random numbers": "RANDOM_TRUST.* CRYPTO_(LIB_)?(CHACHA|BLAKE2S).* VDSO_GETRANDOM HW_RANDOM",
    "cryptography": "CRYPTO.*",
    "io_uring": "IO_URING.*",
    "IPC": "SYSVIPC.* POSIX_MQUEUE.*",
    "virtualization": "KVM.* XEN.* HYPERV.* .*_GUEST",
    "bit maps and lists": "LIST_HARDENED DEBUG_LIST GENERIC_FIND_.*",
}
"""Subsystem → patterns of whole option names, without CONFIG_."""
_PATTERNS = {name: re.compile("|".join(text.split())) for name, text in OWNED.items()}
_NO_CHOICE = re.compile(
    r"(ARCH_(HAS|HAVE|SUPPORTS|WANTS?|USES?|USE|ENABLE|SELECTS?)|HAVE|HAS|CC_HAS|CC_CAN|AS|LD|RUSTC?|PAHOLE)_.*"
)
"""What the architecture or the tools can do; the options that make use of it are in the list as well."""
_NOTHING_FOLLOWS: Mapping[str, str] = {}
_SMALLEST_PART = 0.01
"""Of all differences taken without their signs: what a smaller subsystem owns is not named."""


class DifferingOption(NamedTuple):
    """An option that is not the same, with what follows from it."""

    plain: OptionDifference
    """Without owners."""
    owners: frozenset[str]
    """Whatever may own it."""


def differing_options(
    explanation: Explanation,
    before: Mapping[str, str],
    after: Mapping[str, str],
    follows: Mapping[str, str] = _NOTHING_FOLLOWS,
) -> tuple[OptionDifference, ...]:
    """Options (`CONFIG_SMP` → `y`) that are not the same; first those that heavy subsystems own.

    An option's owners are those of the explanation's subsystems that make at least 1 % of the differences.
    `follows`: option → the option that it follows from, which then stands for both, with the owners of both.
    """
    return owned_options(explanation, option_groups(before, after, follows))


def option_groups(
    before: Mapping[str, str], after: Mapping[str, str], follows: Mapping[str, str]
) -> list[DifferingOption]:
    """The options that are not the same, by name; with their owners in any explanation."""
    groups: dict[str, list[str]] = {}
    for option in sorted({option for option, _ in before.items() ^ after.items()}):
        groups.setdefault(follows.get(option, option), []).append(option)
    return [
        DifferingOption(
            OptionDifference(
                option=option,
                before=before.get(option),
                after=after.get(option),
                followers=tuple(member for member in together if member != option),
            ),
            frozenset().union(*map(_all_owners, together)),
        )
        for option, together in sorted(groups.items())
    ]


def owned_options(
    explanation: Explanation, options: Iterable[DifferingOption]
) -> tuple[OptionDifference, ...]:
    """The options with those owners that weigh something in this explanation; first those that have one."""
    order = [*heavy_subsystems(explanation), ALL_CODE]
    owned, others = [], []
    for option in options:
        if owners := tuple(name for name in order if name in option.owners):
            owned.append((order.index(owners[0]), option.plain.model_copy(update={"owners": owners})))
        else:
            others.append(option.plain)
    return (*(option for _, option in sorted(owned, key=itemgetter(0))), *others)


def heavy_subsystems(explanation: Explanation) -> list[str]:
    """Subsystems that make at least 1 % of the differences, taken without their signs; the heaviest first."""
    sums: dict[str, int] = {}
    for row in explanation.rows:
        sums[row.subsystem] = sums.get(row.subsystem, 0) + explanation.rank(row)
    least = _SMALLEST_PART * sum(sums.values())
    heavy = [name for name, weight in sums.items() if weight and weight >= least]
    return sorted(heavy, key=lambda name: (-sums[name], name))


@lru_cache(maxsize=65536)
def _all_owners(option: str) -> frozenset[str]:
    """Whatever may own the option; of what changes all code, that alone."""
    name = option.removeprefix("CONFIG_")
    if _NO_CHOICE.fullmatch(name):
        return frozenset()
    if _PATTERNS[ALL_CODE].fullmatch(name):
        return frozenset({ALL_CODE})
    return frozenset(subsystem for subsystem, pattern in _PATTERNS.items() if pattern.fullmatch(name))


# Which subsystem a setting belongs to, told by where it is, and which measured numbers it decides: where it
# differs and they moved as it says, it is a cause.

_MORE, _LESS, _EITHER = 1, -1, 0
_LARGEST_REQUEST = r"/sys/block/[^/]+/queue/max_sectors_kb"
_NEAR = 0.5
"""A limit is felt where the mean is above that part of it."""
_EFFECTS: tuple[tuple[str, dict[str, int]], ...] = (
    # mm/readahead.c: the largest window. By default 128 KiB; in 6.18 and 7.2, for a disk that turns, twice
    # its largest request (block/blk-settings.c).
    (r"/sys/block/[^/]+/queue/read_ahead_kb", {"average read size": _MORE, "read requests": _LESS}),
    (_LARGEST_REQUEST, {"average read size": _MORE, "read requests": _LESS}),
    # mm/vmscan.c: another way to choose what is evicted.
    (
        r"/sys/kernel/mm/lru_gen/enabled",
        {"refaults": _EITHER, "evictions": _EITHER, "activations": _EITHER},
    ),
    # mm/page-writeback.c: how much may be dirty.
    (r"/proc/sys/vm/dirty_(background_)?(ratio|bytes)", {"written": _LESS}),
    (r"/proc/sys/vm/dirty_(expire|writeback)_centisecs", {"written": _LESS}),
)
"""Pattern of a setting's path → metric → where it goes when the setting's number rises."""
_PLACES = {
    "/proc/sys/abi/": "entry and exit",
    "/proc/sys/crypto/": "cryptography",
    "/proc/sys/fs/": "file systems",
    "/proc/sys/kernel/bpf": "BPF",
    "/proc/sys/kernel/futex": "futexes",
    "/proc/sys/kernel/io_uring": "io_uring",
    "/proc/sys/kernel/msg": "IPC",
    "/proc/sys/kernel/perf": "performance events",
    "/proc/sys/kernel/random/": "random numbers",
    "/proc/sys/kernel/randomize_va_space": "processes",
    "/proc/sys/kernel/sched": "scheduler",
    "/proc/sys/kernel/numa_balancing": "scheduler",
    "/proc/sys/kernel/sem": "IPC",
    "/proc/sys/kernel/shm": "IPC",
    "/proc/sys/kernel/timer": "timers",
    "/proc/sys/net/": "network",
    "/proc/sys/user/": "processes",
    "/proc/sys/vm/": "mm",
    "/sys/block/": "block devices",
    "/sys/devices/system/clocksource/": "timers",
    "/sys/devices/system/cpu/vulnerabilities/": "entry and exit",
    "/sys/kernel/debug/sched/": "scheduler",
    "/sys/kernel/debug/x86/": "entry and exit",
    "/sys/kernel/mm/": "mm",
    "/sys/kernel/mm/transparent_hugepage/": "page tables",
    "/sys/kernel/rcu": "RCU",
    "/sys/module/apparmor/": "security",
    "/sys/module/rcu": "RCU",
    "/sys/module/srcu": "RCU",
    "/sys/module/tcp": "network",
    "/sys/module/workqueue/": "work queues",
}
"""How a path begins → subsystem. The longest decides."""


def affected_metrics(
    path: str, before: str, after: str, measured: Mapping[str, tuple[float, float]], margin: float
) -> tuple[Governed, ...]:
    """Those of the metrics (name → from, to) that the setting affects and that moved beyond the margin."""
    rises = _rises(before, after)
    if re.fullmatch(_LARGEST_REQUEST, path) and not (rises and _felt(before, after, measured)):
        return ()
    moves = next((moves for pattern, moves in _EFFECTS if re.fullmatch(pattern, path)), {})
    return tuple(
        Governed(metric=metric, before=measured[metric][0], after=measured[metric][1])
        for metric, direction in moves.items()
        if metric in measured and _moved_as_told(rises * direction, *measured[metric], margin)
    )


def _felt(before: str, after: str, measured: Mapping[str, tuple[float, float]]) -> bool:
    """Whether requests come near the smaller of the two limits: else something else keeps them small."""
    smaller = min(float(before), float(after))
    return min(measured.get("average read size", (0.0, 0.0))) >= _NEAR * smaller


def _rises(before: str, after: str) -> int:
    """1, or -1 where it falls; 0 where it is no number."""
    try:
        old, new = float(before), float(after)
    except ValueError:
        return 0
    return (new > old) - (new < old)


def _moved_as_told(direction: int, before: float, after: float, margin: float) -> bool:
    moved = (after > before * (1 + margin)) - (before > after * (1 + margin))
    return moved != 0 and direction in (0, moved)


@lru_cache(maxsize=8192)
def setting_owner(path: str) -> str:
    """The subsystem of the file's setting; empty where that is not known."""
    prefixes = [place for place in _PLACES if path.startswith(place)]
    return _PLACES[max(prefixes, key=len)] if prefixes else ""
