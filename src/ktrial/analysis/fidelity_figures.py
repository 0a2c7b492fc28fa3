"""Figures of fidelity: signs, correlations, error and slope of one count against real time."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from ktrial.model.fidelity import Fidelity, FidelityPair, Interval, SizeBand
from ktrial.stats.correlation import Correlation, pearson, spearman, with_interval

BANDS = (1.0, 1.1, 1.3, 2.0, math.inf)
"""Edges of the sizes of changes, as ratios: up to 10 %, to 30 %, to twice as much, more."""
Group = Callable[[FidelityPair], str]


def figures(count: str, pairs: Sequence[FidelityPair], group: Group, seed: int) -> Fidelity:
    """Of one count, over the pairs that have it. Correlations' intervals draw whole groups."""
    both = [pair for pair in pairs if count in pair.exact]
    in_time = [pair for pair in both if pair.time.decided]
    decided = [pair for pair in in_time if pair.exact[count].decided]
    wrong = [pair for pair in decided if not _same_sign(pair, count)]
    x = np.array([math.log(pair.exact[count].ratio) for pair in decided])
    y = np.array([math.log(pair.time.ratio) for pair in decided])
    groups = [group(pair) for pair in decided]

    def figure(correlation: Correlation) -> Interval:
        value, low, high = with_interval(correlation, x, y, groups, seed)
        return Interval(value=value, low=low, high=high)

    return Fidelity(
        count=count,
        pairs=len(both),
        undecided_in_time=len(both) - len(in_time),
        undecided_in_exact=len(in_time) - len(decided),
        decided=len(decided),
        same_sign=len(decided) - len(wrong),
        spearman=figure(spearman),
        pearson=figure(pearson),
        rms_error=float(np.sqrt(np.mean((y - x) ** 2))) if decided else None,
        slope=float(x @ y / (x @ x)) if decided else None,
        bands=_bands(count, both),
        disagreements=tuple(wrong),
    )


def _same_sign(pair: FidelityPair, count: str) -> bool:
    return pair.exact[count].verdict is pair.time.verdict


def _bands(count: str, pairs: Sequence[FidelityPair]) -> tuple[SizeBand, ...]:
    """Of the pairs that the count has decided, by the size of what it says."""
    counted = [pair for pair in pairs if pair.exact[count].decided]
    bands = []
    for low, high in pairwise(BANDS):
        inside = [pair for pair in counted if low <= _size(pair, count) < high]
        decided = [pair for pair in inside if pair.time.decided]
        right = sum(_same_sign(pair, count) for pair in decided)
        bands.append(
            SizeBand(
                low=low,
                high=high if math.isfinite(high) else None,
                decided=len(decided),
                same_sign=right,
                undecided=len(inside) - len(decided),
            )
        )
    return tuple(bands)


def _size(pair: FidelityPair, count: str) -> float:
    ratio = pair.exact[count].ratio
    return max(ratio, 1 / ratio)
