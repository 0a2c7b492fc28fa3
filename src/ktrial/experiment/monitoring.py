"""What is watched around a trial: the environment before it, series while it runs, and monitoring programs.

Monitoring programs watch workloads in a run of their own beside the one that counts. A monitor slows down
what it watches. So a study's numbers come from runs without any, and each monitor has the same programs run
once more: what it counted is the trial's, and by how much slower those programs were is what it costs. In
every other block the watched runs come first, since one run may warm up what the next one finds.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from typing import Protocol, runtime_checkable

from pydantic import BaseModel, ValidationError

from ktrial import monitors
from ktrial.analysis.guest_time import TimePart, by_cpu, places, together
from ktrial.errors import KtrialError
from ktrial.experiment.errors import HOST_PROBLEMS
from ktrial.experiment.jobs import Job
from ktrial.experiment.manipulation import SettingRefused, read_back
from ktrial.experiment.profile import KernelSymbols, counted_profile, own_results
from ktrial.machines import BootedTarget, CountsByFunction, Machine, guest_programs
from ktrial.machines.errors import MachineError, MachineStopped
from ktrial.model.parallel import MONITORS, RUN_DELAY, WAITS, waits_counter
from ktrial.model.profile import Profile
from ktrial.model.study import Study
from ktrial.model.trial import Environment, Monitored, SampleSeries, SeriesKind
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Direction, Mode, Sample
from ktrial.monitors.environment import audit
from ktrial.target import Push, Run, Step, StepResult
from ktrial.target.errors import GuestError, MonitorError, MonitorFailed
from ktrial.text_lines import lines_of
from ktrial.workloads import CountsOperations
from ktrial.workloads.errors import WorkloadError

_FAILURES: tuple[type[Exception], ...] = (
    *(GuestError, WorkloadError, MonitorError, MachineError),
    *(SettingRefused, ValueError),
)


@dataclass(frozen=True)
class Watched:
    """What came of one workload's run under one monitor."""

    monitor: str
    program: str = ""
    """Its version, and what it was asked for."""
    samples: tuple[Sample, ...] = ()
    """Of the watched run: what they differ by from the one without is what the monitor costs."""
    samples_of_workload: tuple[Sample, ...] = ()
    """What it measured of the workload, as metrics of the trial."""
    counters: tuple[tuple[str, float], ...] = ()
    operations: int = 0
    """How many operations the watched programs did; 0: the workload does not know."""
    warnings: tuple[DataWarning, ...] = ()

    def deltas(self, operations: float) -> dict[str, float]:
        """Counter → its rise for so many operations: a workload of fixed duration does fewer when watched."""
        scale = operations / self.operations if operations and self.operations else 1.0
        return {name: value * scale for name, value in self.counters}

    def slowdowns(self, alone: Iterable[Sample]) -> Iterator[Monitored]:
        """The first metric that both runs have."""
        watched = {sample.metric: sample.value for sample in self.samples}
        for sample in alone:
            if sample.metric in watched:
                yield Monitored(
                    monitor=self.monitor,
                    workload=sample.workload,
                    metric=sample.metric,
                    direction=sample.direction,
                    alone=sample.value,
                    watched=watched[sample.metric],
                )
                return


def check(study: Study) -> None:
    """Raise MonitorUnusable where one that the study asks for cannot watch anything here."""
    for name in (monitor for monitor in study.machine.monitors if monitor not in MONITORS):
        monitors.installed_tracers()[name].prepare()


def of_trial(job: Job, perturbation: int) -> tuple[str, ...]:
    """The monitors that a trial under this perturbation has: `waits` is for the first alone."""
    return tuple(name for name in job.monitors if name != WAITS or perturbation == 0)


def watched(
    target: BootedTarget, mode: Mode, job: Job, steps: Sequence[Step], names: Iterable[str]
) -> tuple[Watched, ...]:
    """The job's programs once more for each of these monitors; `steps` are the workload's own.

    What goes wrong is a warning: the trial has its numbers without. Raises what is no monitor's doing:
    MachineStopped and HOST_PROBLEMS.
    """
    return tuple(_watched(target, mode, job, tuple(steps), name) for name in names)


def _watched(target: BootedTarget, mode: Mode, job: Job, steps: tuple[Step, ...], name: str) -> Watched:
    try:
        return _run(target, mode, job, steps, name)
    except _FAILURES as error:
        if isinstance(error, (*HOST_PROBLEMS, MachineStopped)):
            raise
        text = error.message if isinstance(error, KtrialError) else str(error)
        problem = f"{name} counted nothing of {job.label} in some trials: {text}"
        warning = DataWarning(kind=WarningKind.COUNTERS_MISSING, text=problem)
        return Watched(name, warnings=(warning,))


def _run(target: BootedTarget, mode: Mode, job: Job, steps: tuple[Step, ...], name: str) -> Watched:
    workload = job.workload
    if name == RUN_DELAY:
        results = _performed(target, job, watching(steps), (program(),))
        samples = workload.samples(job.use, mode, results)
        delays = run_delays(results)
        return Watched(
            name,
            samples=samples,
            samples_of_workload=delay_samples(job.label, mode, delays),
            counters=delay_counters(delays),
        )
    if name == WAITS:
        return Watched(name, counters=_waits(target, job, steps))
    monitor = monitors.installed_tracers()[name]
    prepared = monitor.prepare()
    runs = tuple(
        step.model_copy(update={"tracers": (prepared.tracer,)}) if isinstance(step, Run) else step
        for step in steps
    )
    results = _performed(target, job, runs)
    return Watched(
        name,
        program=prepared.program,
        samples=workload.samples(job.use, mode, results),
        counters=tuple(_counters(monitor, results).items()),
        operations=workload.operations(job.use, results) if isinstance(workload, CountsOperations) else 0,
        warnings=prepared.warnings,
    )


_SYMBOLS = KernelSymbols()
"""Of the kernels whose waits were counted by this process."""


def _waits(target: BootedTarget, job: Job, steps: tuple[Step, ...]) -> tuple[tuple[str, float], ...]:
    """Where the CPUs waited, of a run that is counted by function."""
    if not isinstance(target, CountsByFunction):
        raise MonitorFailed(monitor=WAITS, problem="this machine does not count by function")
    counting = target.by_function()
    symbols = _SYMBOLS.of(counting, job.boot)
    before = (*job.before, *job.preparation, *(setting.step for setting in job.settings))
    results = counting.counted((*before, *steps, *job.after), symbols.text)
    own = own_results(results[: len(before) + len(steps)], len(before))
    return waits_counters(counted_profile(job, target.identity, own, symbols))


def _performed(
    target: BootedTarget, job: Job, runs: tuple[Step, ...], first: tuple[Step, ...] = ()
) -> tuple[StepResult, ...]:
    """What those steps gave in place of the workload's, in all that the job does, with `first` before it."""
    writes = tuple(setting.step for setting in job.settings)
    before = (*first, *job.before, *job.preparation, *writes)
    results = target.perform((*before, *runs, *job.after))
    read_back(job.settings, own_results(results, len(before) - len(writes)))
    return own_results(results[: len(before) + len(runs)], len(before))


def _counters(monitor: monitors.Tracer, results: tuple[StepResult, ...]) -> dict[str, float]:
    """Summed over the rows of programs, each of which had the monitor started anew."""
    totals: dict[str, float] = {}
    for result in results:
        if monitor.name in result.tracer_output:
            for name, rise in monitor.counted(result.tracer_output[monitor.name]).items():
                totals[name] = totals.get(name, 0.0) + rise
    return totals


@runtime_checkable
class InRealTime(Protocol):
    """A machine whose numbers depend on what else this host does."""

    host_matters: bool


def environment_before(machine: Machine) -> Environment | None:
    """The host as it is now; None where it does not matter. Takes some 40 ms."""
    matters = isinstance(machine, InRealTime) and machine.host_matters
    return audit(patient=False) if matters else None


_SECOND = 1e9


def sampled_of(workload: str, results: Iterable[StepResult]) -> SampleSeries | None:
    """All rows of one workload, as if nothing had been between them; None: nothing was read."""
    rows = tuple(results)
    parts = [row.sampled for row in rows if row.sampled is not None]
    if not parts:
        return None
    moments: list[dict[str, str]] = []
    times: list[float] = []
    begin = 0
    for part in parts:
        times += ((begin + at) / _SECOND for at in part.at_ns)
        begin += part.at_ns[-1]
        for place in range(len(part.at_ns)):
            moments.append({file: texts[place] for file, texts in part.texts.items() if texts[place]})
    return SampleSeries(
        workload=workload,
        interval=max(part.every_ns for part in parts) / _SECOND,
        readings=sum(part.readings for part in parts),
        cost_seconds=sum(part.cost_ns for part in parts) / _SECOND,
        wall_seconds=sum(row.wall_ns for row in rows) / _SECOND,
        times=tuple(times),
        series=monitors.series(moments),
    )


def rises(sampled: SampleSeries) -> dict[str, float]:
    """Counter → by how much it rose from the first moment to the last."""
    return {
        series.name: series.values[-1] - series.values[0]
        for series in sampled.series
        if series.kind is SeriesKind.COUNTER
    }


# What is watched on several CPUs in simulated time: how long tasks waited for a CPU, and where CPUs wait.
#
# `monitors = ["run-delay"]`: the programs run once more, started by `tasks delays` (crates/tasks). The
# kernel tells it of each task that ends how long that was ready to run and did not (taskstats; while a task
# lives, /proc/PID/schedstat has it).
#
# `monitors = ["waits"]`: the programs run once more, counted by function, under the first perturbation
# alone: that is dearer. What the CPUs worked, waited and idled together, and the places that have most of
# it, are counters of the trial.

_IN_GUEST = guest_programs.TASKS_IN_GUEST
_MODE = 0o755


def program() -> Push:
    """What puts the program there that tells. Raises GuestProgramsMissing."""
    content = guest_programs.tasks().read_bytes()
    return Push(path=_IN_GUEST, base64=b64encode(content).decode("ascii"), mode=_MODE)


_MOST = 3
"""Places of each part."""
_PARTS = (TimePart.WORK, TimePart.WAITING, TimePart.LINES, TimePart.IDLE)
_WITH_PLACES = (TimePart.WAITING, TimePart.LINES, TimePart.IDLE)


class Delays(BaseModel):
    """Of the tasks that ended while one program ran, that program among them: nanoseconds of guest time."""

    tasks: int
    ran: int
    """How often they got a CPU."""
    waited: int
    """All of them together."""
    median: float
    p99: float
    largest: float


def watching(steps: Iterable[Step]) -> tuple[Step, ...]:
    """The steps, each program of them started by the one that tells."""
    return tuple(
        step.model_copy(update={"argv": (_IN_GUEST, "delays", *step.argv)}) if isinstance(step, Run) else step
        for step in steps
    )


def run_delays(results: Iterable[StepResult]) -> tuple[Delays, ...]:
    """Of each program that ran. Raises MonitorFailed."""
    delays = []
    for result in results:
        if result.do == "run":
            *_, last = lines_of(result.stderr.strip()) or [""]
            try:
                delays.append(Delays.model_validate_json(last))
            except ValidationError:
                raise MonitorFailed(
                    monitor=RUN_DELAY, problem=f"told no run delays: {last[:200]!r}"
                ) from None
    return tuple(delays)


def delay_samples(label: str, mode: Mode, of_programs: Sequence[Delays]) -> tuple[Sample, ...]:
    """Metrics of the workload `label`; of several programs the means of each one's."""
    values = {
        "run delay, median": [of_program.median for of_program in of_programs],
        "run delay, p99": [of_program.p99 for of_program in of_programs],
        "run delay, largest": [of_program.largest for of_program in of_programs],
    }
    return tuple(
        Sample(
            workload=label,
            metric=name,
            unit="ns",
            direction=Direction.LOWER,
            mode=mode,
            value=(value := fmean(each_program)),
            operations=1,
            median=value,
            mean=value,
        )
        for name, each_program in values.items()
        if each_program
    )


def delay_counters(of_programs: Sequence[Delays]) -> tuple[tuple[str, float], ...]:
    """Kept with the trial's other counters: tasks, how often they ran, what they waited (ns)."""
    totals = {
        "tasks": sum(of_program.tasks for of_program in of_programs),
        "ran": sum(of_program.ran for of_program in of_programs),
        "waited": sum(of_program.waited for of_program in of_programs),
    }
    return tuple((f"{RUN_DELAY}.{name}", float(total)) for name, total in totals.items())


def waits_counters(profile: Profile) -> tuple[tuple[str, float], ...]:
    """Nanoseconds of guest time per operation, of all CPUs together: each part, and its first places."""
    time = together(by_cpu(profile))
    parts = dict(zip(_PARTS, (time.work, time.waiting, time.lines, time.idle), strict=True))
    first_places = (
        (waits_counter(part.value, place.name), spent)
        for part in _WITH_PLACES
        for place, spent in islice(places(profile, part).items(), _MOST)
    )
    return (*((waits_counter(part.value), spent) for part, spent in parts.items()), *first_places)
