"""Boot parameters: what can be chosen only when the kernel starts."""

from ktrial.knobs.catalogue.declare import boot_parameter
from ktrial.model.knob import Default, KnobKind, Safety

_HARDWARE = "Documentation/admin-guide/hw-vuln/"
_UNSAFE = Safety.SECURITY

KNOBS = (
    boot_parameter(
        "mitigations",
        "all mitigations of flaws of the processor at once",
        "auto",
        choices=("auto", "auto,nosmt", "off"),
        safety=_UNSAFE,
        coupled=("spectre_v2", "spec_store_bypass_disable", "l1tf", "mds", "pti", "retbleed"),
    ),
    boot_parameter(
        "spectre_v2",
        "mitigation of Spectre v2: how indirect branches are done",
        "auto",
        documentation=f"{_HARDWARE}spectre.rst",
        kind=KnobKind.TEXT,
        safety=_UNSAFE,
    ),
    boot_parameter(
        "spec_store_bypass_disable",
        "mitigation of speculative store bypass",
        "auto",
        kind=KnobKind.TEXT,
        safety=_UNSAFE,
    ),
    boot_parameter(
        "pti",
        "kernel and programs have page tables of their own (Meltdown)",
        "auto",
        choices=("on", "off", "auto"),
        documentation="Documentation/arch/x86/pti.rst",
        safety=_UNSAFE,
    ),
    boot_parameter(
        "l1tf",
        "mitigation of the L1 terminal fault, in hosts of virtual machines",
        "flush",
        documentation=f"{_HARDWARE}l1tf.rst",
        kind=KnobKind.TEXT,
        safety=_UNSAFE,
    ),
    boot_parameter(
        "mds",
        "mitigation of microarchitectural data sampling: CPU buffers are cleared",
        "full",
        choices=("full", "full,nosmt", "off"),
        documentation=f"{_HARDWARE}mds.rst",
        safety=_UNSAFE,
    ),
    boot_parameter(
        "retbleed",
        "mitigation of Retbleed: how returns are done",
        "auto",
        since="5.10",
        change="7fbf47c7ce50 x86/bugs: Add AMD retbleed= boot parameter, in 5.19 and stable 5.10",
        kind=KnobKind.TEXT,
        safety=_UNSAFE,
    ),
    boot_parameter(
        "spec_rstack_overflow",
        "mitigation of speculative return stack overflow on AMD's processors",
        "safe-ret",
        since="5.10",
        change="fb3bd914b3ec x86/srso: Add a Speculative RAS Overflow mitigation, in 6.5 and stable 5.10",
        documentation=f"{_HARDWARE}srso.rst",
        kind=KnobKind.TEXT,
        safety=_UNSAFE,
    ),
    boot_parameter(
        "isolcpus",
        "CPUs without ordinary load balancing",
        kind=KnobKind.TEXT,
        coupled=("nohz_full", "rcu_nocbs", "irqaffinity"),
    ),
    boot_parameter(
        "nohz_full",
        "CPUs without a tick while one task runs",
        kind=KnobKind.TEXT,
        config="CONFIG_NO_HZ_FULL",
        coupled=("rcu_nocbs", "isolcpus"),
    ),
    boot_parameter(
        "nohz",
        "idle CPUs have no tick",
        "on",
        choices=("on", "off"),
        config="CONFIG_NO_HZ_COMMON",
    ),
    boot_parameter(
        "rcu_nocbs",
        "CPUs whose RCU callbacks run in threads elsewhere",
        kind=KnobKind.TEXT,
        config="CONFIG_RCU_NOCB_CPU",
    ),
    boot_parameter("irqaffinity", "CPUs that take interrupts", kind=KnobKind.TEXT),
    boot_parameter("threadirqs", "interrupts are handled in threads", kind=KnobKind.SWITCH),
    boot_parameter(
        "psi",
        "pressure stall information: who waits for CPU, memory and disks",
        (
            Default(value="0", config="CONFIG_PSI_DEFAULT_DISABLED"),
            Default(value="1"),
        ),
        kind=KnobKind.SWITCH,
        config="CONFIG_PSI",
        documentation="Documentation/accounting/psi.rst",
    ),
    boot_parameter(
        "init_on_alloc",
        "memory is cleared when it is allocated",
        (Default(value="1", config="CONFIG_INIT_ON_ALLOC_DEFAULT_ON"), Default(value="0")),
        kind=KnobKind.SWITCH,
        safety=_UNSAFE,
        coupled=("init_on_free",),
    ),
    boot_parameter(
        "init_on_free",
        "memory is cleared when it is freed",
        (Default(value="1", config="CONFIG_INIT_ON_FREE_DEFAULT_ON"), Default(value="0")),
        kind=KnobKind.SWITCH,
        safety=_UNSAFE,
        coupled=("init_on_alloc",),
    ),
    boot_parameter(
        "slab_nomerge",
        "slab caches of the same size stay apart",
        (Default(value="", computed="CONFIG_SLAB_MERGE_DEFAULT"),),
        kind=KnobKind.SWITCH,
        safety=_UNSAFE,
        documentation="Documentation/admin-guide/kernel-parameters.txt",
    ),
    boot_parameter(
        "page_alloc.shuffle",
        "free pages are in random order",
        "0",
        kind=KnobKind.SWITCH,
        config="CONFIG_SHUFFLE_PAGE_ALLOCATOR",
    ),
    boot_parameter(
        "randomize_kstack_offset",
        "each system call begins at a random place of the kernel's stack",
        (Default(value="1", config="CONFIG_RANDOMIZE_KSTACK_OFFSET_DEFAULT"), Default(value="0")),
        since="5.13",
        change="39218ff4c625 stack: Optionally randomize kernel stack offset each syscall",
        kind=KnobKind.SWITCH,
        safety=_UNSAFE,
    ),
    boot_parameter("nokaslr", "the kernel is at its usual address", kind=KnobKind.SWITCH, safety=_UNSAFE),
    boot_parameter(
        "default_hugepagesz", "size of the huge pages that hugetlbfs has by default", "2M", kind=KnobKind.TEXT
    ),
    boot_parameter("hugepagesz", "size of the huge pages that hugepages= sets aside", kind=KnobKind.TEXT),
    boot_parameter("cgroup_disable", "controllers that are left out: memory, cpu…", kind=KnobKind.TEXT),
    boot_parameter(
        "audit", "the kernel's audit log: 0 off", kind=KnobKind.SWITCH, config="CONFIG_AUDIT", safety=_UNSAFE
    ),
    boot_parameter(
        "nvme.poll_queues",
        "queues of an NVMe disk that are polled, not interrupt-driven",
        "0",
        config="CONFIG_BLK_DEV_NVME",
        documentation="Documentation/admin-guide/kernel-parameters.txt",
    ),
    boot_parameter(
        "transparent_hugepage_shmem",
        "huge pages for shared memory, from boot on",
        since="6.13",
        kind=KnobKind.TEXT,
        config="CONFIG_TRANSPARENT_HUGEPAGE",
    ),
)
"""Those of this subsystem."""
