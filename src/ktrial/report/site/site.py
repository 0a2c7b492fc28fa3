"""A static site of everything in a store: index, matrix, histories, results. Relative links, no server."""

from pathlib import Path
from typing import NamedTuple

from ktrial.analysis.errors import SiteInTheWay, SiteNotWritten
from ktrial.analysis.history.stored_numbers import stored_numbers
from ktrial.report.html.site import SHEET
from ktrial.report.site.page_cache import PageCache
from ktrial.report.site.pages import Pages, Tell
from ktrial.report.site.whole_pages import MOST_AT_ONCE, files_of, left_in_brief
from ktrial.report.site.written_pages import WrittenPages
from ktrial.store.store import Store

MARK = "ktrial-site"
"""The file that tells a directory is one of ktrial's sites."""


class Site(NamedTuple):
    """What was built."""

    front: Path
    pages: int
    made: int
    """Results that were rendered now, and not found in the cache."""
    results: int
    in_brief: int
    """How many of the results have the verdicts alone."""
    lists: int
    """How many pages list all results; 0: the front page does."""


def build(
    store: Store,
    directory: Path,
    *,
    reasons: bool = True,
    full: int | None = MOST_AT_ONCE,
    tell: Tell = lambda _text: None,
    cache: PageCache | None = None,
) -> Site:
    """Write the site, and take away pages of results that are gone. Raises SiteNotWritten, SiteInTheWay,
    StoreError.

    `reasons`: say what changes are made of, from the profiles in the store: seconds for a new result, once.
    `full`: how many results' pages are made whole now, those that are whole already not counted; None: all.
    The others are in brief, and say so.
    """
    _check(directory)
    kept = cache or PageCache()
    try:
        numbers = stored_numbers(store, tell)
        studies = [one for one in store.studies() if one.id in numbers.states]
        answers: dict[int, str] = {}
        pages = Pages(numbers, studies, kept, reasons=reasons, answers=answers, tell=tell)
        written = WrittenPages(directory, kept.site_file(directory))
        pages.in_brief = left_in_brief(pages, written, kept, full)
        for place in pages.places:
            _write_both(pages, place, written, answers)
        for name, text in {MARK: "A site made by ktrial.\n", SHEET: pages.text(SHEET) or ""}.items():
            written.write(name, text)
        written.end()
    except OSError as error:
        raise SiteNotWritten(directory=directory, problem=error.strerror or str(error)) from error
    results = sum(pages.number(place) is not None for place in pages.places)
    counts = (len(pages.places), pages.rendered, results, len(pages.in_brief), pages.lists)
    return Site(directory / "index.html", *counts)


def _write_both(pages: Pages, place: str, written: WrittenPages, answers: dict[int, str]) -> None:
    """A page and its numbers; a result's, or a list's, only where it is not there as it would be written."""
    (page, data), number = files_of(place), pages.number(place)
    key = pages.key_at(place)
    if key and (answer := written.as_written(key, page, data)) is not None:
        if number is not None:
            answers[number] = answer
        return
    for each, text in zip((page, data), pages.both(page.removesuffix(".html")) or (), strict=False):
        written.write(each, text)
    if key:
        written.note(key, "" if number is None else answers[number], page, data)


def _check(directory: Path) -> None:
    try:
        there = sorted(one.name for one in directory.iterdir()) if directory.exists() else []
    except OSError as error:
        raise SiteNotWritten(directory=directory, problem=error.strerror) from error
    if there and MARK not in there:
        raise SiteInTheWay(directory=directory, file=there[0])
