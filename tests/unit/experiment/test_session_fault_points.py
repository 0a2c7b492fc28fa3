"""SIGKILL at every stage of a run: what ended is in the store, whole, and the next run does the rest."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import pytest
from tests.support.fault_points import declared, each_kill_at
from tests.support.killing import directory_in_memory
from tests.support.making import a_study
from tests.support.scripted import ScriptedMachine, number_of, scripted_resources

from ktrial.errors import Interrupted
from ktrial.experiment.session import run
from ktrial.model.machine import Boot
from ktrial.model.study import StudyRecord
from ktrial.model.trial import Outcome, Trial
from ktrial.store.store import open_store
from ktrial.target import Run, StepResult

STUDY = a_study(workloads=("fork",), perturbations=3)
TRIALS = 6
AT_ONCE = 2
CTRL_C_IN = 3
"""The program that is running when Ctrl-C comes."""


@dataclass(frozen=True)
class Runs:
    """Of one study, in one directory."""

    directory: Path

    @property
    def store(self) -> Path:
        return self.directory / "ktrial.db"

    @property
    def begun(self) -> list[str]:
        """Every program that was run, in the order in which they began."""
        log = self.directory / "begun"
        return log.read_text().splitlines() if log.exists() else []

    def interrupted_and_resumed(self) -> None:
        """What the child does: the study up to a Ctrl-C, and then the rest of it."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with suppress(Interrupted):
            self.run(ctrl_c=True)
        self.run()

    def run(self, *, ctrl_c: bool = False) -> StudyRecord:
        one_by_one = Lock()

        def answer(boot: Boot, program: Run) -> StepResult:
            with one_by_one:  # or two of them see each other's line, and nobody is the one that interrupts
                with (self.directory / "begun").open("a") as log:
                    log.write(f"{boot.kernel.name} {program.argv[1]}\n")
                interrupts = ctrl_c and len(self.begun) == CTRL_C_IN
            if interrupts:
                os.kill(os.getpid(), signal.SIGINT)
                # This one ends nevertheless, and after the run was told to stop.
                machine.stopped.wait()
            return number_of(boot, program)

        machine = ScriptedMachine(answer)
        with open_store(self.store) as store:
            return run(STUDY, store=store, machine=machine, resources=scripted_resources(), jobs=AT_ONCE)

    def stored(self) -> dict[str, Trial]:
        with open_store(self.store) as store:
            trials = [trial for study in store.studies() for trial in store.trials(study.id)]
        return {
            f"{trial.planned.treatment.levels['kernel']} {trial.planned.perturbation.number}": trial
            for trial in trials
        }


@pytest.fixture
def runs() -> Iterator[Runs]:
    with directory_in_memory() as directory:
        yield Runs(directory)


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Trial]:
    with directory_in_memory() as directory:
        Runs(directory).run()
        return Runs(directory).stored()


@pytest.mark.parametrize("name", declared("experiment"))
def test_what_ended_is_stored_and_the_rest_is_run_after_a_kill_at(
    name: str, runs: Runs, undisturbed: dict[str, Trial]
) -> None:
    for kill in each_kill_at(name, runs.interrupted_and_resumed):
        left, begun = runs.stored(), runs.begun
        assert len(begun) - len(left) <= AT_ONCE, f"{kill}: more was lost than was under way"
        assert all(trial.outcome is Outcome.COMPLETED for trial in left.values()), kill
        runs.run()
        again = runs.begun[len(begun) :]
        assert sorted(again) == sorted(undisturbed.keys() - left.keys()), f"{kill}: not just the rest was run"
        stored_after = runs.stored()
        assert {key: stored_after[key] for key in left} == left, f"{kill}: a stored trial changed"
        assert measured(stored_after) == measured(undisturbed), kill
        for file in runs.directory.iterdir():
            file.unlink()
    assert measured(runs.stored()) == measured(undisturbed)


def measured(trials: dict[str, Trial]) -> dict[str, object]:
    """Without what the host's clock says about them."""
    assert len(trials) == TRIALS
    return {key: (trial.planned, trial.samples, trial.counters) for key, trial in trials.items()}
