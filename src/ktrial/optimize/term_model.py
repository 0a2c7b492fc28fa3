"""Simple shapes of what a knob does, and how likely each is before any run.

Along a range a bump or a step; of a choice, one value beside all others; over two ranges a ridge, which is
high where what they come to together is right. What knobs do is a sum of a few products of such shapes
(ktrial.optimize.term_model).
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ktrial.optimize.gaussian_process import Array, GaussianProcess, InputScaling
from ktrial.stats.typical_groups import EarlierEstimate

Ints = NDArray[np.int64]


Flags = NDArray[np.bool_]


_BUMPS, _RIDGES = 0.6, 0.12
"""How often a shape along a range is a bump and no step; and how often two ranges make a ridge."""
_BEYOND = 0.1
"""Of a range, by which a bump's top may lie outside."""
_WIDTHS, _SHARP = (0.08, 0.6), (0.02, 0.4)
"""A bump's standard deviation and a step's, as parts of a range."""
_APART, _STEEP = 0.25, 0.5
"""Standard deviations of where a ridge lies, and of the binary logarithm of its slope."""
_EXACT = 1e-3
"""A choice's width: no other number is within."""
NONE, BUMP, STEP, RIDGE, VALUE = range(5)
"""What a shape looks like."""


class Factors(NamedTuple):
    """Shapes; arrays of one shape each."""

    kind: Ints
    first: Ints
    """The dimension."""
    second: Ints
    """A ridge's other one; else the same."""
    place: Array
    """Where it is highest, where a step is, or the number of the choice."""
    width: Array
    """Less than 0: a step downwards."""
    slope: Array
    """Of a ridge."""

    def at(self, *where: Any) -> "Factors":
        """Some of them, as numpy indexes."""
        return Factors._make(factor[where] for factor in self)

    def put(self, where: tuple[Any, ...], values: "Factors") -> None:
        """Replace some."""
        for old, new in zip(self, values, strict=True):
            old[where] = new

    def copy(self) -> "Factors":
        """Of their own."""
        return Factors._make(factor.copy() for factor in self)


def either(where: Flags, these: Factors, those: Factors) -> Factors:
    """These where it is true, else those."""
    return Factors._make(np.where(where, this, that) for this, that in zip(these, those, strict=True))


def no_factors(*shape: int) -> Factors:
    """None at all."""
    zero = np.zeros(shape, dtype=np.int64)
    return Factors(zero, zero.copy(), zero.copy(), np.zeros(shape), np.ones(shape), np.ones(shape))


class Shapes:
    """Of a space's dimensions."""

    def __init__(self, frame: InputScaling) -> None:
        dimensions = frame.encoding.space.dimensions
        codes = frame.encoding.codes
        self.origin = frame.default_places
        """The baseline's row."""
        self.levels = np.array(
            [0 if dimension.range else len(codes[dimension.name]) for dimension in dimensions]
        )
        """Values of each choice; 0 for ranges."""
        self._spans = np.flatnonzero(self.levels == 0)

    def drawn(self, rng: np.random.Generator, knobs: Ints) -> Factors:
        """One for each of these dimensions."""
        shape, levels = knobs.shape, self.levels[knobs]
        bump = rng.random(shape) < _BUMPS
        kind = np.where(levels > 0, VALUE, np.where(bump, BUMP, STEP))
        second = knobs.copy()
        if len(self._spans) > 1:
            partner = self._spans[rng.integers(0, len(self._spans), shape)]
            ridge = (levels == 0) & (rng.random(shape) < _RIDGES) & (partner != knobs)
            kind, second = np.where(ridge, RIDGE, kind), np.where(ridge, partner, knobs)
        return Factors(
            kind, knobs, second, self._places(rng, kind, knobs), _widths(rng, kind), _slopes(rng, shape)
        )

    def _places(self, rng: np.random.Generator, kind: Ints, knobs: Ints) -> Array:
        part = rng.random(kind.shape)
        place = np.where(kind == BUMP, part * (1 + 2 * _BEYOND) - _BEYOND, part)
        place = np.where(kind == RIDGE, _APART * rng.standard_normal(kind.shape), place)
        return np.where(kind == VALUE, np.floor(part * self.levels[knobs]), place)

    def moved(self, rng: np.random.Generator, old: Factors) -> Factors:
        """A little: the same kind, of the same dimensions."""
        shape, chosen = old.kind.shape, old.kind == VALUE
        far = np.where(rng.random(shape) < 0.5, 0.05, 0.2) * rng.standard_normal(shape)
        any_value = np.floor(rng.random(shape) * self.levels[old.first])
        wider = np.exp(np.where(rng.random(shape) < 0.6, 0.3 * rng.standard_normal(shape), 0.0))
        width = np.where(chosen, old.width, old.width * wider)
        turned = (old.kind == STEP) & (rng.random(shape) < 0.05)
        steeper = 2.0 ** np.where(old.kind == RIDGE, 0.15 * rng.standard_normal(shape), 0.0)
        return old._replace(
            place=np.where(chosen, any_value, old.place + far),
            width=np.where(turned, -width, width),
            slope=old.slope * steeper,
        )

    def likelihood(self, factors: Factors) -> Array:
        """The logarithm of how likely each is among its kind, but for a constant; -inf: impossible."""
        kind, place, width = factors.kind, factors.place, np.abs(factors.width)
        bump, step, ridge = kind == BUMP, kind == STEP, kind == RIDGE
        wide = (width > _WIDTHS[0]) & (width < _WIDTHS[1])
        good = ~(bump | ridge) | wide
        good &= ~bump | ((place > -_BEYOND) & (place < 1 + _BEYOND))
        sharp = (width > _SHARP[0]) & (width < _SHARP[1])
        good &= ~step | (sharp & (place > 0) & (place < 1))
        steep = np.log2(np.abs(factors.slope)) / _STEEP
        unlikely = 0.5 * (place / _APART) ** 2 + 0.5 * steep**2
        return np.where(good, np.where(ridge, -unlikely, 0.0), -np.inf)

    def values(self, factors: Factors, rows: Array) -> Array:
        """What each is at these coordinates; 1 where there is none. Factors of shape (n,): (n, rows)."""
        along = rows.T[factors.first]
        ridge = factors.kind == RIDGE
        if ridge.any():
            moved = (rows - self.origin).T
            beside = moved[factors.second] - factors.slope[:, None] * moved[factors.first]
            along = np.where(ridge[:, None], beside, along)
        far = (along - factors.place[:, None]) / factors.width[:, None]
        bell = np.exp(-0.5 * far**2)
        shaped = np.where((factors.kind == STEP)[:, None], 0.5 + 0.5 * np.tanh(0.5 * far), bell)
        return np.where((factors.kind == NONE)[:, None], 1.0, shaped)


def _widths(rng: np.random.Generator, kind: Ints) -> Array:
    """Equal factors are equally likely."""
    step, part = kind == STEP, rng.random(kind.shape)
    low, high = (np.where(step, math.log(_SHARP[end]), math.log(_WIDTHS[end])) for end in (0, 1))
    width = np.exp(low + part * (high - low)) * np.where(step & (rng.random(kind.shape) < 0.5), -1, 1)
    return np.where(kind == VALUE, _EXACT, width)


def _slopes(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.where(rng.random(shape) < 0.5, 1.0, -1.0) * 2.0 ** (_STEEP * rng.standard_normal(shape))


# What the runs say of which knobs act, and how: samples of sums of a few products of simple shapes.
#
# A Gaussian process takes any function of every knob for possible, and so it is long in doubt whether a
# knob does anything. Most knobs do nothing, and what the others do is mostly simple. Here the gain is a sum
# of a few terms, each a product of one to three shapes (Denison, Mallick and Smith, Statistics and
# Computing 8, 1998: Bayesian MARS); every term, and every knob that is in any, makes a sum less likely by a
# factor. Sums are drawn as likely as the runs make them, by many chains at once: each changes a term at a
# time (reversible jumps: Green, Biometrika 82, 1995), and what the runs say is believed bit by bit, so that
# chains do not stay where they began (sequential Monte Carlo: Del Moral, Doucet and Jasra, J. Royal
# Statistical Society B 68, 2006). How high terms are is not drawn but integrated out: it is normal, given
# their shapes. The noise is drawn as well.

TERMS, FACTORS = 8, 3
"""At most, in a sum and in a term."""
_TERM, _KNOB = 0.5, 0.4
"""By how much each term makes a sum less likely, and each knob that is in any of its terms."""
_SIZES = np.log([1.0, 0.55, 0.35, 0.1])
"""How likely a term is to have so many factors."""
_HEIGHT = 0.1
"""Prior standard deviation of how high a term is, as a logarithm."""
_NOISE, _LOUDER = 0.6, 0.4
"""Prior standard deviation of the logarithm of the noise's precision, and a step of it: what the baseline's
runs say is uncertain, and a model that explains too much would take noise for effects."""
_CHAINS = 256
_RISING, _STAGES, _LEAST = 15, 40, 0.02
"""Steps a stage, while what the runs say is believed more and more, in so many stages, from this part on."""
_EVEN = 0.5
"""The effective number of chains, as a part of all, below which the likelier ones go on in the place of
others."""
_STEPS, _KEPT = 300, 2
"""Steps when all of it is believed; and sums that are then kept of each chain."""
_FEW = 10
"""Knobs up to which so many steps are enough; with more of them it takes as many times more."""
_DEATH, _WALK, _REDRAW = 0.2, 0.65, 0.85
"""Of what is tried with a term, what takes it away, what moves a shape, what draws one anew; the rest makes
it longer or shorter."""


class CentredRuns:
    """What was measured, less its weighted mean: the level is anything."""

    def __init__(self, rows: Array, scores: Array, precisions: Array) -> None:
        self.rows = rows
        """Coordinates; shape (runs, dimensions)."""
        self.precisions = precisions
        """Of each run, 1 / variance, as it is thought to be."""
        self.scores = self.centred(scores)

    def centred(self, values: Array) -> Array:
        """Less the mean of each row; shape (..., runs)."""
        mean = (values * self.precisions).sum(axis=-1) / self.precisions.sum()
        return np.asarray(values - mean[..., None])


class Chains:
    """Sums that are drawn; arrays have a row for each chain."""

    def __init__(self, shapes: Shapes, runs: CentredRuns, rng: np.random.Generator) -> None:
        self._shapes, self._runs, self._rng = shapes, runs, rng
        self._count = count = _CHAINS
        self._all: Ints = np.arange(count)
        self._belief = 0.0
        """The power of the runs' likelihood that counts."""
        self._lead = np.zeros(count)
        self._rows = np.vstack([runs.rows, shapes.origin])
        self.factors = no_factors(count, TERMS, FACTORS)
        self._columns = np.zeros((count, TERMS, len(runs.scores)))
        self._gram, self._along = np.zeros((count, TERMS, TERMS)), np.zeros((count, TERMS))
        self._squares = float((runs.precisions * runs.scores**2).sum())
        self._precision = np.ones(count)
        """How much higher that of all runs is than it is thought to be."""
        self._likely = self._likelihood(self._gram, self._along, self._precision)
        self._simple = self._simplicity(self.factors)

    def run(self) -> tuple[Factors, Array]:
        """Sums and their terms' heights: shapes (samples, terms, factors) and (samples, terms)."""
        longer = max(len(self._shapes.levels) / _FEW, 1.0)
        for belief in np.geomspace(_LEAST, 1.0, _STAGES):
            self._believe(float(belief))
            for _ in range(round(longer * _RISING)):
                self._step()
        sums, heights = [], []
        for _ in range(_KEPT):
            for _ in range(round(longer * _STEPS / _KEPT)):
                self._step()
            sums.append(self.factors.copy())
            heights.append(self._heights())
        return Factors(*map(np.concatenate, zip(*sums, strict=True))), np.concatenate(heights)

    def _step(self) -> None:
        slots = self._rng.integers(0, TERMS, self._count)
        where = self._all, slots
        old = self.factors.at(*where)
        new, less = self._proposed(old)
        factors = self.factors.copy()
        factors.put(where, new)
        column = self._column(new)
        gram, along = self._with(column, slots)
        likely, simple = self._likelihood(gram, along, self._precision), self._simplicity(factors)
        better = self._belief * (likely - self._likely) + simple - self._simple + less
        taken = np.log(self._rng.random(self._count)) < better
        rows = np.flatnonzero(taken)
        self.factors.put((rows, slots[rows]), new.at(rows))
        self._columns[rows, slots[rows]] = column[rows]
        self._gram[rows], self._along[rows] = gram[rows], along[rows]
        self._likely[rows], self._simple[rows] = likely[rows], simple[rows]
        self._look_at_noise()

    def _look_at_noise(self) -> None:
        """Another precision for every second chain."""
        some = self._rng.random(self._count) < 0.5
        step = np.where(some, _LOUDER * self._rng.standard_normal(self._count), 0.0)
        precision = self._precision * np.exp(step)
        likely = self._likelihood(self._gram, self._along, precision)
        before, after = np.log(self._precision), np.log(precision)
        better = self._belief * (likely - self._likely) + 0.5 * (before**2 - after**2) / _NOISE**2
        taken = np.log(self._rng.random(self._count)) < better
        self._precision = np.where(taken, precision, self._precision)
        self._likely = np.where(taken, likely, self._likely)

    def _proposed(self, old: Factors) -> tuple[Factors, Array]:
        """Another term for each, and the logarithm of what its acceptance is multiplied by."""
        size = (old.kind > 0).sum(axis=1)
        kind = self._rng.random(self._count)
        birth = size == 0
        death, walk = ~birth & (kind < _DEATH), ~birth & (kind >= _DEATH) & (kind < _WALK)
        redraw, resize = ~birth & (kind >= _WALK) & (kind < _REDRAW), ~birth & (kind >= _REDRAW)
        fresh = self._fresh()
        new = either(birth[:, None], self._born(fresh), old)
        new.kind[death] = 0
        less = self._moved(new, walk, size)
        self._redrawn(new, redraw, size, fresh)
        self._resized(new, resize, size, fresh)
        sized = _SIZES[(new.kind > 0).sum(axis=1)]
        less -= np.where(birth, sized - math.log(_DEATH), 0.0)
        less += np.where(death, _SIZES[size] - math.log(_DEATH), 0.0)
        return new, less

    def _fresh(self) -> Factors:
        shape = self._count, FACTORS
        return self._shapes.drawn(self._rng, self._rng.integers(0, len(self._shapes.levels), shape))

    def _born(self, fresh: Factors) -> Factors:
        """Terms with as many factors as is likely."""
        sizes = np.searchsorted(np.cumsum(np.exp(_SIZES[1:])), self._rng.random(self._count)) + 1
        present = np.arange(FACTORS) < np.minimum(sizes, FACTORS)[:, None]
        return fresh._replace(kind=np.where(present, fresh.kind, 0))

    def _any(self, size: Ints) -> Ints:
        """The number of one of each term's factors."""
        return (self._rng.random(self._count) * np.maximum(size, 1)).astype(np.int64)

    def _moved(self, new: Factors, some: Flags, size: Ints) -> Array:
        """Move a factor of some terms; what that says of how likely they are."""
        where = self._all, self._any(size)
        old = new.at(*where)
        moved = self._shapes.moved(self._rng, old)
        new.put(where, either(some, moved, old))
        change = self._shapes.likelihood(moved) - self._shapes.likelihood(old)
        return np.where(some, change, 0.0)

    def _redrawn(self, new: Factors, some: Flags, size: Ints, fresh: Factors) -> None:
        where = self._all, self._any(size)
        new.put(where, either(some, fresh.at(slice(None), 0), new.at(*where)))

    def _resized(self, new: Factors, some: Flags, size: Ints, fresh: Factors) -> None:
        """Some longer by one at the end, some shorter by any one."""
        grows = self._rng.random(self._count) < 0.5
        longer, shorter = some & grows & (size < FACTORS), some & ~grows & (size > 1)
        end = self._all, np.minimum(size, FACTORS - 1)
        new.put(end, either(longer, fresh.at(slice(None), 0), new.at(*end)))
        gone, last = (self._all, self._any(size)), (self._all, np.maximum(size - 1, 0))
        new.put(gone, either(shorter, new.at(*last), new.at(*gone)))
        new.kind[last] = np.where(shorter, 0, new.kind[last])

    def _column(self, term: Factors) -> Array:
        """What each term does in each run beside the baseline; shape (chains, runs)."""
        values = np.zeros((self._count, len(self._rows)))
        values[term.kind.any(axis=1)] = 1.0
        for at in range(FACTORS):
            some = np.flatnonzero(term.kind[:, at] > 0)
            values[some] *= self._shapes.values(term.at(some, at), self._rows)
        return self._runs.centred(values[:, :-1] - values[:, -1:])

    def _with(self, column: Array, slots: Ints) -> tuple[Array, Array]:
        """The terms' products with each other, and with the scores, where these are in their slots."""
        weighted = column * self._runs.precisions
        gram, along = self._gram.copy(), self._along.copy()
        beside = np.matmul(self._columns, weighted[:, :, None])[:, :, 0]
        gram[self._all, slots, :] = beside
        gram[self._all, :, slots] = beside
        gram[self._all, slots, slots] = (weighted * column).sum(axis=1)
        along[self._all, slots] = weighted @ self._runs.scores
        return gram, along

    def _likelihood(self, gram: Array, along: Array, precision: Array) -> Array:
        """The logarithm of each sum's, but for a constant (heights and level integrated out)."""
        root = np.linalg.cholesky(precision[:, None, None] * gram + np.eye(TERMS) / _HEIGHT**2)
        within = np.linalg.solve(root, (precision[:, None] * along)[:, :, None])[:, :, 0]
        size = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1) + TERMS * math.log(_HEIGHT)
        runs = 0.5 * (len(self._runs.scores) - 1) * np.log(precision) - 0.5 * precision * self._squares
        return np.asarray(runs + 0.5 * (within**2).sum(axis=1) - size)

    def _simplicity(self, factors: Factors) -> Array:
        """The logarithm of how likely each sum is before any run."""
        size = (factors.kind > 0).sum(axis=2)
        terms = ((size > 0) * math.log(_TERM) + _SIZES[size]).sum(axis=1)
        return np.asarray(terms + math.log(_KNOB) * acting(factors, len(self._shapes.levels)).sum(axis=1))

    def _believe(self, belief: float) -> None:
        """So much more of the runs: chains that it makes likelier go on more than once, where it matters."""
        self._lead += (belief - self._belief) * self._likely
        self._belief = belief
        weights = np.exp(self._lead - self._lead.max())
        if belief < 1.0 and weights.sum() ** 2 > _EVEN * self._count * (weights**2).sum():
            return
        self._lead = np.zeros(self._count)
        edges = np.cumsum(weights) / weights.sum()
        chosen = np.searchsorted(edges, (np.arange(self._count) + self._rng.random()) / self._count)
        chosen = np.minimum(chosen, self._count - 1)
        for state in (
            *self.factors,
            self._columns,
            self._gram,
            self._along,
            self._precision,
            self._likely,
            self._simple,
        ):
            state[:] = state[chosen]

    def _heights(self) -> Array:
        """Drawn as the runs make them likely; shape (chains, terms)."""
        precision = self._precision[:, None, None]
        root = np.linalg.cholesky(precision * self._gram + np.eye(TERMS) / _HEIGHT**2)
        within = np.linalg.solve(root, precision * self._along[:, :, None])
        drawn = within + self._rng.standard_normal(within.shape)
        return np.asarray(np.linalg.solve(root.transpose(0, 2, 1), drawn)[:, :, 0])


def acting(factors: Factors, dimensions: int) -> Flags:
    """Which are in any term of each sum; shape (sums, dimensions)."""
    present = np.zeros((len(factors.kind), dimensions), dtype=np.bool_)
    rows, terms, at = np.nonzero(factors.kind)
    present[rows, factors.first[rows, terms, at]] = True
    present[rows, factors.second[rows, terms, at]] = True
    return present


# The gain as sums of a few terms, by all runs: what is expected of configurations, and which knobs act.


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
