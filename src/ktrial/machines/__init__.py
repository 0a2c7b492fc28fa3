"""Where trials run: one module a machine, found by its name; each yields a target."""

from ktrial.machines.protocol import (
    BootedTarget,
    CountingMachine,
    CountingTarget,
    CountsByFunction,
    HeldLease,
    LeasedMachine,
    Machine,
    PortableMachine,
    Progress,
    RemoteMachine,
    SpeakingTarget,
)
from ktrial.machines.registry import find, installed, names

__all__ = [
    "BootedTarget",
    "CountingMachine",
    "CountingTarget",
    "CountsByFunction",
    "HeldLease",
    "LeasedMachine",
    "Machine",
    "PortableMachine",
    "Progress",
    "RemoteMachine",
    "SpeakingTarget",
    "find",
    "installed",
    "names",
]
