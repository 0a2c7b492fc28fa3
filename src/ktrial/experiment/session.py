"""Run a study: plan, skip what is finished, obtain kernels, prepare, run trials at once, store, resume."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from enum import StrEnum

from ktrial import interruption, machines
from ktrial.analysis import interim
from ktrial.analysis.brief_results import keep_record
from ktrial.analysis.result import VerdictsSoFar, metrics_of
from ktrial.errors import Interrupted, KtrialError
from ktrial.experiment import machine_lease, monitoring, preflight
from ktrial.experiment.errors import HOST_PROBLEMS, TrialsNotMeasured
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
from ktrial.experiment.jobs import Job, check_resumed, check_workloads, jobs_of
from ktrial.experiment.machine_lease import Leases
from ktrial.experiment.observer import ActivityObserver, Observer, Pace
from ktrial.experiment.resources import (
    Builder,
    KernelOutcome,
    Listener,
    Resources,
    RunsAlready,
    built_here,
    default_resources,
    misconfigured,
    sources_for,
)
from ktrial.experiment.trial import without_running
from ktrial.experiment.trial_parts import TrialParts
from ktrial.fault_points import fault_point
from ktrial.kernels import kernel_registry
from ktrial.kernels.errors import ImageError, KernelError
from ktrial.machines import CountingMachine, ExclusiveUse, Machine, RemoteMachine
from ktrial.model.base import digest
from ktrial.model.design import Plan, PlannedTrial, Treatment
from ktrial.model.kernel import Build, Kernel
from ktrial.model.references import KernelRef
from ktrial.model.study import Study, StudyRecord, kernel_of
from ktrial.model.study import plan as plan_of
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import EXACT_MODES
from ktrial.store.errors import StoreError
from ktrial.store.store import Store
from ktrial.studyfile.references import RUNNING_KERNEL, resolved

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
    resources: Resources | None = None,
    until: int | None = None,
    executors: Executors | None = None,
    any_settings: bool = False,
    one_sided: bool = False,
) -> StudyRecord:
    """Run all trials of the study that are not in the store yet, and return the study with its result.

    `machine`: what to run them on, instead of the one that the study names. `jobs`: how many trials at once;
    as many as there are cores where load does not change the numbers, and one elsewhere, whatever is asked.
    `retry_failed`: run trials again that ended with another outcome than `completed`. `until`: in real time,
    run so many blocks, whatever they say, instead of stopping by the study's own rule. `executors`: what has
    the trials performed, instead of what `ktrial.experiment.executor.performed_by` says, or this system.
    `any_settings`: a setting that no kernel has is an outcome of its trials, too, as in a search that tries
    what two systems differ in; else it is refused before the first trial. `one_sided`: one kernel's trials
    are wanted where no other can be had, too, as when they are compared with a bundle's.

    A kernel that cannot be had, or that fails, is the outcome of its trials; the study goes on. If none of
    the kernels can be had, the first one's KernelError is raised. Raises Interrupted after Ctrl-C, SIGTERM
    and SIGHUP (what is finished is stored), StoreError, MachineError and others that say something about this
    host (a missing QEMU, a full disk), WorkloadError, StudyRefused.
    """
    study = resolved(study)
    is_own, machine = machine is None, machine or _machine(study)
    observer = observer or Observer()
    resources = sources_for(machine, resources or default_resources())
    session = (_TimedSession if study.timing else _Session)(
        study, store, machine, observer, resources, retry_failed
    )
    session.until, session.jobs, session.any_settings = until, jobs, any_settings
    session.kernels.one_sided = one_sided
    session.executors = executors or chosen(ThisSystem)
    session.kernels.built = session.executors.built
    with interruption.caught():
        try:
            interruption.check()
            preflight.check_study(
                session.study, store, machine, resources, jobs, session.replaced, observer.notice
            )
            places = (store, *session.executors.where_leased(machine, observer.notice))
            session.lease = machine_lease.leased(machine, places, study.name, observer.notice)
            machine_lease.when_free(machine.check, observer.notice)
            check_workloads(study, session.resources)
            preflight.check_host(study, machine)
            monitoring.check(study)
            session.run()
            session.check_measured()
            fault_point("session: all trials stored")
            # What reads patches and Kconfig files takes a second to load.
            from ktrial.analysis.kernel_diff import remember

            remember(store, session.study_id, study, session.kernels.known)
            interruption.check()
        except KeyboardInterrupt:
            raise session.interrupted() from None
        finally:
            session.leave()
            session.discard_if_empty()
            if is_own and isinstance(machine, RemoteMachine):
                machine.close()
    return keep_record(store, session.study_id)


# What a run would do, told without doing it.


class KernelState(StrEnum):
    """How a kernel is had."""

    RUNNING = "running"
    """It runs on the machine."""
    CACHED = "cached"
    FETCHED = "fetched"
    """It has to be fetched, or read from its file."""
    UNLISTED = "unlisted"
    """It has to be fetched, and whether there is one shows only then: no lists are here, or old ones."""
    BUILT = "built"
    """It has to be built."""


@dataclass(frozen=True)
class RunPlan:
    """What `run` of a study will do."""

    study: Study
    """With its references resolved."""
    machine: str
    treatments: int
    perturbations: int
    """Blocks: each has one trial of each treatment. In real time the most that there may be."""
    may_end_early: bool
    trials: int
    """`treatments` times `perturbations`."""
    stored: int
    """How many of those the store has already."""
    at_once: int
    kernels: Mapping[str, KernelState]
    """By label, the baseline's first: those that the missing trials need."""


def plan_run(
    study: Study,
    *,
    store: Store | None,
    machine: Machine | None = None,
    jobs: int | None = None,
    retry_failed: bool = False,
    resources: Resources | None = None,
    tell: Callable[[str], None] = lambda _text: None,
) -> RunPlan:
    """What `run` would do with the same arguments. Nothing is fetched, built, booted or stored.

    Raises what `run` raises before its first kernel: SystemNotReady, StudyRefused, WorkloadError, and others
    that say something about this host. Another machine of the user's is not connected to. `store`: None
    where it has still to be made. `tell`: told what may be too little.
    """
    study = resolved(study)
    machine = machine or _machine(study)
    resources = sources_for(machine, resources or default_resources())
    replaced = frozenset(Outcome) - {Outcome.COMPLETED} if retry_failed else TRIED_AGAIN
    plan = plan_of(study)
    stored = store.newest(digest=digest(study)) if store else None
    finished = store.finished_keys(stored.id, apart_from=replaced) if store and stored else frozenset()
    missing = [trial for trial in plan.trials if trial.key not in finished]
    preflight.check(preflight.undertaking(study, machine, resources, jobs, kernels=bool(missing)), tell)
    check_workloads(study, resources)
    if not isinstance(machine, RemoteMachine):
        machine.check()
        preflight.check_host(study, machine)
    monitoring.check(study)
    references = [kernel_of(study, treatment) for treatment in treatments_of(missing)]
    baseline = kernel_of(study, plan.baseline).label
    references.sort(key=lambda reference: reference.label != baseline)
    return RunPlan(
        study=study,
        machine=machine.name,
        treatments=len(plan.treatments),
        perturbations=study.blocks,
        may_end_early=plan.may_end_early,
        trials=len(plan.trials),
        stored=len(plan.trials) - len(missing),
        at_once=chosen(ThisSystem).at_once(machine, jobs),
        kernels={kernel.label: _state_of(kernel, machine, resources) for kernel in references},
    )


def _state_of(kernel: KernelRef, machine: Machine, resources: Resources) -> KernelState:
    if isinstance(machine, RunsAlready) and (
        not isinstance(machine, RemoteMachine) or kernel.name in {"", RUNNING_KERNEL}
    ):
        return KernelState.RUNNING
    if kernel.build:
        return KernelState.CACHED if resources.builder.cached(kernel.build) else KernelState.BUILT
    if kernel_registry.is_cached(kernel):
        return KernelState.CACHED
    if kernel.provider == "git":
        return KernelState.BUILT
    return KernelState.FETCHED if kernel_registry.is_listed(kernel) else KernelState.UNLISTED


# The kernels that a study needs: fetched or built, each once, the baseline's first.


@dataclass
class StudyKernels:
    """What is known of the kernels of a study, by their labels."""

    study: Study
    plan: Plan
    resources: Resources
    observer: Observer
    built: Callable[[Mapping[str, Build], Builder, Listener], Generator[KernelOutcome]] = built_here
    """What has kernels built."""
    known: dict[str, Kernel | KernelError] = field(default_factory=dict)
    """Each that was asked for, or why it cannot be had."""
    one_sided: bool = False
    """Trials of one kernel are wanted where no other can be had, too, as long as none has to be compiled."""

    def obtain(self, missing: Sequence[PlannedTrial], *, begun: bool) -> Mapping[str, Kernel | KernelError]:
        """Every kernel that is needed, by its label, or why it cannot be had. `begun`: trials are stored.

        Raises where none can, and where a build fails without which nothing is compared; not where the study
        has begun, which can still say something.
        """
        kernels = self.known
        references = {
            reference.label: reference
            for reference in (kernel_of(self.study, treatment) for treatment in treatments_of(missing))
        }
        baseline = kernel_of(self.study, self.plan.baseline).label
        # The baseline's first: if it fails, the others need not be built.
        names = sorted(
            (name for name in references if name not in kernels), key=lambda name: name != baseline
        )
        builds = {name: build for name in names if (build := references[name].build)}
        wrong = misconfigured(builds, self.resources.builder, self.observer.progress_of)
        self._not_had(wrong, references, begun=begun)
        compiled = {name: build for name, build in builds.items() if name not in kernels}
        fetched = self._fetched([references[name] for name in names if name not in builds])
        built = self.built(
            compiled, self.resources.builder, Listener(self.observer.progress_of, self.observer.notice)
        )
        for way in (built, fetched) if baseline in compiled else (fetched, built):
            with closing(way):
                for name, outcome in way:
                    if isinstance(outcome, Kernel):
                        kernels[name] = outcome
                        continue
                    self._not_had({name: outcome}, references, begun=begun)
        errors = [kernel for kernel in kernels.values() if isinstance(kernel, KernelError)]
        if errors and len(errors) == len(kernels) and not begun:
            raise errors[0]
        return kernels

    def _fetched(self, references: Iterable[KernelRef]) -> Generator[KernelOutcome]:
        for kernel in references:
            try:
                yield kernel.label, self.resources.obtain(kernel, self.observer.progress_of(kernel.label))
            except KernelError as error:
                yield kernel.label, error

    def _not_had(
        self, failed: Mapping[str, KernelError], references: Mapping[str, KernelRef], *, begun: bool
    ) -> None:
        """Tell of kernels that cannot be had, or raise where the study is hopeless without them: what is
        raised is not told twice.
        """
        for error in failed.values():
            raise_host_problem(error)
        self.known.update(failed)
        hopeless = self._hopeless(references, begun=begun)
        for name, error in failed.items():
            if hopeless is None or error not in {hopeless, hopeless.__cause__}:
                self.observer.kernel_failed(name, error)
        if hopeless:
            raise hopeless

    def _hopeless(self, references: Mapping[str, KernelRef], *, begun: bool) -> KernelError | None:
        """Compiling takes minutes: not for a study that cannot tell any more what it is there to tell.

        Nor is anything booted for it: where only the baseline is left, or only others, nothing is compared.
        """
        vital = [name for name, reference in references.items() if reference.build or not self.one_sided]
        errors = {name: error for name in vital if isinstance(error := self.known.get(name), KernelError)}
        if not errors or begun:
            return None
        baseline, *treated = (kernel_of(self.study, treatment).label for treatment in self.plan.treatments)
        if baseline in errors:
            return errors[baseline]
        if errors.keys() >= set(treated):
            return next(iter(errors.values()))
        if self.known.keys() >= {name for name, reference in references.items() if reference.build}:
            return None
        # All treatments may be lost that have another level of one factor than the baseline.
        for factor in self.study.factors:
            changed = [
                kernel_of(self.study, treatment).label
                for treatment in self.plan.treatments
                if treatment.levels[factor.name] != self.plan.baseline.levels[factor.name]
            ]
            if changed and errors.keys() >= set(changed):
                first = errors[changed[0]]
                advice = f"{first.advice}; or " if first.advice else ""
                lost = KernelError(
                    f"The factor {factor.name} cannot be measured: no kernel with another level than the "
                    f"baseline's is available. {first.message}",
                    hint=f"{advice}leave out the factor {factor.name}, and the rest can be measured",
                )
                lost.__cause__ = first
                return lost
        return None


@dataclass
class _Session:
    study: Study
    store: Store
    machine: Machine
    observer: Observer
    resources: Resources
    retry_failed: bool
    study_id: int = 0
    plan: Plan = field(init=False)
    finished_keys: set[str] = field(default_factory=set)
    """Keys of the trials that are not run (again)."""
    kernels: StudyKernels = field(init=False)
    total: int = 0
    """How many trials there will be."""
    pace: Pace = field(default_factory=Pace)
    at_once: int = 1
    unmeasured: dict[str, Trial] = field(default_factory=dict)
    """By key: what ended with the machine's failure, each time that it was tried."""
    jobs: int | None = None
    """How many trials at once were asked for."""
    executors: Executors = field(default_factory=ThisSystem)
    until: int | None = None
    """In real time: how many blocks are asked for; None: as many as it takes."""
    lease: ExclusiveUse = field(default_factory=Leases)
    """Of the machine, where it is another system."""
    any_settings: bool = False
    """No kernel need have them."""
    leave: Callable[[], None] = lambda: None
    """Nobody need look for this run any more."""

    def __post_init__(self) -> None:
        self.plan = plan_of(self.study)
        self.total = len(self.plan.trials)
        self.kernels = StudyKernels(self.study, self.plan, self.resources, self.observer)

    @property
    def replaced(self) -> frozenset[Outcome]:
        """Outcomes of stored trials that are run again."""
        return frozenset(Outcome) - {Outcome.COMPLETED} if self.retry_failed else TRIED_AGAIN

    @property
    def scope(self) -> str:
        """Names the study in its store."""
        return f"{self.store.name} {self.study_id}"

    @property
    def finished(self) -> int:
        """How many trials are in the store, and stay there."""
        return len(self.finished_keys)

    def run(self) -> None:
        """Run what is missing."""
        self._begin()
        self._run_missing(self.plan.trials)

    def _begin(self) -> None:
        stored = self._store_study()
        self.study = in_stored_order(self.study, stored, self.observer)
        self.finished_keys = set(self.store.finished_keys(self.study_id, apart_from=self.replaced))
        if self.finished_keys:
            trials = self.store.trials(self.study_id)  # damaged ones are told before others run
            if self.finished < len(self.plan.trials):
                check_resumed(self.study, trials, self.resources)
        self.observer.study_planned(self.plan, self.finished)

    def _store_study(self) -> Study:
        """The study as it is stored, which says from now on that it is being run.

        Until that is said another run of it, which ends without a trial, may take it away: it is stored anew.
        """
        key, observer = digest(self.study), self.observer
        while True:
            self.study_id = self.store.study(self.study)
            fault_point("session: study stored")
            activity = ActivityObserver(observer, self.store, self.study_id, self.machine.mode)
            self.observer = self.kernels.observer = activity
            self.leave = activity.end
            if not self.store.finished_keys(self.study_id):
                activity.begin()
            stored = self.store.newest(digest=key)
            if stored is not None and stored.id == self.study_id:
                return stored.study
            activity.end()

    def discard_if_empty(self) -> None:
        """A study of no trials is not kept."""
        if self.study_id:
            with suppress(StoreError):  # what ended the run is told
                self.store.remove_if_empty(self.study_id)

    def _run_missing(self, trials: Iterable[PlannedTrial]) -> None:
        fault_point("session: before a block")
        interruption.check()
        missing = [planned for planned in trials if planned.key not in self.finished_keys]
        if not missing:
            return
        ready, jobs = self._ready(missing)
        if not (self.finished_keys or self.any_settings):
            preflight.check_settings(self.plan.treatments, jobs, self.machine, self.observer)
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
        names = [f"{trial.planned.treatment.label} ({trial.planned.key})" for trial in trials[:_MOST_NAMED]]
        more = f" and {len(trials) - _MOST_NAMED} more" if len(trials) > _MOST_NAMED else ""
        problem = trials[0].reason.rstrip(".")
        raise TrialsNotMeasured(
            f"{len(trials)} of {self.total} trials were not measured, since the machine failed: the host's "
            f"fault, not the kernel's. They are {', '.join(names)}{more}. The first said: {problem}.",
            hint=f"nothing is concluded from that. {self._kept}; ktrial doctor says what this host lacks",
            problem=problem,
        )

    @property
    def _kept(self) -> str:
        if not self.finished:
            return "No trial is stored, and the same command runs all of them"
        return (
            f"What was measured is stored ({self.finished} trials: ktrial show), and the same command runs "
            "the others again"
        )

    def interrupted(self) -> Interrupted:
        """The error that ends an interrupted run."""
        if not self.study_id:
            return Interrupted("nothing had begun", hint="run the same command again")
        try:
            stored = len(self.store.finished_keys(self.study_id, apart_from=self.replaced))
        except StoreError as error:
            return Interrupted(f"no trial is known to be stored. {error.message}", hint=error.advice)
        return Interrupted(
            f"{stored} of {self.total} trials are stored, nothing of them is lost",
            hint="run the same command again: it goes on from there",
        )

    def _ready(self, missing: list[PlannedTrial]) -> tuple[list[PlannedTrial], dict[str, tuple[Job, ...]]]:
        """The trials that can be run, with what each treatment does; the others are stored with why not."""
        kernels = self.kernels.obtain(missing, begun=bool(self.finished))
        jobs: dict[str, tuple[Job, ...]] = {}
        failed: dict[str, KtrialError] = {}
        for treatment in treatments_of(missing):
            name = kernel_of(self.study, treatment).label
            try:
                kernel = kernels[name]
                if isinstance(kernel, KernelError):
                    raise kernel
                jobs[treatment.key] = jobs_of(self.study, treatment, kernel, self.resources)
            except KernelError as error:
                raise_host_problem(error)
                failed[treatment.key] = error
        for planned in missing:
            if reason := failed.get(planned.treatment.key):
                outcome = Outcome.NOT_A_KERNEL if isinstance(reason, ImageError) else Outcome.KERNEL_MISSING
                name = kernel_of(self.study, planned.treatment).label
                self._store(without_running(planned, outcome, str(reason), name))
        return [planned for planned in missing if planned.treatment.key in jobs], jobs

    def _run_trials(self, trials: list[PlannedTrial], jobs: dict[str, tuple[Job, ...]]) -> None:
        self.at_once = self.executors.at_once(self.machine, self.jobs)
        options = TrialOptions(self.jobs, scope=self.scope, goes_on=True)
        executor = self.executors.executor(self.machine, options)
        self.lease.tell_loss(executor.ask_to_stop)
        with interruption.listening(executor.ask_to_stop):
            try:
                self.pace.begin()
                executor.begin(trials, jobs)
                awaited = len(trials)
                while awaited:
                    event = executor.next_event()
                    if isinstance(event, Ended):
                        ended = (event, *executor.ended_at_hand())
                        self._ended(ended)
                        awaited -= len(ended)
                        continue
                    self._handle(event)
                    awaited += len(event.trials) if isinstance(event, Withdrawn) else 0
            except BaseException:
                try:
                    self.observer.stopping()
                    fault_point("session: stopping")
                finally:  # whatever becomes of telling it, nothing stays under way
                    for trial in executor.stop():
                        if not self.lease.is_lost:
                            self._store(trial)
                raise
            executor.close()

    def _ended(self, ended: Sequence[Ended]) -> None:
        try:
            self.lease.check()
            for event in ended:
                self.pace.saw(event.trial.seconds)
            self._store(*(event.trial for event in ended))
        finally:  # whatever is raised, who performed them waits for this, and is waited for
            for event in ended:
                event.stored.set()

    def _handle(self, event: Event) -> None:
        match event:
            case Preparing(boot, what):
                self.observer.preparing(boot, what)
            case Prepared(boot):
                self.observer.prepared(boot)
            case Started(planned):
                self.observer.trial_started(planned)
            case Withdrawn(trials, why):
                keys = {planned.key for planned in trials}
                self.store.remove_trials_of(self.study_id, keys)
                self.finished_keys -= keys
                self.observer.notice(why)
            case Notice(text):
                self.observer.notice(text)
            case Broken(error):
                interruption.check()  # what broke because it was stopped
                self.lease.check()
                raise error
            case StopRequested():
                interruption.check()
                self.lease.check()

    def _store(self, *ended: Trial) -> None:
        """All in one transaction; but those with which the machine failed."""
        failed = {trial.planned.key: trial for trial in ended if trial.outcome is Outcome.MACHINE_FAILED}
        self.unmeasured |= failed
        measured = [trial for trial in ended if trial.planned.key not in failed]
        if not measured:
            return
        for trial in measured:
            self.unmeasured.pop(trial.planned.key, None)
        self.store.add_trials(self.study_id, measured, replaces=self.replaced)
        for trial in measured:
            fault_point("session: trial stored")
            TrialParts(self.scope, trial.planned).remove()
            self.finished_keys.add(trial.planned.key)
            seconds_left = self.pace.left(self.total - self.finished, self.at_once)
            self.observer.trial_finished(trial, self.finished, self.total, seconds_left)


@dataclass
class _TimedSession(_Session):
    """Blocks, one after another, for as long as a verdict is open."""

    stored: dict[str, Trial] = field(default_factory=dict)
    """By key. To read all of it after each block would grow with the square of the blocks."""
    interim_verdicts: VerdictsSoFar = field(default_factory=VerdictsSoFar)

    def run(self) -> None:
        """Run blocks up to the next look, look, and so on."""
        self._begin()
        trials = self._stored()
        while not self.unmeasured and (target := self._next_look(trials)):
            blocks = interim.InterimData(self.study, trials).whole_blocks
            self.total = max(target * len(self.plan.treatments), self.finished)
            verdicts = self.interim_verdicts.after(blocks, self.study, trials)
            self.observer.blocks_wanted(blocks, target, verdicts)
            # Where load moves the numbers blocks keep apart; elsewhere as many trials run as may at once.
            last = target - 1 if self.machine.mode in EXACT_MODES else blocks
            # Of a treatment that was given up there are no more trials.
            lost = interim.InterimData(self.study, trials).given_up
            self._run_missing(
                planned
                for planned in self.plan.trials
                if planned.block <= last and planned.treatment.key not in lost
            )
            trials = self._stored()

    def _next_look(self, trials: Sequence[Trial]) -> int | None:
        """How many blocks there are to be at the next look; None where there is nothing to look for."""
        if self.until is None:
            return interim.InterimData(self.study, trials).blocks_wanted(metrics_of(self.study, trials))
        # None can end while a treatment has no chance to.
        if len(interim.InterimData(self.study, trials).given_up) == len(self.plan.treatments):
            return None
        return self.until if interim.InterimData(self.study, trials).whole_blocks < self.until else None

    def _store(self, *ended: Trial) -> None:
        super()._store(*ended)
        self.stored |= {
            trial.planned.key: trial for trial in ended if trial.planned.key in self.finished_keys
        }

    def _stored(self) -> tuple[Trial, ...]:
        """What the store has: read again only where it is not what this run has put there."""
        if self.stored.keys() != self.store.finished_keys(self.study_id):
            self.stored = {trial.planned.key: trial for trial in self.store.trials(self.study_id)}
        return tuple(sorted(self.stored.values(), key=lambda trial: trial.planned.order))


def _machine(study: Study) -> Machine:
    machine = machines.find(study.machine.kind)
    if isinstance(machine, CountingMachine):
        machine.count_by(study.machine.counted_by)
    if isinstance(machine, RemoteMachine):
        machine.reach(study.machine.host)
    return machine


def treatments_of(trials: Iterable[PlannedTrial]) -> list[Treatment]:
    """The treatments of the trials, each once."""
    return list({planned.treatment.key: planned.treatment for planned in trials}.values())


def raise_host_problem(error: KtrialError) -> None:
    """Raise it where it says something about this host, not about a treatment."""
    if isinstance(error, HOST_PROBLEMS):
        raise error


# A study's parameters in the order in which the store has them.
#
# A workload's parameters are its program's arguments in the order of the study file, and in another order
# the program takes other instructions before its work (0.02 % of a short workload). The study's digest does
# not tell orders apart: so a store that has trials of the study goes on in the order of those, and says so.


def in_stored_order(study: Study, stored: Study, observer: Observer) -> Study:
    """The study with its parameters in the order of the stored one of the same digest; what moves is told."""
    stored_uses = {use.label: use for use in stored.workloads}
    moved = [
        use.label
        for use in sorted(study.workloads, key=lambda use: use.label)
        if list(use.parameters) != list(stored_uses[use.label].parameters)
    ]
    if not moved:
        return study
    more = f" and {len(moved) - 1} more" if len(moved) > 1 else ""
    observer.notice(
        f"the parameters of {moved[0]}{more} stand in another order than in the stored study: its order is "
        "kept, since a program's digits depend on the order of its arguments"
    )
    uses = (
        use.model_copy(
            update={"parameters": {name: use.parameters[name] for name in stored_uses[use.label].parameters}}
        )
        for use in study.workloads
    )
    return study.model_copy(update={"workloads": tuple(uses)})
