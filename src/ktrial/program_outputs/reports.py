"""What is read from an output: metrics, what they spread by, their conditions, and what is to be known."""

from dataclasses import dataclass, field

from ktrial.model.workload import Direction
from ktrial.program_outputs.units import is_by_clock


@dataclass(frozen=True)
class Column:
    """A metric that a format may have, as documentation names it."""

    metric: str
    unit: str
    direction: Direction


@dataclass(frozen=True)
class Spread:
    """What is left of several runs of which a program printed the mean."""

    runs: int
    standard_error: float
    """Of the mean, in its unit."""
    half_unit: float
    """Half a unit of the mean's last printed digit."""
    error_half_unit: float
    """That of the standard error, in the mean's unit."""


@dataclass(frozen=True)
class Measured:
    """One metric of one thing that was measured, with a number for each repetition in the output."""

    metric: str
    values: tuple[float, ...]
    unit: str
    direction: Direction
    of: str = ""
    """The job, benchmark or command; empty where an output holds one only, which has no name."""
    failed: int = 0
    """Repetitions that gave no number."""
    parameters: dict[str, str] = field(default_factory=dict)
    conditions: dict[str, str] = field(default_factory=dict)
    """Its own, besides those of the whole output."""
    spread: Spread | None = None
    """Where the only value is the mean of several runs."""

    @property
    def by_clock(self) -> bool:
        """Whether it is a time, or so much a time: what the program's own clock told."""
        return is_by_clock(self.unit)


@dataclass(frozen=True)
class Note:
    """Something to be known about an output."""

    text: str
    advice: str = ""


@dataclass(frozen=True)
class Report:
    """Everything that was read from one output."""

    measured: tuple[Measured, ...]
    """In the output's order; the first is what it is about."""
    failures: tuple[Note, ...] = ()
    """Runs, jobs or benchmarks that gave no number, and are left out of `measured`."""
    notes: tuple[Note, ...] = ()
    conditions: dict[str, str] = field(default_factory=dict)
    """Under which it was measured, as far as the output tells: `threads` → `4`."""
    unread: tuple[str, ...] = ()
    """Fields of numbers beside those of `measured` that nothing is read of."""

    def named(self) -> dict[str, Measured]:
        """Name → metric: `time`, or `sleep 1: time` where several things were measured."""
        several = len({measurement.of for measurement in self.measured}) > 1
        return {
            f"{metric.of}: {metric.metric}" if several else metric.metric: metric for metric in self.measured
        }
