"""/proc/stat: context switches, forks, interrupts, and CPU time (proc_stat(5))."""

from collections.abc import Mapping

_FILE = "/proc/stat"
_CPU = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
"""Columns of the line `cpu`, in clock ticks (USER_HZ)."""
_SOFTIRQ = (
    "hi",
    "timer",
    "net_tx",
    "net_rx",
    "block",
    "irq_poll",
    "tasklet",
    "sched",
    "hrtimer",
    "rcu",
)
"""Columns of the line `softirq` after the total (include/linux/interrupt.h)."""
_SINGLE = ("ctxt", "processes")


class _Stat:
    """Switches, forks, interrupts and ticks of the whole guest."""

    name = "stat"
    summary = "from /proc/stat: context switches, forks, interrupts, softirqs, CPU time in ticks"
    files = (_FILE,)

    def counters(
        self, watched: Mapping[str, Mapping[str, tuple[float, ...]]], rusage: Mapping[str, float]
    ) -> dict[str, float]:
        """`stat.ctxt`, `stat.processes`, `stat.intr`, `stat.softirq.timer`, `stat.cpu.system` and so on."""
        lines = watched.get(_FILE, {})
        single = {f"stat.{name}": lines[name][0] for name in _SINGLE if lines.get(name)}
        total = {f"stat.{name}": lines[name][0] for name in ("intr", "softirq") if lines.get(name)}
        return (
            single
            | total
            | _columns("stat.softirq", _SOFTIRQ, lines.get("softirq", ())[1:])
            | _columns("stat.cpu", _CPU, lines.get("cpu", ()))
        )


def _columns(prefix: str, names: tuple[str, ...], rises: tuple[float, ...]) -> dict[str, float]:
    return {f"{prefix}.{name}": rise for name, rise in zip(names, rises, strict=False) if rise}


MONITOR = _Stat()
