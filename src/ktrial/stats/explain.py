"""What the difference between two profiles is made of. Nothing is estimated: the rows add up to it."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ktrial.model.explanation import Count, Explanation, Match, Row, Side
from ktrial.model.kernel_profile import Profile
from ktrial.model.profile import PROGRAM, FunctionCount
from ktrial.stats.subsystems import USER, subsystem

_APPENDED = re.compile(r"(?:\.(?:isra|constprop|part|cold|llvm|lto_priv)(?:\.\d+)*)+$")
"""GCC's and Clang's names for pieces and copies of one function of the source."""
_SYSTEM_CALL = re.compile(r"^__(?:x64|ia32)_(?=sys_)")
_PROFILED = re.compile(r"_noprof$")
"""Since 6.10 the allocators' functions have it: their old names are macros (memory allocation profiling)."""

Key = tuple[str, str]
"""A function's name without what the compiler appends, and its module."""


def explain(before: Profile, after: Profile) -> Explanation:
    """Every function's part in the difference, the heaviest first. Raises ValueError: other workloads."""
    if before.workload != after.workload:
        raise ValueError(f"{before.workload} and {after.workload} are not one workload")
    old, new = _counts(before), _counts(after)
    rows = [_row(pair, old, new) for pair in _pairs(old, new)]
    rows.append(_user_part(before, after))
    explanation = Explanation(workload=before.workload, before=_side(before), after=_side(after), rows=())
    ranked = sorted(rows, key=lambda row: (-explanation.weight(row), row.function, row.module))
    return explanation.model_copy(update={"rows": tuple(ranked)})


@dataclass(frozen=True)
class _Pair:
    """The function's keys in the two kernels."""

    old: Key | None
    new: Key | None
    match: Match


def _counts(profile: Profile) -> dict[Key, Count]:
    """Functions by their names in the source: pieces that the compiler made of one are one."""
    pieces: dict[Key, list[FunctionCount]] = defaultdict(list)
    for each in profile.region.functions:
        pieces[_APPENDED.sub("", each.symbol), each.module].append(each)
    return {key: _sum(its_pieces) for key, its_pieces in pieces.items()}


def _sum(pieces: list[FunctionCount]) -> Count:
    ranked = sorted(pieces, key=lambda each: (-each.instructions, each.symbol))
    return Count(
        names=tuple(each.symbol for each in ranked),
        instructions=sum(each.instructions for each in pieces),
        entered=sum(each.entered for each in pieces),
        string_bytes=sum(each.strings.bytes for each in pieces),
    )


def _pairs(old: Mapping[Key, Count], new: Mapping[Key, Count]) -> Iterable[_Pair]:
    same = [key for key in old if key in new]
    pairs = [_Pair(key, key, Match.SAME) for key in same]
    for match, name_of in ((Match.MOVED, _bare), (Match.RENAMED, _stem)):
        paired_old = {pair.old for pair in pairs}
        paired_new = {pair.new for pair in pairs}
        old_by_name, new_by_name = _unique(old, name_of), _unique(new, name_of)
        for name, key in old_by_name.items():
            other = new_by_name.get(name)
            if other and key not in paired_old and other not in paired_new:
                pairs.append(_Pair(key, other, match))
    paired_old, paired_new = {pair.old for pair in pairs}, {pair.new for pair in pairs}
    pairs += [_Pair(key, None, Match.ONLY_FROM) for key in old if key not in paired_old]
    pairs += [_Pair(None, key, Match.ONLY_TO) for key in new if key not in paired_new]
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


def _row(pair: _Pair, old: Mapping[Key, Count], new: Mapping[Key, Count]) -> Row:
    name, module = pair.new or pair.old or ("", "")
    return Row(
        function=name,
        module=module,
        subsystem=subsystem(name, module),
        match=pair.match,
        before=old[pair.old] if pair.old else Count(),
        after=new[pair.new] if pair.new else Count(),
    )


def _user_part(before: Profile, after: Profile) -> Row:
    def count(profile: Profile) -> Count:
        moved = sum(page.strings.bytes for page in profile.region.pages)
        return Count(names=(PROGRAM,), instructions=profile.region.program, string_bytes=moved)

    return Row(function=PROGRAM, subsystem=USER, match=Match.SAME, before=count(before), after=count(after))


def _side(profile: Profile) -> Side:
    region = profile.region
    bundle = profile.operations / region.operations.count
    return Side(
        label=profile.label,
        release=profile.release,
        operations=profile.operations,
        instructions=region.instructions,
        string_bytes=region.strings.bytes,
        median=region.operations.median / bundle,
    )
