"""What runs now: who runs which study, and who has which real machine.

Who runs a study is told for those who look on: nothing rests on it, and it may be lost. A machine has one
row, which is taken in one transaction and held by being written again. All moments of machines are of one
clock, the database server's, whatever the clocks of those who hold machines say. Of a file it is the clock of
the host that writes it.
"""

import os
import socket
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from ktrial import process_identity
from ktrial.model.machine import Activity, MachineLease
from ktrial.store.schema import activities, machine_leases, to_utc


def tell_activity(connection: Connection, study_id: int, activity: Activity) -> None:
    """In place of what the same run told before."""
    forget_activities(connection, activity.key)
    row = {
        "study_id": study_id,
        "key": activity.key,
        "heard": to_utc(activity.heard),
        "content": activity.model_dump(mode="json"),
    }
    connection.execute(insert(activities).values(**row))


def forget_activities(connection: Connection, *keys: str) -> None:
    """Of runs that have ended."""
    connection.execute(delete(activities).where(activities.c.key.in_(keys)))


def every_activity(connection: Connection) -> tuple[tuple[int, Activity], ...]:
    """Each with its study's number, in the order of telling. Raises pydantic.ValidationError."""
    rows = connection.execute(select(activities).order_by(activities.c.study_id, activities.c.key))
    return tuple((row.study_id, Activity.model_validate(row.content)) for row in rows)


class Taking(NamedTuple):
    """What came of asking for a machine."""

    lease: MachineLease
    """The new one where the machine was taken, else that of who has it."""
    is_taken: bool
    before: MachineLease | None = None
    """Of somebody who was gone: it was taken over."""


class StoredLease(NamedTuple):
    """A lease that is in the store."""

    lease: MachineLease
    silent_seconds: float
    """Since its holder was last heard of."""
    is_over: bool
    """Whether its holder is gone: who asks next has the machine."""


def take_machine(connection: Connection, request: MachineLease) -> Taking:
    """Take the machine unless somebody has it; `since` and `heard` of the request do not matter."""
    same_machine = machine_leases.c.machine == request.machine
    moment = _database_time(connection)
    row = connection.execute(select(machine_leases).where(same_machine).with_for_update()).one_or_none()
    current = _stored_lease(row, moment) if row else None
    if current and not current.is_over and current.lease.key != request.key:
        return Taking(current.lease, is_taken=False)
    lease = request.model_copy(update={"since": moment, "heard": moment})
    values = {
        "machine": lease.machine,
        "key": lease.key,
        "heard": to_utc(moment),
        "content": lease.model_dump(mode="json"),
    }
    change = update(machine_leases).where(same_machine) if row else insert(machine_leases)
    connection.execute(change.values(**values))
    return Taking(lease, is_taken=True, before=current.lease if current else None)


def renew_machine(connection: Connection, lease: MachineLease) -> bool:
    """Say that its holder is there. False where the machine is another's by now."""
    same = (machine_leases.c.machine == lease.machine, machine_leases.c.key == lease.key)
    heard = to_utc(_database_time(connection))
    return bool(connection.execute(update(machine_leases).where(*same).values(heard=heard)).rowcount)


def give_machine_back(connection: Connection, lease: MachineLease) -> None:
    """Its holder needs the machine no more."""
    same = (machine_leases.c.machine == lease.machine, machine_leases.c.key == lease.key)
    connection.execute(delete(machine_leases).where(*same))


def every_machine(connection: Connection) -> tuple[StoredLease, ...]:
    """By the machines' names. Raises pydantic.ValidationError."""
    moment = _database_time(connection)
    rows = connection.execute(select(machine_leases).order_by(machine_leases.c.machine))
    return tuple(_stored_lease(row, moment) for row in rows)


def _database_time(connection: Connection) -> datetime:
    """In UTC, to the second in SQLite; in PostgreSQL the moment at which the transaction began."""
    moment = connection.scalar(select(func.current_timestamp()))
    if not isinstance(moment, datetime):
        raise ValueError(f"the database's clock says {moment!r}")
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _stored_lease(row: Row[tuple[object, ...]], moment: datetime) -> StoredLease:
    heard = row.heard.replace(tzinfo=UTC)
    lease = MachineLease.model_validate(row.content).model_copy(update={"heard": heard})
    silent_seconds = max(0.0, (moment - heard).total_seconds())
    is_over = has_ended(lease) or silent_seconds > lease.silence_seconds
    return StoredLease(lease, silent_seconds, is_over)


def has_ended(lease: MachineLease) -> bool:
    """Whether its holder ran on this very host, and runs no more."""
    this_process = process_identity.born(os.getpid())
    on_this_host = lease.host == socket.gethostname()
    is_local = on_this_host and process_identity.same_boot(lease.born, this_process)
    return is_local and process_identity.born(lease.process) != lease.born
