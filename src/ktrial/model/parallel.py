"""What was counted while a program ran on several CPUs in parallel virtual time."""

from ktrial.model.base import Model

QUANTUM_NS = 1000
"""How long a round is, in nanoseconds of guest time, where nothing else is asked for."""
QUANTA_NS = (100, 100_000)
"""The shortest round and the longest: below, CPUs are switched more than they run."""
MOST_CPUS = 64


class ParallelCounts(Model):
    """Of one run of a program, all CPUs together unless said otherwise."""

    regions: int
    """Marked regions that came to their end."""
    instructions: int
    """In them, of every CPU, whatever it ran."""
    operations: int
    sum: int
    """Instructions between the marks of operations."""
    middle: tuple[int, int]
    """The two middle ones of the operations'."""
    cpus: tuple[int, ...]
    """Instructions of each CPU since the guest started."""
    idle: tuple[int, ...]
    """Nanoseconds that each CPU was idle since then."""
    clock: int
    """The guest's time, in nanoseconds."""
    rounds: int
    fingerprint: str
    """A hash over all CPUs' clocks in all rounds: two runs that agree in it were the same run."""

    @property
    def median(self) -> float:
        """Instructions of all CPUs together while one operation is done."""
        return sum(self.middle) / 2
