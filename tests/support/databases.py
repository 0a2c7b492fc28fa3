"""The databases that a store may be in: one of each for a test, and SQL that goes past ktrial."""

import fcntl
import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import psycopg
from filelock import FileLock
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from ktrial.store.store import open_store

# The databases that a store may be in: one of each for a test, and SQL that goes past ktrial.

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
            return sql(self.location, statement.replace("HEX'", r"'\x"))
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


# A PostgreSQL server for the tests: Debian's package, as a user without rights, on a socket in a directory.
#
# One server a run, which its workers share; it is started when the first test asks, and ends with the last
# worker. A database is copied from one that has the store's tables already.

USER = "ktrial"


TEMPLATE = "with_tables"


_OF_DEBIAN = Path("/usr/lib/postgresql")


_NOBODY = "nobody"


_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "jit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_connections": "120",
    "shared_buffers": "32MB",
    "listen_addresses": "''",
}
"""Safe against a killed server, not against a power cut, which no test makes."""


@dataclass(frozen=True)
class Server:
    """A server that runs, or ran, in a directory."""

    directory: Path

    def url(self, database: str, *, password: str = "") -> str:
        """Of one of its databases."""
        secret = f":{quote(password)}" if password else ""
        return f"postgresql://{USER}{secret}@/{database}?host={self.directory}"

    def database(self, *, empty: bool = False) -> str:
        """The URL of a new database: with the store's tables, or `empty`."""
        name = f"t{uuid4().hex[:16]}"
        self.sql("postgres", f"CREATE DATABASE {name} TEMPLATE {'template0' if empty else TEMPLATE}")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database that `database` made, whoever is connected to it."""
        self.sql(
            "postgres", f"DROP DATABASE IF EXISTS {url.partition('@/')[2].partition('?')[0]} WITH (FORCE)"
        )

    def sql(self, database: str, statement: str) -> list[tuple[object, ...]]:
        """What one statement returns."""
        return sql(self.url(database), statement)

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        settings = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
        self._control("start", "-l", str(self.directory / "log"), "-o", f"{settings} -k {self.directory}")

    def stop(self, mode: str = "immediate") -> None:
        """Stop it, as `pg_ctl stop -m` does: smart, fast, or immediate (as a crash)."""
        self._control("stop", "-m", mode)

    def _control(self, *arguments: str) -> None:
        _run("pg_ctl", "-w", "-s", "-D", str(self.directory / "data"), *arguments)


def sql(url: str, statement: str) -> list[tuple[object, ...]]:
    """What one statement returns, in the database with this URL; nothing where it returns no rows."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


@contextmanager
def running() -> Iterator[Server]:
    """A new server, with a database to copy from."""
    directory = Path(_new_directory())
    try:
        yield made(directory)
    finally:
        ended(Server(directory))


def _new_directory() -> str:
    """Not in /tmp, which may be memory: each database takes eight megabytes. A socket's path is short."""
    return tempfile.mkdtemp(prefix="ktrial-pg-", dir="/var/tmp")


def made(directory: Path) -> Server:
    """Make a server's files, start it, and make the database that others are copied from."""
    directory.chmod(0o755)
    if _is_root():
        shutil.chown(directory, _NOBODY)
    how = ("--no-sync", "--no-instructions", "--auth=trust", f"--username={USER}", "--locale=C")
    _run("initdb", *how, "--encoding=UTF8", "-D", str(directory / "data"))
    server = Server(directory)
    server.start()
    server.sql("postgres", f"CREATE DATABASE {TEMPLATE} TEMPLATE template0")
    open_store(server.url(TEMPLATE)).close()
    return server


def ended(server: Server) -> None:
    """Stop the server where it runs, and remove what it made."""
    try:
        if (server.directory / "data" / "postmaster.pid").exists():
            server.stop()
    finally:
        shutil.rmtree(server.directory, ignore_errors=True)


@contextmanager
def shared(place: Path) -> Iterator[Server]:
    """The server of the processes that name the same place: the first starts it, the last one ends it."""
    place.mkdir(exist_ok=True)
    known = place / "directory"
    with (place / "users").open("w") as users:
        with FileLock(place / "coming-and-going"):
            if not known.exists():
                known.write_text(_new_directory())
                made(Path(known.read_text()))
            fcntl.flock(users, fcntl.LOCK_SH)
        server = Server(Path(known.read_text()))
        yield server
        with FileLock(place / "coming-and-going"):
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            known.unlink()
            ended(server)


def _run(program: str, *arguments: str) -> None:
    newest = max(_OF_DEBIAN.glob("*/bin"), key=lambda path: float(path.parent.name), default=None)
    assert newest, "PostgreSQL is not here: setup/system-packages test"
    who = {"user": _NOBODY, "group": pwd.getpwnam(_NOBODY).pw_gid, "extra_groups": []} if _is_root() else {}
    done = subprocess.run(
        [str(newest / program), *arguments],
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        **who,  # type: ignore[call-overload]
    )
    assert done.returncode == 0, f"{program} {arguments[0]}: {done.stderr}"


def _is_root() -> bool:
    return os.geteuid() == 0


# SQLite under another name: a database that SQLAlchemy reaches by a URL, and ktrial takes for a server.

NAME = "serverlike"


class ServerLike(SQLiteDialect_pysqlite):
    """SQLite, but for its name."""

    name = NAME
    supports_statement_cache = True


def url(file: Path) -> str:
    """With a user and a password, as a server's."""
    registry.register(NAME, __name__, ServerLike.__name__)
    return f"{NAME}:///{file}"
