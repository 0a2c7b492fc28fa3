"""Who has which real machine: one at a time, until it is given back or its holder is gone."""

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support.databases import Backend

from ktrial.model.machine import MachineLease
from ktrial.process_identity import born
from ktrial.store.store import Store, open_store

AT_ONCE = 8


@pytest.fixture
def store(backend: Backend) -> Iterator[Store]:
    with open_store(backend.location) as opened:
        yield opened


def asked(key: str, machine: str = "10.0.0.7:22", **changes: object) -> MachineLease:
    plain = {
        "machine": machine, "called": "lab1", "key": key, "host": "elsewhere", "user": "ada", "process": 4711,
        "born": "boot 12", "study": "quick", "since": datetime(1970, 1, 1, tzinfo=UTC),
        "heard": datetime(1970, 1, 1, tzinfo=UTC), "silence_seconds": 120.0,
    }  # fmt: skip
    return MachineLease.model_validate(plain | changes)


def test_a_machine_is_one_holder_s_until_it_is_given_back(store: Store) -> None:
    first = store.take_machine(asked("a", user="ada «»\x00"))
    assert (first.is_taken, first.before) == (True, None)
    second = store.take_machine(asked("b", user="bob"))
    assert (second.is_taken, second.lease) == (False, first.lease)
    assert store.take_machine(asked("c", "10.0.0.8:22")).is_taken
    assert store.renew_machine(first.lease)
    assert store.renew_machine(asked("b")) is False
    assert store.give_machine_back(asked("b"))
    assert [one.lease.key for one in store.machine_leases()] == ["a", "c"]
    assert store.give_machine_back(first.lease)
    assert store.take_machine(asked("b")).is_taken


def test_a_holder_that_is_silent_for_too_long_is_gone(store: Store, backend: Backend) -> None:
    first = store.take_machine(asked("a")).lease
    assert [one.is_over for one in store.machine_leases()] == [False]
    backend.sql("UPDATE machine_leases SET heard = '2020-01-01 00:00:00'")
    (seen,) = store.machine_leases()
    assert seen.is_over
    assert seen.silent_seconds > 120
    taken = store.take_machine(asked("b"))
    assert taken.is_taken
    assert taken.before is not None
    assert (taken.before.key, taken.before.since) == ("a", first.since)
    assert store.renew_machine(first) is False
    store.give_machine_back(first)
    assert [one.lease.key for one in store.machine_leases()] == ["b"]


def test_a_holder_that_is_heard_again_stays(store: Store, backend: Backend) -> None:
    lease = store.take_machine(asked("a")).lease
    backend.sql("UPDATE machine_leases SET heard = '2020-01-01 00:00:00'")
    assert store.renew_machine(lease)
    assert not store.take_machine(asked("b")).is_taken


def test_a_process_of_this_host_that_has_ended_is_gone_at_once(store: Store) -> None:
    here: dict[str, Any] = {"host": socket.gethostname(), "process": os.getpid()}
    assert store.take_machine(asked("a", born=born(os.getpid()), **here)).is_taken
    assert not store.take_machine(asked("b")).is_taken
    assert store.take_machine(asked("a", born=f"{born(os.getpid()).split()[0]} 0", **here)).is_taken
    taken = store.take_machine(asked("b"))
    assert taken.is_taken
    assert taken.before is not None


def test_of_many_that_ask_at_once_one_has_it(store: Store) -> None:
    for _ in range(5):
        with ThreadPoolExecutor(AT_ONCE) as pool:
            leases = list(pool.map(lambda key: store.take_machine(asked(str(key))), range(AT_ONCE)))
        (won,) = [one.lease for one in leases if one.is_taken]
        assert {one.lease.key for one in leases} == {won.key}
        store.give_machine_back(won)
