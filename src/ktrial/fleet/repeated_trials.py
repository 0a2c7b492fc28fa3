"""Workers are not trusted: some trials are performed twice, by different workers, and have to be the same."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from ktrial.experiment.stored_trials import Difference, differences
from ktrial.fleet.messages import Bench
from ktrial.fleet.trial_queue import Entry, Member
from ktrial.model.trial import Trial

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
        """A worker has performed a trial: perhaps it is one of those."""
        if _draw(entry.planned.key) < self._share:
            self._drawn.append(Check(entry, member))

    def forget(self, member: Member) -> None:
        """The member is out: what it told is not believed anyway."""
        self._drawn = [one for one in self._drawn if one.first is not member]
        self.under_way = [one for one in self.under_way if one.first is not member]

    def open(self, members: Sequence[Member]) -> list[Check]:
        """What is still to be begun: those that were drawn, and for each worker that nobody confirmed one.

        Of an unconfirmed worker any trial will do: all of its latest scope are named, the last first.
        """
        unconfirmed = [one for one in members if not one.confirmed and not self._is_looked_at(one)]
        any_of = (
            Check(entry, one)
            for one in unconfirmed
            for entry in reversed(one.done[-_LATEST:])
            if entry.scope == self._scope
        )
        return [*self._drawn, *any_of]

    def begin(self, check: Check) -> None:
        """It is being made."""
        self._drawn = [one for one in self._drawn if one.entry is not check.entry]
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

    def _is_looked_at(self, member: Member) -> bool:
        return any(one.first is member for one in (*self._drawn, *self.under_way))


def for_member(checks: Sequence[Check], member: Member, bench: Bench, *, idle: bool) -> Check | None:
    """One that the member can make: where its systems are ready, or, with nothing else to do, any."""
    of_others = [one for one in checks if one.first is not member]
    ready = [one for one in of_others if member.has(bench, one.entry.boots)]
    if ready:
        return ready[0]
    possible = [one for one in of_others if not member.preparing.intersection(one.entry.boots)]
    return possible[0] if idle and possible and not member.preparing else None


def compared(first: Trial, second: Trial) -> tuple[Difference, ...]:
    """What is not the same to the last digit, apart from texts that may name places."""
    return tuple(one for one in differences(first, second) if one.what not in _OF_THE_HOST)


def short(trial: Trial) -> Trial:
    """The trial, without what is long and not compared."""
    return trial.model_copy(update={"profiles": (), "sampled": (), "console": ""})


def _draw(key: str) -> float:
    """From 0 to 1, the same for the same trial."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") / 2**64
