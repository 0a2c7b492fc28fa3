"""Whatever is killed, and whenever: no trial is lost, none counts twice, and the digits are the same."""

import signal
from dataclasses import replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest
from tests.support.fault_points import declared
from tests.support.fleet_processes import PERTURBATIONS, FleetProcesses, connected, fleet_processes
from tests.support.fleets import (
    Heard,
    a_fleet,
    behave,
    logged,
    numbers,
    run_here,
    run_on,
    study_of,
    with_all_there,
)
from tests.support.scripted import wait_until

from ktrial.fleet.errors import FleetOutOfReach
from ktrial.fleet.fleet import Fleet
from ktrial.store.store import Store, open_store

STUDY = study_of(PERTURBATIONS)
TRIALS = 2 * PERTURBATIONS
PROGRAMS = 2
"""Of a trial: one a workload."""


def stored(store: Path) -> int:
    """How many trials are in it."""
    if not store.exists():
        return 0
    with open_store(store) as opened:
        return sum(len(opened.finished_keys(one.id)) for one in opened.studies())


IN_A_TRIAL = "fleet: trial begins"
POINTS = [
    pytest.param(point, marks=() if point == IN_A_TRIAL else pytest.mark.nightly)
    for point in declared("fleet/worker_side.py", "fleet/contents.py")
    if point.startswith("fleet: ")
]


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_that_is_killed_loses_nothing(
    point: str, processes: FleetProcesses, store: Store, other: Store
) -> None:
    killed = processes.start_worker(1, fault_point=point)
    with connected(processes) as fleet:
        with_all_there(fleet, 1)
        processes.start_worker(2)
        record = run_on(fleet, STUDY, store)
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
    assert len(record.trials) == TRIALS
    assert numbers(record) == numbers(run_here(STUDY, other))


@pytest.mark.nightly
def test_the_trials_of_a_worker_that_stalls_are_run_by_another(
    tmp_path: Path, store: Store, other: Store
) -> None:
    """It is stopped in a trial and says nothing more; Dask gives it up after its `worker-ttl`."""
    with fleet_processes(tmp_path, worker_ttl="3 s") as processes:
        processes.start_worker(1, fault_point=IN_A_TRIAL, signal="SIGSTOP")
        with connected(processes) as fleet:
            with_all_there(fleet, 1)
            processes.start_worker(2)
            record = run_on(fleet, STUDY, store)
    assert len(record.trials) == TRIALS
    assert numbers(record) == numbers(run_here(STUDY, other))


@pytest.mark.nightly
def test_what_a_killed_worker_left_is_taken_away_by_the_next_which_leaves_nothing(
    processes: FleetProcesses, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = place / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    with connected(processes) as fleet:
        processes.kill(with_one_worker(processes, fleet))
        assert scratch(place)
        last = with_one_worker(processes, fleet)
    last.terminate()
    last.join()
    assert [*scratch(place), *temporary.iterdir()] == []


def with_one_worker(processes: FleetProcesses, fleet: Fleet) -> ForkServerProcess:
    wait_until(lambda: not fleet.connection.workers())
    worker = processes.start_worker(1)
    with_all_there(fleet, 1)
    return worker


def scratch(place: Path) -> list[Path]:
    """The directories in which workers keep what is for their time only."""
    return [one for one in place.glob("caches/1/fleet-scratch/*/*") if one.is_dir()]


@pytest.mark.nightly
def test_a_scheduler_that_is_gone_ends_the_run_and_another_fleet_goes_on(
    processes: FleetProcesses, store: Store, other: Store, place: Path
) -> None:
    behave(place, 1, seconds=0.2)
    processes.start_worker(1)
    gone = Gone(processes, after=3)
    with connected(processes) as fleet:
        with_all_there(fleet, 1)
        fleet.settings = replace(fleet.settings, patience=3)
        with pytest.raises(FleetOutOfReach):
            run_on(fleet, STUDY, store, gone)
    left = store.finished_keys(store.studies()[0].id)
    assert len(left) >= gone.after
    with a_fleet(1) as fleet:
        record = run_on(fleet, STUDY, store)
    assert numbers(record) == numbers(run_here(STUDY, other))
    by_the_other = [line for line in logged(place, "ended") if line[0] == "0"]
    assert len(by_the_other) == PROGRAMS * (TRIALS - len(left)), "what was stored was not performed again"


@pytest.mark.nightly
def test_a_scheduler_that_comes_back_is_waited_for(
    processes: FleetProcesses, store: Store, other: Store, place: Path
) -> None:
    behave(place, 1, seconds=0.1)
    processes.start_worker(1)
    back = Gone(processes, after=3, comes_back=True)
    with connected(processes) as fleet:
        record = run_on(fleet, STUDY, store, back)
    assert back.was_gone
    assert "the scheduler of the fleet does not answer: waiting for it" in back.notices
    assert numbers(record) == numbers(run_here(STUDY, other))


@pytest.mark.nightly
def test_a_client_that_is_killed_goes_on_where_it_was(
    processes: FleetProcesses, other: Store, place: Path
) -> None:
    behave(place, 1, seconds=0.1)
    processes.start_worker(1)
    client = processes.start_client()
    wait_until(lambda: stored(processes.store) >= 3)
    processes.kill(client)
    left = stored(processes.store)
    assert 3 <= left < TRIALS
    with connected(processes) as fleet, open_store(processes.store) as opened:
        before = {one.planned.key: one for one in opened.trials(opened.studies()[0].id)}
        record = run_on(fleet, STUDY, opened)
    now = {one.planned.key: one for one in record.trials}
    assert {key: now[key] for key in before} == before, "what was stored is as it was"
    assert numbers(record) == numbers(run_here(STUDY, other))


class Gone(Heard):
    """Kills the scheduler when so many trials have ended; has another one come at its address."""

    def __init__(self, processes: FleetProcesses, after: int, *, comes_back: bool = False) -> None:
        super().__init__()
        self.after, self.was_gone = after, False
        self._processes, self._comes_back = processes, comes_back

    def trial_finished(self, trial: object, finished: int, total: int, seconds_left: object) -> None:
        if finished >= self.after and not self.was_gone:
            self.was_gone = True
            self._processes.kill(self._processes.scheduler)

    def notice(self, text: str) -> None:
        super().notice(text)
        if "does not answer" in text and self._comes_back:
            self._processes.start_scheduler()
