"""Whether a store is whole: the database's own check, the log from its first entry to its newest, the head
that is kept beside the store, and what the log has that the store has not.

What a row says is compared with its digest elsewhere (`integrity`, `trial_rows`). Here it is found out what
leaves nothing behind that could be compared: studies, trials and parts that are gone, an older copy.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from sqlalchemy import Connection, select, text

from ktrial.store import integrity, log, postgresql
from ktrial.store.errors import StoreDamaged, StoreError
from ktrial.store.head_file import Head
from ktrial.store.integrity import (
    STUDY,
    UNREADABLE,
    StudyCheck,
    StudyName,
    kind_of,
    noted_study_digests,
    part_of,
)
from ktrial.store.schema import digests, metadata, trials
from ktrial.store.sqlite import undecodable_text
from ktrial.store.study_rows import STUDY_PARTS
from ktrial.store.transactions import Transactions
from ktrial.store.trial_rows import TrialCheck, noted_digests

_MOST_PROBLEMS = 20
"""Of the database's own check."""
_MAY_CHECK = text(
    "SELECT coalesce(bool_or(has_function_privilege(oid, 'EXECUTE')), false) FROM pg_proc "
    "WHERE proname = 'bt_index_check'"
)
_INDEXES = text(
    "SELECT i.indexrelid::bigint, i.indexrelid::regclass::text FROM pg_index i "
    "JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam "
    "WHERE a.amname = 'btree' AND i.indrelid = to_regclass(:name)"
)
_CHECK_INDEX = text("SELECT bt_index_check(CAST(:number AS oid), true)")
_OTHER_THAN_LOGGED = ("its digests, which are not those of the log",)


class MissingStudy(NamedTuple):
    """A study that the log has, and the store has not."""

    id: int
    name: str
    trials: int
    """How many it had."""


class StoreCheck(NamedTuple):
    """What became of looking at a store as a whole."""

    entries: int
    """Of the log."""
    of_database: tuple[str, ...] = ()
    """What the database's own check says."""
    of_log: tuple[str, ...] = ()
    """Where the log is not whole: then nothing is compared with it."""
    of_head: tuple[str, ...] = ()
    """Which head that was kept is not one of this log's."""
    missing: tuple[MissingStudy, ...] = ()
    unlogged: tuple[StudyName, ...] = ()
    """Studies that are there, and that the log does not have."""
    remarks: tuple[str, ...] = ()
    """What could not be looked at."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing was found."""
        return not (self.of_database or self.of_log or self.of_head or self.missing or self.unlogged)


class StudyGaps(NamedTuple):
    """Where a study is not what its log says."""

    missing_trials: tuple[str, ...] = ()
    """Keys."""
    missing_parts: tuple[str, ...] = ()
    """`answer`, `proof …` (`integrity.part_of`)."""
    strange_trials: frozenset[str] = frozenset()
    """Keys of trials that the log does not have, or with other digests."""
    strange_parts: tuple[str, ...] = ()
    """The same of parts; `study`: of what it asks for."""


class KeptHead(NamedTuple):
    """A head that was kept outside a store, which its log has to have."""

    place: str
    head: Head


def check_store(transactions: Transactions, kept_elsewhere: Sequence[KeptHead] = ()) -> StoreCheck:
    """Look at the store as a whole."""
    head_file = transactions.head_file
    beside, is_there = head_file.read(), head_file.is_there()
    kept = [*kept_elsewhere, *([KeptHead(str(head_file.path), beside)] if beside else [])]
    problems, remarks = _database_problems(transactions)
    if not is_there:
        remarks = (*remarks, f"no head is kept in {head_file.path}: an older copy would not be noticed")
    try:
        check = transactions.read(lambda connection: _checked_log(connection, kept))
    except StoreDamaged as error:
        check = StoreCheck(0, of_log=(f"it cannot be read: {error.message}",))
    if is_there and beside is None:
        check = check._replace(of_head=(*check.of_head, f"{head_file.path} cannot be read"))
    return check._replace(of_database=problems, remarks=remarks)


def _checked_log(connection: Connection, kept: Iterable[KeptHead]) -> StoreCheck:
    try:
        with undecodable_text():
            chain = log.follow(connection)
            there = integrity.study_names(connection)
            if chain.problems:
                return StoreCheck(chain.entries, of_log=chain.problems)
            of_head = [_head_problem(connection, chain, *head) for head in kept]
            numbers = {study.id for study in there}
            missing = [
                MissingStudy(number, name, len(log.logged_study(connection, number).trials))
                for number, name in chain.studies.items()
                if number not in numbers
            ]
    except UNREADABLE as error:
        return StoreCheck(0, of_log=(f"an entry cannot be read ({type(error).__name__})",))
    return StoreCheck(
        chain.entries,
        of_head=tuple(filter(None, of_head)),
        missing=tuple(missing),
        unlogged=tuple(study for study in there if study.id not in chain.studies),
    )


def _head_problem(connection: Connection, chain: log.Chain, place: str, head: Head) -> str:
    if log.has_head(connection, head):
        return ""
    if head.number > chain.entries:
        return (
            f"the log ends with entry {chain.entries}, and {place} has kept entry {head.number}: the store "
            "is an older copy"
        )
    return f"entry {head.number} is not the one that {place} has kept: the store is another one"


def _database_problems(transactions: Transactions) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the database's own check says, and what of it could not be done."""
    if transactions.file is not None:
        return _sqlite_problems(transactions), ()
    if not postgresql.is_postgresql(transactions.engine):
        return (), ("this database's own check is not known",)
    if not transactions.read(lambda connection: bool(connection.scalar(_MAY_CHECK))):
        remark = (
            "PostgreSQL's own check was not made: CREATE EXTENSION amcheck, by a superuser, lets it be made"
        )
        return (), (remark,)
    problems: list[str] = []
    for table in metadata.tables:
        indexes = transactions.read(partial(_indexes_of, table=table))
        for number, name in indexes:
            try:
                transactions.read(partial(_check_index, number=number))
            except StoreError as error:
                problems.append(f"index {name}: {error.message}")
    return tuple(problems), ()


def _sqlite_problems(transactions: Transactions) -> tuple[str, ...]:
    check = f"PRAGMA integrity_check({_MOST_PROBLEMS})"
    try:
        rows = transactions.read(lambda connection: connection.exec_driver_sql(check).scalars().all())
    except StoreError as error:
        return (error.message,)
    return tuple(str(row) for row in rows if row != "ok")


def _indexes_of(connection: Connection, table: str) -> list[tuple[int, str]]:
    return [(int(number), str(name)) for number, name in connection.execute(_INDEXES, {"name": table})]


def _check_index(connection: Connection, number: int) -> None:
    connection.execute(_CHECK_INDEX, {"number": number})


# One study, and the log.


def study_gaps(connection: Connection, study_id: int) -> StudyGaps:
    """Compare the trials and parts that there are with those that were logged."""
    logged, there = log.logged_study(connection, study_id), _stored_fingerprints(connection, study_id)
    noted = {part: digest for (_, part), digest in noted_study_digests(connection, study_id).items()}
    parts_there = _parts_there(connection, study_id)
    strange_parts = [part for part in sorted(parts_there) if noted.get(part) != logged.parts.get(part)]
    if noted.get(STUDY) != logged.digest:
        strange_parts.append(STUDY)
    return StudyGaps(
        tuple(key for key in logged.trials if key not in there),
        tuple(part for part in logged.parts if part not in parts_there),
        frozenset(key for key, value in there.items() if logged.trials.get(key) != value),
        tuple(strange_parts),
    )


def _stored_fingerprints(connection: Connection, study_id: int) -> dict[str, str]:
    """Key → fingerprint; empty where a trial's digests are lost or cannot be read."""
    query = select(trials.c.id, trials.c.key).where(trials.c.study_id == study_id)
    keys = {number: str(key) for number, key in connection.execute(query)}
    try:
        noted = noted_digests(connection, study_id)
        return {
            key: log.fingerprint(noted[number]) if number in noted else "" for number, key in keys.items()
        }
    except UNREADABLE:
        return {key: _stored_fingerprint(connection, number) for number, key in keys.items()}


def _stored_fingerprint(connection: Connection, trial_id: int) -> str:
    try:
        row = connection.execute(select(digests).where(digests.c.trial_id == trial_id)).mappings().first()
        return log.fingerprint(row) if row else ""
    except UNREADABLE:
        return ""


def _parts_there(connection: Connection, study_id: int) -> set[str]:
    return {
        part_of(part.kind, row)
        for part in STUDY_PARTS
        for row in connection.execute(select(part.table).where(part.table.c.study_id == study_id)).mappings()
    }


def with_gaps(
    study: StudyCheck, checks: Sequence[TrialCheck], gaps: StudyGaps
) -> tuple[StudyCheck, tuple[TrialCheck, ...]]:
    """What is damaged, with what is not as it was logged among it."""
    kinds = [kind_of(part) for part in gaps.strange_parts]
    more = tuple(kind for kind in dict.fromkeys(kinds) if kind not in study.damaged)
    return study._replace(damaged=(*study.damaged, *more)), tuple(
        check._replace(damaged=_OTHER_THAN_LOGGED)
        if check.key in gaps.strange_trials and not check.damaged
        else check
        for check in checks
    )


# What there is, taken for all.


def accept(connection: Connection, check: StoreCheck, gaps: Mapping[int, StudyGaps]) -> None:
    """Log that what is missing was taken away; where the log is not whole, a new one begins, of what there
    is.
    """
    if check.of_log:
        log.begin(connection, _entries_of_all(connection))
        return
    for missing in check.missing:
        log.note(connection, log.LogEntry(log.STUDY_REMOVED, missing.id, missing.name))
    for study in check.unlogged:
        log.note(connection, *_entries_of(connection, study))
    for number, study_gaps_there in gaps.items():
        for key in study_gaps_there.missing_trials:
            log.note(connection, log.LogEntry(log.TRIAL_REMOVED, number, key))
        for part in study_gaps_there.missing_parts:
            log.note(connection, log.LogEntry(log.PART_REMOVED, number, part))


def _entries_of_all(connection: Connection) -> Iterator[log.LogEntry]:
    for study in integrity.study_names(connection):
        yield from _entries_of(connection, study)


def _entries_of(connection: Connection, study: StudyName) -> Iterator[log.LogEntry]:
    """As if a study was stored now, as it is."""
    noted = {part: digest for (_, part), digest in noted_study_digests(connection, study.id).items()}
    yield log.LogEntry(log.STUDY, study.id, study.name, noted.get(STUDY, ""))
    for part in sorted(_parts_there(connection, study.id)):
        yield log.LogEntry(log.PART, study.id, part, noted.get(part, ""))
    for key, value in _stored_fingerprints(connection, study.id).items():
        yield log.LogEntry(log.TRIAL, study.id, key, value)
