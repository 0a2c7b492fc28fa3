"""From values to scores: logarithms, larger is better; and how far the guards are exceeded."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ktrial.model.tuning import Goal, Guard, Observation
from ktrial.model.workload import Direction

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Scores:
    """How well runs serve a goal."""

    goal: Goal

    def failure(self, seen: Observation) -> str:
        """Why the run counts as failed: its own failure, or a value that is not there or not above zero."""
        if seen.failure:
            return seen.failure
        for each in self.goal.objectives:
            value = seen.values.get(each.metric)
            if value is None or not math.isfinite(value):
                return f"it gave no {each.metric}"
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
    """Standard deviation of normal values, from the differences of all pairs (Rousseeuw and Croux's Qn, JASA
    88, 1993, without its factors for small numbers): one outlier in four values does little to it.
    """
    first, second = np.triu_indices(len(values), 1)
    apart = np.sort(np.abs(values[first] - values[second]))
    half = len(values) // 2 + 1
    at = half * (half - 1) // 2
    # Mean of three order statistics about Qn's: steadier for few values; 2.2219 makes it consistent.
    return float(2.2219 * np.mean(apart[max(0, at - 1) : at + 2])) * _small(len(values))


def _small(count: int) -> float:
    """What makes it nearly unbiased for few values; found by simulation (tests/unit/test_tune_scores.py)."""
    return count / (count + 1.4)
