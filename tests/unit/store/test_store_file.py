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

import pytest
from sqlalchemy import ClauseElement, create_mock_engine
from tests.support.making import a_study, a_trial, planned

from ktrial.model.trial import Outcome
from ktrial.store.errors import NotAStore, StoreDamaged, StoreError, StoreForbidden, StoreGone
from ktrial.store.location import default_location
from ktrial.store.schema import SCHEMA_VERSION, metadata
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


def test_every_connection_survives_sigkill_and_power_loss(store: Store, tmp_path: Path) -> None:
    with store.transactions.engine.connect() as connection:
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


def test_without_a_name_the_store_is_in_the_users_data_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KTRIAL_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", "/somewhere/share")
    assert default_location() == "/somewhere/share/ktrial/ktrial.db"


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


def test_reading_makes_no_store(tmp_path: Path) -> None:
    with pytest.raises(NotAStore, match="there is nothing in it"):
        open_store(tmp_path / "none.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("location", "problem"),
    [
        ("postgresql+nodriver://host/db", "SQLAlchemy knows no postgresql"),
        ("nosuchdb://host/db", "SQLAlchemy knows no nosuchdb"),
        ("sqlite://", "a store in memory would lose every trial"),
        ("postgresql://host:port:port/db", "cannot be understood"),
    ],
)
def test_a_url_that_names_no_database_is_an_error(location: str, problem: str) -> None:
    with pytest.raises(StoreError, match=problem) as caught:
        open_store(location)
    assert "postgresql" in caught.value.advice


def test_a_password_is_not_shown() -> None:
    with pytest.raises(StoreError) as caught:
        open_store("postgresql+nodriver://user:secret@host/db")
    assert "secret" not in str(caught.value)


def test_the_tables_are_ones_that_postgresql_can_make() -> None:
    made: list[str] = []

    def execute(statement: ClauseElement, *_: object) -> None:
        made.append(str(statement.compile(dialect=engine.dialect)))

    engine = create_mock_engine("postgresql+psycopg://", execute)
    metadata.create_all(engine, checkfirst=False)
    assert sum("CREATE TABLE" in statement for statement in made) == len(metadata.tables) == 17
    assert sum("SERIAL" in statement for statement in made) == 16


# Files that are not ours


def _snapshot(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("logged", [False, True])
def test_a_newer_store_is_refused_and_not_one_byte_of_it_changes(tmp_path: Path, logged: bool) -> None:
    file = tmp_path / "trials.db"
    with open_store(file) as store:
        store.study(a_study())
    raw = sqlite3.connect(file)
    raw.execute("UPDATE ktrial_schema SET version = ?", (SCHEMA_VERSION + 1,))
    raw.commit()
    if not logged:
        raw.close()
    before = _snapshot(tmp_path)
    for read_only in (False, True):
        with pytest.raises(StoreError, match=f"schema is {SCHEMA_VERSION + 1}.* knows {SCHEMA_VERSION}"):
            open_store(file, read_only=read_only)
    after = _snapshot(tmp_path)
    raw.close()
    # While another process has it open, SQLite keeps marks of its readers in -shm; that is no data.
    shared = str(file) + "-shm"
    assert {name: data for name, data in after.items() if name != shared} == {
        name: data for name, data in before.items() if name != shared
    }


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


def test_another_programs_database_is_refused_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "places.sqlite"
    with closing(sqlite3.connect(file)) as raw:
        raw.execute("CREATE TABLE bookmarks (url TEXT)")
        raw.commit()
    before = _snapshot(tmp_path)
    with pytest.raises(NotAStore, match="another program's SQLite database"):
        open_store(file)
    assert _snapshot(tmp_path) == before


def test_a_directory_is_refused_with_the_name_of_a_file_in_it(tmp_path: Path) -> None:
    with pytest.raises(NotAStore, match="it is a directory") as caught:
        open_store(tmp_path)
    assert str(tmp_path / "ktrial.db") in caught.value.advice


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "trials.db").touch()
    with open_store(tmp_path / "trials.db") as store:
        assert store.studies() == ()


def test_a_file_in_place_of_the_stores_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreForbidden):
        open_store(tmp_path / "file" / "trials.db")


def test_a_truncated_store_is_damaged_not_a_traceback(tmp_path: Path) -> None:
    file = tmp_path / "trials.db"
    with open_store(file) as store:
        study_id = store.study(a_study())
        for number in range(30):
            store.add_trial(study_id, a_trial(planned(number=number, order=number), console="x" * 4000))
    os.truncate(file, 16384)
    with pytest.raises((StoreDamaged, NotAStore)), open_store(file) as store:
        store.trials(study_id)


def test_a_row_that_cannot_be_read_is_damage(store: Store, tmp_path: Path) -> None:
    store.study(a_study())
    with closing(sqlite3.connect(tmp_path / "trials.db")) as raw:
        raw.execute("UPDATE studies SET spec = ?", (json.dumps({"name": 1, "later": True}),))
        raw.execute("DELETE FROM study_digests")
        raw.commit()
    with pytest.raises(StoreDamaged, match="a row cannot be read"):
        store.studies()


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

    with pytest.raises(StoreError, match=r"bytes free\)\. The trials stored before are") as caught:
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
        with pytest.raises(StoreError, match=r"bytes free\)\. The trials stored before are"):
            open_store(tmp_path / "trials.db")
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def indices_of(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as raw:
        return {name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'index'")}


def test_a_store_without_the_index_of_outcomes_counts_the_same_and_has_it_after_the_next_run(
    tmp_path: Path,
) -> None:
    path = tmp_path / "trials.db"
    with open_store(path) as store:
        number = store.study(a_study())
        store.add_trial(number, a_trial())
        store.add_trial(number, a_trial(planned(number=1), outcome=Outcome.HUNG))
        counted = store.studies()
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("DROP INDEX trials_by_outcome")
        raw.commit()
    with open_store(path) as store:
        assert store.studies() == counted
        assert "trials_by_outcome" not in indices_of(path), "who only reads waits for nobody's lock"
        store.study(a_study())
    assert "trials_by_outcome" in indices_of(path)
