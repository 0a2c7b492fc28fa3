"""The same treatments and workloads counted and timed: do the changes agree?"""

import random
from collections.abc import Callable, Iterable, Sequence

from ktrial.analysis.cross_section import cross_sections, workload_costs
from ktrial.analysis.errors import NotTheSameTreatments, WrongMachineForFidelity
from ktrial.analysis.fidelity_figures import figures
from ktrial.model.comparison import Comparison
from ktrial.model.design import FactorKind
from ktrial.model.fidelity import Change, FidelityPair, FidelityResult
from ktrial.model.plan import treatments
from ktrial.model.profile import CycleModel
from ktrial.model.study import EXACT_MACHINES, Study
from ktrial.model.study_record import StudyRecord
from ktrial.model.workload import STRING_BYTES
from ktrial.stats.verdict_rules import interval_verdict

_TIME, _INSTRUCTIONS = "ns", "instructions"
_WITH_BYTES = "instructions and bytes"
_CYCLES = "cycles"
CostsOf = Callable[[StudyRecord, str, str], dict[str, float]]
"""Record, workload and treatment → what modelled cycles moved by, by kind of cost."""
SEED = 1
Both = tuple[StudyRecord, StudyRecord]
"""One study that counts, one in real time."""


def no_costs(record: StudyRecord, workload: str, treatment: str) -> dict[str, float]:
    """Where nobody asks."""
    return {}


def fidelity(studies: Sequence[Both], seed: int = SEED, costs: CostsOf = no_costs) -> FidelityResult:
    """Compare the studies' changes. Raises WrongMachineForFidelity and NotTheSameTreatments.

    A treatment's own pair is left out where it changes a parameter of another workload: nothing can differ.
    `costs`: what modelled cycles are made of.
    """
    pairs: list[FidelityPair] = []
    left_out: list[str] = []
    for exact, timed in studies:
        _check(exact, timed)
        own_pairs, without = _pairs_of(exact, timed, costs)
        if not own_pairs:
            raise NotTheSameTreatments(exact=exact.id, timed=timed.id)
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


def _check(exact: StudyRecord, timed: StudyRecord) -> None:
    for record, counts in ((exact, True), (timed, False)):
        kind = record.study.machine.kind
        if (kind in EXACT_MACHINES) is not counts:
            raise WrongMachineForFidelity(
                study=record.id, machine=kind, wanted="that counts" if counts else "in real time"
            )


def _pairs_of(exact: StudyRecord, timed: StudyRecord, costs: CostsOf) -> tuple[list[FidelityPair], list[str]]:
    """The pairs of two studies, and what has none, each with the reason."""
    counted: dict[tuple[str, str], list[Comparison]] = {}
    for one in exact.result.comparisons:
        counted.setdefault((one.workload, one.treatment), []).append(one)
    pairs, left_out, changes = [], [], _changes(timed.study)
    for one in timed.result.comparisons:
        if one.unit != _TIME or _untouched(timed.study, one):
            continue
        alike = counted.get((one.workload, one.treatment), ())
        if alike and not any(each.metric == one.metric for each in alike):
            continue  # another clock's: the time on the wall beside the CPU's
        by_count, time = dict(_counts(one, alike, exact.study.margin)), _change_of(one)
        treatment = changes.get(one.treatment) or one.treatment
        if time and by_count:
            moved = costs(exact, one.workload, one.treatment)
            pairs.append(
                FidelityPair(
                    study=timed.study.name, exact_study=exact.id, workload=one.workload, metric=one.metric,
                    direction=one.direction, treatment=treatment, label=one.treatment, baseline=one.baseline,
                    time=time, exact=by_count, costs=moved,
                )
            )  # fmt: skip
        else:
            reason = next((each.reason for each in (one, *alike) if each.reason), "")
            reason = reason or "the other study has no number"
            left_out.append(f"{treatment}, {one.workload}, {one.metric}: {reason}")
    return pairs, left_out


def _change_of(one: Comparison) -> Change | None:
    """None where there is no ratio."""
    if one.ratio is None or one.ratio <= 0 or one.low is None or one.high is None:
        return None
    return Change(ratio=one.ratio, low=one.low, high=one.high, verdict=one.verdict)


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


def _counts(timed: Comparison, counted: Sequence[Comparison], margin: float) -> Iterable[tuple[str, Change]]:
    for one in counted:
        change = _change_of(one)
        if change is None or one.metric == STRING_BYTES.name:
            continue
        if one.metric == timed.metric and one.unit == _INSTRUCTIONS:
            yield _INSTRUCTIONS, change
            yield _WITH_BYTES, _with_bytes(one, change, counted, margin)
        elif one.unit == _CYCLES:
            yield one.metric, change


def _with_bytes(
    instructions: Comparison, change: Change, counted: Sequence[Comparison], margin: float
) -> Change:
    """Instructions, and a 32nd of one for each byte that string instructions worked on (`CycleModel`).

    The interval is as wide as that of the instructions.
    """
    of_bytes = next((each for each in counted if each.metric == STRING_BYTES.name), None)
    before, after = instructions.baseline_value, instructions.value
    if of_bytes is None or not before or not after:
        return change
    weight = CycleModel().string_byte
    ratio = (after + weight * (of_bytes.value or 0)) / (before + weight * (of_bytes.baseline_value or 0))
    low, high = ratio * change.low / change.ratio, ratio * change.high / change.ratio
    verdict = interval_verdict(low, high, instructions.direction, margin)
    return Change(ratio=ratio, low=low, high=high, verdict=verdict)
