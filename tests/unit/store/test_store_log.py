"""A store proves by its log that it is whole: what is missing, changed, older or another's is told."""

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from tests.support.databases import POSTGRESQL, SQLITE, Backend
from tests.support.making import a_study, a_trial, planned
from tests.support.stored_parts import ANSWER
from typer.testing import CliRunner

from ktrial.bundle.writing import Wanted, write_bundle
from ktrial.cli.app import app
from ktrial.store.errors import StoreDamaged
from ktrial.store.store import open_store

pytestmark = pytest.mark.parametrize("backend", [SQLITE, POSTGRESQL], indirect=True)

STUDIES, TRIALS = 4, 6


@pytest.fixture
def filled(backend: Backend) -> Backend:
    """Two studies of two trials, one with an answer; a third was deleted."""
    with open_store(backend.location) as store:
        for name in ("first", "second"):
            study = store.study(a_study(name))
            for number in range(2):
                store.add_trial(study, a_trial(planned(number=number, order=number)))
        store.add_answer(1, ANSWER)
        store.delete(store.study(a_study("deleted")))
    return backend


def verified(location: str, *options: str) -> tuple[int, list[object], int]:
    """Exit code, what `store verify` finds wrong with the store as a whole, and how long its log is."""
    result = CliRunner().invoke(app, ["store", "verify", "--store", location, "--json", *options])
    store = json.loads(result.stdout)["store"]
    entries = store.pop("log_entries")
    return result.exit_code, [problem for problems in store.values() for problem in problems], entries


def test_a_deletion_is_an_entry_and_the_store_is_whole(filled: Backend) -> None:
    kinds = [kind for (kind,) in filled.sql("SELECT kind FROM log_entries ORDER BY number")]
    assert kinds[0] == "begun"
    assert kinds.count("trial") == 4
    assert kinds[-2:] == ["study", "study removed"]
    assert verified(filled.location) == (0, [], len(kinds))


CHANGES = {
    "an entry says something else": "UPDATE log_entries SET subject = 'other' WHERE number = 3",
    "an entry is gone": "DELETE FROM log_entries WHERE number = 3",
    "the newest entry is gone": "DELETE FROM log_entries WHERE kind = 'study removed'",
    "all entries are gone": "DELETE FROM log_entries",
    "a head is another": "UPDATE log_entries SET head = substr(head, 2) || '0' WHERE number = 2",
    "a study is gone": "DELETE FROM studies WHERE name = 'second'",
    "a study that was deleted is there": "UPDATE studies SET id = 9 WHERE name = 'second'",
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_the_log_does_not_say_is_told(change: str, filled: Backend) -> None:
    for_keys(filled)
    filled.sql(CHANGES[change])
    code, problems, _ = verified(filled.location)
    assert code == 1
    assert problems


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_there_can_be_taken_for_all_that_there_should_be(change: str, filled: Backend) -> None:
    for_keys(filled)
    filled.sql(CHANGES[change])
    verified(filled.location, "--remove-damaged")
    assert verified(filled.location)[:2] == (0, [])


def for_keys(backend: Backend) -> None:
    """The study's rows in other tables are not what is tried here."""
    if not backend.is_file:
        tables = backend.sql(
            "SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE contype = 'f'"
        )
        for table, name in tables:
            backend.sql(f'ALTER TABLE {table} DROP CONSTRAINT "{name}"')


def fill_one(location: str, number: int) -> None:
    with open_store(location) as store:
        study = store.study(a_study(f"study-{number}"))
        for trial in range(TRIALS):
            assert store.add_trial(study, a_trial(planned(number=trial, order=trial)))
        store.delete(store.study(a_study(f"gone-{number}")))


def in_threads(location: str) -> None:
    with ThreadPoolExecutor(STUDIES) as pool:
        list(pool.map(fill_one, [location] * STUDIES, range(STUDIES)))


def in_processes(location: str) -> None:
    with ProcessPoolExecutor(STUDIES, mp_context=get_context("forkserver")) as pool:
        list(pool.map(fill_one, [location] * STUDIES, range(STUDIES)))


@pytest.mark.parametrize("write", [in_threads, in_processes])
def test_writers_at_once_make_one_chain(write: Callable[[str], None], backend: Backend) -> None:
    with open_store(backend.location):
        pass
    write(backend.location)
    entries = 1 + STUDIES * (1 + TRIALS + 2)
    assert backend.sql("SELECT count(*), max(number) FROM log_entries") == [(entries, entries)]
    assert verified(backend.location) == (0, [], entries)


def test_an_older_copy_takes_nothing_more(backend: Backend, tmp_path: Path) -> None:
    if not backend.is_file:
        pytest.skip("a server's database is no file that can be copied back")
    file = Path(backend.location)
    with open_store(file) as store:
        study = store.study(a_study())
        store.add_trial(study, a_trial(planned(number=0)))
    shutil.copy(file, tmp_path / "older.db")
    with open_store(file) as store:
        store.add_trial(study, a_trial(planned(number=1)))
    for left in file.parent.glob(f"{file.name}-*"):
        left.unlink()
    shutil.copy(tmp_path / "older.db", file)
    with pytest.raises(StoreDamaged, match="older"):
        open_store(file)
    code, problems, _ = verified(backend.location)
    assert code == 1
    assert "older copy" in str(problems)


def test_a_bundle_keeps_the_head_and_knows_its_own_store_again(backend: Backend, tmp_path: Path) -> None:
    """Also where the file beside an older copy of the store is an older one, too."""
    file = tmp_path / "quick.ktrial"
    with open_store(backend.location) as store:
        study = store.study(a_study("quick"))
        store.add_trial(study, a_trial(planned(number=0, order=0)))
        write_bundle(store, store.find(study), file, Wanted())
    assert verified(backend.location, "--bundle", str(file))[:2] == (0, [])
    with open_store(backend.location) as store:
        store.add_trial(study, a_trial(planned(number=1, order=1)))
    assert verified(backend.location, "--bundle", str(file))[:2] == (0, []), "it has gone on"
    with open_store(tmp_path / "other.db") as store:
        store.study(a_study("quick"))
    code, problems, _ = verified(str(tmp_path / "other.db"), "--bundle", str(file))
    assert code == 1
    assert str(file) in str(problems)
