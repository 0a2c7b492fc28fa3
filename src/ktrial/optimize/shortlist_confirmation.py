"""Confirmation with noise: fresh runs of the finalists and the baseline in shared blocks, with verdicts."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.tuning import Configuration, Goal, Observation, Purpose
from ktrial.optimize.confirmation import BASELINE, CANDIDATE, Confirmation, broken, metric_of, told
from ktrial.optimize.evaluation_log import EvaluationLog, RunRequest
from ktrial.optimize.objective import ObjectiveFunction
from ktrial.stats.many_to_one import SharedBlocks
from ktrial.stats.sequential import BlockedMetric, checks
from ktrial.stats.sequential.repeated_intervals import Intervals, claims
from ktrial.stats.typical_blocks import typical_blocks
from ktrial.stats.verdict_rules import Claim, verdict_of

Array = NDArray[np.float64]

_FAILURES = 2
"""Failed runs of every finalist that end confirmation."""


def confirm(
    log: EvaluationLog,
    scores: ObjectiveFunction,
    finalists: Sequence[Configuration],
    blocks: int,
    rng: np.random.Generator,
) -> list[Confirmation]:
    """One a finalist, from so many blocks of one run of the baseline and of each finalist, in random order.

    All intervals hold together (ktrial.stats.typical_blocks), so that the answer may be chosen among them.
    """
    wanted: list[Configuration] = [{}, *finalists]
    fresh: list[Observation] = []
    made = 0
    while made < blocks and log.left >= len(wanted):
        asked = [RunRequest(wanted[at], made) for at in rng.permutation(len(wanted))]
        fresh += log.run(asked, Purpose.CONFIRM)
        made += 1
        if all(len(_failed(scores, fresh, each)) >= _FAILURES for each in finalists):
            break
    measured = _measured(scores, fresh, finalists, made)
    comparisons = _compared(measured, scores.goal)
    return [
        Confirmation(
            (comparison,),
            broken(scores, fresh, each),
            tuple(map(told, checks(_pair(measured, comparison.treatment), independent=True))),
        )
        for each, comparison in zip(finalists, comparisons, strict=True)
    ]


def _failed(
    scores: ObjectiveFunction, fresh: Sequence[Observation], candidate: Configuration
) -> list[Observation]:
    return [each for each in fresh if each.configuration == candidate and scores.failure(each)]


def _measured(
    scores: ObjectiveFunction, fresh: Sequence[Observation], finalists: Sequence[Configuration], blocks: int
) -> BlockedMetric:
    metric = scores.goal.objectives[0].metric
    labels = [BASELINE, *(_label(at) for at in range(len(finalists)))]
    values = {label: [math.nan] * blocks for label in labels}
    orders = {label: [0] * blocks for label in labels}
    for seen in fresh:
        label = labels[[{}, *finalists].index(seen.configuration)]
        orders[label][seen.block or 0] = seen.order
        if not scores.failure(seen):
            values[label][seen.block or 0] = seen.values[metric]
    return BlockedMetric(
        workload=scores.goal.workload,
        metric=metric_of(scores.goal, metric),
        baseline=BASELINE,
        values={label: tuple(each) for label, each in values.items()},
        orders={label: tuple(each) for label, each in orders.items()},
    )


def _label(at: int) -> str:
    return f"{CANDIDATE} {at + 1}" if at else CANDIDATE


def _pair(measured: BlockedMetric, treatment: str) -> BlockedMetric:
    """Of this treatment and the baseline only."""
    both = (measured.baseline, treatment)
    return replace(
        measured,
        values={label: measured.values[label] for label in both},
        orders={label: measured.orders[label] for label in both},
    )


def _compared(measured: BlockedMetric, goal: Goal) -> list[Comparison]:
    """Each treatment with the baseline. One with a failed run is not judged; the others are without it."""
    treatments = [each for each in measured.treatments if np.isfinite(measured.values[each]).all()]
    table = np.array([measured.values[each] for each in (measured.baseline, *treatments)]).T
    table = table[np.isfinite(table).all(axis=1)]
    if len(table) < 2 or not treatments:
        return [_unjudged(measured, each) for each in measured.treatments]
    hidden = measured.rounding(measured.baseline, *treatments[:1])
    said = typical_blocks(np.log(table), among=len(measured.treatments), hidden=hidden)
    codes = claims(Intervals(said.means, said.low, said.high), goal.margin)
    before = math.exp(float(np.median(np.log(table[:, 0]))))
    judged = {
        label: _comparison(measured, label, before, said, at, Claim(int(codes[at])), goal)
        for at, label in enumerate(treatments)
    }
    return [judged.get(each) or _unjudged(measured, each) for each in measured.treatments]


def _comparison(
    measured: BlockedMetric,
    treatment: str,
    before: float,
    said: SharedBlocks,
    at: int,
    claim: Claim,
    goal: Goal,
) -> Comparison:
    reason = f"the interval holds both 1 and more than the margin ({goal.margin * 100:.3g} %)"
    return _unjudged(measured, treatment).model_copy(
        update={
            "baseline_value": before,
            "value": before * math.exp(said.means[at]),
            "ratio": math.exp(said.means[at]),
            "low": math.exp(said.low[at]),
            "high": math.exp(said.high[at]),
            "verdict": verdict_of(claim, measured.metric.direction),
            "reason": f"after {measured.blocks} blocks {reason}" if claim is Claim.NONE else "",
        }
    )


def _unjudged(measured: BlockedMetric, treatment: str) -> Comparison:
    """A comparison without a number."""
    return Comparison(
        workload=measured.workload,
        metric=measured.metric.name,
        unit=measured.metric.unit,
        direction=measured.metric.direction,
        baseline=measured.baseline,
        treatment=treatment,
        baseline_value=None,
        value=None,
        ratio=None,
        low=None,
        high=None,
        verdict=Verdict.INCONCLUSIVE,
        mode=measured.mode,
        reason="a run of it failed, or too few blocks have numbers",
    )
