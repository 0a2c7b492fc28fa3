"""A trial's rows in all tables: written with their digest, and compared with it when they are read."""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    RowMapping,
    Select,
    String,
    Table,
    delete,
    insert,
    select,
    type_coerce,
)

from ktrial.fault_points import fault_point
from ktrial.model.design import PlannedTrial
from ktrial.model.profile import Profile
from ktrial.model.trial import CounterDelta, Outcome, Provenance, Sampled, Trial
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import Direction, Mode, Sample
from ktrial.store import integrity, schema
from ktrial.store.part_files import LOST, Fill, Placed, kept
from ktrial.store.schema import (
    Json,
    RowValues,
    counters,
    digests,
    has,
    part_files,
    profiles,
    samples,
    series,
    trials,
)
from ktrial.store.schema import samples as samples_table
from ktrial.store.sqlite import undecodable_text


def read_trials(
    connection: Connection, study_id: int, *, counted: bool, workload: str | None = None
) -> tuple[tuple[Trial, ...], int]:
    """A study's trials in run order, and none if some are not what was stored: then how many these are.

    `workload`: with its samples only, though all are compared with their digests. Raises TrialsNotThere.
    """
    of_study = select(trials.c.id).where(trials.c.study_id == study_id)
    query = TRIAL_TEXTS.where(*_of_study(study_id)).order_by(trials.c.run_order, trials.c.id)
    noted = noted_of_trials(connection, study_id)
    records = connection.execute(query).all()
    read_series = samples_by_trial(connection, of_study)
    events = select(counters).where(counters.c.trial_id.in_(of_study))
    risen = _by_trial(connection, events) if counted else {}
    whole = [
        _fits(noted.get(row.id), row, read_series.get(row.id, ()), risen.get(row.id, []) if counted else None)
        for row in records
    ]
    if not all(whole):
        return (), whole.count(False)
    now = integrity.TrialSet.of((row.key, noted[row.id][0] if row.id in noted else None) for row in records)
    if problem := integrity.trial_set_difference(connection, study_id, now):
        raise integrity.TrialsNotThere(problem, study_id)
    return tuple(
        trial_of_text(row, read_series.get(row.id, ()), risen.get(row.id, ()), workload, row.id in noted)
        for row in records
    ), 0


def _fits(
    noted: tuple[str, str] | None,
    row: Row[Any],
    of_trial: Sequence[tuple[Any, ...]],
    rose: Sequence[RowMapping] | None,
) -> bool:
    """Whether a trial's rows are as they were stored; true where nothing was noted.

    `rose`: None where counters were not read.
    """
    if noted is None:
        return True
    if trial_text_digest(row, of_trial) != noted[0]:
        return False
    return rose is None or counters_digest(rose) == noted[1]


def _of_study(study_id: int) -> tuple[ColumnElement[bool], ...]:
    """Older ktrials stored trials with which the machine failed: they say nothing, and are run again."""
    return trials.c.study_id == study_id, trials.c.outcome != Outcome.MACHINE_FAILED.value


class EndedTrial(NamedTuple):
    """A trial that ended, with its large parts as they are stored."""

    trial: Trial
    profiles: list[schema.RowValues]
    series: list[schema.RowValues]

    @property
    def key(self) -> str:
        """PlannedTrial.key."""
        return self.trial.planned.key


def prepared_trials(ended: Sequence[Trial]) -> tuple[EndedTrial, ...]:
    """What takes long, done before anything is locked."""
    return tuple(EndedTrial(trial, schema.profile_rows(trial), schema.series_rows(trial)) for trial in ended)


def large_contents(ended: Sequence[EndedTrial]) -> Iterator[bytes]:
    """What may lie in files."""
    return (row["content"] for one in ended for row in (*one.profiles, *one.series))


def add_trials(
    connection: Connection,
    study_id: int,
    ended: Sequence[EndedTrial],
    replaces: frozenset[Outcome],
    placed: Placed,
) -> tuple[bool, ...]:
    """Insert trials, each in place of one of its key with one of these outcomes; False where that stays."""
    keys = [one.key for one in ended]
    same = (trials.c.study_id == study_id, trials.c.key.in_(keys))
    before = integrity.trial_set_before_change(connection, study_id)
    removed: list[integrity.Member] = []
    if replaces:
        old = trials.c.outcome.in_([outcome.value for outcome in replaces])
        removed = integrity.trial_set_members(connection, *same, old)
        connection.execute(delete(trials).where(*same, old))
        fault_point("store: older trial removed")
    there = set(connection.scalars(select(trials.c.key).where(*same)))
    new = {key: one for key, one in zip(keys, ended, strict=True) if key not in there}
    if new:
        store_trials(connection, study_id, tuple(new.values()), placed)
        added = integrity.trial_set_members(
            connection, trials.c.study_id == study_id, trials.c.key.in_(list(new))
        )
        integrity.note_trial_set(connection, study_id, before.changed(added=added, removed=removed))
    return tuple(new.get(key) is one for key, one in zip(keys, ended, strict=True))


def store_trials(connection: Connection, study_id: int, ended: Sequence[EndedTrial], placed: Placed) -> None:
    """Insert trials, and all that belongs to them."""
    rows = [schema.trial_row(study_id, one.trial) for one in ended]
    inserting = insert(trials).returning(trials.c.id, sort_by_parameter_order=True)
    numbers = connection.scalars(inserting, rows).all()
    fault_point("store: trial inserted")
    parts = [_parts(*each) for each in zip(numbers, rows, ended, strict=True)]
    if of_all := [row for each in parts for row in each.samples]:
        connection.execute(insert(samples), of_all)
        fault_point("store: samples inserted")
    if of_all := [row for each in parts for row in each.counters]:
        connection.execute(insert(counters), of_all)
        fault_point("store: counters inserted")
    if of_all := [row for each in parts for row in each.profiles]:
        connection.execute(insert(profiles), kept(connection, profiles.name, of_all, placed))
        fault_point("store: profiles inserted")
    if of_all := [row for each in parts for row in each.series]:
        connection.execute(insert(series), kept(connection, series.name, of_all, placed))
        fault_point("store: time series inserted")
    noted = [digest_row(number, each) for number, each in zip(numbers, parts, strict=True)]
    connection.execute(insert(digests), noted)
    fault_point("store: digests inserted")


def remove_trials(connection: Connection, *which: ColumnElement[bool]) -> None:
    """Take trials away, with all that belongs to them. Their studies' states change, though the same number
    of trials, with the same numbers, may come in their place.
    """
    for study_id in sorted(set(connection.scalars(select(trials.c.study_id).where(*which)))):
        before = integrity.trial_set_before_change(connection, study_id)
        gone = integrity.trial_set_members(connection, trials.c.study_id == study_id, *which)
        integrity.note_trial_set(connection, study_id, before.changed(removed=gone))
        integrity.note_study_digest(connection, study_id, integrity.REMOVAL, secrets.token_hex(32))
    connection.execute(delete(trials).where(*which))


def accept_missing_trials(connection: Connection, study_id: int) -> None:
    """Take those that are there for all that the study has. What is left of others goes: a new trial would
    get their number, and what belonged to them.
    """
    integrity.trial_set_before_change(connection, study_id)
    for table in (samples, counters, profiles, series, part_files, digests):
        connection.execute(delete(table).where(table.c.trial_id.not_in(select(trials.c.id))))
    integrity.note_trial_set(connection, study_id, integrity.stored_trial_set(connection, study_id))
    integrity.note_study_digest(connection, study_id, integrity.REMOVAL, secrets.token_hex(32))


class TrialRows(NamedTuple):
    """All rows of a trial."""

    trial: Mapping[Any, Any]
    samples: Sequence[Mapping[Any, Any]]
    counters: Sequence[Mapping[Any, Any]]
    profiles: Sequence[Mapping[Any, Any]]
    series: Sequence[Mapping[Any, Any]]


def _parts(trial_id: int, row: schema.RowValues, ended: EndedTrial) -> TrialRows:
    return TrialRows(
        trial=row,
        samples=schema.sample_rows(trial_id, ended.trial),
        counters=schema.counter_rows(trial_id, ended.trial),
        profiles=[{**each, "trial_id": trial_id} for each in ended.profiles],
        series=[{**each, "trial_id": trial_id} for each in ended.series],
    )


def _by_trial(connection: Connection, query: Select[Any]) -> dict[int, list[RowMapping]]:
    """The rows of a table that belongs to trials, by trial, in the order in which they were stored."""
    grouped: dict[int, list[RowMapping]] = {}
    for row in connection.execute(query.order_by("id")).mappings():
        grouped.setdefault(row["trial_id"], []).append(row)
    return grouped


def read_profile(
    connection: Connection, study_id: int, trial_key: str, workload: str, fill: Fill
) -> Profile | None:
    """None where there is none. Raises BlobDamaged, BlobLost, zlib.error, pydantic.ValidationError."""
    query = (
        select(profiles)
        .join(trials, trials.c.id == profiles.c.trial_id)
        .where(trials.c.study_id == study_id, trials.c.key == trial_key, profiles.c.workload == workload)
    )
    row = connection.execute(query).mappings().first() if has(connection, profiles) else None
    if row is None:
        return None
    (filled,) = fill(connection, profiles.name, [row])
    check_blobs(connection, profiles, [filled])
    return schema.profile_of(filled["content"])


def profiled_workloads(connection: Connection, study_id: int) -> frozenset[str]:
    """Workloads of which at least one trial of the study has a profile."""
    query = (
        select(profiles.c.workload)
        .join(trials, trials.c.id == profiles.c.trial_id)
        .where(trials.c.study_id == study_id)
    )
    return frozenset(connection.scalars(query.distinct())) if has(connection, profiles) else frozenset()


def read_series(connection: Connection, study_id: int, trial_key: str, fill: Fill) -> tuple[Sampled, ...]:
    """In the order of storing. Raises BlobDamaged, BlobLost, zlib.error, pydantic.ValidationError."""
    query = (
        select(series)
        .join(trials, trials.c.id == series.c.trial_id)
        .where(trials.c.study_id == study_id, trials.c.key == trial_key)
        .order_by(series.c.id)
    )
    records = connection.execute(query).mappings().all() if has(connection, series) else []
    filled = fill(connection, series.name, records)
    check_blobs(connection, series, filled)
    return tuple(schema.sampled_of(row["content"]) for row in filled)


# The digest that each trial is stored with, over what stands in its rows; compared when they are read.
#
# The digest of a trial and its samples stands apart from that of its counters, and each profile and series
# has its own: so that whatever is read is compared, and nothing else has to be read for it.


def _columns(table: Table) -> tuple[str, ...]:
    """Those that hold what was measured, in an order that a new one would not change."""
    return tuple(sorted(column.name for column in table.columns if column.name not in {"id", "trial_id"}))


OF_TRIAL, OF_SAMPLE, _OF_COUNTER = _columns(trials), _columns(samples), _columns(counters)


UNREADABLE_TRIAL = (ValueError, TypeError, LookupError, ArithmeticError)
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


def digest_row(trial_id: int, parts: "TrialRows") -> RowValues:
    """The row in `digests` of a trial that is stored."""
    return {
        "trial_id": trial_id,
        "content": trial_content_digest(parts.trial, parts.samples),
        "counters": counters_digest(parts.counters),
        "profiles": blob_digests(parts.profiles),
        "series": blob_digests(parts.series),
    }


def trial_content_digest(trial: Mapping[Any, Any], of_samples: Iterable[Mapping[Any, Any]]) -> str:
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


def check_trials(connection: Connection, study_id: int, fill: Fill) -> tuple[TrialCheck, ...]:
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
    except UNREADABLE_TRIAL as error:
        return TrialCheck(trial_id, key, True, (f"a row that cannot be read ({type(error).__name__})",))
    return TrialCheck(trial_id, key, bool(noted), damaged)


def _differing(connection: Connection, trial_id: int, noted: RowMapping, fill: Fill) -> Iterable[str]:
    trial = connection.execute(select(trials).where(trials.c.id == trial_id)).mappings().one()
    rows = [_rows(connection, table, trial_id) for table in (samples, counters)]
    large = [fill(connection, table.name, _rows(connection, table, trial_id)) for table in (profiles, series)]
    return differing_parts(TrialRows(trial, *rows, *large), noted)


def differing_parts(parts: TrialRows, noted: Mapping[Any, Any]) -> Iterable[str]:
    """What of a trial is not as its digests say."""
    if trial_content_digest(parts.trial, parts.samples) != noted["content"]:
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


# Trials from the text that their rows have, without a model of what is the same again and again.
#
# A store of a million trials says the same few things a million times: which kernel, which QEMU, settings.
# JSON is kept as the text that the database has; what the same text means is worked out once. The digest of
# a trial is made of that text, too: it is that of `trial_digests.content_digest`.

_KEPT = 2048
"""Texts of which the meaning is remembered: some 10 MB."""


_JSON = frozenset(column.name for column in trials.columns if isinstance(column.type, Json))


TRIAL_TEXTS: Select[Any] = select(
    trials.c.id,
    *(
        type_coerce(column, String).label(column.name) if column.name in _JSON else column
        for column in (trials.c[name] for name in OF_TRIAL)
    ),
)
"""Trials' rows, with JSON as text; after the number, columns as the digest has them."""


_ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str).encode


_WARNINGS = TypeAdapter(tuple[DataWarning, ...])


_DIRECTIONS = {one.value: one for one in Direction}


_MODES = {one.value: one for one in Mode}


_WORKLOAD = OF_SAMPLE.index("workload")


def samples_by_trial(connection: Connection, of_trials: Select[Any]) -> dict[int, list[tuple[Any, ...]]]:
    """The samples of trials (a selection of numbers), by trial, in the order of storing; as OF_SAMPLE."""
    columns = [samples_table.c[name] for name in OF_SAMPLE]
    query = select(samples_table.c.trial_id, *columns).where(samples_table.c.trial_id.in_(of_trials))
    grouped: dict[int, list[tuple[Any, ...]]] = {}
    for trial_id, *values in connection.execute(query.order_by(samples_table.c.id)):
        grouped.setdefault(trial_id, []).append(tuple(values))
    return grouped


def trial_text_digest(row: Row[Any], of_trial: Sequence[tuple[Any, ...]]) -> str:
    """As `trial_digests.content_digest`."""
    values: tuple[Any, ...] = tuple(row)[1:]
    pieces = [
        _canonical(value) if name in _JSON else _ENCODE(value)
        for name, value in zip(OF_TRIAL, values, strict=True)
    ]
    rows = [f"[{','.join(pieces)}]", *([_ENCODE(of_trial)[1:-1]] if of_trial else [])]
    return hashlib.sha256(f"[{','.join(rows)}]".encode()).hexdigest()


def trial_of_text(
    row: Row[Any],
    of_trial: Sequence[tuple[Any, ...]],
    rose: Sequence[RowMapping],
    workload: str | None,
    is_as_stored: bool,
) -> Trial:
    """The trial, with samples of one workload or of all. Raises pydantic.ValidationError.

    `is_as_stored`: what fits its digest was a Trial when it was stored, and need not be looked at again.
    """
    wanted = [one for one in of_trial if workload is None or one[_WORKLOAD] == workload]
    plain = [dict(zip(OF_SAMPLE, one, strict=True)) for one in wanted]
    make: Callable[..., Any] = Trial.model_construct if is_as_stored else Trial
    made: Trial = make(
        planned=_planned(row.planned),
        outcome=Outcome(row.outcome),
        reason=row.reason,
        samples=tuple(map(_sample if is_as_stored else Sample.model_validate, plain)),
        counters=tuple(_counter(one) for one in rose),
        profiles=(),
        sampled=(),
        settings=dict(_settings(row.settings)),
        warnings=_warnings(row.warnings),
        console=row.console,
        provenance=_provenance(row.provenance),
        started=schema.from_utc(row.started),
        seconds=row.seconds,
    )
    return made


def _sample(plain: dict[str, Any]) -> Sample:
    plain["direction"], plain["mode"] = _DIRECTIONS[plain["direction"]], _MODES[plain["mode"]]
    return Sample.model_construct(**plain)


def _counter(row: RowMapping) -> CounterDelta:
    return CounterDelta(workload=row["workload"], name=row["name"], delta=row["delta"])


@lru_cache(_KEPT)
def _canonical(text: str) -> str:
    return _ENCODE(json.loads(text))


@lru_cache(_KEPT)
def _planned(text: str) -> PlannedTrial:
    return PlannedTrial.model_validate(json.loads(text))


@lru_cache(_KEPT)
def _provenance(text: str) -> Provenance:
    return Provenance.model_validate(json.loads(text))


@lru_cache(_KEPT)
def _settings(text: str) -> dict[str, str]:
    settings: dict[str, str] = json.loads(text)
    return settings


@lru_cache(_KEPT)
def _warnings(text: str) -> tuple[DataWarning, ...]:
    return _WARNINGS.validate_python(json.loads(text))
