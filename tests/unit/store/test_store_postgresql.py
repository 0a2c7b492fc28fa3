"""What only a store on a PostgreSQL server can meet: its errors, its limits, its columns of earlier days."""

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.databases import POSTGRESQL, Backend, Server, sql
from tests.support.making import a_study, a_trial, planned

from ktrial.model.trial import CounterDelta
from ktrial.store.errors import NotAStore, ServerAway, StoreError, StoreForbidden, StoreUsageError
from ktrial.store.location import masked, shown, shown_uri, url_of
from ktrial.store.schema import SCHEMA_VERSION
from ktrial.store.store import open_store

PASSWORD = "s3cret/@:word"
LARGE = 2**40


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
    with pytest.raises(StoreUsageError, match="its database is empty"):
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


def test_text_with_nul_long_names_large_and_odd_numbers_come_back(backend: Backend) -> None:
    plain = a_trial(console="a\0b\x1a0\x1aS\x1a\x1b[0m\udfff".replace("\udfff", "«größer»"))
    (sample,) = plain.samples
    samples = (
        sample.model_copy(update={"operations": LARGE, "workload": "w" * 3000}),
        sample.model_copy(update={"value": math.inf, "minimum": -math.inf, "unit": "u" * 100}),
    )
    counters = (CounterDelta(workload="\0fork", name="n" * 300, delta=float(LARGE)),)
    trial = plain.model_copy(update={"samples": samples, "counters": counters, "settings": {"a": "\0"}})
    with open_store(backend.location) as store:
        number = store.study(a_study(question="what\0?"))
        assert store.add_trial(number, trial)
        assert store.trials(number) == (trial,)
        assert [one.damaged for one in store.check_trials(number)] == [()]
        (study,) = store.studies()
        assert study.study.question == "what\0?"


def test_a_number_that_is_none_comes_back_as_none(backend: Backend) -> None:
    plain = a_trial()
    samples = tuple(one.model_copy(update={"value": math.nan, "mean": math.nan}) for one in plain.samples)
    with open_store(backend.location) as store:
        number = store.study(a_study())
        assert store.add_trial(number, plain.model_copy(update={"samples": samples}))
        (trial,) = store.trials(number)
        assert [math.isnan(value) for one in trial.samples for value in (one.value, one.mean or 0)] == [
            True,
            True,
        ]
        assert [one.damaged for one in store.check_trials(number)] == [()]


def test_columns_of_an_older_ktrial_are_widened_and_their_content_stays(postgresql: Server) -> None:
    url = postgresql.database()
    with open_store(url) as store:
        number = store.study(a_study())
        store.add_trial(number, a_trial())
    for column, kind in (("planned", "json"), ("key", "varchar(255)"), ("provenance", "json")):
        sql(url, f"ALTER TABLE trials ALTER COLUMN {column} TYPE {kind} USING {column}::{kind}")
    sql(url, "ALTER TABLE samples ALTER COLUMN operations TYPE integer")
    sql(url, "DROP INDEX trials_by_outcome")
    with open_store(url) as store:
        assert store.trials(number) == (a_trial(),)
        many = a_trial(planned(number=1)).samples[0].model_copy(update={"operations": LARGE})
        store.add_trial(number, a_trial(planned(number=1)).model_copy(update={"samples": (many,)}))
        assert store.trials(number)[1].samples[0].operations == LARGE
    assert sql(url, "SELECT count(*) FROM pg_indexes WHERE indexname = 'trials_by_outcome'") == [(1,)]


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
        assert not any(one.damaged or not one.has_digest for one in store.check_trials(1))


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
from ktrial.cli import bug_report
sys.argv = ["ktrial", "list", "--store", sys.argv[1]]
print(bug_report.save(ValueError(f"at {sys.argv[3]}"))[1])
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
