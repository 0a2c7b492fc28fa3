"""Where the guest time of several CPUs went: work, waiting in loops, idling; by function and by CPU."""

from ktrial.model.base import Model

PAUSE_NS = 50
"""What one `pause` takes (crates/parallel/src/engine.rs), beside the nanosecond of its instruction."""


class CpuShare(Model):
    """What one CPU did in one function."""

    instructions: int
    """Its own, those of loops that waited included."""
    entered: int
    waited: int
    """Instructions of loops that waited."""
    pauses: int
    """Turns of those loops."""
    lines_ns: int = 0
    """Guest time of waiting for cache lines of other CPUs, where that is modelled."""

    @property
    def waiting_ns(self) -> int:
        """Guest time that the CPU waited in it."""
        return self.waited + self.pauses * PAUSE_NS


class FunctionOnCpus(Model):
    """One function of the kernel, or all that runs in user mode, on each CPU."""

    symbol: str
    module: str = ""
    cpus: tuple[CpuShare, ...]


class WaitedFor(Model):
    """Guest time of all CPUs together in one waiting loop, for one caller."""

    symbol: str
    module: str = ""
    caller: str
    """Who called the function; of a part of a lock, who wanted the lock. Empty: not seen."""
    caller_module: str = ""
    ns: int


class IdleAfter(Model):
    """Guest time that a CPU was idle, by where the last task on it went to sleep."""

    symbol: str
    """What called the scheduler; empty: no task was seen to."""
    module: str = ""
    caller: str
    caller_module: str = ""
    cpu: int
    ns: int


class CpuCounts(Model):
    """Of the marked regions of a run, or of the whole run, on several CPUs."""

    time_ns: int
    """Guest time from their beginnings to their ends."""
    functions: tuple[FunctionOnCpus, ...]
    program: FunctionOnCpus
    waits: tuple[WaitedFor, ...]
    """The longest first."""
    idle: tuple[IdleAfter, ...]
    """The longest first."""

    @property
    def every(self) -> tuple[FunctionOnCpus, ...]:
        """The functions, and the program."""
        return (*self.functions, self.program)
