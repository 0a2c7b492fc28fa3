"""A static site of everything in a store: index, matrix, histories, results. Relative links, no server."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ktrial.analysis.errors import HistoryError
from ktrial.analysis.history.stored_numbers import stored_numbers
from ktrial.report.site.front_page import SHEET
from ktrial.report.site.page_cache import PageCache
from ktrial.report.site.pages import Pages, Tell
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


# Which results of a site have whole pages, which cost a hundred times more, and which are in brief.

MOST_AT_ONCE = 50
"""Whole pages that one building of a site makes, unless it is told otherwise: some ten seconds. A site that
is built again goes on from there."""


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
        raise HistoryError(
            f"The site {directory} cannot be written: {error.strerror or str(error)}.",
            hint="name another directory",
        ) from error
    results = sum(pages.number(place) is not None for place in pages.places)
    counts = (len(pages.places), pages.rendered, results, len(pages.in_brief), pages.lists)
    return Site(directory / "index.html", *counts)


class WrittenPages:
    """The files of a site. Every method raises OSError."""

    def __init__(self, directory: Path, notes: Path) -> None:
        """`notes`: a file outside of the site that says what was written there."""
        self._directory, self._file = directory, notes
        self._before = _read(notes)
        self._now: dict[str, _Note] = {}
        self._places: set[str] = set()
        for own in _OWN:
            (directory / own).mkdir(parents=True, exist_ok=True)

    def is_there(self, key: str, *places: str) -> bool:
        """Whether the files of a page are as they were written, and were made from the same."""
        note = self._before.get(places[0])
        return note is not None and note[0] == key and note[2] == self._states(places)

    def as_written(self, key: str, *places: str) -> str | None:
        """The answer of a page that was made from the same, if its files are as they were written then."""
        if not self.is_there(key, *places):
            return None
        self._now[places[0]] = note = self._before[places[0]]
        self._places.update(places)
        return str(note[1])

    def note(self, key: str, answer: str, *places: str) -> None:
        """These files were written now, and are one page."""
        self._now[places[0]] = [key, answer, self._states(places)]

    def write(self, place: str, text: str) -> None:
        """Put a file there as a whole."""
        file = self._directory / place
        if place.startswith(f"{_OF_MANY}/"):
            file.parent.mkdir(exist_ok=True)
        partial = file.with_name(f".{file.name}.partial")
        partial.write_text(text, encoding="utf-8")
        partial.replace(file)
        self._places.add(place)

    def end(self) -> None:
        """Take away what belongs to the site no more."""
        for own in (*_OWN, *([_OF_MANY] if (self._directory / _OF_MANY).is_dir() else ())):
            for old in (self._directory / own).iterdir():
                if old.suffix in _SUFFIXES and f"{own}/{old.name}" not in self._places:
                    old.unlink()
        with suppress(OSError):  # it is not there, or not empty
            (self._directory / _OF_MANY).rmdir()
        self._file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.with_suffix(".partial")
        partial.write_text(json.dumps(self._now), encoding="utf-8")
        partial.replace(self._file)

    def _states(self, places: tuple[str, ...]) -> list[Any]:
        return [list(each) for each in self._stated(places)]

    def _stated(self, places: tuple[str, ...]) -> Iterator[tuple[str, int, int]]:
        for place in places:
            try:
                status = (self._directory / place).stat()
            except OSError:
                yield place, -1, 0
            else:
                yield place, status.st_size, status.st_mtime_ns


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
        raise HistoryError(
            f"The site {directory} cannot be written: {error.strerror}.", hint="name another directory"
        ) from error
    if there and MARK not in there:
        raise HistoryError(
            f"The directory {directory} holds other files than a site of ktrial's ({there[0]}).",
            hint="name an empty directory, or one that `ktrial site` made before",
        )


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


# What was written to a site before: a page that is there, and would be the same, is left as it is.

_SUFFIXES = (".html", ".json")


_OWN = ("results", "history")


_OF_MANY = "lists"
"""A directory that a site of many results has."""


_Note = list[Any]
"""Of a page: what it is made from, its answer, and each file's name, size and time of writing."""


def _read(notes: Path) -> dict[str, _Note]:
    try:
        content = json.loads(notes.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
