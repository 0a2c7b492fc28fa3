"""SIGKILL at every stage of every write: the store is as it was before that write, or as it is after it."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from tests.support.fault_points import declared, each_kill_at
from tests.support.killing import directory_in_memory
from tests.support.making import a_study, a_trial, planned
from tests.support.profiles import a_profile
from tests.support.stored_parts import ANSWER, DIFFERENCE, PROOF, REGRESSION, SAMPLED

from ktrial.model.trial import Outcome
from ktrial.store.errors import StudyNotStored
from ktrial.store.quick_reader import SCHEMA_VERSION
from ktrial.store.store import Store, open_store

LOST = frozenset({Outcome.KERNEL_MISSING})
WHOLE = a_trial(planned(number=1), profiles=(a_profile({("do_fork", ""): 900}),), sampled=(SAMPLED,))


def first(store: Store) -> int:
    return store.study(a_study("first"))


def remove_the_second(store: Store) -> None:
    with contextlib.suppress(StudyNotStored):
        store.delete(store.find("second").id)


WRITES: tuple[Callable[[Store], object], ...] = (
    first,
    lambda store: store.add_trial(first(store), a_trial(outcome=Outcome.KERNEL_MISSING)),
    lambda store: store.add_trial(first(store), WHOLE),
    lambda store: store.add_trial(first(store), a_trial(), replaces=LOST),
    lambda store: store.add_kernel_difference(first(store), DIFFERENCE),
    lambda store: store.add_answer(first(store), ANSWER),
    lambda store: store.add_answer(first(store), ANSWER.model_copy(update={"answer": "another"})),
    lambda store: store.add_proof(first(store), PROOF),
    lambda store: store.add_proof(first(store), PROOF.model_copy(update={"control": 2.0})),
    lambda store: store.add_regression(first(store), REGRESSION),
    lambda store: store.add_regression(first(store), REGRESSION.model_copy(update={"cause": "another"})),
    lambda store: store.study(a_study("second")),
    remove_the_second,
)
"""Each leaves the same behind when it is done once more."""
OPENING = declared("store/store.py")
WRITING = ("trial_rows", "study_rows", "integrity", "log", "transactions")
Contents = dict[str, list[tuple[object, ...]]]


def write(file: Path, acknowledged: Path) -> None:
    """Open the store and do all writes that are left; a byte is added to `acknowledged` after each."""
    with open_store(file) as store, acknowledged.open("ab", buffering=0) as progress:
        for change in WRITES[acknowledged.stat().st_size :]:
            change(store)
            progress.write(b"x")


def contents(file: Path) -> Contents:
    """Every table's rows, without what no caller decides: numbers of rows, and when a study was stored."""
    if not file.exists():
        return {}
    with closing(sqlite3.connect(file)) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
        raw.row_factory = sqlite3.Row
        names = [row["name"] for row in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: [_facts(row) for row in raw.execute(f"SELECT * FROM {name}")] for name in names}


def _facts(row: sqlite3.Row) -> tuple[object, ...]:
    apart = {"id", "created"}
    if "head" in row.keys():  # noqa: SIM118
        apart |= {"head", "digest"}  # so is what the log says of it
    if "what" in row.keys() and row["what"] == "study":  # noqa: SIM118
        apart.add("digest")  # it is of the moment too
    return tuple(row[key] for key in row.keys() if key not in apart)  # noqa: SIM118


@pytest.fixture
def directory() -> Iterator[Path]:
    with directory_in_memory() as made:
        yield made


@pytest.fixture
def stages(directory: Path) -> list[Contents]:
    """What is in the store before the first write, after it, after the second, …"""
    file = directory / "undisturbed.db"
    with open_store(file) as store:
        states = [contents(file)]
        for change in WRITES:
            change(store)
            states.append(contents(file))
    assert all(before != after for before, after in pairwise(states))
    return states


@pytest.mark.parametrize("name", [name for room in WRITING for name in declared(f"store/{room}.py")])
def test_a_write_is_whole_or_was_never_begun_after_a_kill_at(
    name: str, directory: Path, stages: list[Contents]
) -> None:
    file, acknowledged = directory / "ktrial.db", directory / "acknowledged"
    acknowledged.touch()
    for kill in each_kill_at(name, lambda: write(file, acknowledged)):
        finished = acknowledged.stat().st_size
        left = contents(file)
        assert left in (stages[finished], stages[min(finished + 1, len(WRITES))]), kill
        with open_store(file) as store:
            assert [stored.study.name for stored in store.studies()][:1] == (
                ["first"] if left["studies"] else []
            )
        write(file, acknowledged)
        assert contents(file) == stages[-1], f"{kill}: the rest was written afterwards"
        file.unlink()
        acknowledged.write_bytes(b"")
    assert contents(file) == stages[-1]


@pytest.mark.parametrize("name", OPENING)
def test_a_store_is_made_whole_after_a_kill_at(name: str, directory: Path) -> None:
    file, undisturbed = directory / "new" / "ktrial.db", directory / "undisturbed.db"
    open_store(undisturbed).close()
    made = contents(undisturbed)
    assert made["ktrial_schema"] == [(SCHEMA_VERSION,)]
    for kill in each_kill_at(name, lambda: open_store(file).close()):
        assert contents(file) in ({}, made), kill
        open_store(file).close()
        assert contents(file) == made, kill
        file.unlink()
    assert contents(file) == made
