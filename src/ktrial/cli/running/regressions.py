"""What commands keep of regressions: those that a check has found, and those of histories, with causes."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from ktrial.analysis.errors import AnalysisUsageError
from ktrial.analysis.history.regressions import (
    all_regressions,
    keep,
    of_check,
    of_same_check,
    regressions,
    seen_again,
)
from ktrial.analysis.history.series import history
from ktrial.analysis.history.stored_numbers import stored_numbers
from ktrial.model.regression import TrackedRegression
from ktrial.model.regression_check import CheckedMetric, Decision, RegressionCheck
from ktrial.model.workload import STRING_BYTES, Mode
from ktrial.store.errors import StoreError
from ktrial.store.store import Store

if TYPE_CHECKING:
    from ktrial.model.study import StudyRecord

_MOST_NAMED = 5


def record_check(store: Store, check: RegressionCheck, by: str) -> RegressionCheck:
    """Keep the regressions that the check has found or no more sees; its rows have them. Raises StoreError.

    `by`: the command.
    """
    if check.kernels is None:
        return check
    stored = store.regressions()
    beyond = {row.comparison.workload for row in check.rows if row.decision is Decision.BEYOND}
    labels = sorted(
        beyond | ({old.workload for _, old in stored} & {row.comparison.workload for row in check.rows})
    )
    if not labels:
        return check
    numbers = stored_numbers(store, leave_out=True)
    histories = [history(numbers, label) for label in labels]
    tracked = regressions(histories, stored)
    rows = [_recorded(store, row, tracked, check, by) for row in check.rows]
    # What became of them, with what was just measured.
    by_id = {item.regression.id: item for item in regressions(histories, store.regressions())}
    rows = [
        replace(row, regression=by_id.get(row.regression.regression.id, row.regression))
        if row.regression
        else row
        for row in rows
    ]
    return replace(check, rows=tuple(rows))


def _recorded(
    store: Store, row: CheckedMetric, tracked: Sequence[TrackedRegression], check: RegressionCheck, by: str
) -> CheckedMetric:
    """The row with its regression: a new one, one that is seen again, or one that is gone."""
    assert check.kernels, "who calls it has looked"
    since, version = check.kernels
    is_beyond = row.decision is Decision.BEYOND
    if since.digest == version.digest or not (is_beyond or row.decision in _NO_MORE):
        return row
    old = of_same_check(tracked, row.comparison, since, version, row.decision)
    if old is None and not is_beyond:
        return row
    if old is None:
        number, regression = check.study_id, of_check(row.comparison, since, version, by)
    else:
        number, has_it = old.study_id, row.decision is not Decision.WITHIN
        regression = seen_again(old.regression, row.comparison, since, version, has_it=has_it)
    if row.explanation and not regression.cause:
        regression = regression.model_copy(update={"cause": _net_of(row)})
    if old is None or not old.stored or old.regression != regression:
        store.add_regression(number, regression)
    return replace(
        row,
        regression=TrackedRegression(
            regression=regression, study_id=number, sightings=regression.sightings, stored=True
        ),
    )


_NO_MORE = frozenset({Decision.ACCEPTED, Decision.WITHIN})


def _net_of(row: CheckedMetric) -> str:
    from ktrial.report.attribution import net_sentence_of_profiles

    if row.explanation is None or row.profiles is None or row.comparison.metric == STRING_BYTES.name:
        return ""
    return net_sentence_of_profiles(row.explanation, row.profiles)


def remember(store: Store, tracked: Iterable[TrackedRegression]) -> list[TrackedRegression]:
    """Keep regressions of histories, each with its cause, so that they keep their ids; where the store takes
    nothing, they are as they were.
    """
    remembered = []
    for item in tracked:
        if not item.stored:
            cause = cause_of(store, item)
            regression = item.regression.model_copy(update={"cause": cause, "sightings": item.sightings[:1]})
            with suppress(StoreError):
                item = keep(store, item, regression)
        remembered.append(item)
    return remembered


def cause_of(store: Store, tracked: TrackedRegression) -> str:
    """The net change of the call tree in words, where one study counted both kernels; else empty."""
    from ktrial.cli.running.reports import explain
    from ktrial.report.attribution import explained, net_sentence

    if tracked.regression.mode is not Mode.EXACT_PLUGIN:
        return ""
    try:
        record = _record_of_both(store, tracked)
        if record is None:
            return ""
        comparisons = [
            comparison
            for comparison in record.result.comparisons
            if comparison.workload == tracked.regression.workload
        ]
        attributions = list(explain(store, record, comparisons[:1]))
    except StoreError:
        return ""
    if not (attributions and attributions[0]):
        return ""
    return net_sentence(explained(comparisons, attributions[0], 0))


def _record_of_both(store: Store, tracked: TrackedRegression) -> "StudyRecord | None":
    from ktrial.analysis.result import pair_record
    from ktrial.model.study import treatments

    stored = store.find(tracked.study_id)
    trials = store.trials(tracked.study_id, counted=False)
    by_kernel = {
        (trial.provenance.kernel, trial.provenance.kernel_digest): trial.planned.treatment for trial in trials
    }
    regression = tracked.regression
    before, after = (
        by_kernel.get((kernel.name, kernel.digest)) for kernel in (regression.since, regression.version)
    )
    if before is None or after is None or len(treatments(stored.study)) < 2:
        return None
    return pair_record(store, stored, trials, before, after)


def find_regression(store: Store, text: str) -> TrackedRegression:
    """The regression with this id, or the beginning of one. Raises AnalysisUsageError, StoreError."""
    from ktrial.cli.console import say

    every = all_regressions(stored_numbers(store, say, leave_out=True))
    matching = [item for item in every if item.regression.id.startswith(text.lower())] if text else []
    if len(matching) == 1:
        return remember(store, matching)[0]
    ids = ", ".join(item.regression.id for item in (matching or every)[:_MOST_NAMED])
    if matching:
        problem = f"{len(matching)} regressions begin with {text}: {ids}."
        raise AnalysisUsageError(problem, hint="write it whole")
    raise AnalysisUsageError(
        f"There is no regression {text} in store {store.name}.",
        hint=f"ktrial history lists them: {ids}" if ids else "it has none; ktrial history lists them",
    )
