"""Functions that have gone because their only caller took them in: compiler or source joined the two."""

from fractions import Fraction

from ktrial.analysis.attribution.call_context import ENTRY, Key
from ktrial.analysis.attribution.function_pairs import Functions, Paired, may_be_together, names_of, tells

_ONLY_CALLER = Fraction(95, 100)
"""The part of its calls that a function's only caller makes."""
_TAKEN_OVER = Fraction(8, 10)
"""The part of a function's calls that the one which took it in makes itself."""
_LEAF_GROWTH = (Fraction(1, 2), Fraction(3, 2))
"""Where it called nothing: by how much its caller grew, of its own instructions."""
_SMALLEST_LEAF = 20
"""Instructions an operation: below that, growth of the caller is no evidence."""


def taken_in(old: Functions, new: Functions, paired: Paired) -> dict[Key, tuple[Key, str]]:
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


def _calls_taken_over(old: Functions, new: Functions, key: Key, caller: Key, paired: Paired) -> str:
    """That the caller has grown, and now makes the function's calls itself; empty where it does not."""
    heir, none = paired.there[caller], Fraction(0)
    before = paired.translated(old.places.callees.get(caller, {}))
    inside = paired.translated(old.places.callees.get(key, {}))
    now = new.places.callees.get(heir, {})
    ours = {callee: calls for callee, calls in inside.items() if callee in new.counts and tells(callee)}
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


def _growth(old: Functions, new: Functions, key: Key, caller: Key, paired: Paired) -> str:
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
