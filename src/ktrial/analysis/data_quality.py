"""What is odd about a study's data, said once each, with advice, never silently corrected; and what monitors
cost the workloads that they watch, from pairs of runs with and without them.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from ktrial.analysis import environment
from ktrial.analysis.comparability import kernel_difference, machine_difference, warn
from ktrial.analysis.missing_data import failures
from ktrial.analysis.setting_reach import out_of_reach
from ktrial.format.labels import metric_name
from ktrial.format.number_format import tenths
from ktrial.model.comparison import Comparison
from ktrial.model.study import Study
from ktrial.model.trial import Outcome, Trial
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.stats.independent import Moments, mean_interval

_Trials = Mapping[str, Sequence[Trial]]
"""A treatment's label → its trials; the baseline comes first."""


_APART = "of each pair one had it and one had not: the study's numbers are without it, its counts with it"


def warnings_of(study: Study, trials: _Trials, comparisons: Sequence[Comparison]) -> tuple[DataWarning, ...]:
    """All warnings, in a stable order."""
    every = (
        *_failed(study, trials),
        *_different(trials),
        *_missing_workloads(study, trials),
        *_spread(study, comparisons),
        *out_of_reach(study),
        *environment.warnings_of(study, trials),
        *monitor_costs(trial for of_treatment in trials.values() for trial in of_treatment),
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
    warnings = []
    for label, of_treatment in trials.items():
        if reason := kernel_difference(of_treatment):
            warnings.append(warn(WarningKind.DIFFERENT_KERNELS, reason, label))
    baseline, *others = trials
    for label in others:
        if reason := machine_difference(trials[baseline], trials[label]):
            warnings.append(warn(WarningKind.DIFFERENT_MACHINES, reason, f"{baseline} and {label}"))
    return warnings


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
            text=f"{one.workload}, {metric_name(one.metric, one.unit)}, {one.treatment}: the "
            f"perturbations alone move its ratio to the baseline by {moved * 100:.3g} %, "
            f"more than the margin of {study.margin * 100:.3g} %",
            advice="only a change larger than that, or with a margin above it, can be decided",
        )
        for one in comparisons
        if (moved := _width(one)) > study.margin
    ]


def _width(one: Comparison) -> float:
    """How far apart the ends of the interval lie: largest / smallest - 1; 0 where there is none."""
    return one.high / one.low - 1 if one.low and one.high else 0.0


def monitor_costs(trials: Iterable[Trial]) -> tuple[DataWarning, ...]:
    """What each monitor costs the workloads, as a note: the geometric mean over the trials, its interval by
    Student's t on the logarithms.
    """
    slowdowns: dict[str, dict[tuple[str, str], list[float]]] = {}
    for trial in trials:
        for one in trial.provenance.monitored:
            if one.slowdown:
                of_monitor = slowdowns.setdefault(one.monitor, {})
                of_monitor.setdefault((one.workload, one.metric), []).append(math.log(one.slowdown))
    return tuple(
        DataWarning(
            kind=WarningKind.MONITOR_COST,
            text=f"{monitor} costs {', '.join(_cost(*of, logs) for of, logs in by_metric.items())}",
            advice=_APART,
        )
        for monitor, by_metric in sorted(slowdowns.items())
    )


def _cost(workload: str, metric: str, logs: list[float]) -> str:
    """`ls +1.8 % (wall time; 95 % interval −0.6 % to +4.2 %; 8 pairs of runs)`."""
    mean = statistics.fmean(logs)
    runs = f"{len(logs)} {'pair' if len(logs) == 1 else 'pairs'} of runs"
    details = "; ".join(filter(None, (metric, _interval(mean, logs), runs)))
    return f"{workload} {_percent(mean)} ({details})"


def _interval(mean: float, logs: list[float]) -> str:
    if len(set(logs)) < 2:
        return ""  # of pairs that are all alike nothing tells how much the next one would differ
    try:
        low, high = mean_interval(Moments("", mean, statistics.stdev(logs), len(logs)))
    except ValueError:
        return ""
    return f"95 % interval {_percent(low)} to {_percent(high)}"


def _percent(log: float) -> str:
    """A slowdown as the relative change that it is: `+1.2 %`."""
    return f"{tenths(math.expm1(log))} %"
