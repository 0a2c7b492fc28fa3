"""Delta debugging: Zeller and Hildebrandt, 'Simplifying and isolating failure-inducing input', IEEE
Transactions on Software Engineering 28(2), 2002: the algorithm ddmin.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from ktrial.bisect.decision import (
    Answer,
    BisectionMetric,
    Judge,
    LimitReached,
    Terms,
    most_for_one,
    most_for_two,
)
from ktrial.bisect.measurement import NAME
from ktrial.model.base import Model
from ktrial.store.store import Store

Shows = Callable[[frozenset[int]], bool]


def ddmin(items: Sequence[int], shows: Shows) -> tuple[int, ...]:
    """A part of `items` that shows, none of whose items can be left out alone (1-minimal).

    `items` as a whole are known to show, and none of them not to. What is unresolved does not show: as in
    ddmin, the search goes on with finer parts.
    """
    minimal, parts = tuple(items), 2
    while len(minimal) > 1:
        chunks = _split(minimal, parts)
        smaller = _first_that_shows(chunks, shows)
        if smaller:
            minimal, parts = smaller, 2
            continue
        # With two parts, each one's complement is the other.
        complements = (
            [tuple(item for item in minimal if item not in chunk) for chunk in chunks] if parts > 2 else []
        )
        if smaller := _first_that_shows(complements, shows):
            minimal, parts = smaller, max(parts - 1, 2)
        elif parts < len(minimal):
            parts = min(len(minimal), parts * 2)
        else:
            break
    return minimal


def _split(items: tuple[int, ...], parts: int) -> list[tuple[int, ...]]:
    edges = [place * len(items) // parts for place in range(parts + 1)]
    return [items[start:end] for start, end in pairwise(edges)]


def _first_that_shows(parts: list[tuple[int, ...]], shows: Shows) -> tuple[int, ...]:
    return next((part for part in parts if part and shows(frozenset(part))), ())


MOST_MEMBERS = 6
"""Beyond that, prefixes one by one cost more than ddmin."""
_MOST_CAUSES = 8
Subset = frozenset[int]
"""The items that are as in B; all others are as in A."""
NOTHING: Subset = frozenset()


@dataclass(frozen=True)
class MinimalCause:
    """A smallest set of items that shows a difference."""

    members: Subset
    """None of them can be left out."""
    needed: Subset
    """What the members require: it has to be as in B with them."""
    base: Subset
    """What was as in B already: the causes found before."""
    target: BisectionMetric
    """What it was found for."""

    @property
    def items(self) -> Subset:
        """Members, and what they need."""
        return self.members | self.needed


@dataclass(frozen=True)
class Items:
    """Items 0 … count-1, ordered so that an item comes after all that it requires."""

    count: int
    requires: Mapping[int, Subset] = field(default_factory=dict)
    """Item → items that have to be as in B where it is; direct ones will do."""

    def __post_init__(self) -> None:
        for item, required in self.requires.items():
            if any(earlier >= item for earlier in required):
                raise ValueError("an item comes after what it requires")

    @cached_property
    def everything(self) -> Subset:
        """B itself."""
        return frozenset(range(self.count))

    @cached_property
    def _closures(self) -> tuple[Subset, ...]:
        closures: list[Subset] = []
        for item in range(self.count):
            required = self.requires.get(item, NOTHING)
            closures.append(frozenset({item}).union(*(closures[item] for item in required)))
        return tuple(closures)

    def closed(self, subset: Iterable[int]) -> Subset:
        """The subset with all that its items require."""
        return NOTHING.union(*(self._closures[item] for item in subset))

    def without(self, subset: Subset, gone: Subset) -> Subset:
        """The subset without some items, and without those that require one of them."""
        return frozenset(item for item in subset if not self._closures[item] & gone)


@dataclass
class DeltaDebugging:
    """What a search has found so far; all of it is right at any moment."""

    items: Items
    judges: Sequence[Judge[Subset]]
    """One for each target, the most important first."""
    causes: list[MinimalCause] = field(default_factory=list)
    alternatives: list[MinimalCause] = field(default_factory=list)
    """Sets that show the first cause's difference without it: either would do."""
    unexplained: list[BisectionMetric] = field(default_factory=list)
    """Targets of which a part beyond the margin is left."""
    undecided: list[BisectionMetric] = field(default_factory=list)
    """Targets of which it was not decided whether anything is left."""
    stopped: str = ""
    """Why it ended before its time; empty where it did not."""

    @property
    def found(self) -> Subset:
        """All causes together."""
        return NOTHING.union(*(cause.items for cause in self.causes))

    def run(self) -> None:
        """Search for all targets."""
        try:
            for judge in self.judges:
                self._explain(judge)
            self._look_for_others()
        except LimitReached:
            self.stop("as many candidates were measured as may be")

    def stop(self, why: str) -> None:
        """It ended before its time: what is left of each target is as far as has been measured."""
        self.stopped = why
        self._note_unexplained()

    def _explain(self, judge: Judge[Subset]) -> None:
        while (answer := judge.differ(self.found, self.items.everything)) is Answer.YES:
            if len(self.causes) >= _MOST_CAUSES:
                self.stopped = f"there are more than {_MOST_CAUSES} causes"
                break
            before = self.found
            self._add(smallest(self.items, judge, before, self.items.everything), before, judge)
        if answer is Answer.YES:
            self.unexplained.append(judge.target)
        elif answer is Answer.UNRESOLVED:
            self.undecided.append(judge.target)

    def _add(self, members: Subset, base: Subset, judge: Judge[Subset]) -> None:
        needed = self.items.closed(members) - members - base
        self.causes.append(MinimalCause(members, needed, base, judge.target))

    def _look_for_others(self) -> None:
        """Whether B without the first cause shows its difference all the same."""
        if not self.causes or self.unexplained:
            return
        first = self.causes[0]
        judge = next(judge for judge in self.judges if judge.target == first.target)
        remaining = self.items.without(self.items.everything, first.members)
        if len(self.causes) > 1 or judge.shows(remaining, NOTHING, self.items.everything) is not Answer.YES:
            return
        members = smallest(self.items, judge, NOTHING, self.items.everything, among=remaining)
        needed = self.items.closed(members) - members
        self.alternatives.append(MinimalCause(members, needed, NOTHING, judge.target))

    def _note_unexplained(self) -> None:
        explained = {cause.target for cause in self.causes}
        for judge in self.judges:
            # What is measured may be asked for again; what is not cannot be.
            try:
                open_ = judge.differ(self.found, self.items.everything) is not Answer.NO
            except LimitReached:
                open_ = judge.target not in explained
            if open_ and judge.target not in self.unexplained:
                self.unexplained.append(judge.target)


def smallest(
    items: Items, judge: Judge[Subset], base: Subset, full: Subset, among: Subset | None = None
) -> Subset:
    """A smallest set that, added to `base`, shows what differs between `base` and `full`.

    `among`: the items that it may be taken from; as a whole they are known to show it. Else all.
    """
    order = [item for item in range(items.count) if item not in base and (among is None or item in among)]

    def shows(extra: Subset) -> bool:
        return judge.shows(items.closed(base | extra), base, full) is Answer.YES

    members: list[int] = []
    end = len(order)
    while end and not (members and shows(frozenset(members))):
        if len(members) == MOST_MEMBERS:
            members, end = [*members, *order[:end]], 0
            break
        start = 0
        while end - start > 1:
            middle = (start + end) // 2
            if shows(frozenset(members) | frozenset(order[:middle])):
                end = middle
            else:
                start = middle
        end -= 1
        members.append(order[end])
    return frozenset(ddmin(sorted(members), shows))


# What a bisection may cost, before it begins.


class SearchPlan(Model):
    """How many candidates, builds and trials there may be, and about how long they take."""

    kind: str
    before: str
    after: str
    differing: int
    """Things that differ."""
    groups: int
    """How many of them can be chosen apart."""
    names: tuple[str, ...] = ()
    """The groups, in the order in which they are searched."""
    together: int = 0
    """Options of modules that the guest does not load: the last group; 0 where there is none."""
    candidates_for_one: int
    """Measured at most, where one group is the cause."""
    candidates_for_each_more: int | None = None
    """Of a series: measured at most for each further place in which it changes; None for subsets."""
    candidates_for_two: int
    """Where two matter only together."""
    limit: int | None = None
    """What the user allows."""
    builds: bool = False
    """Whether each candidate is a kernel to compile."""
    trials_each: int
    """Trials of one candidate."""
    trial_seconds: float | None = None
    """Host seconds of a trial, by those in the store; None where there are none like it."""
    build_seconds: float | None = None
    """Host seconds of a build, by past ones; None where there are none."""

    @property
    def seconds(self) -> float | None:
        """About how long a search for one cause takes, at most; None where nothing tells."""
        if self.trial_seconds is None or (self.builds and self.build_seconds is None):
            return None
        seconds_each = self.trials_each * self.trial_seconds + (self.build_seconds or 0.0)
        return seconds_each * self.candidates_for_one


def plan_of(
    terms: Terms,
    names: Sequence[str],
    differing: int,
    store: Store,
    *,
    in_order: bool = False,
    builds: bool = False,
    build_seconds: float | None = None,
) -> SearchPlan:
    """The plan of a search over groups of these names; `in_order`: of places in a series."""
    count = len(names)
    item = most_for_one(count) - 2 if in_order else most_for_one(count)
    return SearchPlan(
        kind=terms.kind,
        before=terms.before,
        after=terms.after,
        differing=differing,
        groups=count,
        names=tuple(names),
        candidates_for_one=min(item, terms.limit or item),
        candidates_for_each_more=item - 2 if in_order else None,
        candidates_for_two=min(most_for_two(count), terms.limit or most_for_two(count)),
        limit=terms.limit,
        builds=builds,
        trials_each=terms.measurement.perturbations,
        trial_seconds=_trial_seconds(terms, store),
        build_seconds=build_seconds,
    )


def _trial_seconds(terms: Terms, store: Store) -> float | None:
    """The mean of the newest study that measured the same workloads in such a search.

    Without one, so many workloads by the newest study on the same machine.
    """
    workloads, settings = terms.measurement.workloads, terms.measurement.settings
    finished = [study for study in store.studies() if study.finished]
    alike = [study for study in finished if study.study.name == NAME and study.study.workloads == workloads]
    alike = alike or [study for study in finished if study.study.machine.kind == settings.kind]
    if not alike:
        return None
    newest = alike[-1]
    trials = store.trials(newest.id)
    seconds = sum(trial.seconds for trial in trials) / len(trials)
    return seconds * len(workloads) / max(1, len(newest.study.workloads))
