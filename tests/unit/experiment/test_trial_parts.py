"""Whoever is killed loses the workload under way: the others of its trial are kept until that is stored."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.making import a_study
from tests.support.scripted import ScriptedMachine, number_of, scripted_resources
from tests.support.sessions import ran

from ktrial.experiment.session import run
from ktrial.installation import CACHE
from ktrial.model.machine import Boot
from ktrial.model.study import Study
from ktrial.model.trial import Trial
from ktrial.model.workload import Mode
from ktrial.store.store import open_store
from ktrial.target import Run, StepResult

STUDY = a_study(workloads=("first", "second", "third"), kernels=("debian:6.1",), perturbations=1)
WORKLOADS = ["first", "second", "third"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def killed_in(workload: str, place: Path, study: Study = STUDY, mode: Mode = Mode.EXACT_CLOCK) -> None:
    """A process runs the study, and is killed while it runs this workload."""
    child = os.fork()
    if not child:

        def answer(boot: Boot, program: Run) -> StepResult:
            if program.argv[0] == workload:
                os.kill(os.getpid(), signal.SIGKILL)
            return number_of(boot, program)

        try:
            with open_store(place) as store:
                run(
                    study,
                    store=store,
                    machine=ScriptedMachine(answer, mode=mode),
                    resources=scripted_resources(),
                )
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def gone_on(place: Path, study: Study = STUDY, **machine: object) -> tuple[list[str], Trial]:
    """What the next run runs, and the trial that it stores."""
    again = ScriptedMachine(**machine)  # type: ignore[arg-type]
    with open_store(place) as store:
        record = ran(store, again, study)
    return [
        step.argv[0] for _, steps in again.programs for step in steps if isinstance(step, Run)
    ], record.trials[0]


def test_the_next_run_does_what_is_left_and_the_numbers_are_the_same(tmp_path: Path) -> None:
    killed_in("third", tmp_path / "killed.db")
    programs, trial = gone_on(tmp_path / "killed.db")
    every, whole = gone_on(tmp_path / "whole.db")
    assert (programs, every) == (["third"], WORKLOADS)
    assert (trial.samples, trial.counters) == (whole.samples, whole.counters)
    assert (trial.settings, trial.warnings, trial.outcome) == (whole.settings, whole.warnings, whole.outcome)
    assert trial.provenance == whole.provenance


def test_nothing_is_kept_of_a_trial_that_is_stored(tmp_path: Path, own_cache: Path) -> None:
    killed_in("second", tmp_path / "a.db")
    assert list(own_cache.glob("parts/*/*"))
    gone_on(tmp_path / "a.db")
    assert not list(own_cache.glob("parts/*"))


@pytest.mark.parametrize(
    "damage",
    [lambda text: text[:-9], lambda text: text.replace(b'"value":1', b'"value":2'), lambda _: b""],
    ids=["cut short", "changed", "empty"],
)
def test_what_was_damaged_is_measured_again(
    tmp_path: Path, own_cache: Path, damage: Callable[[bytes], bytes]
) -> None:
    killed_in("third", tmp_path / "a.db")
    for part in own_cache.glob("parts/*/*"):
        part.write_bytes(damage(part.read_bytes()))
    assert gone_on(tmp_path / "a.db")[0] == WORKLOADS


def test_on_another_machine_all_is_measured_again(tmp_path: Path) -> None:
    killed_in("third", tmp_path / "a.db")
    assert gone_on(tmp_path / "a.db", qemu="10.0")[0] == WORKLOADS


def test_where_load_changes_numbers_a_trial_is_measured_in_one_go(tmp_path: Path) -> None:
    killed_in("third", tmp_path / "a.db", mode=Mode.TIMED)
    assert gone_on(tmp_path / "a.db", mode=Mode.TIMED)[0] == WORKLOADS


def test_another_study_takes_nothing(tmp_path: Path) -> None:
    killed_in("third", tmp_path / "a.db")
    assert gone_on(tmp_path / "b.db")[0] == WORKLOADS
