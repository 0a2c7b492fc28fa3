"""Two objectives: points of the front, and what is best in both together, on fresh runs in shared blocks.

Where the objectives are in conflict there is no one answer: which of the confirmed points serves is the
user's to choose. All comparisons, of every point in both objectives, are one family (Holm's procedure in
`ktrial.stats.sequential.look`), so that the error of all together is held.
"""

import math
from collections.abc import Sequence

import numpy as np

from ktrial.model.comparison import Comparison
from ktrial.model.tuning import Configuration, FrontPoint, Goal, Observation, Purpose
from ktrial.model.workload import Direction, Mode
from ktrial.optimize.budget import Shares
from ktrial.optimize.confirmation import (
    BASELINE,
    Confirmation,
    broken,
    change_in_words,
    compared_exactly,
    metric_of,
    told,
)
from ktrial.optimize.evaluation_log import EvaluationLog, RunRequest
from ktrial.optimize.objective import ObjectiveFunction
from ktrial.stats.sequential import BlockedMetric, SequentialDesign, look
from ktrial.stats.sequential.design import usual_looks

_MOST_POINTS, _FEWEST_BLOCKS = 3, 6
_FEWEST_POINTS = 2


def runs_for_front(shares: Shares, runs: int, *, noise_free: bool) -> int:
    """Runs to be put by: as many as for one answer, and enough for two points where the budget has them."""
    wanted = (_FEWEST_POINTS + 1) * (shares.confirm // 2 if noise_free else _FEWEST_BLOCKS)
    return max(shares.confirm, min(wanted, runs // 2))


def points_to_confirm(
    front: Sequence[FrontPoint], candidate: Configuration, goal: Goal, runs: int, *, noise_free: bool
) -> list[Configuration]:
    """What may gain in both, the candidate, the front's far end and its middle: as many as so many runs can
    judge; one at least.

    `front`: the best in the first objective first.
    """
    changed = [point for point in front if point.configuration]
    points = [balanced] if (balanced := _balanced(changed, goal)) else []
    # The far end and the middle: the other end is next to the baseline, and says little.
    ends = [point.configuration for point in (*changed[:1], *changed[len(changed) // 2 :][:1])]
    for one in (candidate, *ends):
        if one and one not in points:
            points.append(one)
    each = 1 if noise_free else _FEWEST_BLOCKS
    return points[: max(1, min(_MOST_POINTS, runs // each - 1))]


def _balanced(points: Sequence[FrontPoint], goal: Goal) -> Configuration:
    """The point whose smaller gain is the largest; empty where none promises to gain in one objective more
    than the margin, and to lose nothing in the other."""

    def gains(point: FrontPoint) -> list[float]:
        pairs = zip(point.ratios, goal.objectives, strict=True)
        return sorted(
            math.log(ratio) * (1 if one.direction is Direction.HIGHER else -1) for ratio, one in pairs
        )

    promising = [point for point in points if gains(point)[0] >= 0 and gains(point)[1] > goal.margin]
    return max(promising, key=gains).configuration if promising else {}


def confirm_front(
    log: EvaluationLog,
    scores: ObjectiveFunction,
    points: Sequence[Configuration],
    rng: np.random.Generator,
    runs: int,
) -> list[Confirmation]:
    """One confirmation a point, each with a comparison an objective.

    `runs`: how many may be made. Blocks of one run of the baseline and of each point, in random order.
    """
    wanted = [{}, *points]
    blocks = min(runs, log.left) // len(wanted)
    if not points or not blocks:
        return []
    design = SequentialDesign(margin=scores.goal.margin, looks=usual_looks(max(blocks, _FEWEST_BLOCKS)))
    fresh: list[Observation] = []
    ahead: int | None = design.looks[0]
    made = 0
    while ahead is not None and made < blocks and log.left >= len(wanted):
        for _ in range(min(ahead, blocks) - made):
            asked = [RunRequest(wanted[at], made) for at in rng.permutation(len(wanted))]
            fresh += log.run(asked, Purpose.CONFIRM)
            made += 1
        ahead = look(_measured(scores, fresh, points, made), design, final=made >= blocks).next_look
    judged = look(_measured(scores, fresh, points, made), design, final=True)
    return [
        Confirmation(
            tuple(one for one in judged.comparisons if one.treatment == _label(at)),
            broken(scores, fresh, point),
            tuple(map(told, judged.warnings)) if not at else (),
        )
        for at, point in enumerate(points)
    ]


def confirm_front_exactly(
    log: EvaluationLog, scores: ObjectiveFunction, points: Sequence[Configuration], mode: Mode, runs: int
) -> list[Confirmation]:
    """In noise-free mode: each under every perturbation."""
    wanted = [{}, *points]
    count = min(max(1, log.measuring.perturbations), min(runs, log.left) // len(wanted))
    if not points or not count:
        return []
    asked = [RunRequest(each, at, at) for at in range(count) for each in wanted]
    fresh = log.run(asked, Purpose.CONFIRM)
    return [
        Confirmation(compared_exactly(scores, fresh, point, mode), broken(scores, fresh, point))
        for point in points
    ]


def with_confirmations(
    front: Sequence[FrontPoint], points: Sequence[Configuration], confirmed: Sequence[Confirmation]
) -> tuple[FrontPoint, ...]:
    """The front's points with what confirmation says of them; one that trades stays, whatever the model says
    of it by now."""
    said = {_key(point): one for point, one in zip(points, confirmed, strict=False)}
    points = points[: len(confirmed)]
    there = {_key(point.configuration) for point in front}
    lost = [point for point in points if _key(point) not in there and said[_key(point)].trades]
    return (
        *(
            point.model_copy(update={"comparisons": said[_key(point.configuration)].comparisons})
            if _key(point.configuration) in said
            else point
            for point in front
        ),
        *(_front_point(point, said[_key(point)].comparisons) for point in lost),
    )


def _front_point(point: Configuration, comparisons: tuple[Comparison, ...]) -> FrontPoint:
    first, second = (one.ratio or 1.0 for one in comparisons)
    return FrontPoint(configuration=point, ratios=(first, second), runs=0, comparisons=comparisons)


def conflict(points: Sequence[Configuration], confirmed: Sequence[Confirmation]) -> str:
    """What the points trade, in a sentence; empty where none is better in one and worse in the other."""
    trades = [
        f"{_named(point)}: {' and '.join(map(change_in_words, one.comparisons))}"
        for point, one in zip(points, confirmed, strict=False)
        if one.trades
    ]
    if not trades:
        return ""
    return (
        "Of the settings that were confirmed on fresh runs none is better in both: what one objective gains "
        f"the other loses. Choose one: {'; '.join(trades)}."
    )


def _named(point: Configuration) -> str:
    return ", ".join(f"{name}={value or '(not given)'}" for name, value in point.items())


def _label(at: int) -> str:
    return f"point {at + 1}"


def _measured(
    scores: ObjectiveFunction, fresh: Sequence[Observation], points: Sequence[Configuration], blocks: int
) -> list[BlockedMetric]:
    labels = {_key({}): BASELINE} | {_key(point): _label(at) for at, point in enumerate(points)}
    measured = []
    for objective in scores.goal.objectives:
        values = {label: [math.nan] * blocks for label in labels.values()}
        orders = {label: [0] * blocks for label in labels.values()}
        for seen in fresh:
            label, at = labels[_key(seen.configuration)], seen.block or 0
            orders[label][at] = seen.order
            if not scores.failure(seen):
                values[label][at] = seen.values[objective.metric]
        measured.append(
            BlockedMetric(
                workload=scores.goal.workload,
                metric=metric_of(scores.goal, objective.metric),
                baseline=BASELINE,
                values={label: tuple(each) for label, each in values.items()},
                orders={label: tuple(each) for label, each in orders.items()},
            )
        )
    return measured


def _key(configuration: Configuration) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(configuration.items()))
