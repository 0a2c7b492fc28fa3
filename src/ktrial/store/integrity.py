"""Whether what is stored is what was stored: digests noted with each write, and compared with each read.

This file has those of a study: of what it asks for, of a search's answer, of what differs between its
kernels, of what was proved and of regressions; and which trials it has. Those of each trial are in
`trial_rows`.
"""

import hashlib
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from sqlalchemy import ColumnElement, Connection, LargeBinary, cast, delete, insert, select, update

from ktrial.fault_points import fault_point
from ktrial.store import log
from ktrial.store.quick_reader import TRIAL_COUNT_DIGITS, noted_trial_count, study_row_digest
from ktrial.store.schema import (
    SQLITE,
    answers,
    digests,
    kernel_differences,
    proofs,
    regressions,
    studies,
    study_digests,
    trials,
)
from ktrial.store.sqlite import undecodable_text

STUDY, ANSWER, PROOF, REGRESSION = "study", "answer", "proof", "regression"
KERNEL_DIFFERENCE = "kernel difference"
_TABLES = {ANSWER: answers, KERNEL_DIFFERENCE: kernel_differences, PROOF: proofs, REGRESSION: regressions}
"""What is stored of a study beside its trials."""
TRIALS = "trials"
"""Noted in place of a digest: which trials there are (TrialSet)."""
REMOVAL = "removal of trials"
"""Noted in place of a digest: a number that no other removal has."""
UNREADABLE = (ValueError, TypeError, LookupError, ArithmeticError)
"""What SQLAlchemy's types and pydantic raise where a value in a row is none of its kind."""

StudyDigests = dict[tuple[int, str], str]
"""Study and part → the digest that was noted."""


class NotAsStored(Exception):
    """A part of the study is not what was stored."""

    def __init__(self, part: str, study_id: int) -> None:
        super().__init__(part, study_id)
        self.part, self.study_id = part, study_id


class TrialsNotThere(Exception):
    """The study does not have the trials that it had."""

    def __init__(self, problem: str, study_id: int) -> None:
        super().__init__(problem, study_id)
        self.problem, self.study_id = problem, study_id


class StudyName(NamedTuple):
    """How a study is named on a command line."""

    id: int
    name: str


class StudyCheck(NamedTuple):
    """What became of comparing what is stored of a study, apart from its trials, with its digests."""

    id: int
    name: str
    damaged: tuple[str, ...]
    """`study`, `answer`, `kernel difference`, `proof`, `regression`: what is not as it was stored."""


def check_studies(connection: Connection) -> Iterator[StudyCheck]:
    """Compare every study, the newest last; also one whose row cannot be read."""
    noted = noted_study_digests(connection)
    for number, name in study_names(connection):
        yield StudyCheck(number, name, tuple(_damaged_parts(connection, noted, number)))


def _damaged_parts(connection: Connection, noted: StudyDigests, number: int) -> Iterable[str]:
    try:
        with undecodable_text():
            row = connection.execute(select(studies).where(studies.c.id == number)).mappings().one()
        is_sound = noted.get((number, STUDY)) == study_row_digest(row)
    except UNREADABLE:
        is_sound = False
    if not is_sound:
        yield STUDY
    for kind, table in _TABLES.items():
        try:
            for row in connection.execute(select(table).where(table.c.study_id == number)).mappings():
                if noted.get((number, part_of(kind, row))) != digest_of_content(row["content"]):
                    yield kind
        except UNREADABLE:
            yield kind


def remove_damaged_parts(connection: Connection, check: StudyCheck) -> None:
    """Take away what is damaged; with what a study asks for its trials go too: they answer nothing then."""
    if STUDY in check.damaged:
        remove_study(connection, check.id)
        return
    for part in set(check.damaged):
        rows = connection.execute(
            select(_TABLES[part]).where(_TABLES[part].c.study_id == check.id)
        ).mappings()
        for name in [part_of(part, row) for row in rows]:
            log.note(connection, log.LogEntry(log.PART_REMOVED, check.id, name))
        connection.execute(delete(_TABLES[part]).where(_TABLES[part].c.study_id == check.id))


def remove_study(connection: Connection, study_id: int) -> bool:
    """Take a study away, with all that belongs to it; whether it was there. The log has that it was."""
    removed = connection.execute(delete(studies).where(studies.c.id == study_id)).rowcount
    fault_point("store: study removed")
    if removed:
        log.note(connection, log.LogEntry(log.STUDY_REMOVED, study_id, ""))
    return bool(removed)


def part_of(kind: str, row: Mapping[Any, Any]) -> str:
    """What a row of a study's part is noted as: each difference, proof and regression by itself."""
    match kind:
        case "kernel difference":
            return f"{kind} {row['before']} {row['after']}"
        case "proof":
            return f"{kind} {row['difference']}"
        case "regression":
            return f"{kind} {row['regression']}"
        case _:
            return kind


def kind_of(part: str) -> str:
    """Of which kind a part is that is noted so."""
    return next((kind for kind in _TABLES if part == kind or part.startswith(f"{kind} ")), part)


def digest_of_content(content: bytes) -> str:
    """SHA-256 of what was compressed. Raises ValueError where a damaged row has no bytes there."""
    if not isinstance(content, bytes):
        raise ValueError("compressed data are not bytes")
    return hashlib.sha256(content).hexdigest()


def note_new_study(connection: Connection, study_id: int, name: str, digest: str) -> None:
    """Note that a study was just inserted, which has no trials yet."""
    _note_digest(connection, study_id, STUDY, digest)
    note_trial_set(connection, study_id, TrialSet())
    log.note(connection, log.LogEntry(log.STUDY, study_id, name, digest))


def note_study_put_right(connection: Connection, study_id: int, name: str, digest: str) -> None:
    """Note that a study's row says again what it said."""
    _note_digest(connection, study_id, STUDY, digest)
    log.note(connection, log.LogEntry(log.STUDY_PUT_RIGHT, study_id, name, digest))


def note_part(connection: Connection, study_id: int, part: str, digest: str) -> None:
    """Note the digest of a part that was just written."""
    _note_digest(connection, study_id, part, digest)
    log.note(connection, log.LogEntry(log.PART, study_id, part, digest))


def note_removal(connection: Connection, study_id: int, keys: Iterable[str]) -> None:
    """Note that trials were taken away: the study's state changes, though others may come in their place."""
    _note_digest(connection, study_id, REMOVAL, secrets.token_hex(32))
    log.note(connection, *(log.LogEntry(log.TRIAL_REMOVED, study_id, key) for key in keys))


def _note_digest(connection: Connection, study_id: int, part: str, digest: str) -> None:
    same = (study_digests.c.study_id == study_id, study_digests.c.what == part)
    connection.execute(delete(study_digests).where(*same))
    connection.execute(insert(study_digests).values(study_id=study_id, what=part, digest=digest))
    fault_point("store: digest of a study's part noted")


def noted_study_digests(connection: Connection, study_id: int | None = None) -> StudyDigests:
    """All that is noted, of one study or of all."""
    query = select(study_digests.c.study_id, study_digests.c.what, study_digests.c.digest)
    if study_id is not None:
        query = query.where(study_digests.c.study_id == study_id)
    return {(number, part): digest for number, part, digest in connection.execute(query)}


def study_names(connection: Connection) -> tuple[StudyName, ...]:
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


# Which trials a study has, as one text that is noted with each trial and compared when they are read. A row
# that is taken out of the database, with all that belongs to it, leaves nothing that could differ from its
# digest. So a study notes how many trials it has and the sum, modulo 2²²⁴, of one SHA-256 for each of them:
# the order of storing does not matter, and a trial is added without reading the others (the incremental hash
# AdHash of Bellare and Micciancio, EUROCRYPT 1997; here it guards against damage, not against forgery).

_MODULUS = 1 << 224
Member = tuple[str, str | None]
"""A trial's key and the digest of its content; None where that is lost."""


@dataclass(frozen=True)
class TrialSet:
    """How many trials, and their sum."""

    count: int = 0
    total: int = 0

    @classmethod
    def of(cls, members: Iterable[Member]) -> Self:
        """The set of these trials."""
        hashes = [hashlib.sha256(f"{key} {content or ''}".encode()).digest() for key, content in members]
        return cls(len(hashes), sum(int.from_bytes(value[:28]) for value in hashes) % _MODULUS)

    @classmethod
    def of_text(cls, text: str) -> Self:
        """What `text` says. Raises ValueError."""
        return cls(noted_trial_count(text), int(text[:-TRIAL_COUNT_DIGITS], 16))

    @property
    def text(self) -> str:
        """64 hexadecimal digits, as a digest has them."""
        return f"{self.total:056x}{self.count:0{TRIAL_COUNT_DIGITS}x}"

    def changed(self, *, added: Iterable[Member] = (), removed: Iterable[Member] = ()) -> "TrialSet":
        """With some, and without others."""
        more, fewer = TrialSet.of(added), TrialSet.of(removed)
        total = (self.total + more.total - fewer.total) % _MODULUS
        return TrialSet(max(0, self.count + more.count - fewer.count), total)


def trial_set_members(connection: Connection, *which: ColumnElement[bool]) -> list[Member]:
    """The stored trials of these."""
    query = select(trials.c.key, digests.c.content).where(*which)
    query = query.outerjoin_from(trials, digests, digests.c.trial_id == trials.c.id)
    return [(key, content) for key, content in connection.execute(query)]


def stored_trial_set(connection: Connection, study_id: int) -> TrialSet:
    """The set of the trials that are stored."""
    return TrialSet.of(trial_set_members(connection, trials.c.study_id == study_id))


def trial_set_before_change(connection: Connection, study_id: int) -> TrialSet:
    """What is noted. The study is locked: on a server other processes may add trials to it."""
    if connection.dialect.name != SQLITE:  # where whoever writes has all of it to itself
        # FOR NO KEY UPDATE: rows that refer to the study may still be inserted.
        lock = select(studies.c.id).where(studies.c.id == study_id).with_for_update(key_share=True)
        connection.execute(lock)
    try:
        return TrialSet.of_text(_noted_trial_set(connection, study_id))
    except ValueError:
        return TrialSet()  # damaged: it fits nothing


def note_trial_set(connection: Connection, study_id: int, trial_set: TrialSet) -> None:
    """Note which trials the study has."""
    same = (study_digests.c.study_id == study_id, study_digests.c.what == TRIALS)
    changed = connection.execute(update(study_digests).where(*same).values(digest=trial_set.text))
    if not changed.rowcount:
        row = {"study_id": study_id, "what": TRIALS, "digest": trial_set.text}
        connection.execute(insert(study_digests).values(**row))
    fault_point("store: the set of a study's trials noted")


def trial_set_difference(connection: Connection, study_id: int, trial_set: TrialSet) -> str:
    """What is not as it was noted: `1 trial is missing`; empty where all is."""
    text = _noted_trial_set(connection, study_id)
    if text == trial_set.text:
        return ""
    try:
        missing = TrialSet.of_text(text).count - trial_set.count
    except ValueError:
        missing = 0
    if missing <= 0:
        return "trials are not those that were stored"
    return "1 trial is missing" if missing == 1 else f"{missing} trials are missing"


def missing_trials(connection: Connection, study_id: int) -> str:
    """As `trial_set_difference`, of the trials that are stored."""
    try:
        with undecodable_text():
            return trial_set_difference(connection, study_id, stored_trial_set(connection, study_id))
    except UnicodeError:
        return ""  # which trial that is, its digest tells


def _noted_trial_set(connection: Connection, study_id: int) -> str:
    """Empty where it is lost."""
    same = (study_digests.c.study_id == study_id, study_digests.c.what == TRIALS)
    return connection.scalar(select(study_digests.c.digest).where(*same)) or ""
