"""Studies of any size with the trials that they might have had: numbers from their own seeds, no guest.

The same numbers each time, so that a result may be compared with one that was recorded.
"""

import hashlib
import json
import random
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from ktrial.analysis.brief_results import summary_of
from ktrial.analysis.history.stored_numbers import facts_of, numbers_of, packed
from ktrial.analysis.result import make_record
from ktrial.model.base import digest
from ktrial.model.design import Factor, FactorKind, PlannedTrial
from ktrial.model.study import Study, Timing, plan
from ktrial.model.trial import CounterDelta, Environment, Outcome, Provenance, Reading, ReadingKind, Trial
from ktrial.model.workload import Direction, Mode, Sample, WorkloadUse
from ktrial.store.copying import trials_by_number
from ktrial.store.integrity import TrialSet
from ktrial.store.quick_reader import study_row_digest
from ktrial.store.schema import to_utc
from ktrial.store.store import Store, open_store
from ktrial.store.study_rows import OF_STUDY, StudySummaries
from ktrial.store.trial_rows import content_text, digest_row

# Studies of any size with the trials that they might have had: numbers from their own seeds, no guest.
#
# The same numbers each time, so that a result may be compared with one that was recorded.

START = datetime(2026, 11, 21, 9, 0, 0, 0, UTC)


BLOCKS = 20


SETTING = "kernel.sched_rt_runtime_us"


SPREAD = 0.004
"""Standard deviation of a value's logarithm."""


COUNTERS = ("vmstat.pgfault", "stat.ctxt")


def a_factor(levels: int, name: str = SETTING) -> Factor:
    """A setting at so many levels; the first is the baseline."""
    return Factor(
        name=name, kind=FactorKind.SETTING, levels=tuple(range(1, levels + 1)), baseline=1, target=name
    )


def growing_study(
    treatments: int, *, workloads: int = 1, timed: bool = True, blocks: int = BLOCKS, **settings: object
) -> Study:
    """One factor with so many levels, so many workloads; in real time unless it is told otherwise."""
    plain = {
        "name": f"growing-{treatments}-{workloads}",
        "factors": (a_factor(treatments),),
        "workloads": tuple(WorkloadUse(name=f"load-{number:04}") for number in range(workloads)),
        "machine": {"kind": "host" if timed else "exact", "kernel": "" if timed else "debian:6.1"},
        "timing": Timing(blocks=blocks) if timed else None,
    }
    return Study.model_validate(plain | settings)


def trials_of(study: Study, *, metrics: int = 1, environments: bool = False) -> Iterator[Trial]:
    """Every planned trial, as it might have ended: each fifth treatment is a percent slower."""
    effects = {one.key: 0.01 * (place % 5 == 4) for place, one in enumerate(plan(study).treatments)}
    for planned in plan(study).trials:
        yield _trial(study, planned, effects[planned.treatment.key], metrics, environments)


def _trial(study: Study, planned: PlannedTrial, effect: float, metrics: int, environments: bool) -> Trial:
    drawn = random.Random(digest([study.seed, planned.key]))
    taken = START + timedelta(seconds=planned.order)
    return Trial(
        planned=planned,
        outcome=Outcome.COMPLETED,
        samples=tuple(
            _sample(study, use.label, number, 1000 * (1 + effect) * (1 + drawn.gauss(0, SPREAD)))
            for use in study.workloads
            for number in range(metrics)
        ),
        counters=tuple(
            CounterDelta(workload=use.label, name=name, delta=float(drawn.randrange(1000)))
            for use in study.workloads
            for name in COUNTERS
        ),
        provenance=Provenance(
            kernel="debian:6.1",
            kernel_digest="digest of debian:6.1",
            machine=study.machine.kind,
            environment=_environment(taken, drawn) if environments else None,
        ),
        started=taken,
        seconds=0.25,
    )


def _sample(study: Study, workload: str, number: int, value: float) -> Sample:
    return Sample(
        workload=workload,
        metric=f"time {number}" if study.timing else "instructions",
        unit="ns",
        direction=Direction.LOWER,
        mode=Mode.TIMED if study.timing else Mode.EXACT_PLUGIN,
        value=value,
    )


def _environment(taken: datetime, drawn: random.Random) -> Environment:
    load = drawn.random() / 10
    return Environment(
        taken=taken,
        readings=(
            Reading(name="governor", kind=ReadingKind.SETTING, value="performance"),
            Reading(name="turbo", kind=ReadingKind.SETTING, value="on" if drawn.random() < 0.05 else "off"),
            Reading(name="load", kind=ReadingKind.LEVEL, value=f"{load:.2f}", number=load),
        ),
    )


# Stores of many studies with many trials, filled inside the database: a million trials in a minute.

TREATMENTS = 20


WORKLOADS = 5


PERTURBATIONS = 5


TRIALS = TREATMENTS * PERTURBATIONS
"""Of each study."""


_NUMBER = -987654321
"""In place of a study's number."""


_STUDIES = ("id", "name", "digest", "spec", "created", "made_by")


_NOTED = ("study_id", "what", "digest")


_DIGESTS = ("trial_id", "content", "counters", "profiles", "series")


def grown_store(directory: Path, trials: int) -> Path:
    """A file with a store of so many trials (a multiple of TRIALS), 100 a study."""
    path = directory / f"{trials}.db"
    with open_store(path) as store:
        first = _First(store)
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA synchronous = OFF")
        for table, columns, rows in first.copies(trials // TRIALS - 1):
            places = ", ".join("?" * len(columns))
            raw.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", rows)
        every = f"(SELECT id - 1 AS copy FROM studies WHERE id BETWEEN 2 AND {trials // TRIALS})"
        for statement in _filling(lambda table: _columns_of_file(raw, table)):
            raw.execute(statement.format(copies=every))
        raw.commit()
    with open_store(path) as store:
        summarised(store)
    return path


def grown_on_server(url: str, trials: int) -> None:
    """The same in an empty database of PostgreSQL's."""
    with open_store(url) as store:
        first = _First(store)
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute("SET session_replication_role = replica")  # digests come before their trials
        for table, columns, rows in first.copies(trials // TRIALS - 1):
            named = ", ".join(columns)
            with raw.cursor() as cursor, cursor.copy(f"COPY {table} ({named}) FROM STDIN".encode()) as to:
                for row in rows:
                    to.write_row(row)
        copies = f"generate_series(1, {trials // TRIALS - 1}) AS copy"
        for statement in _filling(lambda table: _columns_on_server(raw, table)):
            raw.execute(statement.format(copies=copies).encode())
        for table in ("studies", "trials"):
            raw.execute(f"SELECT setval('{table}_id_seq', (SELECT max(id) FROM {table}))".encode())
    with open_store(url) as store:
        summarised(store)
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute("VACUUM ANALYZE")  # as a server does by itself, in time


def _filling(columns_of: Any) -> Iterator[str]:
    """What copies the first study's trials, with all that is theirs, to others; `{copies}` are those."""
    moved = {"trials": {"id": f"id + copy * {TRIALS}", "study_id": "study_id + copy"}}
    moved |= {table: {"trial_id": f"trial_id + copy * {TRIALS}"} for table in ("samples", "counters")}
    for table, changed in moved.items():
        columns = [name for name in columns_of(table) if name != "id" or table == "trials"]
        values = ", ".join(changed.get(name, name) for name in columns)
        of_first = "study_id = 1" if table == "trials" else f"trial_id <= {TRIALS}"
        named = ", ".join(columns)
        yield f"INSERT INTO {table} ({named}) SELECT {values} FROM {table}, {{copies}} WHERE {of_first}"


def _columns_of_file(raw: sqlite3.Connection, table: str) -> list[str]:
    return [name for _, name, *_ in raw.execute(f"PRAGMA table_info({table})")]


def _columns_on_server(raw: psycopg.Connection, table: str) -> list[str]:
    query = "SELECT column_name FROM information_schema.columns WHERE table_name = %s"
    return [name for (name,) in raw.execute(query, [table])]


class _First:
    """The study that all others are like, stored in an empty store; and what is noted of those."""

    def __init__(self, store: Store) -> None:
        study = growing_study(TREATMENTS, workloads=WORKLOADS, timed=False, perturbations=PERTURBATIONS)
        number = store.study(study)
        assert number == 1, "the store was not empty"
        for trial in trials_of(study):
            store.add_trial(number, trial)
        self._study = study
        self._created = to_utc(store.find(number).created)
        self._texts = store.transactions.read(_texts_of_trials)

    def copies(self, count: int) -> Iterator[tuple[str, tuple[str, ...], Iterator[tuple[object, ...]]]]:
        """Table, columns and rows: each study again, under another name."""
        yield "studies", _STUDIES, (self._row(copy)[0] for copy in range(1, count + 1))
        yield "study_digests", _NOTED, (row for copy in range(1, count + 1) for row in self._noted(copy))
        yield "digests", _DIGESTS, (row for copy in range(1, count + 1) for row in self._digests(copy))

    def _noted(self, copy: int) -> Iterator[tuple[object, ...]]:
        """That of the study's own row, and which trials it has."""
        yield self._row(copy)[1]
        keys = (key for _, key, _, _ in self._texts)
        contents = (str(content) for _, content, *_ in self._digests(copy))
        yield 1 + copy, "trials", TrialSet.of(zip(keys, contents, strict=True)).text

    def _row(self, copy: int) -> tuple[tuple[object, ...], tuple[object, ...]]:
        named: Study = self._study.model_copy(update={"name": f"{self._study.name}-{copy}"})
        spec = named.model_dump(mode="json")
        row = {
            "name": named.name,
            "digest": digest(named),
            "spec": spec,
            "created": self._created,
            "made_by": "",
        }
        shown = (1 + copy, named.name, row["digest"], json.dumps(spec), str(self._created))
        return shown, (1 + copy, "study", study_row_digest(row))

    def _digests(self, copy: int) -> Iterator[tuple[object, ...]]:
        """Of a copy's trials. They are digests of text with the study's number in it."""
        for number, _, text, counters in self._texts:
            content = hashlib.sha256(text.replace(str(_NUMBER), str(1 + copy)).encode()).hexdigest()
            yield number + copy * TRIALS, content, counters, "{}", "{}"


def all_inside(_: object, table: str, rows: Sequence[Any]) -> list[Any]:
    """No profile lies in a file."""
    return list(rows)


def _texts_of_trials(connection: Any) -> list[tuple[int, str, str, str]]:
    """Each trial's number and key, what its digest is of (with _NUMBER as the study), its counters'
    digest."""
    numbers = list(range(1, TRIALS + 1))
    texts = []
    for number, rows in trials_by_number(connection, numbers, all_inside).items():
        text = content_text(rows._replace(trial={**rows.trial, "study_id": _NUMBER}))
        texts.append((number, rows.trial["key"], text, digest_row(number, rows)["counters"]))
    return texts


def summarised(store: Store) -> None:
    """What histories and sites ask of the studies is there, too, as each run leaves it."""
    states, (first, *copies) = store.study_states(), store.studies()
    trials = store.trials(first.id, counted=False)
    record = make_record(store, first, trials)
    facts = facts_of(first.id, first.study, trials)
    numbers = [
        (use.label, numbers_of(first.id, first.study, trials, use.label)) for use in first.study.workloads
    ]
    made = []
    for one in (first, *copies):
        own = {"study_id": one.id, "study": one.study.name}
        by_workload = {label: packed(each._replace(**own)) for label, each in numbers}  # type: ignore[arg-type]
        by_workload[OF_STUDY] = packed(facts._replace(**own))  # type: ignore[arg-type]
        made.append(StudySummaries(one.id, states[one.id], by_workload))
        made.append(summary_of(record, states[one.id])._replace(study_id=one.id))
    assert store.keep_summaries(made)
