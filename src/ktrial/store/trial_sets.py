"""Which trials a study has, as one text that is noted with each trial and compared when they are read.

A row that is taken out of the database, with all that belongs to it, leaves nothing that could differ from
its digest. So a study notes how many trials it has and the sum, modulo 2²²⁴, of one SHA-256 for each of
them: the order of storing does not matter, and a trial is added without reading the others (the incremental
hash AdHash of Bellare and Micciancio, EUROCRYPT 1997; here it guards against damage, not against forgery).
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from sqlalchemy import ColumnElement, Connection, insert, select, update

from ktrial.fault_points import fault_point
from ktrial.model.trial import Outcome
from ktrial.store.existing_tables import has
from ktrial.store.schema import digests, studies, study_digests, trials
from ktrial.store.study_digests import TRIALS
from ktrial.store.text_damage import undecodable_text

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
    def of(cls, members: Iterable[Member]) -> Self:
        """The set of these trials."""
        numbers = [_number(*each) for each in members]
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


def members(connection: Connection, *which: ColumnElement[bool]) -> list[Member]:
    """The stored trials of these, but those with which the machine failed, which older ktrials stored."""
    there = has(connection, digests)
    columns = (trials.c.key, digests.c.content) if there else (trials.c.key,)
    query = select(*columns).where(*which, trials.c.outcome != Outcome.MACHINE_FAILED.value)
    if there:
        query = query.outerjoin_from(trials, digests, digests.c.trial_id == trials.c.id)
    return [(key, *rest) if rest else (key, None) for key, *rest in connection.execute(query)]


def before_change(connection: Connection, study_id: int) -> TrialSet:
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
    return there(connection, study_id)


def there(connection: Connection, study_id: int) -> TrialSet:
    """The set of the trials that are stored."""
    return TrialSet.of(members(connection, trials.c.study_id == study_id))


def note(connection: Connection, study_id: int, now: TrialSet) -> None:
    """Note which trials the study has."""
    same = (study_digests.c.study_id == study_id, study_digests.c.what == TRIALS)
    changed = connection.execute(update(study_digests).where(*same).values(digest=now.text))
    if not changed.rowcount:
        connection.execute(insert(study_digests).values(study_id=study_id, what=TRIALS, digest=now.text))
    fault_point("store: the set of a study's trials noted")


def difference(connection: Connection, study_id: int, now: TrialSet) -> str:
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


def difference_of_all(connection: Connection, study_id: int) -> str:
    """As `difference`, of the trials that are stored."""
    try:
        with undecodable_text():
            return difference(connection, study_id, there(connection, study_id))
    except UnicodeError:
        return ""  # which trial that is, its digest tells


def _noted(connection: Connection, study_id: int) -> str | None:
    if not has(connection, study_digests):
        return None
    same = (study_digests.c.study_id == study_id, study_digests.c.what == TRIALS)
    return connection.scalar(select(study_digests.c.digest).where(*same))
