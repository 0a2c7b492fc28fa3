"""A store full of results, made as report_records makes them: for tests of histories, matrices and sites."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.support.report_records import FIVE, a_record

from ktrial.model.study import StudyRecord
from ktrial.model.trial import Trial
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
