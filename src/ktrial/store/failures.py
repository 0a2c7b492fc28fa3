"""What goes wrong in a database's driver, as errors of the store."""

import sqlite3
from pathlib import Path

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from ktrial.store import postgresql, sqlite
from ktrial.store.errors import StoreError
from ktrial.store.location import masked


class Conflict(StoreError):
    """Store {store}: {problem}"""


def failure(error: SQLAlchemyError | sqlite3.Error, name: str, file: Path | None) -> StoreError:
    """The StoreError for an error of SQLAlchemy's, or of SQLite's driver."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if file and isinstance(cause, sqlite3.Error):
        return sqlite.failure(cause, name, file)
    if isinstance(error, DBAPIError) and postgresql.is_its_own(error):
        return postgresql.failure(error, name)
    return StoreError(store=name, problem=masked(str(cause)))
