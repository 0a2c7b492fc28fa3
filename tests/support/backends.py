"""The databases that a store may be in: one of each for a test, and SQL that goes past ktrial."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.support import database_server

SQLITE, POSTGRESQL = "sqlite", "postgresql"
BACKENDS = (SQLITE, POSTGRESQL)


@dataclass(frozen=True)
class Backend:
    """Where a store of a test's is, or is to be made."""

    kind: str
    location: str
    """A path, or a URL: what `--store` takes."""

    @property
    def is_file(self) -> bool:
        """Whether it is one of SQLite's."""
        return self.kind == SQLITE

    def sql(self, statement: str) -> list[tuple[object, ...]]:
        """What one statement returns, which ktrial does not see. `HEX'00'` are bytes."""
        if not self.is_file:
            return database_server.sql(self.location, statement.replace("HEX'", r"'\x"))
        with closing(sqlite3.connect(self.location)) as raw:
            rows = raw.execute(statement.replace("HEX'", "x'")).fetchall()
            raw.commit()
            return rows

    def put(self, table: str, content: bytes) -> None:
        """Put these bytes in place of what a table's rows have compressed."""
        self.sql(f"UPDATE {table} SET content = HEX'{content.hex()}'")


def a_file(directory: Path) -> Backend:
    """A file of SQLite's that is not there yet."""
    return Backend(SQLITE, str(directory / "trials.db"))
