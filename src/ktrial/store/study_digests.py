"""The digests of what is stored of a study beside its trials: what it asks for, a search's answer, what
differs between its kernels, and what was proved. Noted when they are written, compared when they are read."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection, LargeBinary, cast, delete, insert, select

from ktrial.fault_points import fault_point
from ktrial.store.existing_tables import has
from ktrial.store.schema import answers, kernel_differences, proofs, studies, study_digests
from ktrial.store.study_summary import study_digest
from ktrial.store.text_damage import undecodable_text

STUDY, ANSWER, PROOF = "study", "answer", "proof"
TRIALS = "trials"
"""Noted in place of a digest: which trials there are (`trial_sets`)."""
REMOVAL = "removal of trials"
"""Noted in place of a digest: a number that no other removal has."""
UNREADABLE = (ValueError, TypeError, LookupError)
"""What reading a damaged row of a study raises."""


class NotAsStored(Exception):
    """`what` of the study is not what was stored."""

    def __init__(self, what: str, study_id: int) -> None:
        super().__init__(what, study_id)
        self.what, self.study_id = what, study_id


class StudyName(NamedTuple):
    """How a study is named on a command line."""

    id: int
    name: str


class StudyCheck(NamedTuple):
    """What became of comparing what is stored of a study, apart from its trials, with its digests."""

    id: int
    name: str
    has_digest: bool
    damaged: tuple[str, ...]
    """`study`, `answer`, `kernel difference`, `proof`: what is not as it was stored."""


def difference(before: str, after: str) -> str:
    """What a difference between two kernels (their digests) is noted as."""
    return f"kernel difference {before} {after}"


def proof(of_difference: str) -> str:
    """What a proof is noted as."""
    return f"{PROOF} {of_difference}"


def of_study(row: Mapping[Any, Any]) -> str:
    """Of a row of `studies`."""
    return study_digest(row["name"], row["digest"], row["spec"], row["created"])


def of_content(content: bytes) -> str:
    """Of what was compressed."""
    return hashlib.sha256(content).hexdigest()


def note(connection: Connection, study_id: int, what: str, digest: str) -> None:
    """Note the digest of what was just written."""
    same = (study_digests.c.study_id == study_id, study_digests.c.what == what)
    connection.execute(delete(study_digests).where(*same))
    connection.execute(insert(study_digests).values(study_id=study_id, what=what, digest=digest))
    fault_point("store: digest of a study's part noted")


def noted(connection: Connection, study_id: int | None = None) -> dict[tuple[int, str], str]:
    """Study and what → its digest, of one study or of all; of an older ktrial's store there are none."""
    if not has(connection, study_digests):
        return {}
    query = select(study_digests.c.study_id, study_digests.c.what, study_digests.c.digest)
    if study_id is not None:
        query = query.where(study_digests.c.study_id == study_id)
    return {(study_id, what): digest for study_id, what, digest in connection.execute(query)}


def fits(there: dict[tuple[int, str], str], study_id: int, what: str, made: str) -> bool:
    """Whether this is what was noted, or nothing was."""
    return there.get((study_id, what), made) == made


def named(connection: Connection) -> tuple[StudyName, ...]:
    """Every study, the newest last; also one whose row cannot be read."""
    query = select(studies.c.id, studies.c.name).order_by(studies.c.id)
    try:
        with undecodable_text():
            return tuple(StudyName(number, name) for number, name in connection.execute(query))
    except UnicodeError:
        query = select(studies.c.id, cast(studies.c.name, LargeBinary)).order_by(studies.c.id)
        return tuple(
            StudyName(number, name.decode(errors="replace")) for number, name in connection.execute(query)
        )


def checks(connection: Connection) -> Iterator[StudyCheck]:
    """Compare every study, the newest last; also one whose row cannot be read."""
    there = noted(connection)
    for number, name in named(connection):
        damaged = tuple(_damaged(connection, there, number))
        yield StudyCheck(number, name, (number, STUDY) in there, damaged)


def _damaged(connection: Connection, there: dict[tuple[int, str], str], number: int) -> Iterable[str]:
    try:
        with undecodable_text():
            row = connection.execute(select(studies).where(studies.c.id == number)).mappings().one()
        if not fits(there, number, STUDY, of_study(row)):
            yield STUDY
    except UNREADABLE:
        yield STUDY
    for content in connection.scalars(select(answers.c.content).where(answers.c.study_id == number)):
        if not fits(there, number, ANSWER, of_content(content)):
            yield ANSWER
    table = kernel_differences
    for row in connection.execute(select(table).where(table.c.study_id == number)).mappings():
        what = difference(row["before"], row["after"])
        if (number, STUDY) in there and there.get((number, what)) != of_content(row["content"]):
            yield "kernel difference"
    for row in connection.execute(select(proofs).where(proofs.c.study_id == number)).mappings():
        if there.get((number, proof(row["difference"]))) != of_content(row["content"]):
            yield PROOF


def remove(connection: Connection, check: StudyCheck) -> None:
    """Take away what is damaged; with what a study asks for its trials go too: they answer nothing then."""
    owned = {ANSWER: answers, "kernel difference": kernel_differences, PROOF: proofs}
    if STUDY in check.damaged:
        connection.execute(delete(studies).where(studies.c.id == check.id))
        return
    for what in set(check.damaged):
        connection.execute(delete(owned[what]).where(owned[what].c.study_id == check.id))
