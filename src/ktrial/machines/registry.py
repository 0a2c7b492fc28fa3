"""Machines by name. A module of this package that has a `MACHINE` is one; others come by entry points.

`MACHINE` makes a machine: a class, or a function, that is called without arguments. Outside this package
the same is named by an entry point of the group `ktrial.machines`, whose name is the machine's.
"""

from collections.abc import Callable
from functools import cache

from ktrial import plugin_discovery
from ktrial.machines.errors import UnknownMachine
from ktrial.machines.protocol import Machine
from ktrial.model.notation import nearest
from ktrial.model.warnings import DataWarning

Maker = Callable[[], Machine]

_GROUP = "ktrial.machines"


@cache
def installed() -> tuple[dict[str, Maker], tuple[DataWarning, ...]]:
    """Name → what makes the machine, sorted, and a warning for each plugin that is broken."""
    return plugin_discovery.installed(_GROUP, "machine", "MACHINE", ("ktrial.machines",), _check)


def names() -> tuple[str, ...]:
    """All machines' names, sorted."""
    return tuple(installed()[0])


def find(name: str) -> Machine:
    """Make the machine of this name. Raises UnknownMachine, which names those like it."""
    makers, _ = installed()
    if name in makers:
        return makers[name]()
    raise UnknownMachine(machine=name, similar=nearest(name, makers), known=", ".join(makers))


def _check(name: str, extension: object) -> tuple[str, Maker]:
    if not callable(extension):
        raise TypeError("it cannot be called")
    own = getattr(extension, "name", name)
    return (own if str(own).replace("-", "_") == name else name), extension
