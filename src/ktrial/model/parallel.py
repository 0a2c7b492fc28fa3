"""What was counted while a program ran on several CPUs in parallel virtual time."""

from enum import StrEnum

from pydantic import Field

from ktrial.model.base import MemoryMiB, Model, WholeNumber
from ktrial.model.workload import Direction

QUANTUM_NS = 100
"""How long a round is, in nanoseconds of guest time, where nothing else is asked for."""


QUANTA_NS = (25, 100_000)
"""The shortest round and the longest: below, CPUs are switched more than they run."""


MOST_CPUS = 64


TRANSFER_NS = 40
"""What a cache line takes from one CPU to another, where that is modelled. Intel's Memory Latency Checker
reports 40.3 to 42.3 ns for a modified line of another second-level cache in one socket of a Xeon E5-2660 v4
(Intel's forum: Core-to-Core Communication Latency in Skylake/Kaby Lake)."""


RUN_DELAY = "run-delay"
"""The monitor that programs can have there: how long each task waited for a CPU."""


WAITS = "waits"
"""The monitor that tells where the CPUs wait and idle."""


MONITORS = (RUN_DELAY, WAITS)


def waits_counter(part: str, place: str | None = None) -> str:
    """The counter of a part of the CPUs' time, or of one place of it."""
    return f"{WAITS}.{part}" if place is None else f"{WAITS}.{part} in {place}"


class Topology(Model):
    """How the guest's CPUs belong together, as QEMU's -smp has it."""

    sockets: WholeNumber = Field(default=1, ge=1, le=64, description="a whole number from 1 to 64")
    cores: WholeNumber = Field(
        default=1, ge=1, le=64, description="a whole number from 1 to 64, of each socket"
    )
    threads: WholeNumber = Field(
        default=1, ge=1, le=64, description="a whole number from 1 to 64, of each core"
    )
    nodes_mib: tuple[MemoryMiB, ...] = Field(
        default=(),
        max_length=64,
        validation_alias="nodes",
        serialization_alias="nodes",
        exclude_if=lambda value: not value,
        description='a list of sizes, one for each NUMA node: ["256M", "256M"]',
    )
    """The memory of each NUMA node, in MiB; the CPUs are theirs in order, as many each. Empty: no nodes."""

    @property
    def cpus(self) -> int:
        """All of them."""
        return self.sockets * self.cores * self.threads

    def __str__(self) -> str:
        return f"{self.sockets} sockets, {self.cores} cores, {self.threads} threads"

    def nodes_problem(self, memory_mib: int) -> str:
        """Why there cannot be such nodes in so much memory; empty where there can."""
        if not self.nodes_mib:
            return ""
        if self.cpus % len(self.nodes_mib):
            return f"{self.cpus} CPUs cannot be shared out evenly among {len(self.nodes_mib)} nodes"
        if sum(self.nodes_mib) != memory_mib:
            return f"the nodes have {sum(self.nodes_mib)} MiB together, and memory is {memory_mib} MiB"
        return ""


class MemoryModel(StrEnum):
    """What memory costs beside the instruction that uses it. Machine exact-parallel."""

    NONE = "none"
    COHERENCE = "coherence"
    """A line that another CPU had last takes TRANSFER_NS, of locked instructions."""


_Cells = tuple[tuple[int, int, int, int, int], ...]
"""Of each CPU: instructions, times entered, instructions of loops that waited, pauses, nanoseconds of waiting
for cache lines."""


class CountedByFunction(Model):
    """Rows as the plugin writes them (crates/parallel/src/counting.rs), of a program's regions."""

    time: int
    """Nanoseconds of guest time from their beginnings to their ends."""
    functions: tuple[tuple[str, str, _Cells], ...]
    """Symbol, module, counts."""
    pages: tuple[tuple[int, int, _Cells], ...]
    """Address, checksum, counts."""
    waits: tuple[tuple[str, str, str, str, int, int], ...]
    """Symbol and module, those of the caller, instructions, pauses."""
    idle: tuple[tuple[str, str, str, str, int, int], ...]
    """Symbol and module of what called the scheduler, those of its caller, the CPU, nanoseconds."""


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
    extremes: tuple[int, int] = (0, 0)
    """The smallest and the largest of the operations'; 0 where there are none."""
    cpus: tuple[int, ...]
    """Instructions of each CPU since the guest started."""
    idle: tuple[int, ...]
    """Nanoseconds that each CPU was idle since then."""
    clock: int
    """The guest's time, in nanoseconds."""
    rounds: int
    fingerprint: str
    """A hash over all CPUs' clocks in all rounds: two runs that agree in it were the same run."""
    counted: CountedByFunction | None = Field(default=None, exclude_if=lambda value: value is None)
    """None where functions were not counted."""

    @property
    def median(self) -> float:
        """Instructions of all CPUs together while one operation is done."""
        return sum(self.middle) / 2


# Where the guest time of several CPUs went: work, waiting in loops, idling; by function and by CPU.

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


# How a workload's metrics change with the number of CPUs.


class PointOverCpus(Model):
    """One number of CPUs."""

    cpus: int
    value: float
    """The metric, in its unit: the mean over the seeds, geometric where there is a speed-up."""
    lowest: float
    """Of the seeds."""
    highest: float


class MetricOverCpus(Model):
    """One metric of a workload under one treatment, apart from its number of CPUs."""

    workload: str
    metric: str
    unit: str
    direction: Direction
    treatment: str
    """The levels of all other factors; empty where there are none."""
    seeds: int
    """Trials at each number of CPUs."""
    points: tuple[PointOverCpus, ...]
    """By number of CPUs, from the smallest."""


class ScalingPoint(PointOverCpus):
    """The same, of a metric that says how much gets done."""

    speed_up: float
    """How many times as good as with the smallest number of CPUs, of which one is 1."""
    efficiency: float
    """Speed-up by the CPUs there are for each that there was first: 1 is perfect."""


class CoefficientEstimate(Model):
    """A coefficient of the Universal Scalability Law, at least 0."""

    value: float
    low: float | None
    """Its interval at 95 % over the seeds; None with one seed."""
    high: float | None


class ScalingCurve(MetricOverCpus):
    """A metric that says how much gets done, and the law that comes nearest to it."""

    points: tuple[ScalingPoint, ...]
    of_one: float | None = None
    """The metric on one CPU, by the law (λ, or of a time its reciprocal); None where there are too few
    numbers of CPUs."""
    contention: CoefficientEstimate | None = None
    """σ: the share that is done one after another."""
    coherence: CoefficientEstimate | None = None
    """κ: what each pair of CPUs costs."""
    peak: float | None = None
    """CPUs beyond which throughput falls, by the law; None where there is no such number."""

    def at(self, cpus: int) -> ScalingPoint | None:
        """The point at a number of CPUs."""
        return next((point for point in self.points if point.cpus == cpus), None)


# What CPUs spend no work on.


class Waits(Model):
    """One workload under one treatment: shares of all CPUs' time, and the places that have most of it."""

    workload: str
    treatment: str
    """The levels of all factors but the number of CPUs; empty where there are none."""
    cpus: int
    waiting: float
    """Of 1: in loops until another CPU has done something, and for cache lines where these are modelled."""
    waiting_in: str
    """Empty: nowhere."""
    idle: float
    """Of 1: with nothing to run."""
    asleep_in: str
    """Where the last task on a CPU went to sleep; empty: nowhere."""
