"""Any two treatments of a study, chosen in a browser: what a study of the two would say."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import html5lib
import pytest
from tests.support.drawings import assert_only_its_own_script_runs
from tests.support.making import a_study
from tests.support.report_records import FIVE, a_hostile_record, a_record
from tests.support.stored_results import a_store
from tests.unit.serve.test_serve import Site

from ktrial.analysis.result import NOT_JUDGED, pair_record, result
from ktrial.model.comparison import Verdict
from ktrial.model.design import Design
from ktrial.model.study import Timing, treatments
from ktrial.store.store import open_store

WORKLOADS = ("fork", "pipe")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(a_store(tmp_path / "store", a_record(FIVE, WORKLOADS), a_hostile_record()))
    yield made
    made.close()
    assert made.bugs == []


def chosen(site: Site, before: int, after: int, form: str = "html") -> Any:
    return site.get(f"pairs/1.{form}?from={before}&to={after}")


def test_each_two_treatments_have_what_a_study_of_the_two_says(site: Site) -> None:
    record = a_record(FIVE, WORKLOADS)
    for before, after in itertools.permutations(range(1, 6), 2):
        two = a_study("quick", (FIVE[before - 1], FIVE[after - 1]), perturbations=3)
        two = two.model_copy(update={"workloads": record.study.workloads, "margin": record.study.margin})
        keys = {item.key for item in treatments(two)}
        right = result(two, [item for item in record.trials if item.planned.treatment.key in keys])
        numbers = chosen(site, before, after, "json").json()
        assert numbers["answer"] == right.answer
        assert [(item["workload"], item["verdict"], item["ratio"]) for item in numbers["comparisons"]] == [
            (item.workload, item.verdict.value, item.ratio) for item in right.comparisons
        ]
        assert len(numbers["comparisons"]) == len(WORKLOADS)


def test_a_page_is_sound_and_its_link_shows_the_same_again(site: Site) -> None:
    assert 'href="../pairs/1.html"' in site.get("results/1.html").text
    text = chosen(site, 4, 2).text
    parser = html5lib.HTMLParser()
    parser.parse(text)
    assert parser.errors == []
    assert_only_its_own_script_runs(text)
    assert "form-action 'self'" in text
    assert '<option value="4" selected>' in text
    assert text == chosen(site, 4, 2).text != chosen(site, 2, 4).text
    assert site.get("pairs/1.html").text == chosen(site, 1, 2).text
    assert "form-action 'none'" in site.get("results/1.html").text
    hostile = site.get("pairs/2.html").text
    assert_only_its_own_script_runs(hostile)
    assert html5lib.HTMLParser(strict=True).parse(hostile) is not None


def test_a_treatment_is_not_compared_with_itself(site: Site) -> None:
    assert "not compared with itself" in chosen(site, 3, 3).text
    assert chosen(site, 3, 3, "json").json() is None


@pytest.mark.parametrize(
    "place",
    [
        "1.html?from=0",
        "1.html?from=6",
        "1.html?to=-1",
        "1.html?to=x",
        "1.html?from=²",
        "9.html",
        "01.html",
        "1.css",
    ],
)
def test_what_no_study_has_is_not_found(site: Site, place: str) -> None:
    assert site.get(f"pairs/{place}").status_code == 404


def test_real_time_is_judged_against_the_baseline_only(tmp_path: Path) -> None:
    record = a_record(
        FIVE[:3], ("fork",), study=a_record(FIVE[:3], ("fork",)).study.model_copy(update={"timing": Timing()})
    )
    with open_store(a_store(tmp_path / "store", record)) as store:
        stored, trials = store.find(1), store.trials(1)
        first, second, third = treatments(stored.study)
        (pair,) = pair_record(store, stored, trials, second, third).result.comparisons
        assert (pair.verdict, pair.ratio, pair.reason) == (Verdict.INCONCLUSIVE, None, NOT_JUDGED)
        assert pair.value is not None
        expected = pair_record(store, stored, trials, first, third).result.comparisons
        assert expected == tuple(
            comparison
            for comparison in result(stored.study, trials).comparisons
            if comparison.treatment == third.label
        )


def test_the_two_are_all_that_is_looked_at_in_any_design(tmp_path: Path) -> None:
    levels = tuple({"kernel": name} for name in FIVE[1:4])
    study = a_record(FIVE[:4], ("fork",)).study
    listed = study.model_copy(update={"design": Design.LISTED, "listed": levels})
    with open_store(a_store(tmp_path / "store", a_record(FIVE[:4], ("fork",), study=listed))) as store:
        stored = store.find(1)
        chosen = treatments(stored.study)
        record = pair_record(store, stored, store.trials(1), chosen[2], chosen[1])
        assert treatments(record.study) == (chosen[2], chosen[1])
        (comparison,) = record.result.comparisons
        assert (comparison.baseline, comparison.treatment) == (chosen[2].label, chosen[1].label)
