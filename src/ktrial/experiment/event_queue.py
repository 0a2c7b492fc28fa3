"""Events of an executor, from the threads that make them to the one that handles them."""

from queue import Empty, SimpleQueue

from ktrial.experiment.executor import Ended, Event

_GLANCE_SECONDS = 0.05
_MOST_AT_HAND = 100


class EventQueue:
    """Read by one thread."""

    def __init__(self) -> None:
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._kept: Event | None = None
        """What was taken out, and is the next."""

    def put(self, event: Event) -> None:
        """Safe in a signal handler."""
        self._events.put(event)

    @property
    def is_empty(self) -> bool:
        """Whether none waits now."""
        return self._kept is None and self._events.empty()

    def next_event(self) -> Event:
        """What has happened next; waits for it, and looks up now and then.

        A signal that arrives just before a thread begins to wait, or in another thread, does not wake it: its
        handler would run only after the next event.
        """
        while True:
            try:
                return self.get(_GLANCE_SECONDS)
            except Empty:
                continue

    def get(self, seconds: float) -> Event:
        """The next. Raises Empty where none comes within so long."""
        if self._kept is None:
            return self._events.get(timeout=seconds)
        kept, self._kept = self._kept, None
        return kept

    def ended_at_hand(self) -> tuple[Ended, ...]:
        """The trials that have ended before anything else happened, without waiting for any."""
        ended: list[Ended] = []
        while self._kept is None and len(ended) < _MOST_AT_HAND and not self._events.empty():
            event = self._events.get()
            if isinstance(event, Ended):
                ended.append(event)
            else:
                self._kept = event
        return tuple(ended)
