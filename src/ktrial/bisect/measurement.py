"""Measures candidates in trials: each is a study of one treatment, kept in the store and never run twice.

A study's question holds the kernel's digest, so that a kernel is known by its content, whatever its name.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from ktrial.analysis.comparability import machine_difference
from ktrial.bisect.decision import BisectionMetric, ExactJudge, Memory, Numbers, Terms
from ktrial.bisect.errors import BadBisection, BisectError
from ktrial.experiment.errors import HOST_PROBLEMS
from ktrial.experiment.single_kernel import Runs, kernel_factor, problem_of
from ktrial.kernels.errors import KernelError
from ktrial.model.bisection import FoundTarget, Unresolved
from ktrial.model.design import Factor, FactorKind, LevelValue
from ktrial.model.kernel import Kernel
from ktrial.model.study import Measurement, Study, StudyRecord
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

    measurement: Measurement
    runs: Runs
    trials: list[Trial] = field(default_factory=list)
    """Of the first candidate that ran: the others have to be comparable with it."""
    studies: list[int] = field(default_factory=list)
    """Numbers of this search's studies."""

    def measure(self, kernel: Kernel, settings: Settings | None = None) -> StudyRecord:
        """Run the trials that the store lacks. Raises BisectError, and as `session.run`."""
        study = candidate_study(kernel, self.measurement, settings or {})
        kernels = {kernel.name: kernel}
        record = self.runs.run(study, kernels, any_settings=True)
        if machine_difference(self.trials, record.trials):
            self.runs.store.delete(record.id)
            record = self.runs.run(study, kernels, any_settings=True)
            if problem := machine_difference(self.trials, record.trials):
                # The first was in the store already, from another machine: the next search measures all anew.
                for number in self.studies:
                    self.runs.store.delete(number)
                raise BisectError(
                    f"The candidates must not be compared: {problem}.",
                    hint="what the store had from another machine was deleted: run the same command again",
                )
        self.trials = self.trials or list(record.trials)
        self.studies.append(record.id)
        return record


def candidate_study(kernel: Kernel, measurement: Measurement, settings: Settings) -> Study:
    """The study of one treatment that measures the kernel with these settings."""
    content = f"Kernel: {kernel.name}, {kernel.release}, content {kernel.digest}."
    factors = [
        Factor(name=name, kind=FactorKind.SETTING, levels=(value,), baseline=value, target=name)
        for name, value in settings.items()
    ]
    return Study(
        name=NAME,
        question=f"{QUESTION} {content}",
        machine=measurement.settings.model_copy(update={"kernel": ""}),
        factors=(kernel_factor(kernel.name), *factors),
        workloads=measurement.workloads,
        perturbations=measurement.perturbations,
        made_by=NAME,
    )


def numbers_of(record: StudyRecord) -> Numbers:
    """Every metric's values."""
    numbers: dict[BisectionMetric, dict[int, float]] = {}
    for trial in record.trials:
        for target, value in _samples(trial):
            numbers.setdefault(target, {})[trial.planned.perturbation.number] = value
    return numbers


def _samples(trial: Trial) -> Iterable[tuple[BisectionMetric, float]]:
    for sample in trial.samples:
        metric = Metric(name=sample.metric, unit=sample.unit, direction=sample.direction)
        yield BisectionMetric(sample.workload, metric, sample.mode), sample.value


def targets_of(record: StudyRecord, metrics: Sequence[str] = ()) -> tuple[BisectionMetric, ...]:
    """What is to be explained: the metrics of these names, else the first one of each workload.

    Raises BadBisection for a name that no workload has.
    """
    measured = [target for trial in record.trials[:1] for target, _ in _samples(trial)]
    if not metrics:
        first: dict[str, BisectionMetric] = {}
        for target in measured:
            first.setdefault(target.workload, target)
        return tuple(first.values())
    names = dict.fromkeys(target.metric.name for target in measured)
    for name in metrics:
        if name not in names:
            raise BadBisection(f"No workload here measures '{name}'.", hint=f"there are: {', '.join(names)}")
    return tuple(target for target in measured if target.metric.name in metrics)


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


def end_unresolved(label: str, problem: str) -> BisectError:
    """The error that says why A or B has no numbers."""
    hint = "both ends have to build, boot and run the workloads; only what lies between may fail"
    return BisectError(f"{label} cannot be measured: {problem}.", hint=hint)


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
        """A or B, measured. Raises BisectError."""
        if candidate not in self.records:
            raise end_unresolved(self.ground.label(candidate), self.problems.get(candidate, ""))
        return self.records[candidate]

    def _unresolved(self, candidate: Candidate, problem: str) -> None:
        self.problems[candidate] = problem
        self.tell(f"  unresolved: {problem}")


def judges_between(
    oracle: TrialOracle[Candidate], memory: Memory[Candidate], terms: Terms, ends: tuple[Candidate, Candidate]
) -> list[ExactJudge[Candidate]]:
    """Measure A and B; a judge for each target, of the largest difference first: its cause often explains
    others.

    Raises BisectError.
    """
    start, end = ends
    for candidate in ends:
        memory.measure(candidate)
        oracle.end(candidate)
    targets = targets_of(oracle.records[start], terms.metrics)
    judges = [ExactJudge(target, memory, terms.margin) for target in targets]
    return sorted(judges, key=lambda judge: -abs(judge.effect(end, start) or 0.0))


def found_target(
    target: BisectionMetric,
    values: tuple[float | None, float | None],
    *,
    differs: bool,
    explained: bool,
    reached: float | None = None,
) -> FoundTarget:
    """For the result. `values`: of A and B."""
    before, after = values
    return FoundTarget(
        label=target.label,
        workload=target.workload,
        metric=target.metric.name,
        unit=target.metric.unit,
        direction=target.metric.direction,
        mode=target.mode,
        before=before,
        after=after,
        reached=reached,
        differs=differs,
        explained=explained,
    )


def unresolved(ground: Ground[Candidate], problems: Mapping[Candidate, str]) -> tuple[Unresolved, ...]:
    """For the result."""
    return tuple(
        Unresolved(candidate=ground.label(candidate), problem=problem)
        for candidate, problem in problems.items()
    )
