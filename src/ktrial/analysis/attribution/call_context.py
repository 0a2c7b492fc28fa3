"""Where a function stands in a profile's tree of calls: who calls it, whom it calls, how often."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from ktrial.model.profile import Profile

Key = tuple[str, str]
"""A function's name without what the compiler appends, and its module."""

ENTRY: Key = ("[entry]", "")
"""Stands for the caller of what was entered from user mode, or by an interrupt."""


@dataclass(frozen=True)
class CallPlaces:
    """Calls an operation, by function."""

    callers: Mapping[Key, Mapping[Key, Fraction]] = field(default_factory=dict)
    """Function → caller → how often that calls it, an operation."""
    callees: Mapping[Key, Mapping[Key, Fraction]] = field(default_factory=dict)
    """Function → what it calls → how often, an operation."""

    def entered(self, key: Key) -> Fraction:
        """How often the function is called, an operation."""
        return sum(self.callers.get(key, {}).values(), Fraction(0))


def call_places(profile: Profile, key_of: Callable[[str, str], Key]) -> CallPlaces:
    """Of the profile's tree; empty where calls were not followed. Pieces of one function are one."""
    functions = profile.region.functions
    keys = [key_of(each.symbol, each.module) for each in functions]
    nodes = profile.region.nodes or ()
    callers: dict[Key, Counter[Key]] = defaultdict(Counter)
    for node in nodes[2:]:
        above = nodes[node.parent].function
        caller, own = (keys[above] if above >= 0 else ENTRY), keys[node.function]
        if caller != own:
            callers[own][caller] += node.entered
    callees: dict[Key, dict[Key, Fraction]] = defaultdict(dict)
    shown: dict[Key, dict[Key, Fraction]] = {}
    for own, counts in callers.items():
        shown[own] = {
            caller: Fraction(count, profile.operations) for caller, count in counts.items() if count
        }
        for caller, calls in shown[own].items():
            callees[caller][own] = calls
    return CallPlaces(shown, dict(callees))


def alike(one: Mapping[Key, Fraction], other: Mapping[Key, Fraction]) -> float:
    """How alike two sets of calls are, from 0 to 1: the calls that both have, of those that one of them has.

    The weighted Jaccard index (Ruzicka): the sum of minima over the sum of maxima.
    """
    if one.keys().isdisjoint(other.keys()):
        return 0.0  # most pairs of functions that are asked about
    keys = one.keys() | other.keys()
    none = Fraction(0)
    most = sum((max(one.get(key, none), other.get(key, none)) for key in keys), none)
    least = sum((min(one.get(key, none), other.get(key, none)) for key in keys), none)
    return float(least / most) if most else 0.0
