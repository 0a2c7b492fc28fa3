"""What a bisection may cost, before it begins."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ktrial.bisect.measurement import NAME
from ktrial.bisect.sequential_decision import Terms, most_for_one, most_for_two
from ktrial.model.base import Model
from ktrial.store import Store


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
        each = self.trials_each * self.trial_seconds + (self.build_seconds or 0.0)
        return each * self.candidates_for_one


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
    one = most_for_one(count) - 2 if in_order else most_for_one(count)
    return SearchPlan(
        kind=terms.kind,
        before=terms.before,
        after=terms.after,
        differing=differing,
        groups=count,
        names=tuple(names),
        candidates_for_one=min(one, terms.limit or one),
        candidates_for_each_more=one - 2 if in_order else None,
        candidates_for_two=min(most_for_two(count), terms.limit or most_for_two(count)),
        limit=terms.limit,
        builds=builds,
        trials_each=terms.how.perturbations,
        trial_seconds=_trial_seconds(terms, store),
        build_seconds=build_seconds,
    )


def _trial_seconds(terms: Terms, store: Store) -> float | None:
    """The mean of the newest study that measured the same workloads in such a search."""
    alike = [
        one
        for one in store.studies()
        if one.study.name == NAME and one.study.workloads == terms.how.workloads and one.finished
    ]
    if not alike:
        return None
    trials = store.trials(alike[-1].id)
    return sum(trial.seconds for trial in trials) / len(trials)


Subset = frozenset[int]
"""The items that are as in B; all others are as in A."""


NOTHING: Subset = frozenset()


@dataclass(frozen=True)
class Items:
    """Items 0 … count-1, ordered so that an item comes after all that it requires."""

    count: int
    requires: Mapping[int, Subset] = field(default_factory=dict)
    """Item → items that have to be as in B where it is; direct ones will do."""

    def __post_init__(self) -> None:
        for item, required in self.requires.items():
            if any(one >= item for one in required):
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
            closures.append(frozenset({item}).union(*(closures[one] for one in required)))
        return tuple(closures)

    def closed(self, subset: Iterable[int]) -> Subset:
        """The subset with all that its items require."""
        return NOTHING.union(*(self._closures[item] for item in subset))

    def without(self, subset: Subset, gone: Subset) -> Subset:
        """The subset without some items, and without those that require one of them."""
        return frozenset(item for item in subset if not self._closures[item] & gone)
