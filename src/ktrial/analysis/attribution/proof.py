"""What trials with one thing taken back say: how much of a difference it has."""

from collections.abc import Iterable, Mapping, Sequence

from ktrial.analysis.errors import NotCounted
from ktrial.model.design import Treatment
from ktrial.model.proof import Candidate, ProofSide, Status, Tried
from ktrial.model.study_record import StudyRecord
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import STRING_BYTES, Mode, Sample

_UNIT = "instructions"
_REACHED = "not one instruction more or less: nothing that the workload uses depends on it"
_LOST = "it does not go in one direction under all perturbations"
_SMALL = "a {what} that changes nothing moves the count as far"


class Counts:
    """A study's trials of one workload, as numbers by treatment and perturbation."""

    def __init__(self, record: StudyRecord, workload: str) -> None:
        self._study, self._workload = record.study.name, workload
        self._trials: dict[str, dict[int, Trial]] = {}
        for trial in record.trials:
            mine = self._trials.setdefault(trial.planned.treatment.key, {})
            mine[trial.planned.perturbation.number] = trial

    def trials(self, treatment: Treatment) -> list[Trial]:
        """Those of the treatment, in the order of perturbations."""
        return [one for _, one in sorted(self._trials.get(treatment.key, {}).items())]

    def problem(self, treatment: Treatment) -> Trial | None:
        """The first trial that did not complete."""
        return next((one for one in self.trials(treatment) if one.outcome is not Outcome.COMPLETED), None)

    def values(self, treatment: Treatment) -> tuple[float, ...]:
        """Instructions an operation under each perturbation. Raises NotCounted."""
        trials = self.trials(treatment)
        if not trials or (lost := self.problem(treatment)):
            told = f": a trial of it ended as {lost.outcome.value}: {lost.reason}" if trials and lost else ""
            raise NotCounted(
                study=self._study, treatment=treatment.label, workload=self._workload, problem=told
            )
        return tuple(_value(self.sample(one)) for one in trials)

    def sample(self, trial: Trial) -> Sample:
        """The workload's count of instructions. Raises NotCounted."""
        for one in trial.samples:
            is_count = one.mode is Mode.EXACT_PLUGIN and one.unit.startswith(_UNIT)
            if one.workload == self._workload and is_count and one.metric != STRING_BYTES.name:
                return one
        label = trial.planned.treatment.label
        problem = ": it has no metric that is a count of instructions"
        raise NotCounted(study=self._study, treatment=label, workload=self._workload, problem=problem)


def _value(sample: Sample) -> float:
    """The mean, as only means add up."""
    return sample.value if sample.mean is None else sample.mean


def tested(
    candidate: Candidate,
    side: ProofSide,
    counts: Counts,
    treatment: Treatment,
    ends: Mapping[ProofSide, Sequence[float]],
    control: Sequence[float],
) -> Tried:
    """What came of one candidate on one side.

    `ends`: what the two treatments have as they are, under each perturbation. `control`: the effect of a
    write, or of a boot parameter, that changes nothing.
    """
    if lost := counts.problem(treatment):
        refused = lost.outcome is Outcome.REFUSED
        reason = lost.reason if refused else f"{lost.outcome.value}: {lost.reason}"
        status = Status.REFUSED if refused else Status.FAILED
        return Tried(candidate=candidate, side=side, status=status, reason=reason)
    effects = effect_of(side, counts.values(treatment), ends)
    status, reason = _judged(effects, control, candidate)
    return Tried(candidate=candidate, side=side, status=status, effects=effects, reason=reason)


def effect_of(
    side: ProofSide, values: Sequence[float], ends: Mapping[ProofSide, Sequence[float]]
) -> tuple[float, ...]:
    """The part of the difference that is gone: in the second when taken back there, in the first likewise."""
    sign = 1 if side is ProofSide.TO else -1
    return tuple(sign * (end - value) for end, value in zip(ends[side], values, strict=True))


def _judged(effects: Sequence[float], control: Sequence[float], candidate: Candidate) -> tuple[Status, str]:
    if not any(effects) or tuple(effects) == tuple(control):
        return Status.NOTHING, _REACHED
    if not (all(one > 0 for one in effects) or all(one < 0 for one in effects)):
        return Status.UNCERTAIN, _LOST
    if min(map(abs, effects)) <= max(map(abs, control), default=0.0):
        return Status.UNCERTAIN, _SMALL.format(what=candidate.kind.value)
    return Status.MEASURED, ""


def helpful(results: Iterable[Tried], difference: float) -> tuple[Tried, ...]:
    """Those that have a part of the difference, not of its opposite."""
    return tuple(one for one in results if one.status is Status.MEASURED and one.effect * difference > 0)
