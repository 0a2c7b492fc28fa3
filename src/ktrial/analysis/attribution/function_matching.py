"""Which function of one kernel is which of another: by name, by its place in the tree of calls, by inlining.

Names come first. A place is evidence only where a function has gone and another has come: a name that both
kernels have stands for itself, even where only one of them calls it. Two in the same place are one, renamed;
one whose only caller now makes its calls itself was taken in by that caller: compiler or source joined them.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction

from ktrial.analysis.attribution.call_context import ENTRY, Key, alike
from ktrial.analysis.attribution.function_pairs import (
    FunctionPair,
    FunctionPairs,
    Functions,
    is_evidence,
    may_be_together,
    names_of,
)
from ktrial.model.attribution import Match

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
"""Instructions an operation: below that, growth of the caller is no evidence."""
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


def match(old: Functions, new: Functions) -> list[FunctionPair]:
    """Every function of the two in one pair."""
    by_name = {pair.old: pair for pair in _by_name(old, new)}
    paired = with_renamed(
        old, new, {pair.old: pair.new for pair in by_name.values() if pair.old and pair.new}
    )
    pairs = [
        by_name.get(key) or FunctionPair(key, other, Match.PLACED, paired.why[key])
        for key, other in paired.both
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
            other = new_by_name.get(name)
            if other and key not in taken_old and other not in taken_new:
                pairs.append(FunctionPair(key, other, kind, why))
    return pairs


def _gone(one: Functions, other: Functions) -> list[Key]:
    """Functions of one kernel that the other does not have by their names, as far as is known."""
    return [key for key in one.counts if key[1] or not other.has(key)]


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


def _left(other: Functions, key: Key, which: str) -> str:
    """What is known of a function that ran on one side only."""
    if not other.known or key[1]:
        return ""
    if other.has(key):
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
    caller = max(callers, key=lambda one: (callers[one], one))
    if caller == ENTRY or callers[caller] < _ONLY_CALLER * old.places.entered(key):
        return None
    return caller


def _calls_taken_over(old: Functions, new: Functions, key: Key, caller: Key, paired: FunctionPairs) -> str:
    """That the caller has grown, and now makes the function's calls itself; empty where it does not."""
    heir, none = paired.there[caller], Fraction(0)
    before = paired.translated(old.places.callees.get(caller, {}))
    inside = paired.translated(old.places.callees.get(key, {}))
    now = new.places.callees.get(heir, {})
    ours = {callee: calls for callee, calls in inside.items() if callee in new.counts and is_evidence(callee)}
    taken = {
        callee: calls
        for callee, calls in ours.items()
        if now.get(callee, none) - before.get(callee, none) >= _TAKEN_OVER * calls
    }
    if not taken or sum(taken.values(), none) < _TAKEN_OVER * sum(ours.values(), none):
        return ""
    if new.own(heir) <= old.own(caller):
        return ""
    return f"its only caller {caller[0]} itself calls {names_of(taken)}"


def _growth(old: Functions, new: Functions, key: Key, caller: Key, paired: FunctionPairs) -> str:
    """That the caller has grown by about what the function, which calls nothing, had; empty otherwise."""
    heir = paired.there[caller]
    grown, own = new.own(heir) - old.own(caller), old.own(key)
    least, most = (part * own for part in _LEAF_GROWTH)
    if old.places.callees.get(key) or not new.known or own < _SMALLEST_LEAF or not least <= grown <= most:
        return ""
    others = [one for one in new.places.callees.get(heir, {}) if one not in paired.back and not old.has(one)]
    if others or not may_be_together(old.files.get(key[0], ""), old.files.get(caller[0], "")):
        return ""
    more = f"{float(grown):.4g} instructions more, of the {float(own):.4g} it had"
    return f"its only caller {caller[0]} has {more}"


def with_renamed(old: Functions, new: Functions, there: dict[Key, Key]) -> FunctionPairs:
    """Add functions that have gone and come in the same place, from the callers down."""
    paired = FunctionPairs(dict(there))
    while renames := list(_same_places(old, new, paired)):
        for one, other, why in renames:
            paired.add(one, other, why)
    return paired


def _same_places(old: Functions, new: Functions, paired: FunctionPairs) -> Iterator[tuple[Key, Key, str]]:
    gone = [key for key in old.counts if key not in paired.there and not new.has(key) and is_evidence(key)]
    come = [key for key in new.counts if key not in paired.back and not old.has(key) and is_evidence(key)]
    fits: dict[Key, list[Key]] = defaultdict(list)
    fitting: dict[Key, list[Key]] = defaultdict(list)
    called = _by_caller(come, old, new, paired)
    for one in gone:
        above = {
            **paired.translated(old.places.callers.get(one, {})),
            **paired.translated(_callers_of_callers(old, new, one, paired.there)),
        }
        for other in dict.fromkeys(callee for caller in above for callee in called.get(caller, ())):
            if _fit(old, new, one, other, paired):
                fits[one].append(other)
                fitting[other].append(one)
    for one, others in fits.items():
        if len(others) == 1 and fitting[others[0]] == [one]:
            yield one, others[0], _place(old, new, one, others[0], paired)


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


def _fit(old: Functions, new: Functions, one: Key, other: Key, paired: FunctionPairs) -> bool:
    """Whether the two have the same callers and callees, as often; or nearly so, and nearly the same name."""
    file, other_file = old.files.get(one[0], ""), new.files.get(other[0], "")
    if one[1] != other[1] or (file and other_file and not may_be_together(file, other_file)):
        return False
    if file.startswith(_HOOKS) and _first_word(one[0]) != _first_word(other[0]):
        return False
    callers = alike(paired.translated(old.places.callers.get(one, {})), new.places.callers.get(other, {}))
    below, below_other = old.places.callees.get(one, {}), new.places.callees.get(other, {})
    callees = alike(paired.translated(below), below_other)
    sizes = sorted((old.own(one), new.own(other)))
    like_in_size = sizes[1] <= _LIKE_IN_SIZE * sizes[0]
    if callers < _CALLERS_OF_A_LONGER_NAME:
        in_common = [
            callee for callee in _in_both(paired.translated(below), below_other) if is_evidence(callee)
        ]
        work = like_in_size and callees >= _SAME_CALLEES and len(in_common) >= _CALLEES_IN_COMMON
        return bool(file) and file == other_file and work and _one_call_apart(old, new, one, other, paired)
    leaves = not below and not below_other and like_in_size
    named = _words_in_common(one[0], other[0]) >= _WORDS_IN_COMMON
    if named and file and other_file:
        alike_places = callers >= _LIKE_PLACES and (leaves or callees >= _LIKE_PLACES)
        longer = _is_longer(one[0], other[0]) and leaves and callers >= _CALLERS_OF_A_LONGER_NAME
        # A caller has one place for several functions of like names: one that went, and one that is new.
        work = like_in_size or callees >= _CALLEES_OF_ONE
        return (callers >= _SAME_CALLERS and work) or alike_places or longer
    return callers >= _SAME_CALLERS and (callees >= _SAME_CALLEES or (leaves and named))


def _one_call_apart(old: Functions, new: Functions, one: Key, other: Key, paired: FunctionPairs) -> bool:
    """Whether they have the same callers, once what is between, and has gone or come too, is left out."""
    above = _callers_of_callers(old, new, one, paired.there)
    above_other = _callers_of_callers(new, old, other, paired.back)
    return alike(paired.translated(above), above_other) >= _SAME_CALLERS


def _callers_of_callers(
    side: Functions, other: Functions, key: Key, paired: Mapping[Key, Key]
) -> dict[Key, Fraction]:
    """A function's callers; in place of those that the other kernel does not have, their only callers."""
    callers: dict[Key, Fraction] = defaultdict(Fraction)
    for caller, calls in side.places.callers.get(key, {}).items():
        is_alone = caller not in paired and not other.has(caller) and caller != ENTRY
        above = _only_caller(side, caller) if is_alone else None
        callers[above or caller] += calls
    return dict(callers)


def _first_word(name: str) -> str:
    return name.lstrip("_").partition("_")[0]


def _is_longer(name: str, other: str) -> bool:
    """Whether one of the names, of three words at least, is how the other begins."""
    short, long = sorted((name, other), key=len)
    return long.startswith(f"{short}_") and len(short.strip("_").split("_")) >= _WORDS_OF_A_LONG_NAME


def _words_in_common(name: str, other: str) -> float:
    words, others = (set(filter(None, each.split("_"))) for each in (name, other))
    return len(words & others) / (len(words | others) or 1)


def _place(old: Functions, new: Functions, one: Key, other: Key, paired: FunctionPairs) -> str:
    """What the two have in common."""
    callers = paired.translated(old.places.callers.get(one, {}))
    callees = paired.translated(old.places.callees.get(one, {}))
    above, below = new.places.callers.get(other, {}), new.places.callees.get(other, {})
    often = " and ".join(f"{float(side.places.entered(key)):.4g}" for side, key in ((old, one), (new, other)))
    calls = f", and call {names_of(_in_both(callees, below))}" if _in_both(callees, below) else ""
    operation = "an operation" if old.workloads == 1 else f"an operation of each of {old.workloads} workloads"
    both = _in_both(callers, above)
    if not both:
        there = _callers_of_callers(old, new, one, paired.there)
        both = _in_both(paired.translated(there), _callers_of_callers(new, old, other, paired.back))
        calls += "; a function between has gone or come"
    return f"both are called by {names_of(both)}, {often} times {operation}{calls}"


def _in_both(calls: Mapping[Key, Fraction], others: Mapping[Key, Fraction]) -> dict[Key, Fraction]:
    return {key: count for key, count in calls.items() if key in others}
