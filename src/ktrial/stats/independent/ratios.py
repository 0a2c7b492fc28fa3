"""The ratio of two groups that were not measured in blocks, with its interval."""

import math
from dataclasses import dataclass

import numpy as np

from ktrial.model.imported import Group
from ktrial.stats.independent.games_howell import welch_df
from ktrial.stats.independent.moments import Moments, moments


@dataclass(frozen=True)
class Ratio:
    """treatment / baseline."""

    ratio: float
    low: float
    high: float


def ratio(baseline: Group, treatment: Group, confidence: float) -> Ratio:
    """The ratio and its interval.

    From runs: geometric means, Welch's t on the logarithms. From summaries: means, whose logarithm has a
    standard deviation of SD / mean (the delta method; Rice, Mathematical Statistics and Data Analysis, 4.6),
    the same to within half of the variation coefficient squared. Raises ValueError where a mean or value is
    not above zero, or where a group has no spread.
    """
    from scipy import stats

    below, above = _logarithm(baseline), _logarithm(treatment)
    difference = above.mean - below.mean
    error = math.sqrt(above.squared_error + below.squared_error)
    half = 0.0
    if error:
        half = float(stats.t.ppf((1 + confidence) / 2, welch_df(above, below))) * error
    return Ratio(*(math.exp(log) for log in (difference, difference - half, difference + half)))


def _logarithm(group: Group) -> Moments:
    if group.values:
        if min(group.values) <= 0:
            raise ValueError("a ratio needs values above zero")
        logs = np.log(np.asarray(group.values))
        sd = float(logs.std(ddof=1)) if len(logs) > 1 else None
        return Moments(group.label, float(logs.mean()), sd, len(logs))
    plain = moments(group)
    runs, sd = plain.known
    if plain.mean <= 0:
        raise ValueError("a ratio needs values above zero")
    return Moments(group.label, math.log(plain.mean), sd / plain.mean, runs)
