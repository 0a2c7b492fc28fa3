"""A trial's rows in all tables: written with their digests, and compared with them when they are read.

The digest of a trial and its samples stands apart from that of its counters, and each profile and series has
its own: so that whatever is read is compared, and nothing else has to be read for it.
"""

import hashlib
import json
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
from ktrial.model.trial import CounterDelta, Outcome, Provenance, SampleSeries, Trial
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import Direction, Mode, Sample
from ktrial.store import integrity, log
from ktrial.store.integrity import UNREADABLE
from ktrial.store.part_files import LOST, Fill, FilledRow, Placed, rows_to_insert
from ktrial.store.schema import (
    Json,
    compressed,
    counters,
    decompressed,
    digests,
    from_utc,
    part_files,
    profiles,
    samples,
    series,
    to_utc,
    trials,
)
from ktrial.store.sqlite import undecodable_text


def _columns(table: Table) -> tuple[str, ...]:
    """Those that hold what was measured, in an order that a new one would not change."""
    return tuple(sorted(column.name for column in table.columns if column.name not in {"id", "trial_id"}))


_TRIAL_COLUMNS, _SAMPLE_COLUMNS, _COUNTER_COLUMNS = _columns(trials), _columns(samples), _columns(counters)
_JSON_COLUMNS = frozenset(column.name for column in trials.columns if isinstance(column.type, Json))
_PART_NAMES = {profiles.name: "profile", series.name: "series"}
"""Tables of large parts → what a row of theirs is called."""


class BlobDamaged(Exception):
    """A profile or series is not what was stored."""


class BlobLost(Exception):
    """The file in which a profile or series lies is not what was stored: which one, and why."""

    def __init__(self, part: str, problem: str) -> None:
        super().__init__(part, problem)
        self.part, self.problem = part, problem


class EndedTrial(NamedTuple):
    """A trial that ended, with its large parts as they are stored: without the trial's number."""

    trial: Trial
    profiles: list[dict[str, Any]]
    series: list[dict[str, Any]]

    @property
    def key(self) -> str:
        """PlannedTrial.key."""
        return self.trial.planned.key


class TrialRows(NamedTuple):
    """All rows of a trial."""

    trial: Mapping[Any, Any]
    samples: Sequence[Mapping[Any, Any]]
    counters: Sequence[Mapping[Any, Any]]
    profiles: Sequence[Mapping[Any, Any]]
    series: Sequence[Mapping[Any, Any]]


class TrialCheck(NamedTuple):
    """What became of comparing one stored trial with its digests."""

    trial_id: int
    key: str
    damaged: tuple[str, ...]
    """What is not as it was stored: `samples`, `counters`, `profile of fork`."""


# Writing.


def prepared_trials(ended: Sequence[Trial]) -> tuple[EndedTrial, ...]:
    """What takes long, done before anything is locked."""
    without_vectors = {"region": {"operations": {"vector"}}}
    """Each operation's own count, which nothing asks for later."""
    return tuple(
        EndedTrial(
            trial,
            [
                {
                    "workload": profile.workload,
                    "content": compressed(profile, exclude=without_vectors, without_defaults=True),
                }
                for profile in trial.profiles
            ],
            [{"workload": sampled.workload, "content": compressed(sampled)} for sampled in trial.sampled],
        )
        for trial in ended
    )


def large_contents(ended: Sequence[EndedTrial]) -> Iterator[bytes]:
    """What may lie in files."""
    return (row["content"] for trial in ended for row in (*trial.profiles, *trial.series))


def add_trials(
    connection: Connection,
    study_id: int,
    ended: Sequence[EndedTrial],
    replaces: frozenset[Outcome],
    placed: Placed,
) -> tuple[bool, ...]:
    """Insert trials, each in place of one of its key with one of these outcomes; False where that stays."""
    keys = [trial.key for trial in ended]
    same = (trials.c.study_id == study_id, trials.c.key.in_(keys))
    before = integrity.trial_set_before_change(connection, study_id)
    removed: list[integrity.Member] = []
    if replaces:
        replaced = trials.c.outcome.in_([outcome.value for outcome in replaces])
        removed = integrity.trial_set_members(connection, *same, replaced)
        connection.execute(delete(trials).where(*same, replaced))
        fault_point("store: older trial removed")
    stored_keys = set(connection.scalars(select(trials.c.key).where(*same)))
    new = {key: trial for key, trial in zip(keys, ended, strict=True) if key not in stored_keys}
    if new:
        if removed:
            log.note(connection, *(log.LogEntry(log.TRIAL_REMOVED, study_id, key) for key, _ in removed))
        added = _insert_trials(connection, study_id, tuple(new.values()), placed)
        integrity.note_trial_set(connection, study_id, before.changed(added=added, removed=removed))
    return tuple(new.get(key) is trial for key, trial in zip(keys, ended, strict=True))


def _insert_trials(
    connection: Connection, study_id: int, ended: Sequence[EndedTrial], placed: Placed
) -> list[integrity.Member]:
    rows = [_trial_row(study_id, trial) for trial, _, _ in ended]
    inserting = insert(trials).returning(trials.c.id, sort_by_parameter_order=True)
    numbers = connection.scalars(inserting, rows).all()
    fault_point("store: trial inserted")
    parts = [
        TrialRows(
            trial=row,
            samples=[{"trial_id": number, **sample.model_dump()} for sample in trial.samples],
            counters=[{"trial_id": number, **counter.model_dump()} for counter in trial.counters],
            profiles=[{**profile, "trial_id": number} for profile in profile_rows],
            series=[{**sampled, "trial_id": number} for sampled in series_rows],
        )
        for number, row, (trial, profile_rows, series_rows) in zip(numbers, rows, ended, strict=True)
    ]
    if sample_rows := [row for trial in parts for row in trial.samples]:
        connection.execute(insert(samples), sample_rows)
        fault_point("store: samples inserted")
    if counter_rows := [row for trial in parts for row in trial.counters]:
        connection.execute(insert(counters), counter_rows)
        fault_point("store: counters inserted")
    if profile_rows := [row for trial in parts for row in trial.profiles]:
        connection.execute(insert(profiles), rows_to_insert(connection, profiles.name, profile_rows, placed))
        fault_point("store: profiles inserted")
    if series_rows := [row for trial in parts for row in trial.series]:
        connection.execute(insert(series), rows_to_insert(connection, series.name, series_rows, placed))
        fault_point("store: time series inserted")
    digest_rows = [digest_row(number, trial) for number, trial in zip(numbers, parts, strict=True)]
    connection.execute(insert(digests), digest_rows)
    fault_point("store: digests inserted")
    note_trials(connection, study_id, (trial.key for trial in ended), digest_rows)
    return [(trial.key, row["content"]) for trial, row in zip(ended, digest_rows, strict=True)]


def note_trials(
    connection: Connection, study_id: int, keys: Iterable[str], digest_rows: Iterable[Mapping[str, Any]]
) -> None:
    """Have trials that were just inserted in the log."""
    for key, row in zip(keys, digest_rows, strict=True):
        log.note(connection, log.LogEntry(log.TRIAL, study_id, key, log.fingerprint(row)))


def _trial_row(study_id: int, trial: Trial) -> dict[str, Any]:
    """The row in `trials`, without samples, counters, profiles and series."""
    apart = {"samples", "counters", "profiles", "sampled", "started"}
    return trial.model_dump(mode="json", exclude=apart) | {
        "study_id": study_id,
        "key": trial.planned.key,
        "run_order": trial.planned.order,
        "kernel": trial.provenance.kernel,
        "kernel_digest": trial.provenance.kernel_digest,
        "started": to_utc(trial.started),
    }


def remove_trials(connection: Connection, *which: ColumnElement[bool]) -> None:
    """Take trials away, with all that belongs to them. Their studies' states change, though the same number
    of trials, with the same numbers, may come in their place.
    """
    for study_id in sorted(set(connection.scalars(select(trials.c.study_id).where(*which)))):
        before = integrity.trial_set_before_change(connection, study_id)
        removed = integrity.trial_set_members(connection, trials.c.study_id == study_id, *which)
        integrity.note_trial_set(connection, study_id, before.changed(removed=removed))
        integrity.note_removal(connection, study_id, (key for key, _ in removed))
    connection.execute(delete(trials).where(*which))


def accept_missing_trials(connection: Connection, study_id: int) -> None:
    """Take those that are there for all that the study has. What is left of others goes: a new trial would
    get their number, and what belonged to them.
    """
    integrity.trial_set_before_change(connection, study_id)
    for table in (samples, counters, profiles, series, part_files, digests):
        connection.execute(delete(table).where(table.c.trial_id.not_in(select(trials.c.id))))
    integrity.note_trial_set(connection, study_id, integrity.stored_trial_set(connection, study_id))
    integrity.note_removal(connection, study_id, ())


# Reading. A store of a million trials says the same few things a million times: which kernel, which QEMU,
# settings. JSON is kept as the text that the database has; what the same text means is worked out once. The
# digest of a trial is made of that text, too.

_TEXTS_REMEMBERED = 2048
"""Texts of which the meaning is remembered: some 10 MB."""
_TRIAL_TEXTS: Select[Any] = select(
    trials.c.id,
    *(
        type_coerce(column, String).label(column.name) if column.name in _JSON_COLUMNS else column
        for column in (trials.c[name] for name in _TRIAL_COLUMNS)
    ),
)
"""Trials' rows, with JSON as text; after the number, columns as the digest has them."""
_ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str).encode
_WARNINGS = TypeAdapter(tuple[DataWarning, ...])
_DIRECTIONS = {direction.value: direction for direction in Direction}
_MODES = {mode.value: mode for mode in Mode}
_WORKLOAD = _SAMPLE_COLUMNS.index("workload")


def read_trials(
    connection: Connection, study_id: int, *, counted: bool, workload: str | None = None
) -> tuple[tuple[Trial, ...], int]:
    """A study's trials in run order, and none if some are not what was stored: then how many these are.

    `workload`: with its samples only, though all are compared with their digests. Raises TrialsNotThere.
    """
    of_study = select(trials.c.id).where(trials.c.study_id == study_id)
    query = _TRIAL_TEXTS.where(trials.c.study_id == study_id).order_by(trials.c.run_order, trials.c.id)
    rows = connection.execute(query).all()
    noted = {
        number: (content, counters_digest)
        for number, content, counters_digest in connection.execute(
            select(digests.c.trial_id, digests.c.content, digests.c.counters)
            .join(trials, trials.c.id == digests.c.trial_id)
            .where(trials.c.study_id == study_id)
        )
    }
    sample_rows = _samples_by_trial(connection, of_study)
    counter_rows = _counters_by_trial(connection, of_study) if counted else {}
    is_sound = []
    for row in rows:
        content, counters_digest = noted.get(row.id, ("", ""))
        is_sound.append(
            _text_digest(row, sample_rows.get(row.id, ())) == content
            and (not counted or _counters_digest(counter_rows.get(row.id, [])) == counters_digest)
        )
    if not all(is_sound):
        return (), is_sound.count(False)
    trial_set = integrity.TrialSet.of((row.key, noted[row.id][0]) for row in rows)
    if problem := integrity.trial_set_difference(connection, study_id, trial_set):
        raise integrity.TrialsNotThere(problem, study_id)
    return tuple(
        _trial_of(row, sample_rows.get(row.id, ()), counter_rows.get(row.id, ()), workload) for row in rows
    ), 0


def _samples_by_trial(connection: Connection, of_study: Select[Any]) -> dict[int, list[tuple[Any, ...]]]:
    """In the order of storing, as _SAMPLE_COLUMNS."""
    columns = [samples.c[name] for name in _SAMPLE_COLUMNS]
    query = select(samples.c.trial_id, *columns).where(samples.c.trial_id.in_(of_study))
    grouped: dict[int, list[tuple[Any, ...]]] = {}
    for trial_id, *values in connection.execute(query.order_by(samples.c.id)):
        grouped.setdefault(trial_id, []).append(tuple(values))
    return grouped


def _counters_by_trial(connection: Connection, of_study: Select[Any]) -> dict[int, list[RowMapping]]:
    """In the order of storing."""
    query = select(counters).where(counters.c.trial_id.in_(of_study)).order_by(counters.c.id)
    grouped: dict[int, list[RowMapping]] = {}
    for row in connection.execute(query).mappings():
        grouped.setdefault(row["trial_id"], []).append(row)
    return grouped


def _text_digest(row: Row[Any], sample_rows: Sequence[tuple[Any, ...]]) -> str:
    """SHA-256 of `content_text`, of rows with JSON as text."""
    pieces = [
        _canonical(value) if name in _JSON_COLUMNS else _ENCODE(value)
        for name, value in zip(_TRIAL_COLUMNS, tuple(row)[1:], strict=True)
    ]
    rows = [f"[{','.join(pieces)}]", *([_ENCODE(sample_rows)[1:-1]] if sample_rows else [])]
    return _sha256(f"[{','.join(rows)}]")


def _trial_of(
    row: Row[Any],
    sample_rows: Sequence[tuple[Any, ...]],
    counter_rows: Sequence[RowMapping],
    workload: str | None,
) -> Trial:
    """The trial, with samples of one workload or of all.

    What fits its digest was a Trial when it was stored, and need not be looked at again.
    """
    make: Callable[..., Trial] = Trial.model_construct
    return make(
        planned=_planned(row.planned),
        outcome=Outcome(row.outcome),
        reason=row.reason,
        samples=tuple(_sample(values) for values in sample_rows if workload in {None, values[_WORKLOAD]}),
        counters=tuple(
            CounterDelta(workload=counter["workload"], name=counter["name"], delta=counter["delta"])
            for counter in counter_rows
        ),
        profiles=(),
        sampled=(),
        settings=dict(_settings(row.settings)),
        warnings=_warnings(row.warnings),
        console=row.console,
        provenance=_provenance(row.provenance),
        started=from_utc(row.started),
        seconds=row.seconds,
    )


def _sample(values: tuple[Any, ...]) -> Sample:
    sample = dict(zip(_SAMPLE_COLUMNS, values, strict=True))
    sample["direction"], sample["mode"] = _DIRECTIONS[sample["direction"]], _MODES[sample["mode"]]
    return Sample.model_construct(**sample)


@lru_cache(_TEXTS_REMEMBERED)
def _canonical(text: str) -> str:
    return _ENCODE(json.loads(text))


@lru_cache(_TEXTS_REMEMBERED)
def _planned(text: str) -> PlannedTrial:
    return PlannedTrial.model_validate(json.loads(text))


@lru_cache(_TEXTS_REMEMBERED)
def _provenance(text: str) -> Provenance:
    return Provenance.model_validate(json.loads(text))


@lru_cache(_TEXTS_REMEMBERED)
def _settings(text: str) -> dict[str, str]:
    settings: dict[str, str] = json.loads(text)
    return settings


@lru_cache(_TEXTS_REMEMBERED)
def _warnings(text: str) -> tuple[DataWarning, ...]:
    return _WARNINGS.validate_python(json.loads(text))


def read_profile(
    connection: Connection, study_id: int, trial_key: str, workload: str, fill: Fill
) -> Profile | None:
    """None where there is none. Raises BlobDamaged, BlobLost, zlib.error, pydantic.ValidationError."""
    query = (
        select(profiles)
        .join(trials, trials.c.id == profiles.c.trial_id)
        .where(trials.c.study_id == study_id, trials.c.key == trial_key, profiles.c.workload == workload)
    )
    row = connection.execute(query).mappings().first()
    if row is None:
        return None
    (filled,) = fill(connection, profiles.name, [row])
    _check_blobs(connection, profiles, [filled])
    return decompressed(Profile, filled["content"])


def profiled_workloads(connection: Connection, study_id: int) -> frozenset[str]:
    """Workloads of which at least one trial of the study has a profile."""
    query = (
        select(profiles.c.workload)
        .join(trials, trials.c.id == profiles.c.trial_id)
        .where(trials.c.study_id == study_id)
    )
    return frozenset(connection.scalars(query.distinct()))


def read_series(
    connection: Connection, study_id: int, trial_key: str, fill: Fill
) -> tuple[SampleSeries, ...]:
    """In the order of storing. Raises BlobDamaged, BlobLost, zlib.error, pydantic.ValidationError."""
    query = (
        select(series)
        .join(trials, trials.c.id == series.c.trial_id)
        .where(trials.c.study_id == study_id, trials.c.key == trial_key)
        .order_by(series.c.id)
    )
    filled = fill(connection, series.name, connection.execute(query).mappings().all())
    _check_blobs(connection, series, filled)
    return tuple(decompressed(SampleSeries, row["content"]) for row in filled)


def _check_blobs(connection: Connection, table: Table, rows: Sequence[FilledRow]) -> None:
    """Raises BlobDamaged, BlobLost where rows of `profiles` or `series` are not as they were stored."""
    for row in rows:
        if LOST in row:
            raise BlobLost(f"{_PART_NAMES[table.name]} of {row['workload']}", row[LOST])
    if not rows:
        return
    query = select(digests.c[table.name]).where(digests.c.trial_id == rows[0]["trial_id"])
    noted = connection.scalar(query) or {}
    if any(noted.get(workload) != digest for workload, digest in _blob_digests(rows).items()):
        raise BlobDamaged


# Digests, and comparing everything with them.


def digest_row(trial_id: int, rows: TrialRows) -> dict[str, Any]:
    """The row in `digests` of a trial that is stored."""
    return {
        "trial_id": trial_id,
        "content": _sha256(content_text(rows)),
        "counters": _counters_digest(rows.counters),
        "profiles": _blob_digests(rows.profiles),
        "series": _blob_digests(rows.series),
    }


def noted_digests(connection: Connection, study_id: int) -> dict[int, RowMapping]:
    """The rows in `digests` of a study's trials, by trial."""
    of_study = select(trials.c.id).where(trials.c.study_id == study_id)
    query = select(digests).where(digests.c.trial_id.in_(of_study))
    return {row["trial_id"]: row for row in connection.execute(query).mappings()}


def check_trials(connection: Connection, study_id: int, fill: Fill) -> tuple[TrialCheck, ...]:
    """Compare every trial of a study, one by one, with all that belongs to it."""
    query = select(trials.c.id, trials.c.key).where(trials.c.study_id == study_id).order_by(trials.c.id)
    checks = []
    for number, key in connection.execute(query).all():
        try:
            with undecodable_text():
                damaged = tuple(_damaged_parts(connection, number, fill))
        except UNREADABLE as error:
            damaged = (f"a row that cannot be read ({type(error).__name__})",)
        checks.append(TrialCheck(number, key, damaged))
    return tuple(checks)


def _damaged_parts(connection: Connection, trial_id: int, fill: Fill) -> Iterable[str]:
    def rows_of(table: Table) -> Sequence[RowMapping]:
        query = select(table).where(table.c.trial_id == trial_id).order_by("id")
        return connection.execute(query).mappings().all()

    noted = rows_of(digests)
    trial = connection.execute(select(trials).where(trials.c.id == trial_id)).mappings().one()
    large = [fill(connection, table.name, rows_of(table)) for table in (profiles, series)]
    rows = TrialRows(trial, rows_of(samples), rows_of(counters), *large)
    return differing_parts(rows, noted[0]) if noted else ["its digests, which are missing"]


def differing_parts(rows: TrialRows, noted: Mapping[Any, Any]) -> Iterable[str]:
    """What of a trial is not as its digests say."""
    if _sha256(content_text(rows)) != noted["content"]:
        yield "samples, settings or provenance"
    if _counters_digest(rows.counters) != noted["counters"]:
        yield "counters"
    for part_rows, table in ((rows.profiles, profiles), (rows.series, series)):
        stored, expected = _blob_digests(part_rows), noted[table.name]
        lost = {row["workload"]: f" ({row[LOST]})" for row in part_rows if LOST in row}
        for workload in sorted(stored.keys() | expected.keys()):
            if stored.get(workload) != expected.get(workload):
                yield f"{_PART_NAMES[table.name]} of {workload}{lost.get(workload, '')}"


def content_text(rows: TrialRows) -> str:
    """What the digest of a trial's row and those of its samples is of."""
    trial = itemgetter(*_TRIAL_COLUMNS)(rows.trial)
    return _ENCODE([trial, *map(itemgetter(*_SAMPLE_COLUMNS), rows.samples)])


def _counters_digest(rows: Iterable[Mapping[Any, Any]]) -> str:
    return _sha256(_ENCODE(list(map(itemgetter(*_COUNTER_COLUMNS), rows))))


def _blob_digests(rows: Iterable[Mapping[Any, Any]]) -> dict[str, str]:
    """Workload → digest of what was compressed."""
    return {row["workload"]: integrity.digest_of_content(row["content"]) for row in rows}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
