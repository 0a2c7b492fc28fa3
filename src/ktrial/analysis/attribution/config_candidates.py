"""Which `.config` options plausibly change which functions.

Told by the option's name, as a subsystem is by its functions': it says where to look, not what was the
cause.
"""

import re
from collections.abc import Iterable, Mapping

from ktrial.model.attribution import Explanation
from ktrial.model.conditions_diff import OptionDifference

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
    weights = heavy_subsystems(explanation)
    order = [*weights, ALL_CODE]
    groups: dict[str, list[str]] = {}
    for option in sorted(before.keys() | after.keys()):
        if before.get(option) != after.get(option):
            groups.setdefault(follows.get(option, option), []).append(option)
    differing = []
    for option, together in groups.items():
        owners = {owner for one in together for owner in _owners(one, weights)}
        differing.append(
            OptionDifference(
                option=option,
                before=before.get(option),
                after=after.get(option),
                owners=tuple(sorted(owners, key=order.index)),
                followers=tuple(one for one in together if one != option),
            )
        )
    differing.sort(key=lambda one: one.option)
    return tuple(sorted(differing, key=lambda one: order.index(one.owners[0]) if one.owners else len(order)))


def heavy_subsystems(explanation: Explanation) -> list[str]:
    """Subsystems that make at least 1 % of the differences, taken without their signs; the heaviest first."""
    sums: dict[str, float] = {}
    for row in explanation.rows:
        sums[row.subsystem] = sums.get(row.subsystem, 0.0) + float(explanation.weight(row))
    least = _SMALLEST_PART * sum(sums.values())
    heavy = [name for name, weight in sums.items() if weight and weight >= least]
    return sorted(heavy, key=lambda name: (-sums[name], name))


def _owners(option: str, heavy: Iterable[str]) -> tuple[str, ...]:
    name = option.removeprefix("CONFIG_")
    if _NO_CHOICE.fullmatch(name):
        return ()
    if _PATTERNS[ALL_CODE].fullmatch(name):
        return (ALL_CODE,)
    return tuple(one for one in heavy if one in _PATTERNS and _PATTERNS[one].fullmatch(name))
