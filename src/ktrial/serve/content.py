"""What is served: pages of the store as it is now, made when they are asked for, kept until it changes."""

import re
import threading
from collections.abc import Callable

from ktrial.analysis.history.stored_numbers import StoredNumbers, stored_numbers
from ktrial.analysis.result import record_of
from ktrial.analysis.store_queries import running_studies
from ktrial.optimize.session import ended
from ktrial.report import study_html, whys
from ktrial.report.site.page_cache import PageCache, ResultPage
from ktrial.report.site.pages import Pages
from ktrial.report.tuning import tuning_page as search_page
from ktrial.store.errors import StoreGone
from ktrial.store.store import Store
from ktrial.store.study_rows import StoredStudy

_REPORTS = "reports/"
_PAIR = re.compile(r"pairs/(?P<number>[1-9][0-9]{0,17})\.(?P<form>html|json)")
_MOST_KEPT = 200
"""Pages in memory: each up to some 100 KB."""
Choice = tuple[str | None, str | None]
"""From and to, as an address has them."""
NOTHING: Choice = (None, None)
Opener = Callable[[], Store]
"""Opens the store, for reading only."""


class Content:
    """The pages of a store. Safe to use from several threads; one page is made at a time."""

    def __init__(self, opener: Opener, cache: PageCache | None = None, *, reasons: bool = True) -> None:
        """`reasons`: say what changes are made of, but for studies that run: theirs change."""
        self._opener, self._cache, self._reasons = opener, cache or PageCache(), reasons
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._running: frozenset[int] = frozenset()
        self._numbers: StoredNumbers | None = None
        self._studies: dict[int, StoredStudy] = {}
        self._answers: dict[int, str] = {}
        self._pages: Pages | None = None
        self._kept: dict[tuple[str, Choice], str | None] = {}

    def text(self, place: str, chosen: Choice = NOTHING) -> str | None:
        """The page or file at a place relative to the site; None where there is none. `chosen`: which two
        treatments a page compares. Raises StoreError.
        """
        with self._lock:
            try:
                return self._current(place, chosen)
            except StoreGone:  # it may be there again, as another file
                self._forget()
                return self._current(place, chosen)

    def close(self) -> None:
        """Close the store."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        if self._store:
            self._store.close()
        self._store, self._pages, self._numbers = None, None, None
        self._studies, self._answers, self._kept = {}, {}, {}

    def _current(self, place: str, chosen: Choice) -> str | None:
        if self._store is None:
            self._store = self._opener()
        pages = self._read(self._store)
        of_pair = _PAIR.fullmatch(place)
        wanted = (place, chosen if of_pair else NOTHING)
        if wanted not in self._kept:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            if of_pair:
                both = pages.pair(int(of_pair["number"]), *chosen)
                made = both and both[of_pair["form"] == "json"]
            else:
                of_report = place.startswith(_REPORTS)
                made = self._report(self._store, place) if of_report else pages.text(place)
            self._kept[wanted] = made
        return self._kept[wanted]

    def _read(self, store: Store) -> Pages:
        """Read what has changed since the last time."""
        states, before = store.study_states(), self._numbers
        running = frozenset(one.study_id for one in running_studies(store) if one.is_alive)
        if self._pages and before and (states, running) == (before.states, self._running):
            return self._pages
        numbers = stored_numbers(store, before=before)
        old = before.states if before else {}
        changed = {number for number, state in numbers.states.items() if old.get(number) != state}
        for number in (self._studies.keys() - numbers.states.keys()) | changed:
            self._studies.pop(number, None)
            self._answers.pop(number, None)
        self._studies |= {stored.id: stored for stored in store.studies(changed)}
        in_order = [self._studies[number] for number in sorted(self._studies)]
        self._numbers, self._running, self._kept = numbers, running, {}
        self._pages = Pages(
            numbers,
            in_order,
            self._cache,
            reasons=self._reasons,
            served=True,
            unexplained=running,
            answers=self._answers,
        )
        return self._pages

    def _report(self, store: Store, place: str) -> str | None:
        """The whole report of a study, as `ktrial report` writes it."""
        number = place.removeprefix(_REPORTS).removesuffix(".html")
        if not (number.isascii() and number.isdigit() and place == f"{_REPORTS}{int(number)}.html"):
            return None
        one = self._studies.get(int(number))
        if one is None or not one.finished or self._numbers is None:
            return None
        reasons = self._reasons and one.id not in self._running
        state = self._numbers.states[one.id]
        key = self._cache.key(store.name, one, state, reasons=reasons, form="report")
        known = self._cache.get(key)
        if known is None:
            known = ResultPage(text=_whole(store, one, reasons=reasons), data="")
            self._cache.put(key, known)
        return known.text


def _whole(store: Store, one: StoredStudy, *, reasons: bool) -> str:
    if one.study.search and (tuned := ended(store, one)):
        return search_page(one.study, tuned, number=one.id)
    # With the event counters, which the other pages do without.
    record = record_of(store, one, store.trials(one.id))
    return study_html(record, whys(store, record) if reasons else ())
