"""Event counters of a study's trials, compared by the rule that its metrics are compared by."""

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from statistics import fmean
from typing import NamedTuple

from ktrial.analysis.result import result
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.study import Study
from ktrial.model.trial import OPERATIONS, Outcome, Trial
from ktrial.model.workload import Direction, Sample

PER_OPERATION, PER_RUN = "per operation", "per run"


class CounterRow(NamedTuple):
    """One counter of one workload, in one treatment and in the baseline."""

    comparison: Comparison
    """`better` and `worse` mean fewer and more: a counter has no good direction."""

    @property
    def changed(self) -> bool:
        """The treatments differ, beyond the margin and the spread, or one of the two has none of it."""
        return self.comparison.verdict in {Verdict.BETTER, Verdict.WORSE} or self.one_sided

    @property
    def one_sided(self) -> bool:
        """It never rose on one side: there is no ratio then."""
        values = (self.comparison.baseline_value, self.comparison.value)
        return 0 in values and any(values)

    @property
    def distance(self) -> float:
        """How far the ratio is from 1; infinite where one side has none."""
        if self.one_sided:
            return float("inf")
        ratio = self.comparison.ratio
        return max(ratio, 1 / ratio) - 1 if ratio else 0.0


def compared(study: Study, trials: Iterable[Trial], pattern: str = "*") -> tuple[CounterRow, ...]:
    """Every counter whose name matches the glob, in every treatment: what changed first, the most first.

    Counts are per operation where the workload says how many it did, else per run of its trial. A counter
    that a trial lacks did not rise there.
    """
    completed = [_of_measured_workloads(trial) for trial in trials if trial.is_measured]
    # Workload → its counters that match; the count of operations is no event.
    names: dict[str, set[str]] = {}
    for trial in completed:
        for counter in trial.counters:
            if counter.name != OPERATIONS and fnmatchcase(counter.name, pattern):
                names.setdefault(counter.workload, set()).add(counter.name)
    counted = [
        trial.model_copy(update={"samples": tuple(_as_samples(trial, names)), "counters": ()})
        for trial in completed
    ]
    order = {use.label: place for place, use in enumerate(study.workloads)}

    def rank(row: CounterRow) -> tuple[object, ...]:
        of_row = row.comparison
        return (
            order.get(of_row.workload, 0), not row.changed, -row.distance, of_row.metric, of_row.treatment
        )  # fmt: skip

    comparisons = result(study, counted, described=lambda use: ()).comparisons
    rows = [CounterRow(_with_means(comparison, counted)) for comparison in comparisons]
    return tuple(sorted(rows, key=rank))


def _of_measured_workloads(trial: Trial) -> Trial:
    """With the counters of workloads that came to their end."""
    counters = tuple(
        counter for counter in trial.counters if trial.outcome_of(counter.workload) is Outcome.COMPLETED
    )
    return trial.model_copy(update={"counters": counters})


def _with_means(comparison: Comparison, counted: list[Trial]) -> Comparison:
    """Where there is no ratio, because one side has zeros, timed statistics give no values either."""
    if comparison.value is not None:
        return comparison
    place = (comparison.workload, comparison.metric)

    def mean(label: str) -> float | None:
        of_treatment = (trial for trial in counted if trial.planned.treatment.label == label)
        samples = (sample for trial in of_treatment for sample in trial.samples)
        values = [sample.value for sample in samples if (sample.workload, sample.metric) == place]
        return fmean(values) if values else None

    means = {"baseline_value": mean(comparison.baseline), "value": mean(comparison.treatment)}
    return comparison.model_copy(update=means)


def _as_samples(trial: Trial, names: Mapping[str, Iterable[str]]) -> Iterator[Sample]:
    """The trial's counters, in the place of its samples."""
    deltas = {(counter.workload, counter.name): counter.delta for counter in trial.counters}
    modes = {sample.workload: sample.mode for sample in reversed(trial.samples)}
    for workload, mode in modes.items():
        operations = deltas.get((workload, OPERATIONS), 0.0)
        for name in sorted(names.get(workload, ())):
            delta = deltas.get((workload, name), 0.0)
            yield Sample(
                workload=workload,
                metric=name,
                unit=PER_OPERATION if operations else PER_RUN,
                direction=Direction.LOWER,
                mode=mode,
                value=delta / operations if operations else delta,
            )
