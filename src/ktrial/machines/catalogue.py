"""Machines by name. A module of this package that has a `MACHINE` is one; others come by entry points.

`MACHINE` makes a machine: a class, or a function, that is called without arguments. Outside this package
the same is named by an entry point of the group `ktrial.machines`, whose name is the machine's.
"""

import difflib
import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from ktrial.errors import UnknownMachine
from ktrial.machines.protocol import Machine
from ktrial.model.advice import DataWarning, WarningKind

Maker = Callable[[], Machine]

_GROUP = "ktrial.machines"
_BROKEN = (ImportError, AttributeError, SyntaxError, NameError, TypeError, ValueError, LookupError, OSError)
"""What the import of another package's module may raise; ktrial goes on without it."""


@cache
def found() -> tuple[dict[str, Maker], tuple[DataWarning, ...]]:
    """Name → what makes the machine, sorted, and a warning for each plugin that is broken."""
    makers: dict[str, Maker] = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        maker = getattr(importlib.import_module(f"{__package__}.{module.name}"), "MACHINE", None)
        if maker is not None:
            makers[module.name] = maker
    warnings = []
    for entry in entry_points(group=_GROUP):
        try:
            maker = entry.load()
            if not callable(maker):
                raise TypeError(f"{entry.value} cannot be called")
            makers.setdefault(entry.name, maker)
        except _BROKEN as error:
            warnings.append(_broken(entry.name, error))
    return dict(sorted(makers.items())), tuple(warnings)


def names() -> tuple[str, ...]:
    """All machines' names, sorted."""
    return tuple(found()[0])


def find(name: str) -> Machine:
    """Make the machine of this name. Raises UnknownMachine, which names those like it."""
    makers, _ = found()
    if name in makers:
        return makers[name]()
    near = difflib.get_close_matches(name, makers, n=2)
    similar = f" (did you mean {' or '.join(near)}?)" if near else ""
    raise UnknownMachine(machine=name, similar=similar, known=", ".join(makers))


def _broken(name: str, error: Exception) -> DataWarning:
    return DataWarning(
        kind=WarningKind.PLUGIN_BROKEN,
        text=f"the machine {name} is broken and is left out: {type(error).__name__}: {error}",
        advice="update or uninstall the package that brings it",
    )
