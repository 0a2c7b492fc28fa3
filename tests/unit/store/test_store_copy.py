"""`ktrial store copy` and `merge`, between files and servers both ways: nothing is lost or changed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.databases import POSTGRESQL, SQLITE, Backend, Server
from tests.support.fault_points import declared, each_kill_at
from tests.support.making import a_study, a_trial, planned
from tests.support.profiles import a_profile
from tests.support.stored_parts import ANSWER, DIFFERENCE, PROOF, REGRESSION, SAMPLED
from typer.testing import CliRunner, Result

from ktrial.cli.app import app
from ktrial.model.trial import Outcome
from ktrial.store import copying
from ktrial.store.errors import NotItsCopy
from ktrial.store.store import Store, open_store

TABLES = (
    "studies", "trials", "samples", "counters", "profiles", "series", "digests", "answers",
    "kernel_differences", "proofs", "regressions", "study_digests",
)  # fmt: skip
DIRECTIONS = [
    (SQLITE, POSTGRESQL),
    (POSTGRESQL, SQLITE),
    *(pytest.param(kind, kind, marks=pytest.mark.nightly) for kind in (SQLITE, POSTGRESQL)),
]
Place = Callable[[str, str], Backend]


@pytest.fixture
def place(tmp_path: Path, postgresql: Server) -> Place:
    """A place for a store of this kind and name."""

    def made(kind: str, name: str) -> Backend:
        file = str(tmp_path / f"{name}.db")
        return Backend(kind, file if kind == SQLITE else postgresql.database(empty=True))

    return made


def filled(store: Store) -> None:
    """Two studies after one that was deleted, so that numbers are not the first ones."""
    store.delete(store.study(a_study("deleted")))
    first, second = store.study(a_study("first")), store.study(a_study("second"))
    for number in range(3):
        whole = a_trial(
            planned(number=number, order=number),
            console="\0«größer»",
            profiles=(a_profile({("do_fork", ""): 900 + number}),),
            sampled=(SAMPLED,),
        )
        store.add_trial(first, whole)
    store.add_trial(second, a_trial(outcome=Outcome.PANICKED))
    store.add_answer(first, ANSWER)
    store.add_kernel_difference(first, DIFFERENCE)
    store.add_proof(second, PROOF)
    store.add_regression(second, REGRESSION)


def contents(backend: Backend) -> dict[str, list[tuple[tuple[object, object], ...]]]:
    """All rows but for what numbers them: as an eye of the database sees them."""
    tables = {}
    for table in TABLES:
        rows = backend.sql(f"SELECT * FROM {table} ORDER BY id")
        names = [name for (name,) in backend.sql(NAMES[backend.kind].format(table))]
        tables[table] = sorted(
            tuple(
                (name, str(value)) if name in {"created", "started"} else (name, value)
                for name, value in sorted(zip(names, row, strict=True))
                if name not in {"id", "trial_id"} and value is not None
            )
            for row in rows
        )
    return tables


NAMES = {
    SQLITE: "SELECT name FROM pragma_table_info('{}')",
    POSTGRESQL: "SELECT attname::text FROM pg_attribute "
    "WHERE attrelid = '{}'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
}


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["store", *arguments])


def told_of(store: Backend) -> list[tuple[object, ...]]:
    """All that reading the store gives."""
    with open_store(store.location) as opened:
        return [
            (one, opened.trials(one.id), opened.answer(one.id), opened.kernel_differences(one.id),
             opened.proofs(one.id), opened.profile(one.id, planned().key, "fork"),
             opened.sampled(one.id, planned().key), opened.regressions())
            for one in opened.studies()
        ]  # fmt: skip


@pytest.mark.parametrize(("kind", "other"), DIRECTIONS)
def test_a_copy_says_what_the_store_says_and_has_its_digests(kind: str, other: str, place: Place) -> None:
    source, target = place(kind, "from"), place(other, "to")
    with open_store(source.location) as store:
        filled(store)
    done = ran("copy", source.location, target.location, "--json")
    assert done.exit_code == 0, done.output
    counts = [(one["number"], one["copied"], one["there"]) for one in json.loads(done.stdout)["studies"]]
    with open_store(source.location) as store:
        assert counts == [(one.id, one.finished, 0) for one in store.studies()]
    assert told_of(target) == told_of(source)
    for table in ("digests", "study_digests"):
        columns = "content, counters, profiles, series" if table == "digests" else "study_id, what, digest"
        query = f"SELECT {columns} FROM {table} ORDER BY 1, 2"
        assert sorted(target.sql(query), key=str) == sorted(source.sql(query), key=str)
    if kind == other:
        assert contents(target) == contents(source)
    assert ran("verify", "--store", target.location).exit_code == 0
    again = json.loads(ran("copy", source.location, target.location, "--json").stdout)
    assert [(one["copied"], one["there"]) for one in again["studies"]] == [(0, 3), (0, 1)]
    with open_store(target.location) as store:
        assert store.study(a_study("third")) > max(number for number, _, _ in counts)


@pytest.mark.parametrize(("kind", "other"), DIRECTIONS[:2])
def test_merging_adds_what_is_missing_under_new_numbers_and_changes_nothing(
    kind: str, other: str, place: Place
) -> None:
    source, target = place(kind, "from"), place(other, "to")
    with open_store(source.location) as store:
        filled(store)
    with open_store(target.location) as store:
        store.add_trial(store.study(a_study("own")), a_trial())
        both = store.study(a_study("first"))
        store.add_trial(both, a_trial(planned(number=7)))
        store.add_trial(both, a_trial(planned(number=1), values={"fork": 0.5}))
        kept = store.trials(both)
    refused = ran("copy", source.location, target.location)
    assert refused.exit_code == 1
    assert isinstance(refused.exception, NotItsCopy)
    assert "has another study under the number 1, own" in str(refused.exception)
    assert "ktrial store merge" in refused.exception.advice
    done = ran("merge", source.location, target.location, "--json")
    assert done.exit_code == 1, "one trial is there, and says something else"
    first, second = json.loads(done.stdout)["studies"]
    assert (first["number"], first["copied"], first["differing"]) == (both, 2, [planned(number=1).key])
    assert (second["copied"], second["differing"]) == (1, [])
    with open_store(target.location) as store:
        assert [one.study.name for one in store.studies()] == ["own", "first", "second"]
        by_key = {trial.planned.key: trial for trial in store.trials(both)}
        assert len(by_key) == 4
        assert all(by_key[trial.planned.key] == trial for trial in kept)
        assert store.answer(both) == ANSWER
    assert ran("verify", "--store", target.location).exit_code == 0
    again = json.loads(ran("merge", source.location, target.location, "--json").stdout)
    assert [(one["copied"], one["there"]) for one in again["studies"]] == [(0, 2), (0, 1)]


@pytest.mark.parametrize(
    ("statement", "where"),
    [
        ("UPDATE counters SET delta = delta + 1 WHERE trial_id = 2", "damaged"),
        ("UPDATE trials SET planned = replace(planned, '{', 'z') WHERE id = 2", "damaged"),
        ("UPDATE studies SET name = 'quicj' WHERE name = 'first'", "study"),
    ],
)
def test_what_is_damaged_is_named_and_not_copied(statement: str, where: str, place: Place) -> None:
    source, target = place(SQLITE, "from"), place(POSTGRESQL, "to")
    with open_store(source.location) as store:
        filled(store)
    source.sql(statement)
    done = ran("copy", source.location, target.location, "--json")
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    if where == "study":
        assert (len(told["studies"]), len(told["damaged_studies"])) == (1, 1)
    else:
        assert (told["studies"][0]["copied"], told["studies"][0]["damaged"]) == (2, [planned(number=1).key])
    assert "not what was stored" in ran("copy", source.location, target.location).stderr
    assert ran("verify", "--store", target.location).exit_code == 0


@pytest.mark.parametrize("other", [SQLITE, pytest.param(POSTGRESQL, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", declared("store/copying.py"))
def test_a_copy_that_was_killed_goes_on_where_it_was(
    name: str, other: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "AT_ONCE", 2)
    source = place(SQLITE, "from")
    with open_store(source.location) as store:
        filled(store)
    expected = told_of(source)
    target = place(other, "to")
    open_store(target.location).close()

    def copy() -> None:
        with open_store(source.location) as first, open_store(target.location) as second:
            for one in first.studies():
                copying.copy_study(first, second, one.id, keeps_number=True)

    for _ in each_kill_at(name, copy):
        with open_store(target.location) as store:
            assert not any(c.damaged for s in store.studies() for c in store.check_trials(s.id))
        copy()
        assert told_of(target) == expected
        with open_store(target.location) as store:
            for one in store.studies():
                store.delete(one.id)
    assert told_of(target) == expected
