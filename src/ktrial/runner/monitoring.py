"""Programs that watch workloads: each in a run of its own beside the one that counts, and what they cost.

A monitor slows down what it watches. So a study's numbers come from runs without any, and each monitor has
the same programs run once more: what it counted is the trial's, and by how much slower those programs were is
what it costs. In every other block the watched runs come first, since one run may warm up what the next one
finds.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ktrial import monitors
from ktrial.errors import GuestError, KtrialError, MachineError, MachineStopped, MonitorError, WorkloadError
from ktrial.machines import BootedTarget
from ktrial.model.advice import DataWarning, WarningKind
from ktrial.model.monitored import Monitored
from ktrial.model.study import Study
from ktrial.model.trial import Trial
from ktrial.model.workload import Mode, Sample
from ktrial.runner.boots import Job
from ktrial.runner.host_problems import HOST_PROBLEMS
from ktrial.runner.profile import own_results
from ktrial.runner.settings import SettingRefused, read_back
from ktrial.stats.unblocked import Moments, mean_interval
from ktrial.target import Run, Step, StepResult
from ktrial.workloads import CountsOperations

_APART = "of each pair one had it and one had not: the study's numbers are without it, its counts with it"
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
    counters: tuple[tuple[str, float], ...] = ()
    operations: int = 0
    """How many operations the watched programs did; 0: the workload does not know."""
    warnings: tuple[DataWarning, ...] = ()

    def deltas(self, operations: float) -> dict[str, float]:
        """Counter → its rise for so many operations: a workload of fixed duration does fewer when watched."""
        scale = operations / self.operations if operations and self.operations else 1.0
        return {name: value * scale for name, value in self.counters}

    def beside(self, alone: Iterable[Sample]) -> Iterator[Monitored]:
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
    for name in study.machine.monitors:
        monitors.beside()[name].prepare()


def watched(target: BootedTarget, mode: Mode, job: Job, steps: Sequence[Step]) -> tuple[Watched, ...]:
    """The job's programs once more for each of its monitors; `steps` are the workload's own.

    What goes wrong is a warning: the trial has its numbers without. Raises what is no monitor's doing:
    MachineStopped and HOST_PROBLEMS.
    """
    return tuple(_watched(target, mode, job, tuple(steps), name) for name in job.monitors)


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
    monitor = monitors.beside()[name]
    prepared = monitor.prepare()
    writes = tuple(setting.step for setting in job.settings)
    runs = tuple(
        step.model_copy(update={"beside": (prepared.beside,)}) if isinstance(step, Run) else step
        for step in steps
    )
    before = (*job.before, *job.preparation, *writes)
    results = target.perform((*before, *runs, *job.after))
    read_back(job.settings, own_results(results, len(before) - len(writes)))
    own = own_results(results[: len(before) + len(runs)], len(before))
    workload = job.workload
    return Watched(
        name,
        program=prepared.program,
        samples=workload.samples(job.use, mode, own),
        counters=tuple(_counters(monitor, own).items()),
        operations=workload.operations(job.use, own) if isinstance(workload, CountsOperations) else 0,
        warnings=prepared.warnings,
    )


def _counters(monitor: monitors.BesideMonitor, results: tuple[StepResult, ...]) -> dict[str, float]:
    """Summed over the rows of programs, each of which had the monitor started anew."""
    totals: dict[str, float] = {}
    for result in results:
        if monitor.name in result.beside:
            for name, rise in monitor.counted(result.beside[monitor.name]).items():
                totals[name] = totals.get(name, 0.0) + rise
    return totals


def costs(trials: Iterable[Trial]) -> tuple[DataWarning, ...]:
    """What each monitor costs the workloads, as a note: the geometric mean over the trials, its interval by
    Student's t on the logarithms.
    """
    found: dict[str, dict[tuple[str, str], list[float]]] = {}
    for trial in trials:
        for one in trial.provenance.monitored:
            if one.slowdown:
                of_monitor = found.setdefault(one.monitor, {})
                of_monitor.setdefault((one.workload, one.metric), []).append(math.log(one.slowdown))
    return tuple(
        DataWarning(
            kind=WarningKind.MONITOR_COST,
            text=f"{monitor} costs {', '.join(_cost(*of, logs) for of, logs in by_metric.items())}",
            advice=_APART,
        )
        for monitor, by_metric in sorted(found.items())
    )


def _cost(workload: str, metric: str, logs: list[float]) -> str:
    """`ls +1.8 % (wall time; 95 % interval −0.6 % to +4.2 %; 8 pairs of runs)`."""
    mean = statistics.fmean(logs)
    runs = f"{len(logs)} {'pair' if len(logs) == 1 else 'pairs'} of runs"
    details = "; ".join(filter(None, (metric, _interval(mean, logs), runs)))
    return f"{workload} {_percent(mean)} ({details})"


def _interval(mean: float, logs: list[float]) -> str:
    if len(logs) < 2:
        return ""
    try:
        low, high = mean_interval(Moments("", mean, statistics.stdev(logs), len(logs)))
    except ValueError:
        return ""
    return f"95 % interval {_percent(low)} to {_percent(high)}"


def _percent(log: float) -> str:
    """A slowdown as the relative change that it is: `+1.2 %`."""
    return f"{math.expm1(log) * 100:+.1f} %".replace("-", "−")
