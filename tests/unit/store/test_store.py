"""The store: what goes in comes out, whole, whichever database keeps it."""

import math
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.databases import POSTGRESQL, SQLITE, Backend
from tests.support.making import a_study, a_trial, planned
from tests.support.profiles import a_profile
from tests.support.runs_of_tests import at_night
from tests.support.stored_parts import ANSWER, SAMPLED

from ktrial.model.base import digest
from ktrial.model.profile import Profile
from ktrial.model.trial import CounterDelta, Outcome, Trial
from ktrial.model.tuning import Effect
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.store.errors import StudyNotStored, TrialsDamaged
from ktrial.store.store import Store, open_store

LARGE = 2**40
PROFILE = a_profile({("do_fork", ""): 900, ("ext4_open", "ext4"): 100}, program=50)


@pytest.fixture
def store(backend: Backend) -> Iterator[Store]:
    with open_store(backend.location) as opened:
        yield opened


def odd_trial() -> Trial:
    """With text, names and numbers that databases keep in different ways."""
    plain = a_trial(console="a\0b\x1a0\x1aS\x1a\x1b[0m«größer»")
    (sample,) = plain.samples
    samples = (
        sample.model_copy(update={"operations": LARGE, "workload": "w" * 3000}),
        sample.model_copy(update={"value": math.inf, "minimum": -math.inf, "unit": "u" * 100}),
    )
    counters = (CounterDelta(workload="\0fork", name="n" * 300, delta=float(LARGE)),)
    return plain.model_copy(update={"samples": samples, "counters": counters, "settings": {"a": "\0"}})


@pytest.mark.parametrize(
    "trial",
    [
        a_trial(
            values={"fork": 143394.0, "pipe(size=512)": 2510.0},
            warnings=(DataWarning(kind=WarningKind.PLAIN_BOOT, text="booted plainly", advice="none"),),
            console="[    0.000000] Linux version 6.1\n«größer»\x00\x1b[0m",
        ),
        odd_trial(),
    ],
    ids=["plain", "odd"],
)
def test_a_trial_comes_back_as_it_went_in(store: Store, trial: Trial) -> None:
    study_id = store.study(a_study(question="what\0?"))
    assert store.add_trial(study_id, trial)
    assert store.trials(study_id) == (trial,)
    assert [check.damaged for check in store.check_trials(study_id)] == [()]
    assert store.find(study_id).study.question == "what\0?"


def test_a_number_that_is_none_comes_back_as_none(store: Store) -> None:
    plain = a_trial()
    nans = {"value": math.nan, "mean": math.nan}
    samples = tuple(sample.model_copy(update=nans) for sample in plain.samples)
    number = store.study(a_study())
    assert store.add_trial(number, plain.model_copy(update={"samples": samples}))
    (trial,) = store.trials(number)
    assert all(math.isnan(value) for value in (trial.samples[0].value, trial.samples[0].mean or 0))
    assert [check.damaged for check in store.check_trials(number)] == [()]


def test_trials_come_back_in_run_order_whatever_the_order_in_which_they_ended(store: Store) -> None:
    study_id = store.study(a_study())
    for order in (2, 0, 1):
        store.add_trial(study_id, a_trial(planned(number=order, order=order)))
    assert [trial.planned.order for trial in store.trials(study_id)] == [0, 1, 2]


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
    assert store.study(a_study("first")) == first != second
    store.add_trial(first, a_trial())
    store.add_trial(first, a_trial(planned(number=1), outcome=Outcome.PANICKED))
    assert [(study.id, study.finished, study.failed) for study in store.studies()] == [
        (first, 2, 1),
        (second, 0, 0),
    ]
    assert (store.studies()[0].study, store.studies()[0].digest) == (
        a_study("first"),
        digest(a_study("first")),
    )


def test_a_study_is_found_by_its_number_its_name_and_its_digest_the_newest_first(store: Store) -> None:
    assert store.newest() is None
    studies = [a_study(margin=0.01), a_study(margin=0.02), a_study(name="0001")]
    first, second, third = (store.study(study) for study in studies)
    numbers = {study: store.find(study).id for study in ("quick", first, str(first), "0001", "0002", "3")}
    assert numbers == {
        "quick": second,
        first: first,
        str(first): first,
        "0001": third,
        "0002": second,
        "3": third,
    }
    assert [store.newest(), store.newest(digest=digest(studies[0])), store.newest(digest="of none")] == [
        store.find(third),
        store.find(first),
        None,
    ]
    assert store.names() == {"quick", "0001"}


def test_an_unknown_study_is_told_with_the_nearest_name(store: Store) -> None:
    store.study(a_study("quick"))
    unknown = (("quikc", " (did you mean quick?)"), ("zzz", ""), (7, ""), ("9" * 20, ""))
    for name, near in unknown:
        with pytest.raises(StudyNotStored) as caught:
            store.find(name)
        assert str(caught.value) == f"Store {store.name} has no study {name}{near}."
        assert "ktrial list" in caught.value.advice


def test_a_deleted_study_is_gone_with_all_its_rows(store: Store, backend: Backend) -> None:
    study_id = store.study(a_study())
    store.add_trial(study_id, a_trial(profiles=(PROFILE,), sampled=(SAMPLED,)))
    store.add_answer(study_id, ANSWER)
    store.delete(study_id)
    tables = ("studies", "trials", "samples", "counters", "profiles", "series", "digests", "study_digests")
    for table in (*tables, "answers"):
        assert backend.sql(f"SELECT count(*) FROM {table}") == [(0,)]
    with pytest.raises(StudyNotStored):
        store.delete(study_id)


WRITE = """
import sys
from ktrial.store.store import open_store
from tests.support.making import a_study, a_trial, planned
first = int(sys.argv[2])
with open_store(sys.argv[1]) as store:
    study_id = store.study(a_study())
    for number in range(first, first + 25):
        assert store.add_trial(study_id, a_trial(planned(number=number, order=number)))
"""


@pytest.mark.nightly  # some 8 seconds of CPU time
@pytest.mark.parametrize("backend", [at_night(SQLITE), POSTGRESQL], indirect=True)
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


def with_vector(profile: Profile) -> Profile:
    operations = profile.region.operations.model_copy(update={"vector": tuple(range(10))})
    region = profile.region.model_copy(update={"operations": operations})
    return profile.model_copy(update={"region": region})


def test_a_profile_comes_back_without_each_operations_own_count(store: Store) -> None:
    study_id = store.study(a_study())
    store.add_trial(study_id, a_trial(profiles=(with_vector(PROFILE),)))
    assert store.trials(study_id)[0].profiles == ()
    stored = store.profile(study_id, planned().key, "fork")
    assert stored is not None
    assert stored.region.operations.vector is None
    assert with_vector(stored) == with_vector(PROFILE)
    assert store.profiled(study_id) == {"fork"}
    missing = [(study_id, planned().key, "pipe"), (study_id, planned(number=1).key, "fork")]
    for study, key, workload in (*missing, (study_id + 1, planned().key, "fork")):
        assert store.profile(study, key, workload) is None


def test_a_profile_that_cannot_be_read_is_damage(store: Store, backend: Backend) -> None:
    study_id = store.study(a_study())
    store.add_trial(study_id, a_trial(profiles=(PROFILE,)))
    backend.put("profiles", b"\0")
    with pytest.raises(TrialsDamaged, match="1 trial of study 1 differs from what was stored"):
        store.profile(study_id, planned().key, "fork")


def test_an_answer_comes_back_and_replaces_an_older_one(store: Store) -> None:
    kept = Effect(names=("vm.swappiness",), values=("10",), ratio=1.1, low=1.0, high=math.inf)
    answer = ANSWER.model_copy(update={"kept": (kept,), "answer": "«größer»"})
    study_id = store.study(a_study())
    assert store.answer(study_id) is None
    store.add_answer(study_id, ANSWER)
    store.add_answer(study_id, answer)
    assert store.answer(study_id) == answer


def test_a_study_s_state_changes_with_its_trials_and_with_nothing_else(store: Store) -> None:
    number, other = store.study(a_study()), store.study(a_study(name="other"))
    states = [store.study_states()]
    failed = a_trial(outcome=Outcome.PANICKED)
    later = failed.model_copy(update={"started": datetime(2026, 11, 25, tzinfo=UTC)})
    for trial in (failed, later, a_trial(), a_trial(planned(number=1))):
        assert store.add_trial(number, trial, replaces=frozenset({Outcome.PANICKED}))
        states.append(store.study_states())
    assert len({state[number] for state in states}) == 5
    assert len({state[other] for state in states}) == 1
    store.delete(number)
    assert store.study_states().keys() == {other}
