"""Which subsystem a setting belongs to, told by where it is, and which measured numbers it decides: where it
differs and they moved as it says, it is a cause.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from ktrial.model.conditions_diff import Governed

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
        if metric in measured and _follows(rises * direction, *measured[metric], margin)
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


def _follows(direction: int, before: float, after: float, margin: float) -> bool:
    moved = (after > before * (1 + margin)) - (before > after * (1 + margin))
    return moved != 0 and direction in (0, moved)


@lru_cache(maxsize=8192)
def setting_owner(path: str) -> str:
    """The subsystem of the file's setting; empty where that is not known."""
    prefixes = [place for place in _PLACES if path.startswith(place)]
    return _PLACES[max(prefixes, key=len)] if prefixes else ""
