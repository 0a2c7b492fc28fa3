"""A machine that one trial at a time runs on is one resource of a fleet, beside its lease in a store.

So users whose stores are different ones take turns, if they name the same scheduler. The scheduler may go
away: that is told, and the run goes on, since the store and the machine itself hold the machine as well.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime

from pydantic import ValidationError

from ktrial.fleet import resource
from ktrial.fleet.connection import Connection, connected
from ktrial.fleet.errors import FleetOutOfReach, HolderUnknown
from ktrial.fleet.resource import Resource, notes_of_held
from ktrial.fleet.settings import FleetSettings
from ktrial.format.sanitize import one_line
from ktrial.model.machine import MachineLease
from ktrial.store.leases import Held, Taking, has_ended

_LOOK_SECONDS = 1.0
_FORGETFUL_SECONDS = 60.0
"""Beyond the holder's silence: until a scheduler must have noticed it."""


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

    def take_machine(self, asked: MachineLease) -> Taking:
        """See LeasePlace. Raises HolderUnknown; FleetOutOfReach where the fleet was asked for."""
        lease = asked.model_copy(update={"silence_seconds": resource.SILENCE_SECONDS})
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
            self._connection = self._connected(self._settings.address)
        if self._resource is None:
            self._resource = Resource(self._connection, machine)
        return self._resource

    def _connected(self, address: str) -> Connection:
        """A fleet that is a preference is not waited for: the run goes on without it."""
        if self._settings.asked:
            return connected(self._settings, address, self._say)
        return Connection(self._settings, address)

    def _taken(self, lease: MachineLease, asked: Resource) -> Taking:
        """The machine is waited for where its holder is gone: the scheduler will notice."""
        until = time.monotonic() + resource.SILENCE_SECONDS + _FORGETFUL_SECONDS
        seconds, is_told = 0.0, False
        while not asked.take(seconds):
            holder = _read(asked.noted())
            if holder is not None and not has_ended(holder):
                return Taking(holder, is_taken=False)
            if time.monotonic() > until:
                raise HolderUnknown(address=self._settings.address, machine=lease.shown)
            if holder is not None and not is_told:
                self._say(
                    f"machine {lease.shown}: {one_line(holder.who)}, who held it in {self.name}, is gone; "
                    f"its scheduler notices that within {resource.SILENCE_SECONDS + 10:g} s: waiting for it"
                )
            seconds, is_told = _LOOK_SECONDS, holder is not None
        before = _read(asked.noted())
        asked.note(_written(lease))
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


def held_machines(scheduler: Connection) -> tuple[Held, ...]:
    """Who has which machine there. Raises FleetOutOfReach."""
    leases = [lease for text in notes_of_held(scheduler) if (lease := _read(text))]
    now = datetime.now(UTC)
    silent = (max(0.0, (now - one.heard).total_seconds()) for one in leases)
    return tuple(Held(one, seconds, has_ended(one)) for one, seconds in zip(leases, silent, strict=True))


def _written(lease: MachineLease) -> str:
    """By the clock of its holder: the scheduler tells of none."""
    return lease.model_copy(update={"heard": datetime.now(UTC)}).model_dump_json()


def _read(text: str) -> MachineLease | None:
    try:
        return MachineLease.model_validate_json(text) if text else None
    except ValidationError:
        return None  # of a ktrial of another version
