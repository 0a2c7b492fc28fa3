"""A trial's rows in all tables: written with their digest, and compared with it when they are read."""

import secrets
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, RowMapping, Select, delete, insert, select

from ktrial.fault_points import fault_point
from ktrial.model.profile import Profile
from ktrial.model.time_series import Sampled
from ktrial.model.trial import Outcome, Trial
from ktrial.store import row_conversion, stored_text, study_digests, trial_digests, trial_sets
from ktrial.store.existing_tables import has
from ktrial.store.part_files import Fill, Placed, kept
from ktrial.store.schema import counters, digests, part_files, profiles, samples, series, trials


def read(
    connection: Connection, study_id: int, *, counted: bool, workload: str | None = None
) -> tuple[tuple[Trial, ...], int]:
    """A study's trials in run order, and none if some are not what was stored: then how many these are.

    `workload`: with its samples only, though all are compared with their digests. Raises TrialsNotThere.
    """
    of_study = select(trials.c.id).where(trials.c.study_id == study_id)
    query = stored_text.TRIALS.where(*_of_study(study_id)).order_by(trials.c.run_order, trials.c.id)
    noted = trial_digests.noted_of_trials(connection, study_id)
    records = connection.execute(query).all()
    sampled = stored_text.samples(connection, of_study)
    events = select(counters).where(counters.c.trial_id.in_(of_study))
    risen = _by_trial(connection, events) if counted else {}
    whole = [
        _fits(noted.get(row.id), row, sampled.get(row.id, ()), risen.get(row.id, []) if counted else None)
        for row in records
    ]
    if not all(whole):
        return (), whole.count(False)
    now = trial_sets.TrialSet.of((row.key, noted[row.id][0] if row.id in noted else None) for row in records)
    if problem := trial_sets.difference(connection, study_id, now):
        raise trial_sets.TrialsNotThere(problem, study_id)
    return tuple(
        stored_text.trial(row, sampled.get(row.id, ()), risen.get(row.id, ()), workload, row.id in noted)
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
    if stored_text.content_digest(row, of_trial) != noted[0]:
        return False
    return rose is None or trial_digests.counters_digest(rose) == noted[1]


def _of_study(study_id: int) -> tuple[ColumnElement[bool], ...]:
    """Older ktrials stored trials with which the machine failed: they say nothing, and are run again."""
    return trials.c.study_id == study_id, trials.c.outcome != Outcome.MACHINE_FAILED.value


class EndedTrial(NamedTuple):
    """A trial that ended, with its large parts as they are stored."""

    trial: Trial
    profiles: list[row_conversion.Row]
    series: list[row_conversion.Row]

    @property
    def key(self) -> str:
        """PlannedTrial.key."""
        return self.trial.planned.key


def prepared(ended: Sequence[Trial]) -> tuple[EndedTrial, ...]:
    """What takes long, done before anything is locked."""
    return tuple(
        EndedTrial(trial, row_conversion.profile_rows(trial), row_conversion.series_rows(trial))
        for trial in ended
    )


def contents(ended: Sequence[EndedTrial]) -> Iterator[bytes]:
    """What may lie in files."""
    return (row["content"] for one in ended for row in (*one.profiles, *one.series))


def add(
    connection: Connection,
    study_id: int,
    ended: Sequence[EndedTrial],
    replaces: frozenset[Outcome],
    placed: Placed,
) -> tuple[bool, ...]:
    """Insert trials, each in place of one of its key with one of these outcomes; False where that stays."""
    keys = [one.key for one in ended]
    same = (trials.c.study_id == study_id, trials.c.key.in_(keys))
    before = trial_sets.before_change(connection, study_id)
    removed: list[trial_sets.Member] = []
    if replaces:
        old = trials.c.outcome.in_([outcome.value for outcome in replaces])
        removed = trial_sets.members(connection, *same, old)
        connection.execute(delete(trials).where(*same, old))
        fault_point("store: older trial removed")
    there = set(connection.scalars(select(trials.c.key).where(*same)))
    new = {key: one for key, one in zip(keys, ended, strict=True) if key not in there}
    if new:
        store(connection, study_id, tuple(new.values()), placed)
        added = trial_sets.members(connection, trials.c.study_id == study_id, trials.c.key.in_(list(new)))
        trial_sets.note(connection, study_id, before.changed(added=added, removed=removed))
    return tuple(new.get(key) is one for key, one in zip(keys, ended, strict=True))


def store(connection: Connection, study_id: int, ended: Sequence[EndedTrial], placed: Placed) -> None:
    """Insert trials, and all that belongs to them."""
    rows = [row_conversion.trial_row(study_id, one.trial) for one in ended]
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
    noted = [trial_digests.digest_row(number, each) for number, each in zip(numbers, parts, strict=True)]
    connection.execute(insert(digests), noted)
    fault_point("store: digests inserted")


def remove(connection: Connection, *which: ColumnElement[bool]) -> None:
    """Take trials away, with all that belongs to them. Their studies' states change, though the same number
    of trials, with the same numbers, may come in their place.
    """
    for study_id in sorted(set(connection.scalars(select(trials.c.study_id).where(*which)))):
        before = trial_sets.before_change(connection, study_id)
        gone = trial_sets.members(connection, trials.c.study_id == study_id, *which)
        trial_sets.note(connection, study_id, before.changed(removed=gone))
        study_digests.note(connection, study_id, study_digests.REMOVAL, secrets.token_hex(32))
    connection.execute(delete(trials).where(*which))


def accept(connection: Connection, study_id: int) -> None:
    """Take those that are there for all that the study has. What is left of others goes: a new trial would
    get their number, and what belonged to them.
    """
    trial_sets.before_change(connection, study_id)
    for table in (samples, counters, profiles, series, part_files, digests):
        connection.execute(delete(table).where(table.c.trial_id.not_in(select(trials.c.id))))
    trial_sets.note(connection, study_id, trial_sets.there(connection, study_id))
    study_digests.note(connection, study_id, study_digests.REMOVAL, secrets.token_hex(32))


def _parts(trial_id: int, row: row_conversion.Row, ended: EndedTrial) -> trial_digests.TrialRows:
    return trial_digests.TrialRows(
        trial=row,
        samples=row_conversion.sample_rows(trial_id, ended.trial),
        counters=row_conversion.counter_rows(trial_id, ended.trial),
        profiles=[{**each, "trial_id": trial_id} for each in ended.profiles],
        series=[{**each, "trial_id": trial_id} for each in ended.series],
    )


def _by_trial(connection: Connection, query: Select[Any]) -> dict[int, list[RowMapping]]:
    """The rows of a table that belongs to trials, by trial, in the order in which they were stored."""
    grouped: dict[int, list[RowMapping]] = {}
    for row in connection.execute(query.order_by("id")).mappings():
        grouped.setdefault(row["trial_id"], []).append(row)
    return grouped


def profile(
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
    trial_digests.check_blobs(connection, profiles, [filled])
    return row_conversion.profile_of(filled["content"])


def profiled(connection: Connection, study_id: int) -> frozenset[str]:
    """Workloads of which at least one trial of the study has a profile."""
    query = (
        select(profiles.c.workload)
        .join(trials, trials.c.id == profiles.c.trial_id)
        .where(trials.c.study_id == study_id)
    )
    return frozenset(connection.scalars(query.distinct())) if has(connection, profiles) else frozenset()


def sampled(connection: Connection, study_id: int, trial_key: str, fill: Fill) -> tuple[Sampled, ...]:
    """In the order of storing. Raises BlobDamaged, BlobLost, zlib.error, pydantic.ValidationError."""
    query = (
        select(series)
        .join(trials, trials.c.id == series.c.trial_id)
        .where(trials.c.study_id == study_id, trials.c.key == trial_key)
        .order_by(series.c.id)
    )
    records = connection.execute(query).mappings().all() if has(connection, series) else []
    filled = fill(connection, series.name, records)
    trial_digests.check_blobs(connection, series, filled)
    return tuple(row_conversion.sampled_of(row["content"]) for row in filled)
