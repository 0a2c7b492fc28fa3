"""What surrounds a fleet fails: a worker's disk is full, the network drops, the store's server restarts."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import databases
from tests.support.fleet_processes import FleetProcesses, connected, with_images
from tests.support.fleets import Heard, a_fleet, behave, numbers, run_here, run_on, study_of, with_all_there
from tests.support.places import ROOT
from tests.support.scripted import scripted_resources

from ktrial.store.store import Store, open_store

STUDY = study_of(6)
TRIALS = 12
IMAGE_BYTES = 8 << 20
CACHE_BYTES = 5 << 20
"""Two parts of a kernel fit in, and no kernel."""


@pytest.fixture
def small_cache(place: Path) -> Iterator[Path]:
    """A file system of few bytes where worker 1 keeps what it is given."""
    cache = place / "caches" / "1"
    cache.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={CACHE_BYTES}", "tmpfs", str(cache)], check=True)
    try:
        yield cache
    finally:
        subprocess.run(["umount", "--lazy", str(cache)], check=True)


@pytest.mark.root
def test_a_worker_whose_disk_is_full_is_refused_and_others_do_its_work(
    small_cache: Path, processes: FleetProcesses, store: Store, other: Store, place: Path
) -> None:
    heard = Heard()
    processes.start_worker(1)
    processes.start_worker(2)
    with connected(processes) as fleet:
        record = run_on(
            with_all_there(fleet, 2),
            STUDY,
            store,
            heard,
            resources=with_images(place, IMAGE_BYTES, scripted_resources),
        )
    assert numbers(record) == numbers(run_here(STUDY, other))
    assert {one.provenance.worker for one in record.trials} == {"worker-2"}
    (refused,) = [text for text in heard.notices if "refused" in text]
    assert refused.startswith("worker worker-1 of the fleet is refused: ")
    assert "No space left on device" in refused
    assert shutil.disk_usage(small_cache).total == CACHE_BYTES


@pytest.mark.nightly
def test_the_store_s_server_restarts_in_the_middle_of_a_run(place: Path, other: Store) -> None:
    behave(place, "all", seconds=0.05)
    with databases.running() as server, open_store(server.database()) as store, a_fleet(2) as fleet:
        told: list[str] = []
        store.transactions.say = told.append
        restarting = Restarting(server, after=4)
        record = run_on(fleet, STUDY, store, restarting)
        (kept,) = store.studies()
        assert restarting.is_done
        assert kept.finished == len(record.trials) == TRIALS
        assert not any(one.damaged for one in store.check_trials(kept.id))
    assert numbers(record) == numbers(run_here(STUDY, other))


class Restarting(Heard):
    """Restarts a database server, as after a crash, when so many trials have ended."""

    def __init__(self, server: databases.Server, after: int) -> None:
        super().__init__()
        self._server, self._after, self.is_done = server, after, False

    def trial_finished(self, trial: object, finished: int, total: int, seconds_left: object) -> None:
        if finished >= self._after and not self.is_done:
            self.is_done = True
            self._server.stop()
            self._server.start()


@pytest.mark.nightly
def test_a_network_that_is_away_for_thirty_seconds_costs_these_and_nothing_else(
    place: Path, other: Store
) -> None:
    done = subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "--net"),
            *(sys.executable, "-m", "tests.support.fleet_network", str(place), "30"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["away"] >= 30
    assert told["before"] < told["after"] == TRIALS
    with open_store(place / "client.db") as store:
        (kept,) = store.studies()
        trials = store.trials(kept.id)
    assert len(trials) == TRIALS
    by_key = {one.planned.key: (one.outcome, one.samples, one.counters) for one in trials}
    assert by_key == numbers(run_here(STUDY, other))
