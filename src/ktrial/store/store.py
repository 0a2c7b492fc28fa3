"""The store: studies and the trials that ended. Every trial is written in one transaction as it ends."""

import contextlib
import difflib
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import ValidationError
from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    RowMapping,
    Table,
    delete,
    func,
    inspect,
    select,
)
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.schema import CreateIndex

from ktrial.fault_points import fault_point
from ktrial.model.base import digest
from ktrial.model.kernel_diff import KernelDifference
from ktrial.model.profile import Profile
from ktrial.model.proof import Proof
from ktrial.model.study import Study
from ktrial.model.time_series import Sampled
from ktrial.model.trial import Outcome, Trial
from ktrial.model.tuning import Tuned
from ktrial.store import row_conversion, study_digests, study_rows, trial_digests, trial_rows
from ktrial.store.errors import (
    StoreDamaged,
    StoreGone,
    StudyDamaged,
    StudyNotStored,
    TrialsDamaged,
)
from ktrial.store.failures import Conflict, failure
from ktrial.store.schema import (
    profiles,
    series,
    studies,
    trials,
    trials_by_outcome,
)
from ktrial.store.study_digests import StudyCheck, StudyName
from ktrial.store.study_summary import StudyRow
from ktrial.store.trial_digests import TrialCheck

NOTHING_REPLACED: frozenset[Outcome] = frozenset()
_LARGEST_ID = 2**63 - 1
_ENDED = func.count(trials.c.id).filter(trials.c.outcome != Outcome.MACHINE_FAILED.value)
_COMPLETED = func.count(trials.c.id).filter(trials.c.outcome == Outcome.COMPLETED.value)
_STUDIES = (
    select(studies, _ENDED.label("finished"), (_ENDED - _COMPLETED).label("failed"))
    .outerjoin(trials, trials.c.study_id == studies.c.id)
    .group_by(studies.c.id)
)
"""Studies with how many of their trials ended, and how many of those failed: from an index alone."""


@dataclass(frozen=True)
class StoredStudy:
    """A study in the store, without its trials."""

    id: int
    study: Study
    digest: str
    created: datetime
    finished: int
    """How many of its trials ended."""
    failed: int
    """How many of those ended with another outcome than `completed`."""

    def row(self) -> StudyRow:
        """The same as its row has it."""
        spec = self.study.model_dump(mode="json", by_alias=True)
        return StudyRow(self.id, self.study.name, self.digest, spec, self.created, self.finished, self.failed)


class Store:
    """An open store. Safe to use from several threads and from several processes at once.

    Every method raises a StoreError: StoreLocked, StoreFull, StoreForbidden, StoreDamaged.
    """

    def __init__(self, engine: Engine, name: str, file: Path | None) -> None:
        self.name = name
        """The path, or the URL without its password: for messages."""
        self._engine = engine
        self._file = file
        self._opened = _file_number(file)

    def study(self, study: Study) -> int:
        """The study's id; a new one is stored. The same study (by digest) has the same id: resumption."""
        key = digest(study)
        values = {
            "name": study.name,
            "digest": key,
            "spec": study.model_dump(mode="json", by_alias=True),
            "created": row_conversion.to_utc(datetime.now(UTC)),
        }
        try:
            with self._writing() as connection:
                # A store that an older ktrial made does not have it.
                connection.execute(CreateIndex(trials_by_outcome, if_not_exists=True))
                return study_rows.store(connection, values)
        except Conflict:
            # On a server another process can come in between; then the study is there.
            with self._reading() as connection:
                return int(
                    connection.execute(select(studies.c.id).where(studies.c.digest == key)).scalar_one()
                )

    def finished_keys(self, study_id: int, *, apart_from: frozenset[Outcome] = NOTHING_REPLACED) -> set[str]:
        """PlannedTrial.key of every stored trial, apart from those with one of the outcomes."""
        query = select(trials.c.key).where(
            trials.c.study_id == study_id, trials.c.outcome.not_in([outcome.value for outcome in apart_from])
        )
        with self._reading() as connection:
            return set(connection.scalars(query))

    def add_trial(
        self, study_id: int, trial: Trial, *, replaces: frozenset[Outcome] = NOTHING_REPLACED
    ) -> bool:
        """Store a trial that ended, with all that belongs to it, in one transaction.

        A stored trial of the same key is kept (False is returned), unless its outcome is in `replaces`.
        """
        same = (trials.c.study_id == study_id, trials.c.key == trial.planned.key)
        try:
            with self._writing() as connection:
                if replaces:
                    old = trials.c.outcome.in_([outcome.value for outcome in replaces])
                    connection.execute(delete(trials).where(*same, old))
                    fault_point("store: older trial removed")
                if connection.scalar(select(trials.c.id).where(*same)) is not None:
                    return False
                trial_rows.store(connection, study_id, trial)
        except Conflict:
            return False
        return True

    def studies(self) -> tuple[StoredStudy, ...]:
        """Every study, the newest last."""
        with self._reading() as connection:
            noted = study_digests.noted(connection)
            rows_by_id = connection.execute(_STUDIES.order_by(studies.c.id)).mappings()
            return tuple(self._stored(row, noted) for row in rows_by_id)

    def readable_studies(self) -> tuple[tuple[StoredStudy, ...], tuple[StudyName, ...]]:
        """The studies that are as they were stored, and those that are not; the newest last."""
        sound, damaged = [], []
        with self._reading() as connection:
            noted = study_digests.noted(connection)
            for number, name in study_digests.named(connection):
                try:
                    row = connection.execute(_STUDIES.where(studies.c.id == number)).mappings().one()
                    sound.append(self._stored(row, noted))
                except (study_digests.NotAsStored, *study_digests.UNREADABLE):
                    damaged.append(StudyName(number, name))
        return tuple(sound), tuple(damaged)

    def names(self) -> frozenset[str]:
        """What the studies are called."""
        with self._reading() as connection:
            return frozenset(connection.scalars(select(studies.c.name).distinct()))

    def newest(self, *, digest: str | None = None) -> StoredStudy | None:
        """The study stored last; or the one with this digest (model.base.digest). None: there is none."""
        return self._newest(*(() if digest is None else (studies.c.digest == digest,)))

    def find(self, study: int | str) -> StoredStudy:
        """The study with this id, or the newest with this name. Raises StudyNotStored."""
        text = str(study)
        stored = self._newest(studies.c.name == study) if isinstance(study, str) else None
        if stored is None and text.isascii() and text.isdigit() and int(text) <= _LARGEST_ID:
            stored = self._newest(studies.c.id == int(text))
        if stored is not None:
            return stored
        near = difflib.get_close_matches(text, self.names(), n=1)
        raise StudyNotStored(
            store=self.name, study=study, similar=f": did you mean {near[0]}?" if near else ""
        )

    def trials(self, study_id: int, *, counted: bool = True) -> tuple[Trial, ...]:
        """The study's trials that ended, in run order. `counted=False`: without their event counters, which
        are most of what is read.
        """
        with self._reading() as connection:
            found, damaged = trial_rows.read(connection, study_id, counted=counted)
            if damaged:
                raise self._damaged(study_id, damaged)
            return found

    def check_trials(self, study_id: int) -> tuple[TrialCheck, ...]:
        """Compare every trial of the study, and all that belongs to it, with its digest."""
        with self._reading() as connection:
            return trial_digests.checks(connection, study_id)

    def check_studies(self) -> tuple[StudyCheck, ...]:
        """Compare what is stored of every study, apart from its trials, with its digests."""
        with self._reading() as connection:
            return tuple(study_digests.checks(connection))

    def remove_damaged(self, check: StudyCheck) -> None:
        """Take away what `check_studies` found damaged."""
        with self._writing() as connection:
            study_digests.remove(connection, check)

    def remove_trials(self, numbers: Collection[int]) -> None:
        """Take trials away (TrialCheck.trial_id), with all that belongs to them."""
        with self._writing() as connection:
            connection.execute(delete(trials).where(trials.c.id.in_(numbers)))

    def _damaged(self, study_id: int, count: int) -> TrialsDamaged:
        many = "1 trial" if count == 1 else f"{count} trials"
        differ = "differs" if count == 1 else "differ"
        return TrialsDamaged(store=self.name, trials=many, differ=differ, study=study_id)

    def profile(self, study_id: int, trial_key: str, workload: str) -> Profile | None:
        """What the plugin counted by function in one trial (PlannedTrial.key), in one workload (its label).

        None where nothing was: a trial of another mode, of an older ktrial, or without symbols.
        """
        query = (
            select(profiles)
            .join(trials, trials.c.id == profiles.c.trial_id)
            .where(trials.c.study_id == study_id, trials.c.key == trial_key, profiles.c.workload == workload)
        )
        with self._reading() as connection:
            row = connection.execute(query).mappings().first() if _has(connection, profiles) else None
            if row is None:
                return None
            if not trial_digests.blobs_fit(connection, profiles, [row]):
                raise self._damaged(study_id, 1)
            return row_conversion.profile_of(row["content"])

    def profiled(self, study_id: int) -> frozenset[str]:
        """Workloads (their labels) of which at least one trial of the study has a profile."""
        query = (
            select(profiles.c.workload)
            .join(trials, trials.c.id == profiles.c.trial_id)
            .where(trials.c.study_id == study_id)
        )
        with self._reading() as connection:
            there = _has(connection, profiles)
            return frozenset(connection.scalars(query.distinct())) if there else frozenset()

    def sampled(self, study_id: int, trial_key: str) -> tuple[Sampled, ...]:
        """What monitors read over time in one trial (PlannedTrial.key), one a workload."""
        query = (
            select(series)
            .join(trials, trials.c.id == series.c.trial_id)
            .where(trials.c.study_id == study_id, trials.c.key == trial_key)
            .order_by(series.c.id)
        )
        with self._reading() as connection:
            records = connection.execute(query).mappings().all() if _has(connection, series) else []
            if not trial_digests.blobs_fit(connection, series, records):
                raise self._damaged(study_id, 1)
            return tuple(row_conversion.sampled_of(row["content"]) for row in records)

    def add_kernel_difference(self, study_id: int, difference: KernelDifference) -> None:
        """Store what differs between two kernels of the study, by their digests; an older one is replaced."""
        with contextlib.suppress(Conflict), self._writing() as connection:
            study_rows.store_difference(connection, study_id, difference)

    def kernel_differences(self, study_id: int) -> tuple[KernelDifference, ...]:
        """What is known about the differences between the study's kernels, in the order of storing."""
        with self._reading() as connection:
            return study_rows.differences(connection, study_id)

    def add_answer(self, study_id: int, tuned: Tuned) -> None:
        """Store what a search came to; an older answer is replaced."""
        with contextlib.suppress(Conflict), self._writing() as connection:
            study_rows.store_answer(connection, study_id, tuned)

    def answer(self, study_id: int) -> Tuned | None:
        """What the search came to; None where it has not ended, or no search was, or ktrial was older."""
        with self._reading() as connection:
            return study_rows.answer(connection, study_id)

    def add_proof(self, study_id: int, proof: Proof) -> None:
        """Store which causes were proved of one difference of the study; an older proof of it is replaced."""
        with contextlib.suppress(Conflict), self._writing() as connection:
            study_rows.store_proof(connection, study_id, proof)

    def proofs(self, study_id: int) -> tuple[Proof, ...]:
        """What was proved about the study's differences, in the order of storing."""
        with self._reading() as connection:
            return study_rows.proofs_of(connection, study_id)

    def delete(self, study_id: int) -> None:
        """Remove the study and its trials. Raises StudyNotStored."""
        with self._writing() as connection:
            gone = connection.execute(delete(studies).where(studies.c.id == study_id)).rowcount
            fault_point("store: study removed")
        if not gone:
            raise StudyNotStored(store=self.name, study=study_id, similar="")

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _newest(self, *which: ColumnElement[bool]) -> StoredStudy | None:
        newest = select(func.max(studies.c.id)).where(*which).scalar_subquery()
        with self._reading() as connection:
            row = connection.execute(_STUDIES.where(studies.c.id == newest)).mappings().one_or_none()
            return None if row is None else self._stored(row, study_digests.noted(connection))

    def _stored(self, row: RowMapping, noted: dict[tuple[int, str], str]) -> StoredStudy:
        study_rows.check(noted, row)
        return StoredStudy(
            id=row["id"],
            study=Study.model_validate(row["spec"]),
            digest=row["digest"],
            created=row_conversion.from_utc(row["created"]),
            finished=row["finished"],
            failed=row["failed"],
        )

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        options = {"ktrial_writes": True}
        with self._told(), self._engine.execution_options(**options).begin() as connection:
            fault_point("store: transaction begun")
            yield connection
            fault_point("store: transaction about to be committed")
        fault_point("store: transaction committed")
        self._check_there()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._told(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what a database's driver raises into a StoreError. Raises StoreGone."""
        self._check_there()
        try:
            yield
        except study_digests.NotAsStored as error:
            facts = {"what": error.what, "study": error.study_id}
            raise StudyDamaged(store=self.name, **facts) from None
        except IntegrityError as error:
            raise Conflict(store=self.name, problem=str(error.orig)) from error
        except ValidationError as error:
            raise StoreDamaged(store=self.name, problem=f"a row cannot be read ({error.title})") from error
        except ValueError as error:  # what SQLAlchemy's types for JSON and for dates raise
            raise StoreDamaged(store=self.name, problem=f"a row cannot be read ({error})") from error
        except zlib.error as error:
            raise StoreDamaged(
                store=self.name, problem=f"what was compressed cannot be read ({error})"
            ) from error
        except SQLAlchemyError as error:
            raise failure(error, self.name, self._file) from error

    def _check_there(self) -> None:
        """SQLite goes on with a file that has no name any more, and all of it is gone with the process."""
        now = _file_number(self._file)
        if now != self._opened:
            raise StoreGone(store=self.name, what="replaced" if now else "deleted")


def _file_number(file: Path | None) -> tuple[int, int] | None:
    """What tells a file from another of its name; None where it is not there, or the store is on a server."""
    if file is None:
        return None
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _has(connection: Connection, table: Table) -> bool:
    """Whether the table is there: a store of an older schema that may only be read does not have all."""
    return inspect(connection).has_table(table.name)
