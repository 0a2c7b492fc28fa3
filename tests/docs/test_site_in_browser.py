"""The pages of a site in a real browser, at several widths: nothing is cut off or scrolls sideways."""

from pathlib import Path

import pytest
from tests.support.browser import WIDTHS, measured_at_widths, needs_a_browser
from tests.support.report_records import FIVE, VALUES, a_hostile_record, a_record, a_study_with_failures
from tests.support.stored_results import a_store

from ktrial.report.site import front_page
from ktrial.report.site.site import build
from ktrial.store.store import open_store

pytestmark = needs_a_browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of workloads with parameters, with numbers of eight digits, and of names that nobody expects."""
    directory = tmp_path_factory.mktemp("site")
    records = (a_record(FIVE, tuple(VALUES)), a_study_with_failures(), a_hostile_record())
    with open_store(str(a_store(directory / "store", *records))) as store:
        build(store, directory / "pages", notes=directory / "cache")
    return directory / "pages"


@pytest.fixture(scope="module")
def site_in_brief(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of more results than its front page shows, all of them in brief."""
    directory = tmp_path_factory.mktemp("brief")
    records = (a_record(FIVE, tuple(VALUES)), a_study_with_failures(), a_hostile_record())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(front_page, "A_PAGE", 1)
        with open_store(str(a_store(directory / "store", *records))) as store:
            build(store, directory / "pages", full=0, notes=directory / "cache")
    return directory / "pages"


def pages(site: Path) -> list[Path]:
    """One of each kind, and the histories whose labels and numbers are the longest."""
    histories = sorted(site.glob("history/hackbench*.html"))
    assert histories
    return [site / "index.html", site / "matrix.html", *histories, *sorted(site.glob("results/*.html"))]


def assert_nothing_is_cut_off(pages: list[Path], site: Path, tmp_path: Path) -> None:
    for page in pages:
        for one, width in zip(measured_at_widths(f'src="{page.as_uri()}"', tmp_path), WIDTHS, strict=True):
            where = f"{page.relative_to(site)} at {width} pixels"
            assert one["scroll"] == width, f"{where} scrolls sideways"
            assert one["wide"] == [], f"{where} is wider"
            assert one["cut"] == [], f"{where}: text outside its chart"
            assert one["overlapping"] == [], f"{where}: text over text"


def test_nothing_is_cut_off_at_any_width(site: Path, tmp_path: Path) -> None:
    assert_nothing_is_cut_off(pages(site), site, tmp_path)


@pytest.mark.nightly
def test_nothing_of_pages_in_brief_and_of_lists_is_cut_off_at_any_width(
    site_in_brief: Path, tmp_path: Path
) -> None:
    of_many = [*site_in_brief.glob("results/*.html"), *site_in_brief.glob("lists/*.html")]
    assert len(of_many) == 3 + 3 + 1
    assert_nothing_is_cut_off([site_in_brief / "index.html", *of_many], site_in_brief, tmp_path)
