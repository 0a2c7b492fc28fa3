"""A static site of everything in a store: index, matrix, histories, results. Relative links, no server."""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from ktrial.analysis.errors import AnalysisError
from ktrial.analysis.history.stored_numbers import stored_numbers
from ktrial.installation import cache_directory
from ktrial.model.base import digest
from ktrial.report.attribution import Explain
from ktrial.report.regressions import FEED
from ktrial.report.site.front_page import SHEET
from ktrial.report.site.pages import KnownResult, Pages, Tell
from ktrial.store.store import Store

MARK = "ktrial-site"
"""The file that tells a directory is one of ktrial's sites."""
MOST_AT_ONCE = 50
"""Whole pages that one building of a site makes, unless it is told otherwise: some ten seconds. They cost a
hundred times more than those in brief. A site that is built again goes on from there."""


class Site(NamedTuple):
    """What was built."""

    front: Path
    pages: int
    rendered: int
    """Results that were rendered whole."""
    results: int
    in_brief: int
    """How many of the results have the verdicts alone."""
    lists: int
    """How many pages list all results; 0: the front page does."""


def build(
    store: Store,
    directory: Path,
    *,
    explain: Explain | None = None,
    full: int | None = MOST_AT_ONCE,
    tell: Tell = lambda _text: None,
    notes: Path | None = None,
    url: str = "",
) -> Site:
    """Write the site, and take away pages of results that are gone. Raises AnalysisError, StoreError.

    `explain`: finds what changes are made of, from the profiles in the store: seconds for a new result, once.
    `full`: how many results' pages are made whole, those that are whole already not counted; None: all. The
    pages that are left are in brief, and say so. `notes`: the file that says what was written to this
    directory before; else one in the user's cache. `url`: where the site will be, for the links of its feed.
    """
    _check(directory)
    try:
        numbers = stored_numbers(store, tell)
        studies = [study for study in store.studies() if study.id in numbers.states]
        outcomes: dict[int, KnownResult] = {}
        pages = Pages(numbers, studies, explain=explain, outcomes=outcomes, tell=tell, url=url)
        written = WrittenPages(directory, notes or _notes_of(directory))
        if full is not None:
            missing = (
                number
                for number in pages.whole_first
                if not written.is_there(pages.key(number), *_files_of(f"results/{number}.html"))
            )
            pages.in_brief = frozenset(list(missing)[full:])
        for place in pages.places:
            _write_both(pages, place, written, outcomes)
        written.write(MARK, "A site made by ktrial.\n")
        for file in (SHEET, FEED):
            written.write(file, pages.text(file) or "")
        written.end()
    except OSError as error:
        raise AnalysisError(
            f"The site {directory} cannot be written: {error.strerror or str(error)}.",
            hint="name another directory",
        ) from error
    return Site(
        directory / "index.html",
        pages=len(pages.places),
        rendered=pages.rendered,
        results=sum(pages.number(place) is not None for place in pages.places),
        in_brief=len(pages.in_brief),
        lists=pages.lists,
    )


def _check(directory: Path) -> None:
    try:
        names = sorted(file.name for file in directory.iterdir()) if directory.exists() else []
    except OSError as error:
        raise AnalysisError(
            f"The site {directory} cannot be written: {error.strerror}.", hint="name another directory"
        ) from error
    if names and MARK not in names:
        raise AnalysisError(
            f"The directory {directory} holds other files than a site of ktrial's ({names[0]}).",
            hint="name an empty directory, or one that `ktrial site` made before",
        )


def _notes_of(directory: Path) -> Path:
    return cache_directory() / "sites" / f"{digest(str(directory.absolute()))}.json"


def _files_of(place: str) -> tuple[str, str]:
    """A page, and its numbers beside it."""
    return place, f"{place.removesuffix('.html')}.json"


def _write_both(pages: Pages, place: str, written: "WrittenPages", outcomes: dict[int, KnownResult]) -> None:
    """A page and its numbers; a result's, or a list's, only where it is not there as it would be written."""
    files, number = _files_of(place), pages.number(place)
    key = pages.key_at(place)
    if key and written.is_there(key, *files):
        outcome = written.keep(*files)
        if number is not None:
            outcomes[number] = outcome
        return
    for file, text in zip(files, pages.both(place.removesuffix(".html")) or (), strict=False):
        written.write(file, text)
    if key:
        written.note(key, KnownResult("") if number is None else outcomes[number], *files)


FileState = tuple[str, int, int]
"""A file's place, size and time of writing; -1 and 0 of one that is not there."""


class _PageNote(NamedTuple):
    """What was written of a page."""

    key: str
    """What it was made from."""
    outcome: KnownResult
    files: tuple[FileState, ...]


_NOTES = TypeAdapter(dict[str, _PageNote])
"""By the place of a page."""


class WrittenPages:
    """The files of a site: a page that is there, and would be the same, is left as it is.

    Every method raises OSError.
    """

    _FOLDERS = ("results", "history", "regressions")
    _LISTS = "lists"
    """A directory that a site of many results has."""

    def __init__(self, directory: Path, notes: Path) -> None:
        """`notes`: a file outside of the site that says what was written there."""
        self._directory, self._file = directory, notes
        self._before: dict[str, _PageNote] = {}
        with suppress(OSError, ValidationError):  # without notes all is written
            self._before = _NOTES.validate_json(notes.read_bytes())
        self._notes: dict[str, _PageNote] = {}
        self._places: set[str] = set()
        for folder in self._FOLDERS:
            (directory / folder).mkdir(parents=True, exist_ok=True)

    def is_there(self, key: str, *places: str) -> bool:
        """Whether the files of a page are as they were written, and were made from the same."""
        note = self._before.get(places[0])
        return note is not None and note.key == key and note.files == self._states(places)

    def keep(self, *places: str) -> KnownResult:
        """Leave the files of a page that is there; what its result came to."""
        self._notes[places[0]] = note = self._before[places[0]]
        self._places.update(places)
        return note.outcome

    def note(self, key: str, outcome: KnownResult, *places: str) -> None:
        """Note that these files, which are one page, were written."""
        self._notes[places[0]] = _PageNote(key, outcome, self._states(places))

    def write(self, place: str, text: str) -> None:
        """Put a file there as a whole."""
        file = self._directory / place
        if place.startswith(f"{self._LISTS}/"):
            file.parent.mkdir(exist_ok=True)
        partial = file.with_name(f".{file.name}.partial")
        partial.write_text(text, encoding="utf-8")
        partial.replace(file)
        self._places.add(place)

    def end(self) -> None:
        """Take away what belongs to the site no more, and write the notes."""
        for folder in (*self._FOLDERS, self._LISTS):
            if not (self._directory / folder).is_dir():
                continue
            for old in (self._directory / folder).iterdir():
                if old.suffix in {".html", ".json"} and f"{folder}/{old.name}" not in self._places:
                    old.unlink()
        with suppress(OSError):  # it is not there, or not empty
            (self._directory / self._LISTS).rmdir()
        self._file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.with_suffix(".partial")
        partial.write_bytes(_NOTES.dump_json(self._notes))
        partial.replace(self._file)

    def _states(self, places: tuple[str, ...]) -> tuple[FileState, ...]:
        return tuple(_state(self._directory, place) for place in places)


def _state(directory: Path, place: str) -> FileState:
    try:
        status = (directory / place).stat()
    except OSError:
        return place, -1, 0
    return place, status.st_size, status.st_mtime_ns
