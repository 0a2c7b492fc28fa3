"""What failed for the host's sake is told, never stored, never an answer, and run again."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.making import a_study
from tests.support.scripted import ScriptedMachine, ends, number_of, scripted_resources

from ktrial.experiment.errors import TrialsNotMeasured
from ktrial.experiment.session import run
from ktrial.machines.errors import QemuGone
from ktrial.model.machine import Boot
from ktrial.model.study import Study, Timing, plan
from ktrial.model.trial import Outcome
from ktrial.model.workload import Mode
from ktrial.store.store import Store, open_store
from ktrial.target import Run, StepResult

KILLED = "QEMU was ended by SIGKILL: it said nothing"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trials.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with open_store(path) as opened:
        yield opened


def failing(times: int, error: Exception) -> Callable[[Boot, Run], StepResult]:
    """The machine fails so many times with 6.12; another host's memory was full, say."""
    left = [times]

    def answer(boot: Boot, run: Run) -> StepResult:
        if boot.kernel.name == "debian:6.12" and left[0]:
            left[0] -= 1
            raise error
        return number_of(boot, run)

    return answer


def go(store: Store, study: Study, times: int, error: Exception, mode: Mode = Mode.EXACT_CLOCK) -> None:
    machine = ScriptedMachine(failing(times, error), mode=mode)
    run(study, store=store, machine=machine, resources=scripted_resources(), jobs=1)


@pytest.mark.parametrize(
    "error", [ends(Outcome.MACHINE_FAILED, KILLED), QemuGone(machine="exact", command="cont")]
)
def test_a_failure_of_the_moment_is_run_again_at_once_and_leaves_no_trace(
    store: Store, error: Exception
) -> None:
    study = a_study(workloads=("fork",))
    go(store, study, 1, error)
    trials = store.trials(1)
    assert len(trials) == len(plan(study).trials)
    assert {trial.outcome for trial in trials} == {Outcome.COMPLETED}


def test_one_that_lasts_is_told_with_its_treatment_and_the_next_run_measures_it(store: Store) -> None:
    study = a_study(workloads=("fork",), perturbations=2)
    with pytest.raises(TrialsNotMeasured) as caught:
        go(store, study, 10**6, ends(Outcome.MACHINE_FAILED, KILLED))
    assert "2 of 4 trials were not measured, since the machine failed" in caught.value.message
    assert "the host's fault" in caught.value.message
    assert "debian:6.12" in caught.value.message
    assert KILLED in caught.value.message
    assert "2 trials: ktrial show" in caught.value.advice
    (stored,) = store.studies()
    assert (stored.finished, stored.failed) == (2, 0)
    assert {trial.outcome for trial in store.trials(stored.id)} == {Outcome.COMPLETED}
    go(store, study, 0, KeyError())
    assert len(store.trials(stored.id)) == 4


def test_a_timed_study_ends_there_and_goes_on_where_it_was(store: Store) -> None:
    study = a_study(workloads=("fork",), timing=Timing(blocks=8))
    with pytest.raises(TrialsNotMeasured):
        go(store, study, 10**6, ends(Outcome.MACHINE_FAILED, KILLED), Mode.TIMED)
    assert {trial.outcome for trial in store.trials(1)} == {Outcome.COMPLETED}
    go(store, study, 0, KeyError(), Mode.TIMED)
