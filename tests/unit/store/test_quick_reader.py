"""Reading a store with the standard library alone: it says what `Store` says, or that it cannot."""

from pathlib import Path

import pytest
from tests.support.databases import Backend
from tests.support.making import a_study, a_trial, planned

from ktrial.model.design import Design, Factor, FactorKind
from ktrial.model.study import Study, Timing, treatments
from ktrial.model.trial import Outcome
from ktrial.model.workload import WorkloadUse
from ktrial.store.integrity import StudyRow
from ktrial.store.quick_reader import NoQuickReading, quick_reader
from ktrial.store.schema import SCHEMA_VERSION
from ktrial.store.store import open_store

SIX = Factor(name="vm.swappiness", kind=FactorKind.SETTING, levels=(60, 0, 1, 1.0, 0.5, "a"), baseline=60)
SCHEDULER = Factor(name="scheduler", kind=FactorKind.SCHEDULER, levels=("", "/usr/bin/scx"), baseline="")
STUDIES = {
    "plain": a_study(),
    "nothing is changed": a_study().model_copy(update={"name": "alone", "factors": ()}),
    "two factors": a_study("two", factors=(SIX, SCHEDULER), question="«größer»?"),
    "one factor at a time": a_study("one", factors=(SIX, SCHEDULER), design=Design.ONE_AT_A_TIME),
    "listed": a_study(
        "listed", factors=(SIX,), design=Design.LISTED, listed=({"vm.swappiness": 1}, {"vm.swappiness": 60})
    ),
    "timed": a_study("timed", timing=Timing(blocks=7)),
}


@pytest.fixture
def path(backend: Backend) -> Backend:
    """A store with all the studies, and two trials, of which one failed."""
    with open_store(backend.location) as store:
        first, *_ = [store.study(study) for study in STUDIES.values()]
        store.add_trial(first, a_trial())
        store.add_trial(first, a_trial(planned(number=1), outcome=Outcome.PANICKED))
    return backend


def test_it_reads_the_studies_that_the_store_has(path: Backend) -> None:
    with open_store(path.location) as store:
        stored = store.studies()
    with quick_reader(path.location) as reader:
        rows = reader.studies()
        assert reader.name == store.name
    assert [(one.id, one.digest, one.created) for one in rows] == [
        (one.id, one.digest, one.created) for one in stored
    ]
    assert [(one.finished, one.failed) for one in rows] == [(2, 1)] + [(0, 0)] * (len(STUDIES) - 1)
    assert list(rows) == [one.row() for one in stored]


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_a_row_says_of_a_study_what_its_model_says(study: Study, path: Backend) -> None:
    with quick_reader(path.location) as reader:
        (row,) = (one for one in reader.studies() if one.name == study.name)
    expected = treatments(study)
    assert row.question == study.question
    assert list(row.treatments) == [one.levels for one in expected]
    assert row.labels == [one.label for one in expected]
    assert row.workloads == [use.label for use in study.workloads]
    assert (row.is_search, row.planned) == (False, len(expected) * study.blocks)


def test_a_workload_is_called_by_its_parameters_too(path: Backend) -> None:
    use = WorkloadUse(name="hackbench", parameters={"loops": 5, "groups": 2})
    with open_store(path.location) as store:
        store.study(a_study("with-parameters").model_copy(update={"workloads": (use,)}))
    with quick_reader(path.location) as reader:
        assert reader.studies()[-1].workloads == ["hackbench(groups=2, loops=5)"] == [use.label]


def test_it_reads_what_a_writer_at_work_has_stored_so_far(path: Backend) -> None:
    with open_store(path.location) as store:
        store.study(a_study("while-it-is-open"))
        with quick_reader(path.location) as reader:
            assert reader.studies()[-1].name == "while-it-is-open"


def test_reading_leaves_the_store_as_it_is(path: Backend) -> None:
    if not path.is_file:
        pytest.skip("a server writes what it likes")
    file = Path(path.location)
    before = file.read_bytes()
    with quick_reader(file) as reader:
        assert len(reader.studies()) == len(STUDIES)
    assert file.read_bytes() == before
    assert sorted(file.parent.iterdir()) == [file]


def rows_of(location: Path | str) -> tuple[StudyRow, ...]:
    with quick_reader(location) as reader:
        return reader.studies()


@pytest.mark.parametrize("version", [1, SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
def test_a_store_of_another_schema_is_for_open_store(version: int, path: Backend) -> None:
    path.sql(f"UPDATE ktrial_schema SET version = {version}")
    with pytest.raises(NoQuickReading):
        rows_of(path.location)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE studies SET spec = '{' WHERE id = 1",
        "UPDATE studies SET name = 'today' WHERE id = 1",
        "ALTER TABLE trials RENAME TO trails",
        "DELETE FROM ktrial_schema",
    ],
)
def test_a_damaged_store_is_for_open_store(damage: str, path: Backend) -> None:
    path.sql(damage)
    with pytest.raises(NoQuickReading):
        rows_of(path.location)


def test_what_a_spec_lacks_is_for_open_store(path: Backend) -> None:
    path.sql("""UPDATE studies SET spec = replace(spec, '"design"', '"dezign"')""")
    path.sql("DELETE FROM study_digests")
    with pytest.raises(NoQuickReading), quick_reader(path.location) as reader:
        assert reader.studies()[0].treatments == ()


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0 and no more", b"a text"])
def test_a_file_that_is_no_store_is_for_open_store(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    file.write_bytes(content)
    with pytest.raises(NoQuickReading):
        rows_of(file)


@pytest.mark.parametrize("location", ["postgresql://host/results", "sqlite:///results.db", "/nowhere/is.db"])
def test_a_store_elsewhere_is_for_open_store(location: str) -> None:
    with pytest.raises(NoQuickReading):
        rows_of(location)
