"""Running a study: signals, a store that was deleted, SIGKILL at any instant."""

import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.making import a_study
from tests.support.runs_of_tests import at_night
from tests.support.scripted import ScriptedMachine, number_of, scripted_resources, wait_until
from tests.support.sessions import Watching, ran

from ktrial.errors import Interrupted
from ktrial.experiment.session import run
from ktrial.kernels import Progress
from ktrial.machines.errors import MachineStopped
from ktrial.model.kernel import Kernel
from ktrial.model.machine import Boot
from ktrial.model.references import KernelRef
from ktrial.model.trial import Outcome, Trial
from ktrial.store.errors import StoreGone
from ktrial.store.store import Store, open_store
from ktrial.target import Run, StepResult


# Interruption
def _after(store: Store, trials: int, act: Callable[[], None]) -> threading.Thread:
    """Do something once so many trials are stored."""

    def wait_and_act() -> None:
        wait_until(lambda: any(study.finished >= trials for study in store.studies()))
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    return thread


@pytest.mark.parametrize("number", [signal.SIGINT, at_night(signal.SIGTERM), at_night(signal.SIGHUP)])
def test_a_signal_ends_the_run_and_the_next_one_goes_on(store: Store, number: signal.Signals) -> None:
    study = a_study(perturbations=50)
    machine, watching = ScriptedMachine(seconds=0.01), Watching()
    thread = _after(store, 3, lambda: os.kill(os.getpid(), number))
    before = signal.getsignal(number)
    with pytest.raises(Interrupted, match="of 100 trials are stored") as caught:
        ran(store, machine, study, observer=watching)
    thread.join()
    assert caught.value.exit_code == 130
    assert "run the same command again" in caught.value.advice
    assert machine.stopped.is_set()
    assert watching.told[-1][0] in {"stopping", "finished"}
    assert signal.getsignal(number) is before
    stored = store.trials(1)
    assert 3 <= len(stored) < 100
    assert {trial.outcome for trial in stored} == {Outcome.COMPLETED}
    machine = ScriptedMachine()
    record = ran(store, machine, study)
    assert len(record.trials) == 100
    # Of the trials that were under way, one a CPU, the first of two workloads may have ended: it is kept.
    kept = 2 * (100 - len(stored)) - len(machine.programs)
    assert 0 <= kept <= (os.cpu_count() or 1)


def test_a_run_is_stopped_even_where_nobody_can_be_told_so(store: Store) -> None:
    class OnAClosedTerminal(Watching):
        def stopping(self) -> None:
            raise OSError(errno.EIO, "Input/output error")

    machine = ScriptedMachine(seconds=0.01)
    thread = _after(store, 3, lambda: os.kill(os.getpid(), signal.SIGHUP))
    with pytest.raises(OSError, match="Input/output error"):
        ran(store, machine, a_study(perturbations=50), observer=OnAClosedTerminal())
    thread.join()
    assert machine.stopped.is_set()


def test_a_signal_while_kernels_are_fetched_ends_the_run(store: Store) -> None:
    resources = scripted_resources()

    def obtain(_kernel: KernelRef, _progress: Progress) -> Kernel:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
        raise AssertionError("the signal did not arrive")

    with pytest.raises(Interrupted, match="0 of 6 trials are stored"):
        ran(store, ScriptedMachine(), resources=replace(resources, obtain=obtain))


def test_a_store_that_was_deleted_is_not_said_to_have_anything(store: Store, tmp_path: Path) -> None:
    def answer(boot: Boot, run: Run) -> StepResult:
        for file in tmp_path.glob("trials.db*"):
            file.unlink()
        os.kill(os.getpid(), signal.SIGINT)
        machine.stopped.wait(300)
        raise MachineStopped(machine="scripted")

    machine = ScriptedMachine(answer)
    with pytest.raises(Interrupted, match=r"no trial is known to be stored.*is gone") as caught:
        ran(store, machine, jobs=1)
    assert "nothing of them is lost" not in caught.value.message


def test_a_signal_that_does_not_wake_the_waiting_thread_ends_the_run(store: Store) -> None:
    """As one does that arrives just before it begins to wait: the handler is due, and nothing calls it."""

    def answer(boot: Boot, run: Run) -> StepResult:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        heard.append(machine.stopped.wait(300))
        raise MachineStopped(machine="scripted")

    heard: list[bool] = []
    machine = ScriptedMachine(answer)
    with pytest.raises(Interrupted, match="0 of 6 trials are stored"):
        ran(store, machine, jobs=1)
    assert heard == [True], "the run went on"


def test_a_run_goes_not_on_into_a_store_that_was_deleted(store: Store, tmp_path: Path) -> None:
    def answer(boot: Boot, run: Run) -> StepResult:
        (tmp_path / "trials.db").unlink(missing_ok=True)
        return number_of(boot, run)

    machine = ScriptedMachine(answer)
    with pytest.raises(StoreGone, match="deleted"):
        ran(store, machine, jobs=1)
    assert len(machine.programs) < 4, "trials that nobody keeps are not run"


def test_a_run_in_another_thread_leaves_signals_alone(store: Store) -> None:
    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=ran, args=(store, ScriptedMachine()))
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGINT) is before
    assert store.studies()[0].finished == 6


SCRIPT = """
import sys
from ktrial.experiment.session import run
from ktrial.store.store import open_store
from tests.support.making import a_study
from tests.support.scripted import ScriptedMachine, number_of, scripted_resources

log = open(sys.argv[2], "a")

def answer(boot, run):
    log.write(f"{boot.kernel.name} {run.argv[1]} {run.argv[0]}\\n")
    log.flush()
    return number_of(boot, run)

with open_store(sys.argv[1]) as store:
    print("ready", flush=True)
    run(a_study(perturbations=100), store=store, machine=ScriptedMachine(answer, seconds=0.002),
        resources=scripted_resources())
"""


def _wait_for_lines(log: Path, lines: int, process: subprocess.Popen[str]) -> None:
    wait_until(lambda: log.read_text().count("\n") >= lines or process.poll() is not None)


@pytest.mark.nightly
def test_sigkill_at_any_instant_loses_at_most_the_trials_under_way(tmp_path: Path) -> None:
    draw = random.Random(7)
    file, log = tmp_path / "trials.db", tmp_path / "log"
    command = [sys.executable, "-c", SCRIPT, str(file), str(log)]
    stored_before: dict[str, Trial] = {}
    killed_in_the_middle = 0
    for _ in range(20):
        log.write_text("")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        _wait_for_lines(log, draw.randrange(16), process)
        time.sleep(draw.random() * 0.01)
        process.kill()
        process.communicate()
        with open_store(file) as store:
            stored = {
                trial.planned.key: trial for study in store.studies() for trial in store.trials(study.id)
            }
        begun = {tuple(line.split()[:2]) for line in log.read_text().splitlines()}
        finished = {_asked(trial) for trial in stored_before.values()}
        assert not begun & finished, "a finished trial was run again"
        assert {key: stored[key] for key in stored_before} == stored_before, "a stored trial changed"
        at_once = len(os.sched_getaffinity(0))
        assert len(begun) - (len(stored) - len(stored_before)) <= at_once
        assert all(len(trial.samples) == 2 for trial in stored.values()), "half a trial was stored"
        killed_in_the_middle += 0 < len(stored) < 200
        stored_before = stored
    assert killed_in_the_middle >= 15
    subprocess.run(command, check=True, capture_output=True)
    with open_store(file) as store, open_store(tmp_path / "whole.db") as second:
        resumed = store.trials(1)
        complete = run(
            a_study(perturbations=100),
            store=second,
            machine=ScriptedMachine(),
            resources=scripted_resources(),
        )
    assert [(trial.planned, trial.samples) for trial in resumed] == [
        (trial.planned, trial.samples) for trial in complete.trials
    ]


def _asked(trial: Trial) -> tuple[str, str]:
    return str(trial.planned.treatment.levels["kernel"]), str(trial.planned.perturbation.number)
