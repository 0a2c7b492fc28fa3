"""How many trials a call is made for, and what becomes of those that a worker did not come to."""

import pytest
from tests.support.fleets import study_of

from ktrial.fleet.client_executor import Work
from ktrial.fleet.contents import Package
from ktrial.fleet.trial_queue import Entry, Member, Pace, Waiting
from ktrial.fleet.worker_side import Completed, Gone, Unable
from ktrial.model.study import plan

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
