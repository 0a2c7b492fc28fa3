"""A builder that builds nothing: candidates whose numbers follow from causes that a test planted."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ktrial.bisect.decision import BisectionMetric, ExactJudge, Memory, Numbers
from ktrial.bisect.search import DeltaDebugging, Items, Subset
from ktrial.model.workload import Direction, Metric

INSTRUCTIONS = Metric(name="instructions", unit="instructions", direction=Direction.LOWER)
FORK, PIPE = BisectionMetric("fork", INSTRUCTIONS), BisectionMetric("pipe", INSTRUCTIONS)
MARGIN = 0.01


def resolved(_subset: Subset) -> bool:
    return True


@dataclass
class Planted:
    """Sets of items with the factor that each brings once all of it is as in B, for each target."""

    effects: Mapping[BisectionMetric, Mapping[Subset, float]]
    resolves: Callable[[Subset], bool] = resolved
    built: list[Subset] = field(default_factory=list)

    def measure(self, candidate: Subset) -> Numbers | None:
        self.built.append(candidate)
        if not self.resolves(candidate):
            return None
        return {target: {0: 1000 * self.factor(target, candidate)} for target in self.effects}

    def factor(self, target: BisectionMetric, candidate: Subset) -> float:
        return math.prod(factor for wanted, factor in self.effects[target].items() if wanted <= candidate)


def fork_only(*effects: tuple[set[int], float]) -> Planted:
    return Planted({FORK: {frozenset(wanted): factor for wanted, factor in effects}})


def searched(planted: Planted, items: Items | int, limit: int | None = None) -> DeltaDebugging:
    """The search of everything that the planted causes explain."""
    items = items if isinstance(items, Items) else Items(items)
    memory: Memory[Subset] = Memory(planted, limit)
    search = DeltaDebugging(items, [ExactJudge(target, memory, MARGIN) for target in planted.effects])
    search.run()
    return search
