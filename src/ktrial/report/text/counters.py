"""Event counters that differ most between the treatments, for each workload."""

import math
from statistics import fmean
from typing import NamedTuple

from ktrial.model.study_record import StudyRecord
from ktrial.model.trial import Outcome
from ktrial.report.text import comparisons

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


class WorkloadCounters(NamedTuple):
    """The counters of one workload that differ most, largest difference first."""

    workload: str
    treatments: tuple[str, ...]
    counters: tuple[Counter, ...]


def most_different(record: StudyRecord, most: int = 8) -> tuple[WorkloadCounters, ...]:
    """Up to `most` counters a workload that differ by 1 % or more; workloads without any are left out."""
    deltas = _deltas(record)
    seen = {treatment for _, _, treatment in deltas}
    treatments = tuple(treatment for treatment in comparisons.treatments(record) if treatment in seen)
    by_workload: dict[str, list[Counter]] = {}
    for workload, name in dict.fromkeys((workload, name) for workload, name, _ in deltas):
        means = tuple(_mean(deltas.get((workload, name, treatment))) for treatment in treatments)
        by_workload.setdefault(workload, []).append(Counter(name, means))
    ranked = (
        WorkloadCounters(workload, treatments, _ranked(counters)[:most])
        for workload, counters in by_workload.items()
    )
    return tuple(found for found in ranked if found.counters)


def _deltas(record: StudyRecord) -> dict[tuple[str, str, str], list[float]]:
    found: dict[tuple[str, str, str], list[float]] = {}
    for trial in record.trials:
        if trial.outcome is not Outcome.COMPLETED:
            continue
        for counter in trial.counters:
            if math.isfinite(counter.delta):
                key = (counter.workload, counter.name, trial.planned.treatment.label)
                found.setdefault(key, []).append(counter.delta)
    return found


def _mean(deltas: list[float] | None) -> float | None:
    return fmean(deltas) if deltas else None


def _ranked(counters: list[Counter]) -> tuple[Counter, ...]:
    different = [counter for counter in counters if counter.difference >= _SMALLEST_DIFFERENCE]
    return tuple(sorted(different, key=lambda counter: (-counter.difference, counter.name)))
