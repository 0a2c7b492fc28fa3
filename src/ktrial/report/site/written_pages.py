"""What was written to a site before: a page that is there, and would be the same, is left as it is."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

_SUFFIXES = (".html", ".json")
_OWN = ("results", "history")
_OF_MANY = "lists"
"""A directory that a site of many results has."""
_Note = list[Any]
"""Of a page: what it is made from, its answer, and each file's name, size and time of writing."""


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


def _read(notes: Path) -> dict[str, _Note]:
    try:
        content = json.loads(notes.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
