"""The environment of a trial in real time, read before it."""

from typing import Protocol, runtime_checkable

from ktrial.machines import Machine
from ktrial.model.environment import Environment
from ktrial.monitors.environment import audit


@runtime_checkable
class InRealTime(Protocol):
    """A machine whose numbers depend on what else this host does."""

    host_matters: bool


def before(machine: Machine) -> Environment | None:
    """The host as it is now; None where it does not matter. Takes some 40 ms."""
    matters = isinstance(machine, InRealTime) and machine.host_matters
    return audit(patient=False) if matters else None
