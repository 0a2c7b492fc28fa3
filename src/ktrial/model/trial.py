"""Trials: what came out of one treatment under one perturbation, and what monitors cost its workloads."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from ktrial.model.base import Model
from ktrial.model.design import PlannedTrial
from ktrial.model.profile import Profile
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import Direction, Sample


class Monitored(Model):
    """One workload in one trial: its first metric, from two runs of the same programs."""

    monitor: str
    workload: str
    metric: str
    direction: Direction
    alone: float
    watched: float

    @property
    def slowdown(self) -> float:
        """How many times worse it was while it was watched: 1.02 is 2 % worse. 0 where there is no ratio."""
        worse, better = (
            (self.watched, self.alone) if self.direction is Direction.LOWER else (self.alone, self.watched)
        )
        return worse / better if worse > 0 and better > 0 else 0.0


OPERATIONS = "workload.operations"
"""The counter that all others of a trial's workload can be divided by."""
CARRIED = "files of "
"""Begins, in `Provenance.executed`, the name of the digest of what a workload brought into the guest; the
workload's label follows."""
WATCHED_FILES = "watched files"
"""In `Provenance.executed`, of exact machines: the digest of the names of all kernel files that are read
around programs. A monitor of another package adds some, which moves exact counts in the last digits."""


class Outcome(StrEnum):
    """How a trial ended. All but `completed` and `machine-failed` are results too: they are stored, and never
    retried away."""

    COMPLETED = "completed"
    PANICKED = "panicked"
    HUNG = "hung"
    NO_INIT = "no-init"
    NOT_A_KERNEL = "not-a-kernel"
    OUT_OF_MEMORY = "out-of-memory"
    REFUSED = "refused"
    """A setting was refused, or changed on the way: the trial is invalid."""
    WORKLOAD_FAILED = "workload-failed"
    MACHINE_FAILED = "machine-failed"
    """QEMU itself failed. Says nothing about the treatment: it is not stored, and the next run tries again.
    (Older ktrials stored it: such a trial is not read.)"""
    KERNEL_MISSING = "kernel-missing"
    """The kernel could not be had, so that nothing ran: the next run tries again."""


# The environment of trials in real time: readings of the machine that can change a result.


class ReadingKind(StrEnum):
    """How readings of one thing are compared with each other."""

    SETTING = "setting"
    """It stays as it is unless somebody changes it."""
    LEVEL = "level"
    """It goes up and down by itself: temperature, load."""
    COUNTER = "counter"
    """It only rises, and each rise tells that something happened."""


class Reading(Model):
    """One thing about the machine, at one moment."""

    name: str
    kind: ReadingKind
    value: str = ""
    """For people; of a setting also what is compared. Empty where it cannot be read."""
    number: float | None = None
    """Of a level or a counter; None where it has no number."""
    absent: str = ""
    """Why it cannot be read; empty where it was."""
    concern: str = ""
    """What about this value disturbs measurements; empty where nothing does."""
    advice: str = ""
    """What to do about it."""
    places: tuple[str, ...] = ()
    """The kernel files that it was read from: what a study changes there is no surprise."""


class Environment(Model):
    """All readings of one moment."""

    taken: datetime
    readings: tuple[Reading, ...]

    def reading(self, name: str) -> Reading | None:
        """The reading of this name; None where there is none."""
        return next((reading for reading in self.readings if reading.name == name), None)


class WorkloadFailure(Model):
    """How one workload of a trial ended, where it has no numbers; the others have theirs."""

    workload: str
    """Its label."""
    outcome: Outcome
    reason: str


class Provenance(Model):
    """Everything that can change a result."""

    kernel: str = ""
    kernel_release: str = ""
    """`uname -r`: `6.1.0-50-cloud-amd64`."""
    kernel_package: str = ""
    """Where the kernel came from: the package and its version, or the path."""
    kernel_compiler: str = ""
    """What the compiler calls itself, where ktrial built the kernel."""
    kernel_digest: str = ""
    config_digest: str = ""
    machine: str = ""
    qemu: str = ""
    """QEMU's version, package version and the hash of its program."""
    cpu_model: str = ""
    command_line: str = ""
    """The kernel's command line."""
    machine_arguments: tuple[str, ...] = ()
    agent_digest: str = ""
    executed: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """SHA-256 of what was really executed, or gave names: `image`, `initial RAM disk`, `agent`, `workloads`,
    `tasks`, `lockstep`, `coalesce`, `parallel`, `plugin`, `rewind`, `symbols`, `watched files`, and `files
    of` each workload that brings some."""
    seed: int = 0
    snapshot: str = ""
    """The snapshot's key, or `plain boot` with the reason."""
    ktrial: str = ""
    boot: str = Field(default="", exclude_if=lambda value: not value)
    """Which boot of a system that trials share (its boot_id); empty where each trial has its own machine."""
    worker: str = Field(default="", exclude_if=lambda value: not value)
    """Which worker of a fleet ran it; empty: this system."""
    programs: dict[str, str] = Field(default_factory=dict)
    """Programs that are not ktrial's: their versions and the arguments that they were run with."""
    environment: Environment | None = None
    """In real time: this host just before the trial. None in exact mode, which does not mind it."""
    monitored: tuple[Monitored, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Machine host: what the workloads measured while programs watched them, and without."""
    failures: tuple[WorkloadFailure, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Workloads that were not measured, in a trial in which each has an end of its own."""


class CounterDelta(Model):
    """How much an event counter rose while a workload ran: `vmstat.pgfault`, `stat.ctxt`, `rusage.minflt`."""

    workload: str
    name: str
    delta: float


BETWEEN_REASONS = "; "
"""Where several of a trial's workloads failed, each with its own reason."""


# What monitors read of a system while a workload ran, as series over time.


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
    """One a moment of `SampleSeries.times`. A counter's begin at 0."""


class SampleSeries(Model):
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


class Trial(Model):
    """A trial that ended."""

    planned: PlannedTrial
    outcome: Outcome
    reason: str = ""
    """Why, where the outcome is not `completed`: of each workload that failed, a sentence with its name."""
    samples: tuple[Sample, ...] = ()
    counters: tuple[CounterDelta, ...] = ()
    profiles: tuple[Profile, ...] = ()
    """What the QEMU plugin counted by function, one a workload. Kept, but not loaded with the trial: see
    Store.profile."""
    sampled: tuple[SampleSeries, ...] = ()
    """Machine host: what monitors read over time, one a workload. Kept, but not loaded with the trial: see
    Store.sampled."""
    settings: dict[str, str] = Field(default_factory=dict)
    """Settings in force while the workloads ran, read back."""
    warnings: tuple[DataWarning, ...] = ()
    console: str = ""
    """The end of the console log."""
    provenance: Provenance = Provenance()
    started: datetime
    seconds: float
    """Host seconds from start to end."""

    @property
    def is_measured(self) -> bool:
        """Whether at least one workload of it is: each starts from the same state, whatever others do."""
        some_failed = bool(self.provenance.failures) and self.outcome is not Outcome.REFUSED
        return self.outcome is Outcome.COMPLETED or some_failed

    def outcome_of(self, workload: str) -> Outcome:
        """How one workload of it ended."""
        failures = self.provenance.failures
        if not failures or self.outcome is Outcome.REFUSED:
            return self.outcome
        return next((end.outcome for end in failures if end.workload == workload), Outcome.COMPLETED)

    def reason_of(self, workload: str) -> str:
        """Why, where that is not `completed`."""
        failures = self.provenance.failures
        return next((end.reason for end in failures if end.workload == workload), self.reason)


class TrialSampled(Model):
    """What was read in one trial."""

    trial: str
    """PlannedTrial.key."""
    treatment: str
    """Its label."""
    sampled: SampleSeries
