"""All that only SQLite has: pragmas, locks, result codes, and a look at a file that does not change it."""

import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from ktrial.store.errors import NotAStore, StoreDamaged, StoreError, StoreForbidden, StoreFull
from ktrial.store.head_file import HeadFile
from ktrial.text_lines import lines_of

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.pool import ConnectionPoolEntry


BUSY_SECONDS = 10


NO_UTF8 = "Could not decode to UTF-8"
"""How Python's sqlite3 begins what it says of a text that is none any more."""


_LACKING = ("no such table", "no such column")


_MAGIC = b"SQLite format 3\0"


_PRIMARY_CODE = 0xFF
"""The low byte of SQLite's extended result codes (https://www.sqlite.org/rescode.html)."""


_ALMOST_FULL_BYTES = 1 << 20
SYNCHRONOUS = "FULL"
"""In WAL mode NORMAL survives SIGKILL, but not power loss: a commit could be undone."""


_LOCK = re.compile(r"^\d+: \S+ +\S+ +WRITE +(\d+) +([0-9a-f]+):([0-9a-f]+):(\d+) ")
"""A line of /proc/locks: process, device and inode of a write lock."""


def prepare_engine(engine: "Engine") -> None:
    """Set up every connection for safety against SIGKILL and power loss, and for two processes at once."""
    from sqlalchemy import event

    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)


def _on_connect(connection: "DBAPIConnection", _entry: "ConnectionPoolEntry") -> None:
    assert isinstance(connection, sqlite3.Connection)
    # The driver is not to begin transactions by itself: _on_begin does.
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")


def _on_begin(connection: "Connection") -> None:
    # A writer takes the lock at once: a reader that becomes a writer is refused without waiting.
    writes = connection.get_execution_options().get("ktrial_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def enter_wal(engine: "Engine") -> None:
    """Switch the file to write-ahead logging. The switch ignores busy_timeout, so it is tried for as long."""
    deadline = time.monotonic() + BUSY_SECONDS
    connection = engine.raw_connection()
    try:
        while True:
            try:
                connection.cursor().execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
    finally:
        connection.close()


def connect_read_only(file: Path, *, followed: bool = False) -> sqlite3.Connection:
    """Open the database without ever changing it or its directory.

    `followed`: for longer than a moment, in which others may begin to write: then SQLite makes its two files
    beside it where it may.
    """
    log = file.with_name(file.name + "-wal")
    is_written = (log.exists() and log.stat().st_size) or (followed and os.access(file.parent, os.W_OK))
    # Without a log nobody writes: `immutable` then also keeps SQLite from making its two files beside it.
    immutable = "" if is_written else "&immutable=1"
    uri = f"file:{quote(str(file))}?mode=ro{immutable}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, check_same_thread=False)


def look(file: Path) -> int | None:
    """The schema version of the store in `file`; None where the file is empty or not there.

    Raises NotAStore for anything else than a ktrial store, StoreForbidden where it cannot be read.
    """
    if file.is_dir():
        raise NotAStore(file, "it is a directory", hint=f"name a file in it: {file / 'ktrial.db'}")
    try:
        with file.open("rb") as opened:
            head = opened.read(len(_MAGIC))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreForbidden(file, "read", error.strerror) from error
    if not head:
        return None
    if head != _MAGIC:
        raise NotAStore(file, "it is not an SQLite database")
    return _stored_version(file)


def _stored_version(file: Path) -> int | None:
    try:
        connection = connect_read_only(file)
    except sqlite3.Error as error:
        raise failure(error, str(file), file) from error
    try:
        tables = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        if not tables:
            return None
        if "ktrial_schema" not in tables:
            raise NotAStore(file, "it is another program's SQLite database")
        row = connection.execute("SELECT version FROM ktrial_schema").fetchone()
    except sqlite3.Error as error:
        raise failure(error, str(file), file) from error
    finally:
        connection.close()
    if not row or not isinstance(row[0], int):
        raise StoreDamaged(f"Store {file} is damaged: it says no schema version.")
    return row[0]


def was_left_open(file: Path, head_file: HeadFile) -> bool:
    """Whether the last process that wrote to the store ended without closing it: killed, or without power."""
    write_ahead_log = Path(f"{file}-wal")
    try:
        return write_ahead_log.stat().st_size > 0 and not head_file.is_held()
    except OSError:
        return False


def check_quickly(connection: sqlite3.Connection, store: str) -> None:
    """Raise StoreDamaged where SQLite's own check of the file, without that of its indexes, is not passed."""
    (problem,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if problem != "ok":
        raise StoreDamaged(f"Store {store} is damaged: {problem}.")


def failure(error: sqlite3.Error, store: str, file: Path) -> StoreError:
    """The StoreError that says what SQLite's error means."""
    code = _code(error)
    free = _free_bytes(file)
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and free < _ALMOST_FULL_BYTES):
        return StoreFull(
            f"Store {store}: its disk is full ({free} bytes free). The trials stored before are safe.",
            hint="free some space, or use another disk (--store FILE), then run the same command again",
        )
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreError(
            f"Store {store} is locked{holder_of(file)}: waited {BUSY_SECONDS} s for it.",
            hint="wait for that process to end, or end it, then run the same command again: no trial is lost",
        )
    if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}:
        return StoreForbidden(store, "written", error)
    if code == sqlite3.SQLITE_NOTADB:
        return NotAStore(store, "it is not an SQLite database")
    if code == sqlite3.SQLITE_ERROR and str(error).startswith(_LACKING):
        return StoreDamaged(
            f"Store {store} is damaged, or a ktrial from before the first release made it, whose stores no "
            f"other reads: {error}."
        )
    if code == sqlite3.SQLITE_CORRUPT or NO_UTF8 in str(error):
        return StoreDamaged(f"Store {store} is damaged: {error}.")
    return StoreError(f"Store {store}: SQLite says: {error}")


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & _PRIMARY_CODE


def _free_bytes(file: Path) -> int:
    place = next(path for path in (file, *file.parents) if path.exists())
    status = os.statvfs(place)
    return status.f_bavail * status.f_frsize


def holder_of(file: Path) -> str:
    """Who holds the lock on the database: ` by process 4711 (ktrial)`.

    Empty where it cannot be told (another container, another host).
    """
    # With a write-ahead log it is -shm that is locked, never -wal (https://www.sqlite.org/wal.html).
    nodes = {node for suffix in ("", "-shm") if (node := _node(Path(f"{file}{suffix}")))}
    pids = [pid for pid, node in _write_locks() if node in nodes and pid != os.getpid()]
    return f" by process {pids[0]}{_program(pids[0])}" if pids else ""


def _write_locks() -> list[tuple[int, tuple[int, int]]]:
    """Process and (device, inode) of every write lock on this host."""
    table = Path("/proc/locks")
    lines = lines_of(table.read_text()) if table.exists() else []
    locks = [match for line in lines if (match := _LOCK.match(line))]
    return [(int(m[1]), (os.makedev(int(m[2], 16), int(m[3], 16)), int(m[4]))) for m in locks]


def _node(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _program(pid: int) -> str:
    try:
        return f" ({Path(f'/proc/{pid}/comm').read_text(encoding='utf-8', errors='replace').strip()})"
    except OSError:
        return ""


# Text in a row that is no UTF-8 any more: one bit is enough, and SQLite then gives the whole row no name.


@contextmanager
def undecodable_text() -> Iterator[None]:
    """Raise UnicodeError for it, as for any other value that is none of its kind."""
    from sqlalchemy.exc import DBAPIError  # the quick reader loads this module, and starts without SQLAlchemy

    try:
        yield
    except DBAPIError as error:
        if NO_UTF8 in str(error.orig):
            raise UnicodeError(str(error.orig)) from error
        raise
