"""Run a study: plan, skip what is finished, obtain kernels, prepare, run trials at once, store, resume."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ktrial import interruption, machines
from ktrial.analysis import interim, kernel_confounds
from ktrial.analysis.result import metrics_of, record, result
from ktrial.errors import Interrupted, KtrialError
from ktrial.experiment import host_checks, monitoring
from ktrial.experiment.errors import FactorLost
from ktrial.experiment.host_failures import HOST_PROBLEMS, TrialsNotMeasured
from ktrial.experiment.jobs import Job, check_workloads, jobs_of
from ktrial.experiment.kernel_builds import misconfigured, numbered
from ktrial.experiment.observer import Observer, Silent
from ktrial.experiment.resources import Resources, default_resources, sources_for
from ktrial.experiment.trial_recorder import without_running
from ktrial.experiment.workers import (
    Broken,
    Ended,
    Event,
    Prepared,
    Preparing,
    Started,
    StopAsked,
    Workers,
    trials_at_once,
)
from ktrial.fault_points import fault_point
from ktrial.kernels import Progress
from ktrial.kernels.errors import ImageError, KernelError
from ktrial.machines import CountingMachine, Machine, RemoteMachine
from ktrial.model.design import Plan, PlannedTrial, Treatment
from ktrial.model.kernel import Build, Kernel
from ktrial.model.plan import plan as plan_of
from ktrial.model.references import KernelRef
from ktrial.model.study import Study, kernel_of
from ktrial.model.study_record import StudyRecord
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import EXACT_MODES
from ktrial.store import Store
from ktrial.store.errors import StoreError
from ktrial.studyfile.references import resolved

_ATTEMPTS = 3
"""Of a trial with which the machine failed: that is of the moment, or it is told."""
_MOST_NAMED = 3
TRIED_AGAIN = frozenset({Outcome.KERNEL_MISSING, Outcome.NOT_A_KERNEL, Outcome.MACHINE_FAILED})
"""Outcomes that tell of this host or of a file, not of a treatment: the next run tries those trials again."""


def run(
    study: Study,
    *,
    store: Store,
    machine: Machine | None = None,
    observer: Observer | None = None,
    jobs: int | None = None,
    retry_failed: bool = False,
    sources: Resources | None = None,
    until: int | None = None,
) -> StudyRecord:
    """Run all trials of the study that are not in the store yet, and return the study with its result.

    `machine`: what to run them on, instead of the one that the study names. `jobs`: how many trials at once;
    as many as there are cores where load does not change the numbers, and one elsewhere, whatever is asked.
    `retry_failed`: run trials again that ended with another outcome than `completed`. `until`: in real time,
    run so many blocks, whatever they say, instead of stopping by the study's own rule.

    A kernel that cannot be had, or that fails, is the outcome of its trials; the study goes on. If none of
    the kernels can be had, the first one's KernelError is raised. Raises Interrupted after Ctrl-C, SIGTERM
    and SIGHUP (what is finished is stored), StoreError, MachineError and others that say something about this
    host (a missing QEMU, a full disk), WorkloadError.
    """
    study = resolved(study)
    machine = machine or _machine(study)
    observer = observer or Silent()
    sources = sources_for(machine, sources or default_resources())
    session = (_TimedSession if study.timing else _Session)(
        study, store, machine, observer, sources, retry_failed
    )
    session.until = until
    with interruption.caught():
        try:
            interruption.check()
            machine.check()
            check_workloads(study, session.sources)
            host_checks.check(study, machine)
            monitoring.check(study)
            session.run(trials_at_once(machine, jobs))
            session.check_measured()
            fault_point("session: all trials stored")
            kernel_confounds.remember(store, session.study_id, study, session.kernels)
            interruption.check()
        except KeyboardInterrupt:
            raise session.interrupted() from None
    return record(store, session.study_id)


@dataclass
class _Session:
    study: Study
    store: Store
    machine: Machine
    observer: Observer
    sources: Resources
    retry_failed: bool
    study_id: int = 0
    plan: Plan = field(init=False)
    done: set[str] = field(default_factory=set)
    """Keys of the trials that are not run (again)."""
    kernels: dict[str, Kernel | KernelError] = field(default_factory=dict)
    total: int = 0
    """How many trials there will be."""
    seconds: list[float] = field(default_factory=list)
    at_once: int = 1
    unmeasured: dict[str, Trial] = field(default_factory=dict)
    """By key: what ended with the machine's failure, each time that it was tried."""
    until: int | None = None
    """In real time: how many blocks are asked for; None: as many as it takes."""

    def __post_init__(self) -> None:
        self.plan = plan_of(self.study)
        self.total = len(self.plan.trials)

    @property
    def replaced(self) -> frozenset[Outcome]:
        """Outcomes of stored trials that are run again."""
        return frozenset(Outcome) - {Outcome.COMPLETED} if self.retry_failed else TRIED_AGAIN

    @property
    def finished(self) -> int:
        """How many trials are in the store, and stay there."""
        return len(self.done)

    def run(self, at_once: int) -> None:
        """Run what is missing."""
        self._begin(at_once)
        self._run_missing(self.plan.trials)

    def _begin(self, at_once: int) -> None:
        self.at_once = at_once
        self.study_id = self.store.study(self.study)
        fault_point("session: study stored")
        self.done = set(self.store.finished_keys(self.study_id, apart_from=self.replaced))
        if self.done:
            self.store.trials(self.study_id)  # no verdict comes of damaged ones: told before others run
        self.observer.study_planned(self.plan, self.finished)

    def _run_missing(self, wanted: Iterable[PlannedTrial]) -> None:
        fault_point("session: before a block")
        interruption.check()
        missing = [planned for planned in wanted if planned.key not in self.done]
        if not missing:
            return
        ready, jobs = self._ready(missing)
        for _ in range(_ATTEMPTS):
            self._run_trials(ready, jobs)
            ready = [planned for planned in ready if planned.key in self.unmeasured]
            if not ready:
                return

    def check_measured(self) -> None:
        """Raise TrialsNotMeasured where the machine failed, each time that it was tried."""
        if not self.unmeasured:
            return
        trials = list(self.unmeasured.values())
        names = [f"{one.planned.treatment.label} ({one.planned.key})" for one in trials[:_MOST_NAMED]]
        more = f" and {len(trials) - _MOST_NAMED} more" if len(trials) > _MOST_NAMED else ""
        raise TrialsNotMeasured(
            count=len(trials),
            planned=self.total,
            trials=f"{', '.join(names)}{more}",
            problem=trials[0].reason.rstrip("."),
            stored=self.finished,
        )

    def interrupted(self) -> Interrupted:
        """The error that ends an interrupted run."""
        if not self.study_id:
            return Interrupted(what="nothing had begun", resume="run the same command again")
        try:
            kept = len(self.store.finished_keys(self.study_id, apart_from=self.replaced))
        except StoreError as error:
            return Interrupted(what=f"no trial is known to be kept. {error.message}", resume=error.advice)
        what = f"{kept} of {self.total} trials are stored, nothing of them is lost"
        return Interrupted(what=what, resume="run the same command again: it goes on from there")

    def _ready(self, missing: list[PlannedTrial]) -> tuple[list[PlannedTrial], dict[str, tuple[Job, ...]]]:
        """The trials that can be run, with what each treatment does; the others are stored with why not."""
        kernels = self._kernels(missing)
        jobs: dict[str, tuple[Job, ...]] = {}
        failed: dict[str, KtrialError] = {}
        for treatment in _treatments(missing):
            name = kernel_of(self.study, treatment).label
            try:
                kernel = kernels[name]
                if isinstance(kernel, KernelError):
                    raise kernel
                jobs[treatment.key] = jobs_of(self.study, treatment, kernel, self.sources)
            except KernelError as error:
                _raise_host_problem(error)
                failed[treatment.key] = error
        for planned in missing:
            if reason := failed.get(planned.treatment.key):
                self._store(_not_had(planned, reason, kernel_of(self.study, planned.treatment).label))
        return [planned for planned in missing if planned.treatment.key in jobs], jobs

    def _kernels(self, missing: list[PlannedTrial]) -> dict[str, Kernel | KernelError]:
        """Every kernel that is needed, by name, or why it cannot be had.

        Raises where none can, and where a build fails without which nothing is compared.
        """
        kernels = self.kernels
        wanted = {one.label: one for one in (kernel_of(self.study, each) for each in _treatments(missing))}
        baseline = kernel_of(self.study, self.plan.baseline).label
        # The baseline's first: if it fails, the others need not be built.
        names = sorted((name for name in wanted if name not in kernels), key=lambda name: name != baseline)
        builds = {name: build for name in names if (build := wanted[name].build)}
        for name, error in misconfigured(builds, self.sources.builder, self._teller).items():
            self._not_had(name, error)
        self._raise_hopeless(builds)
        for name in names:
            if name not in kernels:
                try:
                    kernels[name] = self._kernel(wanted[name], builds)
                except KernelError as error:
                    self._not_had(name, error)
                    self._raise_hopeless(builds)
        errors = [one for one in kernels.values() if isinstance(one, KernelError)]
        if errors and len(errors) == len(kernels) and not self.finished:
            raise errors[0]
        return kernels

    def _kernel(self, kernel: KernelRef, builds: dict[str, Build]) -> Kernel:
        progress = self._teller(kernel.label)
        if kernel.build is None:
            return self.sources.obtain(kernel, progress)
        number = list(builds).index(kernel.label) + 1
        return self.sources.builder.build(kernel.build, numbered(progress, number, len(builds)))

    def _teller(self, name: str) -> Progress:
        def progress(what: str, done: int = 0, total: int = 0) -> None:
            self.observer.kernel_progress(name, what, done, total)

        return progress

    def _not_had(self, name: str, error: KernelError) -> None:
        _raise_host_problem(error)
        self.kernels[name] = error
        self.observer.kernel_failed(name, error)

    def _raise_hopeless(self, builds: Iterable[str]) -> None:
        """Compiling takes minutes: not for a study that cannot tell any more what it is there to tell."""
        errors = {name: one for name in builds if isinstance(one := self.kernels.get(name), KernelError)}
        if not errors or self.finished:
            return
        baseline, *others = (kernel_of(self.study, one).label for one in self.plan.treatments)
        if baseline in errors:
            raise errors[baseline]
        if errors.keys() >= set(others):
            raise next(iter(errors.values()))
        if not self.kernels.keys() >= set(builds):
            self._raise_lost_factor(errors)

    def _raise_lost_factor(self, errors: Mapping[str, KernelError]) -> None:
        """Raise FactorLost where every treatment is lost that has another level of it than the baseline."""
        for factor in self.study.factors:
            changed = [
                kernel_of(self.study, one).label
                for one in self.plan.treatments
                if one.levels[factor.name] != self.plan.baseline.levels[factor.name]
            ]
            if changed and errors.keys() >= set(changed):
                first = errors[changed[0]]
                advice = f"{first.advice}; or " if first.advice else ""
                raise FactorLost(
                    name=changed[0], factor=factor.name, problem=first.message, advice=advice
                ) from first

    def _run_trials(self, trials: list[PlannedTrial], jobs: dict[str, tuple[Job, ...]]) -> None:
        workers = Workers(self.machine, self.at_once)
        with interruption.listening(lambda: workers.events.put(StopAsked())):
            awaited = len(trials)
            try:
                workers.begin(trials, jobs)
                while awaited:
                    event = workers.next_event()
                    self._handle(event)
                    awaited -= isinstance(event, Ended)
            except BaseException:
                self.observer.stopping()
                fault_point("session: stopping")
                for trial in workers.stop():
                    self._store(trial)
                raise
            workers.close()

    def _handle(self, event: Event) -> None:
        match event:
            case Preparing(boot, what):
                self.observer.preparing(boot, what)
            case Prepared(boot):
                self.observer.prepared(boot)
            case Started(planned):
                self.observer.trial_started(planned)
            case Ended(trial, stored):
                self.seconds.append(trial.seconds)
                try:
                    self._store(trial)
                finally:
                    stored.set()
            case Broken(error):
                interruption.check()  # what broke because it was stopped
                raise error
            case StopAsked():
                interruption.check()

    def _store(self, trial: Trial) -> None:
        if trial.outcome is Outcome.MACHINE_FAILED:
            self.unmeasured[trial.planned.key] = trial
            return
        self.unmeasured.pop(trial.planned.key, None)
        self.store.add_trial(self.study_id, trial, replaces=self.replaced)
        fault_point("session: trial stored")
        self.done.add(trial.planned.key)
        self.observer.trial_finished(trial, self.finished, self.total, self._seconds_left())

    def _seconds_left(self) -> float | None:
        if not self.seconds:
            return None
        mean = sum(self.seconds) / len(self.seconds)
        return mean * (self.total - self.finished) / self.at_once


class _TimedSession(_Session):
    """Blocks, one after another, for as long as a verdict is open."""

    def run(self, at_once: int) -> None:
        """Run blocks up to the next look, look, and so on."""
        self._begin(at_once)
        trials = self._stored()
        while not self.unmeasured and (wanted := self._wanted(trials)):
            self._tell(trials, wanted)
            # Where load moves the numbers blocks keep apart; elsewhere as many trials run as may at once.
            by_seeds = self.machine.mode in EXACT_MODES
            block = wanted - 1 if by_seeds else interim.whole_blocks(self.study, trials)
            self._run_missing(self._planned(trials, block))
            trials = self._stored()

    def _wanted(self, trials: Sequence[Trial]) -> int | None:
        if self.until is None:
            return interim.blocks_wanted(self.study, trials, metrics_of(self.study, trials))
        # None can end while a treatment has no chance to.
        if len(interim.given_up(self.study, trials)) == len(self.plan.treatments):
            return None
        return self.until if interim.whole_blocks(self.study, trials) < self.until else None

    def _stored(self) -> tuple[Trial, ...]:
        return self.store.trials(self.study_id)

    def _planned(self, trials: Sequence[Trial], block: int) -> list[PlannedTrial]:
        """The trials of the blocks up to this one; of a treatment that was given up there are no more."""
        lost = interim.given_up(self.study, trials)
        return [
            planned
            for planned in self.plan.trials
            if planned.block <= block and planned.treatment.key not in lost
        ]

    def _tell(self, trials: Sequence[Trial], wanted: int) -> None:
        blocks = interim.whole_blocks(self.study, trials)
        self.total = max(wanted * len(self.plan.treatments), self.finished)
        comparisons = result(self.study, trials).comparisons if blocks else ()
        self.observer.blocks_wanted(blocks, wanted, comparisons)


def _machine(study: Study) -> Machine:
    machine = machines.find(study.machine.kind)
    if isinstance(machine, CountingMachine):
        machine.count_by(study.machine.count)
    if isinstance(machine, RemoteMachine):
        machine.reach(study.machine.host)
    return machine


def _treatments(trials: list[PlannedTrial]) -> list[Treatment]:
    return list({planned.treatment.key: planned.treatment for planned in trials}.values())


def _not_had(planned: PlannedTrial, error: KtrialError, kernel: str) -> Trial:
    outcome = Outcome.NOT_A_KERNEL if isinstance(error, ImageError) else Outcome.KERNEL_MISSING
    return without_running(planned, outcome, str(error), kernel)


def _raise_host_problem(error: KtrialError) -> None:
    if isinstance(error, HOST_PROBLEMS):
        raise error
