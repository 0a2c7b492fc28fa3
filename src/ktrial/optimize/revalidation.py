"""A search's answer measured again: a study of two treatments, what was there before and what was found."""

import secrets
from collections.abc import Sequence
from enum import StrEnum

from ktrial.analysis import interim
from ktrial.analysis.result import metrics_of
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.design import Design
from ktrial.model.plan import plan
from ktrial.model.study import Study, Timing
from ktrial.model.trial import Trial
from ktrial.model.tuning import Configuration, Goal, Space
from ktrial.optimize.treatments import study_of
from ktrial.store import Store
from ktrial.studyfile.errors import NothingTuned

_EXACT = ("exact", "exact-parallel")


class RevalidationOutcome(StrEnum):
    """What came of measuring again."""

    YES = "still holds"
    SMALLER = "is smaller than it was"
    NO = "holds no more"
    UNKNOWN = "is undecided"


def revalidation_of(study: Study, space: Space, answer: Configuration, *, blocks: int) -> Study:
    """The study. Every setting of the answer is written in both treatments: the old value in the baseline.

    So it says the same where the answer is installed already. Raises NothingTuned.
    """
    if forgotten := [name for name in answer if space[name].back]:
        problem = f"{forgotten[0]} was 0, and is that only where the same limit is set in another unit"
        raise NothingTuned(study=study.name, problem=problem)
    two = study_of(study, space, answer)
    goal = study.search.goal if study.search else None
    workload = goal.workload if goal else ""
    timing = None
    if study.machine.kind not in _EXACT:
        primary = tuple(f"{workload}: {one.metric}" for one in goal.objectives) if goal else ()
        timing = Timing(blocks=blocks, primary=primary)
    levels = {factor.name: factor.levels[1] for factor in two.factors}
    return two.model_copy(
        update={
            "name": f"{study.name}-revalidation",
            "question": f"Does the answer of {study.name} still hold?",
            "design": Design.LISTED,
            "listed": (levels,),
            "timing": timing,
            "margin": goal.margin if goal else study.margin,
        }
    )


def next_revalidation(store: Store, study: Study) -> Study:
    """The newest stored one like this that was interrupted; otherwise this one, with a seed of its own."""
    for each in reversed(store.studies()):
        if each.study == study.model_copy(update={"seed": each.study.seed}):
            trials = store.trials(each.id, counted=False)
            if _goes_on(each.study, trials):
                return each.study
    return study.model_copy(update={"seed": secrets.randbelow(2**31)})


def _goes_on(study: Study, trials: Sequence[Trial]) -> bool:
    if study.timing is None:
        return len(trials) < len(plan(study).trials)
    return interim.blocks_wanted(study, trials, metrics_of(study, trials)) is not None


def judged(before: Comparison, now: Sequence[Comparison], goal: Goal) -> RevalidationOutcome:
    """What the new comparisons say of the confirmed one: better again, within the goal's guards."""
    if any(
        guard.metric == one.metric and one.value is not None and not guard.keeps(one.value)
        for guard in goal.guards
        for one in now
    ):
        return RevalidationOutcome.NO
    same = next((one for one in now if (one.workload, one.metric) == (before.workload, before.metric)), None)
    if same is None or same.verdict is Verdict.INCONCLUSIVE:
        return RevalidationOutcome.UNKNOWN
    if same.verdict is not Verdict.BETTER:
        return RevalidationOutcome.NO
    return RevalidationOutcome.SMALLER if _smaller(before, same) else RevalidationOutcome.YES


def _smaller(before: Comparison, now: Comparison) -> bool:
    """Whether the new interval lies wholly on the side of the smaller gain."""
    if before.low is None or before.high is None or now.low is None or now.high is None:
        return False
    higher = before.direction.value == "higher"
    return now.high < before.low if higher else now.low > before.high
