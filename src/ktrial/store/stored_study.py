"""Studies as they are read: each with how many of its trials ended, and compared with its digest."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, RowMapping, func, select

from ktrial.model.study import Study
from ktrial.model.trial import Outcome
from ktrial.store import row_conversion, study_digests, study_rows
from ktrial.store.schema import studies, trials
from ktrial.store.study_digests import StudyName
from ktrial.store.study_summary import StudyRow
from ktrial.store.text_damage import undecodable_text

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


def every(connection: Connection) -> tuple[StoredStudy, ...]:
    """Every study, the newest last. Raises NotAsStored, and what reading a damaged row raises."""
    noted = study_digests.noted(connection)
    rows_by_id = connection.execute(_EVERY.order_by(studies.c.id)).mappings()
    return tuple(_stored(row, noted) for row in rows_by_id)


def some(connection: Connection, numbers: Collection[int]) -> tuple[StoredStudy, ...]:
    """Those of these studies that are there, the newest last. Raises as `every`."""
    if len(numbers) > _FEW:
        return tuple(one for one in every(connection) if one.id in numbers)
    asked_for = (newest(connection, studies.c.id == number) for number in sorted(numbers))
    return tuple(one for one in asked_for if one is not None)


def readable(
    connection: Connection, numbers: Collection[int] | None = None
) -> tuple[tuple[StoredStudy, ...], tuple[StudyName, ...]]:
    """The studies that are as they were stored, and those that are not; the newest last."""
    if numbers is not None and len(numbers) <= _FEW:
        return _one_by_one(connection, numbers)
    try:
        with undecodable_text():
            sound, damaged = every(connection), ()
    except (study_digests.NotAsStored, *study_digests.UNREADABLE):
        return _one_by_one(connection, numbers)
    return tuple(one for one in sound if numbers is None or one.id in numbers), damaged


def _one_by_one(
    connection: Connection, numbers: Collection[int] | None
) -> tuple[tuple[StoredStudy, ...], tuple[StudyName, ...]]:
    sound, damaged = [], []
    noted = study_digests.noted(connection)
    for number, name in study_digests.named(connection):
        if numbers is not None and number not in numbers:
            continue
        try:
            with undecodable_text():
                row = connection.execute(_STUDIES.where(studies.c.id == number)).mappings().one()
            sound.append(_stored(row, noted))
        except (study_digests.NotAsStored, *study_digests.UNREADABLE):
            damaged.append(StudyName(number, name))
    return tuple(sound), tuple(damaged)


def newest(connection: Connection, *which: ColumnElement[bool]) -> StoredStudy | None:
    """The study stored last of those; None where there is none."""
    number = connection.scalar(select(func.max(studies.c.id)).where(*which))
    if number is None:
        return None
    row = study_rows.row_of(connection, number, _STUDIES.where(studies.c.id == number))
    return _stored(row, study_digests.noted(connection, number))


def _stored(row: RowMapping, noted: dict[tuple[int, str], str]) -> StoredStudy:
    study_rows.check(noted, row)
    return StoredStudy(
        id=row["id"],
        study=Study.model_validate(row["spec"]),
        digest=row["digest"],
        created=row_conversion.from_utc(row["created"]),
        finished=row["finished"],
        failed=row["failed"],
    )
