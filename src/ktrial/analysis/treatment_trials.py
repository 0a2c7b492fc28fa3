"""The trials of one treatment: its numbers for each metric, and what is missing of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ktrial.analysis.missing_data import why_missing
from ktrial.model.design import Perturbation, Treatment
from ktrial.model.plan import treatments
from ktrial.model.study import Study
from ktrial.model.trial import Trial
from ktrial.model.workload import Mode, Sample
from ktrial.stats import Arm

_INSTRUCTIONS = "instructions"
"""The unit of what counts instructions."""


@dataclass(frozen=True, eq=False)
class TreatmentTrials:
    """The trials of one treatment that ended, in run order."""

    treatment: Treatment
    trials: tuple[Trial, ...]
    planned: int
    some_will_do: bool
    """In real time a trial that failed leaves its block out; it does not undo the others."""
    workloads: tuple[str, ...] = ()
    """All of the study's."""
    _arms: dict[tuple[str, str], Arm] = field(default_factory=dict)

    @classmethod
    def of(cls, study: Study, treatment: Treatment, own: Sequence[Trial]) -> "TreatmentTrials":
        """Those of the study's trials that are the treatment's."""
        planned = len(own) if study.timing else study.perturbations
        labels = tuple(use.label for use in study.workloads)
        return cls(treatment, tuple(own), planned, bool(study.timing), labels)

    def samples(self, label: str, metric: str) -> dict[int, Sample]:
        """Perturbation's number → sample."""
        return self._by_metric.get((label, metric), {})

    @cached_property
    def _by_metric(self) -> dict[tuple[str, str], dict[int, Sample]]:
        by_metric: dict[tuple[str, str], dict[int, Sample]] = {}
        for trial in self.trials:
            for sample in trial.samples:
                by_number = by_metric.setdefault((sample.workload, sample.metric), {})
                by_number[trial.planned.perturbation.number] = sample
        return by_metric

    def instructions(self, label: str) -> dict[Perturbation, float]:
        """The workload's instructions; empty where it counts none."""
        for (workload, _), samples in self._by_metric.items():
            if workload == label and any(one.unit == _INSTRUCTIONS for one in samples.values()):
                return {self._perturbations[number]: one.value for number, one in samples.items()}
        return {}

    @cached_property
    def last_mode(self) -> Mode | None:
        """How its last number came about; None where it has no number."""
        return next(
            (sample.mode for trial in reversed(self.trials) for sample in reversed(trial.samples)), None
        )

    def arm(self, label: str, metric: str) -> Arm:
        """The treatment's numbers for one metric, with what is missing of them."""
        if (label, metric) not in self._arms:
            self._arms[label, metric] = self._arm(label, metric)
        return self._arms[label, metric]

    @cached_property
    def _perturbations(self) -> dict[int, Perturbation]:
        return {trial.planned.perturbation.number: trial.planned.perturbation for trial in self.trials}

    def _arm(self, label: str, metric: str) -> Arm:
        samples = self.samples(label, metric)
        return Arm(
            label=self.treatment.label,
            values={self._perturbations[number]: sample.value for number, sample in sorted(samples.items())},
            missing="" if samples and self.some_will_do else self._why_missing(label, set(samples)),
        )

    def _why_missing(self, label: str, numbers: set[int]) -> str:
        planned = max(1, self.planned)
        return why_missing(self.treatment.label, label, self.trials, numbers, planned, self.workloads)


def sides_of(study: Study, trials: Sequence[Trial]) -> list[TreatmentTrials]:
    """One a treatment, the baseline first; the trials in run order."""
    by_key: dict[str, list[Trial]] = {}
    for trial in trials:
        by_key.setdefault(trial.planned.treatment.key, []).append(trial)
    return [TreatmentTrials.of(study, one, by_key.get(one.key, ())) for one in treatments(study)]
