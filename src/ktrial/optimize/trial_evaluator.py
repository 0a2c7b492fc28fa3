"""Runs what a search asks for, as trials: several at once where load does not matter, here or on a fleet."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ktrial import interruption
from ktrial.experiment.errors import HOST_PROBLEMS
from ktrial.experiment.executor import (
    Broken,
    Ended,
    Event,
    Executors,
    Notice,
    Prepared,
    Preparing,
    Started,
    StopRequested,
    ThisSystem,
    TrialOptions,
    Withdrawn,
    chosen,
)
from ktrial.experiment.jobs import Job, jobs_of
from ktrial.experiment.observer import Observer
from ktrial.experiment.profile import KernelSymbols
from ktrial.experiment.resources import Resources, RunsAlready
from ktrial.experiment.trial import without_running
from ktrial.kernels.errors import (
    BadBuildOption,
    BuildFailed,
    CompilerUnsuitable,
    ImageError,
    KernelError,
    OptionNotTaken,
)
from ktrial.machines import Machine
from ktrial.model.design import Factor, FactorKind, PlannedTrial, Treatment
from ktrial.model.kernel import BuildChange, Kernel
from ktrial.model.study import Study, kernel_of, perturbation
from ktrial.model.trial import Outcome, Trial
from ktrial.model.tuning import Observation, Purpose, Space
from ktrial.model.workload import EXACT_MODES, Mode
from ktrial.optimize.evaluation_log import Ask, check_measured
from ktrial.optimize.search_space import search_of
from ktrial.studyfile.errors import BaselineFailed, SearchFailed, SearchMisled, TuningError
from ktrial.studyfile.references import resolved
from ktrial.studyfile.search import BOOT, KERNEL, OPTION

_MUCH_SLOWER = 10
"""A configuration that takes so many times as long as the slowest baseline is hopeless: it is ended."""
_SHORTEST_LIMIT_S = 5.0
_ATTEMPTS = 3
"""How often a run is made that the machine does not bring to an end."""
_LOOK_AROUND_S = 5.0
"""This host's environment is read no more often than so: reading it takes 40 ms."""
_OF_CONFIGURATION = (BadBuildOption, BuildFailed, CompilerUnsuitable, ImageError, OptionNotTaken)
"""Why a configuration has no kernel. Other reasons (no network, for one) say nothing about it."""


@dataclass
class TrialEvaluator:
    """Measures configurations: an `Evaluator` of ktrial.optimize."""

    study: Study
    """With its search, and the search's space."""
    machine: Machine
    """Checked."""
    resources: Resources
    observer: Observer
    keep: Callable[[Trial], None]
    """Stores a trial, in one transaction, before anything else is done with it."""
    forget: Callable[[Sequence[PlannedTrial]], None] = lambda _trials: None
    """Takes stored trials away again: those that a fleet withdraws."""
    executors: Executors = field(default_factory=lambda: chosen(ThisSystem))
    _kernels: dict[str, Kernel | KernelError] = field(default_factory=dict)
    _symbols: KernelSymbols = field(default_factory=partial(KernelSymbols, wanted=False))
    _slowest: float = 0.0
    """Seconds of the baseline's longest trial so far."""
    _looked: float = -_LOOK_AROUND_S
    _clocked: set[str] = field(default_factory=set)
    """Keys of trials that the clock has ended once."""
    _evaluated: list[PlannedTrial] = field(default_factory=list)
    """Those that were measured now, and the search knows of."""

    @property
    def mode(self) -> Mode:
        """What the numbers are."""
        return self.machine.mode

    @property
    def noise_free(self) -> bool:
        """Whether nothing is repeated."""
        return self.mode in EXACT_MODES

    @property
    def at_once(self) -> int:
        """Trials in parallel."""
        return search_of(self.study)[0].at_once

    @property
    def perturbations(self) -> int:
        """Runs that differ by what must not matter, the plain one among them."""
        return self.study.perturbations if self.noise_free else 1

    def measure(self, batch: Sequence[Ask]) -> Iterator[Observation]:
        """One observation for each ask, as each ends.

        Raises BaselineFailed and TuningError, where the baseline cannot be measured, and what says nothing
        about a configuration: HOST_PROBLEMS, KernelError, SearchFailed, KeyboardInterrupt.
        """
        interruption.check()
        trials = [planned(self.study, ask) for ask in batch]
        ready: list[PlannedTrial] = []
        jobs: dict[str, tuple[Job, ...]] = {}
        for trial in trials:
            try:
                if trial.treatment.key not in jobs:
                    jobs[trial.treatment.key] = self._jobs(trial)
                ready.append(trial)
            except KernelError as error:
                if isinstance(error, HOST_PROBLEMS) or not isinstance(error, _OF_CONFIGURATION):
                    raise
                outcome = Outcome.NOT_A_KERNEL if isinstance(error, ImageError) else Outcome.KERNEL_MISSING
                yield self._kept(without_running(trial, outcome, str(error), ""))
        if ready:
            yield from self._run(ready, jobs)

    def seen(self, run: Observation) -> None:
        """Take note of an observation of an earlier run of the search."""
        if not run.configuration and not run.failure:
            self._slowest = max(self._slowest, run.seconds)

    def _jobs(self, trial: PlannedTrial) -> tuple[Job, ...]:
        """What the trial does. Raises KernelError."""
        _, space = search_of(self.study)
        levels = {name: str(level) for name, level in trial.treatment.levels.items()}
        study = resolved(study_of(self.study, space, levels))
        jobs = jobs_of(study, trial.treatment, self._kernel(study, trial), self.resources)
        limit = self._limit()
        if limit >= study.machine.limit_seconds:
            return jobs
        update = {"limit_seconds": limit}
        return tuple(replace(job, boot=job.boot.model_copy(update=update)) for job in jobs)

    def _limit(self) -> float:
        """Seconds after which a trial is hopeless; on this system only, where programs are ended alone."""
        limit = self.study.machine.limit_seconds
        if not self._slowest or not isinstance(self.machine, RunsAlready):
            return limit
        return min(limit, max(_SHORTEST_LIMIT_S, _MUCH_SLOWER * self._slowest))

    def _kernel(self, study: Study, trial: PlannedTrial) -> Kernel:
        reference = kernel_of(study, trial.treatment)
        name = reference.label

        def progress(what: str, done: int = 0, total: int = 0) -> None:
            self.observer.kernel_progress(name, what, done, total)

        if name not in self._kernels:
            try:
                if reference.build:
                    self._kernels[name] = self.resources.builder.build(reference.build, progress)
                else:
                    self._kernels[name] = self.resources.obtain(reference, progress)
            except KernelError as error:
                self._kernels[name] = error
        kernel = self._kernels[name]
        if isinstance(kernel, KernelError):
            raise kernel
        return kernel

    def _run(self, trials: Sequence[PlannedTrial], jobs: dict[str, tuple[Job, ...]]) -> Iterator[Observation]:
        """What the machine could not run says nothing about a configuration: it is run again, not kept.

        A run that the clock has ended is made once more, too: this host may have been busy.
        """
        for _ in range(_ATTEMPTS):
            failed: list[Trial] = []
            yield from self._run_once(trials, jobs, failed)
            if not failed:
                return
            trials = [trial.planned for trial in failed]
        levels = dict(failed[0].planned.treatment.levels)
        settings = ", ".join(f"{name}={value}" for name, value in levels.items()) or "the baseline"
        raise SearchFailed(
            f"The machine failed {_ATTEMPTS} times with {settings}, so that nothing is known of it: "
            f"{failed[0].reason}",
            hint="nothing is concluded from that, and what was measured is kept: ktrial tune --resume goes "
            "on with it; ktrial doctor says what this host lacks",
        )

    def _run_once(
        self, trials: Sequence[PlannedTrial], jobs: dict[str, tuple[Job, ...]], failed: list[Trial]
    ) -> Iterator[Observation]:
        audited = time.monotonic() - self._looked >= _LOOK_AROUND_S
        if audited:
            self._looked = time.monotonic()
        options = TrialOptions(self.at_once, self._symbols, audited=audited, scope=self.study.name)
        executor = self.executors.executor(self.machine, options)
        with interruption.listening(executor.ask_to_stop):
            awaited = len(trials)
            try:
                executor.begin(trials, jobs)
                while awaited:
                    event = executor.next_event()
                    if seen := self._handled(event, failed):
                        yield seen
                    awaited -= isinstance(event, Ended)
                    awaited += self._withdrawn(event, trials) if isinstance(event, Withdrawn) else 0
            except BaseException:
                try:
                    self.observer.stopping()
                finally:  # whatever becomes of telling it, nothing stays under way
                    for trial in executor.stop():
                        if trial.outcome is not Outcome.MACHINE_FAILED:
                            self.keep(trial)
                raise
            executor.close()

    def _withdrawn(self, event: Withdrawn, batch: Sequence[PlannedTrial]) -> int:
        """How many of the batch end again: each is told a second time, which the search takes for the first.

        Raises SearchMisled where the search has gone on from one that is not to be believed.
        """
        orders = {trial.order for trial in batch}
        if wrong := [trial.order for trial in event.trials if trial.order not in orders]:
            first = min(wrong)
            self.forget([trial for trial in self._evaluated if trial.order >= first])
            raise SearchMisled(
                f"The search went on from a run that is not to be believed (run {first + 1}): {event.why}"
            )
        self.forget(event.trials)
        return len(event.trials)

    def _handled(self, event: Event, failed: list[Trial]) -> Observation | None:
        match event:
            case Preparing(boot, what):
                self.observer.preparing(boot, what)
            case Prepared(boot):
                self.observer.prepared(boot)
            case Started(trial):
                self.observer.trial_started(trial)
            case Ended(trial, stored):
                try:
                    if trial.outcome is not Outcome.MACHINE_FAILED and not self._first_ended_by_clock(trial):
                        return self._kept(trial)
                    failed.append(trial)
                finally:
                    stored.set()
            case Withdrawn(_, text) | Notice(text):
                self.observer.notice(text)
            case Broken(error):
                interruption.check()  # what broke because it was stopped
                raise error
            case StopRequested():
                interruption.check()
        return None

    def _first_ended_by_clock(self, trial: Trial) -> bool:
        """Whether its limit in real time was over, and that for the first time."""
        if self.noise_free or trial.outcome is not Outcome.HUNG or trial.planned.key in self._clocked:
            return False
        self._clocked.add(trial.planned.key)
        return True

    def _kept(self, trial: Trial) -> Observation:
        seen = observation(trial)
        if not seen.configuration:
            self._check_baseline(seen)
        self.keep(trial)
        self._evaluated.append(trial.planned)
        self.seen(seen)
        return seen

    def _check_baseline(self, baseline: Observation) -> None:
        """What keeps the very first run from being measured would keep all others: nothing is stored then."""
        if self._slowest:
            return
        goal = search_of(self.study)[0].goal
        for metric in (
            *(objective.metric for objective in goal.objectives),
            *(guard.metric for guard in goal.guards),
        ):
            if f"the metric {metric} is not in what it printed" in baseline.failure:
                advice = f"say how it is found: --metric '{metric}=REGEX', or --metric {metric}=json:PATH"
                raise TuningError(f"The workload does not measure '{metric}'.", hint=advice)
        if baseline.failure:
            raise BaselineFailed(baseline.failure)
        check_measured(goal, baseline.values)


def planned(study: Study, ask: Ask) -> PlannedTrial:
    """The trial that answers the ask. Its block is the ask's number: no two trials have the same key."""
    return PlannedTrial(
        order=ask.order,
        block=ask.order,
        treatment=Treatment(levels=dict(ask.configuration)),
        perturbation=perturbation(study.seed, ask.perturbation),
        purpose=ask.purpose.value,
        compared_in=ask.block,
    )


def observation(trial: Trial) -> Observation:
    """What a trial of a search says."""
    levels = {name: str(level) for name, level in trial.planned.treatment.levels.items()}
    failed = trial.outcome is not Outcome.COMPLETED
    return Observation(
        configuration=levels,
        values={} if failed else {sample.metric: sample.value for sample in trial.samples},
        failure=(trial.reason or trial.outcome.value) if failed else "",
        # The setting that the reason names (ktrial.experiment.manipulation).
        refused=next((name for name in levels if trial.reason.startswith(f"{name} = ")), "")
        if trial.outcome is Outcome.REFUSED
        else "",
        seconds=trial.seconds,
        order=trial.planned.order,
        purpose=Purpose(trial.planned.purpose),
        block=trial.planned.compared_in,
        perturbation=trial.planned.perturbation.number,
    )


def study_of(study: Study, space: Space, configuration: Mapping[str, str]) -> Study:
    """The study, with one factor for each dimension that the configuration changes.

    What it does not change is not touched: it stays as it is on the system.
    """
    changed = [dimension for dimension in space.dimensions if dimension.name in configuration]
    factors = []
    for knob in changed:
        kind, target = kind_of(knob.name)
        value = configuration[knob.name]
        changes = {}
        if kind is FactorKind.KCONFIG:
            changes = {value: BuildChange(options={f"CONFIG_{target}": value})}
        factors.append(
            Factor(
                name=knob.name,
                kind=kind,
                levels=(knob.default, value),
                baseline=knob.default,
                target=target,
                changes=changes,
            )
        )
    kernel = configuration.get(KERNEL)
    machine = study.machine.model_copy(update={"kernel": ""}) if kernel else study.machine
    return study.model_copy(update={"factors": tuple(factors), "machine": machine, "search": None})


def kind_of(name: str) -> tuple[FactorKind, str]:
    """What a dimension changes, and its name without what says so."""
    if name == KERNEL:
        return FactorKind.KERNEL, ""
    for start, kind in ((BOOT, FactorKind.BOOT), (OPTION, FactorKind.KCONFIG)):
        if name.startswith(start):
            return kind, name.removeprefix(start)
    return FactorKind.SETTING, name
