"""`ktrial serve`: every place of the site on request, nothing else, no traceback, and what runs now, live."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import html5lib
import pytest
from starlette.testclient import TestClient
from tests.support.drawings import assert_only_its_own_script_runs
from tests.support.making import a_study
from tests.support.report_records import FIVE, a_hostile_record, a_record, a_study_with_failures
from tests.support.scripted import ScriptedMachine, number_of, scripted_resources, wait_until
from tests.support.stored_results import a_store, fifty_results

from ktrial.experiment.explain import stored_explanations
from ktrial.experiment.session import run
from ktrial.model.machine import Boot
from ktrial.report.site.site import build
from ktrial.serve.content import Content
from ktrial.serve.errors import ServeError, ServeUsageError
from ktrial.serve.live import Live
from ktrial.serve.server import Served, Server, application, is_its_own, is_loopback
from ktrial.store.store import Store, open_store
from ktrial.target import Run, StepResult


class Site:
    """A store that is served, and somebody who asks."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.bugs: list[Exception] = []
        content = Content(self.opened, stored_explanations)
        self.served = Served(content, Live(self.opened), ("ktrial.example.org",), self.bugs.append)
        self.application = application(self.served)
        self.client = TestClient(self.application, base_url="http://127.0.0.1:8000")

    def opened(self) -> Store:
        return open_store(self.store, read_only=True, followed=True)

    def get(self, place: str, **headers: str) -> Any:
        return self.client.get(f"/{place}", headers=headers, follow_redirects=False)

    def close(self) -> None:
        self.served.stopping.set()
        self.served.content.close()
        self.served.live.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    records = (a_record(FIVE), a_study_with_failures(), a_hostile_record())
    made = Site(a_store(tmp_path / "store", *records))
    yield made
    made.close()
    assert made.bugs == []


def places(site: Site, directory: Path) -> list[str]:
    """What `ktrial site` writes of the same store."""
    with open_store(site.store) as store:
        build(store, directory, explain=stored_explanations, notes=directory.parent / "notes")
    return sorted(str(file.relative_to(directory)) for file in directory.rglob("*.*"))


def test_every_page_of_the_static_site_is_served_with_the_same_numbers(site: Site, tmp_path: Path) -> None:
    written = places(site, tmp_path / "pages")
    assert {"index.html", "matrix.json", "compare.html", "results/1.html", "style.css"} <= set(written)
    for place in written:
        answer = site.get(place)
        assert answer.status_code == 200, place
        if place.endswith(".html"):
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            parser = html5lib.HTMLParser()
            parser.parse(answer.text)
            assert parser.errors == [], f"{place}: {parser.errors[:3]}"
            assert_only_its_own_script_runs(answer.text)
            assert 'id="live"' in answer.text
            assert "connect-src 'self'" in answer.text
        else:
            assert answer.text == (tmp_path / "pages" / place).read_text(), place
    assert 'id="live"' not in (tmp_path / "pages/index.html").read_text()


def test_the_front_page_is_at_the_root_and_a_result_leads_to_the_whole_report(site: Site) -> None:
    assert site.get("").text == site.get("index.html").text
    assert "Kernel performance" in site.get("").text
    assert 'href="../reports/1.html"' in site.get("results/1.html").text
    report = site.get("reports/1.html")
    assert report.status_code == 200
    assert "How to repeat it" in report.text


def test_what_is_no_page_is_not_found_and_nothing_else_happens(site: Site) -> None:
    places = [
        "nothing", "results/99.html", "results/0.html", "results/01.html", "results/1", "results/1.htm",
        "results/-1.html", "results/１.html", "results/99999999999999999999.html", "reports/99.html",
        "reports/x.html", "reports/.html", "reports/1.json", "reports/²", "history/x.html", "history/",
        "../store/results.db", "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "//etc/passwd",
        "history/..%2f..%2f..%2fetc%2fpasswd", "results.db", "%00", "a%0d%0aSet-Cookie:x", "x.html%00",
        "compare.html/", "index.html.html", "events/x", "results/", "%ff%fe", "x" * 3000, "live.js", "a.css",
    ]  # fmt: skip
    for place in places:
        answer = site.get(place)
        assert answer.status_code == 404, place
        assert "There is no such page" in answer.text
        assert "Traceback" not in answer.text
        assert "root:" not in answer.text
        assert "set-cookie" not in answer.headers


def test_nothing_can_be_asked_but_to_show(site: Site) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert site.client.request(method, "/index.html").status_code == 405, method
    assert site.client.head("/index.html").status_code == 200


def test_requests_for_the_names_of_others_are_refused(site: Site) -> None:
    for host in ("127.0.0.1:8000", "localhost:8000", "[::1]:8000", "192.0.2.7", "ktrial.example.org"):
        assert site.get("index.html", host=host).status_code == 200, host
    for host in ("evil.example.com", "127.0.0.1.evil.example.com", "localhost.evil.example.com"):
        answer = site.get("index.html", host=host)
        assert answer.status_code == 421, host
        assert "Kernel performance" not in answer.text
        assert site.get("events", host=host).status_code == 421
    assert not is_its_own("", ())


def test_pages_follow_the_store(site: Site) -> None:
    assert "results/4.html" not in site.get("").text
    with open_store(site.store) as store:
        record = a_record(FIVE[:2])
        number = store.study(record.study.model_copy(update={"name": "the new one"}))
        first, *later = record.trials
        store.add_trial(number, first)
        assert "the new one" in site.get("").text
        before = site.get(f"results/{number}.html").text
        for trial in later:
            store.add_trial(number, trial)
        assert site.get(f"results/{number}.html").text != before
        store.delete(number)
    assert site.get(f"results/{number}.html").status_code == 404
    assert "the new one" not in site.get("").text


def test_what_has_not_changed_is_neither_made_nor_sent_again(site: Site, monkeypatch: Any) -> None:
    first = site.get("matrix.html")
    monkeypatch.setattr("ktrial.report.site.pages.matrix_page", None)
    assert site.get("matrix.html").text == first.text
    again = site.get("matrix.html", **{"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_a_store_that_is_gone_is_told_and_one_that_comes_back_is_shown(site: Site) -> None:
    assert site.get("results/1.html").status_code == 200
    away = site.store.rename(site.store.with_name("away.db"))
    answer = site.get("results/1.html")
    assert answer.status_code == 503
    assert "Traceback" not in answer.text
    away.rename(site.store)
    assert site.get("results/1.html").status_code == 200


def test_a_bug_is_told_to_who_started_the_server_and_not_to_the_browser(site: Site, monkeypatch: Any) -> None:
    monkeypatch.setattr("ktrial.report.site.pages.matrix_page", None)
    answer = site.get("matrix.html")
    assert answer.status_code == 500
    assert "NoneType" not in answer.text
    (bug,) = site.bugs
    assert isinstance(bug, TypeError)
    site.bugs.clear()


def test_an_empty_store_has_a_front_page(tmp_path: Path) -> None:
    open_store(tmp_path / "empty.db").close()
    site = Site(tmp_path / "empty.db")
    assert site.get("").status_code == 200
    assert site.get("compare.html").status_code == 404
    site.close()


class Held:
    """A machine that waits, from its second program on, until it is let go."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.begun = 0
        self.machine = ScriptedMachine(self._answer)

    def _answer(self, boot: Boot, program: Run) -> StepResult:
        self.begun += 1
        if self.begun > 2:
            self.go_on.wait()
        return number_of(boot, program)


class Events:
    """A browser that follows `/events` of a server that listens."""

    def __init__(self, server: Server) -> None:
        self.connection = HTTPConnection("127.0.0.1", server.port, timeout=600)
        self.connection.request("GET", "/events")
        self.answer = self.connection.getresponse()

    def next(self) -> dict[str, Any]:
        while not (line := self.answer.readline()).startswith(b"data: "):
            assert line, "the events have ended"
        event: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
        return event


@pytest.fixture
def server(site: Site) -> Iterator[Server]:
    ended = threading.Event()
    made = Server(site.application, "127.0.0.1", 0, ended.set)
    made.start()
    yield made
    site.served.stopping.set()
    made.stop()
    assert ended.is_set()


def test_a_study_is_seen_while_it_runs_and_not_after(site: Site, server: Server) -> None:
    events = Events(server)
    assert events.next() == {"running": [], "problem": ""}
    held = Held()
    study = a_study(name="the one that runs", perturbations=2, workloads=("fork",))
    with open_store(site.store) as store, ThreadPoolExecutor(1) as pool:
        ended = pool.submit(
            run, study, store=store, machine=held.machine, jobs=1, resources=scripted_resources()
        )
        try:
            while not ((shown := events.next()["running"]) and shown[0]["finished"] == 2):
                pass
        finally:
            held.go_on.set()
        ended.result()
    (study_,) = shown
    assert (study_["name"], study_["planned"], study_["alive"]) == ("the one that runs", 4, True)
    assert study_["page"] == f"results/{study_['id']}.html"
    (who,) = study_["runs"]
    assert who["alive"]
    assert who["process"] > 0
    assert sum(verdict["count"] for verdict in study_["verdicts"]) == 1
    while events.next()["running"]:
        pass
    events.connection.close()


def test_the_end_of_the_server_ends_the_events(site: Site, server: Server) -> None:
    events = Events(server)
    events.next()
    site.served.stopping.set()
    server.stop()
    assert events.answer.read().strip() == b""


def test_a_study_that_runs_is_on_its_page_without_what_takes_long(tmp_path: Path) -> None:
    explained, *_ = fifty_results()
    site = Site(a_store(tmp_path / "store", explained))
    with open_store(site.store) as store:
        whole = site.get("results/1.html").text
        held = Held()
        with ThreadPoolExecutor(1) as pool:
            study = store.find(1).study.model_copy(update={"workloads": store.find(1).study.workloads[:1]})
            ended = pool.submit(
                run, study, store=store, machine=held.machine, jobs=1, resources=scripted_resources()
            )
            wait_until(lambda: bool(store.activities()))
            number = store.activities()[0][0]
            page = site.get(f"results/{number}.html").text
            held.go_on.set()
            ended.result()
    assert 'id="why-1"' in whole
    assert 'id="why-1"' not in page
    site.close()


def test_a_port_that_is_taken_is_told(server: Server) -> None:
    with pytest.raises(ServeError, match=f"127.0.0.1, port {server.port}: Address already in use"):
        Server(None, "127.0.0.1", server.port, lambda: None)


def test_addresses_are_numbers_and_some_are_reached_from_here_alone() -> None:
    assert [is_loopback(address) for address in ("127.0.0.1", "localhost", "::1", "[::1]", "127.9.9.9")] == [
        True
    ] * 5
    assert [is_loopback(address) for address in ("0.0.0.0", "192.0.2.7", "::")] == [False] * 3
    with pytest.raises(ServeUsageError, match=r"example\.org"):
        is_loopback("example.org")
