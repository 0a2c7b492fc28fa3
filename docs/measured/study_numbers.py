"""The numbers of a study that was run: values, and what their differences are made of."""

from dataclasses import dataclass

from docs.measured.errors import NotMeasured

from ktrial.experiment.explain import Guests, StudyKernels, explain_record
from ktrial.model.attribution import Explanation, FunctionDifference
from ktrial.model.study import StudyRecord
from ktrial.model.trial import Outcome
from ktrial.store.store import Store


def complete(record: StudyRecord) -> None:
    """Raises NotMeasured where a trial is missing, or has no numbers."""
    for trial in record.trials:
        if trial.outcome is not Outcome.COMPLETED:
            raise NotMeasured(
                f"{record.study.name}: a trial of {trial.planned.treatment.label} ended as"
                f" {trial.outcome.value}: {trial.reason}"
            )
    if len(record.trials) < record.planned:
        raise NotMeasured(f"{record.study.name}: {len(record.trials)} of {record.planned} trials were run")


class StudyNumbers:
    """A study's numbers. A treatment is named by its label: `debian:6.1`."""

    def __init__(self, store: Store, record: StudyRecord) -> None:
        self._store, self.record = store, record
        self._kernels = StudyKernels(store, record)
        self._whys: dict[tuple[str, str, str], Why] = {}

    def value(self, treatment: str, workload: str, metric: str = "") -> float:
        """A value of the unperturbed trial, in the metric's unit. Raises NotMeasured.

        `metric`: of several; else the workload's first, which is instructions per operation.
        """
        for trial in self.record.trials:
            if trial.planned.treatment.label == treatment and not trial.planned.perturbation.number:
                for sample in trial.samples:
                    if _plain(sample.workload) == workload and metric in ("", sample.metric):
                        return sample.value
        raise NotMeasured(
            f"{self.record.study.name} has no {metric or 'number'} of {workload} under {treatment}"
        )

    def ratio(self, treatment: str, baseline: str, workload: str, metric: str = "") -> float:
        """One treatment's value over another's. Raises NotMeasured."""
        return self.value(treatment, workload, metric) / self.value(baseline, workload, metric)

    def why(self, workload: str, before: str, after: str) -> "Why":
        """What a difference is made of; nothing is booted. Raises NotMeasured, ExplanationError."""
        key = (workload, before, after)
        if key not in self._whys:
            label = next(
                (use.label for use in self.record.study.workloads if _plain(use.label) == workload), workload
            )
            guests = Guests(run=False, values=False)
            told = explain_record(self._store, self.record, label, before, after, guests, self._kernels)
            self._whys[key] = Why(told.explanation)
        return self._whys[key]


def _plain(label: str) -> str:
    """A workload's name without its parameters."""
    return label.partition("(")[0]


@dataclass(frozen=True)
class Why:
    """What one difference is made of, in instructions per operation."""

    explanation: Explanation

    @property
    def total(self) -> float:
        """The whole difference of the means."""
        return float(self.explanation.total)

    def subsystem(self, name: str) -> float:
        """A subsystem's part. Raises NotMeasured where it has none."""
        try:
            return float(self.explanation.subsystems[name])
        except KeyError:
            raise NotMeasured(f"{self.explanation.workload}: no part is {name}'s") from None

    def row(self, function: str) -> FunctionDifference:
        """The row of a function, by a name that it has in one of the two. Raises NotMeasured."""
        for row in self.explanation.rows:
            if function in (row.function, *row.before.names, *row.after.names):
                return row
        raise NotMeasured(f"{self.explanation.workload}: {function} ran in neither kernel")

    def before(self, function: str) -> float:
        """What it had in the first kernel."""
        return self.row(function).before.instructions / self.explanation.before.operations

    def after(self, function: str) -> float:
        """What it has in the second."""
        return self.row(function).after.instructions / self.explanation.after.operations

    def difference(self, function: str) -> float:
        """A function's part in the difference."""
        return float(self.explanation.difference(self.row(function)))
