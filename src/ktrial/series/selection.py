"""Which workloads can tell of a change: those that execute functions that it changes, or that read its data.

The functions come from the images themselves, so that inlining is seen; who executes them, from profiles
of the base. Each function that any workload executes is executed by one that is chosen: the workload that
covers most of what is not covered yet comes next, and the one with the larger share of its instructions
there where two cover alike (the greedy set cover; Chvatal 1979). What is left of the ten places goes by
that share. Functions that none of them executes are looked for in tours.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from ktrial.kernels.config import parse_config
from ktrial.model.kernel import Kernel
from ktrial.model.profile import Profile, called, plain_name
from ktrial.model.series_result import Choice, OptionStep, Selection, Step
from ktrial.model.workload import WorkloadUse

_OF_THE_BUILD = frozenset({"CONFIG_CC_VERSION_TEXT", "CONFIG_BUILD_SALT"})


def option_steps(before: Kernel, after: Kernel) -> tuple[OptionStep, ...]:
    """What differs between two configurations, by name; what the patch brings is told where it is off too."""
    if before.config is None or after.config is None:
        return ()
    old, new = (
        parse_config(kernel.config.read_text(encoding="utf-8")) for kernel in (before, after) if kernel.config
    )
    earlier = {new_option.option for new_option in before.origin.new_options}
    brought = {
        new_option.option: new_option.value
        for new_option in after.origin.new_options
        if new_option.option not in earlier
    }
    differing = {name for name, _ in old.items() ^ new.items()} - _OF_THE_BUILD
    return tuple(
        OptionStep(name.removeprefix("CONFIG_"), old.get(name), new.get(name), name in brought)
        for name in sorted(differing | brought.keys())
    )


def measured(steps: Iterable[Step]) -> list[Step]:
    """The steps that have a kernel of their own, and the base."""
    return [step for step in steps if step.is_own and step.kernel is not None]


MOST_WORKLOADS = 10
MOST_TOURS = 4
"""Beside the ten, for functions that none of them executes."""
Copies = Mapping[str, Mapping[int, str]]
"""Of a name that several functions of the kernel that was profiled may have: address → a name of its own."""


def selected(
    changed: Iterable[str],
    profiles: Iterable[tuple[WorkloadUse, Profile]],
    most: int = MOST_WORKLOADS,
    readers: Iterable[str] = (),
    copies: Copies = MappingProxyType({}),
    first: Collection[str] = (),
) -> Selection:
    """The workloads that execute these functions, at most `most`; `readers`: of data that is changed.

    `first`: labels of those that are measured in any case, and have their places before all others.
    """
    names = tuple(sorted(set(changed)))
    reading = tuple(sorted(set(readers).difference(names)))
    telling = frozenset(names + reading)
    fitting = [choice for use, profile in profiles if (choice := _choice(use, profile, telling, copies))]
    left, chosen, covered = sorted(fitting, key=_by_share), list[Choice](), set[str]()
    for choice in [choice for choice in left if choice.use.label in first]:
        left.remove(choice)
        chosen.append(choice)
        covered.update(choice.functions)
    most += len(chosen) - len(first)
    while left and len(chosen) < most:
        # max takes the first of equals: the list is in the order of shares.
        best = max(left, key=lambda choice: len(set(choice.functions) - covered))
        left.remove(best)
        chosen.append(best)
        covered.update(best.functions)
    return Selection(names, reading, tuple(sorted(chosen, key=_by_share)), tuple(sorted(left, key=_by_share)))


def with_tours(
    selection: Selection,
    profiles: Iterable[tuple[WorkloadUse, Profile]],
    copies: Copies = MappingProxyType({}),
    most: int = MOST_TOURS,
) -> Selection:
    """The same with tours, for functions that no workload executes: as few as execute what tours can.

    A tour runs for seconds and much at once: it is no choice where an operation of its own tells.
    """
    elsewhere = {name for choice in selection.left_out for name in choice.functions}
    missing = frozenset(selection.not_executed).difference(elsewhere)
    left = [choice for use, profile in profiles if (choice := _choice(use, profile, missing, copies))]
    left.sort(key=_by_share)
    chosen: list[Choice] = []
    while left and len(chosen) < most:
        covered = {name for choice in chosen for name in choice.functions}
        best = max(left, key=lambda choice: len(set(choice.functions) - covered))
        if covered.issuperset(best.functions):
            break
        left.remove(best)
        chosen.append(best)
    return replace(selection, chosen=(*selection.chosen, *chosen), left_out=(*selection.left_out, *left))


def executed_in(
    profile: Profile, names: Collection[str], copies: Copies = MappingProxyType({})
) -> dict[str, int]:
    """Of these functions those that ran, with their instructions; the most first.

    Of those that share a name it is told by the address that ran; without addresses none of them counts.
    """
    counts: dict[str, int] = {}
    for function in profile.region.functions:
        name = called(function.symbol, function.module)
        own = copies.get(name, {})
        if own and function.copies:
            ran = [(own.get(address, ""), count) for address, count in function.copies]
        elif len(own) > 1:
            ran = []
        else:
            ran = [(every, function.instructions) for every in {name, *own.values()}]
        for one, count in ran:
            if count and one in names:
                counts[one] = counts.get(one, 0) + count
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def not_told_apart(profile: Profile, copies: Copies) -> set[str]:
    """Names that several functions of the kernel have, of which one ran: which one this profile does not
    tell.
    """
    return {
        name
        for function in profile.region.functions
        if function.instructions
        and not function.copies
        and len(copies.get(name := called(function.symbol, function.module), {})) > 1
    }


def shared_in(names: Iterable[str]) -> set[str]:
    """What the functions are called that have a name of their own beside the one that they share."""
    return {plain_name(name) for name in names if plain_name(name) != name}


def nothing_ran(changed: Collection[str], profiles: Iterable[tuple[Profile, Copies]]) -> bool:
    """Whether none of the functions that a patch changes ran in any of these; not where it changes none."""
    names = frozenset(changed)
    return bool(names) and not any(executed_in(profile, names, copies) for profile, copies in profiles)


def _choice(use: WorkloadUse, profile: Profile, names: frozenset[str], copies: Copies) -> Choice | None:
    counts = executed_in(profile, names, copies)
    share = sum(counts.values()) / max(1, profile.region.instructions)
    return Choice(use, tuple(counts), share) if counts else None


def _by_share(choice: Choice) -> tuple[float, str]:
    return -choice.share, choice.use.label
