"""Extensions: one file each in a package of ktrial's, or an entry point of another package.

A module of ktrial's counts if it has the object that its package asks for. An entry point that is broken
warns; it does not stop ktrial, and it never replaces what ktrial has itself.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from ktrial.model.warnings import DataWarning, WarningKind

T = TypeVar("T")

_BROKEN = (ImportError, AttributeError, SyntaxError, NameError, TypeError, ValueError, LookupError, OSError)
"""What the import of another package's module, or a first look at its object, may raise."""


def built_in(attribute: str, *packages: str) -> dict[str, object]:
    """Module name → the object `attribute` of each module in these packages that has one."""
    objects = {}
    for package in packages:
        path = importlib.import_module(package).__path__
        for module in pkgutil.iter_modules(path):
            imported = importlib.import_module(f"{package}.{module.name}")
            objects[module.name] = getattr(imported, attribute, None)
    return {name: value for name, value in objects.items() if value is not None}


def outside(
    group: str, kind: str, check: Callable[[str, object], tuple[str, T]], known: Mapping[str, T]
) -> tuple[dict[str, T], tuple[DataWarning, ...]]:
    """`known` and what the entry points of `group` add, sorted by name, with a warning for each broken one.

    `check` is given an entry point's name and object, and returns the name and object to use; it raises
    TypeError where the object is no `kind` ('workload').
    """
    everything = dict(known)
    warnings = []
    for entry in entry_points(group=group):
        try:
            name, found = check(entry.name, entry.load())
            everything.setdefault(name, found)
        except _BROKEN as error:
            warnings.append(_broken(kind, entry, error))
    return dict(sorted(everything.items())), tuple(warnings)


def _broken(kind: str, entry: EntryPoint, error: Exception) -> DataWarning:
    why = f"{type(error).__name__}: {error}"
    return DataWarning(
        kind=WarningKind.PLUGIN_BROKEN,
        text=f"the {kind} {entry.name} ({entry.value}) is broken and is left out: {why}",
        advice="update or uninstall the package that brings it",
    )
