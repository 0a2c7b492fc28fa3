"""Who runs which study now. Told for those who look on: nothing rests on it, and it may be lost."""

import os
import socket
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from ktrial import process_identity
from ktrial.model.machine import Activity, MachineLease
from ktrial.store import schema
from ktrial.store.schema import activities, has, machine_leases

# Who runs which study now. Told for those who look on: nothing rests on it, and it may be lost.


def tell_activity(connection: Connection, study_id: int, activity: Activity) -> None:
    """In place of what the same run told before."""
    forget_activities(connection, activity.key)
    row = {
        "study_id": study_id,
        "key": activity.key,
        "heard": schema.to_utc(activity.heard.astimezone(UTC)),
        "content": activity.model_dump(mode="json"),
    }
    connection.execute(insert(activities).values(**row))


def forget_activities(connection: Connection, *keys: str) -> None:
    """Of runs that have ended."""
    connection.execute(delete(activities).where(activities.c.key.in_(keys)))


def every_activity(connection: Connection) -> tuple[tuple[int, Activity], ...]:
    """Each with its study's number, in the order of telling. Raises pydantic.ValidationError."""
    if not has(connection, activities):
        return ()
    rows = connection.execute(select(activities).order_by(activities.c.study_id, activities.c.key))
    return tuple((row.study_id, Activity.model_validate(row.content)) for row in rows)


# Who has which real machine: one row a machine, taken in one transaction, held by being written again.
#
# All moments are of one clock, the database server's, whatever the clocks of those who hold machines say.
# Of a file it is the clock of the host that writes it.


class Taking(NamedTuple):
    """What came of asking for a machine."""

    lease: MachineLease
    """The own one where it was taken, else that of who has it."""
    is_taken: bool
    before: MachineLease | None = None
    """Of somebody who was gone: it was taken over."""


class Held(NamedTuple):
    """A lease that is in the store."""

    lease: MachineLease
    silent_seconds: float
    """Since its holder was last heard of."""
    is_over: bool
    """Whether its holder is gone: who asks next has the machine."""


def take_machine(connection: Connection, asked: MachineLease) -> Taking:
    """Take the machine unless somebody has it; `since` and `heard` of what is asked do not matter."""
    this_one = machine_leases.c.machine == asked.machine
    now = _now(connection)
    row = connection.execute(select(machine_leases).where(this_one).with_for_update()).one_or_none()
    current = _held(row, now) if row else None
    if current and not current.is_over and current.lease.key != asked.key:
        return Taking(current.lease, is_taken=False)
    lease = asked.model_copy(update={"since": now, "heard": now})
    change = update(machine_leases).where(this_one) if row else insert(machine_leases)
    connection.execute(change.values(**_row(lease)))
    return Taking(lease, is_taken=True, before=current.lease if current else None)


def renew_machine(connection: Connection, lease: MachineLease) -> bool:
    """Say that its holder is there. False where the machine is another's by now."""
    own = (machine_leases.c.machine == lease.machine, machine_leases.c.key == lease.key)
    heard = schema.to_utc(_now(connection))
    return bool(connection.execute(update(machine_leases).where(*own).values(heard=heard)).rowcount)


def give_machine_back(connection: Connection, lease: MachineLease) -> None:
    """Its holder needs the machine no more."""
    own = (machine_leases.c.machine == lease.machine, machine_leases.c.key == lease.key)
    connection.execute(delete(machine_leases).where(*own))


def every_machine(connection: Connection) -> tuple[Held, ...]:
    """By the machines' names. Raises pydantic.ValidationError."""
    if not has(connection, machine_leases):
        return ()
    now = _now(connection)
    rows = connection.execute(select(machine_leases).order_by(machine_leases.c.machine))
    return tuple(_held(row, now) for row in rows)


def _now(connection: Connection) -> datetime:
    """In UTC, to the second in SQLite; in PostgreSQL the moment at which the transaction began."""
    told = connection.scalar(select(func.current_timestamp()))
    if not isinstance(told, datetime):
        raise ValueError(f"the database's clock says {told!r}")
    return told.astimezone(UTC) if told.tzinfo else told.replace(tzinfo=UTC)


def _row(lease: MachineLease) -> dict[str, object]:
    return {
        "machine": lease.machine,
        "key": lease.key,
        "heard": schema.to_utc(lease.heard),
        "content": lease.model_dump(mode="json"),
    }


def _held(row: Row[tuple[object, ...]], now: datetime) -> Held:
    heard = row.heard.replace(tzinfo=UTC)
    lease = MachineLease.model_validate(row.content).model_copy(update={"heard": heard})
    silent = max(0.0, (now - heard).total_seconds())
    return Held(lease, silent, _is_over(lease, silent))


def _is_over(lease: MachineLease, silent_seconds: float) -> bool:
    return has_ended(lease) or silent_seconds > lease.silence_seconds


def has_ended(lease: MachineLease) -> bool:
    """Whether its holder ran on this very host, and runs no more."""
    here = process_identity.born(os.getpid())
    is_here = lease.host == socket.gethostname() and process_identity.same_boot(lease.born, here)
    return is_here and process_identity.born(lease.process) != lease.born
