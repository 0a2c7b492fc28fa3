"""A kernel's functions by their names in the source: of one profile, or of several workloads together."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from ktrial.analysis.attribution.call_context import CallPlaces, Key, call_places
from ktrial.analysis.attribution.function_pairs import Functions
from ktrial.model.attribution import Count, summed
from ktrial.model.profile import FunctionCount, FunctionFiles, Profile

_APPENDED = re.compile(r"(?:\.(?:isra|constprop|part|cold|llvm|lto_priv)(?:\.\d+)*)+$")
"""GCC's and Clang's names for pieces and copies of one function of the source."""


def functions_of(profile: Profile, files: FunctionFiles) -> Functions:
    """Functions by their names in the source: pieces that the compiler made of one are one."""
    pieces: dict[Key, list[FunctionCount]] = defaultdict(list)
    for each in profile.region.functions:
        pieces[_key(each.symbol, each.module)].append(each)
    return Functions(
        counts={key: _sum(its_pieces) for key, its_pieces in pieces.items()},
        operations=profile.operations,
        places=call_places(profile, _key),
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
        _named[id(files)] = files, frozenset(map(_source_name, files.functions))
    return _named[id(files)][1]


def _key(symbol: str, module: str) -> Key:
    return _source_name(symbol), module


def _source_name(symbol: str) -> str:
    # Few of a kernel's 100,000 functions have anything appended.
    return _APPENDED.sub("", symbol) if "." in symbol else symbol


def _sum(pieces: list[FunctionCount]) -> Count:
    ranked = sorted(pieces, key=lambda each: (-each.instructions, each.symbol))
    return Count(
        names=tuple(each.symbol for each in ranked),
        instructions=sum(each.instructions for each in pieces),
        entered=sum(each.entered for each in pieces),
        string_bytes=sum(each.strings.bytes for each in pieces),
        modelled=summed(each.modelled for each in pieces),
    )


def together(workloads: Sequence[Functions]) -> Functions:
    """The functions of one kernel in several workloads: what one operation of each of them makes, in sum."""
    if len(workloads) == 1:
        return workloads[0]
    operations = math.lcm(*(one.operations for one in workloads))
    counts: dict[Key, Count] = {}
    for one in workloads:
        for key, count in one.counts.items():
            counts[key] = _added(counts.get(key, Count()), count, operations // one.operations)
    known = {id(one.known): one.known for one in workloads}.values()
    files = {id(one.files): one.files for one in workloads}.values()
    return Functions(
        counts=counts,
        operations=operations,
        places=CallPlaces(
            _added_calls(one.places.callers for one in workloads),
            _added_calls(one.places.callees for one in workloads),
        ),
        known=frozenset().union(*known),
        files={name: file for each in files for name, file in each.items()},
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
    workloads: Iterable[Mapping[Key, Mapping[Key, Fraction]]],
) -> dict[Key, dict[Key, Fraction]]:
    sums: dict[Key, dict[Key, Fraction]] = defaultdict(dict)
    for calls in workloads:
        for key, others in calls.items():
            for other, count in others.items():
                sums[key][other] = sums[key].get(other, Fraction(0)) + count
    return dict(sums)
