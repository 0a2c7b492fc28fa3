"""Do two factors depend on each other? And does a change depend on the machine?

Two factors: what one changes, with the other at its baseline and at another level.

For one metric, with a the baseline, b the first factor changed, c the second, d both, and all else as in the
baseline: the first factor changes the metric by the ratio b/a while the second is at its baseline, and by d/c
while it is not. The interaction is the ratio of these two ratios,

    (d/c) / (b/a),    in logarithms  ln d - ln c - ln b + ln a,

which is the two-factor interaction of a 2×2 factorial design on logarithms (Jain, The Art of Computer
Systems Performance Analysis, 1991, chapters 17 and 18, with the multiplicative model; Altman and Bland, BMJ
326, 2003, p. 219, for the ratio of two ratios). It is 1 where the effects multiply, and the same whichever of
the two factors is called the first.

Exact numbers: perturbations are the same for all treatments, so that each yields one such ratio, from
numbers that met the same. The value is their geometric mean, the interval the smallest and the largest of
them. Numbers in real time: the logarithm within each block in which all four treatments have a number, and
the mean of these over blocks, judged as any comparison is, each alone; as these are questions beside the
study's own, differences that Benjamini and Hochberg's procedure does not claim among all of them are
withdrawn. In both, the verdict is the comparison's rule for this ratio: inside the margin the effects are
as good as independent; beyond it the two together are better or worse than each alone tells.

Machine and version. Timed: each machine has one log ratio a block (after / before). Under 'the change is the
same everywhere' the machines' ratios have one mean, so that the interaction of a machines × versions table
with blocks in machines is a comparison of these means; Welch's F (Biometrika 38, 1951) does not ask that
machines are equally noisy. Exact: no noise, so that the rule is that of `ktrial.stats.verdict_rules`, on
ratios instead of values: two machines differ where the intervals of their ratios lie wholly outside each
other's margin, and are the same where the largest and the smallest end of all intervals lie within one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ktrial.model.comparison import Interaction, Verdict
from ktrial.model.design import LevelValue
from ktrial.model.history import Agreement
from ktrial.model.imported import Group
from ktrial.model.workload import Metric, Mode
from ktrial.stats.independent_groups import moments, welch
from ktrial.stats.sequential.design import BlockedMetric, SequentialDesign
from ktrial.stats.sequential.familywise import benjamini_hochberg, judge, repeated_p
from ktrial.stats.verdict_rules import Arm, Claim, interval_verdict, verdict_of

Array = NDArray[np.float64]
LEAST_BLOCKS = 3
"""Fewer say too little of a machine's noise."""


class FactorPair(NamedTuple):
    """Two factors, each with its baseline and one other level."""

    first: str
    first_levels: tuple[LevelValue, LevelValue]
    second: str
    second_levels: tuple[LevelValue, LevelValue]


class FactorialCells(NamedTuple):
    """Labels of the four treatments of a pair."""

    neither: str
    first: str
    second: str
    both: str


@dataclass(frozen=True)
class InteractionQuestion:
    """Where an interaction is looked for."""

    pair: FactorPair
    treatments: FactorialCells
    workload: str
    metric: Metric
    mode: Mode


def exact_interaction(
    place: InteractionQuestion, arms: Sequence[Arm], *, margin: float, incomparable: str = ""
) -> Interaction:
    """The interaction in exact numbers. `arms`: of the treatments in the order of `FactorialCells`.

    `incomparable` says why these numbers must not be compared.
    """
    reason = incomparable or next((arm.missing for arm in arms if arm.missing), "")
    common = [key for key in arms[0].values if all(key in arm.values for arm in arms)]
    table = np.array([[arm.values[key] for key in common] for arm in arms], dtype=np.float64)
    if incomparable or not common or np.any(table <= 0):
        return _interaction(place, Verdict.INCONCLUSIVE, reason or "a ratio needs values above zero")
    logs = np.log(table)
    ratios = np.exp(logs[3] - logs[2] - logs[1] + logs[0])
    low, high = float(np.min(ratios)), float(np.max(ratios))
    verdict = Verdict.INCONCLUSIVE
    if not reason:
        verdict = interval_verdict(low, high, place.metric.direction, margin)
        across = f"the interval reaches across the edge of the margin ({margin * 100:.3g} %)"
        reason = across if verdict is Verdict.INCONCLUSIVE else ""
    effects = float(np.exp(np.mean(logs[1] - logs[0]))), float(np.exp(np.mean(logs[3] - logs[2])))
    ratio = float(np.exp(np.mean(np.log(ratios))))
    ends = (low, high) if len(common) > 1 else (None, None)
    return _interaction(place, verdict, reason, effects, (ratio, *ends))


def timed_interactions(
    questions: Sequence[tuple[InteractionQuestion, BlockedMetric]],
    design: SequentialDesign,
    *,
    final: bool = False,
) -> tuple[Interaction, ...]:
    """The interactions in real time, after the blocks so far. `final`: no more blocks can come."""
    logs = [_logs(measured, place.treatments) for place, measured in questions]
    differences = [four[3] - four[2] - four[1] + four[0] for four in logs]
    hidden = [measured.rounding(*place.treatments) for place, measured in questions]
    adjusted = benjamini_hochberg(
        [
            repeated_p(difference, design, final=final, rounding=rounding)
            for difference, rounding in zip(differences, hidden, strict=True)
        ]
    )
    interactions = []
    for (place, _), four, values, rounding, p in zip(
        questions, logs, differences, hidden, adjusted, strict=True
    ):
        if not len(values):
            reason = "no block has a number above zero of all four treatments"
            interactions.append(_interaction(place, Verdict.INCONCLUSIVE, reason))
            continue
        (finding,) = judge([values], design, final=final, roundings=[rounding])
        verdict, reason = verdict_of(finding.claim, place.metric.direction), ""
        if finding.claim in (Claim.ABOVE, Claim.BELOW) and p > design.alpha:
            verdict = Verdict.INCONCLUSIVE
            reason = f"one of {len(questions)} interactions: adjusted for that, p is {p:.2g}"
        elif verdict is Verdict.INCONCLUSIVE:
            reason = f"after {finding.blocks} blocks the interval holds both 1 and more than the margin"
        effects = (math.exp(np.mean(four[1] - four[0])), math.exp(np.mean(four[3] - four[2])))
        ratio = (math.exp(finding.location), *finding.ratio_interval)
        interactions.append(_interaction(place, verdict, reason, effects, ratio))
    return tuple(interactions)


def _logs(measured: BlockedMetric, four: FactorialCells) -> Array:
    """Logarithms in the blocks where all four have a number above zero; shape (4, blocks)."""
    table = np.array([measured.values[label] for label in four], dtype=np.float64)
    usable = np.all(np.isfinite(table) & (table > 0), axis=0)
    return np.asarray(np.log(table[:, usable]))


def _interaction(
    place: InteractionQuestion,
    verdict: Verdict,
    reason: str,
    effects: tuple[float | None, float | None] = (None, None),
    ratio: tuple[float | None, float | None, float | None] = (None, None, None),
) -> Interaction:
    """`effects`: the first factor's, the second at its baseline and not. `ratio`: with its ends."""
    pair, metric = place.pair, place.metric
    return Interaction(
        workload=place.workload,
        metric=metric.name,
        unit=metric.unit,
        direction=metric.direction,
        mode=place.mode,
        first=pair.first,
        first_levels=pair.first_levels,
        second=pair.second,
        second_levels=pair.second_levels,
        treatments=tuple(place.treatments),
        effect=effects[0],
        effect_beside=effects[1],
        ratio=ratio[0],
        low=ratio[1],
        high=ratio[2],
        verdict=verdict,
        reason=reason,
    )


def interaction_p(log_ratios: Sequence[Sequence[float]]) -> float | None:
    """The p value of 'all machines have one mean log ratio'; None for fewer than two machines with 3 blocks.

    One row a machine. Machines whose blocks are all alike have no noise to test by: None too.
    """
    rows = [np.asarray(row, dtype=np.float64) for row in log_ratios if len(row) >= LEAST_BLOCKS]
    if len(rows) < 2 or any(float(np.ptp(row)) == 0 for row in rows):
        return None
    groups = [Group(label=str(place), values=tuple(map(float, row))) for place, row in enumerate(rows)]
    return float(welch([moments(group) for group in groups]).p)


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
    # Blocks that are all alike tell nothing of their noise.
    ends = [_ends(row) for row in logs if len(row) >= LEAST_BLOCKS and float(np.ptp(row)) > 0]
    apart = max((high for _, high in ends), default=0.0) - min((low for low, _ in ends), default=0.0)
    if len(ends) == len(logs) and apart <= np.log1p(margin):
        return Agreement.SAME
    return Agreement.UNDECIDED


def _ends(row: Sequence[float]) -> tuple[float, float]:
    values = np.asarray(row, dtype=np.float64)
    reach = 2 * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean() - reach), float(values.mean() + reach)


# A change over several machines that stand for others like them: random effects of machines, blocks within.
#
# Each machine has one log ratio a block; its mean y has the variance v, that of the blocks by their number.
# Machines are blocks of the first kind, and their effects are drawn from a distribution with the variance
# t²:
#
#     weights w = 1 / (v + t²),    mean m = Σ w y / Σ w,    t² so that Σ w (y - m)² = k - 1, or 0
#
# (Paule and Mandel, J. Res. NBS 87, 1982; of k machines; what Veroniki et al., Research Synthesis Methods
# 7, 2016, recommend). The interval is Hartung and Knapp's (Statistics in Medicine 20, 2001): m ± the
# quantile of Student's distribution with k - 1 degrees of freedom times √(q / Σ w), with q = Σ w (y - m)² /
# (k - 1), not below 1, so that it is never narrower than without differences between machines (Röver, Knapp
# and Friede, BMC Medical Research Methodology 15, 2015). With two machines it is as wide as it has to be.

_MOST_DOUBLINGS, _STEPS = 200, 50


class OverAll(NamedTuple):
    """In logarithms."""

    mean: float
    low: float
    high: float
    between: float
    """The standard deviation of the machines' own changes."""


def over_all(rows: Sequence[Sequence[float]], alpha: float = 0.05) -> OverAll | None:
    """The change over machines like these, each with its log ratios; None where one has too few blocks, or
    all alike, or there is one machine.
    """
    from scipy import stats  # takes half a second to load

    if len(rows) < 2 or any(len(row) < LEAST_BLOCKS or float(np.ptp(row)) == 0 for row in rows):
        return None
    y = np.array([np.mean(row) for row in rows])
    v = np.array([np.var(row, ddof=1) / len(row) for row in rows])
    between = _between(y, v)
    weights = 1 / (v + between)
    mean = float(weights @ y / weights.sum())
    spread = max(1.0, _q(y, v, between) / (len(y) - 1))
    reach = float(stats.t.ppf(1 - alpha / 2, len(y) - 1) * np.sqrt(spread / weights.sum()))
    return OverAll(mean, mean - reach, mean + reach, float(np.sqrt(between)))


def _between(y: Array, v: Array) -> float:
    """Paule and Mandel's t²."""
    expected, low, high = len(y) - 1, 0.0, float(np.max(v))
    if _q(y, v, 0.0) <= expected:
        return 0.0
    for _ in range(_MOST_DOUBLINGS):
        if _q(y, v, high) <= expected:
            break
        high *= 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _q(y, v, middle) > expected else (low, middle)
    return high


def _q(y: Array, v: Array, between: float) -> float:
    weights = 1 / (v + between)
    mean = weights @ y / weights.sum()
    return float(weights @ (y - mean) ** 2)
