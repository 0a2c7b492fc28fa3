"""Running a study: resumption, parallelism, interruption, and kernels that cannot be had."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.making import a_study
from tests.support.scripted import ScriptedMachine, ScriptedWorkload, ends, not_found, number_of, wait_until
from tests.support.scripted import sources as scripted_sources

from ktrial.errors import Interrupted, KtrialError
from ktrial.experiment.observer import Observer, Silent
from ktrial.experiment.resources import Resources
from ktrial.experiment.session import run
from ktrial.kernels import Progress
from ktrial.kernels.errors import CacheFull, KernelNotFound, NotAKernel
from ktrial.machines.errors import MachineStopped, MachineToolMissing, NoSpaceForSnapshot
from ktrial.model.boot import Boot, CarriedFile
from ktrial.model.comparison import Verdict
from ktrial.model.design import Plan, PlannedTrial
from ktrial.model.kernel import Kernel
from ktrial.model.plan import plan
from ktrial.model.references import KernelRef
from ktrial.model.study import Study
from ktrial.model.study_record import StudyRecord
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import Mode, WorkloadUse
from ktrial.store import Store, open_store
from ktrial.store.errors import StoreFull, StoreGone
from ktrial.target import Run, StepResult
from ktrial.target.errors import GuestProgramsMissing
from ktrial.workloads.errors import UnknownWorkload


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "trials.db") as opened:
        yield opened


class Watching(Silent):
    """Keeps what it is told, and from which thread."""

    def __init__(self) -> None:
        self.told: list[tuple[str, object]] = []
        self.threads: set[int] = set()

    def _tell(self, what: str, fact: object) -> None:
        self.told.append((what, fact))
        self.threads.add(threading.get_ident())

    def study_planned(self, plan: Plan, finished: int) -> None:
        self._tell("planned", (len(plan.trials), finished))

    def kernel_progress(self, name: str, what: str, done: int, total: int) -> None:
        self._tell("kernel", (name, what, done, total))

    def kernel_failed(self, name: str, error: KtrialError) -> None:
        self._tell("kernel failed", name)

    def preparing(self, boot: Boot, what: str) -> None:
        self._tell("preparing", what)

    def prepared(self, boot: Boot) -> None:
        self._tell("prepared", boot.kernel.name)

    def trial_started(self, planned: PlannedTrial) -> None:
        self._tell("started", planned.key)

    def trial_finished(self, trial: Trial, finished: int, total: int, seconds_left: float | None) -> None:
        self._tell("finished", (finished, total, seconds_left))

    def stopping(self) -> None:
        self._tell("stopping", None)

    def of(self, what: str) -> list[object]:
        return [fact for name, fact in self.told if name == what]


THREE_KERNELS = a_study(kernels=("debian:6.1", "debian:6.12", "debian:7.2"))


def ran(
    store: Store,
    machine: ScriptedMachine,
    study: Study | None = None,
    *,
    sources: Resources | None = None,
    observer: Observer | None = None,
    jobs: int | None = None,
    retry_failed: bool = False,
) -> StudyRecord:
    return run(
        study or a_study(),
        store=store,
        machine=machine,
        observer=observer,
        jobs=jobs,
        retry_failed=retry_failed,
        sources=sources or scripted_sources(),
    )


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

    with open_store(tmp_path / "one.db") as one, open_store(tmp_path / "other.db") as other:
        alone = ran(one, ScriptedMachine(), jobs=1)
        beside = ran(other, ScriptedMachine(answer), jobs=at_once)
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


# Kernels that cannot be had, and systems that fail


def test_a_kernel_that_cannot_be_had_is_an_outcome_and_the_study_goes_on(store: Store) -> None:
    watching = Watching()
    lacking = scripted_sources(missing={"debian:6.12": not_found("debian:6.12")})
    record = ran(store, ScriptedMachine(), THREE_KERNELS, sources=lacking, observer=watching)
    by_kernel = {(trial.planned.treatment.label, trial.outcome) for trial in record.trials}
    assert by_kernel == {
        ("debian:6.1", Outcome.COMPLETED),
        ("debian:6.12", Outcome.KERNEL_MISSING),
        ("debian:7.2", Outcome.COMPLETED),
    }
    assert watching.of("kernel failed") == ["debian:6.12"]
    of_it = [one for one in record.result.comparisons if one.treatment == "debian:6.12"]
    assert {one.verdict for one in of_it} == {Verdict.INCONCLUSIVE}
    assert "could not be had" in of_it[0].reason


@pytest.mark.parametrize("name", ["debian:6.1", "debian:6.12"])
def test_where_only_one_side_of_every_comparison_can_be_had_nothing_is_booted(
    store: Store, name: str
) -> None:
    watching, lacking = Watching(), scripted_sources(missing={name: not_found(name)})
    with pytest.raises(KernelNotFound):
        ran(store, ScriptedMachine(), sources=lacking, observer=watching)
    assert store.trials(1) == ()
    assert watching.of("preparing") == []


def test_a_trial_without_its_kernel_is_tried_again_by_the_next_run(store: Store) -> None:
    lacking = scripted_sources(missing={"debian:6.12": not_found("debian:6.12")})
    ran(store, ScriptedMachine(), THREE_KERNELS, sources=lacking)
    record = ran(store, ScriptedMachine(), THREE_KERNELS)
    assert [trial.outcome for trial in record.trials] == [Outcome.COMPLETED] * 9


def test_a_file_that_is_no_kernel_is_an_outcome(store: Store) -> None:
    error = NotAKernel(name="path:/x", path="/x", found="a text file")
    lacking = scripted_sources(missing={"debian:6.12": error})
    record = ran(store, ScriptedMachine(), THREE_KERNELS, sources=lacking)
    failed = [trial for trial in record.trials if trial.outcome is Outcome.NOT_A_KERNEL]
    assert len(failed) == 3
    assert "it is a text file" in failed[0].reason


def test_where_no_kernel_can_be_had_the_run_ends_with_the_first_error(store: Store) -> None:
    missing = {name: not_found(name) for name in ("debian:6.1", "debian:6.12")}
    with pytest.raises(KernelNotFound):
        ran(store, ScriptedMachine(), sources=scripted_sources(missing=dict(missing)))
    assert store.trials(1) == ()


def test_a_full_cache_ends_the_run(store: Store) -> None:
    error = CacheFull(name="x", directory="/cache", needed="1 MiB", free="0 B")
    with pytest.raises(CacheFull):
        ran(store, ScriptedMachine(), sources=scripted_sources(missing={"debian:6.12": error}))


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
        NoSpaceForSnapshot(machine="exact", directory="/x", problem="no space", mib=40),
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
        raise UnknownWorkload(workload=use.name, similar="")

    watching = Watching()
    with pytest.raises(UnknownWorkload):
        ran(store, ScriptedMachine(), sources=replace(scripted_sources(), workload=none), observer=watching)
    assert watching.told == []
    assert store.studies() == ()


def test_a_full_store_ends_the_run(store: Store) -> None:
    with store.transactions.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 40")
    machine = ScriptedMachine()
    with pytest.raises(StoreFull):
        ran(store, machine, a_study(perturbations=200))
    assert machine.stopped.is_set()
    assert store.trials(1)


def test_two_systems_of_one_treatment_are_prepared_each_once(store: Store) -> None:
    tool = CarriedFile(host=Path("/bin/true"), guest="/bin/true")
    known = scripted_sources({"mine": ScriptedWorkload("mine", (tool,))})
    machine = ScriptedMachine()
    ran(store, machine, a_study(workloads=("fork", "mine"), kernels=("debian:6.1",)), sources=known)
    assert sorted(len(boot.files) for boot in machine.prepared) == [0, 1]


# Interruption


def _after(store: Store, trials: int, act: Callable[[], None]) -> threading.Thread:
    """Do something once so many trials are stored."""

    def wait_and_act() -> None:
        wait_until(lambda: any(one.finished >= trials for one in store.studies()))
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    return thread


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
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
    assert len(machine.programs) == 2 * (100 - len(stored))


def test_a_signal_while_kernels_are_fetched_ends_the_run(store: Store) -> None:
    known = scripted_sources()

    def obtain(_kernel: KernelRef, _progress: Progress) -> Kernel:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
        raise AssertionError("the signal did not arrive")

    with pytest.raises(Interrupted, match="0 of 6 trials are stored"):
        ran(store, ScriptedMachine(), sources=replace(known, obtain=obtain))


def test_a_store_that_was_deleted_is_not_said_to_have_anything(store: Store, tmp_path: Path) -> None:
    def answer(boot: Boot, run: Run) -> StepResult:
        for file in tmp_path.glob("trials.db*"):
            file.unlink()
        os.kill(os.getpid(), signal.SIGINT)
        machine.stopped.wait(300)
        raise MachineStopped(machine="scripted")

    machine = ScriptedMachine(answer)
    with pytest.raises(Interrupted, match=r"no trial is known to be kept.*is gone") as caught:
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
from ktrial.store import open_store
from tests.support.making import a_study
from tests.support.scripted import ScriptedMachine, number_of, sources

log = open(sys.argv[2], "a")

def answer(boot, run):
    log.write(f"{boot.kernel.name} {run.argv[1]} {run.argv[0]}\\n")
    log.flush()
    return number_of(boot, run)

with open_store(sys.argv[1]) as store:
    print("ready", flush=True)
    run(a_study(perturbations=100), store=store, machine=ScriptedMachine(answer, seconds=0.002),
        sources=sources())
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
            stored = {trial.planned.key: trial for one in store.studies() for trial in store.trials(one.id)}
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
    with open_store(file) as store, open_store(tmp_path / "whole.db") as other:
        resumed = store.trials(1)
        whole = run(
            a_study(perturbations=100), store=other, machine=ScriptedMachine(), sources=scripted_sources()
        )
    assert [(one.planned, one.samples) for one in resumed] == [
        (one.planned, one.samples) for one in whole.trials
    ]


def _asked(trial: Trial) -> tuple[str, str]:
    return str(trial.planned.treatment.levels["kernel"]), str(trial.planned.perturbation.number)
