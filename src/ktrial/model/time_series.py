"""What monitors read of a system while a workload ran, as series over time."""

from enum import StrEnum

from ktrial.model.base import Model


class SeriesKind(StrEnum):
    """How a series is to be read."""

    COUNTER = "counter"
    """It only rises: the difference of two values is what happened between them."""
    GAUGE = "gauge"
    """A level: how much there is at a moment."""


class Series(Model):
    """One number of the kernel's over time."""

    name: str
    """As counters are named: `vmstat.pgfault`, `meminfo.Cached`."""
    unit: str
    kind: SeriesKind
    values: tuple[float, ...]
    """One a moment of `Sampled.times`. A counter's begin at 0."""


class Sampled(Model):
    """All series of one workload in one trial, and what it cost to read them."""

    workload: str
    interval: float
    """Seconds between two readings while programs ran, in the end."""
    readings: int
    """How many readings there were while programs ran."""
    cost_seconds: float
    """CPU time that those took."""
    wall_seconds: float
    """For how long programs ran."""
    times: tuple[float, ...]
    """Seconds since the first program's start was prepared. The first moment is before it, the last after
    all programs."""
    series: tuple[Series, ...]
    """Those that changed, sorted by name."""

    @property
    def cost(self) -> float:
        """The readings' share of one CPU while programs ran: 0.001 is a tenth of a percent."""
        return self.cost_seconds / self.wall_seconds if self.wall_seconds else 0.0


class TrialSampled(Model):
    """What was read in one trial."""

    trial: str
    """PlannedTrial.key."""
    treatment: str
    """Its label."""
    sampled: Sampled
