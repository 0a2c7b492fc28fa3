"""What is served: pages of the store as it is at the moment, made when they are asked for, and kept until it
changes."""

import re
import threading
from collections.abc import Callable

from ktrial.analysis.history.stored_numbers import StoredNumbers, stored_numbers
from ktrial.analysis.result import make_record
from ktrial.analysis.store_queries import running_studies
from ktrial.report import study_html, whys
from ktrial.report.attribution import Explain
from ktrial.report.site.pages import KnownResult, Pages
from ktrial.report.tuning import tuning_page
from ktrial.store.errors import StoreGone
from ktrial.store.store import Store
from ktrial.store.study_rows import StoredStudy

_REPORT = re.compile(r"reports/(?P<number>[1-9][0-9]{0,17})\.html")
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

    def __init__(self, opener: Opener, explain: Explain | None = None) -> None:
        """`explain`: finds what changes are made of, but for studies that run: theirs change."""
        self._opener, self._explain = opener, explain
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._forget()

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
        self._store = None
        self._numbers: StoredNumbers | None = None
        self._running: frozenset[int] = frozenset()
        self._followed = ""
        self._studies: dict[int, StoredStudy] = {}
        self._outcomes: dict[int, KnownResult] = {}
        self._pages: Pages | None = None
        self._texts: dict[tuple[str, Choice], str | None] = {}

    def _current(self, place: str, chosen: Choice) -> str | None:
        if self._store is None:
            self._store = self._opener()
        pages = self._read(self._store)
        pair = _PAIR.fullmatch(place)
        key = (place, chosen if pair else NOTHING)
        if key not in self._texts:
            if pair:
                both = pages.pair(int(pair["number"]), *chosen)
                text = both[pair["form"] == "json"] if both else None
            elif report := _REPORT.fullmatch(place):
                text = self._report(self._store, int(report["number"]))
            else:
                text = pages.text(place)
            if len(self._texts) >= _MOST_KEPT:
                self._texts.clear()
            self._texts[key] = text
        return self._texts[key]

    def _read(self, store: Store) -> Pages:
        """Read what has changed since the last time."""
        states, before = store.study_states(), self._numbers
        running = frozenset(study.study_id for study in running_studies(store) if study.is_alive)
        followed = store.regressions_state()
        same = (states, running, followed) == (before.states if before else {}, self._running, self._followed)
        if self._pages and before and same:
            return self._pages
        numbers = stored_numbers(store, before=before)
        old = before.states if before else {}
        changed = {number for number, state in numbers.states.items() if old.get(number) != state}
        # Of a study that runs nothing is explained; of one that ran until now something may be.
        for number in (self._studies.keys() - numbers.states.keys()) | changed | (running ^ self._running):
            self._outcomes.pop(number, None)
        for number in (self._studies.keys() - numbers.states.keys()) | changed:
            self._studies.pop(number, None)
        self._studies |= {stored.id: stored for stored in store.studies(changed)}
        self._numbers, self._running, self._followed, self._texts = numbers, running, followed, {}
        self._pages = Pages(
            numbers,
            [self._studies[number] for number in sorted(self._studies)],
            explain=self._explain,
            served=True,
            unexplained=running,
            outcomes=self._outcomes,
        )
        return self._pages

    def _report(self, store: Store, number: int) -> str | None:
        """The whole report of a study, as `ktrial report` writes it."""
        stored = self._studies.get(number)
        if stored is None or not stored.finished:
            return None
        if stored.study.search and (tuned := store.answer(number)):
            return tuning_page(stored.study, tuned, number=number)
        # With the event counters, which the other pages do without.
        record = make_record(store, stored, store.trials(number))
        explain = self._explain if number not in self._running else None
        return study_html(record, whys(store, record, explain) if explain else ())
