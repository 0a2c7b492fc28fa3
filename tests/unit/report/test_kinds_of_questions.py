"""A page answers the question that its study asks: none has a sentence of another kind of question."""

import re
from pathlib import Path

import pytest
from tests.support.making import a_sample, a_trial
from tests.support.page_kinds import a_grown_record
from tests.support.report_records import FIVE, a_record
from tests.support.stored_results import a_store
from tests.support.tuning import a_result
from tests.support.tuning import a_study as a_search
from tests.unit.report.test_report_scaling import a_record as a_scaling_record

from ktrial import report
from ktrial.analysis.result import load_record
from ktrial.model.design import PlannedTrial, Treatment
from ktrial.model.study import perturbation
from ktrial.model.tuning import Importance, Tuned
from ktrial.report import study_summary
from ktrial.report.site.site import build
from ktrial.report.tuning import acting, tuning_markdown, tuning_page
from ktrial.store.store import Store, open_store

_TAGS = re.compile(r"<(style|script|pre)\b.*?</\1>|<[^>]*>", re.DOTALL)


def words_of(page: str) -> str:
    """What a page says, without its study file and its scripts."""
    return " ".join(_TAGS.sub(" ", page).split())


def a_search_in(store: Store, tuned: Tuned | None) -> int:
    """A search with one run, and with its answer where it has ended."""
    number = store.study(a_search(a_result()))
    plan = PlannedTrial(order=0, block=0, treatment=Treatment(levels={}), perturbation=perturbation(1, 0))
    store.add_trial(number, a_trial(plan, samples=(a_sample("bench", 100.0, metric="rps", unit="1/s"),)))
    if tuned:
        store.add_answer(number, tuned)
    return number


@pytest.mark.parametrize("full", [None, 0])
@pytest.mark.parametrize("tuned", [a_result(), None])
def test_a_site_says_of_a_search_what_it_came_to(
    tuned: Tuned | None, full: int | None, tmp_path: Path
) -> None:
    with open_store(str(tmp_path / "s.db")) as store:
        number = a_search_in(store, tuned)
        build(store, tmp_path / "site", full=full, notes=tmp_path / "notes")
        record = load_record(store, number)
    answer = tuned.answer if tuned else "The search has not ended: 1 run so far."
    assert record.result.answer.replace("\u00a0", " ") == answer
    assert len(record.result.comparisons) == (2 if tuned else 0)
    for page in ("index.html", f"results/{number}.html"):
        text = words_of((tmp_path / "site" / page).read_text(encoding="utf-8")).replace("\u00a0", " ")
        assert answer in text
        assert "nothing to compare" not in text
    if tuned and full is None:
        result = (tmp_path / "site" / "results" / f"{number}.html").read_text(encoding="utf-8")
        assert 'aria-label="Site"' in result, "the links of the site"
        assert 'id="confirmation"' in result, "the page of the search"
        assert "trials completed" not in words_of(result)
    assert "No study compares anything yet" in (tmp_path / "site" / "matrix.html").read_text()


@pytest.mark.parametrize("full", [None, 0])
def test_several_cpus_are_not_better_or_worse_than_one(full: int | None, tmp_path: Path) -> None:
    record = a_scaling_record(tmp_path)
    page, markdown = report.study_html(record), report.study_markdown(record)
    assert study_summary.verdict_counts(record) == ()
    assert 'id="scaling"' in page
    assert 'id="overview"' not in page
    assert "#overview" not in page
    assert 'class="counts"' not in page
    assert "✗ " not in markdown.partition("|")[0]
    with open_store(str(a_store(tmp_path / "store", record))) as store:
        build(store, tmp_path / "site", full=full, notes=tmp_path / "notes")
    text = (tmp_path / "site" / "results" / "1.html").read_text(encoding="utf-8")
    assert 'class="counts"' not in text
    assert "largest changes" not in text
    assert "No study compares anything yet" in (tmp_path / "site" / "matrix.html").read_text()


def test_a_page_of_real_time_does_not_speak_of_perturbations() -> None:
    timed, exact = (words_of(report.study_html(a_grown_record(1, 2, timed=timed))) for timed in (True, False))
    assert "perturbation" not in timed
    assert "under one perturbation" in exact


SHARES = (
    Importance(name="vm.swappiness", share=0.8, low=0.3, high=0.95),
    Importance(name="vm.dirty_ratio", share=0.327, low=0.01, high=0.6),
)


def a_search_whose_runs_differ_by(spread: float, noise: float) -> Tuned:
    tuned = a_result()
    values = (100.0, 100.0 * (1 + spread))
    runs = tuple(
        run.model_copy(update={"values": {"rps": value}})
        for run, value in zip(tuned.observations, values, strict=False)
    )
    changes = {"observations": runs, "noise": noise, "importance": SHARES, "interactions": ()}
    return tuned.model_copy(update=changes)


def test_shares_of_a_spread_that_shows_nothing_are_not_ranked() -> None:
    """0.07 %, of which one knob had 80 % and another one 32.7 %."""
    for spread, noise in ((0.0007, 0.0), (0.03, 0.02)):
        tuned = a_search_whose_runs_differ_by(spread, noise)
        assert acting(tuned).importance == ()
        for text in (tuning_page(a_search(tuned), tuned), tuning_markdown(a_search(tuned), tuned)):
            assert "No knob is shown to act" in text
            assert "80.0" not in text


def test_a_knob_whose_share_may_be_nothing_is_named_and_not_ranked() -> None:
    tuned = a_search_whose_runs_differ_by(0.25, 0.0)
    shown = acting(tuned)
    assert [share.name for share in shown.importance] == ["vm.swappiness"]
    assert shown.others == ("vm.dirty_ratio",)
    page = words_of(tuning_page(a_search(tuned), tuned))
    assert "Not shown to act: vm.dirty_ratio." in page
    assert "80.0" in page
    assert "32.7" not in page


def test_of_one_version_nothing_is_said_from_first_to_last(tmp_path: Path) -> None:
    one, two = (a_record(FIVE[:count], ("fork",)) for count in (1, 2))
    for name, record, change in (("one", one, "–"), ("two", two, "+19.36 %")):
        with open_store(str(a_store(tmp_path / name, record))) as store:
            build(store, tmp_path / name / "site", notes=tmp_path / name / "notes")
        text = words_of((tmp_path / name / "site" / "index.html").read_text(encoding="utf-8"))
        (shown,) = re.findall(r"First to last fork \d \d (\S+(?:\s%)?)", text.replace("\u00a0", " "))
        assert shown == change
