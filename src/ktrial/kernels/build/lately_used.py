"""What was used last stays in memory: for builds that come one after another, and differ in little."""

from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LatelyUsed(Generic[Key, Value]):
    """So many values by their keys; the one that was asked for longest ago goes first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[Key, Value] = {}
        self._lock = Lock()

    def get(self, key: Key) -> Value | None:
        """None where it is not kept."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept[key] = self._kept.pop(key)
            return self._kept[key]

    def keep(self, key: Key, value: Value) -> None:
        """Instead of what was kept under that key."""
        with self._lock:
            self._kept.pop(key, None)
            self._kept[key] = value
            while len(self._kept) > self._most:
                self._kept.pop(next(iter(self._kept)))
