"""One count of one thing: who counts verdicts says of what, and counts what the answer counts."""

import json
from datetime import UTC, datetime

import pytest
from tests.support.databases import Backend
from tests.support.report_records import FIVE, a_record
from tests.support.stored_results import fill

from ktrial.analysis.answer import answer
from ktrial.analysis.brief_results import brief_of
from ktrial.format.labels import VERDICTS
from ktrial.model.comparison import Comparison, Verdict, what_is_counted
from ktrial.model.machine import Activity
from ktrial.model.study import StudyRecord
from ktrial.model.workload import MODELLED_CYCLES, STRING_BYTES
from ktrial.report import study_html, study_markdown
from ktrial.report.study_summary import counted, verdict_counts
from ktrial.serve.live import Live
from ktrial.store.store import open_store

REASON = "the bytes that differ are worth 13 of 320 instructions: less than the margin of 1 %"


def with_rows_beside(record: StudyRecord) -> StudyRecord:
    """Each workload with bytes that are too few to count, though they are many more, and modelled cycles."""
    light = {"metric": STRING_BYTES.name, "unit": "bytes", "ratio": 2.8889, "low": 2.8, "high": 2.9}
    beside = [
        row.model_copy(update={**changes, "verdict": Verdict.EQUIVALENT, "reason": reason})
        for row in record.result.comparisons
        for changes, reason in ((light, REASON), ({"metric": MODELLED_CYCLES.name}, ""))
    ]
    rows = tuple(sorted((*record.result.comparisons, *beside), key=place_of))
    result = record.result.model_copy(
        update={"comparisons": rows, "answer": answer(rows, record.study.margin)}
    )
    return record.model_copy(update={"result": result})


def place_of(row: Comparison) -> str:
    return row.workload


def two_equivalent() -> StudyRecord:
    """Of three workloads one got worse, and two are equivalent."""
    return with_rows_beside(a_record(FIVE[:2], ("fork", "nqueens", "pipe")))


def test_the_answer_the_page_and_all_others_count_the_same_workloads() -> None:
    record = two_equivalent()
    assert dict(verdict_counts(record)) == {Verdict.WORSE: 2, Verdict.EQUIVALENT: 1}
    assert "2 of 3 workloads got worse" in record.result.answer
    assert "; 1 equivalent" in record.result.answer
    assert counted(record.result.comparisons) == "3 workloads"
    page = study_html(record)
    tally = page[page.index('<ul class="counts"') :].partition("</ul>")[0]
    assert "<li>3 workloads:</li>" in tally
    assert [tally.count(f"<b>{count}</b>") for count in (1, 2)] == [1, 1]
    assert "3 workloads: ✗ 2 worse · ≈ 1 equivalent" in study_markdown(record)
    brief = brief_of(record)
    assert (brief.counted, brief.verdicts) == ("3 workloads", dict(verdict_counts(record)))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([("fork", "ns", "b")], "1 workload"),
        ([("fork", "ns", "b"), ("pipe", "ns", "b")], "2 workloads"),
        ([("fork", "ns", "b"), ("fork", "faults", "b")], "2 metrics"),
        ([("fork", "ns", "b"), ("fork", "ns", "c")], "2 comparisons"),
    ],
)
def test_what_is_counted_is_named(rows: list[tuple[str, str, str]], words: str) -> None:
    assert what_is_counted(rows) == words


def test_what_runs_says_of_what_its_verdicts_are(backend: Backend) -> None:
    record = a_record(FIVE[:2], ("fork", "pipe"))
    with open_store(backend.location) as store:
        fill(store, record)
        (stored,) = store.studies()
        now = datetime.now(UTC)
        activity = Activity(
            key="run", host="lab", user="me", process=1, born="1", started=now, heard=now,
            silence_seconds=60.0, finished=6, planned=6,
        )  # fmt: skip
        store.tell_activity(stored.id, activity)
    live = Live(lambda: open_store(backend.location))
    (running,) = json.loads(live.text())["running"]
    live.close()
    assert running["counted"] == "2 workloads"
    assert sum(verdict["count"] for verdict in running["verdicts"]) == 2


def test_the_definition_of_equivalent_is_true_of_a_row_that_is_too_light() -> None:
    """Such a row shows +188.89 %: it is not inside the margin, and says why it does not matter."""
    meaning = VERDICTS[Verdict.EQUIVALENT].meaning
    assert "or its row says why a larger one is too little to count" in meaning
    light = next(row for row in two_equivalent().result.comparisons if row.metric == STRING_BYTES.name)
    assert (light.verdict, bool(light.reason)) == (Verdict.EQUIVALENT, True)
