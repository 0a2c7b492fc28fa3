"""Constants of a machine model fitted to measured times: on half of the treatments, judged by the rest."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from ktrial.analysis.errors import NoOneModel, NothingToFit
from ktrial.analysis.fidelity import Both, group, held_out
from ktrial.analysis.fidelity_figures import figures
from ktrial.analysis.modelled_costs import CLASSES, COSTS, costs, prices
from ktrial.model.base import digest
from ktrial.model.comparison import Comparison
from ktrial.model.fidelity import Change, FidelityPair, FidelityResult, FittedCosts
from ktrial.model.machine_model import ModelledMachine
from ktrial.model.profile import Profile
from ktrial.model.study_record import StudyRecord
from ktrial.stats.correlation import Floats
from ktrial.stats.verdict_rules import interval_verdict

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


def fitted(result: FidelityResult, studies: Sequence[Both], profiles: ProfileOf) -> FittedCosts:
    """Fit to the half that is not held out. Raises NothingToFit, NoOneModel."""
    machine = machine_of(studies)
    outside = held_out(result.pairs, result.seed)
    known = dict(_operations(studies, profiles, machine))
    inside = _fitted_to(result, known, outside)
    if len(inside) < len(COSTS):
        raise NothingToFit(operations=len(inside), least=len(COSTS))
    as_before = np.ones(len(COSTS))
    factors = _factors(inside)
    before = prices(machine)
    others = [pair for pair in result.pairs if group(pair) in outside]
    margin = studies[0][0].study.margin
    judged = [with_fitted for pair in others if (with_fitted := _predicted(pair, known, factors, margin))]
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
    """On which all of them were counted. Raises NoOneModel."""
    models = {
        digest(model.model_dump()): model for exact, _ in studies if (model := exact.study.machine.model)
    }
    if len(models) != 1:
        raise NoOneModel(models=", ".join(model.reference for model in models.values()) or "none")
    return next(iter(models.values()))


_Key = tuple[int, str, str]
"""Id of the study that counts, workload, treatment."""


def _operations(
    studies: Sequence[Both], profiles: ProfileOf, machine: ModelledMachine
) -> Iterable[tuple[_Key, _Operation]]:
    for exact, timed in studies:
        for workload, treatment, nanoseconds in _times(timed.result.comparisons):
            profile = profiles(exact, workload, treatment)
            if profile and profile.region.cycles and nanoseconds:
                key = (exact.id, workload, treatment)
                yield key, _Operation(key[:2], costs(profile, machine), nanoseconds)


def _times(comparisons: Iterable[Comparison]) -> Iterable[tuple[str, str, float]]:
    """The first metric of each workload that is a time, of the baseline and of each treatment."""
    seen: set[tuple[str, str]] = set()
    for one in comparisons:
        if one.unit != "ns":
            continue
        for treatment, value in ((one.baseline, one.baseline_value), (one.treatment, one.value)):
            if value and (one.workload, treatment) not in seen:
                seen.add((one.workload, treatment))
                yield one.workload, treatment, value


def _fitted_to(
    result: FidelityResult, known: Mapping[_Key, _Operation], outside: frozenset[str]
) -> list[_Operation]:
    """Baselines, and the treatments of the pairs that are not held out."""
    inside = (pair for pair in result.pairs if group(pair) not in outside)
    keys = dict.fromkeys(key for pair in inside for key in _keys(pair))
    return [known[key] for key in keys if key in known]


def _keys(pair: FidelityPair) -> tuple[_Key, _Key]:
    """Of its baseline and its treatment."""
    return (
        (pair.exact_study, pair.workload, pair.baseline),
        (pair.exact_study, pair.workload, pair.label),
    )


_Scales = Mapping[tuple[int, str], float]


def _scales(operations: Sequence[_Operation], factors: Floats) -> _Scales:
    """Modelled cycles in a nanosecond, workload by workload: by the least squares of relative errors.

    Each has its own, since what is counted as one operation may be a batch of what is timed as one; and since
    changes are to be foretold, not the levels of different workloads.
    """
    rates: dict[tuple[int, str], list[float]] = {}
    for one in operations:
        cycles = sum(one.cycles[name] * factor for name, factor in zip(COSTS, factors, strict=True))
        rates.setdefault(one.workload, []).append(max(cycles, _LEAST) / one.nanoseconds)
    return {workload: sum(rate**2 for rate in each) / sum(each) for workload, each in rates.items()}


def _matrix(operations: Sequence[_Operation], scales: _Scales) -> Floats:
    """A row an operation: what each cost takes of its time, at the prices before; their sum is 1 where all
    is as it was modelled."""
    return np.array(
        [
            [one.cycles[name] / (scales[one.workload] * one.nanoseconds) for name in COSTS]
            for one in operations
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
        wanted = np.concatenate([np.ones(len(operations)), math.sqrt(RIDGE) * np.ones(len(COSTS))])
        factors = optimize.nnls(rows, wanted)[0]
        if np.allclose(before, factors, rtol=1e-4):
            break
    return factors


def _error(operations: Sequence[_Operation], factors: Floats) -> float:
    predicted = _matrix(operations, _scales(operations, factors)) @ factors
    return float(np.sqrt(np.mean(np.log(np.maximum(predicted, _LEAST)) ** 2)))


def _predicted(
    pair: FidelityPair, known: Mapping[_Key, _Operation], factors: Floats, margin: float
) -> FidelityPair | None:
    """The pair with what fitted prices say of it, beside the other counts; None where it was not profiled."""
    before, after = (
        sum(known[key].cycles[name] * factor for name, factor in zip(COSTS, factors, strict=True))
        if key in known
        else 0.0
        for key in _keys(pair)
    )
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
    for cost in (each for each in COSTS if each != CLASSES):
        value = 1 / fit.after[cost] if cost == "string_bytes" and fit.after[cost] else fit.after[cost]
        written = max(1, round(value)) if cost == "string_bytes" else float(f"{value:.6g}")
        lines.append(f'{cost} = {{ value = {written}, source = "{source}; was {cycles[cost]:g}" }}')
    for cost in (each for each in cycles if each not in COSTS and each != "store_share"):
        was = cycles[cost]
        said = f"{source}, all of this kind by one factor; was {was:g}"
        lines.append(f'{cost} = {{ value = {was * factor:.6g}, source = "{said}" }}')
    return "\n".join(lines) + "\n"
