"""Pages that were made before: what a difference is made of takes seconds a kernel, and never changes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from ktrial.installation import cache_directory, program_digest
from ktrial.model.base import Model, digest
from ktrial.store.study_rows import StoredStudy


class Reason(NamedTuple):
    """Where a page says what a change is made of."""

    workload: str
    treatment: str
    place: int


class ResultPage(Model):
    """A result's page, as it was rendered."""

    text: str
    data: str
    """Its numbers as JSON."""
    reasons: tuple[Reason, ...] = ()
    answer: str = ""


class PageCache:
    """Rendered pages by the digest of all that they are made from."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory or cache_directory() / "pages"
        # A changed template, table or statistic makes new pages.
        self._program = program_digest()

    def key(self, store: str, stored: StoredStudy, state: str, *, reasons: bool, form: str = "site") -> str:
        """The same for a study of the store in the same state, shown by the same ktrial. `form`: which of its
        pages.
        """
        return digest([self._program, form, store, stored.id, stored.digest, state, reasons])

    def key_of(self, facts: Sequence[Any]) -> str:
        """Of a page that is made from such facts by the same ktrial."""
        return digest([self._program, repr(facts)])

    def get(self, key: str) -> ResultPage | None:
        """The page; None where it was never made, or cannot be read."""
        try:
            return ResultPage.model_validate_json(self._file(key).read_text(encoding="utf-8"))
        except (OSError, ValidationError, json.JSONDecodeError):
            return None

    def has(self, key: str) -> bool:
        """Whether the page was made, as far as can be told without reading it."""
        return self._file(key).is_file()

    def put(self, key: str, page: ResultPage) -> None:
        """Keep it. Raises OSError."""
        file = self._file(key)
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".partial")
        partial.write_text(page.model_dump_json(), encoding="utf-8")
        partial.replace(file)

    def site_file(self, directory: Path) -> Path:
        """Where is kept what was written to a site's directory."""
        return self._directory / "sites" / f"{digest(str(directory.absolute()))}.json"

    def _file(self, key: str) -> Path:
        return self._directory / key[:2] / f"{key}.json"
