"""Which subsystem a setting belongs to, told by where it is."""

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


def setting_owner(path: str) -> str:
    """The subsystem of the file's setting; empty where that is not known."""
    found = [place for place in _PLACES if path.startswith(place)]
    return _PLACES[max(found, key=len)] if found else ""
