"""A trial's rows in all tables: written with their digest, and compared with it when they are read."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, insert, select

from ktrial.fault_points import fault_point
from ktrial.model.trial import Outcome, Trial
from ktrial.store import row_conversion, trial_digests
from ktrial.store.schema import counters, digests, profiles, samples, series, trials


def read(connection: Connection, study_id: int, *, counted: bool) -> tuple[tuple[Trial, ...], int]:
    """A study's trials in run order, and none if some are not what was stored: then how many these are."""
    of_study = select(trials.c.id).where(trials.c.study_id == study_id)
    query = select(trials).where(*_of_study(study_id)).order_by(trials.c.run_order, trials.c.id)
    noted = trial_digests.noted_digests(connection, study_id)
    records = connection.execute(query).mappings().all()
    sampled = _by_trial(connection, select(samples).where(samples.c.trial_id.in_(of_study)))
    events = select(counters).where(counters.c.trial_id.in_(of_study))
    risen = _by_trial(connection, events) if counted else {}
    belonging = [(row, sampled.get(row["id"], []), risen.get(row["id"], [])) for row in records]
    whole = [
        trial_digests.fit(noted.get(row["id"]), row, of_trial, rose if counted else None)
        for row, of_trial, rose in belonging
    ]
    if not all(whole):
        return (), whole.count(False)
    return tuple(row_conversion.trial_of(*parts) for parts in belonging), 0


def _of_study(study_id: int) -> tuple[ColumnElement[bool], ...]:
    """Older ktrials stored trials with which the machine failed: they say nothing, and are run again."""
    return trials.c.study_id == study_id, trials.c.outcome != Outcome.MACHINE_FAILED.value


def store(connection: Connection, study_id: int, trial: Trial) -> None:
    """Insert a trial, and all that belongs to it."""
    row = row_conversion.trial_row(study_id, trial)
    inserted = connection.execute(insert(trials).values(**row)).inserted_primary_key
    assert inserted is not None, "every table has one integer as its key"
    trial_id = int(inserted[0])
    fault_point("store: trial inserted")
    parts = trial_digests.TrialRows(
        trial=row,
        samples=row_conversion.sample_rows(trial_id, trial),
        counters=row_conversion.counter_rows(trial_id, trial),
        profiles=row_conversion.profile_rows(trial_id, trial),
        series=row_conversion.series_rows(trial_id, trial),
    )
    if parts.samples:
        connection.execute(insert(samples), parts.samples)
        fault_point("store: samples inserted")
    if parts.counters:
        connection.execute(insert(counters), parts.counters)
        fault_point("store: counters inserted")
    if parts.profiles:
        connection.execute(insert(profiles), parts.profiles)
        fault_point("store: profiles inserted")
    if parts.series:
        connection.execute(insert(series), parts.series)
        fault_point("store: time series inserted")
    connection.execute(insert(digests), trial_digests.digest_row(trial_id, parts))
    fault_point("store: digests inserted")


def _by_trial(connection: Connection, query: Select[Any]) -> dict[int, list[RowMapping]]:
    """The rows of a table that belongs to trials, by trial, in the order in which they were stored."""
    grouped: dict[int, list[RowMapping]] = {}
    for row in connection.execute(query.order_by("id")).mappings():
        grouped.setdefault(row["trial_id"], []).append(row)
    return grouped
