"""What is watched around a trial: the environment before it, series while it runs, and monitoring programs.

Monitoring programs watch workloads in a run of their own beside the one that counts. A monitor slows down
what it watches. So a study's numbers come from runs without any, and each monitor has the same programs run
once more: what it counted is the trial's, and by how much slower those programs were is what it costs. In
every other block the watched runs come first, since one run may warm up what the next one finds.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ktrial import monitors
from ktrial.errors import KtrialError
from ktrial.experiment import parallel_monitors
from ktrial.experiment.host_failures import HOST_PROBLEMS
from ktrial.experiment.jobs import Job
from ktrial.experiment.kernel_symbols import KernelSymbols
from ktrial.experiment.profile import counted_profile, own_results
from ktrial.experiment.settings import SettingRefused, read_back
from ktrial.machines import BootedTarget, CountsByFunction, Machine
from ktrial.machines.errors import MachineError, MachineStopped
from ktrial.model.environment import Environment
from ktrial.model.parallel import MONITORS, RUN_DELAY, WAITS
from ktrial.model.study import Study
from ktrial.model.time_series import Sampled, SeriesKind
from ktrial.model.trial import Monitored
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Mode, Sample
from ktrial.monitors.environment import audit
from ktrial.target import Run, SampledFiles, Step, StepResult
from ktrial.target.errors import GuestError
from ktrial.target.monitor_errors import MonitorError, MonitorFailed
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
    found: tuple[Sample, ...] = ()
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
    for name in (each for each in study.machine.monitors if each not in MONITORS):
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
        own = _performed(target, job, parallel_monitors.watching(steps), (parallel_monitors.program(),))
        samples = workload.samples(job.use, mode, own)
        delays = parallel_monitors.delays(own)
        return Watched(
            name,
            samples=samples,
            found=parallel_monitors.samples(job.label, mode, delays),
            counters=parallel_monitors.delay_counters(delays),
        )
    if name == WAITS:
        return Watched(name, counters=_waits(target, job, steps))
    monitor = monitors.installed_tracers()[name]
    prepared = monitor.prepare()
    runs = tuple(
        step.model_copy(update={"tracers": (prepared.tracer,)}) if isinstance(step, Run) else step
        for step in steps
    )
    own = _performed(target, job, runs)
    return Watched(
        name,
        program=prepared.program,
        samples=workload.samples(job.use, mode, own),
        counters=tuple(_counters(monitor, own).items()),
        operations=workload.operations(job.use, own) if isinstance(workload, CountsOperations) else 0,
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
    return parallel_monitors.waits_counters(counted_profile(job, target.identity, own, symbols))


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


def sampled_of(workload: str, results: Iterable[StepResult]) -> Sampled | None:
    """All rows of one workload, as if nothing had been between them; None: nothing was read."""
    rows = tuple(results)
    parts = [each.sampled for each in rows if each.sampled is not None]
    if not parts:
        return None
    moments = [texts for part in parts for texts in _moments(part)]
    return Sampled(
        workload=workload,
        interval=max(part.every_ns for part in parts) / _SECOND,
        readings=sum(part.readings for part in parts),
        cost_seconds=sum(part.cost_ns for part in parts) / _SECOND,
        wall_seconds=sum(each.wall_ns for each in rows) / _SECOND,
        times=tuple(_times(parts)),
        series=monitors.series(moments),
    )


def rises(sampled: Sampled) -> dict[str, float]:
    """Counter → by how much it rose from the first moment to the last."""
    return {
        one.name: one.values[-1] - one.values[0] for one in sampled.series if one.kind is SeriesKind.COUNTER
    }


def _times(parts: Sequence[SampledFiles]) -> Iterable[float]:
    begin = 0
    for part in parts:
        yield from ((begin + at) / _SECOND for at in part.at_ns)
        begin += part.at_ns[-1]


def _moments(part: SampledFiles) -> Iterable[dict[str, str]]:
    for place in range(len(part.at_ns)):
        yield {file: texts[place] for file, texts in part.texts.items() if texts[place]}
