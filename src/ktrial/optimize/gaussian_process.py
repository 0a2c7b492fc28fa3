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

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
    """What two ranges come to together: how far the second moved, less `slope` times the first."""

    first: int
    second: int
    """Dimensions, both ranges."""
    slope: float

    def of(self, first: Array, second: Array) -> Array:
        """Of how far each moved from its default."""
        return second - self.slope * first


class InputScaling:
    """How configurations become rows of numbers."""

    def __init__(self, encoding: Encoding, projections: tuple[Projection, ...] = ()) -> None:
        self.encoding = encoding
        self.projections = projections
        self._places: list[dict[str, float]] = [{} for _ in encoding.space.dimensions]
        defaults = [dimension.default for dimension in encoding.space.dimensions]
        spans = [dimension.range is not None for dimension in encoding.space.dimensions]
        self.spans = np.array(spans + [True] * len(projections))
        """Which dimensions, and projections after them, are ranges; shape (dimensions,)."""
        self.default_places = np.array([self.place(at, value) for at, value in enumerate(defaults)])
        """The baseline's coordinates."""
        self.origin = np.concatenate([self.default_places, np.zeros(len(projections))])
        """The baseline's row."""

    def with_projection(self, projection: Projection) -> "InputScaling":
        """The same, and this projection behind all else."""
        return InputScaling(self.encoding, (*self.projections, projection))

    def rows(self, configurations: Sequence[Mapping[str, str]]) -> Array:
        """Coordinates and projections; shape (configurations, dimensions + projections)."""
        return self.projected(self.coordinates(configurations))

    def projected(self, table: Array) -> Array:
        """Coordinates with the projections beside them; what has them already is given back."""
        if table.shape[1] > len(self.default_places) or not self.projections:
            return table
        moved = table - self.default_places
        beside = [
            projection.of(moved[:, projection.first], moved[:, projection.second])
            for projection in self.projections
        ]
        return np.column_stack([table, *beside])

    def coordinates(self, configurations: Sequence[Mapping[str, str]]) -> Array:
        """Without projections; a choice has its number (0: the default). Shape (n, dimensions)."""
        table = np.tile(self.default_places, (len(configurations), 1))
        for row, configuration in enumerate(configurations):
            for name, value in configuration.items():
                at = self.encoding.index[name]
                table[row, at] = self.place(at, value)
        return table

    def place(self, at: int, value: str) -> float:
        """A value's coordinate in the dimension, or its number."""
        places = self._places[at]
        if value not in places:
            dimension = self.encoding.space.dimensions[at]
            codes = self.encoding.codes.get(dimension.name, {})
            places[value] = place_of(dimension, value) if dimension.range else float(codes[value])
        return places[value]


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
        tables, variances = [], []
        for at, places in enumerate(levels):
            facts = {"origin": frame.origin[at], "length": lengths[at], "span": bool(frame.spans[at])}
            far = self.data.places[:, at]
            tables.append(1.0 + strengths.weights[at] * anchored(places, far, **facts))
            variances.append(1.0 + strengths.weights[at] * self._alone(places, at))
        for at, projection in enumerate(frame.projections, len(levels)):
            first, second = (
                levels[way] - frame.default_places[way] for way in (projection.first, projection.second)
            )
            places = projection.of(first[:, None], second[None, :]).ravel()
            facts = {"origin": 0.0, "length": lengths[at], "span": True}
            tables.append(1.0 + strengths.weights[at] * anchored(places, self.data.places[:, at], **facts))
            variances.append(1.0 + strengths.weights[at] * self._alone(places, at))
        return OnLevels(self, tables, variances, [len(level) for level in levels])

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
    variances: Sequence[Array]
    """1 + b k of each level with itself."""
    counts: Sequence[int]
    """Levels of each dimension."""

    def estimates(self, numbers: NDArray[np.int64]) -> tuple[Array, Array]:
        """Mean and standard deviation of each log gain. `numbers`: of levels, shape (n, dimensions)."""
        scale = self.process.strengths.scale**2
        product, variances = self.tables[0][numbers[:, 0]], self.variances[0][numbers[:, 0]]
        for at in range(1, numbers.shape[1]):
            product = product * self.tables[at][numbers[:, at]]
            variances = variances * self.variances[at][numbers[:, at]]
        for at, projection in enumerate(self.process.frame.projections, numbers.shape[1]):
            both = (
                numbers[:, projection.first] * self.counts[projection.second] + numbers[:, projection.second]
            )
            product = product * self.tables[at][both]
            variances = variances * self.variances[at][both]
        return self.process._estimates(scale * (product - 1.0), scale * (variances - 1.0))


# Fitting a Gaussian process to runs: weights and lengths of effects, drift, noise, and runs that count for
# less.

_LEVEL = 1.0
"""Prior standard deviation of the level: anything."""
_SCALE, _SCALE_SPREAD = 0.1, 0.8
WEIGHT, _WEIGHT_SPREAD = 0.12, 1.3
_LENGTH, _LENGTH_SPREAD = 0.4, 0.5
"""Medians of the priors, and the standard deviations of their logarithms; a weight's is that of its product
with the scale, which says how strong interactions are: these do not grow with the scale."""
_DRIFT, _DRIFT_SPREAD = 0.003, 0.8
"""The same of the machine's level over the search."""
_NOISE_SPREAD = 0.25
_OUTLYING = 3.0
"""Standard deviations from what the other runs say."""
_STEPS = 25
"""Steps of the fit at most, from where the last one ended."""
_FAR = 3.0
"""Standard deviations of the prior within which the free numbers stay."""
_TINY = 1e-9
_SHORT = 0.4
"""Of the usual length: where a fit begins that looks for narrow effects."""
_ROUGHER = 0.5
"""Of the likeliest lengths: those of a process that takes what ranges do for less smooth."""


def fit(
    frame: InputScaling, data: Data, noise: float, start: Strengths | None = None, *, quick: bool = False
) -> GaussianProcess:
    """The model of these runs. `noise` is what the baseline's runs say of it, as a standard deviation.

    `start` is where an earlier fit ended; `quick` takes it as it is. Deterministic.
    """
    fitting = Fit(frame, data, noise)
    strengths = start or fitting.prior
    if start is None or not quick:
        strengths = fitting.best_fitted(strengths)
        if fitting.look_for_outliers(strengths):
            strengths = fitting.fitted(strengths)
    fitting.look_for_outliers(strengths)
    return fitting.process(strengths)


def rougher(process: GaussianProcess, noise: float) -> GaussianProcess:
    """The model of the same runs where what ranges do keeps its direction over half the likeliest length.

    Few runs tell little of lengths, and the likeliest ones are too sure that between and beyond what was run
    there is nothing better (the acquisition over several hyperparameters: Snoek, Larochelle and Adams,
    Practical Bayesian optimization of machine learning algorithms, NeurIPS 2012).
    """
    fitting = Fit(process.frame, process.data, noise)
    fitting.excess = process.excess
    return fitting.process(replace(process.strengths, lengths=_ROUGHER * process.strengths.lengths))


class Fit:
    """One set of runs, and what each of them counts: `excess`, as in GaussianProcess."""

    def __init__(self, frame: InputScaling, data: Data, noise: float) -> None:
        self.frame, self._spans = frame, frame.spans
        self.data = data = replace(data, places=frame.projected(data.places))
        self.excess = np.ones(len(data.scores))
        spans = int(frame.spans.sum())
        count = len(frame.spans)
        self._count = count
        self._weights = slice(1, 1 + count)
        """Where the weights are among the logarithms."""
        self.prior = Strengths(_SCALE, np.full(count, WEIGHT), np.full(spans, _LENGTH), _DRIFT, noise)
        self._spreads = np.array(
            [_SCALE_SPREAD]
            + [_WEIGHT_SPREAD] * count
            + [_LENGTH_SPREAD] * spans
            + [_DRIFT_SPREAD, _NOISE_SPREAD]
        )
        places = data.places
        near, far = places.T[:, :, None], places.T[:, None, :]
        chosen = ~frame.spans
        self._same = ((near[chosen] == far[chosen]) & (near[chosen] != 0)).astype(np.float64)
        origin = frame.origin[frame.spans][:, None, None]
        self._apart = (near[frame.spans] - far[frame.spans]) ** 2
        self._off = (near[frame.spans] - origin) ** 2 + (far[frame.spans] - origin) ** 2
        self._time = drift_kernel(data.times, data.times)
        self._known = trend(data.times, data.times) + _LEVEL**2
        self._alone = (near == far).all(axis=0).sum(axis=1) == 1

    def covariance(self, strengths: Strengths) -> Array:
        """Of the runs' scores."""
        effects = strengths.scale**2 * (self._factors(strengths)[0].prod(axis=0) - 1.0)
        scatter = np.diag(strengths.noise**2 * self.excess)
        return np.asarray(effects + strengths.drift**2 * self._time + self._known + scatter)

    def process(self, strengths: Strengths) -> GaussianProcess:
        """The model with these strengths."""
        inverse = np.linalg.inv(np.linalg.cholesky(self.covariance(strengths)))
        weights = inverse.T @ (inverse @ self.data.scores)
        return GaussianProcess(self.frame, self.data, strengths, self.excess, inverse, weights)

    def fitted(self, start: Strengths) -> Strengths:
        """The most likely strengths, with their prior."""
        from scipy.optimize import minimize

        prior, far = self.prior.logs, _FAR * self._spreads
        lower = prior - far
        lower[self._weights] -= far[0]
        bounds = list(zip(lower, prior + far, strict=True))
        optimum = minimize(
            self._evidence,
            start.logs,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": _STEPS},
        )
        return Strengths.of(optimum.x, self._count)

    def best_fitted(self, start: Strengths) -> Strengths:
        """The likeliest, from there and from the prior with short lengths: it has several hills."""
        short = replace(self.prior, lengths=_SHORT * self.prior.lengths)
        ends = [self.fitted(begin) for begin in (start, short)]
        return min(ends, key=self.cost)

    def cost(self, strengths: Strengths) -> float:
        """Minus the logarithm of how likely these strengths are after the runs, but for a constant."""
        return self._evidence(strengths.logs)[0]

    def _factors(self, strengths: Strengths) -> tuple[Array, Array]:
        """1 + b k of each dimension, and of ranges the slope of k over the logarithm of the length."""
        squared = (strengths.lengths**2)[:, None, None]
        bell = np.exp(-0.5 * self._apart / squared)
        both = np.exp(-0.5 * self._off / squared)
        factors = np.empty((self._count, *self._time.shape))
        factors[~self._spans] = self._same
        factors[self._spans] = bell - both
        factors *= strengths.weights[:, None, None]
        factors += 1.0
        return factors, (bell * self._apart - both * self._off) / squared

    def _evidence(self, logs: Array) -> tuple[float, Array]:
        """Minus the logarithm of the marginal likelihood and the prior, with its gradient.

        Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), equations 5.8 and 5.9.
        """
        strengths = Strengths.of(logs, self._count)
        factors, slopes = self._factors(strengths)
        scale = strengths.scale**2
        product = scale * factors.prod(axis=0)
        time, scatter = strengths.drift**2 * self._time, strengths.noise**2 * self.excess
        covariance = product - scale + time + self._known
        covariance[np.diag_indices_from(covariance)] += scatter
        root = np.linalg.cholesky(covariance)
        inverse = np.linalg.inv(root)
        inverse = inverse.T @ inverse
        weights = inverse @ self.data.scores
        slope = np.outer(weights, weights) - inverse
        safe = np.where(np.abs(factors) < _TINY, _TINY, factors)
        shares = (slope * product) / safe
        along = 0.5 * ((factors - 1.0) * shares).sum(axis=(1, 2))
        spans = self._spans
        lengths = 0.5 * (slopes * shares[spans]).sum(axis=(1, 2)) * strengths.weights[spans]
        size = (slope * (product - scale)).sum()
        noises = [(slope * time).sum(), float(np.diag(slope) @ scatter)]
        gradient = -np.concatenate([[size], along, lengths, noises])
        value = 0.5 * float(self.data.scores @ weights) + float(np.log(np.diag(root)).sum())
        unlikely, pull = self._prior_cost(logs)
        return value + unlikely, gradient + pull

    def _prior_cost(self, logs: Array) -> tuple[float, Array]:
        """Minus the logarithm of the prior, with its gradient."""
        away = logs - self.prior.logs
        away[self._weights] += away[0]
        away /= self._spreads
        pull = away / self._spreads
        pull[0] += pull[self._weights].sum()
        return 0.5 * float(away @ away), pull

    def look_for_outliers(self, strengths: Strengths) -> bool:
        """Each run's share of noise: more for one that the others cannot explain. Whether that has changed.

        The leave-one-out residual is that of the model which gives the run no weight of its own.
        """
        before, scores = self.excess, self.data.scores
        self.excess = np.ones(len(scores))
        for _ in range(max(1, len(scores) // 8)):
            inverse = np.linalg.inv(self.covariance(strengths))
            weights, alone = inverse @ scores, np.diag(inverse)
            apart = np.abs(weights) / np.sqrt(alone)
            # A run that looks too good is run again before it is doubted: it may be the answer.
            believed = (self.excess > 1) | (self._alone & (weights > 0))
            worst = int(np.argmax(np.where(believed, 0.0, apart)))
            if believed[worst] or apart[worst] < _OUTLYING:
                break
            residual = weights[worst] / alone[worst]
            self.excess[worst] = max(4.0, (residual / strengths.noise) ** 2)
        return not np.allclose(before, self.excess, rtol=0.2)


# Two ranges that act by what they come to together: their difference or their sum.
#
# Where only the ratio of two limits matters, or one queue has to grow with another, the gain lies along an
# oblique line: a product of one function for each range needs many runs to say so, a function of one
# projection few. Whether there is such a pair, the runs decide: a projection is taken where with it they
# are so much likelier (projection pursuit: Friedman and Stuetzle, J. American Statistical Association 76,
# 1981; the evidence of a model: MacKay, Neural Computation 4, 1992).

_SLOPES = (1.0, -1.0, 0.5, -0.5, 2.0, -2.0)
"""Of the oblique line, in parts of the ranges."""
_SLOPE_SPREAD = 0.5
"""Standard deviation of the binary logarithm of a slope's size: ranges that go together go alike."""
_LIKELIER = 4.0
"""By so much must the logarithm of the likelihood be larger with a projection."""
_FEWEST_RUNS = 12
_TRIED = 2
"""Projections that are fitted, of those that look likeliest as they begin."""
_ALONG, _BEGIN = 0.2, 1.0
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
    earlier = old.frame.projections if old else ()
    begins = []
    for projection in dict.fromkeys([*_projections(plain), *earlier]):
        begin = _begin(plain, data, noise, projection)
        begins.append(begin._replace(start=old.strengths) if old and projection in earlier else begin)
    begins.sort(key=lambda begin: begin.cost(begin.start))
    return _likeliest(plain, data, noise, begins[:_TRIED])


def _likeliest(plain: GaussianProcess, data: Data, noise: float, begins: Sequence[_Begin]) -> GaussianProcess:
    ends = [(begin, begin.fitting.fitted(begin.start)) for begin in begins]
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
    return [Projection(first, second, slope) for first, second in pairs for slope in _SLOPES]


def _begin(plain: GaussianProcess, data: Data, noise: float, projection: Projection) -> _Begin:
    """With the projection in place of what its ranges do by themselves."""
    frame, strengths = plain.frame.with_projection(projection), plain.strengths
    fitting = _fitting(frame, plain, data, noise)
    weights, lengths = strengths.weights.copy(), strengths.lengths.copy()
    ranges = np.cumsum(plain.frame.spans) - 1
    for at in (projection.first, projection.second):
        weights[at] = min(weights[at], fitting.prior.weights[at])
        lengths[ranges[at]] = fitting.prior.lengths[ranges[at]]
    start = replace(strengths, weights=np.append(weights, _BEGIN), lengths=np.append(lengths, _ALONG))
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
