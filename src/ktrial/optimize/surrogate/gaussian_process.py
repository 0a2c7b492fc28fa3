"""The search's model of what the settings do: a Gaussian process whose prior says that most do little.

The logarithm of the objective, so that effects multiply, is

    level + drift(time) + f(settings) + noise

and f's covariance is s² [∏ (1 + b_i k_i) − 1], the product over all knobs: so f is a sum of one function
for each knob, each pair, each three… (the analysis-of-variance kernel: Stitson and others 1999; Durrande
and others, J. Multivariate Analysis 115, 2013). Every k_i is anchored at the defaults: it is 0 where the
knob is unchanged (Rabitz and Alis, J. Math. Chem. 25, 1999). So f *is* the gain, and runs of the baseline
speak of level and drift only. A knob's weight b_i and, of a range, the length over which it keeps its
direction are estimated from the data (automatic relevance determination), with a prior by which most
weights are small: that is the shrinkage that keeps a lucky run from winning. Interactions inherit their
size from their knobs (effect heredity), and two knobs that act only together cost the model no more than
two that act alone. Runs that lie where the rest cannot explain them count as less (outliers, by their
leave-one-out residuals: Rasmussen and Williams 2006, section 5.4.2)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ktrial.optimize.encoding import Encoding, place_of

Array = NDArray[np.float64]

_DRIFT_LENGTH = 0.15
"""Of the whole search."""
_SLOPE = 0.05
"""Standard deviation of what a steady drift comes to over the whole search, as a logarithm."""


@dataclass(frozen=True)
class Data:
    """What was measured, one row a run."""

    places: Array
    """Coordinates, or the number of the choice; in a process projections stand behind them; shape (runs,
    dimensions)."""
    times: Array
    """Where in the search, 0 to 1; shape (runs,)."""
    scores: Array
    """Logarithms, larger is better; shape (runs,)."""


class Projection(NamedTuple):
    """What two ranges come to together: how far one moved, less `slope` times how far the other did."""

    one: int
    two: int
    """Dimensions, both ranges."""
    slope: float

    def of(self, one: Array, two: Array) -> Array:
        """Of how far each moved from its default."""
        return two - self.slope * one


class InputScaling:
    """How configurations become rows of numbers."""

    def __init__(self, encoding: Encoding, projections: tuple[Projection, ...] = ()) -> None:
        self.encoding = encoding
        self.projections = projections
        self._places: list[dict[str, float]] = [{} for _ in encoding.space.dimensions]
        defaults = [each.default for each in encoding.space.dimensions]
        spans = [each.range is not None for each in encoding.space.dimensions]
        self.spans = np.array(spans + [True] * len(projections))
        """Which dimensions, and projections after them, are ranges; shape (dimensions,)."""
        self.own = np.array([self.place(at, value) for at, value in enumerate(defaults)])
        """The baseline's coordinates."""
        self.origin = np.concatenate([self.own, np.zeros(len(projections))])
        """The baseline's row."""

    def with_projection(self, projection: Projection) -> "InputScaling":
        """The same, and this projection behind all else."""
        return InputScaling(self.encoding, (*self.projections, projection))

    def rows(self, configurations: Sequence[Mapping[str, str]]) -> Array:
        """Coordinates and projections; shape (configurations, dimensions + projections)."""
        return self.projected(self.coordinates(configurations))

    def projected(self, table: Array) -> Array:
        """Coordinates with the projections beside them; what has them already is given back."""
        if table.shape[1] > len(self.own) or not self.projections:
            return table
        moved = table - self.own
        beside = [each.of(moved[:, each.one], moved[:, each.two]) for each in self.projections]
        return np.column_stack([table, *beside])

    def coordinates(self, configurations: Sequence[Mapping[str, str]]) -> Array:
        """Without projections; a choice has its number (0: the default). Shape (n, dimensions)."""
        table = np.tile(self.own, (len(configurations), 1))
        for row, configuration in enumerate(configurations):
            for name, value in configuration.items():
                at = self.encoding.index[name]
                table[row, at] = self.place(at, value)
        return table

    def place(self, at: int, value: str) -> float:
        """A value's coordinate in the dimension, or its number."""
        known = self._places[at]
        if value not in known:
            dimension = self.encoding.space.dimensions[at]
            codes = self.encoding.codes.get(dimension.name, {})
            known[value] = place_of(dimension, value) if dimension.range else float(codes[value])
        return known[value]


@dataclass(frozen=True)
class Strengths:
    """The model's free numbers."""

    scale: float
    """s: standard deviation of what a knob of weight 1 does."""
    weights: Array
    """b: shape (dimensions,)."""
    lengths: Array
    """Of ranges, as parts of the range; shape (ranges,)."""
    drift: float
    noise: float

    @property
    def logs(self) -> Array:
        """As one vector of logarithms."""
        first, last = [self.scale], [self.drift, self.noise]
        return np.asarray(np.log(np.concatenate([first, self.weights, self.lengths, last])))

    @classmethod
    def of(cls, logs: Array, dimensions: int) -> "Strengths":
        """From such a vector."""
        values = np.exp(logs)
        weights, lengths = values[1 : 1 + dimensions], values[1 + dimensions : -2]
        return cls(float(values[0]), weights, lengths, float(values[-2]), float(values[-1]))

    def all_lengths(self, spans: NDArray[np.bool_]) -> Array:
        """One for each dimension; 1 for choices, which have none."""
        lengths = np.ones(len(spans))
        lengths[spans] = self.lengths
        return lengths


def anchored(near: Array, far: Array, origin: float, length: float, *, span: bool) -> Array:
    """One dimension's kernel between coordinates; shape (near, far)."""
    if not span:
        return np.asarray((near[:, None] == far[None, :]) & (near[:, None] != 0), dtype=np.float64)
    bell = np.exp(-0.5 * ((near[:, None] - far[None, :]) / length) ** 2)
    return np.asarray(
        bell - np.outer(_bell((near - origin) / length), _bell((far - origin) / length)), dtype=np.float64
    )


def _bell(distance: Array) -> Array:
    return np.asarray(np.exp(-0.5 * distance**2))


def trend(left: Array, right: Array) -> Array:
    """Covariance of a steady drift: a machine that gets slower all the time; shape (left, right)."""
    return np.asarray(_SLOPE**2 * np.outer(left - 0.5, right - 0.5), dtype=np.float64)


def drift_kernel(left: Array, right: Array) -> Array:
    """Of one that comes and goes, of unit variance; shape (left, right)."""
    return np.asarray(np.exp(-0.5 * ((left[:, None] - right[None, :]) / _DRIFT_LENGTH) ** 2))


@dataclass(frozen=True)
class GaussianProcess:
    """What the runs so far say about every configuration."""

    frame: InputScaling
    data: Data
    strengths: Strengths
    excess: Array
    """How many times its share of noise variance each run got for lying far out; 1 for most."""
    inverse: Array
    """The inverse of the lower Cholesky factor of the runs' covariance."""
    weights: Array
    """The covariance's inverse times the scores."""

    def gain(self, configurations: Sequence[Mapping[str, str]]) -> tuple[Array, Array]:
        """Mean (shape (n,)) and covariance (n, n) of the logarithm of each one's ratio to the baseline."""
        return self.gain_of(self.frame.rows(configurations))

    def gain_of(self, rows: Array) -> tuple[Array, Array]:
        """`gain`, of rows as InputScaling gives them."""
        between = self._effects(rows, self.data.places)
        spread = between @ self.inverse.T
        return between @ self.weights, self._effects(rows, rows) - spread @ spread.T

    def estimates(self, rows: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of each row's log gain; shape (rows,) each."""
        between = self._effects(rows, self.data.places)
        return self._estimates(between, self._variances(rows))

    def mean(self, configurations: Sequence[Mapping[str, str]]) -> Array:
        """The mean alone."""
        rows = self.frame.rows(configurations)
        return np.asarray(self._effects(rows, self.data.places) @ self.weights)

    def spread(self, configurations: Sequence[Mapping[str, str]]) -> Array:
        """Standard deviation of each one's log gain."""
        return self.estimates(self.frame.rows(configurations))[1]

    def contrast(
        self, configurations: Sequence[Mapping[str, str]], weights: Sequence[float]
    ) -> tuple[float, float]:
        """Mean and standard deviation of a weighted sum of gains: +1 and -1 for what one knob does."""
        mean, covariance = self.gain(configurations)
        factors = np.asarray(weights)
        return float(factors @ mean), math.sqrt(max(float(factors @ covariance @ factors), 0.0))

    def drifted(self) -> Array:
        """What drift added to each run's score."""
        return self._drifts(self.data.times, self.data.times) @ self.weights

    def _drifts(self, left: Array, right: Array) -> Array:
        return np.asarray(self.strengths.drift**2 * drift_kernel(left, right) + trend(left, right))

    def on(self, levels: Sequence[Array]) -> "OnLevels":
        """The same for configurations whose coordinates are from these, told by their numbers."""
        frame, strengths = self.frame, self.strengths
        lengths = strengths.all_lengths(frame.spans)
        tables, own = [], []
        for at, places in enumerate(levels):
            facts = {"origin": frame.origin[at], "length": lengths[at], "span": bool(frame.spans[at])}
            far = self.data.places[:, at]
            tables.append(1.0 + strengths.weights[at] * anchored(places, far, **facts))
            own.append(1.0 + strengths.weights[at] * self._alone(places, at))
        for at, each in enumerate(frame.projections, len(levels)):
            one, two = (levels[way] - frame.own[way] for way in (each.one, each.two))
            places = each.of(one[:, None], two[None, :]).ravel()
            facts = {"origin": 0.0, "length": lengths[at], "span": True}
            tables.append(1.0 + strengths.weights[at] * anchored(places, self.data.places[:, at], **facts))
            own.append(1.0 + strengths.weights[at] * self._alone(places, at))
        return OnLevels(self, tables, own, [len(each) for each in levels])

    def _estimates(self, between: Array, variances: Array) -> tuple[Array, Array]:
        within = between @ self.inverse.T
        left = variances - np.einsum("ij,ij->i", within, within)
        return between @ self.weights, np.sqrt(np.maximum(left, 0.0))

    def _alone(self, places: Array, at: int) -> Array:
        """The kernel's own variance of one dimension at each place."""
        if not self.frame.spans[at]:
            return np.asarray(places != 0, dtype=np.float64)
        apart = (places - self.frame.origin[at]) / self._lengths[at]
        return 1.0 - _bell(apart) ** 2

    @cached_property
    def _lengths(self) -> Array:
        return self.strengths.all_lengths(self.frame.spans)

    def _variances(self, rows: Array) -> Array:
        product = np.ones(len(rows))
        for at, weight in enumerate(self.strengths.weights):
            product *= 1.0 + weight * self._alone(rows[:, at], at)
        return self.strengths.scale**2 * (product - 1.0)

    def _effects(self, left: Array, right: Array) -> Array:
        product = np.ones((len(left), len(right)))
        for at, weight in enumerate(self.strengths.weights):
            facts = {"length": self._lengths[at], "span": bool(self.frame.spans[at])}
            product *= 1.0 + weight * anchored(left[:, at], right[:, at], self.frame.origin[at], **facts)
        return np.asarray(self.strengths.scale**2 * (product - 1.0))


@dataclass(frozen=True)
class OnLevels:
    """A process's estimates for thousands of configurations: each dimension's kernel is looked up."""

    process: GaussianProcess
    tables: Sequence[Array]
    """For each dimension: 1 + b k between its levels and the runs; shape (levels, runs)."""
    own: Sequence[Array]
    """1 + b k of each level with itself."""
    counts: Sequence[int]
    """Levels of each dimension."""

    def estimates(self, numbers: NDArray[np.int64]) -> tuple[Array, Array]:
        """Mean and standard deviation of each log gain. `numbers`: of levels, shape (n, dimensions)."""
        scale = self.process.strengths.scale**2
        product, own = self.tables[0][numbers[:, 0]], self.own[0][numbers[:, 0]]
        for at in range(1, numbers.shape[1]):
            product = product * self.tables[at][numbers[:, at]]
            own = own * self.own[at][numbers[:, at]]
        for at, each in enumerate(self.process.frame.projections, numbers.shape[1]):
            both = numbers[:, each.one] * self.counts[each.two] + numbers[:, each.two]
            product = product * self.tables[at][both]
            own = own * self.own[at][both]
        return self.process._estimates(scale * (product - 1.0), scale * (own - 1.0))
