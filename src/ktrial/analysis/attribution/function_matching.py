"""Which function of one kernel is which of another: by name, by its place in the tree of calls, by inlining.

Names come first. A place is evidence only where a function has gone and another has come: a name that both
kernels have stands for itself, even where only one of them calls it. Two in the same place are one, renamed;
one whose only caller now makes its calls itself was taken in by that caller: compiler or source joined them.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from ktrial.analysis.attribution.subsystems import LOCKS, subsystem
from ktrial.model.attribution import Count, Match, summed
from ktrial.model.profile import FunctionCount, FunctionFiles, Profile

_SYSTEM_CALL = re.compile(r"^__(?:x64|ia32)_(?=sys_)")
_PROFILED = re.compile(r"_noprof$")
"""Since 6.10 the allocators' functions have it: their old names are macros (memory allocation profiling)."""
_ONLY_CALLER = Fraction(95, 100)
"""The part of its calls that a function's only caller makes."""
_TAKEN_OVER = Fraction(8, 10)
"""The part of a function's calls that the one which took it in makes itself."""
_LEAF_GROWTH = (Fraction(1, 2), Fraction(3, 2))
"""Where it called nothing: by how much its caller grew, of its own instructions."""
_SMALLEST_LEAF = 20
"""Instructions per operation: below that, growth of the caller is no evidence."""
_SAME_CALLERS = 0.9
_SAME_CALLEES = 0.8
_LIKE_IN_SIZE = 2
_WORDS_IN_COMMON = 0.5
_LIKE_PLACES = 0.5
"""Where the names have words in common, and the files are of one directory."""
_CALLEES_OF_ONE = 0.3
"""Where names and callers are alike, but one has more than twice the other's instructions."""
_CALLERS_OF_A_LONGER_NAME = 0.3
_WORDS_OF_A_LONG_NAME = 3
"""`__list_add_valid` → `__list_add_valid_or_report`: its callers may be others, where it calls nothing."""
_CALLEES_IN_COMMON = 3
"""`unmap_page_range` → `__zap_vma_range`: nothing of the name, and the function between it and its caller has
gone; the file, the calls and the size are the same."""
_HOOKS = "security/"
"""Security modules hook the same functions: `cap_mmap_file` and `ipe_mmap_file` have one caller."""


# Where a function stands in a profile's tree of calls: who calls it, whom it calls, how often.

Key = tuple[str, str]
"""A function's name without what the compiler appends, and its module."""


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

    @cached_property
    def is_joined(self) -> bool:
        """Whether others are part of it."""
        return bool(self.also_old or self.also_new)

    @cached_property
    def is_plain(self) -> bool:
        """Whether it stands for one function in each kernel, wherever both run it."""
        return not self.is_joined and self.alone is None

    @property
    def unjoined(self) -> tuple[Match, str]:
        """Why the two stand beside each other where nothing else is part of them."""
        return self.alone or (self.match, self.evidence)


@dataclass(frozen=True)
class CallPlaces:
    """Calls per operation, by function."""

    callers: Mapping[Key, Mapping[Key, Fraction]] = field(default_factory=dict)
    """Function → caller → how often that calls it, per operation."""
    callees: Mapping[Key, Mapping[Key, Fraction]] = field(default_factory=dict)
    """Function → what it calls → how often, per operation."""

    def entered(self, key: Key) -> Fraction:
        """How often the function is called, per operation."""
        return sum(self.callers.get(key, {}).values(), Fraction(0))


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
        """Its own instructions, per operation."""
        return Fraction(self.counts[key].instructions, self.operations)

    def has(self, key: Key) -> bool:
        """Whether the kernel has a function of that name, as far as is known."""
        return key[0] in self.known or key in self.counts


def match(old: Functions, new: Functions) -> list[FunctionPair]:
    """Every function of the two in one pair."""
    by_name = {pair.old: pair for pair in _by_name(old, new)}
    paired = with_renamed(
        old, new, {pair.old: pair.new for pair in by_name.values() if pair.old and pair.new}
    )
    pairs = [
        by_name.get(key) or FunctionPair(key, new_key, Match.PLACED, paired.why[key])
        for key, new_key in paired.both
    ]
    return list(_joined(old, new, paired, pairs))


def _by_name(old: Functions, new: Functions) -> list[FunctionPair]:
    pairs = [FunctionPair(key, key, Match.SAME) for key in old.counts if key in new.counts]
    ways: tuple[tuple[Match, Callable[[Key], object], str], ...] = (
        (Match.MOVED, _bare, "the same name in a module, or in another one"),
        (Match.RENAMED, _profiled, "the same name with _noprof"),
        (Match.RENAMED, _stem, "the same name without leading _, __x64_ and _noprof"),
    )
    for kind, name_of, why in ways:
        taken_old, taken_new = {pair.old for pair in pairs}, {pair.new for pair in pairs}
        gone, come = (old.counts, new.counts) if kind is Match.MOVED else (_gone(old, new), _gone(new, old))
        old_by_name, new_by_name = _unique(gone, name_of), _unique(come, name_of)
        for name, key in old_by_name.items():
            new_key = new_by_name.get(name)
            if new_key and key not in taken_old and new_key not in taken_new:
                pairs.append(FunctionPair(key, new_key, kind, why))
    return pairs


def _gone(side: Functions, opposite: Functions) -> list[Key]:
    """Functions of one kernel that the other does not have by their names, as far as is known."""
    return [key for key in side.counts if key[1] or not opposite.has(key)]


def _unique(counts: Iterable[Key], name_of: Callable[[Key], object]) -> dict[object, Key]:
    """Functions by a coarser name, where no other function of that kernel has it too."""
    by_name: dict[object, list[Key]] = defaultdict(list)
    for key in counts:
        by_name[name_of(key)].append(key)
    return {name: keys[0] for name, keys in by_name.items() if len(keys) == 1}


def _bare(key: Key) -> object:
    return key[0]


def _profiled(key: Key) -> object:
    name, module = key
    return _PROFILED.sub("", name), module


def _stem(key: Key) -> object:
    name, module = key
    return _PROFILED.sub("", _SYSTEM_CALL.sub("", name)).lstrip("_"), module


class FunctionPairs:
    """Functions that stand for each other, as they are found."""

    def __init__(self, new_by_old: dict[Key, Key]) -> None:
        self.there = new_by_old
        """Function of the first → of the second."""
        self.back = {new: old for old, new in new_by_old.items()}
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


def _joined(
    old: Functions, new: Functions, paired: FunctionPairs, pairs: list[FunctionPair]
) -> Iterator[FunctionPair]:
    """The pairs, with what was merged or split in theirs, and what is left alone."""
    merged = inlined_functions(old, new, paired)
    split = inlined_functions(new, old, paired.swapped())
    for pair in pairs:
        inside = [key for key, (caller, _) in merged.items() if caller == pair.old]
        outside = [key for key, (caller, _) in split.items() if caller == pair.new]
        if not inside and not outside:
            yield pair
            continue
        why = [pair.evidence] if pair.evidence else []
        why += [f"{key[0]} is not in the second, where {merged[key][1]}" for key in inside]
        why += [f"{key[0]} is not in the first, where {split[key][1]}" for key in outside]
        kind = Match.MERGED if inside else Match.SPLIT
        alone = (pair.match, pair.evidence)
        yield FunctionPair(pair.old, pair.new, kind, "; ".join(why), tuple(inside), tuple(outside), alone)
    for key in old.counts:
        if key not in paired.there and key not in merged:
            yield FunctionPair(key, None, Match.ONLY_FROM, _left(new, key, "second"))
    for key in new.counts:
        if key not in paired.back and key not in split:
            yield FunctionPair(None, key, Match.ONLY_TO, _left(old, key, "first"))


def _left(side: Functions, key: Key, which: str) -> str:
    """What is known of a function that ran on one side only."""
    if not side.known or key[1]:
        return ""
    if side.has(key):
        return f"the {which} has it too: not called there"
    return f"the {which} has none of that name"


def inlined_functions(old: Functions, new: Functions, paired: FunctionPairs) -> dict[Key, tuple[Key, str]]:
    """Functions that have gone → their only caller, which has taken them in, and the evidence."""
    gone = [key for key in old.counts if key not in paired.there and not new.has(key)]
    heirs = {key: caller for key in gone if (caller := _only_caller(old, key)) in paired.there and caller}
    inlined = {}
    for key, caller in heirs.items():
        if why := _calls_taken_over(old, new, key, caller, paired):
            inlined[key] = (caller, why)
    # How much a caller has grown tells nothing where it may have taken in more than one.
    for key, caller in heirs.items():
        alone = list(heirs.values()).count(caller) == 1 and key not in inlined
        if alone and (why := _growth(old, new, key, caller, paired)):
            inlined[key] = (caller, why)
    return inlined


def _only_caller(old: Functions, key: Key) -> Key | None:
    callers = old.places.callers.get(key, {})
    if not callers:
        return None
    caller = max(callers, key=lambda candidate: (callers[candidate], candidate))
    if caller == ENTRY or callers[caller] < _ONLY_CALLER * old.places.entered(key):
        return None
    return caller


def _calls_taken_over(old: Functions, new: Functions, key: Key, caller: Key, paired: FunctionPairs) -> str:
    """That the caller has grown, and now makes the function's calls itself; empty where it does not."""
    heir, none = paired.there[caller], Fraction(0)
    before = paired.translated(old.places.callees.get(caller, {}))
    inside = paired.translated(old.places.callees.get(key, {}))
    after = new.places.callees.get(heir, {})
    ours = {callee: calls for callee, calls in inside.items() if callee in new.counts and is_evidence(callee)}
    taken = {
        callee: calls
        for callee, calls in ours.items()
        if after.get(callee, none) - before.get(callee, none) >= _TAKEN_OVER * calls
    }
    if not taken or sum(taken.values(), none) < _TAKEN_OVER * sum(ours.values(), none):
        return ""
    if new.own(heir) <= old.own(caller):
        return ""
    return f"its only caller {caller[0]} itself calls {names_of(taken)}"


def _growth(old: Functions, new: Functions, key: Key, caller: Key, paired: FunctionPairs) -> str:
    """That the caller has grown by about what the function, which calls nothing, had; empty otherwise."""
    heir = paired.there[caller]
    grown, size = new.own(heir) - old.own(caller), old.own(key)
    least, most = (part * size for part in _LEAF_GROWTH)
    if old.places.callees.get(key) or not new.known or size < _SMALLEST_LEAF or not least <= grown <= most:
        return ""
    unpaired = [
        callee
        for callee in new.places.callees.get(heir, {})
        if callee not in paired.back and not old.has(callee)
    ]
    if unpaired or not may_be_together(old.files.get(key[0], ""), old.files.get(caller[0], "")):
        return ""
    more = f"{float(grown):.4g} instructions more, of the {float(size):.4g} it had"
    return f"its only caller {caller[0]} has {more}"


def with_renamed(old: Functions, new: Functions, new_by_old: dict[Key, Key]) -> FunctionPairs:
    """Add functions that have gone and come in the same place, from the callers down."""
    paired = FunctionPairs(dict(new_by_old))
    while renames := list(_same_places(old, new, paired)):
        for old_key, new_key, why in renames:
            paired.add(old_key, new_key, why)
    return paired


def _same_places(old: Functions, new: Functions, paired: FunctionPairs) -> Iterator[tuple[Key, Key, str]]:
    gone = [key for key in old.counts if key not in paired.there and not new.has(key) and is_evidence(key)]
    come = [key for key in new.counts if key not in paired.back and not old.has(key) and is_evidence(key)]
    fits: dict[Key, list[Key]] = defaultdict(list)
    fitting: dict[Key, list[Key]] = defaultdict(list)
    called = _by_caller(come, old, new, paired)
    for old_key in gone:
        above = {
            **paired.translated(old.places.callers.get(old_key, {})),
            **paired.translated(_callers_of_callers(old, new, old_key, paired.there)),
        }
        for new_key in dict.fromkeys(callee for caller in above for callee in called.get(caller, ())):
            if _fit(old, new, old_key, new_key, paired):
                fits[old_key].append(new_key)
                fitting[new_key].append(old_key)
    for old_key, new_keys in fits.items():
        if len(new_keys) == 1 and fitting[new_keys[0]] == [old_key]:
            yield old_key, new_keys[0], _place(old, new, old_key, new_keys[0], paired)


def _by_caller(
    come: list[Key], old: Functions, new: Functions, paired: FunctionPairs
) -> dict[Key, list[Key]]:
    """Those that a function calls, itself or by one that has come: without a caller in common, no two fit."""
    called: dict[Key, list[Key]] = defaultdict(list)
    for callee in come:
        between = _callers_of_callers(new, old, callee, paired.back)
        for caller in dict.fromkeys((*new.places.callers.get(callee, {}), *between)):
            called[caller].append(callee)
    return called


def _fit(old: Functions, new: Functions, old_key: Key, new_key: Key, paired: FunctionPairs) -> bool:
    """Whether the two have the same callers and callees, as often; or nearly so, and nearly the same name."""
    file, other_file = old.files.get(old_key[0], ""), new.files.get(new_key[0], "")
    if old_key[1] != new_key[1] or (file and other_file and not may_be_together(file, other_file)):
        return False
    if file.startswith(_HOOKS) and _first_word(old_key[0]) != _first_word(new_key[0]):
        return False
    callers = alike(
        paired.translated(old.places.callers.get(old_key, {})), new.places.callers.get(new_key, {})
    )
    below, below_other = old.places.callees.get(old_key, {}), new.places.callees.get(new_key, {})
    callees = alike(paired.translated(below), below_other)
    sizes = sorted((old.own(old_key), new.own(new_key)))
    like_in_size = sizes[1] <= _LIKE_IN_SIZE * sizes[0]
    if callers < _CALLERS_OF_A_LONGER_NAME:
        in_common = [
            callee for callee in _in_both(paired.translated(below), below_other) if is_evidence(callee)
        ]
        work = like_in_size and callees >= _SAME_CALLEES and len(in_common) >= _CALLEES_IN_COMMON
        return (
            bool(file) and file == other_file and work and _one_call_apart(old, new, old_key, new_key, paired)
        )
    leaves = not below and not below_other and like_in_size
    named = _words_in_common(old_key[0], new_key[0]) >= _WORDS_IN_COMMON
    if named and file and other_file:
        alike_places = callers >= _LIKE_PLACES and (leaves or callees >= _LIKE_PLACES)
        longer = _is_longer(old_key[0], new_key[0]) and leaves and callers >= _CALLERS_OF_A_LONGER_NAME
        # A caller has one place for several functions of like names: one that went, and one that is new.
        work = like_in_size or callees >= _CALLEES_OF_ONE
        return (callers >= _SAME_CALLERS and work) or alike_places or longer
    return callers >= _SAME_CALLERS and (callees >= _SAME_CALLEES or (leaves and named))


def _one_call_apart(
    old: Functions, new: Functions, old_key: Key, new_key: Key, paired: FunctionPairs
) -> bool:
    """Whether they have the same callers, once what is between, and has gone or come too, is left out."""
    above = _callers_of_callers(old, new, old_key, paired.there)
    above_other = _callers_of_callers(new, old, new_key, paired.back)
    return alike(paired.translated(above), above_other) >= _SAME_CALLERS


def _callers_of_callers(
    side: Functions, opposite: Functions, key: Key, paired: Mapping[Key, Key]
) -> dict[Key, Fraction]:
    """A function's callers; in place of those that the other kernel does not have, their only callers."""
    callers: dict[Key, Fraction] = {}
    for caller, calls in side.places.callers.get(key, {}).items():
        is_alone = caller not in paired and not opposite.has(caller) and caller != ENTRY
        above = _only_caller(side, caller) if is_alone else None
        before = callers.get(above or caller)
        callers[above or caller] = calls if before is None else before + calls
    return callers


def _first_word(name: str) -> str:
    return name.lstrip("_").partition("_")[0]


def _is_longer(name: str, second: str) -> bool:
    """Whether one of the names, of three words at least, is how the other begins."""
    short, long = sorted((name, second), key=len)
    return long.startswith(f"{short}_") and len(short.strip("_").split("_")) >= _WORDS_OF_A_LONG_NAME


def _words_in_common(name: str, second: str) -> float:
    words, second_words = (set(filter(None, text.split("_"))) for text in (name, second))
    return len(words & second_words) / (len(words | second_words) or 1)


def _place(old: Functions, new: Functions, old_key: Key, new_key: Key, paired: FunctionPairs) -> str:
    """What the two have in common."""
    callers = paired.translated(old.places.callers.get(old_key, {}))
    callees = paired.translated(old.places.callees.get(old_key, {}))
    above, below = new.places.callers.get(new_key, {}), new.places.callees.get(new_key, {})
    often = " and ".join(
        f"{float(side.places.entered(key)):.4g}" for side, key in ((old, old_key), (new, new_key))
    )
    calls = f", and call {names_of(_in_both(callees, below))}" if _in_both(callees, below) else ""
    operation = (
        "per operation" if old.workloads == 1 else f"per operation of each of {old.workloads} workloads"
    )
    both = _in_both(callers, above)
    if not both:
        above_old = _callers_of_callers(old, new, old_key, paired.there)
        both = _in_both(paired.translated(above_old), _callers_of_callers(new, old, new_key, paired.back))
        calls += "; a function between has gone or come"
    return f"both are called by {names_of(both)}, {often} times {operation}{calls}"


def _in_both(calls: Mapping[Key, Fraction], more_calls: Mapping[Key, Fraction]) -> dict[Key, Fraction]:
    return {key: count for key, count in calls.items() if key in more_calls}


# Functions of two kernels and their pairs: what matching, by whatever evidence, has in common.

_SHOWN = 3
_TELLS_NOTHING = re.compile(
    r"__x86_(?:indirect|return)_thunk\w*|_{0,2}cond_resched|rcu_all_qs|__rcu_read_(?:un)?lock"
    r"|\w*preempt_schedule\w*"
)


def is_evidence(callee: Key) -> bool:
    """Whether a call of the function is evidence: everything calls locks, RCU's read sides and retpolines."""
    return not _TELLS_NOTHING.fullmatch(callee[0]) and subsystem(callee[0]) != LOCKS


def may_be_together(file: str, second: str) -> bool:
    """Whether two files, or what is known of them, may be of one directory."""
    folders = [path.rpartition("/")[0] + "/" for path in (file, second)]
    if folders[0] == folders[1]:
        return True
    # Where only the directory is known, the file may lie deeper.
    return (file.endswith("/") and folders[1].startswith(file)) or (
        second.endswith("/") and folders[0].startswith(second)
    )


def names_of(calls: Mapping[Key, Fraction]) -> str:
    """The most frequent ones, for people."""
    ranked = sorted(calls, key=lambda key: (-calls[key], key))
    names = [name for name, _ in ranked[:_SHOWN]]
    return ", ".join(names) + (" and others" if len(ranked) > _SHOWN else "")


ENTRY: Key = ("[entry]", "")
"""Stands for the caller of what was entered from user mode, or by an interrupt."""


def call_places(profile: Profile, key_of: Callable[[str, str], Key]) -> CallPlaces:
    """Of the profile's tree; empty where calls were not followed. Pieces of one function are one."""
    functions = profile.region.functions
    keys = [key_of(function.symbol, function.module) for function in functions]
    nodes = profile.region.nodes or ()
    callers: dict[Key, Counter[Key]] = defaultdict(Counter)
    for node in nodes[2:]:
        above = nodes[node.parent].function
        caller, callee = (keys[above] if above >= 0 else ENTRY), keys[node.function]
        if caller != callee:
            callers[callee][caller] += node.entered
    callees: dict[Key, dict[Key, Fraction]] = defaultdict(dict)
    shown: dict[Key, dict[Key, Fraction]] = {}
    counts_met = {count for counts in callers.values() for count in counts.values()}
    per_operation = {count: Fraction(count, profile.operations) for count in counts_met}  # few, often
    for callee, counts in callers.items():
        shown[callee] = {caller: per_operation[count] for caller, count in counts.items() if count}
        for caller, calls in shown[callee].items():
            callees[caller][callee] = calls
    return CallPlaces(shown, dict(callees))


def alike(first: Mapping[Key, Fraction], second: Mapping[Key, Fraction]) -> float:
    """How alike two sets of calls are, from 0 to 1: the calls that both have, of those that one of them has.

    The weighted Jaccard index (Ruzicka): the sum of minima over the sum of maxima.
    """
    if first.keys().isdisjoint(second.keys()):
        return 0.0  # most pairs of functions that are asked about
    # In whole numbers of one unit: sums of fractions take ten times as long.
    unit = math.lcm(*(count.denominator for calls in (first, second) for count in calls.values()))
    one, other = (
        {key: count.numerator * (unit // count.denominator) for key, count in calls.items()}
        for calls in (first, second)
    )
    least = sum(min(count, other[key]) for key, count in one.items() if key in other)
    most = sum(one.values()) + sum(other.values()) - least
    return least / most if most else 0.0


# A kernel's functions by their names in the source: of one profile, or of several workloads together.

_APPENDED = re.compile(r"(?:\.(?:isra|constprop|part|cold|llvm|lto_priv)(?:\.\d+)*)+$")
"""GCC's and Clang's names for pieces and copies of one function of the source."""


def functions_of(profile: Profile, files: FunctionFiles, *, placed: bool = False) -> Functions:
    """Functions by their names in the source: pieces that the compiler made of one are one.

    `placed`: with their places in the tree of calls.
    """
    pieces: dict[Key, list[FunctionCount]] = defaultdict(list)
    for function in profile.region.functions:
        pieces[_key(function.symbol, function.module)].append(function)
    return Functions(
        counts={key: _sum(its_pieces) for key, its_pieces in pieces.items()},
        operations=profile.operations,
        places=call_places(profile, _key) if placed else CallPlaces(),
        known=_names_of(files),
        files=files.files,
    )


_named: dict[int, tuple[FunctionFiles, frozenset[str]]] = {}
"""By identity: a kernel's functions are the same object in each of a study's differences, 100,000 of them."""
_MOST_KERNELS = 16


def _names_of(files: FunctionFiles) -> frozenset[str]:
    if id(files) not in _named:
        if len(_named) >= _MOST_KERNELS:
            _named.clear()
        appended = {symbol for symbol in files.functions if "." in symbol}
        _named[id(files)] = files, (files.functions - appended).union(map(source_name, appended))
    return _named[id(files)][1]


def _key(symbol: str, module: str) -> Key:
    return source_name(symbol), module


def source_name(symbol: str) -> str:
    """A function's name in the source: `fault_around` of `fault_around.isra.0.cold`."""
    # Few of a kernel's 100,000 functions have anything appended.
    return _APPENDED.sub("", symbol) if "." in symbol else symbol


def _sum(pieces: list[FunctionCount]) -> Count:
    if len(pieces) == 1 and pieces[0].modelled is None:
        (piece,) = pieces
        return Count(
            names=(piece.symbol,),
            instructions=piece.instructions,
            entered=piece.entered,
            string_bytes=piece.strings.bytes,
        )
    ranked = sorted(pieces, key=lambda piece: (-piece.instructions, piece.symbol))
    return Count(
        names=tuple(piece.symbol for piece in ranked),
        instructions=sum(piece.instructions for piece in pieces),
        entered=sum(piece.entered for piece in pieces),
        string_bytes=sum(piece.strings.bytes for piece in pieces),
        modelled=summed(piece.modelled for piece in pieces),
    )


def together(workloads: Sequence[Functions]) -> Functions:
    """The functions of one kernel in several workloads: what one operation of each of them makes, in sum."""
    if len(workloads) == 1:
        return workloads[0]
    operations = math.lcm(*(workload.operations for workload in workloads))
    counts: dict[Key, Count] = {}
    for workload in workloads:
        for key, count in workload.counts.items():
            counts[key] = _added(counts.get(key, Count()), count, operations // workload.operations)
    names = {id(workload.known): workload.known for workload in workloads}.values()
    files = {id(workload.files): workload.files for workload in workloads}.values()
    return Functions(
        counts=counts,
        operations=operations,
        places=CallPlaces(
            _added_calls([workload.places.callers for workload in workloads], operations),
            _added_calls([workload.places.callees for workload in workloads], operations),
        ),
        known=frozenset().union(*names),
        files={name: file for of_workload in files for name, file in of_workload.items()},
        workloads=len(workloads),
    )


def _added(count: Count, more: Count, times: int) -> Count:
    return Count(
        names=tuple(dict.fromkeys((*count.names, *more.names))),
        instructions=count.instructions + more.instructions * times,
        entered=count.entered + more.entered * times,
        string_bytes=count.string_bytes + more.string_bytes * times,
    )


def _added_calls(
    workloads: Iterable[Mapping[Key, Mapping[Key, Fraction]]], operations: int
) -> dict[Key, dict[Key, Fraction]]:
    """Summed in whole numbers: a count of each workload is one of so many operations of it."""
    sums: dict[Key, dict[Key, int]] = defaultdict(dict)
    for calls in workloads:
        for key, neighbours in calls.items():
            together_here = sums[key]
            for neighbour, count in neighbours.items():
                times = operations // count.denominator
                together_here[neighbour] = together_here.get(neighbour, 0) + count.numerator * times
    return {
        key: {neighbour: Fraction(count, operations) for neighbour, count in neighbours.items()}
        for key, neighbours in sums.items()
    }


# Which function of one kernel is which of another: found once for the two kernels, used in every workload.
#
# A workload shows a function in some of its places only: judged by each workload alone, the same two
# functions would be one in the first and two in the second.

_NOTHING_KNOWN = FunctionFiles()
_NOT_CALLED = "the {} has it as {}: not called there"


@dataclass(frozen=True)
class FunctionMap:
    """The pairs of functions of two kernels, over all workloads that were given."""

    pairs: tuple[FunctionPair, ...]

    def in_workload(self, old: Functions, new: Functions) -> Iterator[FunctionPair]:
        """The pairs as far as their functions ran in one workload: each one that ran is in one of them."""
        for pair in self.pairs:
            if pair.is_plain and pair.old in old.counts and pair.new in new.counts:
                yield pair
            elif pair.is_joined or pair.old in old.counts or pair.new in new.counts:
                olds, news = _ran(old, pair.old, pair.also_old), _ran(new, pair.new, pair.also_new)
                yield from _as_it_ran(pair, olds, news)
        paired_old, paired_new = self._paired
        # Of a workload that the map was not made of, names are all that is known.
        left_new = {key: None for key in new.counts if key not in paired_new}
        for key in old.counts:
            if key not in paired_old:
                new_key = key if key in left_new else None
                yield FunctionPair(key, new_key, Match.SAME if new_key else Match.ONLY_FROM)
        for key in left_new:
            if key not in old.counts or key in paired_old:
                yield FunctionPair(None, key, Match.ONLY_TO)

    @cached_property
    def _paired(self) -> tuple[frozenset[Key | None], frozenset[Key | None]]:
        """The functions of each kernel that are in a pair."""
        return (
            frozenset(key for pair in self.pairs for key in (pair.old, *pair.also_old)),
            frozenset(key for pair in self.pairs for key in (pair.new, *pair.also_new)),
        )


def function_map(
    workloads: Iterable[tuple[Profile, Profile]],
    files_before: FunctionFiles = _NOTHING_KNOWN,
    files_after: FunctionFiles = _NOTHING_KNOWN,
) -> FunctionMap:
    """Pair the functions of two kernels. `workloads`: each workload's two profiles."""
    sides = [
        (functions_of(before, files_before, placed=True), functions_of(after, files_after, placed=True))
        for before, after in workloads
    ]
    return map_of(together([old for old, _ in sides]), together([new for _, new in sides]))


def map_of(old: Functions, new: Functions) -> FunctionMap:
    """The same of all workloads together (`together`), with their places in the tree of calls."""
    return FunctionMap(tuple(match(old, new)))


def _ran(side: Functions, key: Key | None, also: tuple[Key, ...]) -> tuple[Key, ...]:
    return tuple(
        candidate for candidate in (key, *also) if candidate is not None and candidate in side.counts
    )


def _as_it_ran(pair: FunctionPair, old: tuple[Key, ...], new: tuple[Key, ...]) -> Iterator[FunctionPair]:
    if old and new:
        if len(old) == 1 and len(new) == 1 and (old[0], new[0]) == (pair.old, pair.new):
            yield FunctionPair(pair.old, pair.new, *pair.unjoined)
        else:
            kind = Match.MERGED if old[1:] or (pair.also_old and not new[1:]) else Match.SPLIT
            yield replace(pair, old=old[0], new=new[0], match=kind, also_old=old[1:], also_new=new[1:])
        return
    for key in old:
        yield FunctionPair(key, None, Match.ONLY_FROM, _missing(pair, key, pair.new, "second"))
    for key in new:
        yield FunctionPair(None, key, Match.ONLY_TO, _missing(pair, key, pair.old, "first"))


def _missing(pair: FunctionPair, key: Key, counterpart: Key | None, which: str) -> str:
    """What is known of a function that ran on one side only."""
    if counterpart is None:
        return pair.evidence
    if key == counterpart:
        return f"the {which} has it too: not called there"
    return _NOT_CALLED.format(which, counterpart[0])
