"""Two groups' means: Welch's t for one pair, Games and Howell's procedure among several groups."""

import math
from collections.abc import Sequence

from ktrial.model.imported import Pair
from ktrial.stats.independent.moments import Moments


def welch_df(one: Moments, other: Moments) -> float:
    """Welch and Satterthwaite's degrees of freedom, not rounded. Raises ValueError: no spread at all."""
    squares = one.squared_error, other.squared_error
    if not any(squares):
        raise ValueError(f"{one.label} and {other.label} have no spread at all")
    parts = (
        square * square / (group.known[0] - 1) for square, group in zip(squares, (one, other), strict=True)
    )
    return float(sum(squares) ** 2 / sum(parts))


def games_howell(one: Moments, other: Moments, groups: int, confidence: float = 0.95) -> Pair:
    """`one` - `other` among so many groups (Games and Howell, Journal of Educational Statistics 1, 1976).

    Tukey and Kramer's interval on Welch's degrees of freedom: q / sqrt(2) standard errors. All pairs'
    intervals hold together. Raises ValueError where a group has no spread.
    """
    error = math.sqrt(one.squared_error + other.squared_error)
    df = welch_df(one, other)
    difference = one.mean - other.mean
    half = critical(groups, df, confidence) * error
    return Pair(
        group=one.label,
        against=other.label,
        difference=difference,
        standard_error=error,
        df=df,
        low=difference - half,
        high=difference + half,
        p=_p(abs(difference) / error, groups, df),
    )


def games_howell_pairs(groups: Sequence[Moments], confidence: float = 0.95) -> tuple[Pair, ...]:
    """All pairs, each group minus every one before it."""
    return tuple(
        games_howell(one, other, len(groups), confidence)
        for at, one in enumerate(groups)
        for other in groups[:at]
    )


def critical(groups: int, df: float, confidence: float) -> float:
    """How many standard errors half an interval of a difference has, among so many groups."""
    from scipy import stats

    if groups == 2:  # the studentized range of two is sqrt(2)·|t|
        return float(stats.t.ppf((1 + confidence) / 2, df))
    return float(stats.studentized_range.ppf(confidence, groups, df)) / math.sqrt(2)


def _p(t: float, groups: int, df: float) -> float:
    from scipy import stats

    if groups == 2:
        return float(2 * stats.t.sf(t, df))
    return float(min(1.0, max(0.0, stats.studentized_range.sf(t * math.sqrt(2), groups, df))))
