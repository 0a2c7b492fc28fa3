"""Workers are killed at 200 random instants of studies, and at 40 of builds, at whatever they do."""

import random
from itertools import count
from pathlib import Path

import pytest
from tests.support.fake_builds import FakeBuilder
from tests.support.fleet_processes import (
    BUILDING,
    DOINGS,
    connected,
    fleet_processes,
    killed_workers,
    with_images,
)
from tests.support.fleets import FleetBuilder, a_build, behave, numbers, run_here, run_on, study_of
from tests.support.scripted import scripted_resources

from ktrial.experiment.errors import TrialsNotMeasured
from ktrial.fleet.fleet import Fleet
from ktrial.model.study import Study, StudyRecord
from ktrial.store.store import Store

KILLS = 200
KILLS_OF_BUILDS = 40
BUILDS = 6
WORKERS = 3
PERTURBATIONS = 12
IMAGE_BYTES = 24 << 20
"""Twelve parts a kernel: a transfer takes long enough to be met."""


def performed(fleet: Fleet, study: Study, store: Store, place: Path) -> tuple[StudyRecord, int]:
    """The study, run until it is whole; how often it had to be begun again.

    With three workers lost a trial counts as the machine's failure: the same command runs it again.
    """
    for again in count():
        try:
            return run_on(
                fleet, study, store, resources=with_images(place, IMAGE_BYTES, scripted_resources)
            ), again
        except TrialsNotMeasured:
            continue
    raise AssertionError


@pytest.mark.nightly
def test_nothing_is_lost_and_nothing_counts_twice_whenever_workers_are_killed(
    place: Path, store: Store, other: Store
) -> None:
    behave(place, "all", seconds=0.02, preparing=0.05, again=0.05)
    studies, begun_again = 0, 0
    with fleet_processes(place) as processes:
        address = processes.address
        with killed_workers(address, place, WORKERS, KILLS, seed=19) as killer, connected(processes) as fleet:
            while not killer.is_done:
                study = study_of(PERTURBATIONS, f"quick-{studies}")
                record, again = performed(fleet, study, store, place)
                studies, begun_again = studies + 1, begun_again + again
                assert len(record.trials) == len({one.planned.key for one in record.trials})
                assert numbers(record) == numbers(run_here(study, other))
    print(f"{studies} studies, {begun_again} begun again; killed in {killer.kills}")
    assert killer.problem is None
    assert killer.count >= KILLS
    assert all(killer.kills[doing] >= KILLS // 10 for doing in DOINGS), killer.kills
    stored = store.studies()
    assert [one.finished for one in stored] == [2 * PERTURBATIONS] * studies
    assert not any(check.damaged for one in stored for check in store.check_trials(one.id))


@pytest.mark.nightly
def test_every_kernel_is_built_whenever_workers_are_killed(place: Path) -> None:
    behave(place, "all", build=0.3)
    source = place / "source"
    source.write_bytes(random.Random(19).randbytes(IMAGE_BYTES))
    rounds = 0
    with fleet_processes(place) as processes:
        address = processes.address
        killing = killed_workers(address, place, WORKERS, KILLS_OF_BUILDS, seed=20, doings=BUILDING)
        with killing as killer, connected(processes) as fleet:
            while not killer.is_done:
                wanted = [a_build(source, option=f"{rounds} {number}") for number in range(BUILDS)]
                had = FleetBuilder(fleet).built(*wanted)
                assert had == {one.name: FakeBuilder.kernel(one) for one in wanted}
                rounds += 1
    print(f"{rounds} times {BUILDS} kernels; killed in {killer.kills}")
    assert killer.problem is None
    assert killer.count >= KILLS_OF_BUILDS
    assert killer.kills["build"] >= KILLS_OF_BUILDS // 4, killer.kills
