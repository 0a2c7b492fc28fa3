"""Which results of a site have whole pages, which cost a hundred times more, and which are in brief."""

from collections.abc import Iterator

from ktrial.report.site.page_cache import PageCache
from ktrial.report.site.pages import Pages
from ktrial.report.site.written_pages import WrittenPages

MOST_AT_ONCE = 50
"""Whole pages that one building of a site makes, unless it is told otherwise: some ten seconds. A site that
is built again goes on from there."""


def left_in_brief(
    pages: Pages, written: WrittenPages, cache: PageCache, most: int | None = MOST_AT_ONCE
) -> frozenset[int]:
    """The results whose pages stay in brief where at most so many are made whole now; None: all of them are.

    A page that was made whole before, and is there or is kept, stays whole.
    """
    if most is None:
        return frozenset()
    missing = list(_missing(pages, written, cache))
    return frozenset(missing[most:])


def _missing(pages: Pages, written: WrittenPages, cache: PageCache) -> Iterator[int]:
    """Results whose whole page would have to be made, in the order in which that is done."""
    for number in pages.whole_first:
        key = pages.key(number)
        if not cache.has(key) and not written.is_there(key, *files_of(f"results/{number}.html")):
            yield number


def files_of(place: str) -> tuple[str, str]:
    """A page, and its numbers beside it."""
    return place, f"{place.removesuffix('.html')}.json"
