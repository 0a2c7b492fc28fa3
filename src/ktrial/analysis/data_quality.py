"""What is odd about a study's data: said once each, with advice; never silently corrected."""

from collections.abc import Mapping, Sequence

from ktrial.analysis import environment, monitor_cost
from ktrial.analysis.comparability import kernel_difference, machine_difference, warn
from ktrial.analysis.missing_data import failures
from ktrial.model.comparison import Comparison
from ktrial.model.study import Study
from ktrial.model.trial import Outcome, Trial
from ktrial.model.warnings import DataWarning, WarningKind

_Trials = Mapping[str, Sequence[Trial]]
"""A treatment's label → its trials; the baseline comes first."""


def warnings_of(study: Study, trials: _Trials, comparisons: Sequence[Comparison]) -> tuple[DataWarning, ...]:
    """All warnings, in a stable order."""
    every = (
        *_failed(study, trials),
        *_different(trials),
        *_missing_workloads(study, trials),
        *_spread(study, comparisons),
        *environment.warnings_of(study, trials),
        *monitor_cost.costs(trial for of_treatment in trials.values() for trial in of_treatment),
        *(
            warning
            for of_treatment in trials.values()
            for trial in of_treatment
            for warning in trial.warnings
        ),
    )
    return tuple(dict.fromkeys(every))


def _failed(study: Study, trials: _Trials) -> list[DataWarning]:
    by_label = {
        label: [trial for trial in of_treatment if trial.outcome is not Outcome.COMPLETED]
        for label, of_treatment in trials.items()
    }
    return [
        DataWarning(
            kind=WarningKind.FAILED_TRIALS,
            text=f"{label}: {failures(failed, len(trials[label]) if study.timing else study.perturbations)}",
            advice=f"the end of the console log: ktrial show {study.name} --console",
        )
        for label, failed in by_label.items()
        if failed
    ]


def _different(trials: _Trials) -> list[DataWarning]:
    found = []
    for label, of_treatment in trials.items():
        if reason := kernel_difference(of_treatment):
            found.append(warn(WarningKind.DIFFERENT_KERNELS, reason, label))
    baseline, *others = trials
    for label in others:
        if reason := machine_difference(trials[baseline], trials[label]):
            found.append(warn(WarningKind.DIFFERENT_MACHINES, reason, f"{baseline} and {label}"))
    return found


def _missing_workloads(study: Study, trials: _Trials) -> list[DataWarning]:
    """Workloads that never gave a number, although trials completed."""
    ended = [trial for of_treatment in trials.values() for trial in of_treatment]
    sampled = {sample.workload for trial in ended for sample in trial.samples}
    if not any(trial.outcome is Outcome.COMPLETED for trial in ended):
        return []
    return [
        DataWarning(kind=WarningKind.MISSING_WORKLOAD, text=f"{label} gave no number in any trial")
        for label in dict.fromkeys(use.label for use in study.workloads)
        if label not in sampled
    ]


def _spread(study: Study, comparisons: Sequence[Comparison]) -> list[DataWarning]:
    if study.timing:
        return []
    if study.perturbations == 1:
        text = "one perturbation only: an effect cannot be told from an accident of layout"
        return [DataWarning(kind=WarningKind.NO_SPREAD, text=text, advice="set perturbations = 3 or more")]
    return [
        DataWarning(
            kind=WarningKind.WIDE_SPREAD,
            text=f"{one.workload}, {one.metric}, {one.treatment}: the perturbations alone move its ratio to "
            f"the baseline by {moved * 100:.3g} %, more than the margin of {study.margin * 100:.3g} %",
            advice="only a change larger than that, or with a margin above it, can be decided",
        )
        for one in comparisons
        if (moved := _width(one)) > study.margin
    ]


def _width(one: Comparison) -> float:
    """How far apart the ends of the interval lie: largest / smallest - 1; 0 where there is none."""
    return one.high / one.low - 1 if one.low and one.high else 0.0
