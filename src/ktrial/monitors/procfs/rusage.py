"""getrusage(2) of the program and its children: what wait4 says about it when it ends."""

from collections.abc import Mapping

_LEVELS = {"maxrss_kib"}
"""How much, not how often: no counter."""


class _RUsage:
    """The program's own faults, switches, blocks and CPU time."""

    name = "rusage"
    summary = "the program's own faults, context switches, block reads and writes, CPU time"
    files: tuple[str, ...] = ()

    def counters(
        self, watched: Mapping[str, Mapping[str, tuple[float, ...]]], rusage: Mapping[str, float]
    ) -> dict[str, float]:
        """`rusage.minflt`, `rusage.nvcsw`, `rusage.utime_ns` and so on."""
        return {f"rusage.{name}": value for name, value in rusage.items() if name not in _LEVELS}


MONITOR = _RUsage()
