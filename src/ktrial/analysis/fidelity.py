"""The same treatments and workloads counted and timed: do the changes agree?"""

import math
import random
from collections.abc import Iterable, Sequence

import numpy as np

from ktrial.analysis.errors import NotTheSameTreatments, WrongMachineForFidelity
from ktrial.model.comparison import Comparison
from ktrial.model.design import FactorKind
from ktrial.model.fidelity import Change, Fidelity, FidelityPair, FidelityResult, Interval
from ktrial.model.plan import treatments
from ktrial.model.study import EXACT_MACHINES, Study
from ktrial.model.study_record import StudyRecord
from ktrial.model.workload import STRING_BYTES
from ktrial.stats.correlation import Correlation, pearson, spearman, with_interval

_TIME, _INSTRUCTIONS = "ns", "instructions"
SEED = 1


def fidelity(exact: StudyRecord, timed: StudyRecord, seed: int = SEED) -> FidelityResult:
    """Compare two studies' changes. Raises WrongMachineForFidelity and NotTheSameTreatments.

    A treatment's own pair is left out where it changes a parameter of another workload: nothing can differ.
    """
    _check(exact, timed)
    pairs, left_out = _pairs(exact, timed)
    if not pairs:
        raise NotTheSameTreatments(exact=exact.id, timed=timed.id)
    names = sorted({pair.treatment for pair in pairs})
    held_out = set(random.Random(seed).sample(names, len(names) // 2))
    counts = list(dict.fromkeys(count for pair in pairs for count in pair.exact))
    half = [pair for pair in pairs if pair.treatment in held_out]
    return FidelityResult(
        exact_study=exact.id,
        timed_study=timed.id,
        timed_machine=timed.study.machine.kind,
        all=tuple(_fidelity(count, pairs, seed) for count in counts),
        held_out=tuple(_fidelity(count, half, seed) for count in counts),
        seed=seed,
        pairs=tuple(pairs),
        left_out=tuple(left_out),
    )


def _check(exact: StudyRecord, timed: StudyRecord) -> None:
    for record, counts in ((exact, True), (timed, False)):
        kind = record.study.machine.kind
        if (kind in EXACT_MACHINES) is not counts:
            raise WrongMachineForFidelity(
                study=record.id, machine=kind, wanted="that counts" if counts else "in real time"
            )


def _pairs(exact: StudyRecord, timed: StudyRecord) -> tuple[list[FidelityPair], list[str]]:
    counted: dict[tuple[str, str], list[Comparison]] = {}
    for one in exact.result.comparisons:
        counted.setdefault((one.workload, one.treatment), []).append(one)
    pairs, left_out, changes = [], [], _changes(timed.study)
    for one in timed.result.comparisons:
        if one.unit != _TIME or _untouched(timed.study, one):
            continue
        alike = counted.get((one.workload, one.treatment), ())
        by_count = dict(_counts(one, alike))
        time = _change(one)
        if time and by_count:
            pairs.append(
                FidelityPair(
                    workload=one.workload,
                    metric=one.metric,
                    treatment=changes.get(one.treatment) or one.treatment,
                    time=time,
                    exact=by_count,
                )
            )
        else:
            reason = next(
                (each.reason for each in (one, *alike) if each.reason), "the other study has no number"
            )
            left_out.append(
                f"{changes.get(one.treatment) or one.treatment}, {one.workload}, {one.metric}: {reason}"
            )
    return pairs, left_out


def _untouched(study: Study, one: Comparison) -> bool:
    """Whether all that the treatment changes are parameters of other workloads."""
    treatment = _levels(study).get(one.treatment)
    changed = [factor for factor in study.factors if treatment and treatment[factor.name] != factor.baseline]
    own = one.workload.split("(")[0]
    others = [
        each for each in changed if each.kind is FactorKind.PARAMETER and each.target.split(".")[0] != own
    ]
    return bool(changed) and len(others) == len(changed)


def _changes(study: Study) -> dict[str, str]:
    """Label → the levels that are not the baseline's, by their factors' names."""
    baseline = {factor.name: factor.baseline for factor in study.factors}
    return {
        label: " · ".join(f"{name}={level}" for name, level in chosen.items() if level != baseline[name])
        for label, chosen in _levels(study).items()
        if len(chosen) > 1
    }


def _levels(study: Study) -> dict[str, dict[str, object]]:
    """Label → levels."""
    return {one.label: dict(one.levels) for one in treatments(study)}


def _counts(timed: Comparison, counted: Iterable[Comparison]) -> Iterable[tuple[str, Change]]:
    for one in counted:
        change = _change(one)
        if change is None or one.metric == STRING_BYTES.name:
            continue
        if one.metric == timed.metric and one.unit == _INSTRUCTIONS:
            yield _INSTRUCTIONS, change
        elif one.unit == "cycles":
            yield one.metric, change


def _change(one: Comparison) -> Change | None:
    if one.ratio is None or one.ratio <= 0 or one.low is None or one.high is None:
        return None
    return Change(ratio=one.ratio, low=one.low, high=one.high, verdict=one.verdict)


def _fidelity(count: str, pairs: Sequence[FidelityPair], seed: int) -> Fidelity:
    both = [pair for pair in pairs if count in pair.exact]
    in_time = [pair for pair in both if pair.time.decided]
    decided = [pair for pair in in_time if pair.exact[count].decided]
    wrong = [pair for pair in decided if pair.exact[count].verdict is not pair.time.verdict]
    x = np.array([math.log(pair.exact[count].ratio) for pair in decided])
    y = np.array([math.log(pair.time.ratio) for pair in decided])
    groups = [pair.treatment for pair in decided]

    def figure(correlation: Correlation) -> Interval:
        value, low, high = with_interval(correlation, x, y, groups, seed)
        return Interval(value=value, low=low, high=high)

    return Fidelity(
        count=count,
        pairs=len(both),
        undecided_in_time=len(both) - len(in_time),
        undecided_in_exact=len(in_time) - len(decided),
        decided=len(decided),
        same_sign=len(decided) - len(wrong),
        spearman=figure(spearman),
        pearson=figure(pearson),
        rms_error=float(np.sqrt(np.mean((y - x) ** 2))) if decided else None,
        slope=float(x @ y / (x @ x)) if decided else None,
        disagreements=tuple(wrong),
    )
