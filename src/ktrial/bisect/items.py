"""What is searched: numbered items, each as in A or as in B, some of which need others to be as in B too."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

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
        found: list[Subset] = []
        for item in range(self.count):
            required = self.requires.get(item, NOTHING)
            found.append(frozenset({item}).union(*(found[one] for one in required)))
        return tuple(found)

    def closed(self, subset: Iterable[int]) -> Subset:
        """The subset with all that its items require."""
        return NOTHING.union(*(self._closures[item] for item in subset))

    def without(self, subset: Subset, gone: Subset) -> Subset:
        """The subset without some items, and without those that require one of them."""
        return frozenset(item for item in subset if not self._closures[item] & gone)
