"""What the kernel says of a process's use of this host's CPUs, and of what its threads wait for."""

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_STATE, _USER, _SYSTEM = 0, 11, 12
"""Places in /proc/PID/stat after the program's name (proc_pid_stat(5))."""
_WAITING = frozenset("SI")
"""Asleep until something happens, for which nobody has to give it a CPU or a disk's answer."""


@dataclass(frozen=True)
class CpuUse:
    """One reading."""

    seconds: float
    """Of CPU, all threads together, since the process began."""
    held_up: str = ""
    """The states of threads that would go on if this host let them: R (no CPU), D (a disk), T (stopped)."""
    waited: float = 0.0
    """Seconds for which threads could have run and had no CPU, all together; 0 where that is not told."""


def cpu_use(process: int, proc: Path = Path("/proc")) -> CpuUse | None:
    """Of the process with this id; None where it has ended."""
    own = proc / str(process)
    try:
        facts = _fields(own / "stat")
        threads = [_fields(each / "stat")[_STATE] for each in (own / "task").iterdir()]
        waited = sum(_waited(each / "schedstat") for each in (own / "task").iterdir())
    except OSError:
        return None
    used = (int(facts[_USER]) + int(facts[_SYSTEM])) / _TICKS
    return CpuUse(used, "".join(sorted(set(threads) - _WAITING)), waited)


def _waited(path: Path) -> float:
    """The second number of schedstat (Documentation/scheduler/sched-stats.rst); 0 where there is none."""
    try:
        return int(path.read_text(encoding="ascii").split()[1]) / 1e9
    except FileNotFoundError:
        return 0.0


def _fields(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
