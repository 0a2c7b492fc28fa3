"""Studies in the store: what each asks for and how many of its trials ended, and what is stored beside its
trials.

That is a search's answer, what differs between its kernels, what was proved of it, and summaries of what its
trials say. All of it is written with its digest, and compared with that when it is read.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    Table,
    delete,
    func,
    insert,
    select,
    update,
)

from ktrial.fault_points import fault_point
from ktrial.model.regression import Regression
from ktrial.model.study import Study
from ktrial.model.trial import Outcome
from ktrial.store import integrity, log
from ktrial.store.integrity import (
    ANSWER,
    KERNEL_DIFFERENCE,
    PROOF,
    REGRESSION,
    STUDY,
    UNREADABLE,
    NotAsStored,
    StudyDigests,
    StudyName,
)
from ktrial.store.quick_reader import noted_trial_count, study_row_digest
from ktrial.store.schema import (
    SQLITE,
    Compressible,
    activities,
    answers,
    decompressed,
    from_utc,
    kernel_differences,
    proofs,
    regressions,
    studies,
    study_digests,
    summaries,
    trials,
)
from ktrial.store.sqlite import undecodable_text


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


_ENDED = func.count(trials.c.id)
_COMPLETED = _ENDED.filter(trials.c.outcome == Outcome.COMPLETED.value)
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
_ALL_STUDIES = select(
    studies,
    func.coalesce(_COUNTED.c.finished, 0).label("finished"),
    func.coalesce(_COUNTED.c.failed, 0).label("failed"),
).outerjoin(_COUNTED, _COUNTED.c.study_id == studies.c.id)
"""The same of all at once: PostgreSQL would sort a million trials with their studies' texts beside them."""
_NUMBER_OF_STUDIES = select(func.count()).select_from(studies).with_hint(studies, "NOT INDEXED", SQLITE)
"""In the table itself: an index may still have a study that is lost."""
HAS_TRIALS = select(trials.c.id).where(trials.c.study_id == studies.c.id).exists()
"""Of a study: at least one of its trials ended."""
_FEW = 50
"""Studies that are read each by itself: a query each."""


def every_study(connection: Connection) -> tuple[StoredStudy, ...]:
    """Every study, the newest last. Raises NotAsStored, StudiesNotThere, LogNotWhole, and what reading a
    damaged row raises.
    """
    noted = integrity.noted_study_digests(connection)
    rows = connection.execute(_ALL_STUDIES.order_by(studies.c.id)).mappings().all()
    log.check_study_count(connection, len(rows))
    return tuple(_stored_study(row, noted) for row in rows)


def some_studies(connection: Connection, numbers: Collection[int]) -> tuple[StoredStudy, ...]:
    """Those of these studies that are there, the newest last. Raises as `every_study`."""
    if len(numbers) > _FEW:
        return tuple(stored for stored in every_study(connection) if stored.id in numbers)
    one_by_one = (newest_study(connection, studies.c.id == number) for number in sorted(numbers))
    return tuple(stored for stored in one_by_one if stored is not None)


def readable_studies(
    connection: Connection, numbers: Collection[int] | None = None
) -> tuple[tuple[StoredStudy, ...], tuple[StudyName, ...]]:
    """The studies that are as they were stored, and those that are not, or not there; the newest last.

    Of the first all trials are there that were, as far as their number says it. Raises LogNotWhole.
    """
    if numbers is None or len(numbers) > _FEW:
        try:
            with undecodable_text():
                sound = every_study(connection)
            if numbers is not None:
                return tuple(stored for stored in sound if stored.id in numbers), ()
            noted = integrity.noted_study_digests(connection)
            if all(_has_its_trials(stored, noted) for stored in sound):
                return sound, ()
        except (NotAsStored, log.StudiesNotThere, *UNREADABLE):
            pass  # one of them is damaged: which one is found below
    readable, damaged = [], []
    noted = integrity.noted_study_digests(connection)
    for name in integrity.study_names(connection):
        if numbers is not None and name.id not in numbers:
            continue
        try:
            with undecodable_text():
                row = connection.execute(_STUDIES.where(studies.c.id == name.id)).mappings().one()
            stored = _stored_study(row, noted)
        except (NotAsStored, *UNREADABLE):
            damaged.append(name)
            continue
        if numbers is not None or _has_its_trials(stored, noted):
            readable.append(stored)
        else:
            damaged.append(name)
    missing = missing_studies(connection) if numbers is None else []
    return tuple(readable), tuple(sorted([*damaged, *missing]))


def _has_its_trials(stored: StoredStudy, noted: StudyDigests) -> bool:
    """Whether as many are there as were noted: they are counted in an index, which may be damaged too."""
    try:
        return noted_trial_count(noted[stored.id, integrity.TRIALS]) == stored.finished
    except (KeyError, ValueError):
        return False


def missing_studies(connection: Connection) -> list[StudyName]:
    """Those that should be there, as the log says."""
    there = {name.id for name in integrity.study_names(connection)}
    logged = log.follow(connection).studies
    return [StudyName(number, name) for number, name in logged.items() if number not in there]


def newest_study(connection: Connection, *which: ColumnElement[bool]) -> StoredStudy | None:
    """The study stored last of those; None where there is none.

    Raises StudiesNotThere where it may be one that is missing.
    """
    number = connection.scalar(select(func.max(studies.c.id)).where(*which))
    if number is None or not which:
        log.check_study_count(connection, connection.scalar(_NUMBER_OF_STUDIES) or 0)
    if number is None:
        return None
    row = study_row(connection, number, _STUDIES.where(studies.c.id == number))
    return _stored_study(row, integrity.noted_study_digests(connection, number))


def studies_of_commands(connection: Connection) -> dict[int, str]:
    """The numbers of studies that commands made for themselves, with the command."""
    query = select(studies.c.id, studies.c.made_by).where(studies.c.made_by != "")
    return dict(connection.execute(query).all())


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
    _check_study_row(integrity.noted_study_digests(connection, number), row)
    return row


def _check_study_row(noted: StudyDigests, row: RowMapping) -> None:
    if noted.get((row["id"], STUDY)) != study_row_digest(row):
        raise NotAsStored(STUDY, row["id"])


def _stored_study(row: RowMapping, noted: StudyDigests) -> StoredStudy:
    _check_study_row(noted, row)
    return StoredStudy(
        id=row["id"],
        study=Study.model_validate(row["spec"]),
        digest=row["digest"],
        created=from_utc(row["created"]),
        finished=row["finished"],
        failed=row["failed"],
    )


def store_study(connection: Connection, values: Mapping[str, Any]) -> int:
    """The id of the study with this digest (model.base.digest); a new one is inserted.

    One whose row is not what was stored is put right: what it asks for is known again.
    """
    number = connection.scalar(select(studies.c.id).where(studies.c.digest == values["digest"]))
    if number is None:
        inserted = connection.execute(insert(studies).values(**values)).inserted_primary_key
        assert inserted is not None, "every table has one integer as its key"
        number = int(inserted[0])
        fault_point("store: study inserted")
        integrity.note_new_study(connection, number, values["name"], study_row_digest(values))
        return number
    try:
        study_row(connection, number)
    except (NotAsStored, *UNREADABLE):
        connection.execute(update(studies).where(studies.c.id == number).values(**values))
        integrity.note_study_put_right(connection, int(number), values["name"], study_row_digest(values))
    return int(number)


def remove_if_empty(connection: Connection, number: int) -> bool:
    """Take a study away that has neither trials nor a run that is told; whether it was taken away."""
    # On a server a run that is just being told has this row, too: it is waited for.
    connection.execute(select(studies.c.id).where(studies.c.id == number).with_for_update())
    for table in (trials, activities):
        if connection.scalar(select(table.c.id).where(table.c.study_id == number).limit(1)) is not None:
            return False
    return integrity.remove_study(connection, number)


class StudyPart(NamedTuple):
    """One kind of what is stored of a study beside its trials."""

    kind: str
    table: Table
    keys: tuple[str, ...]
    """Columns that tell a part from others of its kind."""
    shown: str
    """What messages call it."""


ANSWERS = StudyPart(ANSWER, answers, (), ANSWER)
KERNEL_DIFFERENCES = StudyPart(
    KERNEL_DIFFERENCE, kernel_differences, ("before", "after"), "difference between kernels"
)
PROOFS = StudyPart(PROOF, proofs, ("difference",), PROOF)
REGRESSIONS = StudyPart(REGRESSION, regressions, ("regression",), REGRESSION)
STUDY_PARTS = (ANSWERS, KERNEL_DIFFERENCES, PROOFS, REGRESSIONS)


def store_part(connection: Connection, part: StudyPart, row: Mapping[str, Any]) -> None:
    """Insert a row of the part's table, in place of an older one."""
    same = [part.table.c[name] == row[name] for name in ("study_id", *part.keys)]
    connection.execute(delete(part.table).where(*same))
    fault_point("store: older part of a study removed")
    connection.execute(insert(part.table).values(**row))
    digest = integrity.digest_of_content(row["content"])
    integrity.note_part(connection, row["study_id"], integrity.part_of(part.kind, row), digest)


def read_parts(
    connection: Connection, part: StudyPart, study_id: int, kind: type[Compressible]
) -> tuple[Compressible, ...]:
    """In the order of storing. Raises NotAsStored, zlib.error, pydantic.ValidationError."""
    query = select(part.table).where(part.table.c.study_id == study_id).order_by(part.table.c.id)
    rows = connection.execute(query).mappings().all()
    noted = integrity.noted_study_digests(connection, study_id) if rows else {}
    for row in rows:
        digest = integrity.digest_of_content(row["content"])
        if noted.get((study_id, integrity.part_of(part.kind, row))) != digest:
            raise NotAsStored(part.shown, study_id)
    return tuple(decompressed(kind, row["content"]) for row in rows)


def studies_with_proofs(connection: Connection) -> frozenset[int]:
    """Studies of which something was proved."""
    return frozenset(connection.scalars(select(proofs.c.study_id).distinct()))


def every_regression(connection: Connection) -> list[tuple[int, Regression]]:
    """Each with the study that was the first to measure it. Raises as `read_parts`."""
    numbers = connection.scalars(select(regressions.c.study_id).distinct().order_by(regressions.c.study_id))
    return [
        (number, regression)
        for number in list(numbers)
        for regression in read_parts(connection, REGRESSIONS, number, Regression)
    ]


def regressions_state(connection: Connection) -> str:
    """A digest that changes with what is stored of regressions."""
    query = select(study_digests.c.what, study_digests.c.digest).where(
        study_digests.c.what.startswith(f"{REGRESSION} ")
    )
    rows = sorted(map(tuple, connection.execute(query)))
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def study_states(connection: Connection, number: int | None = None) -> dict[int, str]:
    """A study's number → a digest that changes with its trials, its answer, proofs and kernel differences.
    `number`: of this one alone.

    Regressions say nothing about a study's numbers, and do not change it. It is made of indexes alone, and
    trials are not read: one that is stored is never changed; only one that did not complete is ever replaced,
    by one that was started later.
    """

    def only(column: ColumnElement[int]) -> Iterable[ColumnElement[bool]]:
        return () if number is None else (column == number,)

    by_outcome = (trials.c.study_id, trials.c.outcome)
    counts = select(*by_outcome, func.count(trials.c.id), func.max(trials.c.id)).where(
        *only(trials.c.study_id)
    )
    not_completed = [outcome.value for outcome in Outcome if outcome is not Outcome.COMPLETED]
    # Each study by itself: the index begins with it.
    failed = select(trials.c.study_id, trials.c.id, trials.c.started).where(
        trials.c.study_id.in_(select(studies.c.id).where(*only(studies.c.id))),
        trials.c.outcome.in_(not_completed),
    )
    noted = select(study_digests.c.study_id, study_digests.c.what, study_digests.c.digest).where(
        *only(study_digests.c.study_id), study_digests.c.what.not_like(f"{REGRESSION} %")
    )
    numbers = connection.scalars(select(studies.c.id).where(*only(studies.c.id)))
    states = {study_id: hashlib.sha256() for study_id in numbers}
    for query in (
        counts.group_by(*by_outcome).order_by(*by_outcome),
        failed.order_by(trials.c.id),
        noted.order_by(study_digests.c.study_id, study_digests.c.what),
    ):
        for row in connection.execute(query):
            if row[0] in states:
                states[row[0]].update(repr(tuple(row)).encode())
    return {study_id: state.hexdigest() for study_id, state in states.items()}


# What studies' trials say of a workload is kept, so that a history need not read the trials. A summary can
# always be made again: one that is damaged, or whose study has changed, is not returned.

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
    columns = (summaries.c.study_id, summaries.c.state, summaries.c.content, summaries.c.digest)
    rows = connection.execute(select(*columns).where(summaries.c.workload == workload)).all()
    return {
        number: Summary(state, content)
        for number, state, content, digest in rows
        if integrity.digest_of_content(content) == digest
    }


def keep_summaries(connection: Connection, of_studies: Iterable[StudySummaries]) -> None:
    """In place of older ones of the same workloads."""
    for study_id, state, by_workload in of_studies:
        same = (summaries.c.study_id == study_id, summaries.c.workload.in_(list(by_workload)))
        connection.execute(delete(summaries).where(*same))
        rows = [
            {
                "study_id": study_id,
                "workload": workload,
                "state": state,
                "content": content,
                "digest": integrity.digest_of_content(content),
            }
            for workload, content in by_workload.items()
        ]
        connection.execute(insert(summaries), rows)
