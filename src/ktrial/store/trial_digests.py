"""The digest that each trial is stored with, over what stands in its rows; compared when they are read.

The digest of a trial and its samples stands apart from that of its counters, and each profile and series has
its own: so that whatever is read is compared, and nothing else has to be read for it.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, RowMapping, Table, select

from ktrial.store.existing_tables import has
from ktrial.store.part_files import LOST, Fill
from ktrial.store.row_conversion import Row
from ktrial.store.schema import counters, digests, profiles, samples, series, trials
from ktrial.store.text_damage import undecodable_text


def _columns(table: Table) -> tuple[str, ...]:
    """Those that hold what was measured, in an order that a new one would not change."""
    return tuple(sorted(column.name for column in table.columns if column.name not in {"id", "trial_id"}))


OF_TRIAL, OF_SAMPLE, _OF_COUNTER = _columns(trials), _columns(samples), _columns(counters)
UNREADABLE = (ValueError, TypeError, LookupError, ArithmeticError)
"""What SQLAlchemy's types and pydantic raise where a value in a row is none of its kind."""


WHAT = {profiles.name: "profile", series.name: "series"}
"""Tables of large parts → what a row of theirs is called."""


class BlobDamaged(Exception):
    """A profile or series is not what was stored."""


class BlobLost(Exception):
    """The file in which a profile or series lies is not what was stored: which one, and why."""

    def __init__(self, part: str, problem: str) -> None:
        super().__init__(part, problem)
        self.part, self.problem = part, problem


class TrialCheck(NamedTuple):
    """What became of comparing one stored trial with its digest."""

    trial_id: int
    key: str
    has_digest: bool
    damaged: tuple[str, ...]
    """What is not as it was stored: `samples`, `counters`, `profile of fork`."""


def digest_row(trial_id: int, parts: "TrialRows") -> Row:
    """The row in `digests` of a trial that is stored."""
    return {
        "trial_id": trial_id,
        "content": content_digest(parts.trial, parts.samples),
        "counters": counters_digest(parts.counters),
        "profiles": blob_digests(parts.profiles),
        "series": blob_digests(parts.series),
    }


class TrialRows(NamedTuple):
    """All rows of a trial."""

    trial: Mapping[Any, Any]
    samples: Sequence[Mapping[Any, Any]]
    counters: Sequence[Mapping[Any, Any]]
    profiles: Sequence[Mapping[Any, Any]]
    series: Sequence[Mapping[Any, Any]]


def content_digest(trial: Mapping[Any, Any], of_samples: Iterable[Mapping[Any, Any]]) -> str:
    """Of a trial's row and those of its samples."""
    return _digest([*values_of([trial], OF_TRIAL), *values_of(of_samples, OF_SAMPLE)])


def counters_digest(rows: Iterable[Mapping[Any, Any]]) -> str:
    """Of counters' rows, in their order."""
    return _digest(values_of(rows, _OF_COUNTER))


def blob_digests(rows: Iterable[Mapping[Any, Any]]) -> dict[str, str]:
    """Workload → digest of what was compressed."""
    return {row["workload"]: hashlib.sha256(row["content"]).hexdigest() for row in rows}


def noted_digests(connection: Connection, study_id: int) -> dict[int, RowMapping]:
    """The rows in `digests` of a study's trials, by trial; none where an older ktrial made the store."""
    if not has(connection, digests):
        return {}
    of_study = select(trials.c.id).where(trials.c.study_id == study_id)
    query = select(digests).where(digests.c.trial_id.in_(of_study))
    return {row["trial_id"]: row for row in connection.execute(query).mappings()}


def noted_of_trials(connection: Connection, study_id: int) -> dict[int, tuple[str, str]]:
    """Trial → the digests of it and its samples, and of its counters."""
    if not has(connection, digests):
        return {}
    query = (
        select(digests.c.trial_id, digests.c.content, digests.c.counters)
        .join(trials, trials.c.id == digests.c.trial_id)
        .where(trials.c.study_id == study_id)
    )
    return {number: (content, counted) for number, content, counted in connection.execute(query)}


def check_blobs(connection: Connection, table: Table, stored: Sequence[Mapping[Any, Any]]) -> None:
    """Raises BlobDamaged, BlobLost where rows of `profiles` or `series` are not as they were stored."""
    for row in stored:
        if LOST in row:
            raise BlobLost(f"{WHAT[table.name]} of {row['workload']}", row[LOST])
    if not stored or not has(connection, digests):
        return
    query = select(digests.c[table.name]).where(digests.c.trial_id == stored[0]["trial_id"])
    noted = connection.scalar(query)
    if noted is not None and any(noted.get(name) != made for name, made in blob_digests(stored).items()):
        raise BlobDamaged


def checks(connection: Connection, study_id: int, fill: Fill) -> tuple[TrialCheck, ...]:
    """Compare every trial of a study, one by one, with all that belongs to it."""
    query = select(trials.c.id, trials.c.key).where(trials.c.study_id == study_id).order_by(trials.c.id)
    there = has(connection, digests)
    return tuple(
        _check(connection, number, key, fill if there else None)
        for number, key in connection.execute(query).all()
    )


def _check(connection: Connection, trial_id: int, key: str, fill: Fill | None) -> TrialCheck:
    """`fill`: None where an older ktrial made the store, which has no digests."""
    try:
        with undecodable_text():
            noted = _rows(connection, digests, trial_id) if fill else []
            damaged = tuple(_differing(connection, trial_id, noted[0], fill)) if noted and fill else ()
    except UNREADABLE as error:
        return TrialCheck(trial_id, key, True, (f"a row that cannot be read ({type(error).__name__})",))
    return TrialCheck(trial_id, key, bool(noted), damaged)


def _differing(connection: Connection, trial_id: int, noted: RowMapping, fill: Fill) -> Iterable[str]:
    trial = connection.execute(select(trials).where(trials.c.id == trial_id)).mappings().one()
    rows = [_rows(connection, table, trial_id) for table in (samples, counters)]
    large = [fill(connection, table.name, _rows(connection, table, trial_id)) for table in (profiles, series)]
    return differing(TrialRows(trial, *rows, *large), noted)


def differing(parts: TrialRows, noted: Mapping[Any, Any]) -> Iterable[str]:
    """What of a trial is not as its digests say."""
    if content_digest(parts.trial, parts.samples) != noted["content"]:
        yield "samples, settings or provenance"
    if counters_digest(parts.counters) != noted["counters"]:
        yield "counters"
    for rows, name in ((parts.profiles, profiles.name), (parts.series, series.name)):
        now, then = blob_digests(rows), noted[name]
        lost = {row["workload"]: f" ({row[LOST]})" for row in rows if LOST in row}
        for workload in sorted(now.keys() | then.keys()):
            if now.get(workload) != then.get(workload):
                yield f"{WHAT[name]} of {workload}{lost.get(workload, '')}"


def _rows(connection: Connection, table: Table, trial_id: int) -> Sequence[RowMapping]:
    query = select(table).where(table.c.trial_id == trial_id).order_by("id")
    return connection.execute(query).mappings().all()


def values_of(rows: Iterable[Mapping[Any, Any]], names: tuple[str, ...]) -> list[Any]:
    """The rows' values in these columns."""
    return list(map(itemgetter(*names), rows))


def _digest(data: object) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()
