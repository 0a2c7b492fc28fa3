"""A store in a file of SQLite's: where it is, and nothing that is not ours is touched."""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import ClauseElement, Engine, create_mock_engine, event
from tests.support.making import a_study, a_trial, planned

from ktrial.model.workload import Command, MetricRule, WorkloadUse
from ktrial.store import sqlite
from ktrial.store.errors import (
    NotAStore,
    StoreDamaged,
    StoreError,
    StoreForbidden,
    StoreFull,
    StoreGone,
)
from ktrial.store.location import VARIABLE, default_location, file_of, path_of, shown, url_of
from ktrial.store.quick_reader import SCHEMA_VERSION
from ktrial.store.schema import metadata
from ktrial.store.sqlite import holder_of
from ktrial.store.store import Store, open_store

NOBODY = 65534


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "trials.db") as opened:
        yield opened


@pytest.mark.parametrize("what", ["deleted", "replaced"])
def test_a_store_whose_file_is_gone_takes_and_shows_nothing_more(
    what: str, store: Store, tmp_path: Path
) -> None:
    study = store.study(a_study())
    store.add_trial(study, a_trial(planned(number=0)))
    file = tmp_path / "trials.db"
    if what == "replaced":
        file.rename(tmp_path / "old.db")
        file.touch()
    else:
        file.unlink()
    with pytest.raises(StoreGone, match=what):
        store.add_trial(study, a_trial(planned(number=1)))
    with pytest.raises(StoreGone, match=what):
        store.trials(study)


def test_every_connection_survives_sigkill_and_power_loss(to_the_disk: None, tmp_path: Path) -> None:
    with (
        open_store(tmp_path / "lasting.db") as store,
        store.transactions.engine.connect() as connection,
    ):
        modes = [
            connection.exec_driver_sql(f"PRAGMA {pragma}").scalar()
            for pragma in ("journal_mode", "synchronous", "foreign_keys")
        ]
    assert modes == ["wal", 2, 1]


# Where the store is


def test_the_environment_names_the_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "mine.db"))
    with open_store() as store:
        assert store.name == str(tmp_path / "mine.db")


@pytest.mark.parametrize("name", ["a b.db", "a?mode=rw.db", "100%25#.db", "größer.db", "sub/dir/x.db"])
def test_odd_file_names_are_opened_for_writing_and_for_reading(tmp_path: Path, name: str) -> None:
    with open_store(tmp_path / name) as store:
        study_id = store.study(a_study())
        store.add_trial(study_id, a_trial())
    assert (tmp_path / name).is_file()
    with open_store(tmp_path / name, read_only=True) as store:
        assert store.trials(study_id) == (a_trial(),)


def test_a_store_is_read_while_another_writes_it(tmp_path: Path, store: Store) -> None:
    store.study(a_study())
    with open_store(tmp_path / "trials.db", read_only=True) as reader:
        assert [one.study.name for one in reader.studies()] == ["quick"]
        with pytest.raises(StoreForbidden, match="cannot be written"):
            reader.study(a_study("another"))


def test_the_tables_are_ones_that_postgresql_can_make() -> None:
    made: list[str] = []

    def execute(statement: ClauseElement, *_: object) -> None:
        made.append(str(statement.compile(dialect=engine.dialect)))

    engine = create_mock_engine("postgresql+psycopg://", execute)
    metadata.create_all(engine, checkfirst=False)
    assert sum("CREATE TABLE" in statement for statement in made) == len(metadata.tables) == 19
    assert sum("SERIAL" in statement for statement in made) == 17


# Files that are not ours


def _snapshot(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"just a text\n", "it is not an SQLite database"),
        (b"SQLite format 3\0" + b"\xff" * 4096, "not an SQLite database"),
        (b"x", "it is not an SQLite database"),
    ],
)
def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "notes.txt"
    file.write_bytes(content)
    with pytest.raises(NotAStore, match=problem) as caught:
        open_store(file)
    assert file.read_bytes() == content
    assert "--store" in caught.value.advice


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "trials.db").touch()
    with open_store(tmp_path / "trials.db") as store:
        assert store.studies() == ()


def test_a_truncated_store_is_damaged_not_a_traceback(tmp_path: Path) -> None:
    file = tmp_path / "trials.db"
    with open_store(file) as store:
        study_id = store.study(a_study())
        for number in range(30):
            store.add_trial(study_id, a_trial(planned(number=number, order=number), console="x" * 4000))
    os.truncate(file, 16384)
    with pytest.raises((StoreDamaged, NotAStore)), open_store(file) as store:
        store.trials(study_id)


# Rights, locks, full disks


@contextmanager
def _as_nobody() -> Iterator[Path]:
    """A directory of a user without rights, whose rights this process takes on (root may do everything)."""
    directory = Path(tempfile.mkdtemp(prefix="ktrial-"))
    user = os.geteuid()
    if user == 0:
        os.chown(directory, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield directory
    finally:
        os.seteuid(user)
        directory.chmod(0o700)
        subprocess.run(["rm", "-r", str(directory)], check=True)


def test_a_read_only_directory_is_an_error_that_says_so() -> None:
    with _as_nobody() as directory:
        directory.chmod(0o500)
        with pytest.raises(StoreForbidden, match="cannot be written") as caught:
            open_store(directory / "trials.db")
        assert "rights" in caught.value.advice
        with pytest.raises(StoreForbidden, match="cannot be made: Permission denied"):
            open_store(directory / "new" / "trials.db")


def test_a_store_that_may_not_be_read_is_an_error_that_says_so() -> None:
    with _as_nobody() as directory:
        open_store(directory / "trials.db").close()
        (directory / "trials.db").chmod(0)
        with pytest.raises(StoreForbidden, match="cannot be read: Permission denied"):
            open_store(directory / "trials.db")


def test_a_store_in_a_read_only_directory_is_still_shown() -> None:
    with _as_nobody() as directory:
        with open_store(directory / "trials.db") as store:
            study_id = store.study(a_study())
            store.add_trial(study_id, a_trial())
        (directory / "trials.db").chmod(0o400)
        directory.chmod(0o500)
        with open_store(directory / "trials.db", read_only=True) as store:
            assert store.trials(study_id) == (a_trial(),)


HOLD = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_locked_store_names_who_holds_it(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ktrial.store.sqlite.BUSY_SECONDS", 1)
    command = [sys.executable, "-c", HOLD, str(tmp_path / "trials.db")]
    store.close()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match=rf"by process {holder.pid} \(python") as caught:
            store.study(a_study())
        assert "run the same command again" in caught.value.advice
        holder.communicate()
    assert store.study(a_study()) == 1


def _fill(store: Store, study_id: int) -> list[str]:
    """Store trials until the disk is full; the keys of those that were stored."""
    stored: list[str] = []

    def add(number: int) -> None:
        plan = planned(number=number, order=number)
        store.add_trial(study_id, a_trial(plan, console="x" * 20_000))
        stored.append(plan.key)

    with pytest.raises(StoreFull) as caught:
        any(map(add, range(1000)))
    assert "free some space" in caught.value.advice
    return stored


def test_a_full_database_keeps_what_was_stored(store: Store) -> None:
    study_id = store.study(a_study())
    with store.transactions.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 60")
    stored = _fill(store, study_id)
    assert stored
    assert {trial.planned.key for trial in store.trials(study_id)} == set(stored)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_full_disk_keeps_what_was_stored(tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", str(tmp_path)], check=True)
    try:
        with open_store(tmp_path / "trials.db") as store:
            study_id = store.study(a_study())
            stored = _fill(store, study_id)
            assert stored
            assert {trial.planned.key for trial in store.trials(study_id)} == set(stored)
        with open_store(tmp_path / "trials.db", read_only=True) as store:
            assert {trial.planned.key for trial in store.trials(study_id)} == set(stored)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_disk_that_is_full_from_the_start_is_said_to_be(tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(tmp_path)], check=True)
    try:
        (tmp_path / "ballast").write_bytes(b"x" * 12_000)
        with pytest.raises(StoreFull):
            open_store(tmp_path / "trials.db")
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


# What each of SQLite's failures means, and who holds a store


MEBIBYTE = 1 << 20
MUCH = 5 * MEBIBYTE


def error_of(code: int, text: str = "what SQLite says") -> sqlite3.Error:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


def test_a_store_without_a_column_is_another_ktrials(tmp_path: Path) -> None:
    lacking = error_of(sqlite3.SQLITE_ERROR, "no such column: studies.made_by")
    told = sqlite.failure(lacking, "S", tmp_path / "S")
    assert isinstance(told, StoreDamaged)
    assert "a ktrial from before the first release made it, whose stores no other reads" in told.message


@pytest.mark.parametrize(
    ("code", "free", "kind", "text"),
    [
        (sqlite3.SQLITE_FULL, MUCH, StoreFull, "Store S: its disk is full (5242880 bytes free)."),
        (sqlite3.SQLITE_IOERR, MEBIBYTE - 512, StoreFull, "Store S: its disk is full (1048064 bytes free)."),
        (sqlite3.SQLITE_IOERR, MEBIBYTE, StoreError, "Store S: SQLite says: what SQLite says"),
        (sqlite3.SQLITE_IOERR_WRITE, 0, StoreFull, "Store S: its disk is full (0 bytes free)."),
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


LOCK = """
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
    command = [sys.executable, "-c", LOCK, f"{file}{suffix}"]
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


@pytest.mark.parametrize(
    ("location", "file"),
    [
        ("/a/b.db", "/a/b.db"),
        ("b.db", "HERE/b.db"),
        ("~/b.db", "/home/me/b.db"),
        ("sqlite:////a/b.db", "/a/b.db"),
        ("sqlite:///b.db", "HERE/b.db"),
        ("postgresql://me:secret@host/db", None),
    ],
)
def test_which_file_a_location_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, location: str, file: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    expected = Path(file.replace("HERE", str(tmp_path))) if file else None
    assert file_of(url_of(location)) == expected
    assert path_of(location) == (None if "://" in location else expected)
    assert shown(url_of(location)) == (str(expected) if expected else "postgresql://me:***@host/db")


@pytest.mark.parametrize(("named", "location"), [("x.db", "x.db"), ("", "/share/ktrial/ktrial.db")])
def test_the_user_s_own_store(monkeypatch: pytest.MonkeyPatch, named: str, location: str) -> None:
    monkeypatch.setenv(VARIABLE, named)
    monkeypatch.setenv("XDG_DATA_HOME", "/share")
    assert default_location() == location


def test_a_study_is_kept_under_the_names_of_the_study_file(tmp_path: Path) -> None:
    """What other programs read: `json`, and not what the code calls it."""
    rule = MetricRule.model_validate({"name": "p99", "json": "latency.p99"})
    use = WorkloadUse(name="mine", command=Command(argv=("x",), metrics=(rule,)))
    study = a_study().model_copy(update={"workloads": (use,)})
    with open_store(tmp_path / "x.db") as store:
        assert store.find(store.study(study)).study == study
    with closing(sqlite3.connect(tmp_path / "x.db")) as raw:
        ((spec,),) = raw.execute("SELECT spec FROM studies")
    (metric,) = json.loads(str(spec))["workloads"][0]["command"]["metrics"]
    assert (metric["name"], metric["json"]) == ("p99", "latency.p99")


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        (SCHEMA_VERSION + 1, f"has the schema {SCHEMA_VERSION + 1}, and this ktrial knows {SCHEMA_VERSION}"),
        (0, "is damaged: its schema version is 0"),
    ],
)
@pytest.mark.parametrize("logged", [False, True])
def test_a_store_of_another_schema_is_refused_and_not_one_byte_of_it_changes(
    tmp_path: Path, logged: bool, version: int, problem: str
) -> None:
    file = tmp_path / "trials.db"
    with open_store(file) as store:
        store.study(a_study())
    raw = sqlite3.connect(file)
    raw.execute("UPDATE ktrial_schema SET version = ?", (version,))
    raw.commit()
    if not logged:
        raw.close()
    before = _snapshot(tmp_path)
    for read_only in (False, True):
        with pytest.raises(StoreError, match=problem):
            open_store(file, read_only=read_only)
    after = _snapshot(tmp_path)
    raw.close()
    # While another process has it open, SQLite keeps marks of its readers in -shm; that is no data.
    shared = str(file) + "-shm"
    assert after.pop(shared, b"") is not None
    before.pop(shared, None)
    assert after == before
