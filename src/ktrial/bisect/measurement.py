"""Measures candidates in trials: each is a study of one treatment, kept in the store and never run twice.

A study's question holds the kernel's digest, so that a kernel is known by its content, whatever its name.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from ktrial.analysis.comparability import failures, machine_difference
from ktrial.bisect.decision import BisectionMetric, Numbers
from ktrial.bisect.errors import CandidatesIncomparable, EndUnresolved, MetricNotMeasured
from ktrial.experiment.errors import HOST_PROBLEMS
from ktrial.experiment.session import run
from ktrial.experiment.single_kernel import Measurement, Runs, failed, kernel_factor
from ktrial.kernels import Progress
from ktrial.kernels.errors import KernelError
from ktrial.model.design import Factor, FactorKind, LevelValue
from ktrial.model.kernel import Kernel
from ktrial.model.references import KernelRef
from ktrial.model.study import Study, StudyRecord
from ktrial.model.trial import Trial
from ktrial.model.workload import Metric

NAME = "bisect"
"""What a candidate's study is called."""
QUESTION = "One candidate of a bisection."

Settings = Mapping[str, LevelValue]
"""Knob → value."""


@dataclass
class Laboratory:
    """Measures kernels and settings, all in the same way and on the same machine."""

    how: Measurement
    runs: Runs
    trials: list[Trial] = field(default_factory=list)
    """Of the first candidate that ran: the others have to be comparable with it."""
    kept: list[int] = field(default_factory=list)
    """Studies of this search."""

    def measure(self, kernel: Kernel, settings: Settings | None = None) -> StudyRecord:
        """Run the trials that the store lacks. Raises CandidatesIncomparable, and as `session.run`."""
        study = candidate_study(kernel, self.how, settings or {})
        record = self._run(study, kernel)
        if machine_difference(self.trials, record.trials):
            self.runs.store.delete(record.id)
            record = self._run(study, kernel)
            if problem := machine_difference(self.trials, record.trials):
                # The first was in the store already, from another machine: the next search measures all anew.
                for one in self.kept:
                    self.runs.store.delete(one)
                raise CandidatesIncomparable(problem=problem)
        self.trials = self.trials or list(record.trials)
        self.kept.append(record.id)
        return record

    def _run(self, study: Study, kernel: Kernel) -> StudyRecord:
        def this_one(_kernel: KernelRef, _progress: Progress) -> Kernel:
            return kernel

        runs = self.runs
        return run(
            study,
            store=runs.store,
            machine=runs.machine,
            observer=runs.observer,
            jobs=runs.jobs,
            retry_failed=True,
            any_settings=True,
            sources=runs.sources.with_kernels(this_one),
        )


def candidate_study(kernel: Kernel, how: Measurement, settings: Settings) -> Study:
    """The study of one treatment that measures the kernel with these settings."""
    content = f"Kernel: {kernel.name}, {kernel.release}, content {kernel.digest}."
    factors = [
        Factor(name=name, kind=FactorKind.SETTING, levels=(value,), baseline=value, target=name)
        for name, value in settings.items()
    ]
    return Study(
        name=NAME,
        question=f"{QUESTION} {content}",
        machine=how.settings.model_copy(update={"kernel": ""}),
        factors=(kernel_factor(kernel.name), *factors),
        workloads=how.workloads,
        perturbations=how.perturbations,
    )


def problem_of(record: StudyRecord) -> str:
    """Why the candidate has no numbers, in one sentence; empty where it has all."""
    wrong = failed(record)
    return failures(wrong, record.planned) if wrong else ""


def numbers_of(record: StudyRecord) -> Numbers:
    """Every metric's values."""
    numbers: dict[BisectionMetric, dict[int, float]] = {}
    for trial in record.trials:
        for target, value in _samples(trial):
            numbers.setdefault(target, {})[trial.planned.perturbation.number] = value
    return numbers


def _samples(trial: Trial) -> Iterable[tuple[BisectionMetric, float]]:
    for one in trial.samples:
        metric = Metric(name=one.metric, unit=one.unit, direction=one.direction)
        yield BisectionMetric(one.workload, metric, one.mode), one.value


def targets_of(record: StudyRecord, metrics: Sequence[str] = ()) -> tuple[BisectionMetric, ...]:
    """What is to be explained: the metrics of these names, else the first one of each workload.

    Raises MetricNotMeasured for a name that no workload has.
    """
    measured = [target for trial in record.trials[:1] for target, _ in _samples(trial)]
    if not metrics:
        first: dict[str, BisectionMetric] = {}
        for target in measured:
            first.setdefault(target.workload, target)
        return tuple(first.values())
    known = dict.fromkeys(target.metric.name for target in measured)
    for name in metrics:
        if name not in known:
            raise MetricNotMeasured(metric=name, known=", ".join(known))
    return tuple(target for target in measured if target.metric.name in metrics)


def in_order_of_size(
    targets: Sequence[BisectionMetric], effects: Mapping[BisectionMetric, float]
) -> list[BisectionMetric]:
    """The largest difference first: its cause often explains the others."""
    return sorted(targets, key=lambda target: -abs(effects.get(target, 0.0)))


Candidate = TypeVar("Candidate", bound=Hashable)


Chosen = TypeVar("Chosen", bound=Hashable, contravariant=True)


@dataclass(frozen=True)
class Setup:
    """What is booted for a candidate, and what is set there."""

    kernel: Kernel
    settings: Settings = field(default_factory=dict)


class Ground(Protocol[Chosen]):
    """What is searched: options, knobs, patches, releases."""

    def setup(self, candidate: Chosen) -> Setup:
        """The candidate's kernel, built or fetched where it is not there, and its settings.

        Raises KernelError where the candidate cannot be had.
        """

    def label(self, candidate: Chosen) -> str:
        """What the candidate is called in a line of progress."""


Tell = Callable[[str], None]


@dataclass
class TrialOracle(Generic[Candidate]):
    """Measures candidates in trials; remembers which could not be measured, and why."""

    ground: Ground[Candidate]
    laboratory: Laboratory
    tell: Tell = lambda _text: None
    problems: dict[Candidate, str] = field(default_factory=dict)
    records: dict[Candidate, StudyRecord] = field(default_factory=dict)
    setups: dict[Candidate, Setup] = field(default_factory=dict)

    def measure(self, candidate: Candidate) -> Numbers | None:
        """See Oracle. Raises what says nothing about the candidate: HOST_PROBLEMS, Interrupted…"""
        count = len(self.records) + len(self.problems) + 1
        self.tell(f"candidate {count}: {self.ground.label(candidate)}")
        try:
            setup = self.ground.setup(candidate)
        except KernelError as error:
            if isinstance(error, HOST_PROBLEMS):
                raise
            self._unresolved(candidate, error.message.rstrip("."))
            return None
        record = self.laboratory.measure(setup.kernel, setup.settings)
        if problem := problem_of(record):
            self._unresolved(candidate, problem)
            return None
        self.setups[candidate], self.records[candidate] = setup, record
        return numbers_of(record)

    def end(self, candidate: Candidate) -> StudyRecord:
        """A or B, measured. Raises EndUnresolved."""
        if candidate not in self.records:
            raise EndUnresolved(name=self.ground.label(candidate), problem=self.problems.get(candidate, ""))
        return self.records[candidate]

    def _unresolved(self, candidate: Candidate, problem: str) -> None:
        self.problems[candidate] = problem
        self.tell(f"  unresolved: {problem}")
