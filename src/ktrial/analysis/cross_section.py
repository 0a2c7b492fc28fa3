"""Workloads beside each other: how what one operation is counted at stands to the time that it takes."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from ktrial.model.comparison import Comparison
from ktrial.model.fidelity import CrossSection, Interval, WorkloadCost
from ktrial.model.profile import CycleModel
from ktrial.model.study_record import StudyRecord
from ktrial.model.workload import STRING_BYTES
from ktrial.stats.correlation import spearman, with_interval

_TIME, _INSTRUCTIONS, _CYCLES = "ns", "instructions", "cycles"
_WITH_BYTES = "instructions and bytes"


def workload_costs(studies: Sequence[tuple[StudyRecord, StudyRecord]]) -> tuple[WorkloadCost, ...]:
    """What an operation of each built-in workload costs in the baseline.

    Of several studies with one workload, the first is taken. Commands are left out: what they mark as an
    operation may be a batch of what they time. So are workloads whose number in real time is a rate.
    """
    costs: dict[tuple[str, str], WorkloadCost] = {}
    for exact, timed in studies:
        own = {use.label for use in timed.study.workloads if use.command is None}
        counted: dict[str, list[Comparison]] = {}
        for one in exact.result.comparisons:
            counted.setdefault(one.workload, []).append(one)
        for one in timed.result.comparisons:
            if one.unit == _TIME and one.workload in own and one.baseline_value:
                counts = dict(_counts(one, counted.get(one.workload, ())))
                cost = WorkloadCost(
                    workload=one.workload, metric=one.metric, time=one.baseline_value, exact=counts
                )
                if counts:
                    costs.setdefault((one.workload, one.metric), cost)
    return tuple(costs.values())


def cross_sections(costs: Sequence[WorkloadCost], seed: int) -> tuple[CrossSection, ...]:
    """Of each count: ranks, and how far time for one of the count scatters over the workloads."""
    counts = dict.fromkeys(count for one in costs for count in one.exact)
    return tuple(_cross_section(count, costs, seed) for count in counts)


def _cross_section(count: str, costs: Sequence[WorkloadCost], seed: int) -> CrossSection:
    both = [one for one in costs if count in one.exact]
    x = np.array([math.log(one.exact[count]) for one in both])
    y = np.array([math.log(one.time) for one in both])
    value, low, high = with_interval(spearman, x, y, [one.workload for one in both], seed)
    return CrossSection(
        count=count,
        workloads=len(both),
        spearman=Interval(value=value, low=low, high=high),
        scatter=math.exp(float(np.std(y - x, ddof=1))) if len(both) > 1 else None,
    )


def _counts(timed: Comparison, counted: Sequence[Comparison]) -> Iterable[tuple[str, float]]:
    """The first treatment's row has the baseline's value as well as every other one."""
    rows = {one.metric: one for one in reversed(counted) if one.baseline_value}
    own = rows.get(timed.metric)
    if own and own.unit == _INSTRUCTIONS and own.baseline_value:
        yield _INSTRUCTIONS, own.baseline_value
        of_bytes = rows.get(STRING_BYTES.name)
        moved = of_bytes.baseline_value or 0 if of_bytes else 0
        yield _WITH_BYTES, own.baseline_value + CycleModel().string_byte * moved
    for one in rows.values():
        if one.unit == _CYCLES and one.baseline_value:
            yield one.metric, one.baseline_value
