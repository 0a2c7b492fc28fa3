"""A site of more results than are made whole at once: the others are in brief, say so, and become whole."""

import json
import re
from pathlib import Path

import html5lib
import pytest
from tests.support.command_line import CommandLine
from tests.support.drawings import assert_only_its_own_script_runs, without_its_script
from tests.support.report_records import FIVE, a_hostile_record, a_record, a_study_with_failures
from tests.support.stored_results import a_store

from ktrial.report.site.site import Site, build
from ktrial.store.store import open_store

_LINK = re.compile(r'(?:href|src)="([^"]+)"')
_SAYS_SO = "This page is in brief"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    some = ("fork", "pipe")
    records = (
        a_record(FIVE[:2], some),
        a_hostile_record(),
        a_study_with_failures(),
        a_record(FIVE[2:], some),
    )
    return a_store(tmp_path, *records)


def built(store: Path, full: int | None, site: str = "site", notes: str = "notes") -> Site:
    with open_store(str(store)) as opened:
        return build(opened, store.parent / site, full=full, notes=store.parent / notes)


def results(store: Path, site: str = "site") -> dict[int, str]:
    pages = (store.parent / site / "results").glob("*.html")
    return {int(page.stem): page.read_text(encoding="utf-8") for page in pages}


def front(store: Path) -> str:
    return (store.parent / "site/index.html").read_text(encoding="utf-8").replace("\u00a0", " ")


def in_brief(store: Path) -> set[int]:
    return {number for number, text in results(store).items() if _SAYS_SO in text}


def test_what_is_not_made_whole_is_in_brief_and_each_run_makes_more_whole(store: Path) -> None:
    first = built(store, full=1)
    assert (first.results, first.rendered, first.in_brief) == (4, 1, 3)
    assert len(in_brief(store)) == 3
    assert "3 pages of 4 results are in brief" in front(store)
    second = built(store, full=2)
    assert (second.rendered, second.in_brief) == (2, 1)
    assert built(store, full=0).in_brief == 1, "what is whole stays whole"
    assert built(store, full=None).in_brief == 0
    assert in_brief(store) == set()
    assert "in brief" not in front(store)
    built(store, full=None, site="at once", notes="another")
    assert results(store, "at once") == results(store)


def test_the_result_of_the_matrix_is_whole_first_and_then_the_newest(store: Path) -> None:
    built(store, full=2)
    (matrix,) = (json.loads((store.parent / "site/matrix.json").read_text())["study_id"],)
    expected = sorted({1, 2, 3, 4} - {matrix})
    assert in_brief(store) == set(expected[:2])


def test_a_page_in_brief_has_the_answer_and_all_verdicts_of_the_whole_one(store: Path) -> None:
    built(store, full=0)
    pages = store.parent / "site/results"
    brief = {number: json.loads((pages / f"{number}.json").read_text()) for number in results(store)}
    built(store, full=None)
    for number, short in brief.items():
        complete = json.loads((pages / f"{number}.json").read_text())
        assert short.pop("in_brief") is True
        assert short.pop("completed") == sum(item["outcome"] == "completed" for item in complete["trials"])
        assert short == {key: complete[key] for key in short} | {"warnings": short["warnings"]}
        assert all(warning in complete["warnings"] for warning in short["warnings"])
        assert {item["kind"] for item in short["warnings"]} == {item["kind"] for item in complete["warnings"]}


def test_pages_in_brief_are_valid_and_every_link_leads_to_a_file(store: Path) -> None:
    built(store, full=0)
    pages = list((store.parent / "site").rglob("*.html"))
    assert len(pages) > 4
    for page in pages:
        text = page.read_text(encoding="utf-8")
        parser = html5lib.HTMLParser()
        parser.parse(text)
        assert parser.errors == [], f"{page}: {parser.errors[:3]}"
        if _SAYS_SO in text:
            assert "<script" not in text
            assert "script-src" not in text, "no script may run"
        else:
            assert_only_its_own_script_runs(text)
            text = without_its_script(text)
        for link in _LINK.findall(text):
            place, _, anchor = link.partition("#")
            target = (page.parent / place).resolve() if place else page
            assert target.is_file(), f"{page} → {link}"
            if anchor and not anchor.startswith("?"):
                assert f'id="{anchor}"' in target.read_text(encoding="utf-8"), f"{page} → {link}"


def test_the_command_says_how_many_are_in_brief_and_how_they_become_whole(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "own cache"))
    cli = CommandLine(monkeypatch, capsys)
    command = ("site", str(tmp_path / "pages"), "--store", str(store))
    answer = cli(*command, "--full", "1")
    assert answer.status == 0
    assert "3 of 4 results are in brief" in answer.output
    assert "--full all" in answer.output
    assert json.loads(cli(*command, "--full", "all", "--json").output)["in_brief"] == 0
    refused = cli(*command, "--full", "some")
    assert refused.status == 2
    assert "--full: some is neither a number of results nor all" in refused.messages
