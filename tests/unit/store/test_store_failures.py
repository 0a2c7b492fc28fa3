"""What each of SQLite's failures means, what a look at a file tells, and who holds a store."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import Engine, event
from tests.support.making import a_study

from ktrial.store import sqlite
from ktrial.store.errors import NotAStore, StoreDamaged, StoreError, StoreForbidden
from ktrial.store.sqlite import holder_of
from ktrial.store.store import open_store

MEBIBYTE = 1 << 20
MUCH = 5 * MEBIBYTE


def error_of(code: int, text: str = "what SQLite says") -> sqlite3.Error:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("code", "free", "kind", "text"),
    [
        (sqlite3.SQLITE_FULL, MUCH, StoreError, "Store S: its disk is full (5242880 bytes free)."),
        (sqlite3.SQLITE_IOERR, MEBIBYTE - 512, StoreError, "Store S: its disk is full (1048064 bytes free)."),
        (sqlite3.SQLITE_IOERR, MEBIBYTE, StoreError, "Store S: SQLite says: what SQLite says"),
        (sqlite3.SQLITE_IOERR_WRITE, 0, StoreError, "Store S: its disk is full (0 bytes free)."),
        (sqlite3.SQLITE_BUSY, MUCH, StoreError, "Store S is locked: waited 10 s for it."),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, MUCH, StoreError, "Store S is locked: waited 10 s for it."),
        (sqlite3.SQLITE_LOCKED, 0, StoreError, "Store S is locked: waited 10 s for it."),
        (sqlite3.SQLITE_READONLY, 0, StoreForbidden, "Store S cannot be written: what SQLite says."),
        (sqlite3.SQLITE_CANTOPEN, MUCH, StoreForbidden, "Store S cannot be written: what SQLite says."),
        (sqlite3.SQLITE_PERM, MUCH, StoreForbidden, "Store S cannot be written: what SQLite says."),
        (
            sqlite3.SQLITE_NOTADB,
            MUCH,
            NotAStore,
            "Store S is not a ktrial store: it is not an SQLite database.",
        ),
        (sqlite3.SQLITE_CORRUPT, MUCH, StoreDamaged, "Store S is damaged: what SQLite says."),
        (sqlite3.SQLITE_ERROR, 0, StoreError, "Store S: SQLite says: what SQLite says"),
    ],
)
def test_what_a_failure_of_sqlite_means(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int, free: int, kind: type[StoreError], text: str
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda place: SimpleNamespace(f_bavail=free // 512, f_frsize=512))
    said = sqlite.failure(error_of(code), "S", tmp_path / "not/there/x.db")
    assert type(said) is kind
    assert str(said).startswith(text)


def test_an_error_without_a_code_is_told_as_it_is(tmp_path: Path) -> None:
    said = sqlite.failure(sqlite3.ProgrammingError("closed"), "S", tmp_path)
    assert (type(said), str(said)) == (StoreError, "Store S: SQLite says: closed")


def test_free_space_is_that_of_the_disk_on_which_the_store_is_or_will_be(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Path] = []

    def statvfs(place: Path) -> SimpleNamespace:
        asked.append(place)
        return SimpleNamespace(f_bavail=1, f_frsize=1)

    monkeypatch.setattr(os, "statvfs", statvfs)
    (tmp_path / "is.db").touch()
    for name in ("is.db", "will/be.db"):
        sqlite.failure(error_of(sqlite3.SQLITE_FULL), "S", tmp_path / name)
    assert asked == [tmp_path / "is.db", tmp_path]


def test_a_look_at_a_file_tells_the_schema_and_changes_nothing(tmp_path: Path) -> None:
    assert sqlite.look(tmp_path / "none.db") is None
    (tmp_path / "empty.db").touch()
    assert sqlite.look(tmp_path / "empty.db") is None
    with closing(sqlite3.connect(tmp_path / "bare.db")) as raw:
        raw.execute("PRAGMA user_version = 3")
        raw.commit()
    assert sqlite.look(tmp_path / "bare.db") is None
    with closing(sqlite3.connect(tmp_path / "some.db")) as raw:
        raw.execute("CREATE TABLE ktrial_schema (version INTEGER)")
        raw.execute("INSERT INTO ktrial_schema VALUES (4)")
        raw.commit()
    assert sqlite.look(tmp_path / "some.db") == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bare.db", "empty.db", "some.db"]


def test_what_is_wrong_with_a_file_is_told_in_full(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("SQLite format 2")
    for name, table in (("other", "bookmarks (url)"), ("versionless", "ktrial_schema (version)")):
        with closing(sqlite3.connect(tmp_path / name)) as raw:
            raw.execute(f"CREATE TABLE {table}")
            raw.commit()
    (tmp_path / "file").touch()
    cases = {
        "text": "Store FILE is not a ktrial store: it is not an SQLite database.",
        "other": "Store FILE is not a ktrial store: it is another program's SQLite database.",
        "versionless": "Store FILE is damaged: it says no schema version.",
        ".": "Store FILE is not a ktrial store: it is a directory.",
        "file/x.db": "Store FILE cannot be read: Not a directory.",
    }
    for name, text in cases.items():
        file = tmp_path / name
        with pytest.raises(StoreError) as said:
            open_store(file)
        assert str(said.value) == text.replace("FILE", str(file))
    with pytest.raises(NotAStore) as said:
        open_store(tmp_path)
    assert said.value.advice == f"name a file in it: {tmp_path / 'ktrial.db'}"


def test_there_is_nothing_to_read_in_a_store_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    for name in ("none.db", "empty.db"):
        with pytest.raises(NotAStore) as said:
            open_store(tmp_path / name, read_only=True)
        assert str(said.value) == f"Store {tmp_path / name} is not a ktrial store: there is nothing in it."
        assert said.value.advice == "run a study first"


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refused)
    with pytest.raises(StoreForbidden) as said:
        open_store(tmp_path / "new/x.db")
    assert str(said.value) == f"Store {tmp_path / 'new/x.db'} cannot be made: Permission denied."


def test_a_store_is_made_with_the_directories_above_it(tmp_path: Path) -> None:
    with open_store(tmp_path / "a/b/c.db") as store:
        assert store.study(a_study()) == 1


HOLD = """
import fcntl, sys
held = open(sys.argv[1], "r+b")
fcntl.lockf(held, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("suffix", ["", "-shm"])
def test_who_holds_a_lock_on_a_store_is_told_by_number_and_name(tmp_path: Path, suffix: str) -> None:
    """SQLite locks the file itself, or the one that a write-ahead log's readers and writers share."""
    file = tmp_path / "x.db"
    for name in ("x.db", f"x.db{suffix}", "other.db"):
        (tmp_path / name).touch()
    command = [sys.executable, "-c", HOLD, f"{file}{suffix}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        name = Path(f"/proc/{holder.pid}/comm").read_text().strip()
        assert holder_of(file) == f" by process {holder.pid} ({name})"
        assert holder_of(tmp_path / "other.db") == ""
        assert holder_of(tmp_path / "none.db") == ""
        holder.communicate()
    assert holder_of(file) == ""


def test_this_process_is_not_told_that_it_holds_the_store_itself(tmp_path: Path) -> None:
    import fcntl

    with (tmp_path / "x.db").open("w") as own:
        fcntl.lockf(own, fcntl.LOCK_EX)
        assert holder_of(tmp_path / "x.db") == ""


def test_what_writes_takes_the_lock_at_once_and_what_reads_does_not(tmp_path: Path) -> None:
    """A reader that becomes a writer is refused without waiting, where another has written since."""
    begun: list[str] = []

    def note(connection: object, cursor: object, statement: str, *_: object) -> None:
        begun.extend([statement] if statement.startswith("BEGIN") else [])

    event.listen(Engine, "before_cursor_execute", note)
    try:
        with open_store(tmp_path / "x.db") as store:
            store.study(a_study())
            store.studies()
            store.trials(1)
        with open_store(tmp_path / "x.db") as store:
            store.delete(1)
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert begun == ["BEGIN IMMEDIATE", "BEGIN IMMEDIATE", "BEGIN", "BEGIN", "BEGIN IMMEDIATE"]
