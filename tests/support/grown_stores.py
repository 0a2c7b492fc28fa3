"""Stores of many studies with many trials, filled inside the database: a million trials in seconds."""

import hashlib
import json
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.support.growing_studies import growing_study, trials_of

from ktrial.model.base import digest
from ktrial.model.study import Study
from ktrial.store import open_store
from ktrial.store.trial_digests import OF_SAMPLE, OF_TRIAL, values_of

JSON = ("planned", "settings", "warnings", "provenance")
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
        said = _said(raw, number)
        for copy in range(1, trials // TRIALS):
            _copy(raw, study, number, copy)
            _note(raw, said, number, copy)
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


_ANY = -987654321
"""In place of a study's number."""


def _said(raw: sqlite3.Connection, number: int) -> list[tuple[int, str, str]]:
    """Each trial's number, what its digest is of (with _ANY as the study), and its counters' digest."""
    with closing(raw.cursor()) as cursor:
        cursor.row_factory = sqlite3.Row
        found = []
        for row in cursor.execute("SELECT * FROM trials WHERE study_id = ?", (number,)).fetchall():
            plain: dict[str, Any] = {**dict(row), "study_id": _ANY}
            plain |= {name: json.loads(plain[name]) for name in JSON if name in plain}
            plain["started"] = datetime.fromisoformat(plain["started"])
            of_trial = cursor.execute("SELECT * FROM samples WHERE trial_id = ? ORDER BY id", (row["id"],))
            values = [*values_of([plain], OF_TRIAL), *values_of(map(dict, of_trial.fetchall()), OF_SAMPLE)]
            text = json.dumps(values, sort_keys=True, separators=(",", ":"), default=str)
            ((counted,),) = cursor.execute("SELECT counters FROM digests WHERE trial_id = ?", (row["id"],))
            found.append((row["id"], text, counted))
    return found


def _note(raw: sqlite3.Connection, said: list[tuple[int, str, str]], number: int, copy: int) -> None:
    """The digests of a copy's trials."""
    rows = [
        (
            trial + copy * TRIALS,
            hashlib.sha256(text.replace(str(_ANY), str(number + copy)).encode()).hexdigest(),
            counted,
        )
        for trial, text, counted in said
    ]
    raw.executemany(
        "INSERT INTO digests (trial_id, content, counters, profiles, series) VALUES (?, ?, ?, '{}', '{}')",
        rows,
    )
