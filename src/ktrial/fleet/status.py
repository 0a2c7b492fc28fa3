"""Who is in a fleet, what each worker does, and who has which machine."""

from dataclasses import dataclass
from typing import Any

from ktrial.fleet.connection import Connection
from ktrial.fleet.held_machines import held_machines
from ktrial.fleet.settings import FleetSettings
from ktrial.store.leases import Held


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

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "name": self.name,
            "address": self.address,
            "slots": self.slots,
            "standing": self.standing,
            "under_way": list(self.under_way),
        }


def status_of(settings: FleetSettings) -> tuple[tuple[WorkerStatus, ...], tuple[Held, ...]]:
    """All workers, by name, and the machines that are held. Raises FleetOutOfReach, FleetNotInstalled."""
    connection = Connection(settings, settings.address)
    try:
        seen, notes, calls = connection.workers(), connection.notes(), connection.under_way()
        machines = held_machines(connection)
    finally:
        connection.close()
    statuses = [
        WorkerStatus(
            name=one.name,
            address=address,
            slots=one.slots,
            standing=notes.get(address, "there"),
            under_way=tuple(_shown(call) for call in calls.get(address, ())),
        )
        for address, one in seen.items()
    ]
    return tuple(sorted(statuses, key=lambda one: one.name)), machines


def _shown(call: str) -> str:
    """Without what tells calls apart: `ktrial trial debian:6.1 0 #12.0`."""
    return call.removeprefix("ktrial ").partition(" #")[0]
