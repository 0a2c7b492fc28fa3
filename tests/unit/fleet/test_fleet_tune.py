"""A search whose runs a fleet performs: the same points and the same answer as here."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.support.fleets import PortableTunableMachine, behave, logged
from tests.support.scripted import scripted_resources
from tests.support.tuning import a_search

from ktrial.experiment.executor import (
    Event,
    Executor,
    Executors,
    ThisSystem,
    TrialOptions,
    Withdrawn,
    performed_by,
)
from ktrial.experiment.jobs import Job
from ktrial.experiment.observer import Observer
from ktrial.fleet.fleet import Fleet
from ktrial.machines import Machine
from ktrial.model.design import PlannedTrial
from ktrial.model.study import Search, Study
from ktrial.model.tuning import Budget, Tuned
from ktrial.optimize.search_space import with_space
from ktrial.optimize.session import run_search
from ktrial.store.store import Store, open_store
from ktrial.studyfile.errors import SearchMisled

KNOBS = ("vm.vfs_cache_pressure", "vm.swappiness", "vm.numa_stat")
AT_ONCE = 4


def searched(runs: int = 16) -> Study:
    study = with_space(a_search(*KNOBS), PortableTunableMachine(), scripted_resources(), Observer())
    assert study.search
    changed = {**dict(study.search), "budget": Budget(runs=runs), "at_once": AT_ONCE}
    return study.model_copy(update={"search": Search.model_validate(changed)})


def tuned_by(executors: Executors, store: Store, study: Study) -> Tuned:
    with performed_by(executors):
        return run_search(
            study, store=store, machine=PortableTunableMachine(), resources=scripted_resources()
        )


def asked(tuned: Tuned) -> list[tuple[object, ...]]:
    return [(one.order, one.configuration, one.values, one.purpose) for one in tuned.observations]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Tuned:
    """What this system comes to."""
    with open_store(tmp_path_factory.mktemp("here") / "ktrial.db") as store:
        return tuned_by(ThisSystem(), store, searched())


def test_a_fleet_is_asked_for_the_same_points_and_gives_the_same_answer(
    fleet: Fleet, logs: Path, here: Tuned, store: Store
) -> None:
    there = tuned_by(fleet, store, searched())
    assert asked(there) == asked(here)
    assert there.confirmed == here.confirmed is not None
    assert list(there.confirmed or ()) == ["vm.vfs_cache_pressure"]
    assert {worker for (worker,) in logged(logs, "tuned")} == {"0", "1"}
    trials = store.trials(1)
    assert len(trials) == len({one.planned.key for one in trials}) == len(there.observations)


@pytest.mark.nightly
def test_a_worker_that_tells_wrong_digits_does_not_change_the_answer(
    fleet: Fleet, logs: Path, here: Tuned, store: Store
) -> None:
    behave(logs, 1, factor=0.5)
    for _ in range(3):  # where the search had gone on from one of its runs, it is taken up again
        try:
            there = tuned_by(fleet, store, searched())
            break
        except SearchMisled:
            continue
    (wrong,) = [member for member in fleet.members.values() if member.quarantined]
    assert wrong.name == "local-1"
    assert asked(there) == asked(here)


class Withdrawing(ThisSystem):
    """Withdraws a run of the first batch while the third is under way."""

    def __init__(self) -> None:
        self.batches: list[PlannedTrial] = []

    def executor(self, machine: Machine, wanted: TrialOptions) -> Executor:  # type: ignore[override]
        made = super().executor(machine, wanted)
        begin, next_event = made.begin, made.next_event
        told_first: list[Event] = []

        def begins(trials: Sequence[PlannedTrial], jobs: Mapping[str, Sequence[Job]]) -> None:
            self.batches.append(trials[0])
            if len(self.batches) == 3:  # before its trials, which may end before anything else is put there
                told_first.append(Withdrawn((self.batches[1],), "worker x told wrong digits"))
            begin(trials, jobs)

        made.begin = begins  # type: ignore[method-assign]
        made.next_event = lambda: told_first.pop() if told_first else next_event()  # type: ignore[method-assign]
        return made


def test_a_search_that_went_on_from_a_wrong_run_is_ended_and_goes_on_from_before_it(
    here: Tuned, store: Store
) -> None:
    study = searched()
    fleet = Withdrawing()
    with pytest.raises(SearchMisled, match="worker x told wrong digits") as error:
        tuned_by(fleet, store, study)
    first = fleet.batches[1].order
    assert f"run {first + 1}" in error.value.message
    orders = {one.planned.order for one in store.trials(1)}
    assert {order for order in orders if order < fleet.batches[2].order} == set(range(first))
    assert asked(tuned_by(ThisSystem(), store, study)) == asked(here)
