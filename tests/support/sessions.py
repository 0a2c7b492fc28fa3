"""Studies that are run on a scripted machine, and an observer that keeps what it is told."""

import threading

from tests.support.making import a_study
from tests.support.scripted import ScriptedMachine, scripted_resources

from ktrial.errors import KtrialError
from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Resources
from ktrial.experiment.session import run
from ktrial.model.design import Plan, PlannedTrial
from ktrial.model.machine import Boot
from ktrial.model.study import Study, StudyRecord
from ktrial.model.trial import Trial
from ktrial.store.store import Store


class Watching(Observer):
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


def ran(
    store: Store,
    machine: ScriptedMachine,
    study: Study | None = None,
    *,
    resources: Resources | None = None,
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
        resources=resources or scripted_resources(),
    )
