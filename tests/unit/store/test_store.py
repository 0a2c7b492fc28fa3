"""The store: what goes in comes out, whole, whichever database keeps it."""

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.databases import Backend
from tests.support.making import a_study, a_trial, planned
from tests.support.profiles import a_profile

from ktrial.model.base import digest
from ktrial.model.profile import Profile
from ktrial.model.trial import Outcome
from ktrial.model.tuning import Budget, Effect, Goal, Objective, Space, Tuned
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Direction
from ktrial.store.errors import (
    StoreDamaged,
    StudyNotStored,
    TrialsDamaged,
)
from ktrial.store.schema import SCHEMA_VERSION
from ktrial.store.store import Store, open_store

NOBODY = 65534


@pytest.fixture
def store(backend: Backend) -> Iterator[Store]:
    with open_store(backend.location) as opened:
        yield opened


def test_a_trial_comes_back_as_it_went_in(store: Store) -> None:
    trial = a_trial(
        values={"fork": 143394.0, "pipe(size=512)": 2510.0},
        warnings=(DataWarning(kind=WarningKind.PLAIN_BOOT, text="booted plainly", advice="none"),),
        console="[    0.000000] Linux version 6.1\n«größer»\x00\x1b[0m",
    )
    study_id = store.study(a_study())
    assert store.add_trial(study_id, trial)
    assert store.trials(study_id) == (trial,)


def test_trials_come_back_in_run_order_whatever_the_order_in_which_they_ended(store: Store) -> None:
    study_id = store.study(a_study())
    for order in (2, 0, 1):
        store.add_trial(study_id, a_trial(planned(number=order, order=order)))
    assert [trial.planned.order for trial in store.trials(study_id)] == [0, 1, 2]


def test_the_same_study_has_the_same_id_and_another_study_another(store: Store) -> None:
    first = store.study(a_study())
    assert store.study(a_study()) == first
    assert store.study(a_study(margin=0.02)) != first


def test_a_finished_trial_is_kept_not_stored_twice(store: Store) -> None:
    study_id = store.study(a_study())
    assert store.add_trial(study_id, a_trial(values={"fork": 1.0}))
    assert not store.add_trial(study_id, a_trial(values={"fork": 2.0}))
    assert [trial.samples[0].value for trial in store.trials(study_id)] == [1.0]
    assert store.finished_keys(study_id) == {planned().key}


def test_a_trial_that_never_had_its_kernel_is_replaced_when_asked(store: Store) -> None:
    study_id = store.study(a_study())
    lost = frozenset({Outcome.KERNEL_MISSING})
    store.add_trial(study_id, a_trial(outcome=Outcome.KERNEL_MISSING))
    assert store.finished_keys(study_id) == {planned().key}
    assert store.finished_keys(study_id, apart_from=lost) == set()
    assert store.add_trial(study_id, a_trial(), replaces=lost)
    assert [trial.outcome for trial in store.trials(study_id)] == [Outcome.COMPLETED]
    assert not store.add_trial(study_id, a_trial(), replaces=lost)


def test_studies_are_listed_with_how_many_trials_ended_and_failed(store: Store) -> None:
    first, second = store.study(a_study("first")), store.study(a_study("second"))
    store.add_trial(first, a_trial())
    store.add_trial(first, a_trial(planned(number=1), outcome=Outcome.PANICKED))
    listed = {one.id: one for one in store.studies()}
    assert (listed[first].finished, listed[first].failed) == (2, 1)
    assert (listed[second].finished, listed[second].failed) == (0, 0)
    assert listed[first].study == a_study("first")
    assert listed[first].digest == digest(a_study("first"))


def test_a_study_is_found_by_its_id_and_by_its_name_the_newest_first(store: Store) -> None:
    old, new = store.study(a_study(margin=0.01)), store.study(a_study(margin=0.02))
    assert store.find("quick").id == new
    assert store.find(old).id == old
    assert store.find(str(old)).id == old


def test_an_unknown_study_is_an_error_with_the_nearest_name(store: Store) -> None:
    store.study(a_study("quick"))
    with pytest.raises(StudyNotStored, match=r"no study quikc: did you mean quick\?") as caught:
        store.find("quikc")
    assert "ktrial list" in caught.value.advice


def test_a_deleted_study_is_gone_with_all_its_rows(store: Store, backend: Backend) -> None:
    study_id = store.study(a_study())
    store.add_trial(study_id, a_trial())
    store.delete(study_id)
    for table in ("studies", "trials", "samples", "counters", "digests", "study_digests"):
        assert backend.sql(f"SELECT count(*) FROM {table}") == [(0,)]
    with pytest.raises(StudyNotStored):
        store.delete(study_id)


WRITE = """
import sys
from ktrial.store.store import open_store
from tests.support.making import a_study, a_trial, planned
from tests.support.profiles import a_profile
first = int(sys.argv[2])
with open_store(sys.argv[1]) as store:
    study_id = store.study(a_study())
    for number in range(first, first + 25):
        assert store.add_trial(study_id, a_trial(planned(number=number, order=number)))
"""


def test_several_processes_make_and_write_one_store_at_once(backend: Backend) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITE, backend.location, str(first)], cwd=Path.cwd())
        for first in (0, 25, 50)
    ]
    assert [writer.wait(300) for writer in writers] == [0, 0, 0]
    with open_store(backend.location) as store:
        (study,) = store.studies()
        assert study.finished == 75
        assert all(trial.samples and trial.counters for trial in store.trials(study.id))


def test_threads_share_one_store(store: Store) -> None:
    study_id = store.study(a_study())
    trials = [a_trial(planned(number=number, order=number)) for number in range(20)]
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda trial: store.add_trial(study_id, trial), trials))
    assert store.trials(study_id) == tuple(trials)


# Profiles, and stores of an older schema


def test_a_profile_comes_back_without_each_operations_own_count(store: Store) -> None:
    profile = with_vector(a_profile({("do_fork", ""): 900, ("ext4_open", "ext4"): 100}, program=50))
    study_id = store.study(a_study())
    store.add_trial(study_id, a_trial(profiles=(profile,)))
    (trial,) = store.trials(study_id)
    assert trial.profiles == ()
    stored = store.profile(study_id, planned().key, "fork")
    assert stored is not None
    assert stored.region.operations.vector is None
    assert with_vector(stored) == profile


def with_vector(profile: Profile) -> Profile:
    operations = profile.region.operations.model_copy(update={"vector": tuple(range(10))})
    region = profile.region.model_copy(update={"operations": operations})
    return profile.model_copy(update={"region": region})


def test_a_profile_that_was_not_taken_is_none(store: Store) -> None:
    study_id = store.study(a_study())
    store.add_trial(study_id, a_trial(profiles=(a_profile({("do_fork", ""): 900}),)))
    assert store.profile(study_id, planned().key, "pipe") is None
    assert store.profile(study_id, planned(number=1).key, "fork") is None
    assert store.profile(study_id + 1, planned().key, "fork") is None


def test_profiles_go_with_their_trial(store: Store, backend: Backend) -> None:
    study_id = store.study(a_study())
    store.add_trial(study_id, a_trial(profiles=(a_profile({("do_fork", ""): 900}),)))
    store.delete(study_id)
    assert backend.sql("SELECT count(*) FROM profiles") == [(0,)]


def test_a_profile_that_cannot_be_read_is_damage(store: Store, backend: Backend) -> None:
    study_id = store.study(a_study())
    store.add_trial(study_id, a_trial(profiles=(a_profile({("do_fork", ""): 900}),)))
    backend.put("profiles", b"\0")
    with pytest.raises(TrialsDamaged, match="1 trial of study 1 differs from what was stored"):
        store.profile(study_id, planned().key, "fork")
    backend.sql("DELETE FROM digests")
    with pytest.raises(StoreDamaged, match="what was compressed cannot be read"):
        store.profile(study_id, planned().key, "fork")


def test_an_answer_comes_back_replaces_an_older_one_and_goes_with_its_study(
    store: Store, backend: Backend
) -> None:
    tuned = an_answer(math.inf)
    study_id = store.study(a_study())
    assert store.answer(study_id) is None
    store.add_answer(study_id, an_answer(1.0))
    store.add_answer(study_id, tuned)
    assert store.answer(study_id) == tuned
    store.delete(study_id)
    assert backend.sql("SELECT count(*) FROM answers") == [(0,)]


def an_answer(high: float) -> Tuned:
    """Of a search whose interval has no upper end, say."""
    goal = Goal(objectives=(Objective(metric="rps", direction=Direction.HIGHER),))
    kept = Effect(names=("vm.swappiness",), values=("10",), ratio=1.1, low=1.0, high=high)
    return Tuned(
        space=Space(dimensions=()),
        goal=goal,
        budget=Budget(runs=20),
        seed=1,
        baseline={"rps": 100.0},
        observations=(),
        kept=(kept,),
        noise=0.02,
        smallest_effect=0.01,
        answer="«größer»",
    )


@pytest.fixture
def older(backend: Backend) -> Backend:
    """A store of schema 1, with one trial."""
    with open_store(backend.location) as store:
        store.add_trial(store.study(a_study()), a_trial())
    for table in ("profiles", "series", "answers", "digests", "study_digests"):
        backend.sql(f"DROP TABLE {table}")
    backend.sql("UPDATE ktrial_schema SET version = 1")
    ((spec,),) = backend.sql("SELECT spec FROM studies")
    plain = json.loads(str(spec))
    plain["machine"].pop("count", None)
    backend.sql("UPDATE studies SET spec = '{}'".format(json.dumps(plain).replace("'", "''")))
    return backend


def schema_of(backend: Backend) -> int:
    ((version,),) = backend.sql("SELECT version FROM ktrial_schema")
    return int(str(version))


def test_a_store_of_schema_1_is_brought_up_to_date_and_keeps_its_trials(older: Backend) -> None:
    with open_store(older.location) as store:
        (study,) = store.studies()
        assert store.trials(study.id) == (a_trial(),)
        assert store.profile(study.id, planned().key, "fork") is None
        profile = a_profile({("do_fork", ""): 900})
        store.add_trial(study.id, a_trial(planned(number=1), profiles=(profile,)))
        assert store.profile(study.id, planned(number=1).key, "fork") == profile
    assert schema_of(older) == SCHEMA_VERSION


def test_a_store_of_schema_1_that_is_only_read_stays_as_it_is(older: Backend) -> None:
    with open_store(older.location, read_only=True) as store:
        (study,) = store.studies()
        assert store.trials(study.id) == (a_trial(),)
        assert store.profile(study.id, planned().key, "fork") is None
        assert store.sampled(study.id, planned().key) == ()
        assert store.answer(study.id) is None
        assert store.proofs(study.id) == ()
    assert schema_of(older) == 1


def test_the_newest_study_and_the_one_with_a_digest_are_found_without_the_others(store: Store) -> None:
    assert store.newest() is None
    older, newer = (a_study(name=name) for name in ("older", "newer"))
    for study in (older, newer):
        store.study(study)
    newest, first = store.newest(), store.newest(digest=digest(older))
    assert newest is not None
    assert newest.study == newer
    assert first is not None
    assert first.study == older
    assert store.newest(digest="of none") is None
    assert store.names() == {"older", "newer"}


@pytest.mark.parametrize("number", ["1", "0001", 1])
def test_a_study_is_found_by_its_number_where_none_is_called_so(store: Store, number: int | str) -> None:
    assert store.study(a_study(name="first")) == 1
    assert store.find(number).study.name == "first"
    store.study(a_study(name="0001"))
    assert store.find(number).study.name == ("0001" if number == "0001" else "first")


def test_a_number_that_no_database_can_hold_is_no_study(store: Store) -> None:
    with pytest.raises(StudyNotStored, match="has no study 99999999999999999999"):
        store.find("99999999999999999999")
