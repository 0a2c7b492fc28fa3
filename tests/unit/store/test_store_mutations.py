"""SQLite files that were damaged in every way that leaves a file: no wrong number, none unnoticed, no bug."""

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.making import a_study, a_trial, planned
from tests.support.profiles import a_profile
from tests.support.stored_parts import ANSWER, PROOF, REGRESSION
from typer.testing import CliRunner

from ktrial.cli.app import app
from ktrial.cli.error_handling import BUG
from ktrial.errors import KtrialError
from ktrial.store.store import open_store

PAGE = 4096
NAMES = ("quick", "slow", "third")
SHOWING = (("list", "--all", "--json"), *(("show", name, "--json") for name in NAMES))
FOR_EACH_CHANGE, AT_NIGHT = 2, 40
"""Mutations of each kind."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a store, and an older copy of it."""
    where = tmp_path_factory.mktemp("whole")
    with open_store(where / "trials.db") as store:
        for name in NAMES[:2]:
            fill(store.study(a_study(name)), where)
        store.add_answer(1, ANSWER)
    shutil.copy(where / "trials.db", where / "older.db")
    with open_store(where / "trials.db") as store:
        store.delete(store.study(a_study("deleted")))
        fill(store.study(a_study(NAMES[2])), where)
        store.add_proof(2, PROOF)
        store.add_regression(2, REGRESSION)
    return where


def fill(study: int, where: Path) -> None:
    with open_store(where / "trials.db") as store:
        for number in range(3):
            profile = a_profile({("do_fork", ""): 900 + number})
            store.add_trial(study, a_trial(planned(number=number, order=number), profiles=(profile,)))


def page_of(content: bytearray, number: int) -> slice:
    return slice(number * PAGE, (number + 1) * PAGE)


def swapped(file: Path, draw: random.Random, _older: Path) -> None:
    content = bytearray(file.read_bytes())
    first, second = (page_of(content, n) for n in draw.sample(range(1, len(content) // PAGE), 2))
    content[first], content[second] = content[second], content[first]
    file.write_bytes(content)


def zeroed(file: Path, draw: random.Random, _older: Path) -> None:
    content = bytearray(file.read_bytes())
    content[page_of(content, draw.randrange(len(content) // PAGE))] = bytes(PAGE)
    file.write_bytes(content)


def truncated(file: Path, draw: random.Random, _older: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: draw.randrange(len(content))])


def rolled_back(file: Path, _draw: random.Random, older: Path) -> None:
    shutil.copy(older, file)


def rows_deleted(file: Path, draw: random.Random, _older: Path) -> None:
    tables = ("studies", "trials", "samples", "counters", "profiles", "answers", "proofs", "digests")
    table = draw.choice((*tables, "regressions", "study_digests", "log_entries"))
    with closing(sqlite3.connect(file)) as raw:
        numbers = [number for (number,) in raw.execute(f"SELECT rowid FROM {table}")]
        raw.execute(f"DELETE FROM {table} WHERE rowid = {draw.choice(numbers)}")
        raw.commit()


KINDS: tuple[Callable[[Path, random.Random, Path], None], ...] = (
    *(swapped, zeroed, truncated),
    *(rolled_back, rows_deleted),
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
@pytest.mark.parametrize(
    "numbers",
    [range(FOR_EACH_CHANGE), pytest.param(range(FOR_EACH_CHANGE, AT_NIGHT), marks=pytest.mark.nightly)],
    ids=["some", "many"],
)
def test_a_damaged_file_says_nothing_wrong_and_is_noticed(
    kind: Callable[[Path, random.Random, Path], None], numbers: range, whole: Path, tmp_path: Path
) -> None:
    file = tmp_path / "trials.db"
    put(whole, file)
    right = {arguments: ran(file, *arguments) for arguments in SHOWING}
    assert ran(file, "store", "verify")[0] == 0
    for number in numbers:
        put(whole, file)
        kind(file, random.Random(number), whole / "older.db")
        is_changed = contents(file) != contents(whole / "trials.db")
        for arguments in SHOWING:
            code, text = ran(file, *arguments)
            assert code != BUG, (number, arguments, text)
            assert code or text == right[arguments][1], (number, arguments, text)
        code, text = ran(file, "store", "verify")
        assert code != BUG, (number, text)
        assert code or not is_changed, number


def put(whole: Path, file: Path) -> None:
    for left in file.parent.glob(f"{file.name}*"):
        left.unlink()
    for suffix in ("", ".head"):
        shutil.copy(whole / f"trials.db{suffix}", f"{file}{suffix}")


def contents(file: Path) -> list[str] | str:
    """All that SQLite reads in the file; or that it cannot."""
    try:
        with closing(sqlite3.connect(f"file:{file}?immutable=1", uri=True)) as raw:
            return list(raw.iterdump())
    except (sqlite3.Error, UnicodeError) as error:
        return str(error)


def ran(file: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and standard output; of a bug its own exit code, and what it is."""
    result = CliRunner().invoke(app, [*arguments, "--store", str(file)])
    error = result.exception
    if error is None or isinstance(error, SystemExit):
        return result.exit_code, result.stdout.replace(str(file), "STORE")
    return (error.exit_code, str(error)) if isinstance(error, KtrialError) else (BUG, repr(error))
