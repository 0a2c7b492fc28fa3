"""The built-in workloads, and named sets of them.

They are operations of the guest programs `work` (crates/work) and, for one to many tasks at the same time,
`tasks` (crates/tasks).
"""

import json
import subprocess
from pathlib import Path

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from ktrial.installation import package_directory
from ktrial.model.design import Perturbation
from ktrial.model.machine import CarriedFile
from ktrial.model.workload import (
    ALL_INSTRUCTIONS,
    EXACT_MODES,
    Direction,
    Mode,
    Sample,
    WorkloadDescription,
    WorkloadUse,
)
from ktrial.target import Step, StepResult
from ktrial.target.errors import GuestProgramsDamaged, GuestProgramsMissing
from ktrial.workloads.errors import BadOutput, NoMarkedRegion
from ktrial.workloads.protocol import MarkedRegion, beside_instructions, ended_well, run_step

QUICK = ("syscall", "pipe", "context-switch", "fork", "open", "mmap")
"""Six that touch system call entry, pipes, scheduler, processes, paths and memory: seconds for a kernel."""
DEFAULT = (
    *QUICK,
    "stat",
    "copy-256",
    "copy-1024",
    "copy-4096",
    "vfork",
    "clone3",
    "exec",
    "thread",
    "futex",
    "epoll",
    "socketpair",
    "tcp",
    "timer",
    "hackbench",
    "nqueens",
)
"""Every single operation: seconds to minutes for a kernel."""
DISK = ("seq-read", "random-read", "stream-write", "metadata", "oltp", "fileio", "file-server")
"""Input and output: many steps are one operation. Without a disk (`path`) they work on memory."""
WHOLE_BENCHMARKS = ("aio-stress", "unixbench")
"""Those that do what a benchmark of that name does. They take long, or want a disk: give them `path`."""
WORK = "/ktrial/work"
"""Where the machine puts the program."""
TASKS = "/usr/lib/ktrial/tasks"
"""Where a guest finds the program that it is given."""
_TASKS_MODE = 0o755
_DESCRIPTIONS = TypeAdapter(tuple[WorkloadDescription, ...])


class _Metric(BaseModel):
    name: str
    unit: str
    direction: Direction
    operations: int
    minimum: float
    median: float
    mean: float


class _Report(BaseModel):
    workload: str
    clock: str
    overhead: int = Field(0, ge=0)
    """Ticks that are no part of an operation: of the loop around it, and what the workload takes off."""
    bundle: int = Field(1, ge=1)
    """How many operations were timed together."""
    done: int = Field(0, ge=0)
    """Operations of all tasks in the passes that count; 0: each value is of `bundle` operations."""
    metrics: tuple[_Metric, ...] = Field(min_length=1)
    checks: int

    @property
    def operations(self) -> float:
        """Operations, a mark: a mean, where tasks did more until the last was done with its own."""
        return self.done / self.metrics[0].operations if self.done else self.bundle


class BuiltIn:
    """One operation of `work`. Its value is the median over all times that it was done."""

    program = WORK

    def __init__(self, description: WorkloadDescription) -> None:
        self._description = description

    @property
    def description(self) -> WorkloadDescription:
        """What the program's `--list` says."""
        return self._description

    def files(self, use: WorkloadUse) -> tuple[CarriedFile, ...]:
        """None: every machine brings the program."""
        return ()

    def steps(self, use: WorkloadUse, mode: Mode, perturbation: Perturbation) -> tuple[Step, ...]:
        """One run of the program."""
        parameters = [word for name, value in use.parameters.items() for word in (f"--{name}", str(value))]
        argv = (self.program, self.description.name, *parameters, "--clock", _clock(mode))
        return (run_step(argv, perturbation),)

    def samples(self, use: WorkloadUse, mode: Mode, results: tuple[StepResult, ...]) -> tuple[Sample, ...]:
        """One sample a metric. Raises WorkloadError where the program failed, BadOutput where it lies."""
        (result,) = ended_well(use.label, results, expected=1)
        report = _report(use.label, result.stdout)
        self._check(use.label, mode, report)
        if mode is Mode.EXACT_PARALLEL:
            times = tuple(_in_guest_time(use.label, metric) for metric in report.metrics)
            return (*times, *_beside(use.label, result, report))
        if mode is not Mode.EXACT_PLUGIN:
            return tuple(_as_reported(use.label, metric, mode) for metric in report.metrics)
        first, *further = report.metrics
        region = _region(use.label, result, report)
        return (
            _counted(use.label, first, region, report),
            # What the program found out by itself, it read from its clock.
            *(_as_reported(use.label, metric, Mode.EXACT_CLOCK) for metric in further),
            *beside_instructions(use.label, region),
        )

    def region(self, use: WorkloadUse, results: tuple[StepResult, ...]) -> MarkedRegion:
        """All passes that count, made one. Raises NoMarkedRegion, BadOutput."""
        (result,) = results
        return _region(use.label, result, _report(use.label, result.stdout))

    def operations(self, use: WorkloadUse, results: tuple[StepResult, ...]) -> int:
        """Each operation is checked: several together, where so many are timed together."""
        (result,) = results
        report = _report(use.label, result.stdout)
        return report.checks * report.bundle

    def _check(self, label: str, mode: Mode, report: _Report) -> None:
        first, *_ = promised = [promise.name for promise in self.description.metrics]
        expected = (self.description.name, _clock(mode), first)
        reported = (report.workload, report.clock, report.metrics[0].name)
        for field, value, got in zip(("workload", "clock", "first metric"), expected, reported, strict=True):
            if value != got:
                raise BadOutput(label, f"{field} {got!r} instead of {value!r}")
        # UnixBench's tests can be run one by one: a metric may be missing, but none is new.
        if unknown := {reported_metric.name for reported_metric in report.metrics} - set(promised):
            raise BadOutput(label, f"metrics that it does not have: {sorted(unknown)}")
        if report.checks < max(metric.operations for metric in report.metrics):
            raise BadOutput(label, "it checked less than it measured")


class SeveralTasks(BuiltIn):
    """One operation of `tasks`. Its value is the median over the passes, while all tasks work."""

    program = TASKS

    def files(self, use: WorkloadUse) -> tuple[CarriedFile, ...]:
        """The program, which other workloads' guests do not have: theirs stay as they were."""
        return (CarriedFile(host=_directory() / "tasks", guest=TASKS, mode=_TASKS_MODE),)


def built_ins(guest: Path | None = None) -> tuple[BuiltIn, ...]:
    """All operations of `work` in the directory `guest` (the installed one by default).

    Raises GuestProgramsMissing, GuestProgramsDamaged.
    """
    return tuple(BuiltIn(description) for description in _listed(guest, "work", "workloads.json"))


def several_tasks(guest: Path | None = None) -> tuple[SeveralTasks, ...]:
    """All operations of `tasks`, likewise."""
    return tuple(SeveralTasks(description) for description in _listed(guest, "tasks", "tasks.json"))


def _listed(guest: Path | None, name: str, list_name: str) -> tuple[WorkloadDescription, ...]:
    """What a program of the guest's has: what `--list` printed when it was built, or prints now."""
    directory = guest or _directory()
    saved, program = directory / list_name, directory / name
    source = saved if saved.is_file() else program
    try:
        if saved.is_file():
            listing = saved.read_text(encoding="utf-8")
        elif program.is_file():
            listing = subprocess.run([program, "--list"], capture_output=True, check=True, text=True).stdout
        else:
            raise GuestProgramsMissing(architecture=directory.name, directory=directory, missing=name)
        return _DESCRIPTIONS.validate_python(json.loads(listing))
    except (OSError, subprocess.CalledProcessError, ValueError) as error:  # no program, JSON, list or text
        problem = str(error).partition("\n")[0]
        raise GuestProgramsDamaged(architecture=directory.name, file=source, problem=problem) from None


def _directory() -> Path:
    return package_directory() / "_guest" / "x86_64"


def _clock(mode: Mode) -> str:
    return "tsc" if mode in EXACT_MODES else "monotonic"


def _report(label: str, output: str) -> _Report:
    try:
        return _Report.model_validate_json(output)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise BadOutput(label, f"{where}: {first['msg']}") from None


def _as_reported(label: str, metric: _Metric, mode: Mode) -> Sample:
    return Sample(
        workload=label,
        metric=metric.name,
        unit=metric.unit,
        direction=metric.direction,
        mode=mode,
        value=metric.median,
        operations=metric.operations,
        minimum=metric.minimum,
        median=metric.median,
        mean=metric.mean,
    )


def _in_guest_time(label: str, metric: _Metric) -> Sample:
    """A tick of the guest's clock is a nanosecond of its time, in which each CPU did one instruction."""
    sample = _as_reported(label, metric, Mode.EXACT_PARALLEL)
    return sample.model_copy(update={"unit": "ns"}) if metric.unit == "instructions" else sample


def _beside(label: str, result: StepResult, report: _Report) -> tuple[Sample, ...]:
    """The work, beside the time: instructions of all CPUs together while one operation is done."""
    counts, operations = result.parallel, report.metrics[0].operations
    if counts is None or counts.operations != operations:
        return ()
    mean = counts.sum / operations / report.operations
    median = mean if report.done else counts.median / report.operations
    return (
        Sample(
            workload=label,
            metric=ALL_INSTRUCTIONS.name,
            unit=ALL_INSTRUCTIONS.unit,
            direction=ALL_INSTRUCTIONS.direction,
            mode=Mode.EXACT_PARALLEL,
            value=median,
            operations=operations,
            median=median,
            mean=mean,
        ),
    )


def _region(label: str, result: StepResult, report: _Report) -> MarkedRegion:
    counts, operations = result.region, report.metrics[0].operations
    if counts is None:
        raise NoMarkedRegion(label, "nothing was counted")
    if not counts.whole:
        raise NoMarkedRegion(label, "its region did not come to its end")
    if counts.operations.count != operations:
        problem = f"it did {operations} operations, and marked {counts.operations.count}"
        raise NoMarkedRegion(label, problem)
    return MarkedRegion(counts, round(operations * report.operations))


def _counted(label: str, metric: _Metric, region: MarkedRegion, report: _Report) -> Sample:
    """What the plugin counted from mark to mark, less the program's own overhead.

    That is in ticks of the guest's clock, which are instructions, for there are no string instructions in it;
    one of them is the mark, which the plugin does not count.
    """
    operations, overhead = region.counts.operations, max(report.overhead - 1, 0)

    def own(count: float) -> float:
        return max(count - overhead, 0.0) / report.operations

    return Sample(
        workload=label,
        metric=metric.name,
        unit=metric.unit,
        direction=metric.direction,
        mode=Mode.EXACT_PLUGIN,
        value=own(operations.median),
        operations=metric.operations,
        minimum=own(operations.minimum),
        median=own(operations.median),
        mean=own(operations.total / operations.count),
    )
