"""Which workloads can tell of a change: those that execute functions which it changes.

The functions come from the images themselves, so that inlining is seen; who executes them, from profiles of
the base. Each function that any workload executes is executed by one that is chosen: the workload that covers
most of what is not covered yet comes next, and the one with the larger share of its instructions there where
two cover alike (the greedy set cover; Chvatal 1979). What is left of the ten places goes by that share.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ktrial.kernels.image.code_difference import called
from ktrial.model.profile import Profile
from ktrial.model.workload import WorkloadUse

MOST_WORKLOADS = 10


@dataclass(frozen=True)
class Choice:
    """A workload that was chosen, and why."""

    use: WorkloadUse
    functions: tuple[str, ...]
    """Functions that the series changes and that it executes, the most instructions first."""
    share: float
    """Their part of all its instructions."""


@dataclass(frozen=True)
class Selection:
    """The workloads that can tell of a change."""

    changed: tuple[str, ...]
    """All functions that the series changes, by name."""
    chosen: tuple[Choice, ...] = ()
    left_out: tuple[str, ...] = ()
    """Labels of workloads that execute some too, and found no place."""

    @property
    def not_executed(self) -> tuple[str, ...]:
        """Functions that no workload at hand executes on the base."""
        executed = {name for one in self.chosen for name in one.functions}
        return tuple(name for name in self.changed if name not in executed)


def selected(
    changed: Iterable[str], profiles: Iterable[tuple[WorkloadUse, Profile]], most: int = MOST_WORKLOADS
) -> Selection:
    """The workloads that execute these functions, at most `most`."""
    names = tuple(sorted(set(changed)))
    fitting = [one for use, profile in profiles if (one := _choice(use, profile, frozenset(names)))]
    left, chosen, covered = sorted(fitting, key=_by_share), list[Choice](), set[str]()
    while left and len(chosen) < most:
        # max takes the first of equals: the list is in the order of shares.
        best = max(left, key=lambda one: len(set(one.functions) - covered))
        left.remove(best)
        chosen.append(best)
        covered.update(best.functions)
    return Selection(names, tuple(sorted(chosen, key=_by_share)), tuple(one.use.label for one in left))


def executed_in(profile: Profile, names: Collection[str]) -> dict[str, int]:
    """Of these functions those that ran, with their instructions; the most first."""
    counts: dict[str, int] = {}
    for one in profile.region.functions:
        name = called(one.symbol, one.module)
        if one.instructions and name in names:
            counts[name] = counts.get(name, 0) + one.instructions
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _choice(use: WorkloadUse, profile: Profile, names: frozenset[str]) -> Choice | None:
    counts = executed_in(profile, names)
    share = sum(counts.values()) / max(1, profile.region.instructions)
    return Choice(use, tuple(counts), share) if counts else None


def _by_share(one: Choice) -> tuple[float, str]:
    return -one.share, one.use.label
