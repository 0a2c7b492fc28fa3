"""Trials and their provenance, kept in SQLite (or, by URL, in another database)."""

from ktrial.store.location import default_location
from ktrial.store.opening import open_store
from ktrial.store.store import Store, StoredStudy

__all__ = ["Store", "StoredStudy", "default_location", "open_store"]
