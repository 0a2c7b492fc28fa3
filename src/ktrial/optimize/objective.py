"""From values to scores: logarithms, larger is better; and how far the guards are exceeded."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ktrial.model.tuning import Goal, Guard, Observation
from ktrial.model.workload import Direction

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ObjectiveFunction:
    """How well runs serve a goal."""

    goal: Goal

    def failure(self, seen: Observation) -> str:
        """Why the run counts as failed: its own failure, or a value that is not there or not above zero."""
        if seen.failure:
            return seen.failure
        for each in self.goal.objectives:
            value = seen.values.get(each.metric)
            if value is None:
                return f"it gave no {each.metric}"
            if not math.isfinite(value):
                return f"its {each.metric} is {value:g}, which is no finite number"
            if value <= 0:
                return f"its {each.metric} is {value:g}, which is not above zero"
        missing = [each.metric for each in self.goal.guards if each.metric not in seen.values]
        return f"it gave no {missing[0]}" if missing else ""

    def of(self, seen: Observation) -> tuple[float, ...]:
        """Each objective's; empty where the run failed."""
        if self.failure(seen):
            return ()
        return tuple(
            self.sign(at) * math.log(seen.values[each.metric]) for at, each in enumerate(self.goal.objectives)
        )

    def sign(self, objective: int) -> int:
        """1 where higher is better, -1 where lower is."""
        return 1 if self.goal.objectives[objective].direction is Direction.HIGHER else -1

    def excess(self, seen: Observation) -> float:
        """How far the worst guard is exceeded, relative to its bound; 0 where all are kept."""
        values = seen.values
        return max(
            (exceeded(each, values[each.metric]) for each in self.goal.guards if each.metric in values),
            default=0.0,
        )


def exceeded(guard: Guard, value: float) -> float:
    """How far the value is beyond the guard, relative to its bound; 0 where it is kept."""
    if guard.keeps(value):
        return 0.0
    # At the bound itself, where `<` forbids it, a hair.
    return max(abs(value - guard.bound) / (abs(guard.bound) or 1.0), 1e-6)


def robust_spread(values: Array) -> float:
    """Standard deviation of normal values, from the median distance of all pairs: an outlier does little.

    Shamos (1976); Rousseeuw and Croux, JASA 88, 1993, section 1. The factor for few values is from
    simulation, within 3 % from four values on (tests/unit/optimize/test_tune_scores.py).
    """
    first, second = np.triu_indices(len(values), 1)
    return float(np.median(np.abs(values[first] - values[second]))) / 0.9539 * (1 - 0.55 / len(values))
