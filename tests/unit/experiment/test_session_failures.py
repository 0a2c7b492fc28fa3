"""Running a study: kernels that cannot be had, systems that fail, and what the host lacks."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.support.making import a_study
from tests.support.scripted import (
    ScriptedMachine,
    ScriptedWorkload,
    ends,
    not_found,
    number_of,
    scripted_resources,
)
from tests.support.sessions import Watching, ran

from ktrial.kernels.errors import CacheFull, KernelNotFound, NotAKernel
from ktrial.machines.errors import HostProblem, MachineToolMissing
from ktrial.model.comparison import Verdict
from ktrial.model.machine import Boot
from ktrial.model.trial import Outcome
from ktrial.model.workload import WorkloadUse
from ktrial.store.errors import StoreError
from ktrial.store.store import Store
from ktrial.target import Run, StepResult
from ktrial.target.errors import GuestProgramsMissing
from ktrial.workloads.errors import BadWorkload

THREE_KERNELS = a_study(kernels=("debian:6.1", "debian:6.12", "debian:7.2"))


# Kernels that cannot be had, and systems that fail
def test_a_kernel_that_cannot_be_had_is_an_outcome_and_the_study_goes_on(store: Store) -> None:
    watching = Watching()
    lacking = scripted_resources(missing={"debian:6.12": not_found("debian:6.12")})
    record = ran(store, ScriptedMachine(), THREE_KERNELS, resources=lacking, observer=watching)
    by_kernel = {(trial.planned.treatment.label, trial.outcome) for trial in record.trials}
    assert by_kernel == {
        ("debian:6.1", Outcome.COMPLETED),
        ("debian:6.12", Outcome.KERNEL_MISSING),
        ("debian:7.2", Outcome.COMPLETED),
    }
    assert watching.of("kernel failed") == ["debian:6.12"]
    of_it = [comparison for comparison in record.result.comparisons if comparison.treatment == "debian:6.12"]
    assert {comparison.verdict for comparison in of_it} == {Verdict.INCONCLUSIVE}
    assert "could not be had" in of_it[0].reason


@pytest.mark.parametrize("name", ["debian:6.1", "debian:6.12"])
def test_where_only_one_side_of_every_comparison_can_be_had_nothing_is_booted(
    store: Store, name: str
) -> None:
    watching, lacking = Watching(), scripted_resources(missing={name: not_found(name)})
    with pytest.raises(KernelNotFound):
        ran(store, ScriptedMachine(), resources=lacking, observer=watching)
    assert store.studies() == ()
    assert watching.of("preparing") == []


def test_a_trial_without_its_kernel_is_tried_again_by_the_next_run(store: Store) -> None:
    lacking = scripted_resources(missing={"debian:6.12": not_found("debian:6.12")})
    ran(store, ScriptedMachine(), THREE_KERNELS, resources=lacking)
    record = ran(store, ScriptedMachine(), THREE_KERNELS)
    assert [trial.outcome for trial in record.trials] == [Outcome.COMPLETED] * 9


def test_a_file_that_is_no_kernel_is_an_outcome(store: Store) -> None:
    error = NotAKernel(path="/x", found="a text file")
    lacking = scripted_resources(missing={"debian:6.12": error})
    record = ran(store, ScriptedMachine(), THREE_KERNELS, resources=lacking)
    failed = [trial for trial in record.trials if trial.outcome is Outcome.NOT_A_KERNEL]
    assert len(failed) == 3
    assert "it is a text file" in failed[0].reason


def test_where_no_kernel_can_be_had_the_run_ends_with_the_first_error(store: Store) -> None:
    missing = {name: not_found(name) for name in ("debian:6.1", "debian:6.12")}
    with pytest.raises(KernelNotFound):
        ran(store, ScriptedMachine(), resources=scripted_resources(missing=dict(missing)))
    assert store.studies() == ()


def test_a_full_cache_ends_the_run(store: Store) -> None:
    error = CacheFull(directory="/cache", needed="1 MiB", free="0 B")
    with pytest.raises(CacheFull):
        ran(store, ScriptedMachine(), resources=scripted_resources(missing={"debian:6.12": error}))


def _of(kernel: str, error: Exception) -> Callable[[Boot], None]:
    def fail(boot: Boot) -> None:
        if boot.kernel.name == kernel:
            raise error

    return fail


def test_a_system_that_panics_when_it_is_prepared_is_the_outcome_of_its_trials(store: Store) -> None:
    panic = ends(Outcome.PANICKED, "Kernel panic - not syncing: VFS", "the console")
    machine = ScriptedMachine(on_prepare=_of("debian:6.12", panic))
    record = ran(store, machine)
    failed = [trial for trial in record.trials if trial.outcome is Outcome.PANICKED]
    assert len(failed) == 3
    assert {trial.console for trial in failed} == {"the console"}
    assert len(machine.programs) == 3 * 2


def test_a_panic_is_not_tried_again_unless_asked(store: Store) -> None:
    panic = ends(Outcome.PANICKED, "Kernel panic", "")
    ran(store, ScriptedMachine(on_prepare=_of("debian:6.12", panic)))
    calm = ScriptedMachine()
    ran(store, calm)
    assert calm.programs == []
    record = ran(store, ScriptedMachine(), retry_failed=True)
    assert {trial.outcome for trial in record.trials} == {Outcome.COMPLETED}


@pytest.mark.parametrize(
    "error",
    [
        HostProblem(machine="exact", directory="/x", problem="no space", mib=40),
        GuestProgramsMissing(architecture="x86_64", directory="/x", missing="agent"),
        RuntimeError("a defect"),
    ],
)
def test_a_problem_of_the_host_ends_the_run_and_keeps_what_is_finished(
    store: Store, error: Exception
) -> None:
    def answer(boot: Boot, run: Run) -> StepResult:
        if len(machine.programs) > 4:
            raise error
        return number_of(boot, run)

    machine = ScriptedMachine(answer)
    with pytest.raises(type(error)):
        ran(store, machine, jobs=1)
    assert machine.stopped.is_set()
    assert len(store.trials(1)) == 2
    assert {trial.outcome for trial in store.trials(1)} == {Outcome.COMPLETED}


def test_a_machine_that_cannot_run_here_is_an_error_at_once(store: Store) -> None:
    class Missing(ScriptedMachine):
        def check(self) -> None:
            raise MachineToolMissing(machine="exact", program="qemu", where="in PATH", package="q")

    machine = Missing()
    with pytest.raises(MachineToolMissing):
        ran(store, machine)
    assert machine.prepared == []
    assert store.studies() == ()


def test_an_unknown_workload_is_an_error_before_any_kernel_is_fetched(store: Store) -> None:
    def none(use: WorkloadUse) -> ScriptedWorkload:
        raise BadWorkload(f"There is no workload {use.name}.")

    watching = Watching()
    with pytest.raises(BadWorkload):
        ran(
            store,
            ScriptedMachine(),
            resources=replace(scripted_resources(), workload=none),
            observer=watching,
        )
    assert watching.told == []
    assert store.studies() == ()


def test_a_full_store_ends_the_run(store: Store) -> None:
    with store.transactions.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 40")
    machine = ScriptedMachine()
    with pytest.raises(StoreError, match=r"bytes free\)\. The trials stored before are"):
        ran(store, machine, a_study(perturbations=200))
    assert machine.stopped.is_set()
    assert store.trials(1)
