"""`ktrial site`: 50 results of 25 workloads in seconds, valid HTML, links that lead somewhere."""

import re
import time
from pathlib import Path

import html5lib
import pytest
from tests.support.command_line import CommandLine
from tests.support.drawings import assert_only_its_own_script_runs, without_its_script
from tests.support.drawn_courses import assert_histories_are_true
from tests.support.report_records import (
    FIVE,
    VALUES,
    a_hostile_record,
    a_record,
    a_study_with_failures,
    a_study_with_gaps,
)
from tests.support.stored_results import EVERY, a_store, fifty_results

from ktrial.analysis.history.series import history
from ktrial.analysis.history.stored_numbers import stored_numbers
from ktrial.experiment.explain import stored_explanations
from ktrial.model.study import StudyRecord
from ktrial.report.site.site import Site, build
from ktrial.store.store import open_store

_LINK = re.compile(r'(?:href|src)="([^"]+)"')


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "own" / "ktrial.db"))
    return CommandLine(monkeypatch, capsys)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda *_: str(tmp_path / "cache"))


def a_site(directory: Path, *records: StudyRecord) -> Path:
    store = a_store(directory, *records)
    built(store, directory / "site", directory)
    return directory / "site"


def built(store: Path, site: Path, directory: Path) -> Site:
    with open_store(str(store)) as opened:
        return build(opened, site, explain=stored_explanations, notes=directory / "notes")


@pytest.mark.nightly
def test_fifty_results_of_twenty_five_workloads_take_seconds(tmp_path: Path) -> None:
    records = fifty_results()
    assert [len(record.study.workloads) for record in records] == [25] * 50
    assert {len(trial.samples) for record in records for trial in record.trials} == {25}
    store = a_store(tmp_path, *records)
    before = time.process_time()
    first = built(store, tmp_path / "site", tmp_path)
    # Processor time: 13 s were seen, with the trees of calls of ten explanations; `make bench` tells more.
    assert time.process_time() - before < 20
    assert first.rendered == 50
    assert len(list((tmp_path / "site/history").glob("*.html"))) == 25
    pages = [page.read_text(encoding="utf-8") for page in (tmp_path / "site/results").glob("*.html")]
    assert sum('id="why-1"' in page for page in pages) == 50 / EVERY, "profiles are explained"
    assert built(store, tmp_path / "site", tmp_path).rendered == 0


def test_every_page_is_valid_and_every_link_leads_to_a_file(tmp_path: Path) -> None:
    site = a_site(tmp_path, a_record(FIVE), a_study_with_failures(), a_record(FIVE[:2]), a_hostile_record())
    pages = list(site.rglob("*.html"))
    assert len(pages) >= 1 + 1 + 4 + len(VALUES)
    for page in pages:
        text = page.read_text(encoding="utf-8")
        parser = html5lib.HTMLParser()
        parser.parse(text)
        assert parser.errors == [], f"{page}: {parser.errors[:3]}"
        assert_only_its_own_script_runs(text)
        text = without_its_script(text)
        for link in _LINK.findall(text):
            place, _, anchor = link.partition("#")
            assert "://" not in place
            target = (page.parent / place).resolve() if place else page
            assert target.is_file(), f"{page} → {link}"
            if anchor.startswith("?"):  # what is chosen there: the page's script reads it
                continue
            assert not anchor or f'id="{anchor}"' in target.read_text(encoding="utf-8"), f"{page} → {link}"


def test_every_version_of_every_history_is_drawn_where_its_number_is(tmp_path: Path) -> None:
    records = (a_record(FIVE), a_study_with_failures(), a_study_with_gaps())
    store = a_store(tmp_path, *records)
    built(store, tmp_path / "site", tmp_path)
    with open_store(str(store)) as opened:
        numbers = stored_numbers(opened)
        every = [history(numbers, label) for label in VALUES]
    drawn = 0
    for label, past in zip(VALUES, every, strict=True):
        (page,) = (tmp_path / "site/history").glob(f"{label.partition('(')[0]}*.html")
        assert_histories_are_true(page.read_text(encoding="utf-8"), past)
        drawn += sum(len(line.changes) for line in past.lines)
    assert drawn > 0, "no history has a change"


def test_results_that_are_gone_leave_the_site(tmp_path: Path) -> None:
    store = a_store(tmp_path, a_record(FIVE[:2]), a_record(FIVE[2:]))
    built(store, tmp_path / "site", tmp_path)
    with open_store(str(store)) as opened:
        opened.delete(1)
    built(store, tmp_path / "site", tmp_path)
    assert sorted(page.name for page in (tmp_path / "site/results").iterdir()) == ["2.html", "2.json"]


def test_a_result_that_is_there_is_left_and_one_that_was_changed_is_written_again(tmp_path: Path) -> None:
    store = a_store(tmp_path, a_record(FIVE[:2]), a_record(FIVE[2:]))
    built(store, tmp_path / "site", tmp_path)
    pages = {name: tmp_path / "site/results" / name for name in ("1.html", "1.json", "2.html", "2.json")}
    texts = {name: page.read_text() for name, page in pages.items()}
    times = {name: page.stat().st_mtime_ns for name, page in pages.items()}
    pages["2.html"].write_text("somebody's")
    front = (tmp_path / "site/index.html").read_text()
    built(store, tmp_path / "site", tmp_path)
    assert {name: page.read_text() for name, page in pages.items()} == texts
    assert (tmp_path / "site/index.html").read_text() == front, "with the answers of both"
    for name in ("1.html", "1.json"):
        assert pages[name].stat().st_mtime_ns == times[name]
    with open_store(str(store)) as opened:
        opened.add_trial(1, opened.trials(1)[0])  # it is there already: nothing changes
        opened.remove_trials_of(1, [opened.trials(1)[0].planned.key])
    assert built(store, tmp_path / "site", tmp_path).rendered == 1
    assert pages["1.json"].read_text() != texts["1.json"]
    assert pages["2.json"].read_text() == texts["2.json"]


def test_a_directory_of_somebody_elses_is_left_alone(tmp_path: Path, cli: CommandLine) -> None:
    store = str(a_store(tmp_path))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("all of it")
    answer = cli("site", str(tmp_path / "mine"), "--store", store)
    assert answer.status == 1
    assert "thesis.txt" in answer.messages
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    answer = cli("site", str(tmp_path / "new"), "--store", store)
    assert answer.status == 0
    assert "index.html" in answer.output


def test_an_empty_store_has_an_index(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "empty.db")) as opened:
        assert build(opened, tmp_path / "site", notes=tmp_path / "notes").pages == 1
