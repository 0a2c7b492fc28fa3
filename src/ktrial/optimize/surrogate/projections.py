"""Two ranges that act by what they come to together: their difference or their sum.

Where only the ratio of two limits matters, or one queue has to grow with another, the gain lies along an
oblique line: a product of one function for each range needs many runs to say so, a function of one
projection few. Whether there is such a pair, the runs decide: a projection is taken where with it they are
so much likelier (projection pursuit: Friedman and Stuetzle, J. American Statistical Association 76, 1981;
the evidence of a model: MacKay, Neural Computation 4, 1992).
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ktrial.optimize.surrogate.gaussian_process import (
    Data,
    GaussianProcess,
    InputScaling,
    Projection,
    Strengths,
)
from ktrial.optimize.surrogate.hyperparameters import WEIGHT, Fit, fit

_SLOPES = (1.0, -1.0, 0.5, -0.5, 2.0, -2.0)
"""Of the oblique line, in parts of the ranges."""
_SLOPE_SPREAD = 0.5
"""Standard deviation of the binary logarithm of a slope's size: ranges that go together go alike."""
_LIKELIER = 4.0
"""By so much must the logarithm of the likelihood be larger with a projection."""
_FEWEST_RUNS = 12
_TRIED = 2
"""Projections that are fitted, of those that look likeliest as they begin."""
_LENGTH, _BEGIN = 0.2, 1.0
"""Where their fit begins."""


class _Begin(NamedTuple):
    projection: Projection
    fitting: Fit
    start: Strengths

    def cost(self, strengths: Strengths) -> float:
        away = math.log2(abs(self.projection.slope)) / _SLOPE_SPREAD
        return self.fitting.cost(strengths) + 0.5 * away**2


def fit_projected(
    frame: InputScaling, data: Data, noise: float, old: GaussianProcess | None, *, quick: bool = False
) -> GaussianProcess:
    """As hyperparameters.fit, with a projection where the runs speak for one. `frame` has none; `old` is the
    process of the fit before, with its own."""
    if quick and old:
        return fit(old.frame, data, noise, old.strengths, quick=True)
    plain = fit(frame, data, noise, _without_projections(old) if old else None)
    if len(data.scores) < _FEWEST_RUNS:
        return plain
    kept = old.frame.projections if old else ()
    begins = []
    for each in dict.fromkeys([*_projections(plain), *kept]):
        begin = _begin(plain, data, noise, each)
        begins.append(begin._replace(start=old.strengths) if old and each in kept else begin)
    begins.sort(key=lambda each: each.cost(each.start))
    return _likeliest(plain, data, noise, begins[:_TRIED])


def _likeliest(plain: GaussianProcess, data: Data, noise: float, begins: Sequence[_Begin]) -> GaussianProcess:
    ends = [(each, each.fitting.fitted(each.start)) for each in begins]
    if not ends:
        return plain
    best, strengths = min(ends, key=lambda end: end[0].cost(end[1]))
    without = _fitting(plain.frame, plain, data, noise).cost(plain.strengths)
    if best.cost(strengths) > without - _LIKELIER:
        return plain
    return fit(best.fitting.frame, data, noise, strengths, quick=True)


def _projections(plain: GaussianProcess) -> list[Projection]:
    """Of ranges that seem to do anything."""
    acts = plain.frame.spans & (plain.strengths.weights >= WEIGHT)
    pairs = itertools.combinations(np.flatnonzero(acts).tolist(), 2)
    return [Projection(one, two, slope) for one, two in pairs for slope in _SLOPES]


def _begin(plain: GaussianProcess, data: Data, noise: float, projection: Projection) -> _Begin:
    """With the projection in place of what its ranges do by themselves."""
    frame, known = plain.frame.with_projection(projection), plain.strengths
    fitting = _fitting(frame, plain, data, noise)
    weights, lengths = known.weights.copy(), known.lengths.copy()
    ranges = np.cumsum(plain.frame.spans) - 1
    for at in (projection.one, projection.two):
        weights[at] = min(weights[at], fitting.prior.weights[at])
        lengths[ranges[at]] = fitting.prior.lengths[ranges[at]]
    start = replace(known, weights=np.append(weights, _BEGIN), lengths=np.append(lengths, _LENGTH))
    return _Begin(projection, fitting, start)


def _fitting(frame: InputScaling, plain: GaussianProcess, data: Data, noise: float) -> Fit:
    fitting = Fit(frame, data, noise)
    fitting.excess = plain.excess
    return fitting


def _without_projections(old: GaussianProcess) -> Strengths:
    count = len(old.frame.projections)
    if not count:
        return old.strengths
    weights, lengths = old.strengths.weights[:-count], old.strengths.lengths[:-count]
    return replace(old.strengths, weights=weights, lengths=lengths)
