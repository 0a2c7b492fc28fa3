"""What runs now: who runs which study, and who has which real machine: one at a time, until its holder is
gone."""

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from tests.support.databases import Backend
from tests.support.making import a_study

from ktrial.model.machine import Activity, Doing, MachineLease
from ktrial.process_identity import born
from ktrial.store.store import Store, open_store

AT_ONCE = 8
LONG_AGO = "UPDATE machine_leases SET heard = '2020-01-01 00:00:00'"
NOON = datetime(2026, 11, 24, 12, tzinfo=timezone(timedelta(hours=2)))


@pytest.fixture
def store(backend: Backend) -> Iterator[Store]:
    with open_store(backend.location) as opened:
        yield opened


def an_activity(key: str = "k", finished: int = 1) -> Activity:
    doing = (Doing(what="debian:6.1, perturbation 1\x00«»", where="worker 3", since=NOON),)
    return Activity(
        key=key, host="lab", user="ada", process=4711, born="", started=NOON, heard=NOON,
        silence_seconds=60, finished=finished, planned=4, doing=doing,
    )  # fmt: skip


def test_an_activity_comes_back_as_it_went_in_until_it_is_forgotten(store: Store) -> None:
    number = store.study(a_study())
    states = store.study_states()
    assert store.tell_activity(number, an_activity())
    assert store.tell_activity(number, an_activity("other"))
    assert store.tell_activity(number, an_activity(finished=2))
    assert store.activities() == ((number, an_activity(finished=2)), (number, an_activity("other")))
    assert store.study_states() == states
    assert store.forget_activities("k")
    assert [activity.key for _, activity in store.activities()] == ["other"]
    assert not store.tell_activity(number + 1, an_activity("of no study"))


def request(key: str, machine: str = "10.0.0.7:22", **changes: object) -> MachineLease:
    plain = {
        "machine": machine, "called": "lab1", "key": key, "host": "elsewhere", "user": "ada", "process": 4711,
        "born": "boot 12", "study": "quick", "since": datetime(1970, 1, 1, tzinfo=UTC),
        "heard": datetime(1970, 1, 1, tzinfo=UTC), "silence_seconds": 120.0,
    }  # fmt: skip
    return MachineLease.model_validate(plain | changes)


def holders(store: Store) -> list[str]:
    return [held.lease.key for held in store.machine_leases()]


def test_a_machine_is_one_holder_s_until_it_is_given_back(store: Store) -> None:
    first = store.take_machine(request("a", user="ada «»\x00"))
    assert (first.is_taken, first.before) == (True, None)
    second = store.take_machine(request("b", user="bob"))
    assert (second.is_taken, second.lease) == (False, first.lease)
    assert store.take_machine(request("c", "10.0.0.8:22")).is_taken
    assert store.renew_machine(first.lease)
    assert store.renew_machine(request("b")) is False
    assert store.give_machine_back(request("b"))
    assert holders(store) == ["a", "c"]
    assert store.give_machine_back(first.lease)
    assert store.take_machine(request("b")).is_taken


def test_a_holder_that_is_silent_for_too_long_is_gone_unless_it_is_heard_again(
    store: Store, backend: Backend
) -> None:
    first = store.take_machine(request("a")).lease
    assert [held.is_over for held in store.machine_leases()] == [False]
    backend.sql(LONG_AGO)
    assert store.renew_machine(first)
    assert not store.take_machine(request("b")).is_taken
    backend.sql(LONG_AGO)
    (held,) = store.machine_leases()
    assert held.is_over
    assert held.silent_seconds > 120
    taking = store.take_machine(request("b"))
    assert taking.is_taken
    assert taking.before is not None
    assert (taking.before.key, taking.before.since) == ("a", first.since)
    assert store.renew_machine(first) is False
    store.give_machine_back(first)
    assert holders(store) == ["b"]


def test_a_process_of_this_host_that_has_ended_is_gone_at_once(store: Store) -> None:
    local: dict[str, Any] = {"host": socket.gethostname(), "process": os.getpid()}
    assert store.take_machine(request("a", born=born(os.getpid()), **local)).is_taken
    assert not store.take_machine(request("b")).is_taken
    assert store.take_machine(request("a", born=f"{born(os.getpid()).split()[0]} 0", **local)).is_taken
    taking = store.take_machine(request("b"))
    assert taking.is_taken
    assert taking.before is not None


def test_of_many_that_ask_at_once_one_has_it(store: Store) -> None:
    for _ in range(5):
        with ThreadPoolExecutor(AT_ONCE) as pool:
            takings = list(pool.map(lambda key: store.take_machine(request(str(key))), range(AT_ONCE)))
        (winner,) = [taking.lease for taking in takings if taking.is_taken]
        assert {taking.lease.key for taking in takings} == {winner.key}
        store.give_machine_back(winner)
