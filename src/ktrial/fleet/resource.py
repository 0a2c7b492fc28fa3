"""What one process of a fleet has at a time: a semaphore of its scheduler's, with a note of whose it is.

Dask's own client tells the scheduler again and again that it is there. Who is silent for SILENCE_SECONDS, as
one is who was killed, has it no more; Dask's scheduler looks for such every ten seconds.
"""

from typing import Any

from ktrial.fleet.connection import Connection

SILENCE_SECONDS = 30.0
_NOTES = "ktrial machines"
"""Where the scheduler keeps notes, by the resources' names."""


class Resource:
    """One, as one process sees it."""

    def __init__(self, connection: Connection, name: str) -> None:
        """Raises FleetOutOfReach."""
        self._connection, self._name = connection, name
        self._semaphore: Any = connection.semaphore(_semaphore(name), SILENCE_SECONDS)
        self._is_ours = False

    def take(self, seconds: float) -> bool:
        """Whether it is this process's, within so long. Raises FleetOutOfReach."""
        if not self._is_ours:
            with self._connection.reached():
                self._is_ours = bool(self._semaphore.acquire(timeout=seconds))
        return self._is_ours

    def note(self, text: str) -> None:
        """Tell the others. Raises FleetOutOfReach."""
        self._connection.answer("set_metadata", keys=[_NOTES, self._name], value=text)

    def noted(self) -> str:
        """What was told last; empty: nothing. Raises FleetOutOfReach."""
        return str(self._connection.answer("get_metadata", keys=[_NOTES, self._name], default=""))

    def give_back(self) -> None:
        """Others may have it. Raises FleetOutOfReach."""
        if self._is_ours:
            self._is_ours = False
            with self._connection.reached():
                self._semaphore.release()

    def drop(self) -> None:
        """Tell the scheduler no more that it is needed: others may have it after a while."""
        self._semaphore.refresh_leases = False
        self._semaphore.refresh_callback.stop()


def notes_of_held(connection: Connection) -> list[str]:
    """Those of resources that somebody has. Raises FleetOutOfReach."""
    notes = connection.answer("get_metadata", keys=[_NOTES], default={})
    return [
        str(text)
        for name, text in sorted(notes.items())
        if text and connection.answer("semaphore_value", name=_semaphore(name))
    ]


def _semaphore(name: str) -> str:
    return f"ktrial machine {name}"
