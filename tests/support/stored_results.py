"""A store full of results, made as report_records makes them: for tests of histories, matrices and sites."""

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.support.databases import Backend
from tests.support.making import a_study, a_trial, planned
from tests.support.profiles import a_profile, real_profile
from tests.support.report_records import FIVE, FOUR_MORE, MORE, VALUES, a_record, by_the_plugin
from tests.support.stored_parts import SAMPLED
from typer.testing import CliRunner, Result

from ktrial.cli.app import app
from ktrial.model.profile import Profile
from ktrial.model.study import StudyRecord
from ktrial.model.trial import Trial
from ktrial.store.file_maintenance import name_file_place
from ktrial.store.store import Store, open_store

WORKLOADS = ("fork", "pipe", "getppid", "nqueens")


def fill(store: Store, *records: StudyRecord) -> None:
    """Put the records' studies and trials into the store, each an hour after the one before."""
    for number, record in enumerate(records):
        study = store.study(record.study.model_copy(update={"name": f"{record.study.name}-{number}"}))
        for trial in record.trials:
            store.add_trial(study, later(trial, number))


def later(trial: Trial, hours: int) -> Trial:
    begin = datetime(2026, 11, 20, tzinfo=UTC)
    return trial.model_copy(update={"started": begin + timedelta(hours=hours, seconds=trial.planned.order)})


def a_store(directory: Path, *records: StudyRecord) -> Path:
    """A new store with the records; with none given, five kernels in four workloads."""
    directory.mkdir(exist_ok=True)
    path = directory / "results.db"
    with open_store(str(path)) as store:
        fill(store, *(records or (a_record(FIVE, WORKLOADS),)))
    return path


# 50 results of 25 workloads, all of them measured: for the test of `ktrial site`, and for its bench.

RESULTS = 50


MEASURED_WORKLOADS = (*VALUES, *MORE, *FOUR_MORE)


PROFILED = ("fork", "pipe")


EVERY = 10
"""One in so many results has profiles of PROFILED: a site is built again and again, and what changes of older
results are made of was kept when they were new."""


def fifty_results() -> list[StudyRecord]:
    """Each of two neighbouring kernels under three perturbations, counted by the plugin."""
    records = [
        by_the_plugin(a_record((FIVE[number % 5], FIVE[(number + 1) % 5]), MEASURED_WORKLOADS))
        for number in range(RESULTS)
    ]
    return [
        one if number % EVERY else with_real_profiles(one, PROFILED) for number, one in enumerate(records)
    ]


def with_real_profiles(record: StudyRecord, workloads: tuple[str, ...]) -> StudyRecord:
    """The baseline's trial without a perturbation has what 5.10 did, the treatment's what 6.12 did."""
    baseline = record.trials[0].planned.treatment.key

    def profiled(trial: Trial) -> Trial:
        if trial.planned.perturbation.number:
            return trial
        kernel = "5.10" if trial.planned.treatment.key == baseline else "6.12"
        profiles = tuple(real_profile(workload, kernel)[0] for workload in workloads)
        return trial.model_copy(update={"profiles": profiles})

    return record.model_copy(update={"trials": tuple(map(profiled, record.trials))})


# Trials with a large part, and stores that keep such parts in files.

ABOVE = 1000
"""Bytes: a profile of one function has fewer, one of `large` has more."""


def large(seed: int = 0) -> Profile:
    """A profile that does not become small when it is compressed."""
    names = (hashlib.sha256(f"{seed} {number}".encode()).hexdigest() for number in range(40))
    return a_profile({(name, ""): 1000 + seed for name in names})


def measured(number: int = 0, *, seed: int | None = None) -> Trial:
    """A trial with one large part."""
    profile = large(number if seed is None else seed)
    return a_trial(planned(number=number, order=number), profiles=(profile,), sampled=(SAMPLED,))


def with_files(store: Store, directory: Path | str) -> Store:
    name_file_place(store, str(directory), ABOVE)
    return store


def files_in(directory: Path) -> list[Path]:
    return sorted(one for one in directory.rglob("*") if one.is_file() and one.name != "owner")


def only_file_in(directory: Path) -> Path:
    (one,) = files_in(directory)
    return one


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["store", *arguments])


def filled(backend: Backend, directory: Path | None, count: int = 2) -> Backend:
    """With trials of one study, of which the large parts lie in the directory, or inside."""
    with open_store(backend.location) as store:
        if directory:
            with_files(store, directory)
        study = store.study(a_study())
        store.add_trials(study, [measured(number) for number in range(count)])
    return backend
