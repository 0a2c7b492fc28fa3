"""A study that a fleet performs says the same as one that is performed here, to the last digit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.fleets import (
    Heard,
    a_fleet,
    behave,
    logged,
    numbers,
    run_here,
    run_on,
    study_of,
)
from tests.support.scripted import wait_until

from ktrial.fleet.client_executor import Work
from ktrial.fleet.connection import imported, security_of
from ktrial.fleet.contents import Package
from ktrial.fleet.errors import FleetError
from ktrial.fleet.fleet import Fleet
from ktrial.fleet.membership import Calls
from ktrial.fleet.settings import fleet as fleet_named
from ktrial.fleet.trial_queue import Entry, Member, Pace, Waiting
from ktrial.fleet.worker_side import Completed, Gone, Unable
from ktrial.model.study import plan
from ktrial.model.warnings import WarningKind
from ktrial.store.store import Store


def test_comparisons_are_the_same_as_without_a_fleet(store: Store, other: Store) -> None:
    study = study_of(4)
    here = run_here(study, other)
    with a_fleet(1) as fleet:
        record = run_on(fleet, study, store)
    assert numbers(record) == numbers(here)
    assert record.result.comparisons == here.result.comparisons
    assert {trial.provenance.worker for trial in record.trials} == {"local-0"}


def test_each_worker_is_checked_by_another(address: str, store: Store, logs: Path) -> None:
    with Fleet(replace(fleet_named(address), check_share=0.0)) as fleet:
        record = run_on(fleet, study_of(6), store)
        members = list(fleet.members.values())
    who = {one.provenance.worker for one in record.trials}
    assert {one.name for one in members if one.confirmed} >= who
    workers_of: dict[tuple[str, ...], set[str]] = {}
    for worker, _, *trial in logged(logs, "ended"):
        workers_of.setdefault(tuple(trial), set()).add(worker)
    checked = set().union(*(workers for workers in workers_of.values() if len(workers) == 2))
    assert {f"local-{number}" for number in checked} >= who


def test_a_worker_that_tells_wrong_digits_is_quarantined_and_its_trials_run_again(
    fleet: Fleet, store: Store, other: Store, logs: Path
) -> None:
    behave(logs, 1, factor=1.5, seconds=0.02)
    behave(logs, 0, seconds=0.02)
    study = study_of(8)
    heard = Heard()
    record = run_on(fleet, study, store, heard)
    (wrong,) = [one for one in fleet.members.values() if one.quarantined]
    assert wrong.name == "local-1"
    assert numbers(record) == numbers(run_here(study, other))
    assert {one.provenance.worker for one in record.trials} == {"local-0"}
    warnings = [one for trial in record.trials for one in trial.warnings]
    assert WarningKind.WORKER_QUARANTINED in {one.kind for one in warnings}
    assert any("local-1 of the fleet returned wrong digits" in text for text in heard.notices)


def test_a_worker_with_another_qemu_is_refused_with_the_reason(
    fleet: Fleet, store: Store, logs: Path
) -> None:
    behave(logs, 0, QEMU="9.0")
    heard = Heard()
    record = run_on(fleet, study_of(3), store, heard)
    assert {one.provenance.worker for one in record.trials} == {"local-1"}
    assert heard.notices == [
        "worker local-0 of the fleet is refused: QEMU is 9.0 there, 7.2.22 here",
    ]


def test_a_fleet_of_refused_workers_is_an_error_with_the_reason(
    fleet: Fleet, store: Store, logs: Path
) -> None:
    behave(logs, "all", QEMU="9.0")
    with pytest.raises(FleetError, match=r"local-0: QEMU is 9\.0 there"):
        run_on(fleet, study_of(3), store)


def test_what_a_study_leaves_under_way_keeps_no_worker_from_the_next(
    fleet: Fleet, store: Store, logs: Path
) -> None:
    behave(logs, 1, again=1)
    run_on(fleet, study_of(8), store)
    assert {one.confirmed for one in fleet.members.values()} == {True}
    assert [(one.busy, one.preparing) for one in fleet.members.values()] == [(0, set())] * 2


@pytest.mark.nightly
def test_short_trials_are_handed_out_several_at_a_time_and_are_the_same(
    fleet: Fleet, store: Store, other: Store
) -> None:
    study = study_of(60)
    calls: set[str] = set()
    run_on(fleet, study_of(2, "first"), store)  # which tells how short they are
    begin = Calls.begin

    def counted(self: Calls, worker: str, name: str, *rest: Any) -> int:
        calls.add(name)
        return begin(self, worker, name, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Calls, "begin", counted)
        record = run_on(fleet, study, store)
    assert numbers(record) == numbers(run_here(study, other))
    assert len([name for name in calls if name.startswith("ktrial trial")]) < 60
    assert any(" more" in name for name in calls)


def test_a_call_of_the_same_name_as_one_that_a_lost_worker_has_is_another_call(fleet: Fleet) -> None:
    nobody, name = "tcp://127.0.0.1:9", "ktrial trial debian:6.1 0 #1.0"
    lost = fleet.connection.call(nobody, name, len, "lost")
    first, second = (fleet.connection.call(one, name, len, one) for one in fleet.connection.workers())
    wait_until(lambda: first.done() and second.done())
    assert fleet.connection.results([first, second]) == [len(one) for one in fleet.connection.workers()]
    assert not lost.done()
    fleet.connection.give_up([lost])


def test_nothing_is_left_with_the_scheduler_of_what_a_lost_worker_was_asked(
    fleet: Fleet, address: str
) -> None:
    nobody, calls = "tcp://127.0.0.1:9", Calls(fleet)
    number = calls.begin(nobody, "ktrial trial debian:6.1 0", len, "lost")
    settings = fleet_named(address)
    with imported().Client(settings.address, security=security_of(settings), set_as_default=False) as client:

        def kept() -> list[str]:
            keys: list[str] = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))
            return [key for key in keys if key.startswith("ktrial trial debian:6.1 0 ")]

        wait_until(lambda: bool(kept()))
        calls.lose([nobody], died=True)
        assert calls.finished(0) == [(number, Gone(died=True))]
        wait_until(lambda: not kept())


# How many trials a call is made for, and what becomes of those that a worker did not come to.

BOOTS = ()


def entries(count: int) -> list[Entry]:
    package = Package("digest", b"", {}, BOOTS)
    return [Entry(planned, (), package, ()) for planned in plan(study_of(count)).trials[:count]]


@pytest.mark.parametrize(
    ("seconds", "waiting", "slots", "at_a_time"),
    [
        (None, 10_000, 2, 1),
        (5.0, 10_000, 2, 1),
        (0.6, 10_000, 2, 1),
        (0.3, 10_000, 2, 3),
        (0.3, 16, 2, 2),
        (0.3, 4, 2, 1),
        (0.0, 10_000, 2, 100),
        (0.0, 10_000, 1000, 2),
    ],
)
def test_a_call_is_for_as_many_trials_as_fit_into_a_second_while_many_wait(
    seconds: float | None, waiting: int, slots: int, at_a_time: int
) -> None:
    pace = Pace()
    if seconds is not None:
        pace.saw_trial(seconds)
    assert pace.at_a_time(waiting, slots) == at_a_time


def test_a_trial_with_which_a_worker_was_lost_is_taken_alone() -> None:
    waiting, all_of_them = Waiting(), entries(6)
    all_of_them[2].deaths = 1
    for entry in all_of_them:
        waiting.add(entry)
    taken = [waiting.take(BOOTS, 4) for _ in range(3)]
    assert taken == [tuple(all_of_them[:2]), (all_of_them[2],), tuple(all_of_them[3:])]


def test_each_trial_of_a_call_has_its_own_answer_and_those_after_a_failure_have_none() -> None:
    member, three = Member("tcp://127.0.0.1:1", "worker-1", 1), tuple(entries(3))
    done, unable = Completed(b"{}"), Unable("its disk is full")
    parts = list(Work(member, three).parts((done, unable)))
    assert [(part.entries, type(reply)) for part, reply in parts] == [
        ((three[0],), Completed),
        ((three[1],), Unable),
        ((three[2],), Gone),
    ]
    assert [reply for _, reply in Work(member, three).parts(Gone(died=True))] == [Gone(died=True)]
