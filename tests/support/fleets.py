"""A machine for fleets: made anew in each worker, where it may behave as that worker is told to."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from tests.support.making import a_study
from tests.support.scripted import ScriptedMachine, number_of, wait_until
from tests.support.scripted import sources as scripted_sources

from ktrial.experiment.observer import Silent
from ktrial.experiment.resources import Resources
from ktrial.experiment.session import run
from ktrial.fleet.fleet import Fleet
from ktrial.fleet.settings import fleet as fleet_named
from ktrial.installation import CACHE
from ktrial.model.machine import Boot
from ktrial.model.study import Study, StudyRecord
from ktrial.store.store import Store
from ktrial.target import Run, StepResult

BEHAVIOUR = "KTRIAL_TEST_FLEET"
"""The environment variable with a directory: files there say how workers behave, and workers log in it."""


class PortableScriptedMachine(ScriptedMachine):
    """As the scripted machine, and workers make one like it."""

    def elsewhere(self) -> Callable[[], "PortableScriptedMachine"]:
        return machine_of_worker

    def has_to_agree(self) -> dict[str, str]:
        return {"QEMU": told().get("QEMU", "7.2.22")}


def machine_of_worker() -> PortableScriptedMachine:
    """What a worker makes: it logs what it does, and multiplies its numbers as it is told to."""
    behaviour = told()

    def answer(boot: Boot, program: Run) -> StepResult:
        log("begun", f"{worker_number()} {os.getpid()} {boot.kernel.name} {program.argv[1]}")
        time.sleep(float(behaviour.get("seconds", "0")))
        right = number_of(boot, program)
        log("ended", f"{worker_number()} {os.getpid()} {boot.kernel.name} {program.argv[1]}")
        factor = float(behaviour.get("factor", "1"))
        return right.model_copy(update={"stdout": str(float(right.stdout) * factor)})

    def prepared(boot: Boot) -> None:
        log("preparing", f"{worker_number()} {os.getpid()} {boot.kernel.name}")
        time.sleep(float(behaviour.get("again" if machine.prepared[1:] else "preparing", "0")))
        log("prepared", f"{worker_number()} {os.getpid()} {boot.kernel.name}")

    machine = PortableScriptedMachine(answer, on_prepare=prepared)
    return machine


def worker_number() -> str:
    """Of `local:N`, from 0; its cache is called so. Of the client: not a number."""
    return Path(os.environ.get(CACHE, "client")).name


def behave(directory: Path, worker: int | str, **told: object) -> None:
    """Say how a worker is to behave; `all`: those of which nothing is said.

    `seconds` of a trial, `preparing`: of its first system, `again`: of all others; `factor` of its numbers.
    """
    (directory / f"worker-{worker}.json").write_text(json.dumps({k: str(v) for k, v in told.items()}))


def log(name: str, line: str) -> None:
    """Append a line that nobody else's comes into."""
    if directory := os.environ.get(BEHAVIOUR):
        descriptor = os.open(Path(directory) / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(descriptor, f"{line}\n".encode())
        os.close(descriptor)


def logged(directory: Path, name: str) -> list[list[str]]:
    """The lines of a log, as words."""
    path = directory / name
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def told() -> dict[str, str]:
    directory = Path(os.environ.get(BEHAVIOUR) or "/nowhere")
    paths = (directory / f"worker-{which}.json" for which in (worker_number(), "all"))
    told = next((path for path in paths if path.exists()), None)
    return dict(json.loads(told.read_text())) if told else {}


class Heard(Silent):
    """Keeps what a person is told."""

    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, text: str) -> None:
        self.notices.append(text)


def a_fleet(workers: int | str, **changes: object) -> Fleet:
    """Of so many workers of this system, or at an address."""
    from dataclasses import replace

    settings = fleet_named(f"local:{workers}" if isinstance(workers, int) else workers)
    return Fleet(replace(settings, **changes))  # type: ignore[arg-type]


def with_all_there(fleet: Fleet, workers: int) -> Fleet:
    """Wait until that many workers have come."""
    wait_until(lambda: len(fleet.connection.workers()) >= workers)
    return fleet


def run_here(study: Study, store: Store) -> StudyRecord:
    """On this system, by threads."""
    return run(study, store=store, machine=ScriptedMachine(), sources=scripted_sources(), jobs=2)


def run_on(
    fleet: Fleet,
    study: Study,
    store: Store,
    observer: Silent | None = None,
    jobs: int | None = None,
    sources: Resources | None = None,
) -> StudyRecord:
    """On the fleet."""
    return run(
        study,
        store=store,
        machine=PortableScriptedMachine(),
        sources=sources or scripted_sources(),
        executors=fleet,
        observer=observer,
        jobs=jobs,
    )


def study_of(perturbations: int, name: str = "quick") -> Study:
    """Two kernels in two workloads."""
    return a_study(name, workloads=("fork", "pipe"), perturbations=perturbations)


def numbers(record: StudyRecord) -> dict[str, object]:
    """All that is counted, by trial; not who performed it, nor when."""
    return {one.planned.key: (one.outcome, one.samples, one.counters) for one in record.trials}
