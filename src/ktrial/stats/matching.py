"""Which function of one kernel is which of another: by name first, then by its place in the tree of calls.

A place is evidence only where a function has gone and another has come: a name that both kernels have stands
for itself, even where only one of them calls it.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from ktrial.model.explanation import Count, Match
from ktrial.stats.call_places import ENTRY, CallPlaces, Key, alike
from ktrial.stats.subsystems import LOCKS, subsystem

_SYSTEM_CALL = re.compile(r"^__(?:x64|ia32)_(?=sys_)")
_PROFILED = re.compile(r"_noprof$")
"""Since 6.10 the allocators' functions have it: their old names are macros (memory allocation profiling)."""

_SAME_CALLERS = 0.9
_SAME_CALLEES = 0.8
_ONLY_CALLER = Fraction(95, 100)
"""The part of its calls that a function's only caller makes."""
_TAKEN_OVER = Fraction(8, 10)
"""The part of a function's calls that the one which took it in makes itself."""
_LEAF_GROWTH = (Fraction(1, 2), Fraction(3, 2))
"""Where it called nothing: by how much its caller grew, of its own instructions."""
_SMALLEST_LEAF = 20
"""Instructions an operation: below that, growth of the caller is no evidence."""
_LIKE_IN_SIZE = 2
_WORDS_IN_COMMON = 0.5
_LIKE_PLACES = 0.5
"""Where the names have words in common, and the files are of one directory."""
_SHOWN = 3
_TELLS_NOTHING = re.compile(
    r"__x86_(?:indirect|return)_thunk\w*|_{0,2}cond_resched|rcu_all_qs|__rcu_read_(?:un)?lock|\w*preempt_schedule\w*"
)
"""Called from everywhere: that a function calls one of these is no evidence. Nor are locks."""


@dataclass(frozen=True)
class Pair:
    """One function in both kernels, or in one of them."""

    old: Key | None
    new: Key | None
    match: Match
    evidence: str = ""
    also_old: tuple[Key, ...] = ()
    """Functions of the first that are part of it in the second."""
    also_new: tuple[Key, ...] = ()
    """Functions of the second that were part of it in the first."""


@dataclass(frozen=True)
class Functions:
    """One kernel's functions in one workload."""

    counts: Mapping[Key, Count]
    operations: int
    places: CallPlaces = field(default_factory=CallPlaces)
    known: frozenset[str] = frozenset()
    """Names of all its functions, whether they ran or not; empty where they are not known."""
    files: Mapping[str, str] = field(default_factory=dict)

    def own(self, key: Key) -> Fraction:
        """Its own instructions, an operation."""
        return Fraction(self.counts[key].instructions, self.operations)

    def has(self, key: Key) -> bool:
        """Whether the kernel has a function of that name, as far as is known."""
        return key[0] in self.known or key in self.counts


def match(old: Functions, new: Functions) -> list[Pair]:
    """Every function of the two in one pair."""
    by_name = {pair.old: pair for pair in _by_name(old.counts, new.counts)}
    paired = _by_place(old, new, {pair.old: pair.new for pair in by_name.values() if pair.old and pair.new})
    pairs = [
        by_name.get(key) or Pair(key, other, Match.PLACED, paired.why[key]) for key, other in paired.both
    ]
    return list(_joined(old, new, paired, pairs))


class _Paired:
    """Functions that stand for each other, as they are found."""

    def __init__(self, there: dict[Key, Key]) -> None:
        self.there = there
        self.back = {new: old for old, new in there.items()}
        self.why: dict[Key, str] = {}

    @property
    def both(self) -> list[tuple[Key, Key]]:
        return list(self.there.items())

    def add(self, old: Key, new: Key, why: str) -> None:
        self.there[old], self.back[new], self.why[old] = new, old, why

    def swapped(self) -> "_Paired":
        return _Paired(self.back)

    def translated(self, calls: Mapping[Key, Fraction]) -> dict[Key, Fraction]:
        """Calls of the first kernel, in the names of the second; unpaired ones keep theirs."""
        return {self.there.get(key, key): count for key, count in calls.items()}


def _by_name(old: Mapping[Key, Count], new: Mapping[Key, Count]) -> list[Pair]:
    pairs = [Pair(key, key, Match.SAME) for key in old if key in new]
    ways: tuple[tuple[Match, Callable[[Key], object], str], ...] = (
        (Match.MOVED, _bare, "the same name in a module, or in another one"),
        (Match.RENAMED, _stem, "the same name without leading _, __x64_ and _noprof"),
    )
    for kind, name_of, why in ways:
        taken_old, taken_new = {pair.old for pair in pairs}, {pair.new for pair in pairs}
        old_by_name, new_by_name = _unique(old, name_of), _unique(new, name_of)
        for name, key in old_by_name.items():
            other = new_by_name.get(name)
            if other and key not in taken_old and other not in taken_new:
                pairs.append(Pair(key, other, kind, why))
    return pairs


def _unique(counts: Iterable[Key], name_of: Callable[[Key], object]) -> dict[object, Key]:
    """Functions by a coarser name, where no other function of that kernel has it too."""
    found: dict[object, list[Key]] = defaultdict(list)
    for key in counts:
        found[name_of(key)].append(key)
    return {name: keys[0] for name, keys in found.items() if len(keys) == 1}


def _bare(key: Key) -> object:
    return key[0]


def _stem(key: Key) -> object:
    name, module = key
    return _PROFILED.sub("", _SYSTEM_CALL.sub("", name)).lstrip("_"), module


def _by_place(old: Functions, new: Functions, there: dict[Key, Key]) -> _Paired:
    """Add functions that have gone and come in the same place, from the callers down."""
    paired = _Paired(dict(there))
    while found := list(_same_places(old, new, paired)):
        for one, other, why in found:
            paired.add(one, other, why)
    return paired


def _same_places(old: Functions, new: Functions, paired: _Paired) -> Iterator[tuple[Key, Key, str]]:
    gone = [key for key in old.counts if key not in paired.there and not new.has(key)]
    come = [key for key in new.counts if key not in paired.back and not old.has(key)]
    fits: dict[Key, list[Key]] = defaultdict(list)
    fitting: dict[Key, list[Key]] = defaultdict(list)
    for one in gone:
        for other in come:
            if _fit(old, new, one, other, paired):
                fits[one].append(other)
                fitting[other].append(one)
    for one, others in fits.items():
        if len(others) == 1 and fitting[others[0]] == [one]:
            yield one, others[0], _place(old, new, one, others[0], paired)


def _fit(old: Functions, new: Functions, one: Key, other: Key, paired: _Paired) -> bool:
    """Whether the two have the same callers and callees, as often; or nearly so, and nearly the same name."""
    file, other_file = old.files.get(one[0], ""), new.files.get(other[0], "")
    if one[1] != other[1] or (file and other_file and not _together(file, other_file)):
        return False
    callers = alike(paired.translated(old.places.callers.get(one, {})), new.places.callers.get(other, {}))
    below, below_other = old.places.callees.get(one, {}), new.places.callees.get(other, {})
    callees = alike(paired.translated(below), below_other)
    sizes = sorted((old.own(one), new.own(other)))
    leaves = not below and not below_other and sizes[1] <= _LIKE_IN_SIZE * sizes[0]
    named = _words_in_common(one[0], other[0]) >= _WORDS_IN_COMMON
    if named and file and other_file:
        return callers >= _LIKE_PLACES and (leaves or callees >= _LIKE_PLACES)
    return callers >= _SAME_CALLERS and (callees >= _SAME_CALLEES or (leaves and named))


def _together(file: str, other: str) -> bool:
    """Whether two files, or what is known of them, may be of one directory."""
    folders = sorted(each.rpartition("/")[0] + "/" for each in (file, other))
    return folders[1].startswith(folders[0])


def _words_in_common(name: str, other: str) -> float:
    words, others = (set(filter(None, each.split("_"))) for each in (name, other))
    return len(words & others) / (len(words | others) or 1)


def _place(old: Functions, new: Functions, one: Key, other: Key, paired: _Paired) -> str:
    """What the two have in common."""
    callers = paired.translated(old.places.callers.get(one, {}))
    callees = paired.translated(old.places.callees.get(one, {}))
    above, below = new.places.callers.get(other, {}), new.places.callees.get(other, {})
    often = " and ".join(f"{float(side.places.entered(key)):.4g}" for side, key in ((old, one), (new, other)))
    calls = f", and call {_names(_in_both(callees, below))}" if _in_both(callees, below) else ""
    return f"both are called by {_names(_in_both(callers, above))}, {often} times an operation{calls}"


def _in_both(calls: Mapping[Key, Fraction], others: Mapping[Key, Fraction]) -> dict[Key, Fraction]:
    return {key: count for key, count in calls.items() if key in others}


def _names(calls: Mapping[Key, Fraction]) -> str:
    ranked = sorted(calls, key=lambda key: (-calls[key], key))
    names = [name for name, _ in ranked[:_SHOWN]]
    return ", ".join(names) + (" and others" if len(ranked) > _SHOWN else "")


def _joined(old: Functions, new: Functions, paired: _Paired, pairs: list[Pair]) -> Iterator[Pair]:
    """The pairs, with what was merged or split in theirs, and what is left alone."""
    merged = _taken_in(old, new, paired)
    split = _taken_in(new, old, paired.swapped())
    for pair in pairs:
        inside = [key for key, (caller, _) in merged.items() if caller == pair.old]
        outside = [key for key, (caller, _) in split.items() if caller == pair.new]
        if not inside and not outside:
            yield pair
            continue
        why = [f"{key[0]} is not in the second, where {merged[key][1]}" for key in inside]
        why += [f"{key[0]} is not in the first, where {split[key][1]}" for key in outside]
        kind = Match.MERGED if inside else Match.SPLIT
        yield Pair(pair.old, pair.new, kind, "; ".join(why), tuple(inside), tuple(outside))
    for key in old.counts:
        if key not in paired.there and key not in merged:
            yield Pair(key, None, Match.ONLY_FROM, _left(new, key, "second"))
    for key in new.counts:
        if key not in paired.back and key not in split:
            yield Pair(None, key, Match.ONLY_TO, _left(old, key, "first"))


def _left(other: Functions, key: Key, which: str) -> str:
    """What is known of a function that ran on one side only."""
    if not other.known or key[1]:
        return ""
    return (
        f"the {which} has it too: not called there"
        if other.has(key)
        else f"the {which} has none of that name"
    )


def _taken_in(old: Functions, new: Functions, paired: _Paired) -> dict[Key, tuple[Key, str]]:
    """Functions that have gone → their only caller, which has taken them in, and the evidence."""
    gone = [key for key in old.counts if key not in paired.there and not new.has(key)]
    heirs = {key: caller for key in gone if (caller := _only_caller(old, key)) in paired.there and caller}
    found = {}
    for key, caller in heirs.items():
        if why := _calls_taken_over(old, new, key, caller, paired):
            found[key] = (caller, why)
    # How much a caller has grown tells nothing where it may have taken in more than one.
    for key, caller in heirs.items():
        alone = list(heirs.values()).count(caller) == 1 and key not in found
        if alone and (why := _growth(old, new, key, caller, paired)):
            found[key] = (caller, why)
    return found


def _only_caller(old: Functions, key: Key) -> Key | None:
    callers = old.places.callers.get(key, {})
    if not callers:
        return None
    caller = max(callers, key=lambda one: (callers[one], one))
    if caller == ENTRY or callers[caller] < _ONLY_CALLER * old.places.entered(key):
        return None
    return caller


def _calls_taken_over(old: Functions, new: Functions, key: Key, caller: Key, paired: _Paired) -> str:
    """That the caller has grown, and now makes the function's calls itself; empty where it does not."""
    heir, none = paired.there[caller], Fraction(0)
    before = paired.translated(old.places.callees.get(caller, {}))
    inside = paired.translated(old.places.callees.get(key, {}))
    now = new.places.callees.get(heir, {})
    ours = {callee: calls for callee, calls in inside.items() if callee in new.counts and _tells(callee)}
    taken = {
        callee: calls
        for callee, calls in ours.items()
        if now.get(callee, none) - before.get(callee, none) >= _TAKEN_OVER * calls
    }
    if not taken or sum(taken.values(), none) < _TAKEN_OVER * sum(ours.values(), none):
        return ""
    if new.own(heir) <= old.own(caller):
        return ""
    return f"its only caller {caller[0]} itself calls {_names(taken)}"


def _tells(callee: Key) -> bool:
    return not _TELLS_NOTHING.fullmatch(callee[0]) and subsystem(callee[0]) != LOCKS


def _growth(old: Functions, new: Functions, key: Key, caller: Key, paired: _Paired) -> str:
    """That the caller has grown by about what the function, which calls nothing, had; empty otherwise."""
    heir = paired.there[caller]
    grown, own = new.own(heir) - old.own(caller), old.own(key)
    least, most = (part * own for part in _LEAF_GROWTH)
    if old.places.callees.get(key) or not new.known or own < _SMALLEST_LEAF or not least <= grown <= most:
        return ""
    others = [one for one in new.places.callees.get(heir, {}) if one not in paired.back and not old.has(one)]
    if others or not _together(old.files.get(key[0], ""), old.files.get(caller[0], "")):
        return ""
    more = f"{float(grown):.4g} instructions more, of the {float(own):.4g} it had"
    return f"its only caller {caller[0]} has {more}"
