"""What a search found, measured again: a study of two treatments, what was there before and what was found.

That is its answer; or, of a search that ended with 'no gain that this budget can show', the candidate which
its own fresh runs left undecided: more runs may show what it brings. The runs of the search count for nothing
here, so that the candidate's luck in them does not either.
"""

import secrets
from collections.abc import Sequence
from enum import StrEnum

from ktrial.analysis import interim
from ktrial.analysis.result import metrics_of
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.design import Design
from ktrial.model.study import Study, Timing, plan
from ktrial.model.trial import Trial
from ktrial.model.tuning import Configuration, Goal, Tuned
from ktrial.optimize.trial_evaluator import study_of
from ktrial.store.store import Store
from ktrial.studyfile.errors import NothingTuned

_EXACT = ("exact", "exact-parallel")


class RevalidationOutcome(StrEnum):
    """What came of measuring again: of an answer, or of a candidate."""

    YES = "still holds"
    SMALLER = "is smaller than it was"
    NO = "holds no more"
    UNKNOWN = "is undecided"
    GAIN = "brings a gain"
    NO_GAIN = "brings no gain"

    @property
    def good(self) -> bool:
        """Whether the settings are better than those of before."""
        return self in (RevalidationOutcome.YES, RevalidationOutcome.SMALLER, RevalidationOutcome.GAIN)

    @property
    def bad(self) -> bool:
        """Whether they are known not to be."""
        return self in (RevalidationOutcome.NO, RevalidationOutcome.NO_GAIN)


_OF_CANDIDATE = {
    RevalidationOutcome.YES: RevalidationOutcome.GAIN,
    RevalidationOutcome.SMALLER: RevalidationOutcome.GAIN,
    RevalidationOutcome.NO: RevalidationOutcome.NO_GAIN,
}


def measured_again(study: Study, tuned: Tuned) -> Configuration:
    """The answer, or else the candidate that is undecided. Raises NothingTuned where there is neither."""
    again = tuned.confirmed or tuned.undecided
    if not again or not tuned.comparisons:
        raise NothingTuned(study.name, "no settings were confirmed as better, and none promised a gain")
    return again


def revalidation_of(study: Study, tuned: Tuned, *, blocks: int) -> Study:
    """The study. Every setting of the answer is written in both treatments: the old value in the baseline.

    So it says the same where the answer is installed already. Raises NothingTuned.
    """
    space, answer = tuned.space, measured_again(study, tuned)
    if forgotten := [name for name in answer if space[name].back]:
        problem = f"{forgotten[0]} was 0, and is that only where the same limit is set in another unit"
        raise NothingTuned(study.name, problem)
    two = study_of(study, space, answer)
    goal = study.search.goal if study.search else None
    workload = goal.workload if goal else ""
    timing = None
    if study.machine.kind not in _EXACT:
        primary = tuple(f"{workload}: {objective.metric}" for objective in goal.objectives) if goal else ()
        timing = Timing(blocks=blocks, primary=primary)
    levels = {factor.name: factor.levels[1] for factor in two.factors}
    return two.model_copy(
        update={
            "name": f"{study.name}-revalidation",
            "question": f"Does the answer of {study.name} still hold?"
            if tuned.confirmed
            else f"Does the candidate of {study.name} bring a gain?",
            "design": Design.LISTED,
            "listed": (levels,),
            "timing": timing,
            "margin": goal.margin if goal else study.margin,
        }
    )


def next_revalidation(store: Store, study: Study) -> Study:
    """The newest stored one like this that was interrupted; otherwise this one, with a seed of its own."""
    for earlier in reversed(store.studies()):
        if earlier.study == study.model_copy(update={"seed": earlier.study.seed}):
            trials = store.trials(earlier.id, counted=False)
            if _goes_on(earlier.study, trials):
                return earlier.study
    return study.model_copy(update={"seed": secrets.randbelow(2**31)})


def _goes_on(study: Study, trials: Sequence[Trial]) -> bool:
    if study.timing is None:
        return len(trials) < len(plan(study).trials)
    return interim.InterimData(study, trials).blocks_wanted(metrics_of(study, trials)) is not None


def judged(tuned: Tuned, comparisons: Sequence[Comparison]) -> RevalidationOutcome:
    """What the new comparisons say of the answer, or of the candidate: better, within the goal's guards."""
    outcome = _judged(tuned.comparisons[0], comparisons, tuned.goal)
    return outcome if tuned.confirmed else _OF_CANDIDATE.get(outcome, outcome)


def shown_again(study: Study, tuned: Tuned, again: Sequence[Comparison]) -> Tuned:
    """The search's result with what the new comparisons show of its objectives in the place of its own.

    For an answer's files. The own effect of a knob that is all of the answer is what is shown as well.
    """
    metrics = [objective.metric for objective in tuned.goal.objectives]
    objectives = [
        comparison
        for comparison in again
        if (comparison.workload, comparison.metric) in _objectives(tuned.goal)
    ]
    comparisons = tuple(sorted(objectives, key=lambda comparison: metrics.index(comparison.metric)))
    answer, effects = measured_again(study, tuned), tuned.kept
    if len(answer) == 1 and comparisons and comparisons[0].ratio is not None:
        comparison = comparisons[0]
        effects = tuple(
            effect.model_copy(
                update={"ratio": comparison.ratio, "low": comparison.low, "high": comparison.high}
            )
            for effect in effects
        )
    return tuned.model_copy(update={"confirmed": answer, "comparisons": comparisons, "kept": effects})


def _objectives(goal: Goal) -> set[tuple[str, str]]:
    return {(goal.workload, objective.metric) for objective in goal.objectives}


def _judged(before: Comparison, comparisons: Sequence[Comparison], goal: Goal) -> RevalidationOutcome:
    if any(
        guard.metric == comparison.metric
        and comparison.value is not None
        and not guard.keeps(comparison.value)
        for guard in goal.guards
        for comparison in comparisons
    ):
        return RevalidationOutcome.NO
    same = next(
        (
            comparison
            for comparison in comparisons
            if (comparison.workload, comparison.metric) == (before.workload, before.metric)
        ),
        None,
    )
    if same is None or same.verdict is Verdict.INCONCLUSIVE:
        return RevalidationOutcome.UNKNOWN
    if same.verdict is not Verdict.BETTER:
        return RevalidationOutcome.NO
    return RevalidationOutcome.SMALLER if _smaller(before, same) else RevalidationOutcome.YES


def _smaller(before: Comparison, after: Comparison) -> bool:
    """Whether the new interval lies wholly on the side of the smaller gain."""
    if before.low is None or before.high is None or after.low is None or after.high is None:
        return False
    higher = before.direction.value == "higher"
    return after.high < before.low if higher else after.low > before.high
