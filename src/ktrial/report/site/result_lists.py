"""Where all results are listed, where these are more than the front page shows.

Each page has so many results, in the order in which they were made: one that is full stays as it is when
others come.
"""

from collections.abc import Sequence

from ktrial.report.html.result_list import Around, ListPage
from ktrial.store.study_rows import StoredStudy

A_PAGE = 500
"""Results on a page, and on the front page."""
NAMES = "lists/names"
"""The page of all results' names."""


class ResultLists:
    """The pages that list results; none where the front page has them all."""

    def __init__(self, studies: Sequence[StoredStudy]) -> None:
        """`studies`: all those that have results."""
        ordered = sorted(studies, key=lambda one: one.id)
        self.newest = ordered[-A_PAGE:]
        """Of the front page, the newest last."""
        starts = range(0, len(ordered), A_PAGE) if len(ordered) > A_PAGE else ()
        self._listed = {f"lists/{start // A_PAGE + 1}": ordered[start : start + A_PAGE] for start in starts}

    @property
    def places(self) -> tuple[str, ...]:
        """Of all these pages, relative to the site."""
        return tuple(f"{page}.html" for page in (*self._listed, *([NAMES] if self._listed else ())))

    def studies(self, page: str) -> Sequence[StoredStudy]:
        """Those on a page, by its place without an ending; empty where there is no such page."""
        return self._listed.get(page, ())

    @property
    def pages(self) -> list[ListPage]:
        """All pages, the newest results first."""
        pages = (
            ListPage(f"{page}.html", each[0].id, each[-1].id, each[0].created, each[-1].created, len(each))
            for page, each in self._listed.items()
        )
        return list(pages)[::-1]

    def around(self, page: str) -> Around:
        """A page by its place without an ending. Raises ValueError."""
        pages = self.pages
        at = [one.page for one in pages].index(f"{page}.html")
        newer, older = pages[at - 1] if at else None, pages[at + 1] if at + 1 < len(pages) else None
        return Around(pages[at], newer, older)
