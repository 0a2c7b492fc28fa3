"""The same treatments and workloads counted and timed: do the changes agree?"""

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from ktrial.analysis.attribution.costs import CLASSES, COSTS, costs, prices
from ktrial.analysis.errors import AnalysisUsageError
from ktrial.model.base import digest
from ktrial.model.comparison import Comparison
from ktrial.model.design import FactorKind
from ktrial.model.fidelity import (
    Change,
    CrossSection,
    Fidelity,
    FidelityPair,
    FidelityResult,
    FittedCosts,
    Interval,
    SizeBand,
    WorkloadCost,
)
from ktrial.model.machine import ModelledMachine
from ktrial.model.profile import CycleModel, Profile
from ktrial.model.study import EXACT_MACHINES, Study, StudyRecord, treatments
from ktrial.model.workload import STRING_BYTES
from ktrial.stats.verdict_rules import interval_verdict

Floats = NDArray[np.float64]
_TIME, _INSTRUCTIONS = "ns", "instructions"
_WITH_BYTES = "instructions and bytes"
_CYCLES = "cycles"
CostsOf = Callable[[StudyRecord, str, str], dict[str, float]]
"""Record, workload and treatment → what modelled cycles moved by, by kind of cost."""
SEED = 1
Both = tuple[StudyRecord, StudyRecord]
"""One study that counts, one in real time."""


def fidelity(
    studies: Sequence[Both],
    seed: int = SEED,
    costs: CostsOf = lambda _record, _workload, _treatment: {},
) -> FidelityResult:
    """Compare the studies' changes. Raises AnalysisUsageError.

    A treatment's own pair is left out where it changes a parameter of another workload: nothing can differ.
    `costs`: what modelled cycles are made of.
    """
    pairs: list[FidelityPair] = []
    left_out: list[str] = []
    for exact, timed in studies:
        for record, is_counted in ((exact, True), (timed, False)):
            kind = record.study.machine.kind
            if (kind in EXACT_MACHINES) is not is_counted:
                needed = "that counts" if is_counted else "in real time"
                raise AnalysisUsageError(
                    f"Study {record.id} ran on machine {kind}: a study {needed} is asked for there.",
                    hint="name the study that counts first, then that in real time: "
                    "ktrial fidelity EXACT TIMED",
                )
        own_pairs, without = _pairs_of(exact, timed, costs)
        if not own_pairs:
            raise AnalysisUsageError(
                f"Studies {exact.id} and {timed.id} have no treatment with a number for the same workload in "
                "both.",
                hint='run the same study file with machine = "exact" and machine = "host"',
            )
        pairs += own_pairs
        left_out += without
    counts = list(dict.fromkeys(count for pair in pairs for count in pair.exact))
    outside = held_out(pairs, seed)
    half = [pair for pair in pairs if group(pair) in outside]
    beside = workload_costs(studies)
    return FidelityResult(
        studies=tuple((exact.id, timed.id) for exact, timed in studies),
        timed_machine=", ".join(dict.fromkeys(timed.study.machine.kind for _, timed in studies)),
        all=tuple(figures(count, pairs, group, seed) for count in counts),
        held_out=tuple(figures(count, half, group, seed) for count in counts),
        seed=seed,
        pairs=tuple(pairs),
        left_out=tuple(left_out),
        workloads=beside,
        across=cross_sections(beside, seed),
    )


def group(pair: FidelityPair) -> str:
    """Pairs of one treatment are not independent of each other."""
    return pair.treatment


def held_out(pairs: Sequence[FidelityPair], seed: int) -> frozenset[str]:
    """The half of the treatments that nothing is fitted to."""
    names = sorted({group(pair) for pair in pairs})
    return frozenset(random.Random(seed).sample(names, len(names) // 2))


def _pairs_of(exact: StudyRecord, timed: StudyRecord, costs: CostsOf) -> tuple[list[FidelityPair], list[str]]:
    """The pairs of two studies, and what has none, each with the reason."""
    counted: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in exact.result.comparisons:
        counted.setdefault((comparison.workload, comparison.treatment), []).append(comparison)
    pairs, left_out, changes = [], [], _changes(timed.study)
    # What each treatment changes: the workloads of the parameters, and nothing's name for all else.
    changed = {
        treatment.label: {
            factor.target.split(".")[0] if factor.kind is FactorKind.PARAMETER else ""
            for factor in timed.study.factors
            if treatment.levels[factor.name] != factor.baseline
        }
        for treatment in treatments(timed.study)
    }
    for comparison in timed.result.comparisons:
        if comparison.unit != _TIME:
            continue
        # Nothing can differ where all that the treatment changes are parameters of other workloads.
        targets = changed.get(comparison.treatment, ())
        if targets and comparison.workload.split("(")[0] not in targets and "" not in targets:
            continue
        alike = counted.get((comparison.workload, comparison.treatment), ())
        if alike and not any(counted_row.metric == comparison.metric for counted_row in alike):
            continue  # another clock's: the time on the wall beside the CPU's
        by_count, time = dict(_counts(comparison, alike, exact.study.margin)), _change_of(comparison)
        treatment = changes.get(comparison.treatment) or comparison.treatment
        if time and by_count:
            moved = costs(exact, comparison.workload, comparison.treatment)
            pairs.append(
                FidelityPair(
                    study=timed.study.name,
                    exact_study=exact.id,
                    workload=comparison.workload,
                    metric=comparison.metric,
                    direction=comparison.direction,
                    treatment=treatment,
                    label=comparison.treatment,
                    baseline=comparison.baseline,
                    time=time,
                    exact=by_count,
                    costs=moved,
                )
            )
        else:
            reason = next((row.reason for row in (comparison, *alike) if row.reason), "")
            reason = reason or "the other study has no number"
            left_out.append(f"{treatment}, {comparison.workload}, {comparison.metric}: {reason}")
    return pairs, left_out


def _change_of(comparison: Comparison) -> Change | None:
    """None where there is no ratio."""
    low, high = comparison.reach
    if comparison.ratio is None or comparison.ratio <= 0 or low is None or high is None:
        return None
    return Change(ratio=comparison.ratio, low=low, high=high, verdict=comparison.verdict)


def _changes(study: Study) -> dict[str, str]:
    """Label → the levels that are not the baseline's, by their factors' names."""
    baseline = {factor.name: factor.baseline for factor in study.factors}
    return {
        treatment.label: " · ".join(
            f"{name}={level}" for name, level in treatment.levels.items() if level != baseline[name]
        )
        for treatment in treatments(study)
        if len(treatment.levels) > 1
    }


def _counts(timed: Comparison, counted: Sequence[Comparison], margin: float) -> Iterable[tuple[str, Change]]:
    for comparison in counted:
        change = _change_of(comparison)
        if change is None or comparison.metric == STRING_BYTES.name:
            continue
        if comparison.metric == timed.metric and comparison.unit == _INSTRUCTIONS:
            yield _INSTRUCTIONS, change
            yield _WITH_BYTES, _with_bytes(comparison, change, counted, margin)
        elif comparison.unit == _CYCLES:
            yield comparison.metric, change


def _with_bytes(
    instructions: Comparison, change: Change, counted: Sequence[Comparison], margin: float
) -> Change:
    """Instructions, and a 32nd of one for each byte that string instructions worked on (`CycleModel`).

    The interval is as wide as that of the instructions.
    """
    of_bytes = next((comparison for comparison in counted if comparison.metric == STRING_BYTES.name), None)
    before, after = instructions.baseline_value, instructions.value
    if of_bytes is None or not before or not after:
        return change
    weight = CycleModel().string_byte
    ratio = (after + weight * (of_bytes.value or 0)) / (before + weight * (of_bytes.baseline_value or 0))
    low, high = ratio * change.low / change.ratio, ratio * change.high / change.ratio
    verdict = interval_verdict(low, high, instructions.direction, margin)
    return Change(ratio=ratio, low=low, high=high, verdict=verdict)


# Workloads beside each other: how what one operation is counted at stands to the time that it takes.


def workload_costs(studies: Sequence[tuple[StudyRecord, StudyRecord]]) -> tuple[WorkloadCost, ...]:
    """What an operation of each built-in workload costs in the baseline.

    Of several studies with one workload, the first is taken. Commands are left out: what they mark as an
    operation may be a batch of what they time. So are workloads whose number in real time is a rate.
    """
    costs: dict[tuple[str, str], WorkloadCost] = {}
    for exact, timed in studies:
        built_in = {use.label for use in timed.study.workloads if use.command is None}
        counted: dict[str, list[Comparison]] = {}
        for comparison in exact.result.comparisons:
            counted.setdefault(comparison.workload, []).append(comparison)
        for comparison in timed.result.comparisons:
            if comparison.unit == _TIME and comparison.workload in built_in and comparison.baseline_value:
                counts = dict(_baseline_counts(comparison, counted.get(comparison.workload, ())))
                cost = WorkloadCost(
                    workload=comparison.workload,
                    metric=comparison.metric,
                    time=comparison.baseline_value,
                    exact=counts,
                )
                if counts:
                    costs.setdefault((comparison.workload, comparison.metric), cost)
    return tuple(costs.values())


def cross_sections(costs: Sequence[WorkloadCost], seed: int) -> tuple[CrossSection, ...]:
    """Of each count: ranks, and how far time for one of the count scatters over the workloads."""
    counts = dict.fromkeys(count for cost in costs for count in cost.exact)
    return tuple(_cross_section(count, costs, seed) for count in counts)


def _cross_section(count: str, costs: Sequence[WorkloadCost], seed: int) -> CrossSection:
    both = [cost for cost in costs if count in cost.exact]
    x = np.array([math.log(cost.exact[count]) for cost in both])
    y = np.array([math.log(cost.time) for cost in both])
    return CrossSection(
        count=count,
        workloads=len(both),
        spearman=with_interval(spearman, x, y, [cost.workload for cost in both], seed),
        scatter=math.exp(float(np.std(y - x, ddof=1))) if len(both) > 1 else None,
    )


def _baseline_counts(timed: Comparison, counted: Sequence[Comparison]) -> Iterable[tuple[str, float]]:
    """The first treatment's row has the baseline's value as well as every other one."""
    rows = {comparison.metric: comparison for comparison in reversed(counted) if comparison.baseline_value}
    instructions = rows.get(timed.metric)
    if instructions and instructions.unit == _INSTRUCTIONS and instructions.baseline_value:
        yield _INSTRUCTIONS, instructions.baseline_value
        of_bytes = rows.get(STRING_BYTES.name)
        moved = of_bytes.baseline_value or 0 if of_bytes else 0
        yield _WITH_BYTES, instructions.baseline_value + CycleModel().string_byte * moved
    for comparison in rows.values():
        if comparison.unit == _CYCLES and comparison.baseline_value:
            yield comparison.metric, comparison.baseline_value


# Figures of fidelity: signs, correlations, error and slope of one count against real time.

BANDS = (1.0, 1.1, 1.3, 2.0, math.inf)
"""Edges of the sizes of changes, as ratios: up to 10 %, to 30 %, to twice as much, more."""
Group = Callable[[FidelityPair], str]


def figures(count: str, pairs: Sequence[FidelityPair], group: Group, seed: int) -> Fidelity:
    """Of one count, over the pairs that have it. Correlations' intervals draw whole groups."""
    both = [pair for pair in pairs if count in pair.exact]
    in_time = [pair for pair in both if pair.time.decided]
    decided = [pair for pair in in_time if pair.exact[count].decided]
    wrong = [pair for pair in decided if pair.exact[count].verdict is not pair.time.verdict]
    x = np.array([math.log(pair.exact[count].ratio) for pair in decided])
    y = np.array([math.log(pair.time.ratio) for pair in decided])
    groups = [group(pair) for pair in decided]

    return Fidelity(
        count=count,
        pairs=len(both),
        undecided_in_time=len(both) - len(in_time),
        undecided_in_exact=len(in_time) - len(decided),
        decided=len(decided),
        same_sign=len(decided) - len(wrong),
        spearman=with_interval(spearman, x, y, groups, seed),
        pearson=with_interval(pearson, x, y, groups, seed),
        rms_error=float(np.sqrt(np.mean((y - x) ** 2))) if decided else None,
        slope=float(x @ y / (x @ x)) if decided else None,
        bands=_bands(count, both),
        disagreements=tuple(wrong),
    )


def _bands(count: str, pairs: Sequence[FidelityPair]) -> tuple[SizeBand, ...]:
    """Of the pairs that the count has decided, by the size of what it says."""
    counted = [pair for pair in pairs if pair.exact[count].decided]

    def size(pair: FidelityPair) -> float:
        ratio = pair.exact[count].ratio
        return max(ratio, 1 / ratio)

    bands = []
    for low, high in pairwise(BANDS):
        inside = [pair for pair in counted if low <= size(pair) < high]
        decided = [pair for pair in inside if pair.time.decided]
        right = sum(pair.exact[count].verdict is pair.time.verdict for pair in decided)
        bands.append(
            SizeBand(
                low=low,
                high=high if math.isfinite(high) else None,
                decided=len(decided),
                same_sign=right,
                undecided=len(inside) - len(decided),
            )
        )
    return tuple(bands)


# Constants of a machine model fitted to measured times: on half of the treatments, judged by the rest.

RIDGE = 0.1
"""How many operations a constant's value before the fit counts for: where times say nothing, it stays.

Ridge regression towards the values before (Hoerl and Kennard, 1970), with constants that cannot be negative
(Lawson and Hanson, Solving Least Squares Problems, 1974).
"""
FITTED = "fitted cycles"
_MOST_ROUNDS = 200
_LEAST = 1e-9
ProfileOf = Callable[[StudyRecord, str, str], Profile | None]
"""Record, workload and treatment → what was counted."""


@dataclass(frozen=True)
class _Operation:
    """One workload under one treatment."""

    workload: tuple[int, str]
    """Its study and name: all of its treatments share a scale."""
    cycles: Mapping[str, float]
    """By kind of cost, at the prices before the fit."""
    nanoseconds: float


_Key = tuple[int, str, str]
"""Id of the study that counts, workload, treatment."""


def fitted(result: FidelityResult, studies: Sequence[Both], profiles: ProfileOf) -> FittedCosts:
    """Fit to the half that is not held out. Raises AnalysisUsageError."""
    machine = machine_of(studies)
    outside = held_out(result.pairs, result.seed)
    operations: dict[_Key, _Operation] = {}
    for exact, timed in studies:
        for workload, treatment, nanoseconds in _times(timed.result.comparisons):
            profile = profiles(exact, workload, treatment)
            if profile and profile.region.cycles and nanoseconds:
                scale = (exact.id, workload)
                operation = _Operation(scale, costs(profile, machine), nanoseconds)
                operations[exact.id, workload, treatment] = operation
    # Fitted to baselines, and to the treatments of the pairs that are not held out.
    of_pairs = (_keys(pair) for pair in result.pairs if group(pair) not in outside)
    keys = dict.fromkeys(key for both in of_pairs for key in both)
    inside = [operations[key] for key in keys if key in operations]
    if len(inside) < len(COSTS):
        raise AnalysisUsageError(
            f"Constants cannot be fitted to {len(inside)} operations: at least {len(COSTS)} need a time "
            "and a profile.",
            hint="run more of the studies that count, with a machine model and calls by function (the "
            "plugin)",
        )
    as_before = np.ones(len(COSTS))
    factors = _factors(inside)
    before = prices(machine)
    outside_pairs = [pair for pair in result.pairs if group(pair) in outside]
    margin = studies[0][0].study.margin
    predicted = (_predicted(pair, operations, factors, margin) for pair in outside_pairs)
    judged = [pair for pair in predicted if pair]
    counts = {name: figures(name, judged, group, result.seed) for name in (FITTED, "modelled-cycles")}
    return FittedCosts(
        like=machine.reference,
        operations=len(inside),
        gigahertz=math.exp(np.mean(np.log(list(_scales(inside, as_before).values())))),
        before=before,
        after={name: before[name] * factor for name, factor in zip(COSTS, factors, strict=True)},
        error_before=_error(inside, as_before),
        error_after=_error(inside, factors),
        held_out=counts[FITTED],
        held_out_before=counts["modelled-cycles"],
    )


def machine_of(studies: Sequence[Both]) -> ModelledMachine:
    """On which all of them were counted. Raises AnalysisUsageError."""
    models = {
        digest(model.model_dump()): model for exact, _ in studies if (model := exact.study.machine.model)
    }
    if len(models) != 1:
        names = ", ".join(model.reference for model in models.values()) or "none"
        raise AnalysisUsageError(
            f"Constants are fitted to studies that are all counted on one modelled machine, not on: {names}.",
            hint="run them with --model default",
        )
    return next(iter(models.values()))


def _times(comparisons: Iterable[Comparison]) -> Iterable[tuple[str, str, float]]:
    """The first metric of each workload that is a time, of the baseline and of each treatment."""
    seen: set[tuple[str, str]] = set()
    for comparison in comparisons:
        if comparison.unit != "ns":
            continue
        for treatment, value in (
            (comparison.baseline, comparison.baseline_value),
            (comparison.treatment, comparison.value),
        ):
            if value and (comparison.workload, treatment) not in seen:
                seen.add((comparison.workload, treatment))
                yield comparison.workload, treatment, value


def _keys(pair: FidelityPair) -> tuple[_Key, _Key]:
    """Of its baseline and its treatment."""
    place = (pair.exact_study, pair.workload)
    return (*place, pair.baseline), (*place, pair.label)


def _cycles(operation: _Operation, factors: Floats) -> float:
    """With each price multiplied."""
    return float(sum(operation.cycles[name] * factor for name, factor in zip(COSTS, factors, strict=True)))


def _scales(operations: Sequence[_Operation], factors: Floats) -> dict[tuple[int, str], float]:
    """Modelled cycles in a nanosecond, workload by workload: by the least squares of relative errors.

    Each has its own, since what is counted as one operation may be a batch of what is timed as one; and since
    changes are to be foretold, not the levels of different workloads.
    """
    rates: dict[tuple[int, str], list[float]] = {}
    for operation in operations:
        cycles = max(_cycles(operation, factors), _LEAST)
        rates.setdefault(operation.workload, []).append(cycles / operation.nanoseconds)
    return {
        workload: sum(rate**2 for rate in of_workload) / sum(of_workload)
        for workload, of_workload in rates.items()
    }


def _matrix(operations: Sequence[_Operation], scales: Mapping[tuple[int, str], float]) -> Floats:
    """A row an operation: what each cost takes of its time, at the prices before; their sum is 1 where all
    is as it was modelled."""
    return np.array(
        [
            [operation.cycles[name] / (scales[operation.workload] * operation.nanoseconds) for name in COSTS]
            for operation in operations
        ]
    )


def _factors(operations: Sequence[_Operation]) -> Floats:
    """By which each price is multiplied: least squares of relative errors of times.

    Factors and scales in turn, until neither moves (alternating least squares).
    """
    factors: Floats = np.ones(len(COSTS))
    for _ in range(_MOST_ROUNDS):
        before, rows = factors, _matrix(operations, _scales(operations, factors))
        rows = np.vstack([rows, math.sqrt(RIDGE) * np.eye(len(COSTS))])
        targets = np.concatenate([np.ones(len(operations)), math.sqrt(RIDGE) * np.ones(len(COSTS))])
        factors = optimize.nnls(rows, targets)[0]
        if np.allclose(before, factors, rtol=1e-4):
            break
    return factors


def _error(operations: Sequence[_Operation], factors: Floats) -> float:
    predicted = _matrix(operations, _scales(operations, factors)) @ factors
    return float(np.sqrt(np.mean(np.log(np.maximum(predicted, _LEAST)) ** 2)))


def _predicted(
    pair: FidelityPair, operations: Mapping[_Key, _Operation], factors: Floats, margin: float
) -> FidelityPair | None:
    """The pair with what fitted prices say of it, beside the other counts; None where it was not profiled."""
    before, after = (_cycles(operations[key], factors) if key in operations else 0.0 for key in _keys(pair))
    if before <= 0 or after <= 0:
        return None
    ratio = after / before
    verdict = interval_verdict(ratio, ratio, pair.direction, margin)
    change = Change(ratio=ratio, low=ratio, high=ratio, verdict=verdict)
    return pair.model_copy(update={"exact": pair.exact | {FITTED: change}})


def text(fit: FittedCosts, machine: ModelledMachine, name: str, data: str) -> str:
    """The file of machines with the fitted one in it, which says of each constant what it was fitted to."""
    source = f"fitted by ktrial fidelity --fit to {fit.operations} operations of {data}"
    lines = [
        f"# {source}.",
        f"# {fit.gigahertz:.3f} cycles were taken for a nanosecond in the mean; each workload has its own.",
        "# A store pays the whole of a miss here.",
        f"[machines.{name}]",
        f'like = "{machine.name}"',
        "",
        f"[machines.{name}.cycles]",
        'store_share = { value = 1, source = "misses of loads and stores were fitted together" }',
    ]
    cycles, factor = machine.cycles.model_dump(), fit.after[CLASSES]
    for cost in (kind for kind in COSTS if kind != CLASSES):
        value = 1 / fit.after[cost] if cost == "string_bytes" and fit.after[cost] else fit.after[cost]
        written = max(1, round(value)) if cost == "string_bytes" else float(f"{value:.6g}")
        lines.append(f'{cost} = {{ value = {written}, source = "{source}; was {cycles[cost]:g}" }}')
    for cost in (kind for kind in cycles if kind not in COSTS and kind != "store_share"):
        was = cycles[cost]
        reason = f"{source}, all of this kind by one factor; was {was:g}"
        lines.append(f'{cost} = {{ value = {was * factor:.6g}, source = "{reason}" }}')
    return "\n".join(lines) + "\n"


# Correlations of changes, with intervals by a bootstrap over groups.

Correlation = Callable[[Floats, Floats], float]
_DRAWS = 1000
_FEWEST = 3


def spearman(first: Floats, second: Floats) -> float:
    """The rank correlation, -1 to 1; NaN where one of the two is constant."""
    return pearson(stats.rankdata(first), stats.rankdata(second))


def pearson(first: Floats, second: Floats) -> float:
    """The correlation, -1 to 1; NaN where one is constant or there are fewer than three numbers."""
    if len(first) < _FEWEST or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def with_interval(
    correlation: Correlation, first: Floats, second: Floats, groups: Sequence[str], seed: int
) -> Interval:
    """The correlation and its 95 % percentile interval; None for what cannot be had.

    Whole groups are drawn with replacement (cluster bootstrap: Efron and Tibshirani, An Introduction to the
    Bootstrap, 1993, chapter 8): numbers of one group are not independent.
    """
    value = correlation(first, second)
    members = [np.flatnonzero(np.array(groups) == group) for group in dict.fromkeys(groups)]
    if np.isnan(value) or len(members) < _FEWEST:
        return Interval(value=None if np.isnan(value) else value, low=None, high=None)
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(_DRAWS):
        chosen = np.concatenate([members[number] for number in rng.integers(len(members), size=len(members))])
        drawn.append(correlation(first[chosen], second[chosen]))
    usable = [value_drawn for value_drawn in drawn if not np.isnan(value_drawn)]
    if len(usable) < _DRAWS // 2:
        return Interval(value=value, low=None, high=None)
    low, high = np.percentile(usable, [2.5, 97.5])
    return Interval(value=value, low=float(low), high=float(high))
