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

from ktrial.model.attribution import Proof
from ktrial.model.kernel import KernelDifference, KernelSide
from ktrial.model.trial import Outcome, Sampled, Series, SeriesKind
from ktrial.model.tuning import Budget, Goal, Objective, Space, Tuned
from ktrial.model.workload import Direction
from ktrial.store.errors import StudyNotStored
from ktrial.store.schema import SCHEMA_VERSION
from ktrial.store.store import Store, open_store

LOST = frozenset({Outcome.KERNEL_MISSING})
DIFFERENCE = KernelDifference(before=KernelSide(name="a", digest="1"), after=KernelSide(name="b", digest="2"))
SAMPLED = Sampled(
    workload="fork",
    interval=0.1,
    readings=1,
    cost_seconds=0.001,
    wall_seconds=0.5,
    times=(0.0, 0.1, 0.5),
    series=(Series(name="stat.ctxt", unit="", kind=SeriesKind.COUNTER, values=(0.0, 5.0, 9.0)),),
)
WHOLE = a_trial(planned(number=1), profiles=(a_profile({("do_fork", ""): 900}),), sampled=(SAMPLED,))
ANSWER = Tuned(
    space=Space(dimensions=()),
    goal=Goal(objectives=(Objective(metric="rps", direction=Direction.HIGHER),)),
    budget=Budget(runs=20),
    seed=1,
    baseline={},
    observations=(),
    noise=0.02,
    smallest_effect=0.01,
    answer="",
)


PROOF = Proof(workload="fork", before="a", after="b", values_before=(0.02,), values_after=(1.0,))


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
    lambda store: store.study(a_study("second")),
    remove_the_second,
)
"""Each leaves the same behind when it is done once more."""
WRITING = ("store", "trial_rows", "study_rows", "integrity")
Contents = dict[str, list[tuple[object, ...]]]


def write(file: Path, acknowledged: Path) -> None:
    """Open the store and do all writes that are left; a byte is added to `acknowledged` after each."""
    with open_store(file) as store, acknowledged.open("ab", buffering=0) as done:
        for one in WRITES[acknowledged.stat().st_size :]:
            one(store)
            done.write(b"x")


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
        for one in WRITES:
            one(store)
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
        done = acknowledged.stat().st_size
        left = contents(file)
        assert left in (stages[done], stages[min(done + 1, len(WRITES))]), kill
        with open_store(file) as store:
            assert [one.study.name for one in store.studies()][:1] == (["first"] if left["studies"] else [])
        write(file, acknowledged)
        assert contents(file) == stages[-1], f"{kill}: the rest was written afterwards"
        file.unlink()
        acknowledged.write_bytes(b"")
    assert contents(file) == stages[-1]


def a_store_of_schema_1(file: Path) -> None:
    with open_store(file) as store:
        store.add_trial(store.study(a_study("first")), a_trial())
    with closing(sqlite3.connect(file)) as raw:
        for table in ("profiles", "series", "answers", "kernel_differences", "digests", "study_digests"):
            raw.execute(f"DROP TABLE {table}")
        raw.execute("UPDATE ktrial_schema SET version = 1")
        raw.commit()


@pytest.mark.parametrize("start", [lambda file: None, a_store_of_schema_1], ids=["a new store", "schema 1"])
@pytest.mark.parametrize("name", declared("store/store.py"))
def test_a_store_is_old_or_up_to_date_after_a_kill_at(
    name: str, start: Callable[[Path], None], directory: Path
) -> None:
    file = directory / "new" / "ktrial.db"
    made = directory / "undisturbed.db"
    start(made)
    old = contents(made)
    open_store(made).close()
    now = contents(made)
    assert (now["ktrial_schema"], old == now) == ([(SCHEMA_VERSION,)], False)
    if old:
        start(file)
    for kill in each_kill_at(name, lambda: open_store(file).close()):
        assert contents(file) in (old, now), kill
        open_store(file).close()
        assert contents(file) == now, kill
        file.unlink()
        if old:
            start(file)
    assert contents(file) == now
