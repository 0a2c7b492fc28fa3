"""The gain as sums of a few terms, by all runs: what is expected of configurations, and which knobs act."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ktrial.optimize.surrogate.gaussian_process import GaussianProcess
from ktrial.optimize.surrogate.sampled_terms import FACTORS, CentredRuns, Chains, acting
from ktrial.optimize.surrogate.shapes import Factors, Shapes
from ktrial.stats.typical_groups import EarlierEstimate

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TermModel:
    """Samples of sums, as likely as the runs make them."""

    shapes: Shapes
    factors: Factors
    """Of every term of every sum; shape (terms, factors)."""
    heights: Array
    """Logarithms; shape (terms,)."""
    sums: NDArray[np.int64]
    """To which each term belongs; shape (terms,)."""
    count: int
    """Sums."""
    acting: Array
    """The part of the sums that each dimension is in; shape (dimensions,)."""

    def expected(self, rows: Array) -> Array:
        """The mean log gain of each row of coordinates; shape (rows,)."""
        return np.asarray(self._terms(rows).sum(axis=0) / self.count)

    def drawn(self, rows: Array) -> Array:
        """What each sum has as its log gain; shape (sums, rows)."""
        gains = np.zeros((self.count, len(rows)))
        np.add.at(gains, self.sums, self._terms(rows))
        return gains

    def estimates(self, rows: Array) -> list[EarlierEstimate]:
        """The log gain of each row, with its doubt."""
        drawn = self.drawn(rows)
        both = zip(drawn.mean(axis=0), drawn.std(axis=0), strict=True)
        return [EarlierEstimate(float(mean), float(deviation)) for mean, deviation in both]

    def _terms(self, rows: Array) -> Array:
        beside = np.vstack([rows, self.shapes.origin])
        values = self.heights[:, None] * np.ones(len(beside))
        for at in range(FACTORS):
            some = np.flatnonzero(self.factors.kind[:, at] > 0)
            values[some] *= self.shapes.values(self.factors.at(some, at), beside)
        return np.asarray(values[:, :-1] - values[:, -1:])


def term_model(process: GaussianProcess, noise: float, seed: int) -> TermModel:
    """Of the runs that a Gaussian process has learnt from, with its drift and what it takes for outliers.

    `noise`: a run's standard deviation, as the baseline's runs have it. Deterministic.
    """
    shapes, data = Shapes(process.frame), process.data
    outlying = np.where(process.excess > 1, process.excess, 0.0)
    variances = np.maximum(noise**2, process.strengths.noise**2 * outlying)
    places = data.places[:, : len(shapes.origin)]
    runs = CentredRuns(places, data.scores - process.drifted(), 1 / variances)
    factors, heights = Chains(shapes, runs, np.random.default_rng([seed, 29])).run()
    sums, terms = np.nonzero((factors.kind > 0).any(axis=2))
    return TermModel(
        shapes=shapes,
        factors=factors.at(sums, terms),
        heights=heights[sums, terms],
        sums=sums,
        count=len(heights),
        acting=acting(factors, len(shapes.levels)).mean(axis=0),
    )
