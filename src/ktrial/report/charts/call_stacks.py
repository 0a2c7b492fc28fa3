"""Call stacks of profiles as flame graph tools know them: folded, one line a stack, the outermost first."""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

from ktrial.format.sanitize import one_line
from ktrial.model.attribution import Count, Explanation, FunctionDifference, Match
from ktrial.model.profile import PROGRAM, UNKNOWN, FunctionCount, Profile, RegionCounts

Stack = tuple[str, ...]
"""Names of functions, the outermost first."""
Stacks = dict[Stack, Fraction]
"""Stack → instructions an operation that its last function ran itself."""
Naming = Callable[[FunctionCount], str]

_JOINED = frozenset({Match.MERGED, Match.SPLIT})
_NO_FILE = "(vDSO, generated code)"


def shown_name(function: FunctionCount) -> str:
    """`map [ext4]`; a semicolon, which separates functions, becomes a colon as in stackcollapse-perf.pl."""
    name = f"{function.symbol} [{function.module}]" if function.module else function.symbol
    return _name(name)


def stacks(profile: Profile, name_of: Naming = shown_name) -> Stacks:
    """The profile's stacks. Where calls were not followed, every function is a stack of its own."""
    counted: Stacks = {}
    for stack, instructions in _counted(profile, name_of):
        if instructions:
            counted[stack] = counted.get(stack, Fraction(0)) + Fraction(instructions, profile.operations)
    return counted


def stacks_of_both(before: Profile, after: Profile, explanation: Explanation) -> tuple[Stacks, Stacks]:
    """The stacks of two profiles, with one name for what the explanation takes for one function."""
    old = _names(explanation, lambda row: row.before)
    new = _names(explanation, lambda row: row.after)
    return stacks(before, _naming(old)), stacks(after, _naming(new))


def folded(profile: Profile) -> Iterator[str]:
    """Lines `entry_SYSCALL_64;do_syscall_64;… instructions` of the whole region: the folded format.

    Source: stackcollapse.pl of github.com/brendangregg/FlameGraph, whose output all flame graph tools read.
    """
    for stack, value in sorted(stacks(profile).items()):
        yield f"{';'.join(stack)} {int(value * profile.operations)}"


def folded_pair(before: Stacks, after: Stacks, operations: int) -> Iterator[str]:
    """Lines `stack count-before count-after`: what difffolded.pl writes and flamegraph.pl draws.

    Counts are instructions in `operations` operations, of both, rounded where the two did not do that many.
    """
    for stack in sorted(before.keys() | after.keys()):
        counts = (round(side.get(stack, Fraction(0)) * operations) for side in (before, after))
        yield f"{';'.join(stack)} {' '.join(map(str, counts))}"


def _counted(profile: Profile, name_of: Naming) -> Iterator[tuple[Stack, int]]:
    region = profile.region
    if region.nodes is None:
        yield from (((name_of(each),), each.instructions) for each in region.functions)
        yield from _programs(profile, region.program)
        return
    paths = _paths(region, name_of)
    for index, (path, node) in enumerate(zip(paths, region.nodes, strict=True)):
        if index == 1:
            yield from _programs(profile, node.instructions)
        else:
            yield path, node.instructions


def _paths(region: RegionCounts, name_of: Naming) -> list[Stack]:
    names = [name_of(each) for each in region.functions]
    paths: list[Stack] = [(UNKNOWN,), (PROGRAM,)]
    for node in (region.nodes or ())[2:]:
        above = () if node.parent == 0 else paths[node.parent]
        paths.append((*above, names[node.function]))
    return paths


def _programs(profile: Profile, instructions: int) -> Iterator[tuple[Stack, int]]:
    """User mode by program; what no program is known for stands in the frame of all of them."""
    known = sum(each.instructions for each in profile.programs)
    if known <= instructions:
        for each in profile.programs:
            yield (PROGRAM, _name(each.program or _NO_FILE)), each.instructions
        instructions -= known
    # The tree of calls counts user mode by itself; a program's call that faults is counted twice there.
    yield (PROGRAM,), instructions


def _names(
    explanation: Explanation, count_of: Callable[[FunctionDifference], Count]
) -> Mapping[tuple[str, str], str]:
    """Symbol and module → the name of its row; with an empty module, also where the module has changed."""
    names: dict[tuple[str, str], str] = {}
    # Two functions that stand beside one keep their names: one may have called the other.
    for row in (each for each in explanation.rows if each.match not in _JOINED):
        name = f"{row.function} [{row.module}]" if row.module else row.function
        for symbol in count_of(row).names:
            names[symbol, row.module] = _name(name)
    return names


def _naming(names: Mapping[tuple[str, str], str]) -> Naming:
    # A function that moved into the image, or out of it, has the other kernel's module in its row.
    by_symbol = {symbol: name for (symbol, _), name in names.items()}

    def name_of(function: FunctionCount) -> str:
        known = names.get((function.symbol, function.module)) or by_symbol.get(function.symbol)
        return known or shown_name(function)

    return name_of


def _name(text: str) -> str:
    return one_line(text).replace(";", ":")


def aligned(before: Stacks, after: Stacks) -> Stacks:
    """The stacks of `before`, with the functions in them that only `after` runs, where the callers agree.

    A function that only `before` runs stands where it did, with its own instructions; what it called is under
    the same callers as in `after`, if it is called there. Nothing is lost: the sum is that of `before`.
    """
    common = _functions(before) & _functions(after)
    places = _places(after, common)
    counted: Stacks = {}
    for stack, instructions in before.items():
        place = _place(stack, common, places)
        counted[place] = counted.get(place, Fraction(0)) + instructions
    return counted


def _functions(stacks: Stacks) -> set[str]:
    return {name for stack in stacks for name in stack}


def _places(after: Stacks, common: set[str]) -> dict[Stack, Stack]:
    """Path without functions of one kernel only → the path in `after` that is taken for it: the heaviest."""
    weights: dict[Stack, float] = {}
    for stack, instructions in after.items():
        weight = float(instructions)
        for end in range(1, len(stack) + 1):
            weights[stack[:end]] = weights.get(stack[:end], 0.0) + weight
    places: dict[Stack, Stack] = {}
    for path in sorted(weights, key=lambda path: (-weights[path], path)):
        if path[-1] in common:
            places.setdefault(_without(path, common), path)
    return places


def _place(stack: Stack, common: set[str], places: dict[Stack, Stack]) -> Stack:
    for end in range(len(stack), 0, -1):
        if stack[end - 1] in common and (outer := places.get(_without(stack[:end], common))):
            return (*outer, *stack[end:])
    return stack


def _without(path: Stack, common: set[str]) -> Stack:
    return tuple(name for name in path if name in common)
