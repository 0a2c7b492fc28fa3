"""What was measured by taking causes back, in every kind of report; what was not is suspected."""

import io
from pathlib import Path

import html5lib
import pytest
from rich.console import Console
from tests.support.profiles import with_calls
from tests.support.report_records import a_counted_record, explained_by
from tests.unit.report.test_flame_graph import AFTER, BEFORE

from ktrial import report
from ktrial.analysis.result import load_record
from ktrial.cli.render.study_result import print_whys
from ktrial.model.attribution import (
    Candidate,
    CauseKind,
    Governed,
    Proof,
    ProofSide,
    Status,
    Together,
    Tried,
    ValueDifference,
)
from ktrial.model.study import StudyRecord
from ktrial.report.attribution import Why, explained
from ktrial.report.csv_and_json import whys_as_json
from ktrial.report.proof import causes_table, closing, headline
from ktrial.store.store import open_store

READ_AHEAD = "/sys/block/ram0/queue/read_ahead_kb"
RATIO = "/proc/sys/vm/dirty_ratio"


def a_candidate(target: str) -> Candidate:
    name = target.rpartition("/")[2]
    return Candidate(
        name=name, kind=CauseKind.SETTING, target=target, before="128", after="8192", on_to="128", on_from="9"
    )


def a_proof(workload: str, before: str, after: str) -> Proof:
    """A quarter of 1,000 instructions is read-ahead's; dirty_ratio reaches nothing."""
    effects = (250.0, 240.0, 260.0)
    return Proof(
        workload=workload,
        before=before,
        after=after,
        values_before=(5000, 5000, 5000),
        values_after=(6000, 6000, 6000),
        tested=(
            Tried(
                candidate=a_candidate(READ_AHEAD), side=ProofSide.TO, status=Status.MEASURED, effects=effects
            ),
            Tried(
                candidate=a_candidate(RATIO),
                side=ProofSide.TO,
                status=Status.NOTHING,
                effects=(0.0, 0.0, 0.0),
            ),
        ),
        together=Together(names=("read_ahead_kb",), effects=effects),
        studies=("explain-fork (number 2)",),
    )


@pytest.fixture(scope="module")
def record() -> StudyRecord:
    """With a proof of its first comparison, and one between two treatments that it does not compare."""
    counted = a_counted_record()
    comparison = counted.result.comparisons[0]
    proofs = (
        a_proof(comparison.workload, comparison.baseline, comparison.treatment),
        a_proof(comparison.workload, comparison.treatment, "debian:7.2"),
    )
    return counted.model_copy(update={"proofs": proofs})


@pytest.fixture(scope="module")
def whys(record: StudyRecord) -> tuple[Why, ...]:
    before, after = with_calls(BEFORE, kernel="debian:6.1"), with_calls(AFTER, kernel="debian:6.12")
    why = explained_by(before, after)
    governs = (Governed(metric="average read size", before=128, after=2340),)
    values = (
        ValueDifference(path=READ_AHEAD, before="128", after="8192", governs=governs),
        ValueDifference(path="/proc/sys/vm/swappiness", before="60", after="10", governs=governs),
    )
    around = why.differences.model_copy(update={"values": values})
    why = why.model_copy(update={"differences": around})
    return tuple(
        explained([comparison], why, proofs=record.proofs) for comparison in record.result.comparisons
    )


def test_the_page_says_measured_with_the_share_and_suspected_of_the_rest(
    record: StudyRecord, whys: tuple[Why, ...]
) -> None:
    page = report.study_html(record, whys, whole=True)
    html5lib.HTMLParser(strict=True).parse(page)
    first = page[page.index('id="why-1"') : page.index('id="why-2"')]
    assert "causes measured" in first
    measured, suspected = first.index("Causes, measured"), first.index("Suspected causes, not measured")
    assert "25.0" in first[measured:suspected]
    assert "24.0 to 26.0" in first
    assert (
        "% of the difference (+750 instructions per operation) comes from nothing that was changed back"
        in first
    )
    end = first.index("</dd>", suspected)
    assert "read_ahead_kb" not in first[suspected:end], "it is measured"
    assert "swappiness" in first[suspected:end], "it is not"
    second = page[page.index('id="why-2"') : page.index("Measured causes of other differences")]
    assert "causes measured" not in second
    assert "read_ahead_kb" in second[second.index("Suspected causes") :]


@pytest.mark.nightly
def test_a_proof_of_treatments_that_are_not_compared_has_its_place(
    record: StudyRecord, whys: tuple[Why, ...]
) -> None:
    page = report.study_html(record, whys, whole=True)
    section = page[page.index("Measured causes of other differences") :]
    assert "debian:7.2" in section
    assert section.count('class="proof"') == 1
    html5lib.HTMLParser(strict=True).parse(report.study_html(record, whys))


def test_the_terminal_json_and_markdown_say_the_same(record: StudyRecord, whys: tuple[Why, ...]) -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    print_whys(whys, console)
    text = console.export_text().replace("\u00a0", " ")
    assert "measured by changing it back: read_ahead_kb +250 (25.0 %); not explained +750 (75.0 %)" in text
    proof = whys_as_json(whys)[0]["proof"]
    assert [(cause["name"], cause["share"]) for cause in proof["causes"]] == [
        ("read_ahead_kb", 0.25),
        ("dirty_ratio", 0.0),
    ]
    assert whys_as_json(whys)[1]["proof"] is None
    document = report.study_markdown(record, whys)
    assert "causes, measured: shares of +1,000 instructions per operation (the median of 3 pert" in document


def test_shares_add_up_to_the_whole_difference() -> None:
    """Where several things have a part: all of them together, and what remains."""
    (cause, nothing) = (proof := a_proof("fork", "debian:6.1", "debian:6.12")).tested
    again = cause.model_copy(update={"effects": (100.0, 100.0, 100.0)})
    both = Together(names=("read_ahead_kb", "dirty_ratio"), effects=(340.0, 330.0, 350.0))
    shown = causes_table(proof.model_copy(update={"tested": (cause, again, nothing), "together": both}))
    places = {column.key: place for place, column in enumerate(shown.columns)}
    share = shown.columns[places["share"]]
    assert share.title == "of the difference, %"
    rows = [(row.cells[0].text, row.cells[places["effect"]].text) for row in shown.rows[2:]]
    assert rows == [("all together", "+340"), ("not explained", "+660"), ("the difference", "+1,000")]
    shares = [float(row.cells[places["share"]].text) for row in shown.rows[2:]]
    assert sum(shares[:-1]) == shares[-1] == 100.0
    single = proof.model_copy(update={"values_before": (5000,), "values_after": (6000,)})
    assert headline(single).endswith("(one perturbation: no interval)")


def test_what_makes_the_difference_smaller_is_no_cause_and_says_so() -> None:
    """PLACE_LAG has −354 % of what `git log` saves from 6.1 to 6.12, with nothing else in the table."""
    proof = a_proof("git", "debian:6.1", "debian:6.12")
    (cause, nothing) = proof.tested
    against = cause.model_copy(
        update={"candidate": a_candidate("PLACE_LAG"), "effects": (-900.0, -800.0, -990.0)}
    )
    alone = proof.model_copy(update={"tested": (against, nothing), "together": None})
    text = " ".join(closing(alone))
    assert "Nothing that was changed back makes the difference smaller." in text
    assert "A negative share works against the difference, which is larger without it: PLACE_LAG." in text
    assert "cause was measured" not in text
    both = " ".join(closing(proof.model_copy(update={"tested": (cause, against)})))
    assert "One cause was measured: read_ahead_kb." in both
    assert "A negative share works against the difference, which is larger without it: PLACE_LAG." in both
    neither = " ".join(closing(proof.model_copy(update={"tested": (nothing,), "together": None})))
    assert "Nothing that was changed back makes a difference here." in neither
    assert "negative" not in neither


def test_a_stored_proof_is_part_of_the_study_s_record(record: StudyRecord, tmp_path: Path) -> None:
    with open_store(tmp_path / "store.db") as store:
        number = store.study(record.study)
        for proof in record.proofs:
            store.add_proof(number, proof)
        assert load_record(store, number).proofs == record.proofs
        newer = record.proofs[0].model_copy(update={"control": 3.0})
        store.add_proof(number, newer)
        assert set(load_record(store, number).proofs) == {newer, record.proofs[1]}
