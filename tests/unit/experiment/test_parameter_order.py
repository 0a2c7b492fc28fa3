"""The order of a workload's parameters: that of its program's arguments, on which digits depend.

In a guest another order moved a digit of fork-like workloads by 0.02 %; here the scripted machine's numbers
follow from the arguments in their order. 0.1 s each.
"""

from pathlib import Path

from tests.support.making import a_study
from tests.support.scripted import ScriptedMachine, scripted_resources

from ktrial.experiment.observer import Observer
from ktrial.experiment.session import run
from ktrial.model.base import digest
from ktrial.model.study import Study
from ktrial.model.workload import WorkloadUse
from ktrial.store.store import Store, open_store

FIRST: dict[str, int | str] = {"path": "/mnt", "size": 8, "reads": 50}
OTHER: dict[str, int | str] = {"size": 8, "reads": 50, "path": "/mnt"}


class Told(Observer):
    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, text: str) -> None:
        self.notices.append(text)


def study(parameters: dict[str, int | str], perturbations: int = 3) -> Study:
    use = WorkloadUse(name="fork", parameters=parameters)
    return a_study(perturbations=perturbations, workloads=()).model_copy(update={"workloads": (use,)})


def values(store: Store, parameters: dict[str, int | str], observer: Observer | None = None) -> list[float]:
    record = run(
        study(parameters),
        store=store,
        machine=ScriptedMachine(),
        observer=observer,
        resources=scripted_resources(),
    )
    return [trial.samples[0].value for trial in record.trials]


def test_orders_share_a_digest_and_differ_in_their_numbers(store: Store, tmp_path: Path) -> None:
    assert digest(study(FIRST)) == digest(study(OTHER))
    with open_store(tmp_path / "other.db") as another:
        assert values(store, FIRST) != values(another, OTHER)


def test_a_study_goes_on_in_the_order_in_which_it_began(store: Store, tmp_path: Path) -> None:
    with open_store(tmp_path / "whole.db") as uninterrupted:
        expected = values(uninterrupted, FIRST)
    begun = store.study(study(FIRST))
    observer = Told()
    assert values(store, OTHER, observer) == expected
    assert list(store.find(begun).study.workloads[0].parameters) == list(FIRST)
    (notice,) = observer.notices
    assert "another order" in notice


def test_the_same_order_is_not_told(store: Store) -> None:
    values(store, FIRST)
    observer = Told()
    values(store, FIRST, observer)
    assert observer.notices == []
