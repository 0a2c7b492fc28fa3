"""Functions that have gone and come in the same place of the tree of calls: another name for the same."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from fractions import Fraction

from ktrial.analysis.attribution.call_context import Key, alike
from ktrial.analysis.attribution.function_pairs import Functions, Paired, may_be_together, names_of, tells

_SAME_CALLERS = 0.9
_SAME_CALLEES = 0.8
_LIKE_IN_SIZE = 2
_WORDS_IN_COMMON = 0.5
_LIKE_PLACES = 0.5
"""Where the names have words in common, and the files are of one directory."""
_CALLERS_OF_A_LONGER_NAME = 0.3
_WORDS_OF_A_LONG_NAME = 3
"""`__list_add_valid` → `__list_add_valid_or_report`: its callers may be others, where it calls nothing."""
_HOOKS = "security/"
"""Security modules hook the same functions: `cap_mmap_file` and `ipe_mmap_file` have one caller."""


def by_place(old: Functions, new: Functions, there: dict[Key, Key]) -> Paired:
    """Add functions that have gone and come in the same place, from the callers down."""
    paired = Paired(dict(there))
    while found := list(_same_places(old, new, paired)):
        for one, other, why in found:
            paired.add(one, other, why)
    return paired


def _same_places(old: Functions, new: Functions, paired: Paired) -> Iterator[tuple[Key, Key, str]]:
    gone = [key for key in old.counts if key not in paired.there and not new.has(key) and tells(key)]
    come = [key for key in new.counts if key not in paired.back and not old.has(key) and tells(key)]
    fits: dict[Key, list[Key]] = defaultdict(list)
    fitting: dict[Key, list[Key]] = defaultdict(list)
    called = _by_caller(come, new)
    for one in gone:
        above = paired.translated(old.places.callers.get(one, {}))
        for other in dict.fromkeys(callee for caller in above for callee in called.get(caller, ())):
            if _fit(old, new, one, other, paired):
                fits[one].append(other)
                fitting[other].append(one)
    for one, others in fits.items():
        if len(others) == 1 and fitting[others[0]] == [one]:
            yield one, others[0], _place(old, new, one, others[0], paired)


def _by_caller(come: list[Key], new: Functions) -> dict[Key, list[Key]]:
    """Those that a function calls: without a caller in common, no two fit."""
    called: dict[Key, list[Key]] = defaultdict(list)
    for callee in come:
        for caller in new.places.callers.get(callee, {}):
            called[caller].append(callee)
    return called


def _fit(old: Functions, new: Functions, one: Key, other: Key, paired: Paired) -> bool:
    """Whether the two have the same callers and callees, as often; or nearly so, and nearly the same name."""
    file, other_file = old.files.get(one[0], ""), new.files.get(other[0], "")
    if one[1] != other[1] or (file and other_file and not may_be_together(file, other_file)):
        return False
    if file.startswith(_HOOKS) and _first_word(one[0]) != _first_word(other[0]):
        return False
    callers = alike(paired.translated(old.places.callers.get(one, {})), new.places.callers.get(other, {}))
    if callers < _CALLERS_OF_A_LONGER_NAME:
        return False
    below, below_other = old.places.callees.get(one, {}), new.places.callees.get(other, {})
    callees = alike(paired.translated(below), below_other)
    sizes = sorted((old.own(one), new.own(other)))
    leaves = not below and not below_other and sizes[1] <= _LIKE_IN_SIZE * sizes[0]
    named = _words_in_common(one[0], other[0]) >= _WORDS_IN_COMMON
    if named and file and other_file:
        alike_places = callers >= _LIKE_PLACES and (leaves or callees >= _LIKE_PLACES)
        longer = _is_longer(one[0], other[0]) and leaves and callers >= _CALLERS_OF_A_LONGER_NAME
        return callers >= _SAME_CALLERS or alike_places or longer
    return callers >= _SAME_CALLERS and (callees >= _SAME_CALLEES or (leaves and named))


def _first_word(name: str) -> str:
    return name.lstrip("_").partition("_")[0]


def _is_longer(name: str, other: str) -> bool:
    """Whether one of the names, of three words at least, is how the other begins."""
    short, long = sorted((name, other), key=len)
    return long.startswith(f"{short}_") and len(short.strip("_").split("_")) >= _WORDS_OF_A_LONG_NAME


def _words_in_common(name: str, other: str) -> float:
    words, others = (set(filter(None, each.split("_"))) for each in (name, other))
    return len(words & others) / (len(words | others) or 1)


def _place(old: Functions, new: Functions, one: Key, other: Key, paired: Paired) -> str:
    """What the two have in common."""
    callers = paired.translated(old.places.callers.get(one, {}))
    callees = paired.translated(old.places.callees.get(one, {}))
    above, below = new.places.callers.get(other, {}), new.places.callees.get(other, {})
    often = " and ".join(f"{float(side.places.entered(key)):.4g}" for side, key in ((old, one), (new, other)))
    calls = f", and call {names_of(_in_both(callees, below))}" if _in_both(callees, below) else ""
    return f"both are called by {names_of(_in_both(callers, above))}, {often} times an operation{calls}"


def _in_both(calls: Mapping[Key, Fraction], others: Mapping[Key, Fraction]) -> dict[Key, Fraction]:
    return {key: count for key, count in calls.items() if key in others}
