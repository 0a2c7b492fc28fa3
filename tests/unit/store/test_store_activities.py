"""What runs, and what has changed, in whichever database keeps it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest
from tests.support.databases import Backend
from tests.support.making import a_study, a_trial, planned

from ktrial.model.machine import Activity, Doing
from ktrial.model.trial import Outcome
from ktrial.store.store import Store, open_store

NOW = datetime(2026, 11, 24, 12, tzinfo=timezone(timedelta(hours=2)))


@pytest.fixture
def store(backend: Backend) -> Iterator[Store]:
    with open_store(backend.location) as opened:
        yield opened


def an_activity(key: str = "k", finished: int = 1) -> Activity:
    doing = (Doing(what="debian:6.1, perturbation 1\x00«»", where="worker 3", since=NOW),)
    return Activity(
        key=key, host="lab", user="ada", process=4711, born="", started=NOW, heard=NOW,
        silence_seconds=60, finished=finished, planned=4, doing=doing,
    )  # fmt: skip


def test_an_activity_comes_back_as_it_went_in_until_it_is_forgotten(store: Store) -> None:
    number = store.study(a_study())
    assert store.tell_activity(number, an_activity())
    assert store.tell_activity(number, an_activity("other"))
    assert store.tell_activity(number, an_activity(finished=2))
    assert store.activities() == ((number, an_activity(finished=2)), (number, an_activity("other")))
    assert store.forget_activities("k")
    assert [one.key for _, one in store.activities()] == ["other"]
    assert not store.tell_activity(number + 1, an_activity("of no study"))


def test_a_study_s_state_changes_with_its_trials_and_with_nothing_else(store: Store) -> None:
    number, other = store.study(a_study()), store.study(a_study(name="other"))
    seen = [store.study_states()]
    retried = frozenset({Outcome.PANICKED})
    failed = a_trial(outcome=Outcome.PANICKED)
    later = failed.model_copy(update={"started": datetime(2026, 11, 25, tzinfo=UTC)})
    for trial in (failed, later, a_trial(), a_trial(planned(number=1))):
        assert store.add_trial(number, trial, replaces=retried)
        seen.append(store.study_states())
    assert len({one[number] for one in seen}) == 5
    assert len({one[other] for one in seen}) == 1
    store.tell_activity(number, an_activity())
    assert store.study_states() == seen[-1]
    store.delete(number)
    assert store.study_states().keys() == {other}
