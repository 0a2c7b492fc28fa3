"""The digests of what is stored of a study beside its trials: what it asks for, a search's answer, what
differs between its kernels, and what was proved. Noted when they are written, compared when they are read."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple, Self

from sqlalchemy import ColumnElement, Connection, LargeBinary, cast, delete, insert, select, update

from ktrial.fault_points import fault_point
from ktrial.model.design import FactorLevels, Levels, combinations, count, label, use_label
from ktrial.model.trial import Outcome
from ktrial.store.schema import (
    answers,
    digests,
    has,
    kernel_differences,
    proofs,
    studies,
    study_digests,
    trials,
)
from ktrial.store.sqlite import undecodable_text

# The digests of what is stored of a study beside its trials: what it asks for, a search's answer, what
# differs between its kernels, and what was proved. Noted when they are written, compared when they are
# read.

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


def difference_part(before: str, after: str) -> str:
    """What a difference between two kernels (their digests) is noted as."""
    return f"kernel difference {before} {after}"


def proof_part(of_difference: str) -> str:
    """What a proof is noted as."""
    return f"{PROOF} {of_difference}"


def study_row_digest(row: Mapping[Any, Any]) -> str:
    """Of a row of `studies`."""
    return study_digest(row["name"], row["digest"], row["spec"], row["created"])


def digest_of_content(content: bytes) -> str:
    """Of what was compressed."""
    return hashlib.sha256(content).hexdigest()


def note_study_digest(connection: Connection, study_id: int, what: str, digest: str) -> None:
    """Note the digest of what was just written."""
    same = (study_digests.c.study_id == study_id, study_digests.c.what == what)
    connection.execute(delete(study_digests).where(*same))
    connection.execute(insert(study_digests).values(study_id=study_id, what=what, digest=digest))
    fault_point("store: digest of a study's part noted")


def noted_study_digests(connection: Connection, study_id: int | None = None) -> dict[tuple[int, str], str]:
    """Study and what → its digest, of one study or of all; of an older ktrial's store there are none."""
    if not has(connection, study_digests):
        return {}
    query = select(study_digests.c.study_id, study_digests.c.what, study_digests.c.digest)
    if study_id is not None:
        query = query.where(study_digests.c.study_id == study_id)
    return {(study_id, what): digest for study_id, what, digest in connection.execute(query)}


def fits_noted(there: dict[tuple[int, str], str], study_id: int, what: str, made: str) -> bool:
    """Whether this is what was noted, or nothing was."""
    return there.get((study_id, what), made) == made


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


def check_studies(connection: Connection) -> Iterator[StudyCheck]:
    """Compare every study, the newest last; also one whose row cannot be read."""
    there = noted_study_digests(connection)
    for number, name in study_names(connection):
        damaged = tuple(_damaged(connection, there, number))
        yield StudyCheck(number, name, (number, STUDY) in there, damaged)


def _damaged(connection: Connection, there: dict[tuple[int, str], str], number: int) -> Iterable[str]:
    try:
        with undecodable_text():
            row = connection.execute(select(studies).where(studies.c.id == number)).mappings().one()
        if not fits_noted(there, number, STUDY, study_row_digest(row)):
            yield STUDY
    except UNREADABLE:
        yield STUDY
    for content in connection.scalars(select(answers.c.content).where(answers.c.study_id == number)):
        if not fits_noted(there, number, ANSWER, digest_of_content(content)):
            yield ANSWER
    table = kernel_differences
    for row in connection.execute(select(table).where(table.c.study_id == number)).mappings():
        what = difference_part(row["before"], row["after"])
        if (number, STUDY) in there and there.get((number, what)) != digest_of_content(row["content"]):
            yield "kernel difference"
    for row in connection.execute(select(proofs).where(proofs.c.study_id == number)).mappings():
        if there.get((number, proof_part(row["difference"]))) != digest_of_content(row["content"]):
            yield PROOF


def remove_damaged_parts(connection: Connection, check: StudyCheck) -> None:
    """Take away what is damaged; with what a study asks for its trials go too: they answer nothing then."""
    owned = {ANSWER: answers, "kernel difference_part": kernel_differences, PROOF: proofs}
    if STUDY in check.damaged:
        connection.execute(delete(studies).where(studies.c.id == check.id))
        return
    for what in set(check.damaged):
        connection.execute(delete(owned[what]).where(owned[what].c.study_id == check.id))


# A study as its row in the store has it: all that a list of studies says, without a model of it.


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
        """From what a database has: JSON as text, moments in UTC (SQLite: text); last the noted digest.

        Raises ValueError, also where the row is not what was noted; TypeError.
        """
        number, name, digest, spec, created, finished, failed, noted = row
        made = cls(number, name, digest, json.loads(spec), moment(created), int(finished), int(failed))
        if noted is not None and noted != study_digest(name, digest, made.spec, made.created):
            raise ValueError("the study is not what was stored")
        return made

    @property
    def question(self) -> str:
        """The study's question."""
        return str(self.spec["question"])

    @property
    def is_search(self) -> bool:
        """Whether it searches: then its treatments are found while it runs."""
        return bool(self.spec.get("search"))

    @property
    def treatments(self) -> tuple[Levels, ...]:
        """The levels of every treatment, as `model.plan.treatments`."""
        return combinations(self._factors, self.spec["design"], self.spec["listed"])

    @cached_property
    def treatment_count(self) -> int:
        """How many treatments it has."""
        return count(self._factors, self.spec["design"], self.spec["listed"])

    @property
    def _factors(self) -> list[FactorLevels]:
        return [FactorLevels(one["name"], one["levels"], one["baseline"]) for one in self.spec["factors"]]

    @property
    def labels(self) -> list[str]:
        """What its treatments are called."""
        return [label(levels) for levels in self.treatments]

    @property
    def workloads(self) -> list[str]:
        """The labels of its workloads."""
        return [use_label(use["name"], use["parameters"]) for use in self.spec["workloads"]]

    @property
    def planned(self) -> int | None:
        """How many trials there will be; of a search at most; None where only its time is limited."""
        if self.is_search:
            runs: int | None = self.spec["search"]["budget"]["runs"]
            return runs
        timing = self.spec["timing"]
        return self.treatment_count * int(timing["blocks"] if timing else self.spec["perturbations"])


def study_digest(name: str, key: str, spec: object, created: datetime) -> str:
    """SHA-256 of what a row of studies says."""
    said = [name, key, spec, created.replace(tzinfo=None).isoformat()]
    return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def moment(stored: str | datetime) -> datetime:
    """A moment as a database has it: in UTC, without saying so. Raises ValueError, TypeError."""
    made = stored if isinstance(stored, datetime) else datetime.fromisoformat(stored)
    return made.replace(tzinfo=UTC)


# Which trials a study has, as one text that is noted with each trial and compared when they are read.
#
# A row that is taken out of the database, with all that belongs to it, leaves nothing that could differ
# from its digest. So a study notes how many trials it has and the sum, modulo 2²²⁴, of one SHA-256 for each
# of them: the order of storing does not matter, and a trial is added without reading the others (the
# incremental hash AdHash of Bellare and Micciancio, EUROCRYPT 1997; here it guards against damage, not
# against forgery).

_MODULUS = 1 << 224


_COUNT_DIGITS = 8


Member = tuple[str, str | None]
"""A trial's key and the digest of its content; None where an older ktrial stored it."""


class TrialsNotThere(Exception):
    """The study does not have the trials that it had."""

    def __init__(self, problem: str, study_id: int) -> None:
        super().__init__(problem, study_id)
        self.problem, self.study_id = problem, study_id


@dataclass(frozen=True)
class TrialSet:
    """How many trials, and their sum."""

    count: int = 0
    total: int = 0

    @classmethod
    def of(cls, trial_set_members: Iterable[Member]) -> Self:
        """The set of these trials."""
        numbers = [_number(*each) for each in trial_set_members]
        return cls(len(numbers), sum(numbers) % _MODULUS)

    @classmethod
    def of_text(cls, text: str) -> Self:
        """What `text` says. Raises ValueError."""
        return cls(int(text[-_COUNT_DIGITS:], 16), int(text[:-_COUNT_DIGITS], 16))

    @property
    def text(self) -> str:
        """64 hexadecimal digits, as a digest has them."""
        return f"{self.total:056x}{self.count:0{_COUNT_DIGITS}x}"

    def changed(self, *, added: Iterable[Member] = (), removed: Iterable[Member] = ()) -> "TrialSet":
        """With some, and without others."""
        more, fewer = TrialSet.of(added), TrialSet.of(removed)
        total = (self.total + more.total - fewer.total) % _MODULUS
        return TrialSet(max(0, self.count + more.count - fewer.count), total)


def _number(key: str, content: str | None) -> int:
    return int.from_bytes(hashlib.sha256(f"{key} {content or ''}".encode()).digest()[:28])


def trial_set_members(connection: Connection, *which: ColumnElement[bool]) -> list[Member]:
    """The stored trials of these, but those with which the machine failed, which older ktrials stored."""
    stored_trial_set = has(connection, digests)
    columns = (trials.c.key, digests.c.content) if stored_trial_set else (trials.c.key,)
    query = select(*columns).where(*which, trials.c.outcome != Outcome.MACHINE_FAILED.value)
    if stored_trial_set:
        query = query.outerjoin_from(trials, digests, digests.c.trial_id == trials.c.id)
    return [(key, *rest) if rest else (key, None) for key, *rest in connection.execute(query)]


def trial_set_before_change(connection: Connection, study_id: int) -> TrialSet:
    """What is noted, or what is there of a study that an older ktrial stored. The study is locked: on a
    server other processes may add trials to it.
    """
    # FOR NO KEY UPDATE: rows that refer to the study may still be inserted.
    lock = select(studies.c.id).where(studies.c.id == study_id).with_for_update(key_share=True)
    connection.execute(lock)
    text = _noted(connection, study_id)
    if text is not None:
        try:
            return TrialSet.of_text(text)
        except ValueError:
            return TrialSet()  # damaged: it fits nothing
    return stored_trial_set(connection, study_id)


def stored_trial_set(connection: Connection, study_id: int) -> TrialSet:
    """The set of the trials that are stored."""
    return TrialSet.of(trial_set_members(connection, trials.c.study_id == study_id))


def note_trial_set(connection: Connection, study_id: int, now: TrialSet) -> None:
    """Note which trials the study has."""
    same = (study_digests.c.study_id == study_id, study_digests.c.what == TRIALS)
    changed = connection.execute(update(study_digests).where(*same).values(digest=now.text))
    if not changed.rowcount:
        connection.execute(insert(study_digests).values(study_id=study_id, what=TRIALS, digest=now.text))
    fault_point("store: the set of a study's trials noted")


def trial_set_difference(connection: Connection, study_id: int, now: TrialSet) -> str:
    """What is not as it was noted: `1 trial is missing`; empty where all is, or nothing was."""
    text = _noted(connection, study_id)
    if text is None or text == now.text:
        return ""
    try:
        missing = TrialSet.of_text(text).count - now.count
    except ValueError:
        missing = 0
    if missing <= 0:
        return "trials are not those that were stored"
    return "1 trial is missing" if missing == 1 else f"{missing} trials are missing"


def missing_trials(connection: Connection, study_id: int) -> str:
    """As `difference`, of the trials that are stored."""
    try:
        with undecodable_text():
            return trial_set_difference(connection, study_id, stored_trial_set(connection, study_id))
    except UnicodeError:
        return ""  # which trial that is, its digest tells


def _noted(connection: Connection, study_id: int) -> str | None:
    if not has(connection, study_digests):
        return None
    same = (study_digests.c.study_id == study_id, study_digests.c.what == TRIALS)
    return connection.scalar(select(study_digests.c.digest).where(*same))
