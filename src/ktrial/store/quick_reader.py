"""Reads a store's SQLite file with the standard library alone: for commands that have to start at once.

It reads a store of this ktrial's schema, and nothing else. A store on a server, one that is not there, one of
an older or newer schema, or one that is damaged cannot be read quickly: `open_store` makes it, brings it up
to date, or tells what is wrong with it.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ktrial.store import sqlite
from ktrial.store.errors import StoreError
from ktrial.store.location import path_of
from ktrial.store.schema_version import SCHEMA_VERSION
from ktrial.store.study_row import StudyRow

_STUDIES = """
SELECT studies.id, studies.name, studies.digest, studies.spec, studies.created,
    count(trials.id), count(trials.id) - count(trials.id) FILTER (WHERE trials.outcome = 'completed')
FROM studies LEFT JOIN trials ON trials.study_id = studies.id
GROUP BY studies.id ORDER BY studies.id
"""


class NoQuickReading(Exception):
    """The store has to be opened by `open_store`."""


class QuickReader:
    """A store that is open for reading."""

    def __init__(self, connection: sqlite3.Connection, file: Path) -> None:
        self.name = str(file)
        """As `Store.name`."""
        self._connection = connection

    def studies(self) -> tuple[StudyRow, ...]:
        """Every study, the newest last: as `Store.studies`."""
        return tuple(StudyRow.of_sql(row) for row in self._connection.execute(_STUDIES))


@contextmanager
def quick_reader(location: str | Path) -> Iterator[QuickReader]:
    """The store at a path. Raises NoQuickReading, also for whatever goes wrong while it is read."""
    file = path_of(location)
    try:
        if file is None or sqlite.look(file) != SCHEMA_VERSION:
            raise NoQuickReading
        before = _state(file)
        connection = sqlite.connect_read_only(file)
        try:
            yield QuickReader(connection, file)
        finally:
            connection.close()
        if _state(file) != before:
            raise NoQuickReading  # without a log the file was read as one that nobody writes to
    except (StoreError, sqlite3.Error, OSError, ValueError, KeyError, TypeError) as error:
        raise NoQuickReading from error


def _state(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_mtime_ns, status.st_size
