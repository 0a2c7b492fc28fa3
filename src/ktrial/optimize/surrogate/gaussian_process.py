"""The search's model of what the settings do: a Gaussian process whose prior says that most do little.

The logarithm of the objective, so that effects multiply, is

    level + drift(time) + sum over dimensions f_i(x_i) + sum over pairs f_ij(x_i, x_j) + noise

where every f is anchored at the defaults: it is 0 where its dimension is unchanged (the anchored
decomposition of Rabitz and Alis, J. Math. Chem. 25, 1999, with the additive kernels of Duvenaud, Nickisch
and Rasmussen, NeurIPS 2011). So f_i *is* what changing the knob alone does, and runs of the baseline speak
of level and drift only. A dimension's amplitude is estimated from the data, with a prior near nothing
(automatic relevance determination), and pairs inherit theirs from both (effect heredity): that is the
shrinkage that keeps a lucky run from winning. Runs that lie where the rest cannot explain them count as less
(outliers, by their leave-one-out residuals: Rasmussen and Williams 2006, section 5.4.2).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ktrial.optimize.encoding import Encoding, place_of

Array = NDArray[np.float64]

_LENGTH = 0.45
"""Over what part of a range an effect keeps its direction."""
_DRIFT_LENGTH = 0.15
"""Of the whole search."""


@dataclass(frozen=True)
class Data:
    """What was measured, one row a run."""

    places: Array
    """Shape (runs, dimensions): coordinates, or the number of the choice."""
    times: Array
    """Where in the search, 0 to 1; shape (runs,)."""
    scores: Array
    """Logarithms, larger is better; shape (runs,)."""


class InputScaling:
    """How configurations become rows of numbers."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding
        self._places: list[dict[str, float]] = [{} for _ in encoding.space.dimensions]
        defaults = [each.default for each in encoding.space.dimensions]
        self._chosen = np.array([each.range is None for each in encoding.space.dimensions])
        self._origin = np.array([self._place(at, value) for at, value in enumerate(defaults)])

    def rows(self, configurations: Sequence[Mapping[str, str]]) -> Array:
        """Shape (configurations, dimensions): coordinates; of a choice, its number (0: the default)."""
        table = np.tile(self._origin, (len(configurations), 1))
        for row, configuration in enumerate(configurations):
            for name, value in configuration.items():
                at = self.encoding.index[name]
                table[row, at] = self._place(at, value)
        return table

    def kernels(self, left: Array, right: Array) -> Array:
        """Each dimension's anchored kernel; shape (dimensions, left, right)."""
        near, far = left.T[:, :, None], right.T[:, None, :]
        kernels_by_dimension = np.empty((len(self._origin), len(left), len(right)))
        chosen, spans = self._chosen, ~self._chosen
        kernels_by_dimension[chosen] = (near[chosen] == far[chosen]) & (near[chosen] != 0)
        origin = self._origin[spans][:, None, None]
        kernels_by_dimension[spans] = _bell(near[spans] - far[spans])
        kernels_by_dimension[spans] -= _bell(near[spans] - origin) * _bell(far[spans] - origin)
        return kernels_by_dimension

    def _place(self, at: int, value: str) -> float:
        known = self._places[at]
        if value not in known:
            dimension = self.encoding.space.dimensions[at]
            codes = self.encoding.codes.get(dimension.name, {})
            known[value] = place_of(dimension, value) if dimension.range else float(codes[value])
        return known[value]


def _bell(distance: Array) -> Array:
    return np.asarray(np.exp(-0.5 * (distance / _LENGTH) ** 2))


@dataclass(frozen=True)
class Strengths:
    """The model's free numbers."""

    amplitudes: Array
    """Standard deviation of each dimension's effect; shape (dimensions,)."""
    pairs: float
    drift: float
    noise: float

    @property
    def logs(self) -> Array:
        """As one vector of logarithms."""
        values = np.concatenate([self.amplitudes, [self.pairs, self.drift, self.noise]])
        return np.asarray(np.log(values))

    @classmethod
    def of(cls, logs: Array) -> "Strengths":
        """From such a vector."""
        values = np.exp(logs)
        return cls(values[:-3], float(values[-3]), float(values[-2]), float(values[-1]))

    def covariance(self, kernels: Array) -> Array:
        """Of the settings' effects; `kernels` as Frame gives them."""
        scaled = kernels * (self.amplitudes**2)[:, None, None]
        total = scaled.sum(axis=0)
        return np.asarray(total + 0.5 * self.pairs * (total**2 - (scaled**2).sum(axis=0)))


def drift_kernel(left: Array, right: Array) -> Array:
    """Of unit variance; shape (left, right)."""
    return np.asarray(np.exp(-0.5 * ((left[:, None] - right[None, :]) / _DRIFT_LENGTH) ** 2))


@dataclass(frozen=True)
class GaussianProcess:
    """What the runs so far say about every configuration."""

    frame: InputScaling
    data: Data
    strengths: Strengths
    excess: Array
    """How many times its share of noise variance each run got for lying far out; 1 for most."""
    factor: Array
    """Lower Cholesky factor of the runs' covariance."""
    weights: Array
    """The covariance's inverse times the scores."""
    _alone: dict[tuple[str, str], int] = field(default_factory=dict)
    _parts: list[Array] = field(default_factory=list)
    _tabled: list[Array] = field(default_factory=list)

    def gain(self, configurations: Sequence[Mapping[str, str]]) -> tuple[Array, Array]:
        """Mean (shape (n,)) and covariance (n, n) of the logarithm of each one's ratio to the baseline."""
        rows = self.frame.rows(configurations)
        return self.gain_of(rows)

    def mean(self, configurations: Sequence[Mapping[str, str]]) -> Array:
        """The mean alone."""
        return np.asarray(self._towards(configurations)[0] @ self.weights)

    def gain_of(self, rows: Array) -> tuple[Array, Array]:
        """`gain`, of rows as Frame gives them."""
        from scipy.linalg import solve_triangular

        between = self._effects(rows, self.data.places)
        spread = solve_triangular(self.factor, between.T, lower=True)
        return between @ self.weights, self._effects(rows, rows) - spread.T @ spread

    def spread(self, configurations: Sequence[Mapping[str, str]]) -> Array:
        """Standard deviation of each one's log gain."""
        from scipy.linalg import solve_triangular

        between, own = self._towards(configurations)
        within = solve_triangular(self.factor, between.T, lower=True)
        return np.asarray(np.sqrt(np.maximum(own - (within**2).sum(axis=0), 0.0)))

    def contrast(
        self, configurations: Sequence[Mapping[str, str]], weights: Sequence[float]
    ) -> tuple[float, float]:
        """Mean and standard deviation of a weighted sum of gains: +1 and -1 for what one knob does."""
        mean, covariance = self.gain(configurations)
        factors = np.asarray(weights)
        return float(factors @ mean), math.sqrt(max(float(factors @ covariance @ factors), 0.0))

    def drifted(self) -> Array:
        """What drift added to each run's score."""
        return np.asarray(
            self.strengths.drift**2 * drift_kernel(self.data.times, self.data.times) @ self.weights
        )

    def _towards(self, configurations: Sequence[Mapping[str, str]]) -> tuple[Array, Array]:
        """Each one's covariance with the runs, and its variance; only what is changed counts."""
        changed = [[self._row(*each) for each in one.items()] for one in configurations]
        parts, squares = self._tables()
        picked = np.zeros((len(changed), len(parts)))
        for at, rows in enumerate(changed):
            picked[at, rows] = 1.0
        total = picked @ parts
        covariance = total + 0.5 * self.strengths.pairs * (total * total - picked @ squares)
        return covariance[:, :-1], covariance[:, -1]

    def _row(self, name: str, value: str) -> int:
        """Where the tables have one dimension at one value."""
        known = self._alone.get((name, value))
        if known is None:
            known = self._alone[name, value] = len(self._parts)
            at, rows = self.frame.encoding.index[name], self.frame.rows([{name: value}])
            kernel = self.frame.kernels(rows, np.concatenate([self.data.places, rows]))[at, 0]
            self._parts.append(kernel * self.strengths.amplitudes[at] ** 2)
        return known

    def _tables(self) -> tuple[Array, Array]:
        """A row for each dimension at a value: its covariance with each run, and last its variance; and the
        squares of that."""
        if not self._tabled or len(self._tabled[0]) < len(self._parts):
            parts = np.array(self._parts).reshape(-1, len(self.data.scores) + 1)
            self._tabled[:] = [parts, parts * parts]
        return self._tabled[0], self._tabled[1]

    def _effects(self, left: Array, right: Array) -> Array:
        return self.strengths.covariance(self.frame.kernels(left, right))
