"""Two objectives: the configurations of which none is better in both."""

import numpy as np

from ktrial.model.comparison import Comparison
from ktrial.model.tuning import Configuration, FrontPoint
from ktrial.optimize.surrogate.model import Belief

_MOST = 12


def front(
    belief: Belief, answer: Configuration | None, comparisons: tuple[Comparison, ...]
) -> tuple[FrontPoint, ...]:
    """Among what was run and kept all guards, by the model's estimates (not by single lucky runs)."""
    if len(belief.surfaces) < 2:
        return ()
    tried: list[Configuration] = [{}, *belief.distinct()]
    if answer and answer not in tried:
        tried.append(answer)
    gains = np.stack([surface.mean(tried) for surface in belief.surfaces], axis=1)
    margin = belief.scores.goal.margin
    best = [at for at in range(len(tried)) if not _beaten(gains, at, margin)]
    best.sort(key=lambda at: -gains[at, 0])
    return tuple(
        FrontPoint(
            configuration=tried[at],
            ratios=_ratios(belief, gains[at]),
            runs=sum(each.configuration == tried[at] for each in belief.seen),
            comparisons=comparisons if answer and tried[at] == answer else (),
        )
        for at in best[:_MOST]
    )


def _ratios(belief: Belief, gains: np.ndarray) -> tuple[float, float]:
    first, second = (float(np.exp(belief.scores.sign(at) * gain)) for at, gain in enumerate(gains))
    return first, second


def _beaten(gains: np.ndarray, at: int, margin: float) -> bool:
    """Whether another one is at least as good in both, and better by half a margin in one."""
    others = np.delete(gains, at, axis=0)
    as_good = (others >= gains[at]).all(axis=1)
    return bool((as_good & (others > gains[at] + 0.5 * margin).any(axis=1)).any())
