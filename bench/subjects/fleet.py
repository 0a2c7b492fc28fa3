"""A fleet of this system: two workers beside two threads, many that are light, and what each trial costs who
hands them out.

Trials sleep, as the fake machine's do, so that it is the fleet that is measured: 0.3 s each beside
threads, and as short as can be where it is asked how many a second go through client, scheduler and store.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.fleet_processes import Workers, connected, fleet_processes
from tests.support.fleets import BEHAVIOUR, a_fleet, behave, run_on, with_all_there
from tests.support.making import a_study
from tests.support.places import ROOT
from tests.support.scripted import ScriptedMachine, scripted_resources

from bench.row import Row, seconds
from ktrial.experiment.session import run
from ktrial.fleet.fleet import Fleet
from ktrial.installation import CACHE
from ktrial.model.study import Study
from ktrial.store.store import Store, open_store

WORKERS = 2
TRIAL_SECONDS = 0.3
LONG, SHORT = 100, 3_000
"""Trials: of 0.3 s, and as short as can be."""
LIGHT, OF_LIGHT = 40, 2_000
"""Workers forked from one process, and trials of 0.3 s."""
LEAST_EFFICIENCY = 0.95
LEAST_A_SECOND = 500


def rows() -> Iterator[Row]:
    """Efficiency beside threads; processor time of a trial."""
    with _fleet() as (fleet, place):
        yield _beside_threads(fleet, place)
        yield _a_trial(fleet, place)
        yield _many_light(place)


@contextmanager
def _fleet() -> Iterator[tuple[Fleet, Path]]:
    """Two workers that have performed a study before."""
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "src")))
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        place = Path(scratch)
        os.environ |= {CACHE: str(place / "cache"), BEHAVIOUR: scratch, "PYTHONPATH": paths}
        behave(place, "all", seconds=TRIAL_SECONDS)
        with a_fleet(WORKERS) as fleet:
            with _store(place, "first") as store:
                run_on(with_all_there(fleet, WORKERS), _study("first", 2 * WORKERS), store)
            yield fleet, place


def _beside_threads(fleet: Fleet, place: Path) -> Row:
    study = _study("long", LONG)
    with _store(place, "here") as store:
        machine = ScriptedMachine(seconds=TRIAL_SECONDS)
        here = seconds(
            lambda: run(study, store=store, machine=machine, resources=scripted_resources(), jobs=WORKERS)
        )
    with _store(place, "fleet") as store:
        there = seconds(lambda: run_on(fleet, study, store))
    what = f"{LONG} trials of {TRIAL_SECONDS:g} s on {WORKERS} workers"
    return Row(what, there, f"{WORKERS} threads", here, least_ratio=LEAST_EFFICIENCY)


def _a_trial(fleet: Fleet, place: Path) -> Row:
    """Client and scheduler are one process here: on two cores they are two, and each has its half of this."""
    for number in range(WORKERS):
        behave(place, number, seconds=0)
    with a_fleet(WORKERS) as quick, _store(place, "short") as store:
        with _store(place, "again") as another:
            run_on(with_all_there(quick, WORKERS), _study("again", 2 * WORKERS), another)
        before = time.process_time()
        run_on(quick, _study("short", SHORT), store)
        took = (time.process_time() - before) / SHORT
    what = f"client, scheduler and store: processor time of one trial of {SHORT:,}"
    return Row(what, took, most_seconds=2 / LEAST_A_SECOND)


def _many_light(place: Path) -> Row:
    """Beside the time that the trials of so many workers sleep, were they handed out in no time."""
    behave(place, "all", seconds=TRIAL_SECONDS)
    with fleet_processes(place) as processes:
        workers = Workers(processes.address, place, LIGHT)
        workers.fill()
        try:
            with connected(processes) as fleet, _store(place, "light") as store:
                with _store(place, "lit") as another:
                    run_on(with_all_there(fleet, LIGHT), _study("lit", 2 * LIGHT), another)
                study = _study("light", OF_LIGHT)
                took = seconds(lambda: run_on(fleet, study, store))
        finally:
            workers.end()
    what = f"{OF_LIGHT:,} trials of {TRIAL_SECONDS:g} s on {LIGHT} light workers"
    return Row(what, took, "the trials alone", OF_LIGHT * TRIAL_SECONDS / LIGHT)


def _study(name: str, trials: int) -> Study:
    return a_study(name, workloads=("fork",), perturbations=trials // 2)


@contextmanager
def _store(place: Path, name: str) -> Iterator[Store]:
    with open_store(place / f"{name}.db") as store:
        yield store
