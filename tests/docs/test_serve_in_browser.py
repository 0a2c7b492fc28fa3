"""`ktrial serve` in a real browser: a study is seen running, and shared links show the same."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import pytest
from tests.support.browser import Page, a_page, layout_of, needs_a_browser, violations
from tests.support.making import a_study
from tests.support.report_records import FIVE, a_hostile_record, a_record
from tests.support.scripted import scripted_resources
from tests.support.stored_results import a_store
from tests.unit.serve.test_serve import Held, Site

from ktrial.experiment.session import run
from ktrial.serve.server import Server
from ktrial.store.store import open_store

pytestmark = needs_a_browser

LIVE = "document.getElementById('live')"


LOOKS = ((390, "dark"), (390, "light"), (1280, "dark"), (1280, "light"))
"""Widths in pixels, and themes."""


def seen_in(page: Page, width: int, theme: str) -> tuple[list[str], list[str]]:
    """What axe finds on the open page on such a screen, and what is wider than that."""
    page.call(
        "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
    )
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
    try:
        return violations(page), layout_of(page)["wide"]
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")
        page.call("Emulation.setEmulatedMedia", features=[])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("serve")
    own = Site(a_store(directory / "store", a_record(FIVE), a_hostile_record()))
    yield own
    own.close()
    assert own.bugs == []


@pytest.fixture(scope="module")
def server(site: Site) -> Iterator[Server]:
    own = Server(site.application, "127.0.0.1", 0, lambda: None)
    own.start()
    yield own
    site.served.stopping.set()
    own.stop()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with a_page(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def test_a_study_is_seen_while_it_runs_until_it_ends(site: Site, server: Server, page: Page) -> None:
    page.open(server.url)
    assert page.value(f"{LIVE}.hidden")
    held = Held()
    name = 'runs <b onclick="x">now</b>'
    study = a_study(name=name, perturbations=2, workloads=("fork",))
    with open_store(site.store) as store, ThreadPoolExecutor(1) as pool:
        ended = pool.submit(
            run, study, store=store, machine=held.machine, jobs=1, resources=scripted_resources()
        )
        try:
            page.wait_for(f"{LIVE}.querySelector('progress')?.value === 2")
            said = page.value(f"{LIVE}.innerText")
            assert f"Running: {name}" in said
            assert "2 of 4 trials ended" in said
            assert "Verdicts so far, of 1 workload:" in said
            assert page.value(f"{LIVE}.querySelectorAll('.counts li').length") == 1
            assert page.value(f"{LIVE}.querySelectorAll('b').length") == 1, "the count alone is bold"
            assert {look: seen_in(page, *look) for look in LOOKS} == dict.fromkeys(LOOKS, ([], []))
            page.open(server.url + page.value(f"{LIVE}.querySelector('a').getAttribute('href')"))
            page.wait_for(f"{LIVE}.querySelector('progress')")
            assert page.value("document.querySelector('h1').innerText") == name
        finally:
            held.go_on.set()
        ended.result()
    page.wait_for(f"{LIVE}.innerText.includes('It has ended.')")
    assert page.complaints == []


def test_a_shared_link_shows_two_kernels_and_what_was_chosen(server: Server, page: Page) -> None:
    two = {"from": "debian:6.1", "to": "debian:7.2", "pairs.filter": "pipe"}
    page.open(f"{server.url}compare.html#?{urlencode(two)}")
    page.wait_for("document.querySelectorAll('table.pairs tbody tr').length > 1")
    rows = "[...document.querySelectorAll('table.pairs tbody tr')].filter(one => one.getClientRects().length)"
    assert page.value(f"{rows}.map(one => one.cells[0].innerText)") == ["pipe"]
    assert page.value("document.getElementById('chosen').innerText").startswith(
        "debian:7.2 against debian:6.1"
    )
    assert page.complaints == []


@pytest.mark.parametrize(
    "place", ["", "matrix.html", "results/1.html", "results/2.html", "reports/1.html", "x/y/z"]
)
def test_no_page_is_refused_anything_by_its_own_policy(server: Server, page: Page, place: str) -> None:
    page.open(server.url + place)
    complaints = [one for one in page.complaints if "404" not in one or place != "x/y/z"]
    assert complaints == []
    assert page.value("document.styleSheets.length") > 0


def test_two_treatments_are_chosen_and_the_address_shows_them_again(server: Server, page: Page) -> None:
    page.open(f"{server.url}results/1.html")
    page.follow("document.querySelector('a[href=\"../pairs/1.html\"]').click()")
    chosen = "[...document.querySelectorAll('form.chooser select')].map((one) => one.selectedIndex).join()"
    page.follow(
        "(() => { const [from, to] = document.querySelectorAll('form.chooser select');"
        " from.selectedIndex = 3; to.selectedIndex = 1;"
        " document.querySelector('form.chooser button').click(); })()"
    )
    assert page.value("location.search") == "?from=4&to=2"
    assert page.complaints == []
    said = page.value("document.querySelector('main').innerText")
    address = page.value("location.href")
    page.open(server.url)
    page.open(str(address))
    assert page.value(chosen) == "3,1"
    assert page.value("document.querySelector('main').innerText") == said
