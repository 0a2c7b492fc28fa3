"""What a run tells the store while it runs: who runs it, what is under way; and nothing once it has ended."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from tests.support.making import a_study
from tests.support.scripted import ScriptedMachine, number_of, scripted_resources, wait_until

from ktrial.analysis.store_queries import is_alive, running_studies
from ktrial.experiment.session import run
from ktrial.model.machine import Activity, Boot
from ktrial.model.study import Study, Timing
from ktrial.model.workload import Mode
from ktrial.store.store import Store
from ktrial.target import Run, StepResult

STUDY = a_study(workloads=("fork",), perturbations=2)


class Held:
    """A machine whose programs wait, from one of them on, until they are let go."""

    def __init__(self, after: int, mode: Mode = Mode.EXACT_CLOCK) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        self._left = after
        self.machine = ScriptedMachine(self._answer, mode=mode)

    def _answer(self, boot: Boot, program: Run) -> StepResult:
        self._left -= 1
        if self._left < 0:
            self.reached.set()
            self.go_on.wait()
        return number_of(boot, program)


def told_meanwhile(store: Store, held: Held, study: Study, finished: int) -> Activity:
    """What the store has of a run while its machine is held, with so many trials stored."""
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(
            run, study, store=store, machine=held.machine, jobs=1, resources=scripted_resources()
        )
        try:
            wait_until(held.reached.is_set)
            wait_until(lambda: [activity.finished for _, activity in store.activities()] == [finished])
            ((study_id, activity),) = store.activities()
            (running,) = running_studies(store)
            assert (running.study_id, running.is_alive, running.runs) == (study_id, True, (activity,))
        finally:
            held.go_on.set()
        ended.result()
    return activity


def test_a_run_tells_who_runs_it_and_what_is_under_way_until_it_ends(store: Store) -> None:
    activity = told_meanwhile(store, Held(after=1), STUDY, finished=1)
    assert (activity.process, activity.planned, activity.failed) == (os.getpid(), 4, 0)
    assert [step.what.split(",")[0] in {"debian:6.1", "debian:6.12"} for step in activity.doing] == [True]
    assert "perturbation" in activity.doing[0].what
    assert store.activities() == ()


def test_in_real_time_nothing_is_written_while_a_trial_runs(store: Store) -> None:
    study = a_study(workloads=("fork",), timing=Timing(blocks=3))
    activity = told_meanwhile(store, Held(after=2, mode=Mode.TIMED), study, finished=2)
    assert activity.doing == (), "it was written when the second trial had ended"
    assert activity.silence_seconds > 3600
    assert store.activities() == ()


def an_activity(**changes: object) -> Activity:
    instant = datetime(2026, 11, 24, 12, tzinfo=UTC)
    plain = {
        "key": "k", "host": "elsewhere", "user": "ada", "process": 4711, "born": "", "started": instant,
        "heard": instant, "silence_seconds": 60, "finished": 1, "planned": 4,
    }  # fmt: skip
    return Activity.model_validate(plain | changes)


def test_a_run_on_another_host_is_alive_as_long_as_it_was_heard_of() -> None:
    activity = an_activity()
    assert is_alive(activity, activity.heard + timedelta(seconds=59))
    assert not is_alive(activity, activity.heard + timedelta(seconds=61))


def test_what_one_store_tells_of_a_run_replaces_what_it_told_before(store: Store) -> None:
    number = store.study(STUDY)
    assert store.tell_activity(number, an_activity())
    assert store.tell_activity(number, an_activity(finished=2))
    assert [activity.finished for _, activity in store.activities()] == [2]
    store.delete(number)
    assert store.activities() == ()


def test_a_run_of_a_study_that_is_gone_cannot_tell_anything(store: Store) -> None:
    assert not store.tell_activity(99, an_activity())
    assert store.activities() == ()


_CHILD = """
import sys, time
from tests.unit.experiment.test_activity_observer import Held, STUDY
from tests.support.scripted import scripted_resources
from ktrial.experiment.session import run
from ktrial.store.store import open_store
with open_store(sys.argv[1]) as store:
    run(STUDY, store=store, machine=Held(after=1).machine, jobs=1, resources=scripted_resources())
"""


def test_a_run_that_was_killed_is_known_to_be_gone(store: Store) -> None:
    child = subprocess.Popen([sys.executable, "-c", _CHILD, store.name])
    try:
        wait_until(lambda: bool(store.activities()))
        assert [running_study.is_alive for running_study in running_studies(store)] == [True]
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    (gone,) = running_studies(store)
    assert not gone.is_alive
    assert gone.runs[0].process == child.pid
    run(STUDY, store=store, machine=ScriptedMachine(), resources=scripted_resources())
    assert store.activities() == (), "who runs the study again takes it away"
