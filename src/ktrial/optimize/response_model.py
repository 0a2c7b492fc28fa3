"""A space as a finite lattice: every dimension's values numbered, so that thousands of configurations are
one table.

A choice has its values, a range up to 41 places from end to end, and every dimension its default as number
0. Here configurations are drawn, changed a little, and checked against the constraints, all at once."""

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ktrial.model.comparison import Comparison
from ktrial.model.tuning import Configuration, Dimension, FrontPoint, Observation, OnlyOneOf, Order
from ktrial.optimize.encoding import Encoding, choices_of, value_at
from ktrial.optimize.evaluation_log import ObjectiveFunction
from ktrial.optimize.gaussian_process import (
    Array,
    Data,
    GaussianProcess,
    InputScaling,
    fit,
    fit_projected,
    rougher,
)

Numbers = NDArray[np.int64]


_FINEST = 41
_NEAR = 0.08
"""Standard deviation of a small step along a range."""


class Lattice:
    """Configurations as rows of numbers of levels; shape (n, dimensions)."""

    def __init__(self, encoding: Encoding, frame: InputScaling) -> None:
        self.encoding = encoding
        self.values = [list(_levels(dimension)) for dimension in encoding.space.dimensions]
        self._frame = frame
        self._numbers = [{value: at for at, value in enumerate(values)} for values in self.values]

    @property
    def places(self) -> list[NDArray[np.float64]]:
        """Each dimension's levels as the model has them."""
        return [
            np.array([self._frame.place(at, value) for value in values])
            for at, values in enumerate(self.values)
        ]

    def coordinates(self, table: Numbers) -> NDArray[np.float64]:
        """Each row's, as the model has them; shape (n, dimensions)."""
        return np.column_stack([places[table[:, at]] for at, places in enumerate(self.places)])

    def rows(self, configurations: Sequence[Mapping[str, str]]) -> Numbers:
        """Of these; a value that has no number yet gets one."""
        table: Numbers = np.zeros((len(configurations), len(self.values)), dtype=np.int64)
        for row, configuration in enumerate(configurations):
            for name, value in configuration.items():
                at = self.encoding.index[name]
                table[row, at] = self._number(at, value)
        return table

    def configuration(self, row: Numbers) -> Configuration:
        """What a row means."""
        names = self.encoding.space.names
        return {names[at]: self.values[at][level] for at, level in enumerate(row) if level}

    def drawn(self, rng: np.random.Generator, count: int, *, at_default: float) -> Numbers:
        """At random; each dimension stays at its default with this probability."""
        sizes = np.array([len(values) for values in self.values])
        table: Numbers = (rng.random((count, len(sizes))) * sizes).astype(np.int64)
        table[rng.random(table.shape) < at_default] = 0
        return table

    def changed(self, rng: np.random.Generator, row: Numbers, count: int) -> Numbers:
        """Like the row but for one to three dimensions: elsewhere, near by, or back at the default."""
        table = np.tile(row, (count, 1))
        dimensions = len(row)
        drawn = self.drawn(rng, count, at_default=0.25)
        near = self._near(rng, row, count)
        some = rng.random(table.shape) < rng.choice([1.0, 2.0, 3.0], (count, 1)) / dimensions
        steps = rng.random(table.shape) < 0.5
        table[some] = np.where(steps, near, drawn)[some]
        return table

    def around(self, row: Numbers) -> Numbers:
        """Every row that differs in one dimension; of a group of which one may be changed, the rest goes
        back."""
        rows = []
        for at, values in enumerate(self.values):
            table = np.tile(row, (len(values), 1))
            table[:, list(self._rivals[at])] = 0
            table[:, at] = np.arange(len(values))
            table[0] = row
            table[0, at] = 0
            rows.append(np.delete(table, row[at], axis=0))
        return np.concatenate(rows)

    def plane(self, row: Numbers, first: int, second: int) -> Numbers:
        """Every row that has any levels in these two dimensions, and is the same in all others."""
        counts = len(self.values[first]), len(self.values[second])
        table = np.tile(row, (counts[0] * counts[1], 1))
        table[:, first] = np.repeat(np.arange(counts[0]), counts[1])
        table[:, second] = np.tile(np.arange(counts[1]), counts[0])
        return table

    def holding(self, table: Numbers) -> Numbers:
        """The rows that meet every constraint, and change anything."""
        good = (table != 0).any(axis=1)
        for constraint in self.encoding.space.constraints:
            if isinstance(constraint, OnlyOneOf):
                at = [self.encoding.index[name] for name in constraint.names if name in self.encoding.index]
                good &= (table[:, at] != 0).sum(axis=1) <= 1
            else:
                good &= self._ordered(constraint, table)
        held: Numbers = table[good]
        return held

    def _ordered(self, order: Order, table: Numbers) -> NDArray[np.bool_]:
        left, right = (
            self._amounts(order.in_force.get(text, text), table) for text in (order.left, order.right)
        )
        relations = {
            "<": np.less,
            "<=": np.less_equal,
            "==": np.equal,
            ">=": np.greater_equal,
            ">": np.greater,
        }
        held = relations[order.relation](left, right)
        # What is no number (`cubic`, a kernel's `auto`) has no order.
        return np.asarray(held | np.isnan(left) | np.isnan(right), dtype=np.bool_)

    def _amounts(self, text: str, table: Numbers) -> NDArray[np.float64]:
        at = self.encoding.index.get(text)
        if at is None:
            return np.full(len(table), _number(text))
        return np.array([_number(value) for value in self.values[at]])[table[:, at]]

    def _near(self, rng: np.random.Generator, row: Numbers, count: int) -> Numbers:
        """A small step along each range; of a choice, any."""
        columns = []
        for at, places in enumerate(self.places):
            if self.encoding.space.dimensions[at].range is None:
                columns.append((rng.random(count) * len(places)).astype(np.int64))
                continue
            targets = places[row[at]] + _NEAR * rng.standard_normal(count)
            columns.append(np.abs(places[None, :] - targets[:, None]).argmin(axis=1))
        return np.stack(columns, axis=1)

    @cached_property
    def _rivals(self) -> list[tuple[int, ...]]:
        groups = [
            constraint.names
            for constraint in self.encoding.space.constraints
            if isinstance(constraint, OnlyOneOf)
        ]
        index = self.encoding.index
        return [
            tuple(index[near] for names in groups if name in names for near in names if near in index)
            for name in self.encoding.space.names
        ]

    def _number(self, at: int, value: str) -> int:
        numbers = self._numbers[at]
        if value not in numbers:
            numbers[value] = len(self.values[at])
            self.values[at].append(value)
        return numbers[value]


def _levels(dimension: Dimension) -> Sequence[str]:
    if dimension.range is None:
        return choices_of(dimension)
    along = (value_at(dimension.range, place) for place in np.linspace(0, 1, _FINEST))
    return tuple(dict.fromkeys((dimension.default, *along)))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


# What the search believes after the runs so far, and the best that it can think of.

PRICE = 0.2
"""What each changed knob must bring, in margins, before the search changes it."""
_RISKY, _FAILING = 0.3, 0.1
_POOL, _PARENTS, _CHILDREN, _CLIMBS, _STEPS = 400, 6, 100, 3, 12
_AT_DEFAULT = 0.6
_SAFE = 0.8
"""Probability of keeping the guards from which a configuration may be the answer."""
_USUAL = 0.05
"""What the model takes for the usual size of an effect: a guard's metric is scaled to it."""


class Surrogate:
    """A response surface for each objective; one for each guard and for failure where there is something to
    learn.
    """

    def __init__(self, encoding: Encoding, scores: ObjectiveFunction, noise: float, horizon: int) -> None:
        self.encoding = encoding
        self.scores = scores
        self.noise = noise
        self._frame = InputScaling(encoding)
        self.lattice = Lattice(encoding, self._frame)
        self._horizon = max(horizon, 1)
        self.responses: list[GaussianProcess] = []
        self.risk: GaussianProcess | None = None
        self.limits: dict[int, _Limit] = {}
        self.seen: tuple[Observation, ...] = ()

    def learn(self, observations: Sequence[Observation], *, quick: bool = False) -> None:
        """Fit again, to all of these runs; `quick` keeps the strengths of effects and noise."""
        self.seen = tuple(observations)
        good = [run for run in observations if not self.scores.failure(run)]
        values = np.array([self.scores.of(run) for run in good])
        before: Sequence[GaussianProcess | None] = self.responses or [None] * values.shape[1]
        self.responses = [
            self._fitted(good, values[:, at], old, quick=quick) for at, old in enumerate(before)
        ]
        self.risk = self._risks(observations)
        for at in range(len(self.scores.goal.guards)):
            self._learn_limit(at, good, quick=quick)

    def _fitted(
        self, runs: Sequence[Observation], values: Array, old: GaussianProcess | None, *, quick: bool
    ) -> GaussianProcess:
        places = self._frame.coordinates([run.configuration for run in runs])
        times = np.array([run.order / self._horizon for run in runs])
        # The level's prior is centred where the runs are; the baseline's own level is then estimated.
        data = Data(places, times, values - float(np.median(values)))
        return fit_projected(self._frame, data, self.noise, old, quick=quick)

    def _learn_limit(self, at: int, runs: Sequence[Observation], *, quick: bool) -> None:
        """How a guard's metric depends on the settings."""
        guard = self.scores.goal.guards[at]
        values = np.array([run.values[guard.metric] for run in runs])
        spread = float(np.std(values))
        if guard.relation == "==" or not spread:
            self.limits.pop(at, None)
            return
        base = float(np.median([run.values[guard.metric] for run in runs if not run.configuration]))
        sign = 1.0 if guard.relation in ("<", "<=") else -1.0
        scale = _USUAL / spread
        old = self.limits.get(at)
        scaled = (values - base) * scale
        places = self._frame.coordinates([run.configuration for run in runs])
        data = Data(places, np.zeros(len(runs)), scaled)
        start = old.process.strengths if old else None
        process = fit(self._frame, data, 0.1 * _USUAL, start, quick=quick)
        level = float(np.mean(scaled - process.mean([run.configuration for run in runs])))
        self.limits[at] = _Limit(process, sign, (guard.bound - base) * scale - level)

    def _risks(self, observations: Sequence[Observation]) -> GaussianProcess | None:
        """How near to what failed, or exceeded a guard that is no limit: 0 to 1."""
        unsafe = np.array([self._fails(run) for run in observations], dtype=np.float64)
        if not unsafe.any() or unsafe.all():
            return None
        places = self._frame.coordinates([run.configuration for run in observations])
        times = np.zeros(len(observations))
        # The model expects effects of some percent: failure is made one of 10 %.
        return fit(self._frame, Data(places, times, _FAILING * unsafe), 0.1 * _FAILING)

    def _fails(self, seen: Observation) -> bool:
        exact = [guard for guard in self.scores.goal.guards if guard.relation == "=="]
        broken = (
            not limit.keeps(seen.values[limit.metric]) for limit in exact if limit.metric in seen.values
        )
        return bool(self.scores.failure(seen)) or any(broken)

    def unsafe(self, seen: Observation) -> bool:
        """Whether the run failed, or exceeded a guard."""
        return bool(self.scores.failure(seen)) or self.scores.excess(seen) > 0

    def rougher(self) -> "Surrogate":
        """The same after the same runs, that takes what ranges do for less smooth than is likeliest."""
        copied = copy.copy(self)
        copied.responses = [rougher(response, self.noise) for response in self.responses]
        return copied

    def safe(self, configuration: Configuration) -> bool:
        """Whether it is as likely to keep the guards, and to run, as an answer has to be."""
        return not configuration or bool(self.safe_rows(self.lattice.rows([configuration]))[0])

    def safe_rows(self, table: Numbers) -> NDArray[np.bool_]:
        """The same of rows of the lattice; shape (rows,)."""
        if not self.limits and self.risk is None:
            return np.ones(len(table), dtype=np.bool_)
        return np.asarray(_Worth(self, 0.0).chances(table) >= _SAFE)

    def gains(self, configurations: Sequence[Configuration]) -> Array:
        """Expected log gain of each, over all objectives together."""
        return np.asarray(sum(response.mean(configurations) for response in self.responses))

    def spread(self, configurations: Sequence[Configuration]) -> Array:
        """Standard deviation of what `gains` says."""
        return np.asarray(np.sqrt(sum(response.spread(configurations) ** 2 for response in self.responses)))

    def best(self, *, bold: bool = False, turn: int = 0, price: float = PRICE) -> Configuration:
        """The configuration that promises most: the largest expected gain, or with `bold` the largest
        expected improvement over it. `turn` seeds what is looked at."""
        rng = np.random.default_rng([len(self.seen), turn, 17])
        run = self.lattice.rows([{}, *self.distinct()])
        worth = _Worth(self, price * self.scores.goal.margin)
        expected = worth.expected(run)
        order = np.argsort(-expected, kind="stable")
        if bold:
            worth.incumbent = float(max(expected.max(), 0.0))
        value = worth.improvement if bold else worth.expected
        parents = [run[at] for at in order[:_PARENTS]]
        pool = [run, self.lattice.drawn(rng, _POOL, at_default=_AT_DEFAULT)]
        pool += [self.lattice.changed(rng, parent, _CHILDREN) for parent in parents]
        table = np.unique(self.lattice.holding(np.concatenate(pool)), axis=0)
        top = table[np.argsort(-value(table), kind="stable")[:_CLIMBS]]
        ends = np.array([self._climbed(row, value) for row in top])
        end = ends[int(np.argmax(value(ends)))]
        if not bold and expected[order[0]] >= value(end[None, :])[0]:
            end = run[order[0]]
        return self.encoding.space.only_changes(self.lattice.configuration(end))

    def _climbed(self, row: Numbers, value: Callable[[Numbers], Array]) -> Numbers:
        """Step by step to the best of all that differ in one dimension."""
        worth = float(value(row[None, :])[0])
        for _ in range(_STEPS):
            near = self.lattice.holding(np.concatenate([self.lattice.around(row), *self._along(row)]))
            if not len(near):
                break
            values = value(near)
            at = int(np.argmax(values))
            if values[at] <= worth + 1e-7:
                break
            row, worth = near[at], float(values[at])
        return row

    def _along(self, row: Numbers) -> list[Numbers]:
        """Rows that differ in both ranges of a projection: along it no single step leads upwards."""
        pairs = {
            (projection.first, projection.second)
            for response in self.responses
            for projection in response.frame.projections
        }
        return [self.lattice.plane(row, first, second) for first, second in sorted(pairs)]

    def distinct(self) -> list[Configuration]:
        """Every configuration that was run, and is not known to be unsafe."""
        bad = [run.configuration for run in self.seen if self.unsafe(run)]
        configurations: list[Configuration] = []
        for run in self.seen:
            if run.configuration and run.configuration not in configurations and run.configuration not in bad:
                configurations.append(run.configuration)
        return configurations


class _Limit(NamedTuple):
    """A guard's metric as the model has it, and what it must not pass."""

    process: GaussianProcess
    sign: float
    bound: float


class _Worth:
    """What configurations promise."""

    incumbent = 0.0

    def __init__(self, surrogate: Surrogate, price: float) -> None:
        self._price = price
        places = surrogate.lattice.places
        self._responses = [response.on(places) for response in surrogate.responses]
        self._limits = [(limit, limit.process.on(places)) for limit in surrogate.limits.values()]
        self._risk = surrogate.risk.on(places) if surrogate.risk else None

    def expected(self, table: Numbers) -> Array:
        """Expected gain less the price of each change; what may fail or exceed a guard promises nothing."""
        mean, _ = self._estimates(table)
        return np.where(self.chances(table) < _SAFE, -np.inf, mean)

    def improvement(self, table: Numbers) -> Array:
        """Expected improvement (Jones, Schonlau and Welch, J. Global Optimization 13, 1998), times the
        chance of keeping the guards."""
        mean, doubt = self._estimates(table)
        doubt = np.maximum(doubt, 1e-9)
        far = (mean - self.incumbent) / doubt
        density = np.exp(-0.5 * far**2) / np.sqrt(2 * np.pi)
        return np.asarray(doubt * (far * _below(far) + density) * self.chances(table))

    def chances(self, table: Numbers) -> Array:
        """The probability that each keeps every guard, and runs."""
        chance = np.ones(len(table))
        for limit, process in self._limits:
            mean, doubt = process.estimates(table)
            chance *= _below(limit.sign * (limit.bound - mean) / (doubt + 0.05 * _USUAL))
        if self._risk is not None:
            chance *= self._risk.estimates(table)[0] <= _RISKY * _FAILING
        return chance

    def _estimates(self, table: Numbers) -> tuple[Array, Array]:
        estimates = [response.estimates(table) for response in self._responses]
        mean = sum(mean for mean, _ in estimates) - self._price * (table != 0).sum(axis=1)
        return np.asarray(mean), np.asarray(np.sqrt(sum(deviation**2 for _, deviation in estimates)))


def _below(far: Array) -> Array:
    from scipy.special import ndtr

    return np.asarray(ndtr(far))


_MOST = 12


def front(
    surrogate: Surrogate, answer: Configuration | None, comparisons: tuple[Comparison, ...]
) -> tuple[FrontPoint, ...]:
    """Among what was run and kept all guards, by the model's estimates (not by single lucky runs)."""
    if len(surrogate.responses) < 2:
        return ()
    tried: list[Configuration] = [{}, *surrogate.distinct()]
    if answer and answer not in tried:
        tried.append(answer)
    gains = np.stack([response.mean(tried) for response in surrogate.responses], axis=1)
    margin = surrogate.scores.goal.margin
    best = [at for at in range(len(tried)) if not _beaten(gains, at, margin)]
    best.sort(key=lambda at: -gains[at, 0])
    return tuple(
        FrontPoint(
            configuration=tried[at],
            ratios=_ratios(surrogate, gains[at]),
            runs=sum(run.configuration == tried[at] for run in surrogate.seen),
            comparisons=comparisons if answer and tried[at] == answer else (),
        )
        for at in _thinned(best)
    )


def _thinned(points: list[int]) -> list[int]:
    """At most so many, both ends among them."""
    if len(points) <= _MOST:
        return points
    return [points[round(at)] for at in np.linspace(0, len(points) - 1, _MOST).tolist()]


def _ratios(surrogate: Surrogate, gains: np.ndarray) -> tuple[float, float]:
    first, second = (float(np.exp(surrogate.scores.sign(at) * gain)) for at, gain in enumerate(gains))
    return first, second


def _beaten(gains: np.ndarray, at: int, margin: float) -> bool:
    """Whether another one is at least as good in both, and better by half a margin in one."""
    rivals = np.delete(gains, at, axis=0)
    as_good = (rivals >= gains[at]).all(axis=1)
    return bool((as_good & (rivals > gains[at] + 0.5 * margin).any(axis=1)).any())
