"""A site of more results than its front page shows: pages list them all, and one has their names."""

import json
import re
from pathlib import Path

import html5lib
import pytest
from tests.support.command_line import CommandLine
from tests.support.report_records import FIVE, a_hostile_record, a_record
from tests.support.stored_results import a_store

from ktrial.report.site import front_page
from ktrial.report.site.site import Site, build
from ktrial.store.store import open_store

_LINK = re.compile(r'href="([^"#]+)')
_RESULT = re.compile(r'href="(?:\.\./)?results/(\d+)\.html"')


@pytest.fixture(autouse=True)
def two_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_page, "A_PAGE", 2)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return a_store(tmp_path, *(a_record(FIVE[:2], ("fork",)) for _ in range(4)), a_hostile_record())


def built(store: Path) -> Site:
    with open_store(str(store)) as opened:
        return build(opened, store.parent / "site", full=0, notes=store.parent / "notes")


def page(store: Path, place: str) -> str:
    return (store.parent / "site" / place).read_text(encoding="utf-8").replace("\u00a0", " ")


def numbers(text: str) -> list[int]:
    return list(dict.fromkeys(map(int, _RESULT.findall(text))))


def written(store: Path) -> dict[str, int]:
    """When each list was written."""
    return {file.name: file.stat().st_mtime_ns for file in (store.parent / "site/lists").iterdir()}


def test_the_front_page_has_the_newest_and_lists_have_all(store: Path) -> None:
    assert built(store).lists == 3
    front = page(store, "index.html")
    results = front[front.index('aria-labelledby="results"') : front.index('aria-labelledby="lists"')]
    assert numbers(results) == [5, 4]
    assert "the newest 2 of 5 results" in front
    assert "5 pages of 5 results are in brief" in front
    assert [numbers(page(store, f"lists/{number}.html")) for number in (1, 2, 3)] == [[2, 1], [4, 3], [5]]
    assert [len(json.loads(page(store, f"lists/{number}.json"))["results"]) for number in (1, 2, 3)] == [
        2,
        2,
        1,
    ]
    assert len(json.loads(page(store, "index.json"))["lists"]) == 3


def test_every_result_is_found_by_its_name(store: Path) -> None:
    built(store)
    text, names = page(store, "lists/names.html"), json.loads(page(store, "lists/names.json"))
    assert sorted(numbers(text)) == [1, 2, 3, 4, 5]
    assert list(names.values()) == sorted(names.values())
    assert set(names) == {"1", "2", "3", "4", "5"}
    assert "<b onclick" not in text


def test_lists_are_valid_and_every_link_leads_to_a_file(store: Path) -> None:
    built(store)
    lists = [*(store.parent / "site/lists").glob("*.html"), store.parent / "site/index.html"]
    assert len(lists) == 5
    for place in lists:
        text = place.read_text(encoding="utf-8")
        parser = html5lib.HTMLParser()
        parser.parse(text)
        assert parser.errors == [], f"{place}: {parser.errors[:3]}"
        for link in _LINK.findall(text):
            assert (place.parent / link).resolve().is_file(), f"{place} → {link}"


def test_a_list_that_is_full_stays_as_it_is_when_results_come(store: Path) -> None:
    built(store)
    before = written(store)
    built(store)
    assert written(store) == before
    a_store(store.parent, a_record(FIVE[2:], ("fork",)))
    built(store)
    after = written(store)
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed >= {"3.html", "names.html"}
    assert "1.html" not in changed
    assert numbers(page(store, "lists/3.html")) == [6, 5]


def test_lists_go_when_the_front_page_has_all(store: Path) -> None:
    built(store)
    with open_store(str(store)) as opened:
        for number in (1, 2, 3):
            opened.delete(number)
    assert built(store).lists == 0
    assert not (store.parent / "site/lists").exists()
    assert 'aria-labelledby="lists"' not in page(store, "index.html")


def test_the_command_says_where_all_results_are(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "own cache"))
    cli = CommandLine(monkeypatch, capsys)
    command = ("site", str(tmp_path / "pages"), "--store", str(store), "--full", "0")
    assert "the front page lists the newest 2 of 5 results; 3 pages in lists/" in cli(*command).output
    assert json.loads(cli(*command, "--json").output)["lists"] == 3
