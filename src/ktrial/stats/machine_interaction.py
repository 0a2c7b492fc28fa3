"""Does a change depend on the machine? The interaction of machine and version.

Timed: each machine has one log ratio a block (after / before). Under 'the change is the same everywhere' the
machines' ratios have one mean, so that the interaction of a machines × versions table with blocks in
machines is a comparison of these means; Welch's F (Biometrika 38, 1951) does not ask that machines are
equally noisy. Exact: no noise, so that the rule is that of `ktrial.stats.deterministic`, on ratios instead
of values: two machines differ where the intervals of their ratios lie wholly outside each other's margin,
and are the same where the largest and the smallest end of all intervals lie within one.
"""

from collections.abc import Sequence

import numpy as np

from ktrial.model.imported import Group
from ktrial.model.machine_agreement import Agreement
from ktrial.stats.independent import moments, welch

LEAST_BLOCKS = 3
"""Fewer say too little of a machine's noise."""


def interaction_p(log_ratios: Sequence[Sequence[float]]) -> float | None:
    """The p value of 'all machines have one mean log ratio'; None for fewer than two machines with 3 blocks.

    One row a machine. Machines whose blocks are all alike have no noise to test by: None too.
    """
    rows = [np.asarray(row, dtype=np.float64) for row in log_ratios if len(row) >= LEAST_BLOCKS]
    if len(rows) < 2 or any(float(np.ptp(row)) == 0 for row in rows):
        return None
    groups = [Group(label=str(place), values=tuple(map(float, row))) for place, row in enumerate(rows)]
    return float(welch([moments(one) for one in groups]).p)


def exact_agreement(intervals: Sequence[tuple[float, float]], margin: float) -> Agreement:
    """Of the machines' ratios as (low, high): the same, different, or neither is shown."""
    edge = 1 + margin
    lowest, highest = min(low for low, _ in intervals), max(high for _, high in intervals)
    if highest <= edge * lowest:
        return Agreement.SAME
    if max(low for low, _ in intervals) > edge * min(high for _, high in intervals):
        return Agreement.DIFFERS
    return Agreement.UNDECIDED


def timed_agreement(
    p: float | None, logs: Sequence[Sequence[float]], alpha: float, margin: float
) -> Agreement:
    """By the adjusted p value; the same only where the machines' mean ratios, with two standard errors, lie
    within the margin of each other: 'not significant' alone shows nothing.
    """
    if p is not None and p <= alpha:
        return Agreement.DIFFERS
    ends = [_ends(row) for row in logs if len(row) >= LEAST_BLOCKS]
    apart = max((high for _, high in ends), default=0.0) - min((low for low, _ in ends), default=0.0)
    if len(ends) == len(logs) and apart <= np.log1p(margin):
        return Agreement.SAME
    return Agreement.UNDECIDED


def _ends(row: Sequence[float]) -> tuple[float, float]:
    values = np.asarray(row, dtype=np.float64)
    reach = 2 * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean() - reach), float(values.mean() + reach)
