"""A machine that one trial at a time runs on is one resource of a fleet, beside its lease in a store.

So users whose stores are different ones take turns, if they name the same scheduler. The scheduler may go
away: that is told, and the run goes on, since the store and the machine itself hold the machine as well.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from ktrial.fleet.connection import Connection, connected
from ktrial.fleet.errors import FleetError, FleetOutOfReach
from ktrial.fleet.settings import FleetSettings
from ktrial.format.sanitize import one_line
from ktrial.model.machine import MachineLease
from ktrial.store.leases import StoredLease, Taking, has_ended

_LOOK_SECONDS = 1.0
SILENCE_SECONDS = 30.0
"""Dask's own client tells the scheduler again and again that it is there. Who is silent for so long, as one
is who was killed, has the machine no more; Dask's scheduler looks for such every ten seconds."""
_FORGETFUL_SECONDS = 60.0
"""Beyond the holder's silence: until a scheduler must have noticed it."""
_NOTES = "ktrial machines"
"""Where the scheduler keeps notes of who has what, by the resources' names."""


class Resource:
    """What one process has at a time, as one of them sees it: a semaphore of the scheduler's, and a note."""

    def __init__(self, connection: Connection, name: str) -> None:
        """Raises FleetOutOfReach."""
        self._connection, self._name = connection, name
        self._semaphore: Any = connection.semaphore(_semaphore(name), SILENCE_SECONDS)
        self._is_ours = False

    def take(self, seconds: float) -> bool:
        """Whether it is this process's, within so long. Raises FleetOutOfReach."""
        if not self._is_ours:
            with self._connection.reached():
                self._is_ours = bool(self._semaphore.acquire(timeout=seconds))
        return self._is_ours

    def note(self, text: str) -> None:
        """Tell the others. Raises FleetOutOfReach."""
        self._connection.answer("set_metadata", keys=[_NOTES, self._name], value=text)

    def noted(self) -> str:
        """What was told last; empty: nothing. Raises FleetOutOfReach."""
        return str(self._connection.answer("get_metadata", keys=[_NOTES, self._name], default=""))

    def give_back(self) -> None:
        """Others may have it. Raises FleetOutOfReach."""
        if self._is_ours:
            self._is_ours = False
            with self._connection.reached():
                self._semaphore.release()

    def drop(self) -> None:
        """Tell the scheduler no more that it is needed: others may have it after a while."""
        self._semaphore.refresh_leases = False
        self._semaphore.refresh_callback.stop()


class HeldMachines:
    """A LeasePlace, for one machine. Connects when that is taken."""

    def __init__(self, settings: FleetSettings, say: Callable[[str], None]) -> None:
        """`say`: told, in some thread, what becomes of the fleet."""
        self.name = f"fleet {settings.address}"
        self._settings, self._say = settings, say
        self._connection: Connection | None = None
        self._resource: Resource | None = None
        self._is_away = False
        """The scheduler: what it said before counts no more."""
        self._is_given_up = False
        """Nothing more is told there: somebody else has the machine, or this run has ended."""

    def take_machine(self, lease: MachineLease) -> Taking:
        """See LeasePlace. Raises FleetError; FleetOutOfReach where the fleet was asked for."""
        lease = lease.model_copy(update={"silence_seconds": SILENCE_SECONDS})
        try:
            return self._taken(lease, self._opened(lease.machine))
        except FleetOutOfReach as error:
            if self._settings.asked:
                raise
            self._tell_away(error)
            return Taking(lease, is_taken=True)

    def renew_machine(self, lease: MachineLease) -> bool | None:
        """See LeasePlace."""
        if self._is_given_up:
            return None
        try:
            held = self._resource
            if held is None or self._is_away or not (text := held.noted()):
                return self._taken_again(lease)
            if (holder := _read(text)) is None or holder.key != lease.key:
                return False
            held.note(_written(lease))
        except FleetOutOfReach as error:
            self._tell_away(error)
            return None
        return True

    def give_machine_back(self, lease: MachineLease) -> bool:
        """See LeasePlace."""
        held = self._resource
        try:
            if held is None or self._is_away or self._is_given_up:
                return False
            holder = _read(held.noted())
            if holder is not None and holder.key == lease.key:
                held.note("")  # before it is given back: then the note may be another's
            held.give_back()
        except FleetOutOfReach:
            return False
        finally:
            self.close()
        return True

    def close(self) -> None:
        """Leave the fleet for good."""
        self._is_given_up = True
        held, self._resource = self._resource, None
        if held is not None:
            held.drop()
        scheduler, self._connection = self._connection, None
        if scheduler is not None:
            scheduler.close()

    def _opened(self, machine: str) -> Resource:
        if self._connection is None:
            if self._settings.asked:
                self._connection = connected(self._settings, self._settings.address, self._say)
            else:  # a fleet that is a preference is not waited for: the run goes on without it
                self._connection = Connection(self._settings, self._settings.address)
        if self._resource is None:
            self._resource = Resource(self._connection, machine)
        return self._resource

    def _taken(self, lease: MachineLease, resource: Resource) -> Taking:
        """The machine is waited for where its holder is gone: the scheduler will notice."""
        until = time.monotonic() + SILENCE_SECONDS + _FORGETFUL_SECONDS
        seconds, is_told = 0.0, False
        while not resource.take(seconds):
            holder = _read(resource.noted())
            if holder is not None and not has_ended(holder):
                return Taking(holder, is_taken=False)
            if time.monotonic() > until:
                raise FleetError(
                    f"Fleet {self._settings.address}: somebody has the machine {lease.shown}, and does not "
                    "say who.",
                    hint="is it a ktrial of another version? --fleet none measures without that fleet",
                )
            if holder is not None and not is_told:
                self._say(
                    f"machine {lease.shown}: {one_line(holder.who)}, who held it in {self.name}, is gone; "
                    f"its scheduler notices that within {SILENCE_SECONDS + 10:g} s: waiting for it"
                )
            seconds, is_told = _LOOK_SECONDS, holder is not None
        before = _read(resource.noted())
        resource.note(_written(lease))
        return Taking(lease, is_taken=True, before=before)

    def _taken_again(self, lease: MachineLease) -> bool | None:
        """From a scheduler that was away, or is another one. Raises FleetOutOfReach."""
        self._is_away = True
        if self._resource is not None:
            self._resource.drop()
        self._resource = None
        if self._connection is not None:
            self._connection.reopen()
        again = self._opened(lease.machine)
        holder = _read(again.noted())
        if again.take(0):
            again.note(_written(lease))
            self._is_away = False
            self._say(f"{self.name} is there again, and has machine {lease.shown} as this run's")
            return True
        if holder is not None and holder.key != lease.key:
            self._is_given_up = True
            self._say(
                f"{self.name} is there again, and has machine {lease.shown} as {one_line(holder.who)}'s: "
                "this run goes on, since it holds it in its store and on the machine"
            )
        return None  # what this process had there is not forgotten yet

    def _tell_away(self, error: FleetOutOfReach) -> None:
        if not self._is_away:
            what = error.message.rstrip(".")
            self._say(f"{what}. The run goes on: its store, and the machine, tell others whose it is")
        self._is_away = True


def _written(lease: MachineLease) -> str:
    """By the clock of its holder: the scheduler tells of none."""
    return lease.model_copy(update={"heard": datetime.now(UTC)}).model_dump_json()


def _read(text: str) -> MachineLease | None:
    try:
        return MachineLease.model_validate_json(text) if text else None
    except ValidationError:
        return None  # of a ktrial of another version


def _semaphore(name: str) -> str:
    return f"ktrial machine {name}"


# Who is in a fleet, what each worker does, and who has which machine.


@dataclass(frozen=True)
class WorkerStatus:
    """One worker."""

    name: str
    address: str
    slots: int
    """Trials at once."""
    standing: str
    """`there`, or why some client gives it nothing: `refused: …`, `quarantined: …`."""
    under_way: tuple[str, ...]
    """What it was asked and has not ended: `trial debian:6.1 0`."""


def status_of(settings: FleetSettings) -> tuple[tuple[WorkerStatus, ...], tuple[StoredLease, ...]]:
    """All workers, by name, and the machines that are held. Raises FleetOutOfReach."""
    connection = Connection(settings, settings.address)
    try:
        workers, notes, calls = connection.workers(), connection.notes(), connection.under_way()
        held = [
            lease
            for name, text in sorted(connection.answer("get_metadata", keys=[_NOTES], default={}).items())
            if text and connection.answer("semaphore_value", name=_semaphore(name)) and (lease := _read(text))
        ]
    finally:
        connection.close()
    statuses = [
        WorkerStatus(
            name=worker.name,
            address=address,
            slots=worker.slots,
            standing=notes.get(address, "there"),
            # Without what tells calls apart: `ktrial trial debian:6.1 0 #12.0`.
            under_way=tuple(
                call.removeprefix("ktrial ").partition(" #")[0] for call in calls.get(address, ())
            ),
        )
        for address, worker in workers.items()
    ]
    now = datetime.now(UTC)
    leases = tuple(
        StoredLease(lease, max(0.0, (now - lease.heard).total_seconds()), has_ended(lease)) for lease in held
    )
    return tuple(sorted(statuses, key=lambda status: status.name)), leases
