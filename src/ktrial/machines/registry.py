"""Machines by name. A module of this package that has a `MACHINE` is one; others come by entry points.

`MACHINE` makes a machine: a class, or a function, that is called without arguments. Outside this package
the same is named by an entry point of the group `ktrial.machines`, whose name is the machine's.
"""

from collections.abc import Callable
from functools import cache

from ktrial import plugin_discovery
from ktrial.machines.errors import UnknownMachine
from ktrial.machines.protocol import Machine
from ktrial.model.suggestions import nearest
from ktrial.model.warnings import DataWarning

Maker = Callable[[], Machine]

_GROUP = "ktrial.machines"


@cache
def found() -> tuple[dict[str, Maker], tuple[DataWarning, ...]]:
    """Name → what makes the machine, sorted, and a warning for each plugin that is broken."""
    own = dict(_check(*item) for item in plugin_discovery.built_in("MACHINE", "ktrial.machines").items())
    return plugin_discovery.outside(_GROUP, "machine", _check, own)


def names() -> tuple[str, ...]:
    """All machines' names, sorted."""
    return tuple(found()[0])


def find(name: str) -> Machine:
    """Make the machine of this name. Raises UnknownMachine, which names those like it."""
    makers, _ = found()
    if name in makers:
        return makers[name]()
    raise UnknownMachine(machine=name, similar=nearest(name, makers), known=", ".join(makers))


def _check(name: str, found: object) -> tuple[str, Maker]:
    if not callable(found):
        raise TypeError("it cannot be called")
    return name, found
