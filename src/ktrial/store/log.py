"""The log of a store: an entry for each thing that was stored or taken away, chained to the one before.

An entry's head is SHA-256 of the head before it and of what the entry says. So the newest head stands for all
that was ever logged, and whoever has kept it (`head_file`, a bundle) can tell whether a store is that one,
gone on with, or another. Entries are written in the transaction that stores what they are of, at its end:
on a server other writers wait from then on.
"""

import hashlib
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, delete, insert, select

from ktrial.fault_points import fault_point
from ktrial.store import postgresql
from ktrial.store.head_file import Head
from ktrial.store.schema import log_entries

BEGUN = "begun"
"""The first entry: its digest is a random number, so that no two stores have the same head."""
STUDY, STUDY_PUT_RIGHT, STUDY_REMOVED = "study", "study put right", "study removed"
TRIAL, TRIAL_REMOVED = "trial", "trial removed"
PART, PART_REMOVED = "part", "part removed"
_STUDIES_MORE = {STUDY: 1, STUDY_REMOVED: -1}
"""By how much an entry changes how many studies there are."""
_NOTED = "ktrial log"
_NO_HEAD = "0" * 64
_NEWEST = (
    select(log_entries.c.number, log_entries.c.head, log_entries.c.studies)
    .order_by(log_entries.c.number.desc())
    .limit(1)
)
_COLUMNS = tuple(column.name for column in log_entries.columns if column.name != "head")
"""What a head is of, beside the head before it."""


class LogNotWhole(Exception):
    """The log cannot be added to, or read: why."""


class StudiesNotThere(Exception):
    """The store does not have as many studies as its log says: how many are there, and were."""

    def __init__(self, there: int, logged: int) -> None:
        super().__init__(there, logged)
        self.there, self.logged = there, logged


class LogEntry(NamedTuple):
    """Something that was stored or taken away."""

    kind: str
    study_id: int
    subject: str
    """A study's name, a trial's key, or which part of a study (`integrity.part_of`)."""
    digest: str = ""
    """Of what was stored; empty where it was taken away."""


# Writing.


def note(connection: Connection, *entries: LogEntry) -> None:
    """Have these entries in the log when this transaction ends."""
    connection.info.setdefault(_NOTED, []).extend(entries)


def forget_noted(connection: Connection) -> None:
    """A transaction begins: what one that failed has noted was not stored."""
    connection.info.pop(_NOTED, None)


def append_noted(connection: Connection) -> Head | None:
    """Write what was noted: the new head; None where nothing was. Raises LogNotWhole."""
    noted: list[LogEntry] = connection.info.pop(_NOTED, [])
    if not noted:
        return None
    if postgresql.is_postgresql(connection):
        postgresql.lock_log(connection)
    newest = connection.execute(_NEWEST).first()
    if newest is None:
        raise LogNotWhole("it has no entry")
    head = _append(connection, Head(newest.number, newest.head), newest.studies, noted)
    fault_point("store: log written")
    return head


def begin(connection: Connection, entries: Iterable[LogEntry] = ()) -> Head:
    """The first entry of a new log, and these; an older log goes."""
    connection.execute(delete(log_entries))
    first = LogEntry(BEGUN, 0, "", secrets.token_hex(32))
    return _append(connection, Head(0, _NO_HEAD), 0, [first, *entries])


def _append(connection: Connection, head: Head, studies: int, entries: Iterable[LogEntry]) -> Head:
    rows = []
    for entry in entries:
        studies += _STUDIES_MORE.get(entry.kind, 0)
        row = {"number": head.number + 1, **entry._asdict(), "studies": studies}
        head = Head(row["number"], next_head(head.digest, row))
        rows.append({**row, "head": head.digest})
    connection.execute(insert(log_entries), rows)
    return head


def next_head(before: str, row: Mapping[Any, Any]) -> str:
    """The head of an entry: SHA-256 of the head before it, and of all that the entry says."""
    text = json.dumps([before, *(row[name] for name in _COLUMNS)], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def fingerprint(digest_row: Mapping[Any, Any]) -> str:
    """What the log keeps of a trial: SHA-256 of its row in `digests`."""
    facts = [digest_row[name] for name in ("content", "counters", "profiles", "series")]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


# Reading.


def newest_head(connection: Connection) -> Head | None:
    """None where the log is empty."""
    newest = connection.execute(_NEWEST).first()
    return Head(newest.number, newest.head) if newest else None


def has_head(connection: Connection, head: Head) -> bool:
    """Whether the log has this entry."""
    query = select(log_entries.c.head).where(log_entries.c.number == head.number)
    return connection.scalar(query) == head.digest


def head_of_study(connection: Connection, study_id: int) -> Head | None:
    """The newest entry of a study's."""
    columns = (log_entries.c.number, log_entries.c.head)
    query = select(*columns).where(log_entries.c.study_id == study_id)
    row = connection.execute(query.order_by(log_entries.c.number.desc()).limit(1)).first()
    return Head(row.number, row.head) if row else None


def check_study_count(connection: Connection, there: int) -> None:
    """Raises StudiesNotThere where another number of studies is logged, LogNotWhole where none is."""
    newest = connection.execute(_NEWEST).first()
    if newest is None:
        raise LogNotWhole("it has no entry")
    if newest.studies != there:
        raise StudiesNotThere(there, newest.studies)


class Chain(NamedTuple):
    """What became of following the log from its first entry to its newest."""

    entries: int
    head: Head | None
    problems: tuple[str, ...]
    """Where an entry does not follow from the one before; nothing is looked at after that."""
    studies: dict[int, str]
    """The studies that there should be: number → name."""


def follow(connection: Connection) -> Chain:
    """Follow the whole log. Raises what reading a damaged row raises."""
    head, studies, count = Head(0, _NO_HEAD), dict[int, str](), 0
    for row in _rows(connection):
        count += 1
        if problem := _problem(row, head, studies):
            return Chain(count, head, (problem,), studies)
        head = Head(row.number, row.head)
    problems = () if count else ("it has no entry",)
    return Chain(count, head if count else None, problems, studies)


def _rows(connection: Connection) -> Iterator[Row[Any]]:
    query = select(log_entries).order_by(log_entries.c.number)
    return iter(connection.execute(query, execution_options={"yield_per": 1000}))


def _problem(row: Row[Any], before: Head, studies: dict[int, str]) -> str:
    """Why the entry is not the one that follows; empty where it is. `studies` are as they are after it."""
    if row.number != before.number + 1:
        return f"after entry {before.number}, entry {row.number} follows"
    if row.head != next_head(before.digest, row._mapping):
        return f"entry {row.number} is not what was logged"
    if (row.kind == BEGUN) != (row.number == 1):
        return f"entry {row.number} is not one that follows"
    if row.kind in {STUDY, STUDY_PUT_RIGHT}:
        studies[row.study_id] = row.subject
    elif row.kind == STUDY_REMOVED:
        studies.pop(row.study_id, None)
    return ""


@dataclass
class LoggedStudy:
    """What there should be of a study, as the log says."""

    name: str | None = None
    """None: it should not be there."""
    digest: str = ""
    """Of the study's row."""
    trials: dict[str, str] = field(default_factory=dict)
    """Key → fingerprint."""
    parts: dict[str, str] = field(default_factory=dict)
    """Part → digest."""


def logged_study(connection: Connection, study_id: int) -> LoggedStudy:
    """Read all entries of a study."""
    query = select(log_entries).where(log_entries.c.study_id == study_id).order_by(log_entries.c.number)
    logged = LoggedStudy()
    for row in connection.execute(query):
        if row.kind == STUDY:
            logged = LoggedStudy(row.subject, row.digest)
        elif row.kind == STUDY_PUT_RIGHT:
            logged.name, logged.digest = row.subject, row.digest
        elif row.kind == STUDY_REMOVED:
            logged = LoggedStudy()
        else:
            contents = logged.trials if row.kind in {TRIAL, TRIAL_REMOVED} else logged.parts
            contents.pop(row.subject, None)
            if row.kind in {TRIAL, PART}:
                contents[row.subject] = row.digest
    return logged
