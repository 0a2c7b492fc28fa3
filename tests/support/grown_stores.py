"""Stores of many studies with many trials, filled inside the database: a million trials in seconds."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support.growing_studies import growing_study, trials_of

from ktrial.model.base import digest
from ktrial.model.study import Study
from ktrial.store import open_store

TREATMENTS = 20
WORKLOADS = 5
PERTURBATIONS = 5
TRIALS = TREATMENTS * PERTURBATIONS
"""Of each study."""


def grown_store(directory: Path, trials: int) -> Path:
    """A store of so many trials (a multiple of TRIALS), 100 a study."""
    path = directory / f"{trials}.db"
    study = growing_study(TREATMENTS, workloads=WORKLOADS, timed=False, perturbations=PERTURBATIONS)
    with open_store(path) as store:
        number = store.study(study)
        for trial in trials_of(study):
            store.add_trial(number, trial)
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA synchronous = OFF")
        for copy in range(1, trials // TRIALS):
            _copy(raw, study, number, copy)
        raw.commit()
    return path


def _copy(raw: sqlite3.Connection, study: Study, number: int, copy: int) -> None:
    """The study again, with its trials, under another name."""
    named = study.model_copy(update={"name": f"{study.name}-{copy}"})
    spec = json.dumps(named.model_dump(mode="json", by_alias=True))
    raw.execute(
        "INSERT INTO studies (id, name, digest, spec, created) "
        "SELECT ?, ?, ?, ?, created FROM studies WHERE id = ?",
        (number + copy, named.name, digest(named), spec, number),
    )
    moved = {"trials": {"id": "id + :by", "study_id": ":study"}}
    moved |= {table: {"id": "NULL", "trial_id": "trial_id + :by"} for table in ("samples", "counters")}
    for table, changed in moved.items():
        columns = [name for _, name, *_ in raw.execute(f"PRAGMA table_info({table})")]
        values = ", ".join(changed.get(name, name) for name in columns)
        of_first = "study_id = :first" if table == "trials" else f"trial_id <= {TRIALS}"
        raw.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table} WHERE {of_first}",
            {"by": copy * TRIALS, "study": number + copy, "first": number},
        )
