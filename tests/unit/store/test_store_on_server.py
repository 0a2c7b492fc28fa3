"""A store on a database server, and which databases there are at all."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.support import databases
from tests.support.making import a_study, a_trial

from ktrial.model.trial import Outcome
from ktrial.model.workload import Command, MetricRule, WorkloadUse
from ktrial.store.errors import StoreDamaged, StoreError, StudyNotStored
from ktrial.store.location import VARIABLE, default_location, file_of, path_of, shown, url_of
from ktrial.store.schema import SCHEMA_VERSION
from ktrial.store.store import open_store


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "server.db"


def sql(file: Path, statement: str) -> list[tuple[object, ...]]:
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
    assert sql(file, "SELECT version FROM ktrial_schema") == [(SCHEMA_VERSION,)]


@pytest.mark.parametrize(
    ("version", "error", "text"),
    [
        (
            SCHEMA_VERSION + 1,
            StoreError,
            f"its schema is {SCHEMA_VERSION + 1}, this ktrial knows {SCHEMA_VERSION}",
        ),
        (0, StoreDamaged, "is damaged: its schema version is 0"),
        (-1, StoreDamaged, "is damaged: its schema version is -1"),
    ],
)
def test_a_store_of_an_unknown_schema_is_refused_and_kept(
    file: Path, version: int, error: type[StoreError], text: str
) -> None:
    for location in (databases.url(file), file):
        open_store(location).close()
        sql(file, f"UPDATE ktrial_schema SET version = {version}")
        with pytest.raises(error, match=text) as said:
            open_store(location)
        assert str(said.value).startswith(f"Store {location} ")
        assert sql(file, "SELECT version FROM ktrial_schema") == [(version,)]
        sql(file, f"UPDATE ktrial_schema SET version = {SCHEMA_VERSION}")


@pytest.mark.parametrize("version", [1, SCHEMA_VERSION - 1])
def test_an_older_store_on_a_server_gets_the_tables_that_it_lacks(file: Path, version: int) -> None:
    open_store(databases.url(file)).close()
    sql(file, "DROP TABLE answers")
    sql(file, f"UPDATE ktrial_schema SET version = {version}")
    open_store(databases.url(file)).close()
    assert sql(file, "SELECT version FROM ktrial_schema") == [(SCHEMA_VERSION,)]
    assert sql(file, "SELECT count(*) FROM answers") == [(0,)]


def test_a_store_of_this_schema_is_not_touched(file: Path) -> None:
    open_store(databases.url(file)).close()
    sql(file, "DROP TABLE answers")
    open_store(databases.url(file)).close()
    assert sql(file, "SELECT name FROM sqlite_master WHERE name = 'answers'") == []


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
    with pytest.raises(StoreError) as said:
        open_store(location)
    assert str(said.value) == f"Store {shown_as}: {problem}."


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


def test_a_study_that_is_not_there_is_told_with_the_store_s_name(file: Path) -> None:
    with open_store(databases.url(file)) as store:
        store.study(a_study("quick"))
        for asked, near in (("quikc", ": did you mean quick?"), ("zzz", ""), (7, ""), ("7", "")):
            with pytest.raises(StudyNotStored) as said:
                store.find(asked)
            assert str(said.value) == f"Store {store.name} has no study {asked}{near}."
        with pytest.raises(StudyNotStored) as said:
            store.delete(9)
        assert str(said.value) == f"Store {store.name} has no study 9."


def test_a_study_is_kept_under_the_names_of_the_study_file(file: Path) -> None:
    """What other programs, and other versions of ktrial, read: `json`, and not what the code calls it."""
    rule = MetricRule.model_validate({"name": "p99", "json": "latency.p99"})
    use = WorkloadUse(name="mine", command=Command(argv=("x",), metrics=(rule,)))
    study = a_study().model_copy(update={"workloads": (use,)})
    with open_store(file) as store:
        assert store.find(store.study(study)).study == study
    ((spec,),) = sql(file, "SELECT spec FROM studies")
    (metric,) = json.loads(str(spec))["workloads"][0]["command"]["metrics"]
    assert (metric["name"], metric["json"]) == ("p99", "latency.p99")
