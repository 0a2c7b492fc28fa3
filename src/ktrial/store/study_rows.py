"""What is stored of a study beside its trials: written with its digest, compared with it when it is read."""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, delete, func, insert, select, update
from sqlalchemy.schema import CreateIndex

from ktrial.fault_points import fault_point
from ktrial.model.attribution import Proof
from ktrial.model.kernel import KernelDifference
from ktrial.model.study import Study
from ktrial.model.trial import Outcome
from ktrial.model.tuning import Tuned
from ktrial.store import integrity, schema
from ktrial.store.integrity import ANSWER, PROOF, STUDY, NotAsStored, StudyName, StudyRow
from ktrial.store.postgresql import is_postgresql
from ktrial.store.schema import (
    answers,
    has,
    kernel_differences,
    proofs,
    studies,
    study_digests,
    summaries,
    trials,
    trials_by_outcome,
)
from ktrial.store.sqlite import undecodable_text


def store_study(connection: Connection, values: schema.RowValues) -> int:
    """The id of the study with this digest (model.base.digest); a new one is inserted.

    One whose row is not what was stored is put right: what it asks for is known again.
    """
    if not is_postgresql(connection):  # where it was made with the tables, and this would wait for writers
        # A file that an older ktrial made does not have it.
        connection.execute(CreateIndex(trials_by_outcome, if_not_exists=True))
    number = connection.scalar(select(studies.c.id).where(studies.c.digest == values["digest"]))
    if number is None:
        inserted = connection.execute(insert(studies).values(**values)).inserted_primary_key
        assert inserted is not None, "every table has one integer as its key"
        number = int(inserted[0])
        fault_point("store: study inserted")
        integrity.note_study_digest(connection, number, STUDY, integrity.study_row_digest(values))
        integrity.note_trial_set(connection, number, integrity.TrialSet())
        return number
    try:
        study_row(connection, number)
    except (NotAsStored, *integrity.UNREADABLE):
        connection.execute(update(studies).where(studies.c.id == number).values(**values))
        integrity.note_study_digest(connection, number, STUDY, integrity.study_row_digest(values))
    return int(number)


def study_row(connection: Connection, number: int, query: Select[Any] | None = None) -> RowMapping:
    """The study's row. Raises NotAsStored where it is not what was stored, or has a text that is none.

    `query`: which reads it; without, all columns and nothing else.
    """
    query = select(studies).where(studies.c.id == number) if query is None else query
    try:
        with undecodable_text():
            row = connection.execute(query).mappings().one()
    except UnicodeError as error:
        raise NotAsStored(STUDY, number) from error
    check_study_row(integrity.noted_study_digests(connection, number), row)
    return row


def check_study_row(noted: dict[tuple[int, str], str], row: RowMapping) -> None:
    """Raises NotAsStored where a row of `studies` is not."""
    if not integrity.fits_noted(noted, row["id"], STUDY, integrity.study_row_digest(row)):
        raise NotAsStored(STUDY, row["id"])


def store_answer(connection: Connection, study_id: int, tuned: Tuned) -> None:
    """In place of an older one."""
    connection.execute(delete(answers).where(answers.c.study_id == study_id))
    fault_point("store: older answer removed")
    row = schema.answer_row(study_id, tuned)
    connection.execute(insert(answers).values(**row))
    integrity.note_study_digest(connection, study_id, ANSWER, integrity.digest_of_content(row["content"]))


def read_answer(connection: Connection, study_id: int) -> Tuned | None:
    """None where there is none. Raises NotAsStored, zlib.error, pydantic.ValidationError."""
    if not has(connection, answers):
        return None
    content = connection.scalar(select(answers.c.content).where(answers.c.study_id == study_id))
    if content is None:
        return None
    made = integrity.digest_of_content(content)
    if not integrity.fits_noted(integrity.noted_study_digests(connection, study_id), study_id, ANSWER, made):
        raise NotAsStored(ANSWER, study_id)
    return schema.answer_of(content)


def store_proof(connection: Connection, study_id: int, proof: Proof) -> None:
    """In place of an older one of the same difference."""
    row = schema.proof_row(study_id, proof)
    same = [proofs.c[name] == row[name] for name in ("study_id", "difference")]
    connection.execute(delete(proofs).where(*same))
    fault_point("store: older proof removed")
    connection.execute(insert(proofs).values(**row))
    what = integrity.proof_part(row["difference"])
    integrity.note_study_digest(connection, study_id, what, integrity.digest_of_content(row["content"]))


def read_proofs(connection: Connection, study_id: int) -> tuple[Proof, ...]:
    """In the order of storing. Raises NotAsStored, zlib.error, pydantic.ValidationError."""
    if not has(connection, proofs):
        return ()
    query = select(proofs).where(proofs.c.study_id == study_id).order_by(proofs.c.id)
    records = connection.execute(query).mappings().all()
    noted = integrity.noted_study_digests(connection, study_id) if records else {}
    for row in records:
        what = integrity.proof_part(row["difference"])
        if not integrity.fits_noted(noted, study_id, what, integrity.digest_of_content(row["content"])):
            raise NotAsStored(PROOF, study_id)
    return tuple(schema.proof_of(row["content"]) for row in records)


def studies_with_proofs(connection: Connection) -> frozenset[int]:
    """Studies of which something was proved."""
    there = has(connection, proofs)
    return frozenset(connection.scalars(select(proofs.c.study_id).distinct())) if there else frozenset()


def store_kernel_difference(connection: Connection, study_id: int, difference: KernelDifference) -> None:
    """In place of an older one between the same kernels."""
    table, row = kernel_differences, schema.kernel_difference_row(study_id, difference)
    same = [table.c[name] == row[name] for name in ("study_id", "before", "after")]
    connection.execute(delete(table).where(*same))
    fault_point("store: older kernel difference removed")
    connection.execute(insert(table).values(**row))
    what = integrity.difference_part(row["before"], row["after"])
    integrity.note_study_digest(connection, study_id, what, integrity.digest_of_content(row["content"]))


def read_kernel_differences(connection: Connection, study_id: int) -> tuple[KernelDifference, ...]:
    """In the order of storing. Raises NotAsStored, zlib.error, pydantic.ValidationError."""
    table = kernel_differences
    if not has(connection, table):
        return ()
    query = select(table).where(table.c.study_id == study_id).order_by(table.c.id)
    records = connection.execute(query).mappings().all()
    noted = integrity.noted_study_digests(connection, study_id) if records else {}
    for row in records:
        what = integrity.difference_part(row["before"], row["after"])
        if not integrity.fits_noted(noted, study_id, what, integrity.digest_of_content(row["content"])):
            raise NotAsStored("difference between kernels", study_id)
    return tuple(schema.kernel_difference_of(row["content"]) for row in records)


# Studies as they are read: each with how many of its trials ended, and compared with its digest.

_ENDED = func.count(trials.c.id).filter(trials.c.outcome != Outcome.MACHINE_FAILED.value)


_COMPLETED = func.count(trials.c.id).filter(trials.c.outcome == Outcome.COMPLETED.value)


_STUDIES = (
    select(studies, _ENDED.label("finished"), (_ENDED - _COMPLETED).label("failed"))
    .outerjoin(trials, trials.c.study_id == studies.c.id)
    .group_by(studies.c.id)
)
"""Studies with how many of their trials ended, and how many of those failed: from an index alone."""


_COUNTED = (
    select(trials.c.study_id, _ENDED.label("finished"), (_ENDED - _COMPLETED).label("failed"))
    .group_by(trials.c.study_id)
    .subquery()
)


_EVERY = select(
    studies,
    func.coalesce(_COUNTED.c.finished, 0).label("finished"),
    func.coalesce(_COUNTED.c.failed, 0).label("failed"),
).outerjoin(_COUNTED, _COUNTED.c.study_id == studies.c.id)
"""The same of all at once: PostgreSQL would sort a million trials with their studies' texts beside them."""


_FEW = 50
"""Studies that are read each by itself: a query each."""


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


def every_study(connection: Connection) -> tuple[StoredStudy, ...]:
    """Every study, the newest last. Raises NotAsStored, and what reading a damaged row raises."""
    noted = integrity.noted_study_digests(connection)
    rows_by_id = connection.execute(_EVERY.order_by(studies.c.id)).mappings()
    return tuple(_stored(row, noted) for row in rows_by_id)


def some_studies(connection: Connection, numbers: Collection[int]) -> tuple[StoredStudy, ...]:
    """Those of these studies that are there, the newest last. Raises as `every`."""
    if len(numbers) > _FEW:
        return tuple(one for one in every_study(connection) if one.id in numbers)
    asked_for = (newest_study(connection, studies.c.id == number) for number in sorted(numbers))
    return tuple(one for one in asked_for if one is not None)


def readable_studies(
    connection: Connection, numbers: Collection[int] | None = None
) -> tuple[tuple[StoredStudy, ...], tuple[StudyName, ...]]:
    """The studies that are as they were stored, and those that are not; the newest last."""
    if numbers is not None and len(numbers) <= _FEW:
        return _one_by_one(connection, numbers)
    try:
        with undecodable_text():
            sound, damaged = every_study(connection), ()
    except (integrity.NotAsStored, *integrity.UNREADABLE):
        return _one_by_one(connection, numbers)
    return tuple(one for one in sound if numbers is None or one.id in numbers), damaged


def _one_by_one(
    connection: Connection, numbers: Collection[int] | None
) -> tuple[tuple[StoredStudy, ...], tuple[StudyName, ...]]:
    sound, damaged = [], []
    noted = integrity.noted_study_digests(connection)
    for number, name in integrity.study_names(connection):
        if numbers is not None and number not in numbers:
            continue
        try:
            with undecodable_text():
                row = connection.execute(_STUDIES.where(studies.c.id == number)).mappings().one()
            sound.append(_stored(row, noted))
        except (integrity.NotAsStored, *integrity.UNREADABLE):
            damaged.append(StudyName(number, name))
    return tuple(sound), tuple(damaged)


def newest_study(connection: Connection, *which: ColumnElement[bool]) -> StoredStudy | None:
    """The study stored last of those; None where there is none."""
    number = connection.scalar(select(func.max(studies.c.id)).where(*which))
    if number is None:
        return None
    row = study_row(connection, number, _STUDIES.where(studies.c.id == number))
    return _stored(row, integrity.noted_study_digests(connection, number))


def _stored(row: RowMapping, noted: dict[tuple[int, str], str]) -> StoredStudy:
    check_study_row(noted, row)
    return StoredStudy(
        id=row["id"],
        study=Study.model_validate(row["spec"]),
        digest=row["digest"],
        created=schema.from_utc(row["created"]),
        finished=row["finished"],
        failed=row["failed"],
    )


# What tells one content of a study from another, from indexes alone: trials are not read.


def study_states(connection: Connection, number: int | None = None) -> dict[int, str]:
    """A study's number → a digest that changes with its trials, its answer, proofs and kernel differences.
    `number`: of this one alone.

    A trial that is stored is never changed; only one that did not complete is ever replaced, by one that was
    started later.
    """
    numbers = connection.scalars(select(studies.c.id).where(*_only(studies.c.id, number)))
    made = {each: hashlib.sha256() for each in numbers}
    for row in _facts(connection, number):
        if row[0] in made:
            made[row[0]].update(repr(tuple(row)).encode())
    return {each: digest.hexdigest() for each, digest in made.items()}


def _only(column: ColumnElement[int], number: int | None) -> Iterable[ColumnElement[bool]]:
    return () if number is None else (column == number,)


def _facts(connection: Connection, number: int | None) -> Iterable[Any]:
    counts = select(trials.c.study_id, trials.c.outcome, func.count(trials.c.id), func.max(trials.c.id))
    counts = counts.where(*_only(trials.c.study_id, number))
    by_outcome = (trials.c.study_id, trials.c.outcome)
    yield from connection.execute(counts.group_by(*by_outcome).order_by(*by_outcome)).all()
    others = [one.value for one in Outcome if one is not Outcome.COMPLETED]
    # Each study by itself: the index begins with it.
    failed = select(trials.c.study_id, trials.c.id, trials.c.started).where(
        trials.c.study_id.in_(select(studies.c.id).where(*_only(studies.c.id, number))),
        trials.c.outcome.in_(others),
    )
    yield from connection.execute(failed.order_by(trials.c.id))
    if has(connection, study_digests):
        noted = select(study_digests.c.study_id, study_digests.c.what, study_digests.c.digest)
        noted = noted.where(*_only(study_digests.c.study_id, number))
        yield from connection.execute(noted.order_by(study_digests.c.study_id, study_digests.c.what)).all()


# What studies' trials say of a workload, kept so that a history need not read the trials.
#
# A summary can always be made again: one that is damaged, or whose study has changed, is not returned.

OF_STUDY = ""
"""In place of a workload: what is said of a study as a whole."""


OF_RESULT = "(result)"
"""In place of a workload: what a study came to. No workload's label begins so."""


OF_FIDELITY = "(fidelity)"
"""The same: how far what was counted agrees with a study in real time."""


class Summary(NamedTuple):
    """What was kept of a study."""

    state: str
    """The study's then (`study_states`), or what else it is true for."""
    content: bytes


class StudySummaries(NamedTuple):
    """Summaries of a study, which are kept together."""

    study_id: int
    state: str
    by_workload: Mapping[str, bytes]


def workload_summaries(connection: Connection, workload: str) -> dict[int, Summary]:
    """Study → its summary of the workload (its label), where it has one that is as it was stored."""
    if not has(connection, summaries):
        return {}
    columns = (summaries.c.study_id, summaries.c.state, summaries.c.content, summaries.c.digest)
    rows = connection.execute(select(*columns).where(summaries.c.workload == workload)).all()
    return {
        number: Summary(state, content) for number, state, content, digest in rows if _of(content) == digest
    }


def keep_summaries(connection: Connection, made: Iterable[StudySummaries]) -> None:
    """In place of older ones of the same workloads."""
    for one in made:
        same = (summaries.c.study_id == one.study_id, summaries.c.workload.in_(list(one.by_workload)))
        connection.execute(delete(summaries).where(*same))
        rows = [
            {
                "study_id": one.study_id,
                "workload": workload,
                "state": one.state,
                "content": content,
                "digest": _of(content),
            }
            for workload, content in one.by_workload.items()
        ]
        connection.execute(insert(summaries), rows)


def _of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
