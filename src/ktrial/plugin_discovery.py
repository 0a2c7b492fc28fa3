"""Extensions: one file each in a package of ktrial's, or an entry point of another package.

A module of ktrial's counts if it has the object that its package asks for (`MONITOR`), or a tuple of several
(`MONITORS`). An entry point that is broken
warns; it does not stop ktrial, and it never replaces what ktrial has itself.
"""

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import TypeVar

from ktrial.model.warnings import DataWarning, WarningKind

T = TypeVar("T")

_BROKEN = (ImportError, AttributeError, SyntaxError, NameError, TypeError, ValueError, LookupError, OSError)
"""What the import of another package's module, or a first look at its object, may raise."""


def installed(
    group: str,
    kind: str,
    attribute: str,
    packages: Iterable[str],
    check: Callable[[str, object], tuple[str, T]],
    builtin: Mapping[str, T] = MappingProxyType({}),
) -> tuple[dict[str, T], tuple[DataWarning, ...]]:
    """Name → extension, sorted: `known`, those in modules of `packages`, and those that entry points add.

    And a warning for each entry point that is broken. `check` is given the name of a module or an entry point
    and its object, and returns the name and object to use; it raises TypeError where the object is no `kind`
    ('workload').
    """
    everything = dict(builtin) | dict(
        check(name, extension_object) for name, extension_object in _built_in(attribute, packages)
    )
    warnings = []
    for entry in _entries(entry_points, group, tuple(sys.path)):
        try:
            name, extension = check(entry.name, entry.load())
            everything.setdefault(name, extension)
        except _BROKEN as error:
            warnings.append(_broken(kind, entry, error))
    return dict(sorted(everything.items())), tuple(warnings)


@lru_cache(maxsize=64)
def _entries(
    listed: Callable[..., Iterable[EntryPoint]], group: str, path: tuple[str, ...]
) -> tuple[EntryPoint, ...]:
    """What the packages on `path` bring. Reading all their files 616 times took a tenth of a large report."""
    del path  # another one has other packages
    return tuple(listed(group=group))


def _built_in(attribute: str, packages: Iterable[str]) -> Iterator[tuple[str, object]]:
    """Each module's name with its object `attribute`, or with each of those in the tuple `attribute` + S."""
    for package in packages:
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
            imported = importlib.import_module(f"{package}.{module.name}")
            if (extension := getattr(imported, attribute, None)) is not None:
                yield module.name, extension
            for extension in getattr(imported, f"{attribute}S", ()):
                yield module.name, extension


def _broken(kind: str, entry: EntryPoint, error: Exception) -> DataWarning:
    why = f"{type(error).__name__}: {error}"
    return DataWarning(
        kind=WarningKind.PLUGIN_BROKEN,
        text=f"the {kind} {entry.name} ({entry.value}) is broken and is left out: {why}",
        advice="update or uninstall the package that brings it",
    )
