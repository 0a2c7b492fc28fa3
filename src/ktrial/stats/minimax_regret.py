"""Which of several treatments to prefer over several workloads, without one averaged number.

For each workload the regret of a treatment is its ratio to the best one (Savage, JASA 46, 1951), as a factor
of at least 1. Treatments are ranked by their worst regret (minimax): a gain in one workload does not pay for
a loss in another, since only the user knows how much each of them runs. One treatment dominates another
where it is worse in no workload, and better in one at least; better and worse mean what they mean in
`ktrial.stats.exact_comparison`: beyond the margin, and beyond the spread over perturbations.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ktrial.model.workload import Direction
from ktrial.stats.paired_perturbations import Values, exceeds, interval


@dataclass(frozen=True)
class RegretRatio:
    """A value over the best one, turned so that more is worse."""

    ratio: float
    low: float
    high: float


def regrets(
    values: Mapping[str, Values], centres: Mapping[str, float], direction: Direction
) -> dict[str, RegretRatio]:
    """Treatment → its regret in one workload. `values`: by treatment, then by perturbation; above zero."""
    best = (min if direction is Direction.LOWER else max)(centres, key=lambda name: centres[name])
    return {
        name: _ratio(values[best], centres[best], values[name], centres[name], direction) for name in values
    }


def _ratio(best: Values, best_centre: float, its: Values, centre: float, direction: Direction) -> RegretRatio:
    if direction is Direction.LOWER:
        return RegretRatio(centre / best_centre, *interval(best, its))
    return RegretRatio(best_centre / centre, *interval(its, best))


def dominates(
    one: Mapping[str, Values], other: Mapping[str, Values], directions: Mapping[str, Direction], margin: float
) -> bool:
    """Whether `one` (workload → values) is nowhere worse than `other`, and somewhere better."""
    better = [_better(one[name], other[name], directions[name], margin) for name in directions]
    worse = [_better(other[name], one[name], directions[name], margin) for name in directions]
    return any(better) and not any(worse)


def _better(one: Values, other: Values, direction: Direction, margin: float) -> bool:
    less, more = (one, other) if direction is Direction.LOWER else (other, one)
    return exceeds(less, more, margin)
