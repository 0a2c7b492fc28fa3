"""/proc/schedstat, where the kernel has it: what the scheduler did (scheduler/sched-stats.rst)."""

import re
from collections.abc import Mapping

_FILE = "/proc/schedstat"
_COLUMNS = (
    "yld_count",
    "",
    "sched_count",
    "sched_goidle",
    "ttwu_count",
    "ttwu_local",
    "rq_cpu_time",
    "run_delay",
    "pcount",
)
"""Columns of the lines `cpu<N>`, named as kernel/sched/stats.c names the fields; the second is always 0."""


class _SchedStat:
    """Calls of schedule(), wake-ups, time spent waiting to run; summed over the CPUs."""

    name = "schedstat"
    summary = "from /proc/schedstat: schedule() calls, wake-ups, time on and waiting for the run queue"
    files = (_FILE,)

    def counters(
        self, watched: Mapping[str, Mapping[str, tuple[float, ...]]], rusage: Mapping[str, float]
    ) -> dict[str, float]:
        """`schedstat.sched_count`, `schedstat.run_delay` (nanoseconds) and so on."""
        totals: dict[str, float] = {}
        for line, rises in watched.get(_FILE, {}).items():
            if not re.fullmatch(r"cpu\d+", line):
                continue
            for name, rise in zip(_COLUMNS, rises, strict=False):
                if name and rise:
                    totals[f"schedstat.{name}"] = totals.get(f"schedstat.{name}", 0.0) + rise
        return totals


MONITOR = _SchedStat()
