"""Where CPUs wait: `monitors = ["waits"]` on several CPUs in simulated time.

The programs run once more, counted by function, under the first perturbation alone: that is dearer. What the
CPUs worked, waited and idled together, and the places that have most of it, are counters of the trial.
"""

from collections.abc import Iterator
from itertools import islice

from ktrial.analysis.guest_time import Part, by_cpu, places, together
from ktrial.model.parallel import waits_counter
from ktrial.model.profile import Profile

_MOST = 3
"""Places of each part."""
_PARTS = (Part.WORK, Part.WAITING, Part.LINES, Part.IDLE)
_WITH_PLACES = (Part.WAITING, Part.LINES, Part.IDLE)


def counters(found: Profile) -> tuple[tuple[str, float], ...]:
    """Nanoseconds of guest time an operation, of all CPUs together: each part, and its first places."""
    time = together(by_cpu(found))
    parts = dict(zip(_PARTS, (time.work, time.waiting, time.lines, time.idle), strict=True))
    return (*((waits_counter(part.value), spent) for part, spent in parts.items()), *_places(found))


def _places(found: Profile) -> Iterator[tuple[str, float]]:
    for part in _WITH_PLACES:
        for place, spent in islice(places(found, part).items(), _MOST):
            yield waits_counter(part.value, place.name), spent
