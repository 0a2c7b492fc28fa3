"""The tables of event counters: those that differ most in a study, and all against the baseline."""

import math
from collections.abc import Iterable
from statistics import fmean
from typing import NamedTuple

from ktrial.analysis.counters import CounterRow
from ktrial.format.table import (
    Cell,
    Column,
    Field,
    Kind,
    Output,
    Row,
    Table,
    change,
    interval,
    name,
    number,
    own,
    quantity,
    table,
)
from ktrial.model.comparison import Verdict
from ktrial.model.study import StudyRecord
from ktrial.model.trial import Outcome
from ktrial.report import study_summary

_SMALL = 10.0
"""Added to both sides of a ratio: a counter that rose from 0 to 3 is no finding."""
_SMALLEST_DIFFERENCE = math.log(1.01)


class Counter(NamedTuple):
    """One counter: the mean of its deltas over the trials of each treatment; None where it was not seen."""

    name: str
    means: tuple[float | None, ...]

    @property
    def difference(self) -> float:
        """Largest distance between two treatments: the logarithm of their ratio, small counts damped."""
        logs = [math.log(max(mean, 0.0) + _SMALL) for mean in self.means if mean is not None]
        return max(logs) - min(logs) if logs else 0.0


class CounterMeans(NamedTuple):
    """The counters of one workload that differ most, with their table."""

    workload: str
    table: Table


class WorkloadCounters(NamedTuple):
    """The counters of one workload that differ most, largest difference first."""

    workload: str
    treatments: tuple[str, ...]
    counters: tuple[Counter, ...]


def most_different(record: StudyRecord, most: int = 8) -> tuple[WorkloadCounters, ...]:
    """Up to `most` counters a workload that differ by 1 % or more; workloads without any are left out."""
    deltas = _deltas(record)
    seen = {treatment for _, _, treatment in deltas}
    treatments = tuple(treatment for treatment in study_summary.treatment_labels(record) if treatment in seen)
    by_workload: dict[str, list[Counter]] = {}
    for workload, counter in dict.fromkeys(place[:2] for place in deltas):
        values = (deltas.get((workload, counter, treatment)) for treatment in treatments)
        means = tuple(fmean(of_treatment) if of_treatment else None for of_treatment in values)
        by_workload.setdefault(workload, []).append(Counter(counter, means))
    ranked = (
        WorkloadCounters(workload, treatments, _ranked(counters)[:most])
        for workload, counters in by_workload.items()
    )
    return tuple(workload_counters for workload_counters in ranked if workload_counters.counters)


def of_study(record: StudyRecord) -> tuple[CounterMeans, ...]:
    """A table a workload: the means of every treatment."""
    return tuple(
        CounterMeans(
            workload_counters.workload,
            Table(
                (
                    Column("counter", "counter"),
                    *(
                        Column(f"treatment-{place}", treatment, numeric=True, named=True)
                        for place, treatment in enumerate(workload_counters.treatments)
                    ),
                ),
                tuple(
                    Row((Cell(counter.name, counter.name, Kind.CODE), *map(number, counter.means)))
                    for counter in workload_counters.counters
                ),
            ),
        )
        for workload_counters in most_different(record)
    )


def direction(row: CounterRow) -> str:
    """`more`, `fewer`, `same`, `new`, `gone`; `?` where that is not decided: a counter has no good side."""
    comparison = row.comparison
    if row.one_sided:
        return "new" if comparison.value else "gone"
    words = {
        Verdict.WORSE: "more",
        Verdict.BETTER: "fewer",
        Verdict.EQUIVALENT: "same",
        Verdict.IDENTICAL: "same",
    }
    return words.get(comparison.verdict, "?")


def against_baseline(rows: Iterable[CounterRow]) -> Table:
    """A row a counter. JSON has more of it than people are shown."""
    return table(_COMPARED, rows)


_COMPARED: tuple[Field[CounterRow], ...] = (
    Field(Column("workload", outputs=Output.PROGRAMS), lambda row: Cell(row.comparison.workload)),
    Field(
        Column("counter", "counter", wraps=True, columns=1000),
        lambda row: name(row.comparison.metric),
    ),
    Field(Column("unit", outputs=Output.PROGRAMS), lambda row: Cell(row.comparison.unit)),
    Field(Column("baseline", outputs=Output.PROGRAMS), lambda row: Cell(row.comparison.baseline)),
    Field(Column("treatment", outputs=Output.PROGRAMS), lambda row: Cell(row.comparison.treatment)),
    Field(
        Column("baseline_value", "baseline", numeric=True),
        lambda row: quantity(row.comparison.baseline_value, row.comparison.unit),
    ),
    Field(
        Column("value", "value", numeric=True),
        lambda row: quantity(row.comparison.value, row.comparison.unit),
    ),
    Field(Column("ratio", "change", numeric=True), lambda row: change(row.comparison.ratio)),
    Field(
        Column("interval", "interval", "%", numeric=True, outputs=Output.PEOPLE),
        lambda row: interval(row.comparison.low, row.comparison.high, row.comparison.no_interval),
    ),
    Field(Column("low", outputs=Output.PROGRAMS), lambda row: Cell(row.comparison.low)),
    Field(Column("high", outputs=Output.PROGRAMS), lambda row: Cell(row.comparison.high)),
    Field(Column("change"), lambda row: own(direction(row))),
    Field(Column("changed", outputs=Output.PROGRAMS), lambda row: Cell(row.changed)),
    Field(Column("mode", outputs=Output.PROGRAMS), lambda row: Cell(row.comparison.mode)),
)


def _deltas(record: StudyRecord) -> dict[tuple[str, str, str], list[float]]:
    deltas: dict[tuple[str, str, str], list[float]] = {}
    for trial in record.trials:
        if trial.outcome is not Outcome.COMPLETED:
            continue
        for counter in trial.counters:
            if math.isfinite(counter.delta):
                key = (counter.workload, counter.name, trial.planned.treatment.label)
                deltas.setdefault(key, []).append(counter.delta)
    return deltas


def _ranked(counters: list[Counter]) -> tuple[Counter, ...]:
    different = [counter for counter in counters if counter.difference >= _SMALLEST_DIFFERENCE]
    return tuple(sorted(different, key=lambda counter: (-counter.difference, counter.name)))
