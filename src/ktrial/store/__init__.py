"""Trials and their provenance, kept in SQLite or, by URL, in PostgreSQL.

Importing this package costs next to nothing: what a name needs is loaded when the name is used first.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ktrial.store.location import default_location
    from ktrial.store.opening import open_store
    from ktrial.store.store import Store
    from ktrial.store.stored_study import StoredStudy

__all__ = ["Store", "StoredStudy", "default_location", "open_store"]

_FROM = {
    "Store": "ktrial.store.store",
    "StoredStudy": "ktrial.store.stored_study",
    "default_location": "ktrial.store.location",
    "open_store": "ktrial.store.opening",
}
"""Name → the module that has it."""


if not TYPE_CHECKING:  # to mypy, a name that is not here is a mistake

    def __getattr__(name: str) -> object:
        if name not in _FROM:
            raise AttributeError(f"module 'ktrial.store' has no attribute {name!r}")
        return globals().setdefault(name, getattr(import_module(_FROM[name]), name))
