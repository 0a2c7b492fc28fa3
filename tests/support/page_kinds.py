"""Every kind of page that ktrial makes, of small and of large studies, for tests of how pages look."""

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import cycle

from tests.support.grown_studies import growing_study, trials_of
from tests.support.report_records import (
    FIVE,
    VALUES,
    a_counted_record,
    a_factorial,
    a_matrix,
    a_record,
    a_single_comparison,
    a_study_with_failures,
    a_study_without_comparisons,
    whys_for,
)
from tests.support.tuning import a_result
from tests.support.tuning import a_study as a_search
from tests.unit.report.test_report_proofs import a_proof

from ktrial import report
from ktrial.analysis.result import result
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.study import StudyRecord
from ktrial.report.tuning import tuning_page

CHANGES = (1.1378, 2.8889, 0.1184, 1.0102, 0.9669, 1.0)
"""What no axis has room for beside a margin of 1 % that is to be seen."""


def a_grown_record(treatments: int, workloads: int, *, timed: bool = False) -> StudyRecord:
    """Of so many treatments beside the baseline, with numbers from their own seeds, in ns."""
    study = growing_study(treatments + 1, workloads=workloads, timed=timed, blocks=6)
    trials = tuple(trials_of(study, environments=timed))
    return StudyRecord(
        id=7,
        study=study,
        study_digest="5e" * 32,
        created=datetime(2026, 11, 21, 9, 29, tzinfo=UTC),
        planned=len(trials),
        trials=trials,
        result=result(study, trials, lambda _use: ()),
    )


def wide_ranging(record: StudyRecord) -> StudyRecord:
    """The same with changes of a few per cent beside such as no axis has room for, and bytes beside them."""
    changes = cycle(CHANGES)
    changed = tuple(_by(comparison, next(changes)) for comparison in record.result.comparisons)
    beside = tuple(
        _by(comparison, 6.0).model_copy(update={"metric": "string-bytes", "unit": "bytes"})
        for comparison in record.result.comparisons
    )
    both = record.result.model_copy(update={"comparisons": (*changed, *beside)})
    return record.model_copy(update={"result": both})


def _by(comparison: Comparison, ratio: float) -> Comparison:
    verdict = Verdict.EQUIVALENT if abs(ratio - 1) < 0.01 else Verdict.WORSE if ratio > 1 else Verdict.BETTER
    value = None if comparison.baseline_value is None else comparison.baseline_value * ratio
    ends = {"low": ratio * 0.97, "high": ratio * 1.04}
    return comparison.model_copy(update={"ratio": ratio, "value": value, "verdict": verdict, **ends})


def a_proved_record() -> StudyRecord:
    """With a proof of its first comparison, and one between two treatments that it does not compare."""
    counted = a_counted_record()
    comparison = counted.result.comparisons[0]
    proofs = (
        a_proof(comparison.workload, comparison.baseline, comparison.treatment),
        a_proof(comparison.workload, comparison.treatment, "debian:7.2"),
    )
    return counted.model_copy(update={"proofs": proofs})


def a_tuning() -> str:
    tuned = a_result()
    return tuning_page(a_search(tuned), tuned)


def an_explanation() -> str:
    record = a_proved_record()
    return report.study_html(record, whys_for(record), whole=True)


Page = Callable[[], str]


def _page_of(record: Callable[[], StudyRecord]) -> Page:
    return lambda: report.study_html(record())


PAGES: dict[str, Page] = {
    "one workload": _page_of(a_single_comparison),
    "several workloads": _page_of(lambda: wide_ranging(a_record())),
    "4 treatments": _page_of(lambda: wide_ranging(a_record(FIVE, tuple(VALUES)))),
    "in real time": _page_of(lambda: a_grown_record(1, 3, timed=True)),
    "two factors": _page_of(a_factorial),
    "failures": _page_of(a_study_with_failures),
    "nothing compared": _page_of(a_study_without_comparisons),
    "an explanation": an_explanation,
    "a search": a_tuning,
}
"""Looked at after each change."""

MORE_PAGES: dict[str, Page] = {
    "a matrix": _page_of(a_matrix),
    "60 workloads": _page_of(lambda: a_grown_record(1, 60)),
    "40 treatments": _page_of(lambda: a_grown_record(40, 1)),
    "4 treatments, 60 workloads": _page_of(lambda: a_grown_record(4, 60)),
    "40 treatments, 6 workloads": _page_of(lambda: wide_ranging(a_grown_record(40, 6))),
    "40 treatments, 60 workloads": _page_of(lambda: a_grown_record(40, 60)),
    "several treatments in real time": _page_of(lambda: a_grown_record(4, 3, timed=True)),
}
"""Looked at in the night as well."""
