"""Trials that a fleet is to perform, those that wait, and which worker does what next."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ktrial.experiment.jobs import Job, Steps
from ktrial.fleet.messages import Bench
from ktrial.fleet.packages import Package
from ktrial.model.design import PlannedTrial
from ktrial.model.machine import Boot
from ktrial.model.trial import Trial
from ktrial.model.warnings import DataWarning

_CALL_SECONDS = 1.0
"""That a call may take which is for several trials: as much is lost with a worker at most."""
_MOST_AT_A_TIME = 100


@dataclass(eq=False)
class Entry:
    """One trial."""

    planned: PlannedTrial
    jobs: Sequence[Job]
    package: Package
    steps: tuple[Steps | None, ...]
    scope: str = ""
    started: bool = False
    deaths: int = 0
    """How many workers were lost while they performed it."""
    warnings: tuple[DataWarning, ...] = ()
    """What the next trial of it is stored with."""
    told: Trial | None = None
    """What came of it, without what is long: another performance is compared with this."""
    settled: bool = False
    """Performed twice, and the same both times; or by this system."""

    @property
    def boots(self) -> tuple[Boot, ...]:
        """What has to be prepared for it."""
        return self.package.boots


@dataclass(eq=False)
class Member:
    """A worker, as the client knows it."""

    address: str
    name: str
    slots: int
    passed: dict[str, bool] = field(default_factory=dict)
    """By the benches' keys: whether it may work for them; not there: it has not introduced itself."""
    out: str = ""
    """Why it gets nothing more to do; empty: it does."""
    prepared: dict[str, set[Boot]] = field(default_factory=dict)
    """By the benches' keys: systems that are ready on it."""
    preparing: set[Boot] = field(default_factory=set)
    busy: int = 0
    """Calls under way."""
    done: list[Entry] = field(default_factory=list)
    """All that it performed, in the order in which that ended."""
    quarantined: bool = False
    """It told wrong digits: nothing that it told is believed."""
    confirmed: bool = False
    """It told the same as somebody else at least once."""

    def works_for(self, bench: Bench) -> bool:
        """Whether it may be given trials of the bench."""
        return self.works_at(bench.key)

    def works_at(self, key: str) -> bool:
        """The same of whatever it was met for."""
        return not self.out and self.passed.get(key, False)

    def has(self, bench: Bench, boots: Sequence[Boot]) -> bool:
        """Whether these systems are all ready on it."""
        return self.prepared.get(bench.key, set()).issuperset(boots)


class Waiting:
    """Entries that nobody performs yet, by the systems that they need."""

    def __init__(self) -> None:
        self._by_boots: dict[tuple[Boot, ...], deque[Entry]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_boots.values()))

    def add(self, entry: Entry) -> None:
        """At the end."""
        self._by_boots.setdefault(entry.boots, deque()).append(entry)

    def groups(self) -> Iterator[tuple[tuple[Boot, ...], int]]:
        """Systems, and how many entries need just these."""
        return ((boots, len(entries)) for boots, entries in self._by_boots.items() if entries)

    def take(self, boots: tuple[Boot, ...], most: int = 1) -> tuple[Entry, ...]:
        """The first that need these systems. One with which a worker was lost is taken alone."""
        waiting = self._by_boots[boots]
        taken = [waiting.popleft()]
        while waiting and len(taken) < most and not (taken[-1].deaths or waiting[0].deaths):
            taken.append(waiting.popleft())
        return tuple(taken)

    def first(self, boots: tuple[Boot, ...]) -> Entry:
        """The same, and it stays."""
        return self._by_boots[boots][0]

    def remove(self, wanted: Callable[[Entry], bool]) -> None:
        """Take away what is wanted."""
        for boots, entries in self._by_boots.items():
            self._by_boots[boots] = deque(entry for entry in entries if not wanted(entry))


@dataclass
class Pace:
    """How long things take here, from what was seen; nothing is known at first."""

    trials: int = 0
    trial_seconds: float = 0.0
    preparations: int = 0
    preparation_seconds: float = 0.0

    def saw_trial(self, seconds: float) -> None:
        """A trial took so long."""
        self.trials, self.trial_seconds = self.trials + 1, self.trial_seconds + seconds

    def saw_preparation(self, seconds: float) -> None:
        """A system was ready after so long."""
        self.preparations += 1
        self.preparation_seconds += seconds

    def at_a_time(self, waiting: int, slots: int) -> int:
        """How many trials a call is made for: more than one where they are so short that calls cost more.

        Always few enough that all slots have work until the end.
        """
        if not self.trials:
            return 1
        short = int(_CALL_SECONDS / max(self.trial_seconds / self.trials, 1e-3))
        return max(1, min(short, _MOST_AT_A_TIME, waiting // (4 * max(1, slots))))

    def is_worth_preparing(self, waiting: int, slots: int) -> bool:
        """Whether one more worker for a group saves more waiting than it costs to make it ready."""
        if not (self.trials and self.preparations):
            return True
        left = waiting * self.trial_seconds / self.trials / max(1, slots)
        return left > self.preparation_seconds / self.preparations


def next_group(
    member: Member, bench: Bench, waiting: Waiting, others: Sequence[Member], pace: Pace
) -> tuple[Boot, ...] | None:
    """The systems of the trials that the member is to turn to; None: it may rest.

    Those that are ready on it come first, then those that the fewest others have or prepare, and where many
    wait: a snapshot is used where it lies, as long as nobody waits for that.
    """
    groups = [(boots, count) for boots, count in waiting.groups() if not member.preparing.intersection(boots)]
    ready = [(boots, count) for boots, count in groups if member.has(bench, boots)]
    if ready:
        return max(ready, key=lambda one: one[1])[0]

    def helpers(boots: tuple[Boot, ...]) -> list[Member]:
        return [one for one in others if one.has(bench, boots) or one.preparing.intersection(boots)]

    for boots, count in sorted(groups, key=lambda one: (len(helpers(one[0])), -one[1])):
        slots = sum(one.slots for one in helpers(boots))
        if not slots or pace.is_worth_preparing(count, slots):
            return boots
    return None
