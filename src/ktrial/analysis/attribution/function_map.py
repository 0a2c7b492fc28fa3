"""Which function of one kernel is which of another: found once for the two kernels, used in every workload.

A workload shows a function in some of its places only: judged by each workload alone, the same two functions
would be one in the first and two in the second.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ktrial.analysis.attribution.call_context import Key
from ktrial.analysis.attribution.function_matching import match
from ktrial.analysis.attribution.function_pairs import FunctionPair, Functions
from ktrial.analysis.attribution.profiled_functions import functions_of, together
from ktrial.model.attribution import Match
from ktrial.model.profile import FunctionFiles, Profile

_NOTHING_KNOWN = FunctionFiles()
_NOT_CALLED = "the {} has it as {}: not called there"


@dataclass(frozen=True)
class FunctionMap:
    """The pairs of functions of two kernels, over all workloads that were given."""

    pairs: tuple[FunctionPair, ...]

    def in_workload(self, old: Functions, new: Functions) -> Iterator[FunctionPair]:
        """The pairs as far as their functions ran in one workload: each one that ran is in one of them."""
        for pair in self.pairs:
            olds, news = _ran(old, pair.old, pair.also_old), _ran(new, pair.new, pair.also_new)
            yield from _as_it_ran(pair, olds, news)
        paired_old = {key for pair in self.pairs for key in (pair.old, *pair.also_old)}
        paired_new = {key for pair in self.pairs for key in (pair.new, *pair.also_new)}
        # Of a workload that the map was not made of, names are all that is known.
        left_new = [key for key in new.counts if key not in paired_new]
        for key in old.counts:
            if key not in paired_old:
                other = key if key in left_new else None
                yield FunctionPair(key, other, Match.SAME if other else Match.ONLY_FROM)
        for key in left_new:
            if key not in old.counts or key in paired_old:
                yield FunctionPair(None, key, Match.ONLY_TO)


def function_map(
    workloads: Iterable[tuple[Profile, Profile]],
    files_before: FunctionFiles = _NOTHING_KNOWN,
    files_after: FunctionFiles = _NOTHING_KNOWN,
) -> FunctionMap:
    """Pair the functions of two kernels. `workloads`: each workload's two profiles."""
    sides = [
        (functions_of(before, files_before), functions_of(after, files_after)) for before, after in workloads
    ]
    old, new = together([old for old, _ in sides]), together([new for _, new in sides])
    return FunctionMap(tuple(match(old, new)))


def _ran(side: Functions, key: Key | None, also: tuple[Key, ...]) -> tuple[Key, ...]:
    return tuple(one for one in (key, *also) if one is not None and one in side.counts)


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


def _missing(pair: FunctionPair, key: Key, other: Key | None, which: str) -> str:
    """What is known of a function that ran on one side only."""
    if other is None:
        return pair.evidence
    if key == other:
        return f"the {which} has it too: not called there"
    return _NOT_CALLED.format(which, other[0])
