"""Running a study: what is run and what is not, how many trials at once, what the observer is told."""

import random
import threading
import time
from pathlib import Path

import pytest
from tests.support.making import a_study
from tests.support.scripted import ScriptedMachine, ScriptedWorkload, number_of, scripted_resources
from tests.support.sessions import Watching, ran

from ktrial.experiment.errors import FilesChanged
from ktrial.experiment.resources import Resources
from ktrial.model.machine import Boot, CarriedFile
from ktrial.model.study import plan
from ktrial.model.trial import Outcome
from ktrial.model.workload import Mode
from ktrial.store.store import Store, open_store
from ktrial.target import Run, StepResult
from ktrial.workloads.frozen_files import FrozenFiles


def test_a_study_runs_every_trial_and_has_a_result(store: Store) -> None:
    machine = ScriptedMachine()
    record = ran(store, machine)
    assert [trial.outcome for trial in record.trials] == [Outcome.COMPLETED] * 6
    assert record.planned == 6
    assert len(record.result.comparisons) == 2
    assert machine.checked == 1


def test_each_system_is_prepared_once(store: Store) -> None:
    machine = ScriptedMachine()
    ran(store, machine)
    assert sorted(boot.kernel.name for boot in machine.prepared) == ["debian:6.1", "debian:6.12"]


def test_finished_trials_are_not_run_again(store: Store) -> None:
    ran(store, ScriptedMachine())
    again = ScriptedMachine()
    record = ran(store, again)
    assert (again.programs, again.prepared) == ([], [])
    assert len(record.trials) == 6


def test_only_what_is_missing_is_run(store: Store) -> None:
    finished = ran(store, ScriptedMachine())
    store.delete(finished.id)
    study_id = store.study(a_study())
    for trial in finished.trials[:4]:
        store.add_trial(study_id, trial)
    machine = ScriptedMachine()
    record = ran(store, machine)
    assert len(machine.programs) == 2 * 2
    assert [trial.planned for trial in record.trials] == list(plan(a_study()).trials)


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_the_result_does_not_depend_on_how_many_trials_run_at_once(tmp_path: Path, at_once: int) -> None:
    def answer(boot: Boot, run: Run) -> StepResult:
        time.sleep(random.random() / 100)
        return number_of(boot, run)

    with open_store(tmp_path / "one.db") as first, open_store(tmp_path / "other.db") as second:
        alone = ran(first, ScriptedMachine(), jobs=1)
        beside = ran(second, ScriptedMachine(answer), jobs=at_once)
    assert beside.result.model_dump_json() == alone.result.model_dump_json()


def test_as_many_trials_run_at_once_as_are_asked_for(store: Store) -> None:
    machine = ScriptedMachine(seconds=0.02)
    ran(store, machine, jobs=3)
    assert machine.most_at_once == 3


def test_where_load_changes_the_numbers_one_trial_runs_at_a_time(store: Store) -> None:
    machine = ScriptedMachine(seconds=0.005, mode=Mode.TIMED)
    ran(store, machine, jobs=4)
    assert machine.most_at_once == 1


def test_the_observer_is_told_everything_from_the_calling_thread(store: Store) -> None:
    watching = Watching()
    ran(store, ScriptedMachine(seconds=0.001), observer=watching)
    assert watching.threads == {threading.get_ident()}
    assert watching.of("planned") == [(6, 0)]
    assert ("debian:6.1", "fetching", 1, 2) in watching.of("kernel")
    assert watching.of("preparing") == ["booting", "booting"]
    assert len(watching.of("started")) == 6
    finished = watching.of("finished")
    assert [fact[:2] for fact in finished if isinstance(fact, tuple)] == [(at, 6) for at in range(1, 7)]
    assert isinstance(finished[-1], tuple)
    assert finished[-1][2] == 0.0


def test_two_systems_of_one_treatment_are_prepared_each_once(store: Store) -> None:
    tool = CarriedFile(host=Path("/bin/true"), guest="/bin/true")
    resources = scripted_resources({"mine": ScriptedWorkload("mine", (tool,))})
    machine = ScriptedMachine()
    ran(store, machine, a_study(workloads=("fork", "mine"), kernels=("debian:6.1",)), resources=resources)
    assert sorted(boot.awaits_files for boot in machine.prepared) == [False, True]


def test_a_library_that_is_replaced_between_trials_changes_nothing(store: Store, tmp_path: Path) -> None:
    library = tmp_path / "libit.so"
    library.write_text("first")
    carried = CarriedFile(host=library, guest="/lib/libit.so")
    carried_contents: list[str] = []

    def answer(boot: Boot, run: Run) -> StepResult:
        carried_contents.extend(file.host.read_text() for file in boot.files)
        library.write_text(f"version {len(carried_contents)}")
        return number_of(boot, run)

    resources = scripted_resources(
        {"mine": ScriptedWorkload("mine", (carried,))}, frozen=FrozenFiles(tmp_path / "kept")
    )
    study = a_study(workloads=("mine",))
    record = ran(store, ScriptedMachine(answer), study, resources=resources)
    assert carried_contents == ["first"] * 6
    assert len({trial.provenance.executed["files of mine"] for trial in record.trials}) == 1


def test_a_study_goes_on_with_the_same_files_only(store: Store, tmp_path: Path) -> None:
    library = tmp_path / "libit.so"
    library.write_text("first")
    carried = CarriedFile(host=library, guest="/lib/libit.so")

    def resources() -> Resources:
        workloads = {"mine": ScriptedWorkload("mine", (carried,))}
        return scripted_resources(workloads, frozen=FrozenFiles(tmp_path / "kept"))

    study = a_study(workloads=("mine",))
    finished = ran(store, ScriptedMachine(), study, resources=resources())
    store.delete(finished.id)
    study_id = store.study(study)
    for trial in finished.trials[:2]:
        store.add_trial(study_id, trial)
    library.write_text("second")
    machine = ScriptedMachine()
    with pytest.raises(FilesChanged, match=r"Workload mine: its files are others .*: /lib/libit\.so\.$"):
        ran(store, machine, study, resources=resources())
    assert machine.prepared == []
    library.write_text("first")
    assert len(ran(store, machine, study, resources=resources()).trials) == 6
