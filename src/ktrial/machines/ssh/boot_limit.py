"""How long a machine may take to come up: a limit that begins anew whenever its console prints.

What prints is no kernel that hangs, however slowly it boots. What prints for ever has hung as well.
"""

from collections.abc import Callable

MOST_LIMITS = 4
"""So many limits at most, whatever the console prints."""


class BootLimit:
    """From now on."""

    def __init__(self, seconds: float, printed: Callable[[], int], clock: Callable[[], float]) -> None:
        """`printed`: how many bytes the console has printed so far. `clock`: in seconds."""
        self._seconds, self._printed, self._clock = seconds, printed, clock
        self._size = printed()
        now = clock()
        self._until, self._last = now + seconds, now + MOST_LIMITS * seconds
        self._heard = False

    def is_over(self) -> bool:
        """Whether nothing was printed for as long as the limit, or only that for the most limits."""
        now, size = self._clock(), self._printed()
        if size != self._size:
            self._size, self._heard = size, True
            self._until = min(now + self._seconds, self._last)
        return now > self._until

    @property
    def said(self) -> str:
        """Once it is over: `did not answer within 300 s`."""
        if not self._heard:
            return f"did not answer within {self._seconds:g} s"
        if self._until == self._last:
            return f"printed on its console for {MOST_LIMITS * self._seconds:g} s, and did not answer"
        return f"neither answered nor printed on its console for {self._seconds:g} s"
