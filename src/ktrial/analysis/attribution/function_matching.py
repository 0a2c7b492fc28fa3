"""Which function of one kernel is which of another: by name first, then by its place in the tree of calls.

A place is evidence only where a function has gone and another has come: a name that both kernels have stands
for itself, even where only one of them calls it.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from ktrial.analysis.attribution.call_context import Key
from ktrial.analysis.attribution.function_pairs import Functions, Pair, Paired
from ktrial.analysis.attribution.inlining_detection import taken_in
from ktrial.analysis.attribution.rename_detection import by_place
from ktrial.model.attribution import Count, Match

_SYSTEM_CALL = re.compile(r"^__(?:x64|ia32)_(?=sys_)")
_PROFILED = re.compile(r"_noprof$")
"""Since 6.10 the allocators' functions have it: their old names are macros (memory allocation profiling)."""


def match(old: Functions, new: Functions) -> list[Pair]:
    """Every function of the two in one pair."""
    by_name = {pair.old: pair for pair in _by_name(old.counts, new.counts)}
    paired = by_place(old, new, {pair.old: pair.new for pair in by_name.values() if pair.old and pair.new})
    pairs = [
        by_name.get(key) or Pair(key, other, Match.PLACED, paired.why[key]) for key, other in paired.both
    ]
    return list(_joined(old, new, paired, pairs))


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


def _joined(old: Functions, new: Functions, paired: Paired, pairs: list[Pair]) -> Iterator[Pair]:
    """The pairs, with what was merged or split in theirs, and what is left alone."""
    merged = taken_in(old, new, paired)
    split = taken_in(new, old, paired.swapped())
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
    if other.has(key):
        return f"the {which} has it too: not called there"
    return f"the {which} has none of that name"
