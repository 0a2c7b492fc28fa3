"""Functions of two kernels and their pairs: what matching, by whatever evidence, has in common."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from ktrial.analysis.attribution.call_context import CallPlaces, Key
from ktrial.analysis.attribution.subsystems import LOCKS, subsystem
from ktrial.model.attribution import Count, Match

_SHOWN = 3
_TELLS_NOTHING = re.compile(
    r"__x86_(?:indirect|return)_thunk\w*|_{0,2}cond_resched|rcu_all_qs|__rcu_read_(?:un)?lock"
    r"|\w*preempt_schedule\w*"
)


@dataclass(frozen=True)
class FunctionPair:
    """One function in both kernels, or in one of them."""

    old: Key | None
    new: Key | None
    match: Match
    evidence: str = ""
    also_old: tuple[Key, ...] = ()
    """Functions of the first that are part of it in the second."""
    also_new: tuple[Key, ...] = ()
    """Functions of the second that were part of it in the first."""
    alone: tuple[Match, str] | None = None
    """Where others are part of it: why the two without them are one, and the evidence."""

    @property
    def unjoined(self) -> tuple[Match, str]:
        """Why the two stand beside each other where nothing else is part of them."""
        return self.alone or (self.match, self.evidence)


@dataclass(frozen=True)
class Functions:
    """One kernel's functions in one workload, or in several."""

    counts: Mapping[Key, Count]
    operations: int
    places: CallPlaces = field(default_factory=CallPlaces)
    known: frozenset[str] = frozenset()
    """Names of all its functions, whether they ran or not; empty where they are not known."""
    files: Mapping[str, str] = field(default_factory=dict)
    workloads: int = 1
    """So many workloads together: what one operation of each of them makes."""

    def own(self, key: Key) -> Fraction:
        """Its own instructions, an operation."""
        return Fraction(self.counts[key].instructions, self.operations)

    def has(self, key: Key) -> bool:
        """Whether the kernel has a function of that name, as far as is known."""
        return key[0] in self.known or key in self.counts


class FunctionPairs:
    """Functions that stand for each other, as they are found."""

    def __init__(self, there: dict[Key, Key]) -> None:
        self.there = there
        """Function of the first → of the second."""
        self.back = {new: old for old, new in there.items()}
        self.why: dict[Key, str] = {}
        """Function of the first → evidence, where one was noted."""

    @property
    def both(self) -> list[tuple[Key, Key]]:
        """All pairs, in the order in which they were found."""
        return list(self.there.items())

    def add(self, old: Key, new: Key, why: str) -> None:
        """One more pair, and the evidence for it."""
        self.there[old], self.back[new], self.why[old] = new, old, why

    def swapped(self) -> "FunctionPairs":
        """The same, seen from the second kernel."""
        return FunctionPairs(self.back)

    def translated(self, calls: Mapping[Key, Fraction]) -> dict[Key, Fraction]:
        """Calls of the first kernel, in the names of the second; unpaired ones keep theirs."""
        return {self.there.get(key, key): count for key, count in calls.items()}


def is_evidence(callee: Key) -> bool:
    """Whether a call of the function is evidence: everything calls locks, RCU's read sides and retpolines."""
    return not _TELLS_NOTHING.fullmatch(callee[0]) and subsystem(callee[0]) != LOCKS


def may_be_together(file: str, other: str) -> bool:
    """Whether two files, or what is known of them, may be of one directory."""
    folders = [each.rpartition("/")[0] + "/" for each in (file, other)]
    if folders[0] == folders[1]:
        return True
    # Where only the directory is known, the file may lie deeper.
    return (file.endswith("/") and folders[1].startswith(file)) or (
        other.endswith("/") and folders[0].startswith(other)
    )


def names_of(calls: Mapping[Key, Fraction]) -> str:
    """The most frequent ones, for people."""
    ranked = sorted(calls, key=lambda key: (-calls[key], key))
    names = [name for name, _ in ranked[:_SHOWN]]
    return ", ".join(names) + (" and others" if len(ranked) > _SHOWN else "")
