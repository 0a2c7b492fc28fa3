"""Any two treatments of a study, compared as a study of just these two would compare them."""

from collections.abc import Sequence
from dataclasses import replace

from ktrial.analysis.result import record_of
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.design import Design, Treatment
from ktrial.model.plan import treatments
from ktrial.model.study import Study
from ktrial.model.study_record import StudyRecord
from ktrial.model.trial import Trial
from ktrial.store import Store, StoredStudy

NOT_JUDGED = (
    "chosen afterwards: in real time a study judges its treatments against its baseline only, since of many "
    "pairs some differ by chance"
)


def pair_record(
    store: Store, stored: StoredStudy, trials: Sequence[Trial], before: Treatment, after: Treatment
) -> StudyRecord:
    """The record of the two treatments, `before` as the baseline.

    Exact numbers are judged. Those in real time are where `before` is the study's baseline, with the verdicts
    of the study, which correct for all of its treatments; others have values and no verdict.
    Raises StoreError.
    """
    own = tuple(one for one in trials if one.planned.treatment.key in {before.key, after.key})
    record = record_of(store, replace(stored, study=_of_two(stored.study, before, after)), own)
    if stored.study.timing is None:
        return record
    if before == treatments(stored.study)[0]:
        whole = record_of(store, stored, tuple(trials)).result
        comparisons = tuple(one for one in whole.comparisons if one.treatment == after.label)
    else:
        comparisons = tuple(map(_unjudged, record.result.comparisons))
    changes = {"comparisons": comparisons, "answer": "", "variability": ()}
    return record.model_copy(update={"result": record.result.model_copy(update=changes)})


def _of_two(study: Study, before: Treatment, after: Treatment) -> Study:
    factors = tuple(one.model_copy(update={"baseline": before.levels[one.name]}) for one in study.factors)
    return study.model_copy(
        update={"factors": factors, "design": Design.LISTED, "listed": (dict(after.levels),)}
    )


def _unjudged(one: Comparison) -> Comparison:
    nothing = {"ratio": None, "low": None, "high": None, "verdict": Verdict.INCONCLUSIVE}
    reason = one.reason if None in {one.baseline_value, one.value} else NOT_JUDGED
    return one.model_copy(update={**nothing, "reason": reason})
