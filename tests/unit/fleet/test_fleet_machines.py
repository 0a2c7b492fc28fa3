"""A machine is one resource of a fleet: users with different stores, who name one scheduler, take turns."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import dask
import distributed
import pytest
from tests.support.command_line import CommandLine
from tests.support.fleets import FleetBuilder, a_build
from tests.support.leased_system import Heard, OtherSystem
from tests.support.making import a_study
from tests.support.scripted import ScriptedMachine, scripted_resources, wait_until

from ktrial.errors import Interrupted
from ktrial.experiment import machine_lease
from ktrial.experiment.errors import MachineHeld
from ktrial.experiment.session import run
from ktrial.fleet import connection, held_machines
from ktrial.fleet.connection import Connection
from ktrial.fleet.errors import FleetOutOfReach, FleetUsageError
from ktrial.fleet.fleet import Fleet
from ktrial.fleet.held_machines import HeldMachines
from ktrial.fleet.settings import FleetSettings
from ktrial.model.machine import MachineLease
from ktrial.model.study import StudyRecord
from ktrial.model.workload import Mode
from ktrial.process_identity import born
from ktrial.store.store import Store

STUDY = a_study(workloads=("fork",), perturbations=2)
TRIALS = 4
MACHINE = "10.0.0.7:22"
KILLED = """
import os, signal, sys
from tests.support.leased_system import OtherSystem
from tests.unit.fleet.test_fleet_machines import measured
from ktrial.fleet import held_machines
from ktrial.store.store import open_store

held_machines.SILENCE_SECONDS = 0.5

class Killed(OtherSystem):
    def close(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

with open_store(sys.argv[2]) as store:
    measured(sys.argv[1], store, Killed())
"""


class Scheduler:
    """Dask's own, in this process, with no worker. It looks ten times a second for holders that are gone."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch, self._cluster = patch, cast("Any", None)
        self.address = "tcp://127.0.0.1:0"

    def start(self) -> None:
        port = int(self.address.rpartition(":")[2])
        with dask.config.set({"distributed.scheduler.locks.lease-validation-interval": "0.1s"}):
            self._cluster = distributed.LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=0,
                processes=False,
                protocol="tcp",
                host="127.0.0.1",
                scheduler_port=port,
                dashboard_address="127.0.0.1:0",
                silence_logs=False,
            )
        self.address = str(self._cluster.scheduler_address)
        self._patch.setattr(connection, "SCHEDULER_SECONDS", 60.0)

    def stop(self) -> None:
        """Nobody waits long for it then."""
        self._patch.setattr(connection, "SCHEDULER_SECONDS", 0.2)
        if self._cluster is not None:
            self._cluster.close()
        self._cluster = None


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scheduler]:
    monkeypatch.setattr(machine_lease, "ASK_SECONDS", 0.02)
    monkeypatch.setattr(machine_lease, "BEAT_SECONDS", 0.02)
    started = Scheduler(monkeypatch)
    started.start()
    yield started
    started.stop()


def measured(
    address: str, store: Store, machine: OtherSystem, heard: Heard | None = None, **changes: object
) -> StudyRecord:
    """The study, by who has this store and names this fleet; then the machine is given back."""
    settings = replace(FleetSettings(address, patience=5), **changes)  # type: ignore[arg-type]
    with Fleet(settings) as fleet:
        try:
            return run(
                STUDY,
                store=store,
                machine=machine,
                observer=heard,
                resources=scripted_resources(),
                executors=fleet,
            )
        finally:
            machine.close()


class InATrial:
    """A run in another thread that has come into its first trial, and goes on when it is told to."""

    def __init__(self, pool: ThreadPoolExecutor, address: str, store: Store, **changes: object) -> None:
        self.heard, self.let_go = Heard(), threading.Event()
        self.machine = OtherSystem(self.let_go)
        self.ended = pool.submit(measured, address, store, self.machine, self.heard, **changes)
        wait_until(lambda: self.machine.begun.is_set() or self.ended.done())

    def told(self, words: str) -> bool:
        return any(words in text for text in self.heard.notices)

    def go_on(self) -> StudyRecord:
        self.let_go.set()
        return self.ended.result()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as threads:
        yield threads


def asked(key: str, **changes: object) -> MachineLease:
    plain = {
        "machine": MACHINE, "called": "lab1", "key": key, "host": "elsewhere", "user": key, "process": 4711,
        "born": "boot 12", "study": "quick", "since": datetime(2026, 1, 1, tzinfo=UTC),
        "heard": datetime(2026, 1, 1, tzinfo=UTC), "silence_seconds": 120.0,
    }  # fmt: skip
    return MachineLease.model_validate(plain | changes)


class Holders:
    """Two runs at one scheduler, and what they are told."""

    def __init__(self, address: str, **changes: object) -> None:
        self.told: list[str] = []
        settings = replace(FleetSettings(address, patience=5), **changes)  # type: ignore[arg-type]
        self.ada, self.bob = (HeldMachines(settings, self.told.append) for _ in range(2))

    def close(self) -> None:
        self.ada.close()
        self.bob.close()


@pytest.fixture
def holders(scheduler: Scheduler) -> Iterator[Holders]:
    with closing(Holders(scheduler.address)) as two:
        yield two


def test_an_idle_worker_neither_samples_itself_nor_watches_its_loop() -> None:
    connection.imported()
    assert dask.config.get("distributed.worker.profile.enabled") is False
    assert dask.utils.parse_timedelta(dask.config.get("distributed.admin.tick.interval")) >= 1


def test_users_of_different_stores_take_turns(
    scheduler: Scheduler, store: Store, other: Store, pool: ThreadPoolExecutor
) -> None:
    first, second = InATrial(pool, scheduler.address, store), OtherSystem()
    who = r"lab1 \(10.0.0.7:22\) is held by \S+ \(process \d+\) since .* UTC, for study "
    with pytest.raises(MachineHeld, match=rf"{who}.*, in fleet {scheduler.address} \(last heard"):
        measured(scheduler.address, other, second)
    assert (second.checked, second.programs) == (0, []), "it was asked for nothing"
    heard = Heard(lambda _text: first.let_go.set())
    with machine_lease.waiting(600):
        record = measured(scheduler.address, other, OtherSystem(), heard)
    assert (len(record.trials), len(first.go_on().trials)) == (TRIALS, TRIALS)
    assert "Waiting for it" in heard.notices[0]
    assert heard.notices[1].startswith("the machine is free, after ")


def test_a_fleet_says_who_holds_which_machine(
    scheduler: Scheduler,
    store: Store,
    pool: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ktrial = CommandLine(monkeypatch, capsys)
    first = InATrial(pool, scheduler.address, store)
    said = ktrial("fleet", "status", scheduler.address).output
    assert all(word in said for word in ("lab1", "10.0.0.7:22", str(os.getpid()), STUDY.name))
    (told,) = json.loads(ktrial("fleet", "status", scheduler.address, "--json").output)["machines"]
    assert (told["called"], told["is_gone"], told["process"]) == ("lab1", False, os.getpid())
    first.go_on()
    assert json.loads(ktrial("fleet", "status", scheduler.address, "--json").output)["machines"] == []


def test_what_a_holder_says_of_itself_is_text_and_no_more(
    scheduler: Scheduler,
    holders: Holders,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    holders.ada.take_machine(asked("ada", user="\x1b[2Jada", study="red\nalert", called="\x1blab1"))
    said = CommandLine(monkeypatch, capsys)("fleet", "status", scheduler.address).output
    with pytest.raises(MachineHeld) as raised:
        measured(scheduler.address, store, OtherSystem())
    for text in (said, raised.value.message):
        assert "\x1b" not in text
        assert "ada@elsewhere" in text
    assert "\n" not in raised.value.message


def test_kernels_of_a_study_elsewhere_wait_for_no_worker(
    scheduler: Scheduler, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of a fleet do that performs the trials."""
    with Fleet(FleetSettings(scheduler.address)) as fleet:
        assert fleet.where_leased(OtherSystem(), print)
        builder = FleetBuilder(fleet)
        wanted = a_build(place / "source")
        builder.built(wanted)
    assert builder.here.built == [wanted]


def test_a_scheduler_that_goes_away_is_told_and_the_run_goes_on(
    scheduler: Scheduler, store: Store, pool: ThreadPoolExecutor
) -> None:
    first = InATrial(pool, scheduler.address, store)
    scheduler.stop()
    wait_until(lambda: first.told("is not reached"))
    assert first.told("The run goes on")
    assert [one.lease.called for one in store.machine_leases()] == ["lab1"], "the store says whose it is"
    assert len(first.go_on().trials) == TRIALS
    assert len([text for text in first.heard.notices if "is not reached" in text]) == 1


def test_a_scheduler_that_comes_back_has_the_machine_as_the_run_s_again(
    scheduler: Scheduler, holders: Holders
) -> None:
    lease = holders.ada.take_machine(asked("ada")).lease
    scheduler.stop()
    assert holders.ada.renew_machine(lease) is None
    assert holders.ada.renew_machine(lease) is None
    scheduler.start()
    assert holders.ada.renew_machine(lease) is True
    away, back = holders.told
    assert f"Fleet {scheduler.address} is not reached" in away
    assert f"{scheduler.address} is there again, and has machine lab1 (10.0.0.7:22) as this run's" in back
    assert not holders.bob.take_machine(asked("bob")).is_taken


def test_a_run_goes_on_whose_machine_somebody_took_at_a_scheduler_that_was_away(
    scheduler: Scheduler, holders: Holders
) -> None:
    lease = holders.ada.take_machine(asked("ada")).lease
    scheduler.stop()
    assert holders.ada.renew_machine(lease) is None
    scheduler.start()
    theirs = holders.bob.take_machine(asked("bob")).lease
    assert holders.ada.renew_machine(lease) is None
    assert "as bob@elsewhere (process 4711)'s: this run goes on" in holders.told[-1]
    assert not holders.ada.give_machine_back(lease)
    assert holders.bob.renew_machine(theirs)


def test_a_scheduler_that_was_exchanged_between_two_words_is_told_whose_the_machine_is(
    scheduler: Scheduler, holders: Holders
) -> None:
    lease = holders.ada.take_machine(asked("ada")).lease
    scheduler.stop()
    scheduler.start()
    wait_until(lambda: bool(holders.ada.renew_machine(lease)))
    assert not holders.bob.take_machine(asked("bob")).is_taken


def test_a_holder_that_the_scheduler_has_not_heard_for_long_has_lost_the_machine(
    scheduler: Scheduler, holders: Holders
) -> None:
    lease = holders.ada.take_machine(asked("ada")).lease
    there = Connection(FleetSettings(scheduler.address), scheduler.address)
    with pytest.warns(RuntimeWarning, match="unreleased leases"):
        there.answer("semaphore_close", name=f"ktrial machine {MACHINE}")
    there.close()
    assert holders.bob.take_machine(asked("bob")).is_taken
    assert holders.ada.renew_machine(lease) is False


def test_a_holder_that_is_silent_is_gone_after_a_while(
    holders: Holders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_machines, "SILENCE_SECONDS", 0.2)
    assert holders.ada.take_machine(asked("ada")).is_taken
    assert not holders.bob.take_machine(asked("bob")).is_taken
    holders.ada.close()
    while not (taken := holders.bob.take_machine(asked("bob"))).is_taken:
        time.sleep(0.02)
    assert taken.before is not None
    assert taken.before.user == "ada"


def test_a_holder_that_was_killed_on_this_host_is_waited_for_until_the_scheduler_notices(
    holders: Holders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_machines, "SILENCE_SECONDS", 0.2)
    here = {"host": socket.gethostname(), "born": f"{born(os.getpid()).split()[0]} 1"}
    assert holders.ada.take_machine(asked("ada", **here)).is_taken
    holders.ada.close()
    taken = holders.bob.take_machine(asked("bob"))
    assert taken.is_taken
    assert taken.before is not None
    assert taken.before.user == "ada"
    (told,) = holders.told
    assert "who held it in fleet" in told


def test_a_fleet_that_is_not_there_is_an_error_where_it_was_asked_for(
    scheduler: Scheduler, store: Store
) -> None:
    scheduler.stop()
    heard = Heard()
    with pytest.raises(FleetOutOfReach):
        measured(scheduler.address, store, OtherSystem(), heard, patience=0.5)
    (waits,) = heard.notices
    assert waits.endswith("does not answer: waiting for it, 0.5 s at most")
    heard = Heard()
    assert len(measured(scheduler.address, store, OtherSystem(), heard, asked=False).trials) == TRIALS
    (told,) = heard.notices
    assert "is not reached" in told
    assert "The run goes on" in told


def test_ctrl_c_ends_the_wait_for_a_scheduler(
    scheduler: Scheduler, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While no client of Dask's is there, which would delay the end by minutes."""
    scheduler.stop()
    made: list[object] = []
    monkeypatch.setattr(distributed, "Client", lambda *_, **__: made.append(1))
    heard = Heard(lambda _text: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Interrupted, match="nothing had begun"):
        measured(scheduler.address, store, OtherSystem(), heard, patience=600)
    assert not made


def test_workers_of_this_system_have_no_part_in_a_machine_elsewhere(store: Store) -> None:
    machine = OtherSystem()
    with pytest.raises(FleetUsageError, match="measures another system, in real time"):
        measured("local:2", store, machine)
    assert machine.checked == 0
    assert len(measured("local:2", store, machine, asked=False).trials) == TRIALS


def test_what_measures_this_system_is_in_no_fleet(store: Store) -> None:
    machine = ScriptedMachine(mode=Mode.TIMED)
    with (
        pytest.raises(FleetUsageError, match="measures this system, in real time"),
        Fleet(FleetSettings("tcp://127.0.0.1:1")) as fleet,
    ):
        run(STUDY, store=store, machine=machine, resources=scripted_resources(), executors=fleet)
    assert machine.checked == 0


@pytest.mark.nightly
def test_the_machine_of_a_client_that_was_killed_is_taken_over(
    scheduler: Scheduler, store: Store, place: Path
) -> None:
    there = str(place / "theirs.db")
    killed = subprocess.run([sys.executable, "-c", KILLED, scheduler.address, there], check=False)
    assert killed.returncode == -signal.SIGKILL
    heard = Heard()
    assert len(measured(scheduler.address, store, OtherSystem(), heard).trials) == TRIALS
    waits, over = heard.notices
    assert "is gone; its scheduler notices that" in waits
    assert over.endswith("taken over")
