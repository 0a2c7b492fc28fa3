"""A run has a real machine for itself: of one that somebody holds it asks nothing."""

import json
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.leased_system import Heard, OtherSystem
from tests.support.making import a_study
from tests.support.scripted import scripted_resources, wait_until

from ktrial import process_identity
from ktrial.errors import Interrupted
from ktrial.experiment import machine_lease
from ktrial.experiment.errors import MachineHeld
from ktrial.experiment.session import run
from ktrial.format.number_format import duration
from ktrial.machines.errors import MachineError, MachineInUse
from ktrial.machines.ssh import resolved
from ktrial.store.store import Store, open_store

STUDY = a_study(workloads=("fork",), perturbations=2)
TRIALS = 4


class Locked(OtherSystem):
    """Somebody's whose store is another one, as often as it is asked."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self._times = times

    def check(self) -> None:
        if self._times:
            self._times -= 1
            raise MachineInUse(machine="ssh", host="lab1", who="")
        super().check()


def test_a_machine_that_somebody_holds_is_asked_for_nothing(store: Store) -> None:
    first, second = OtherSystem(), OtherSystem()
    run(STUDY, store=store, machine=first, resources=scripted_resources())
    (held,) = store.machine_leases()
    assert (held.lease.called, held.lease.study) == ("lab1", STUDY.name)
    second_study = STUDY.model_copy(update={"name": "other"})
    with pytest.raises(
        MachineHeld, match=r"lab1 \(10.0.0.7:22\) is held by \S+ \(process \d+\) since .* for study"
    ):
        run(second_study, store=store, machine=second, resources=scripted_resources())
    assert (second.checked, second.programs) == (0, [])
    run(second_study, store=store, machine=first, resources=scripted_resources())  # the same holder goes on
    first.close()
    assert store.machine_leases() == ()
    run(
        STUDY.model_copy(update={"name": "third"}),
        store=store,
        machine=second,
        resources=scripted_resources(),
    )
    second.close()


def test_who_may_wait_has_the_machine_when_another_process_has_ended(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_lease, "ASK_SECONDS", 0.01)
    ours_waits = tmp_path / "waits"
    child = os.fork()
    if not child:
        machine = OtherSystem()
        with open_store(tmp_path / "trials.db") as store_here:
            run(STUDY, store=store_here, machine=machine, resources=scripted_resources())
            wait_until(ours_waits.exists)
            machine.close()
        os._exit(0)
    wait_until(lambda: bool(store.machine_leases()))
    machine, heard = OtherSystem(), Heard(lambda _text: ours_waits.touch())
    with machine_lease.waiting(600):
        run(
            STUDY.model_copy(update={"name": "other"}),
            store=store,
            machine=machine,
            observer=heard,
            resources=scripted_resources(),
        )
    assert os.waitpid(child, 0)[1] == 0
    first, last = heard.notices
    assert f"lab1 (10.0.0.7:22) is held by {process_identity.user()}@" in first
    assert f"process {child}" in first
    assert first.endswith(f"Waiting for it, {duration(600)} at most")
    assert last.startswith("the machine is free, after ")
    assert [lease.lease.study for lease in store.machine_leases()] == ["other"]
    machine.close()


def test_a_machine_that_does_not_become_free_in_time_is_an_error(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_lease, "ASK_SECONDS", 0.01)
    holder, heard = OtherSystem(), Heard()
    run(STUDY, store=store, machine=holder, resources=scripted_resources())
    with machine_lease.waiting(0.05), pytest.raises(MachineHeld, match="lab1"):
        run(STUDY, store=store, machine=OtherSystem(), observer=heard, resources=scripted_resources())
    assert len(heard.notices) == 1, "once for each holder"
    holder.close()


def test_ctrl_c_ends_the_wait_and_leaves_nothing(store: Store) -> None:
    holder, waits = OtherSystem(), OtherSystem()
    run(STUDY, store=store, machine=holder, resources=scripted_resources())
    (held,) = store.machine_leases()
    heard = Heard(lambda _text: signal.raise_signal(signal.SIGINT))
    with machine_lease.waiting(600), pytest.raises(Interrupted, match="nothing had begun"):
        run(STUDY, store=store, machine=waits, observer=heard, resources=scripted_resources())
    assert [lease.lease.key for lease in store.machine_leases()] == [held.lease.key]
    assert (waits.checked, waits.leases) == (0, {})
    holder.close()


def test_a_machine_that_is_locked_itself_is_waited_for_too(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its user has another store."""
    monkeypatch.setattr(machine_lease, "ASK_SECONDS", 0.01)
    machine, heard = Locked(times=2), Heard()
    with machine_lease.waiting(600):
        run(STUDY, store=store, machine=machine, observer=heard, resources=scripted_resources())
    assert machine.checked == 1
    assert "lab1 is in use by another ktrial" in heard.notices[0]
    machine.close()
    with pytest.raises(MachineInUse):
        run(
            STUDY.model_copy(update={"name": "other"}),
            store=store,
            machine=Locked(times=1),
            resources=scripted_resources(),
        )


def test_the_option_takes_a_time_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ktrial = CommandLine(monkeypatch, capsys)
    assert "--wait: 1x is not a time" in ktrial("run", "quick", "--wait", "1x").messages


def test_the_machine_of_a_run_that_was_killed_is_taken_over_with_a_word(store: Store, tmp_path: Path) -> None:
    child = os.fork()
    if not child:
        with open_store(tmp_path / "trials.db") as store_here:
            run(STUDY, store=store_here, machine=OtherSystem(), resources=scripted_resources())
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    (dead,) = store.machine_leases()
    assert dead.is_over
    machine, heard = OtherSystem(), Heard()
    run(STUDY, store=store, machine=machine, observer=heard, resources=scripted_resources())
    (entry,) = heard.notices
    assert "lab1 (10.0.0.7:22) was held by" in entry
    assert f"process {dead.lease.process}" in entry
    assert "who is gone" in entry
    machine.close()


def test_a_run_whose_machine_was_taken_over_ends_and_stores_nothing_more(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_lease, "BEAT_SECONDS", 0.01)
    go_on = threading.Event()
    machine = OtherSystem(go_on)
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(run, STUDY, store=store, machine=machine, jobs=1, resources=scripted_resources())
        wait_until(machine.begun.is_set)
        (held,) = store.machine_leases()
        store.give_machine_back(held.lease)
        assert store.take_machine(held.lease.model_copy(update={"key": "another", "user": "bob"})).is_taken
        wait_until(machine.stopped.is_set)
        go_on.set()
        with pytest.raises(match="lab1"):
            ended.result()
    assert store.finished_keys(1) == set()
    machine.close()
    assert [lease.lease.user for lease in store.machine_leases()] == ["bob"]


def test_a_loss_that_is_seen_only_when_a_trial_ends_ends_the_run(store: Store) -> None:
    """Before the event that tells it: who performs that trial waits for it to be stored, and is waited
    for."""
    machine = OtherSystem(threading.Event())

    def lose() -> None:
        machine.begun.wait()
        machine.leases[store.name].is_lost = True  # type: ignore[misc]
        machine.go_on()

    thread = threading.Thread(target=lose)
    thread.start()
    with pytest.raises(MachineError, match="held by somebody else by now"):
        run(STUDY, store=store, machine=machine, jobs=1, resources=scripted_resources())
    thread.join()
    assert store.finished_keys(1) == set()
    machine.close()


def test_a_machine_is_told_apart_by_where_its_name_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    config.write_text(
        "Host lab1 mine\n HostName 10.0.0.7\n Port 2222\n"
        "Host behind\n HostName 10.0.0.7\n Port 2222\n ProxyJump gate\n"
        "Host odd\n HostName 10.0.0.7\n ProxyCommand nc --password secret %h %p\n"
        "Host local\n HostName 127.0.0.1\n"
    )
    monkeypatch.setenv("KTRIAL_SSH_CONFIG", str(config))
    assert resolved("root@lab1") == resolved("mine") == "10.0.0.7:2222"
    assert resolved("behind") == "10.0.0.7:2222 by gate"
    assert resolved("odd").startswith("10.0.0.7:22 by a command (")
    assert "secret" not in resolved("odd")
    assert resolved("local").startswith("127.0.0.1:22 of ")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert resolved("ada@lab1") == "lab1"


def test_a_command_says_who_holds_which_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ktrial = CommandLine(monkeypatch, capsys)
    file = tmp_path / "own.db"
    with open_store(file) as store:
        assert "nobody holds a machine" in ktrial("fleet", "machines", "--store", file).messages
        machine = OtherSystem()
        run(STUDY, store=store, machine=machine, resources=scripted_resources())
        listed = ktrial("fleet", "machines", "--store", file).output
        assert all(word in listed for word in ("lab1", "10.0.0.7:22", str(os.getpid()), "ago"))
        (entry,) = json.loads(ktrial("fleet", "machines", "--store", file, "--json").output)
        assert (entry["called"], entry["is_gone"], entry["process"]) == ("lab1", False, os.getpid())
        machine.close()
