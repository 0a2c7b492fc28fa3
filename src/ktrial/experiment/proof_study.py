"""The study behind a proof: two treatments, and each with one thing, or several, taken back."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ktrial.analysis.attribution.target import AttributionQuestion
from ktrial.model.design import Design, Factor, FactorKind, Treatment
from ktrial.model.kernel import BuildChange
from ktrial.model.levels import AS_IT_IS, LevelValue
from ktrial.model.proof import Candidate, CauseKind, ProofSide
from ktrial.model.study import Study

_PREFIX = "explain-"
_KINDS = {
    CauseKind.SETTING: FactorKind.SETTING,
    CauseKind.FEATURE: FactorKind.SETTING,
    CauseKind.BOOT: FactorKind.BOOT,
    CauseKind.MODULE: FactorKind.MODULE,
    CauseKind.OPTION: FactorKind.KCONFIG,
}
CONTROL = Candidate(
    name="control",
    kind=CauseKind.SETTING,
    target="/proc/sys/kernel/printk_ratelimit_burst",
    before="10",
    after="10",
    on_to="10",
    on_from="10",
)
"""A write of the value that every kernel has by itself (since 2.6): what a write alone does to the count."""
BOOT_CONTROL = Candidate(
    name="control at boot",
    kind=CauseKind.BOOT,
    target="ktrial.control",
    before="(not given)",
    after="(not given)",
    on_to="1",
    on_from="1",
)
"""A parameter of a module that does not exist: kernels leave it alone."""


@dataclass(frozen=True)
class Reverting:
    """One treatment more: on this side, these things are as on the other."""

    side: ProofSide
    changed: tuple[Candidate, ...] = ()


def proof_study(asked: AttributionQuestion, perturbations: int, rows: Sequence[Reverting]) -> Study:
    """The study of the two treatments (the first is the baseline) and of those with something taken back."""
    study = asked.study
    own = tuple(
        factor.model_copy(update={"baseline": asked.before.levels[factor.name]}) for factor in study.factors
    )
    changed = {one.name: one for row in rows for one in row.changed if one.kind is not CauseKind.LEVEL}
    factors = (*own, *(_factor(one) for one in changed.values()))
    every = [Reverting(ProofSide.TO), *rows]
    old, new = asked.before.label, asked.after.label
    return study.model_copy(
        update={
            "name": _PREFIX + re.sub(r"[^A-Za-z0-9._-]+", "-", asked.workload).strip("-."),
            "question": f"What makes {asked.workload} differ between {old} and {new}?",
            "factors": factors,
            "workloads": (asked.use,),
            "perturbations": perturbations,
            "design": Design.LISTED,
            "listed": tuple(dict(_levels(asked, row)) for row in every),
            "search": None,
        }
    )


def is_of_proof(study: Study) -> bool:
    """Whether the study is one that a proof has made, as far as its name and its design tell."""
    return study.name.startswith(_PREFIX) and study.design is Design.LISTED


def treatment_of(asked: AttributionQuestion, study: Study, row: Reverting) -> Treatment:
    """The treatment of the study that the row stands for."""
    given = _levels(asked, row)
    return Treatment(levels={one.name: given.get(one.name, one.baseline) for one in study.factors})


def _levels(asked: AttributionQuestion, row: Reverting) -> Mapping[str, LevelValue]:
    """Factor → level, where that is not the baseline's."""
    own, other = (asked.after, asked.before) if row.side is ProofSide.TO else (asked.before, asked.after)
    levels: dict[str, LevelValue] = dict(own.levels)
    for one in row.changed:
        if one.kind is CauseKind.LEVEL:
            levels[one.target] = other.levels[one.target]
        else:
            levels[one.name] = one.value_on(row.side) or ""
    return levels


def _factor(one: Candidate) -> Factor:
    values = dict.fromkeys(value for value in (one.on_to, one.on_from) if value is not None)
    changes = {value: BuildChange(options={one.target: value}) for value in values}
    return Factor(
        name=one.name,
        kind=_KINDS[one.kind],
        levels=(AS_IT_IS, *values),
        baseline=AS_IT_IS,
        target=one.target,
        changes=changes if one.kind is CauseKind.OPTION else {},
    )


def boots_of_their_own(rows: Iterable[Reverting]) -> int:
    """How many of the rows need a system that is booted for them."""
    own = {CauseKind.BOOT, CauseKind.MODULE, CauseKind.OPTION, CauseKind.LEVEL}
    return sum(any(one.kind in own for one in row.changed) for row in rows)
