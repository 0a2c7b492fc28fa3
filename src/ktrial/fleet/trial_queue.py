"""Trials that a fleet is to perform, those that wait, and which worker does what next."""

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ktrial.experiment.jobs import Job
from ktrial.experiment.stored_trials import Difference, differences
from ktrial.fleet.contents import Package
from ktrial.fleet.worker_side import Bench
from ktrial.model.design import PlannedTrial
from ktrial.model.machine import Boot
from ktrial.model.trial import Trial
from ktrial.model.warnings import DataWarning
from ktrial.target import Step

_CALL_SECONDS = 1.0
"""That a call may take which is for several trials: as much is lost with a worker at most."""
_MOST_AT_A_TIME = 100


@dataclass(eq=False)
class Entry:
    """One trial."""

    planned: PlannedTrial
    jobs: Sequence[Job]
    package: Package
    steps: tuple[tuple[Step, ...] | None, ...]
    scope: str = ""
    started: bool = False
    deaths: int = 0
    """How many workers were lost while they performed it."""
    warnings: tuple[DataWarning, ...] = ()
    """What the next trial of it is stored with."""
    result: Trial | None = None
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
    performed: list[Entry] = field(default_factory=list)
    """All that it performed, in the order in which that ended."""
    quarantined: bool = False
    """It told wrong digits: nothing that it told is believed."""
    confirmed: bool = False
    """It told the same as somebody else at least once."""

    def works_for(self, key: str) -> bool:
        """Whether it may be given what it was met for: a bench's trials, builds."""
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

    def remove(self, is_withdrawn: Callable[[Entry], bool]) -> None:
        """Take away those."""
        for boots, entries in self._by_boots.items():
            self._by_boots[boots] = deque(entry for entry in entries if not is_withdrawn(entry))


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
    groups = {boots: count for boots, count in waiting.groups() if not member.preparing.intersection(boots)}
    if ready := [boots for boots in groups if member.has(bench, boots)]:
        return max(ready, key=lambda boots: groups[boots])

    def helpers(boots: tuple[Boot, ...]) -> list[Member]:
        return [other for other in others if other.has(bench, boots) or other.preparing.intersection(boots)]

    for boots in sorted(groups, key=lambda boots: (len(helpers(boots)), -groups[boots])):
        slots = sum(helper.slots for helper in helpers(boots))
        if not slots or pace.is_worth_preparing(groups[boots], slots):
            return boots
    return None


# Workers are not trusted: some trials are performed twice, by different workers, and have to be the same.

_LATEST = 8
"""Of an unconfirmed worker's trials, so many are looked at for one that another worker can soon perform."""
_OF_THE_HOST = frozenset({"reason"})
"""What may name a place of the worker's own."""


@dataclass(eq=False)
class Check:
    """A second performance of a trial."""

    entry: Entry
    first: Member
    """Who performed it before."""


class Checks:
    """Those that are to be made."""

    def __init__(self, share: float, scope: str) -> None:
        """`share`: of trials that are performed twice, beside one for each worker. `scope`: theirs."""
        self._share, self._scope = share, scope
        self._drawn: list[Check] = []
        self.under_way: list[Check] = []

    def performed(self, member: Member, entry: Entry) -> None:
        """A worker has performed a trial: perhaps it is one of those, the same whenever it is run."""
        draw = hashlib.sha256(entry.planned.key.encode()).digest()[:8]
        if int.from_bytes(draw, "big") / 2**64 < self._share:
            self._drawn.append(Check(entry, member))

    def forget(self, member: Member) -> None:
        """The member is out: what it told is not believed anyway."""
        self._drawn = [check for check in self._drawn if check.first is not member]
        self.under_way = [check for check in self.under_way if check.first is not member]

    def open(self, members: Sequence[Member]) -> list[Check]:
        """What is still to be begun: those that were drawn, and for each worker that nobody confirmed one.

        Of an unconfirmed worker any trial will do: all of its latest scope are named, the last first.
        """
        looked_at = {id(check.first) for check in (*self._drawn, *self.under_way)}
        any_trial = (
            Check(entry, member)
            for member in members
            if not (member.confirmed or id(member) in looked_at)
            for entry in reversed(member.performed[-_LATEST:])
            if entry.scope == self._scope
        )
        return [*self._drawn, *any_trial]

    def begin(self, check: Check) -> None:
        """It is being made."""
        self._drawn = [drawn for drawn in self._drawn if drawn.entry is not check.entry]
        self.under_way.append(check)

    def abandon(self, check: Check) -> None:
        """Whoever was making it is gone: it is to be made again."""
        if check in self.under_way:
            self.under_way.remove(check)
            self._drawn.append(check)

    def end(self, check: Check) -> None:
        """It was made."""
        if check in self.under_way:
            self.under_way.remove(check)


def for_member(checks: Sequence[Check], member: Member, bench: Bench, *, idle: bool) -> Check | None:
    """One that the member can make: where its systems are ready, or, with nothing else to do, any."""
    of_others = [check for check in checks if check.first is not member]
    if ready := [check for check in of_others if member.has(bench, check.entry.boots)]:
        return ready[0]
    if idle and not member.preparing and of_others:
        return of_others[0]
    return None


def compared(first: Trial, second: Trial) -> tuple[Difference, ...]:
    """What is not the same to the last digit, apart from texts that may name places."""
    return tuple(
        difference for difference in differences(first, second) if difference.fact not in _OF_THE_HOST
    )


def short(trial: Trial) -> Trial:
    """The trial, without what is long and not compared."""
    return trial.model_copy(update={"profiles": (), "sampled": (), "console": ""})
