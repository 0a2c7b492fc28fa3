"""What only a store on a server can meet: its errors, its rights, passwords; and which databases there
are."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from tests.support import databases
from tests.support.databases import POSTGRESQL, Server, sql
from tests.support.making import a_study, a_trial, planned

from ktrial.model.trial import Outcome
from ktrial.store.errors import NoStoreThere, NoSuchBackend, NotAStore, ServerAway, StoreError, StoreForbidden
from ktrial.store.location import masked, shown, shown_uri, url_of
from ktrial.store.quick_reader import SCHEMA_VERSION
from ktrial.store.store import open_store

PASSWORD = "s3cret/@:word"


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_an_empty_database_becomes_a_store_under_every_name_of_the_scheme(
    scheme: str, postgresql: Server
) -> None:
    url = postgresql.database(empty=True)
    with open_store(url.replace("postgresql", scheme, 1)) as store:
        assert store.add_trial(store.study(a_study()), a_trial())
        assert store.name == shown_uri(url)
    assert sql(url, "SELECT version FROM ktrial_schema") == [(SCHEMA_VERSION,)]


def test_a_mistyped_database_is_no_store_and_stays_empty(postgresql: Server) -> None:
    url = postgresql.database(empty=True)
    with pytest.raises(NoStoreThere, match="its database is empty"):
        open_store(url, existing=True)
    with pytest.raises(NotAStore, match="there is nothing in it"):
        open_store(url, read_only=True)
    assert sql(url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(0,)]


def test_another_program_s_database_is_refused_and_kept(postgresql: Server) -> None:
    url = postgresql.database(empty=True)
    sql(url, "CREATE TABLE trials (patient text)")
    with pytest.raises(NotAStore, match="another program's table trials"):
        open_store(url)
    assert sql(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == [("trials",)]


def test_a_database_that_is_not_of_unicode_is_refused(postgresql: Server) -> None:
    postgresql.sql("postgres", "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(NotAStore, match="its encoding is LATIN1, not UTF8"):
        open_store(postgresql.url("latin"))


def test_who_may_only_read_is_shown_the_store_and_told_that_he_may_not_write(postgresql: Server) -> None:
    url = postgresql.database()
    with open_store(url) as store:
        number = store.study(a_study())
        store.add_trial(number, a_trial())
    sql(url, "CREATE ROLE reader LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    as_reader = url.replace("ktrial@", "reader@")
    with open_store(as_reader) as store:
        assert store.trials(number) == (a_trial(),)
        with pytest.raises(StoreForbidden, match="cannot be written: permission denied"):
            store.study(a_study("another"))
    with open_store(url, read_only=True) as store, pytest.raises(StoreForbidden, match="read-only"):
        store.study(a_study("another"))


@pytest.mark.nightly
def test_fifty_threads_and_processes_that_open_one_empty_database_all_make_one_store(
    postgresql: Server,
) -> None:
    url = postgresql.database(empty=True)

    def opened(number: int) -> int:
        with open_store(url) as store:
            study = store.study(a_study())
            assert store.add_trial(study, a_trial(planned(number=number, order=number)))
            return study

    with ThreadPoolExecutor(50) as pool:
        assert set(pool.map(opened, range(50))) == {1}
    with open_store(url) as store:
        (study,) = store.studies()
        assert (study.finished, study.failed) == (50, 0)
        assert all(trial.samples and trial.counters for trial in store.trials(1))
        assert not any(one.damaged for one in store.check_trials(1))


# Passwords


def with_password(url: str) -> str:
    return url.replace("ktrial@", "ktrial:s3cret%2F%40%3Aword@")


@pytest.mark.parametrize(
    "location",
    [
        "postgresql://me:s3cret@host/db",
        "postgresql://me:s3cret@host:x/db",
        "postgres://me:s3@cr:s3cret/x@host/db",
        "postgresql://host/db?user=me&password=s3cret",
        "postgresql+nodriver://me:s3cret@host/db",
        "mysql+cymysql://me:s3cret@host/db",
    ],
)
def test_no_error_of_opening_says_a_password(location: str) -> None:
    with pytest.raises(StoreError) as said:
        open_store(location)
    assert "s3cret" not in f"{said.value} {said.value.advice} {said.value.facts}"
    assert "***" in str(said.value)


def test_a_password_is_in_no_message_of_a_server_and_in_no_name(postgresql: Server) -> None:
    url = with_password(postgresql.database())
    with open_store(url) as store:
        assert "s3cret" not in store.name
    with pytest.raises(ServerAway, match="does not exist") as said:
        open_store(with_password(postgresql.url("not_there")))
    assert "s3cret" not in str(said.value)
    assert shown(url_of(url)) == shown_uri(url)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/a/b.db", "/a/b.db"),
        ("postgresql://me:pw@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me@host:5432/db", "postgresql://me@host:5432/db"),
        ("['ktrial', '--store', 'postgresql://me:pw@h/d', 'x']", "['ktrial', '--store', "
         "'postgresql://me:***@h/d', 'x']"),
        ("postgresql://h/db?password=pw&user=me", "postgresql://h/db?password=***&user=me"),
        ("fd00::1 and user@host stay", "fd00::1 and user@host stay"),
    ],
)  # fmt: skip
def test_passwords_are_masked_wherever_a_url_is_shown(text: str, expected: str) -> None:
    assert masked(text) == expected


BUG = """
import sys
from ktrial.cli.error_handling import save_bug_report
sys.argv = ["ktrial", "list", "--store", sys.argv[1]]
print(save_bug_report(ValueError(f"at {sys.argv[3]}"))[1])
"""


def test_a_bug_s_report_has_no_password(postgresql: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert POSTGRESQL in postgresql.url("x")
    done = subprocess.run(
        [sys.executable, "-c", BUG, "postgresql://me:s3cret@h/db"], capture_output=True, text=True, check=True
    )
    with open(done.stdout.strip()) as report:  # noqa: PTH123
        text = report.read()
    assert "me:***@h/db" in text
    assert "s3cret" not in text


# Another database on a server: one file that is spoken to as one is


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "server.db"


def file_sql(file: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as raw:
        rows = raw.execute(statement).fetchall()
        raw.commit()
        return rows


def test_a_store_on_a_server_is_made_and_keeps_what_is_stored(file: Path) -> None:
    with open_store(databases.url(file)) as store:
        assert store.name == databases.url(file)
        study_id = store.study(a_study())
        assert store.study(a_study()) == study_id
        assert store.add_trial(study_id, a_trial())
        assert not store.add_trial(study_id, a_trial())
    with open_store(databases.url(file)) as store:
        assert store.trials(study_id) == (a_trial(),)
        assert store.finished_keys(study_id, apart_from=frozenset({Outcome.COMPLETED})) == set()
    assert file_sql(file, "SELECT version FROM ktrial_schema") == [(SCHEMA_VERSION,)]


def test_a_store_of_this_schema_is_not_touched(file: Path) -> None:
    open_store(databases.url(file)).close()
    file_sql(file, "DROP TABLE answers")
    open_store(databases.url(file)).close()
    assert file_sql(file, "SELECT name FROM sqlite_master WHERE name = 'answers'") == []


def test_what_the_server_says_is_told(tmp_path: Path) -> None:
    location = databases.url(tmp_path / "no/such/place.db")
    with pytest.raises(StoreError) as said:
        open_store(location)
    assert str(said.value) == f"Store {location}: unable to open database file"


@pytest.mark.parametrize(
    ("location", "shown_as", "problem"),
    [
        ("nosuchdb://me:secret@host/db", "nosuchdb://me:***@host/db", "SQLAlchemy knows no nosuchdb"),
        (
            "postgresql+nodriver://h/db",
            "postgresql+nodriver://h/db",
            "SQLAlchemy knows no postgresql+nodriver",
        ),
        ("mysql+cymysql://h/db", "mysql+cymysql://h/db", "its driver is not installed (cymysql)"),
        ("sqlite://", "sqlite://", "a store in memory would lose every trial"),
        ("sqlite:///:memory:", "sqlite:///:memory:", "a store in memory would lose every trial"),
        ("://", "://", "the URL cannot be understood"),
        ("postgresql://h:p:p/db", "postgresql://h:p:p/db", "the URL cannot be understood"),
    ],
)
def test_a_database_that_cannot_be_used_says_why(location: str, shown_as: str, problem: str) -> None:
    with pytest.raises(NoSuchBackend) as said:
        open_store(location)
    assert str(said.value) == f"Store {shown_as}: {problem}."
