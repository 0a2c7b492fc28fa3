"""Call stacks of one kernel, told as the other kernel calls.

Between two kernels call paths differ by functions that only one of them runs: since 6.9, `x64_sys_call`
stands above every system call ("x86/syscall: Don't force use of indirect calls for system calls"). Compared
stack by stack, everything that such a function calls would have vanished and come anew. So a path of one
kernel is looked for in the other without the functions that only one of the two runs.
"""

from fractions import Fraction

from ktrial.report.charts.call_stacks import Stack, Stacks


def aligned(before: Stacks, after: Stacks) -> Stacks:
    """The stacks of `before`, with the functions in them that only `after` runs, where the callers agree.

    A function that only `before` runs stands where it did, with its own instructions; what it called is under
    the same callers as in `after`, if it is called there. Nothing is lost: the sum is that of `before`.
    """
    common = _functions(before) & _functions(after)
    places = _places(after, common)
    found: Stacks = {}
    for stack, instructions in before.items():
        place = _place(stack, common, places)
        found[place] = found.get(place, Fraction(0)) + instructions
    return found


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
        if stack[end - 1] in common and (found := places.get(_without(stack[:end], common))):
            return (*found, *stack[end:])
    return stack


def _without(path: Stack, common: set[str]) -> Stack:
    return tuple(name for name in path if name in common)
