"""Reads a store with its database's driver alone: for commands that have to start at once.

It reads a store of this ktrial's schema, in a file or in PostgreSQL, and nothing else. A store that is not
there, one of an older or newer schema, or one that is damaged cannot be read quickly: `open_store` makes it,
brings it up to date, or tells what is wrong with it.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ktrial.store import sqlite
from ktrial.store.errors import StoreError
from ktrial.store.head_file import check_log, head_file_of
from ktrial.store.location import path_of, postgresql_uri, shown_uri

if TYPE_CHECKING:
    import psycopg

    from ktrial.model.design import FactorLevels, Levels
    from ktrial.store.study_rows import StoredStudy

TRIAL_COUNT_DIGITS = 8
SCHEMA_VERSION = 1
"""Raise it with every change to a table, and with every field added to a model that is stored as JSON (Study,
PlannedTrial, Provenance, DataWarning, Tuned): an older ktrial must refuse what it cannot read. Whoever raises
it lets `ktrial.store.store` bring older stores up to it."""
_STUDIES = """
SELECT studies.id, studies.name, studies.digest, studies.spec, studies.created, studies.made_by,
    coalesce(counted.finished, 0), coalesce(counted.failed, 0),
    (SELECT digest FROM study_digests WHERE study_id = studies.id AND what = 'study'),
    (SELECT digest FROM study_digests WHERE study_id = studies.id AND what = 'trials')
FROM studies LEFT JOIN (
    SELECT study_id, sum(many) AS finished,
        sum(CASE WHEN outcome = 'completed' THEN 0 ELSE many END) AS failed
    FROM (SELECT study_id, outcome, count(*) AS many FROM trials GROUP BY study_id, outcome) AS by_outcome
    GROUP BY study_id
) AS counted ON counted.study_id = studies.id
ORDER BY studies.id
"""
"""Trials are counted by an index, before a study's own row comes to it."""
_LOGGED = "SELECT studies FROM log_entries ORDER BY number DESC LIMIT 1"
_CONNECT_SECONDS = 10


@dataclass(frozen=True)
class StudyRow:
    """A study in the store."""

    id: int
    name: str
    digest: str
    spec: dict[str, Any]
    """model.study.Study as JSON."""
    created: datetime
    finished: int
    """How many of its trials ended."""
    failed: int
    """How many of those ended with another outcome than `completed`."""

    @classmethod
    def of_sql(cls, row: tuple[Any, ...]) -> Self:
        """From what a database has: JSON as text, moments in UTC (SQLite: text); last what was noted.

        Raises ValueError, also where the row is not what was noted, or trials are missing; TypeError.
        """
        number, name, digest, spec, created, made_by, finished, failed, noted, noted_trials = row
        made = cls(number, name, digest, json.loads(spec), moment(created), int(finished), int(failed))
        as_row = {"name": name, "digest": digest, "spec": made.spec, "created": made.created}
        as_row["made_by"] = made_by
        if noted != study_row_digest(as_row):
            raise ValueError("the study is not what was stored")
        if noted_trial_count(noted_trials) != made.finished:
            raise ValueError("its trials are not those that were stored")
        return made

    @property
    def question(self) -> str:
        """The study's question."""
        return str(self.spec["question"])

    @property
    def made_by(self) -> str:
        """The command that made it for itself; empty: it is the user's."""
        return str(self.spec.get("made_by", ""))

    @property
    def is_search(self) -> bool:
        """Whether it searches: then its treatments are found while it runs."""
        return bool(self.spec.get("search"))

    @property
    def treatments(self) -> "tuple[Levels, ...]":
        """The levels of every treatment, as `model.study.treatments`."""
        from ktrial.model.design import combinations  # not for what lists and completes names alone

        return combinations(self._factors, self.spec["design"], self.spec["listed"])

    @cached_property
    def treatment_count(self) -> int:
        """How many treatments it has."""
        from ktrial.model.design import count

        return count(self._factors, self.spec["design"], self.spec["listed"])

    @property
    def _factors(self) -> "list[FactorLevels]":
        from ktrial.model.design import FactorLevels

        factors = self.spec["factors"]
        return [FactorLevels(factor["name"], factor["levels"], factor["baseline"]) for factor in factors]

    @property
    def labels(self) -> list[str]:
        """What its treatments are called."""
        from ktrial.model.design import label

        return [label(levels) for levels in self.treatments]

    @property
    def workloads(self) -> list[str]:
        """The labels of its workloads."""
        from ktrial.model.design import use_label

        return [use_label(use["name"], use["parameters"]) for use in self.spec["workloads"]]

    @property
    def planned(self) -> int | None:
        """How many trials there will be; of a search at most; None where only its time is limited."""
        if self.is_search:
            runs: int | None = self.spec["search"]["budget"]["runs"]
            return runs
        timing = self.spec["timing"]
        return self.treatment_count * int(timing["blocks"] if timing else self.spec["perturbations"])


def study_row_digest(row: Mapping[Any, Any]) -> str:
    """SHA-256 of what a row of `studies` says."""
    created = row["created"].replace(tzinfo=None).isoformat()
    values = [row["name"], row["digest"], row["spec"], created, row["made_by"]]
    return hashlib.sha256(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def noted_trial_count(noted: str) -> int:
    """How many trials a study has, as was noted (`integrity.TrialSet`). Raises ValueError, TypeError."""
    return int(noted[-TRIAL_COUNT_DIGITS:], 16)


def moment(stored: str | datetime) -> datetime:
    """A moment as a database has it: in UTC, without saying so. Raises ValueError, TypeError."""
    made = stored if isinstance(stored, datetime) else datetime.fromisoformat(stored)
    return made.replace(tzinfo=UTC)


def row_of(stored: "StoredStudy") -> StudyRow:
    """A stored study as its row has it."""
    spec = stored.study.model_dump(mode="json")
    return StudyRow(
        stored.id, stored.study.name, stored.digest, spec, stored.created, stored.finished, stored.failed
    )


class NoQuickReading(Exception):
    """The store has to be opened by `open_store`."""


class QuickReader:
    """A store that is open for reading."""

    def __init__(self, connection: "sqlite3.Connection | psycopg.Connection", name: str) -> None:
        self.name = name
        """As `Store.name`."""
        self._connection = connection

    def studies(self) -> tuple[StudyRow, ...]:
        """Every study, the newest last: as `Store.studies`. Raises NoQuickReading."""
        rows = tuple(StudyRow.of_sql(row) for row in self._connection.execute(_STUDIES))
        if self._connection.execute(_LOGGED).fetchone() != (len(rows),):
            raise NoQuickReading
        return rows


@contextmanager
def quick_reader(location: str | Path) -> Iterator[QuickReader]:
    """The store at a path or URL. Raises NoQuickReading, also for whatever goes wrong while it is read."""
    file, uri = path_of(location), postgresql_uri(location)
    try:
        if uri:
            with _on_postgresql(uri) as reader:
                yield reader
        elif file:
            with _in_file(file) as reader:
                yield reader
        else:
            raise NoQuickReading
    except (StoreError, sqlite3.Error, OSError, ValueError, KeyError, TypeError) as error:
        raise NoQuickReading from error


@contextmanager
def _in_file(file: Path) -> Iterator[QuickReader]:
    if sqlite.look(file) != SCHEMA_VERSION:
        raise NoQuickReading
    head_file = head_file_of(file, str(file))
    kept, before = head_file.read(), _state(file)
    connection = sqlite.connect_read_only(file)
    try:
        connection.execute("BEGIN")  # so that all that is read was true at one moment
        check_log(lambda query: connection.execute(query).fetchone(), kept, str(file), head_file.path)
        if sqlite.was_left_open(file, head_file):
            sqlite.check_quickly(connection, str(file))
        yield QuickReader(connection, str(file))
    finally:
        connection.close()
    if _state(file) != before:
        raise NoQuickReading  # without a log the file was read as one that nobody writes to


@contextmanager
def _on_postgresql(uri: str) -> Iterator[QuickReader]:
    try:
        import psycopg
    except ImportError as error:
        raise NoQuickReading from error
    head_file = head_file_of(None, shown_uri(uri))
    kept = head_file.read()
    try:
        with psycopg.connect(uri, connect_timeout=_CONNECT_SECONDS) as connection:
            connection.read_only = True
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            if connection.execute("SELECT version FROM ktrial_schema").fetchone() != (SCHEMA_VERSION,):
                raise NoQuickReading
            name = shown_uri(uri)
            check_log(lambda query: connection.execute(query.encode()).fetchone(), kept, name, head_file.path)
            yield QuickReader(connection, name)
    except psycopg.Error as error:
        raise NoQuickReading from error


def _state(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_mtime_ns, status.st_size
