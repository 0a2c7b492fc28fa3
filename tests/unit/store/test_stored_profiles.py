"""A treatment's profile, found among those of its trials."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.making import a_study, a_trial, planned
from tests.support.profiles import a_profile

from ktrial.analysis.result import load_record
from ktrial.analysis.store_queries import profile_of
from ktrial.model.design import Treatment
from ktrial.model.profile import Profile
from ktrial.model.trial import Outcome
from ktrial.store.store import Store, open_store

OLD, NEW = Treatment(levels={"kernel": "debian:6.1"}), Treatment(levels={"kernel": "debian:6.12"})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "trials.db") as opened:
        yield opened


def counted(instructions: int) -> Profile:
    return a_profile({("do_fork", ""): instructions})


def test_the_first_perturbation_s_profile_is_taken_whatever_the_run_order(store: Store) -> None:
    study_id = store.study(a_study())
    for number, order, instructions in ((2, 0, 300), (0, 1, 100), (1, 2, 200)):
        store.add_trial(
            study_id, a_trial(planned(number=number, order=order), profiles=(counted(instructions),))
        )
    assert profile_of(store, load_record(store, study_id), OLD, "fork") == counted(100)


def test_a_trial_without_a_profile_is_passed_over(store: Store) -> None:
    study_id = store.study(a_study())
    store.add_trial(study_id, a_trial(planned(number=0), outcome=Outcome.PANICKED))
    store.add_trial(study_id, a_trial(planned(number=1, order=1), profiles=(counted(200),)))
    assert profile_of(store, load_record(store, study_id), OLD, "fork") == counted(200)


def test_another_treatment_and_another_workload_have_none(store: Store) -> None:
    study_id = store.study(a_study())
    store.add_trial(study_id, a_trial(profiles=(counted(100),)))
    whole = load_record(store, study_id)
    assert profile_of(store, whole, NEW, "fork") is None
    assert profile_of(store, whole, OLD, "pipe") is None
