"""Where trials run: one module a machine, found by its name; each yields a target."""

from ktrial.machines.catalogue import find, found, names
from ktrial.machines.protocol import BootedTarget, Machine, Progress

__all__ = ["BootedTarget", "Machine", "Progress", "find", "found", "names"]
