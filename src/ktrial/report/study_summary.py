"""A study's record as reports show it: comparisons in groups, levels, verdicts counted, warnings."""

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from ktrial.analysis.scaling import cpus_factor
from ktrial.format import number_format
from ktrial.format.labels import VERDICTS
from ktrial.model.comparison import Comparison, Verdict, what_is_counted
from ktrial.model.study import StudyRecord
from ktrial.model.trial import Outcome, Trial
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import BESIDE_THE_OWN, STRING_BYTES, Direction, Mode

_MOST_OF_A_KIND = 4
_SHOWN_OF_MANY = 3


class TreatmentComparisons(NamedTuple):
    """All comparisons of one treatment with one baseline."""

    baseline: str
    treatment: str
    comparisons: tuple[Comparison, ...]


class MatrixRow(NamedTuple):
    """One metric in all groups."""

    name: str
    baseline_value: float | None
    comparisons: tuple[Comparison | None, ...]
    """One a group, in the order of `groups`; None where the group has none."""


class Level(NamedTuple):
    """One treatment's numbers for one metric."""

    treatment: str
    value: float | None
    samples: tuple[float, ...]
    """One number a trial."""
    comparison: Comparison | None
    """With the baseline; None for the baseline itself, and where nothing was compared."""

    @property
    def spread(self) -> float | None:
        """Largest minus smallest sample, as a fraction of the value; None where it has no meaning."""
        if len(self.samples) < 2 or not self.value:
            return None
        return (max(self.samples) - min(self.samples)) / abs(self.value)


class MetricLevels(NamedTuple):
    """One metric of one workload at every level."""

    workload: str
    metric: str
    unit: str
    direction: Direction
    mode: Mode
    levels: tuple[Level, ...]


def row_names(places: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Workload and metric → the workload's name, with the metric where it has several.

    Bytes of string instructions and modelled cycles stand beside a workload's own metric, and always say so.
    """
    metrics_of = Counter(workload for workload, metric in places if metric not in BESIDE_THE_OWN)
    return tuple(
        f"{workload}, {metric}" if metrics_of[workload] > 1 or metric in BESIDE_THE_OWN else workload
        for workload, metric in places
    )


def own_rows(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Those that have a row: bytes of string instructions are part of their workload's row, if it has one."""
    counted = {sides(comparison) for comparison in comparisons if comparison.metric not in BESIDE_THE_OWN}
    return tuple(
        comparison
        for comparison in comparisons
        if comparison.metric != STRING_BYTES.name or sides(comparison) not in counted
    )


def string_byte_notes(comparisons: Sequence[Comparison]) -> dict[tuple[str, str, str], str]:
    """Workload, treatment and baseline → what became of the bytes of string instructions, if it matters."""
    notes = {}
    for comparison in comparisons:
        if comparison.metric == STRING_BYTES.name and comparison.verdict not in _NO_CHANGE:
            before, after = map(number_format.number, (comparison.baseline_value, comparison.value))
            by = number_format.change(comparison.ratio)
            text = f"{before} → {after}, {by}, {VERDICTS[comparison.verdict].word}"
            notes[sides(comparison)] = f"bytes that string instructions worked on: {text}"
    return notes


def sides(comparison: Comparison) -> tuple[str, str, str]:
    """Workload, treatment and baseline."""
    return comparison.workload, comparison.treatment, comparison.baseline


_NO_CHANGE = frozenset({Verdict.EQUIVALENT, Verdict.IDENTICAL})


def groups(record: StudyRecord) -> tuple[TreatmentComparisons, ...]:
    """The comparisons by treatment, both in the order in which they first appear."""
    by_pair: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in record.result.comparisons:
        by_pair.setdefault((comparison.baseline, comparison.treatment), []).append(comparison)
    return tuple(TreatmentComparisons(*pair, tuple(comparisons)) for pair, comparisons in by_pair.items())


def matrix(record: StudyRecord) -> tuple[MatrixRow, ...]:
    """Metrics by treatments: the same comparisons, for a look at all treatments at once."""
    compared = groups(record)
    by_place = [
        {
            (comparison.workload, comparison.metric, comparison.mode): comparison
            for comparison in group.comparisons
        }
        for group in compared
    ]
    places = dict.fromkeys(
        (comparison.workload, comparison.metric, comparison.mode) for comparison in record.result.comparisons
    )
    names = row_names([place[:2] for place in places])
    rows = []
    for name, place in zip(names, places, strict=True):
        comparisons = tuple(comparisons_of.get(place) for comparisons_of in by_place)
        values = (comparison.baseline_value for comparison in comparisons if comparison)
        baseline = next((value for value in values if value is not None), None)
        rows.append(MatrixRow(name, baseline, comparisons))
    return tuple(rows)


def treatment_labels(record: StudyRecord) -> tuple[str, ...]:
    """Every treatment: the baseline, then those compared with it, then those that were only run."""
    compared = groups(record)
    labels = [group.baseline for group in compared] + [group.treatment for group in compared]
    labels += sorted(trial.planned.treatment.label for trial in record.trials)
    return tuple(dict.fromkeys(labels))


def verdict_counts(record: StudyRecord) -> tuple[tuple[Verdict, int], ...]:
    """How often each verdict was reached in the workloads' own metrics, which the answer counts.

    In the order of VERDICTS, without those never reached. None where the number of CPUs is a factor: one CPU
    is no baseline that several are better or worse than.
    """
    every = () if cpus_factor(record.study) else record.result.comparisons
    counts = Counter(comparison.verdict for comparison in _main(every))
    return tuple((verdict, counts[verdict]) for verdict in VERDICTS if counts[verdict])


def counted(comparisons: Sequence[Comparison]) -> str:
    """Of what verdicts are counted: `6 workloads`, `8 metrics`, of several treatments `30 comparisons`."""
    return what_is_counted(
        (comparison.workload, comparison.metric, comparison.treatment) for comparison in _main(comparisons)
    )


def _main(comparisons: Sequence[Comparison]) -> Sequence[Comparison]:
    """Of the workloads' own metrics."""
    main = [comparison for comparison in comparisons if comparison.metric not in BESIDE_THE_OWN]
    return main or comparisons


def failed_trials(record: StudyRecord) -> tuple[Trial, ...]:
    """Trials that ended otherwise than completed, in run order."""
    return tuple(trial for trial in record.trials if trial.outcome is not Outcome.COMPLETED)


def others_are_measured(trial: Trial) -> str:
    """What is to be said of a failed trial whose other workloads have their numbers; else nothing."""
    return ", the others have their numbers" if trial.is_measured else ""


class WarningGroup(NamedTuple):
    """Warnings of one kind that have one advice."""

    shown: tuple[DataWarning, ...]
    """At least one."""
    more: tuple[DataWarning, ...]
    """Those that are told when somebody asks: a page of the same sentence hides what else is said."""


def warning_groups(record: StudyRecord) -> tuple[WarningGroup, ...]:
    """The warnings by kind and advice, in the order of the first of each."""
    groups: dict[tuple[str, str], list[DataWarning]] = {}
    for warning in warnings(record):
        groups.setdefault((warning.kind, warning.advice), []).append(warning)
    folded = []
    for alike in groups.values():
        shown = _SHOWN_OF_MANY if len(alike) > _MOST_OF_A_KIND else len(alike)
        folded.append(WarningGroup(tuple(alike[:shown]), tuple(alike[shown:])))
    return tuple(folded)


def warnings(record: StudyRecord) -> tuple[DataWarning, ...]:
    """The result's warnings, then those of the trials, each once."""
    of_trials = (warning for trial in record.trials for warning in trial.warnings)
    return tuple(dict.fromkeys((*record.result.warnings, *of_trials)))


def modes(record: StudyRecord) -> tuple[Mode, ...]:
    """The modes of all numbers in the record, in the order of Mode."""
    met = {comparison.mode for comparison in record.result.comparisons}
    met |= {sample.mode for trial in record.trials for sample in trial.samples}
    return tuple(mode for mode in Mode if mode in met)


def metric_levels(record: StudyRecord) -> tuple[MetricLevels, ...]:
    """Every metric of every workload with its levels: those compared first, then those only measured."""
    samples = _samples(record)
    compared: dict[tuple[str, str, Mode], list[Comparison]] = {}
    for comparison in record.result.comparisons:
        key = (comparison.workload, comparison.metric, comparison.mode)
        compared.setdefault(key, []).append(comparison)
    every = [_compared(comparisons, samples) for comparisons in compared.values()]
    return (*every, *_only_measured(record, samples, set(compared)))


def by_workload(metrics: tuple[MetricLevels, ...]) -> dict[str, tuple[MetricLevels, ...]]:
    """The same, by workload."""
    by_name: dict[str, tuple[MetricLevels, ...]] = {}
    for metric in metrics:
        by_name[metric.workload] = (*by_name.get(metric.workload, ()), metric)
    return by_name


_Samples = dict[tuple[str, str, Mode, str], tuple[float, ...]]


def _samples(record: StudyRecord) -> _Samples:
    """Values by workload, metric, mode and treatment. A trial whose setting was refused is invalid."""
    samples: _Samples = {}
    for trial in record.trials:
        if trial.outcome is Outcome.REFUSED:
            continue
        for sample in trial.samples:
            key = (sample.workload, sample.metric, sample.mode, trial.planned.treatment.label)
            samples[key] = (*samples.get(key, ()), sample.value)
    return samples


def _compared(comparisons: list[Comparison], samples: _Samples) -> MetricLevels:
    first = comparisons[0]

    def level(label: str, value: float | None, comparison: Comparison | None) -> Level:
        key = (first.workload, first.metric, first.mode, label)
        return Level(label, value, samples.get(key, ()), comparison)

    baselines = {comparison.baseline: comparison.baseline_value for comparison in comparisons}
    levels = [level(label, value, None) for label, value in baselines.items()]
    levels += [level(comparison.treatment, comparison.value, comparison) for comparison in comparisons]
    return MetricLevels(first.workload, first.metric, first.unit, first.direction, first.mode, tuple(levels))


def _only_measured(
    record: StudyRecord, samples: _Samples, compared: set[tuple[str, str, Mode]]
) -> list[MetricLevels]:
    described = {
        (sample.workload, sample.metric, sample.mode): sample
        for trial in record.trials
        for sample in trial.samples
        if (sample.workload, sample.metric, sample.mode) not in compared
    }
    levels_of = []
    for key, sample in described.items():
        levels = tuple(
            Level(treatment, median(values), values, None)
            for treatment in treatment_labels(record)
            if (values := samples.get((*key, treatment)))
        )
        # A workload without string instructions: nothing to see.
        unused = key[1] == STRING_BYTES.name and not any(any(level.samples) for level in levels)
        if levels and not unused:
            levels_of.append(MetricLevels(*key[:2], sample.unit, sample.direction, sample.mode, levels))
    return levels_of
