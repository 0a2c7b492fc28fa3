"""SQLite under another name: a database that SQLAlchemy reaches by a URL, and ktrial takes for a server."""

from pathlib import Path

from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

NAME = "serverlike"


class ServerLike(SQLiteDialect_pysqlite):
    """SQLite, but for its name."""

    name = NAME
    supports_statement_cache = True


def url(file: Path) -> str:
    """With a user and a password, as a server's."""
    registry.register(NAME, __name__, ServerLike.__name__)
    return f"{NAME}:///{file}"
