"""Who performs the trials of a run is exchanged: what is told, stored and withdrawn stays the session's."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from tests.support.making import a_study
from tests.support.scripted import ScriptedMachine, scripted_resources

from ktrial.experiment.executor import Ended, Event, Executor, Notice, TrialOptions, Withdrawn, performed_by
from ktrial.experiment.jobs import Job
from ktrial.experiment.machine_lease import LeasePlace
from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Builder, KernelOutcome, Listener, built_here
from ktrial.experiment.session import run
from ktrial.experiment.trial import run_trial
from ktrial.machines import Machine
from ktrial.model.design import PlannedTrial
from ktrial.model.kernel import Build
from ktrial.model.study import StudyRecord
from ktrial.model.trial import Trial
from ktrial.model.workload import Mode
from ktrial.store.store import Store, open_store

STUDY = a_study(workloads=("fork",), perturbations=3)
WRONG = 1.25
"""How many times too high the numbers are that one performer tells at first."""


class Elsewhere:
    """Performs trials one by one, and finds before the last that the first `doubtful` of them were wrong."""

    def __init__(self, doubtful: int = 0) -> None:
        self.doubtful = doubtful
        self.scopes: list[str] = []
        self.performed: list[str] = []

    def at_once(self, machine: Machine, jobs: int | None) -> int:
        return 1

    def where_leased(self, machine: Machine, say: Callable[[str], None]) -> tuple[LeasePlace, ...]:
        return ()

    def built(
        self, builds: Mapping[str, Build], builder: Builder, listener: Listener
    ) -> Generator[KernelOutcome]:
        return built_here(builds, builder, listener)

    def executor(self, machine: Machine, options: TrialOptions) -> Executor:
        self.scopes.append(options.scope)
        return _OneByOne(self, machine)


class _OneByOne:
    def __init__(self, home: Elsewhere, machine: Machine) -> None:
        self._home, self._machine = home, machine
        self._events: Iterator[Event] = iter(())

    def begin(self, trials: Sequence[PlannedTrial], jobs: Mapping[str, Sequence[Job]]) -> None:
        self._events = self._all(trials, jobs)

    def _all(self, trials: Sequence[PlannedTrial], jobs: Mapping[str, Sequence[Job]]) -> Iterator[Event]:
        yield Notice("a worker has come")
        doubtful = trials[: self._home.doubtful]
        for planned in trials[:-1]:
            right = self._perform(planned, jobs)
            yield Ended(_too_high(right) if planned in doubtful else right)
        if doubtful:
            yield Withdrawn(tuple(doubtful), "a worker told wrong numbers")
        for planned in [*doubtful, trials[-1]]:
            yield Ended(self._perform(planned, jobs))

    def _perform(self, planned: PlannedTrial, jobs: Mapping[str, Sequence[Job]]) -> Trial:
        self._home.performed.append(planned.key)
        return run_trial(self._machine, planned, jobs[planned.treatment.key])

    def next_event(self) -> Event:
        return next(self._events)

    def ended_at_hand(self) -> tuple[Ended, ...]:
        return ()

    def ask_to_stop(self) -> None: ...

    def stop(self) -> tuple[Trial, ...]:
        return ()

    def close(self) -> None: ...


def _too_high(trial: Trial) -> Trial:
    samples = tuple(sample.model_copy(update={"value": sample.value * WRONG}) for sample in trial.samples)
    return trial.model_copy(update={"samples": samples})


class Listening(Observer):
    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, text: str) -> None:
        self.notices.append(text)


def _run(store: Store, executors: Elsewhere | None = None, observer: Observer | None = None) -> StudyRecord:
    return run(
        STUDY,
        store=store,
        machine=ScriptedMachine(),
        resources=scripted_resources(),
        observer=observer,
        executors=executors,
    )


def _numbers(record: StudyRecord) -> dict[str, list[float]]:
    return {trial.planned.key: [sample.value for sample in trial.samples] for trial in record.trials}


def test_trials_that_are_withdrawn_are_performed_again_and_stored_once(store: Store, tmp_path: Path) -> None:
    with open_store(tmp_path / "here.db") as local_store:
        local = _run(local_store)
    listening = Listening()
    record = _run(store, Elsewhere(doubtful=2), listening)
    assert _numbers(record) == _numbers(local)
    assert len(store.trials(record.id)) == len(local.trials)
    assert listening.notices == ["a worker has come", "a worker told wrong numbers"]


def test_a_block_says_who_performs_the_trials_of_all_runs_in_it(store: Store) -> None:
    elsewhere = Elsewhere()
    with performed_by(elsewhere):
        record = _run(store)
    assert len(elsewhere.performed) == len(record.trials) == 6
    store.remove_trials_of(record.id, {record.trials[0].planned.key})
    _run(store)
    assert len(elsewhere.performed) == 6, "after the block they are performed here"


def test_trials_of_one_study_in_one_store_are_of_one_scope(store: Store) -> None:
    elsewhere = Elsewhere()
    record = _run(store, elsewhere)
    store.remove_trials_of(record.id, {record.trials[0].planned.key})
    _run(store, elsewhere)
    assert len(elsewhere.scopes) == 2
    assert len(set(elsewhere.scopes)) == 1
    assert len(elsewhere.performed) == 7


@pytest.mark.parametrize(
    ("mode", "changes"), [(Mode.EXACT_PLUGIN, 1), (Mode.EXACT_CLOCK, 1), (Mode.EMULATED_TIME, None)], ids=str
)
def test_a_thread_goes_on_with_the_system_that_it_had_where_the_order_changes_no_number(
    store: Store, mode: Mode, changes: int | None
) -> None:
    machine = ScriptedMachine(mode=mode)
    record = run(STUDY, store=store, machine=machine, resources=scripted_resources(), jobs=1)
    systems = [(boot.kernel.name, boot.parameters) for boot, _ in machine.programs]
    assert len(systems) == len(record.trials) == 6
    changed = sum(before != after for before, after in pairwise(systems))
    if changes is None:
        in_order = [trial.planned.treatment.key for trial in record.trials]
        changes = sum(before != after for before, after in pairwise(in_order))
        assert changes > 1
    assert changed == changes
