"""Simple shapes of what a knob does, and how likely each is before any run.

Along a range a bump or a step; of a choice, one value beside all others; over two ranges a ridge, which is
high where what they come to together is right. What knobs do is a sum of a few products of such shapes
(ktrial.optimize.surrogate.sampled_terms).
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ktrial.optimize.surrogate.gaussian_process import InputScaling

Array = NDArray[np.float64]
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
    one: Ints
    """The dimension."""
    two: Ints
    """A ridge's other one; else the same."""
    place: Array
    """Where it is highest, where a step is, or the number of the choice."""
    width: Array
    """Less than 0: a step downwards."""
    slope: Array
    """Of a ridge."""

    def at(self, *where: Any) -> "Factors":
        """Some of them, as numpy indexes."""
        return Factors._make(each[where] for each in self)

    def put(self, where: tuple[Any, ...], values: "Factors") -> None:
        """Replace some."""
        for own, new in zip(self, values, strict=True):
            own[where] = new

    def copy(self) -> "Factors":
        """Of their own."""
        return Factors._make(each.copy() for each in self)


def either(where: Flags, these: Factors, those: Factors) -> Factors:
    """These where it is true, else those."""
    return Factors._make(np.where(where, one, other) for one, other in zip(these, those, strict=True))


def no_factors(*shape: int) -> Factors:
    """None at all."""
    zero = np.zeros(shape, dtype=np.int64)
    return Factors(zero, zero.copy(), zero.copy(), np.zeros(shape), np.ones(shape), np.ones(shape))


class Shapes:
    """Of a space's dimensions."""

    def __init__(self, frame: InputScaling) -> None:
        dimensions = frame.encoding.space.dimensions
        codes = frame.encoding.codes
        self.origin = frame.own
        """The baseline's row."""
        self.levels = np.array([0 if each.range else len(codes[each.name]) for each in dimensions])
        """Values of each choice; 0 for ranges."""
        self._spans = np.flatnonzero(self.levels == 0)

    def drawn(self, rng: np.random.Generator, knobs: Ints) -> Factors:
        """One for each of these dimensions."""
        shape, levels = knobs.shape, self.levels[knobs]
        bump = rng.random(shape) < _BUMPS
        kind = np.where(levels > 0, VALUE, np.where(bump, BUMP, STEP))
        two = knobs.copy()
        if len(self._spans) > 1:
            other = self._spans[rng.integers(0, len(self._spans), shape)]
            ridge = (levels == 0) & (rng.random(shape) < _RIDGES) & (other != knobs)
            kind, two = np.where(ridge, RIDGE, kind), np.where(ridge, other, knobs)
        return Factors(
            kind, knobs, two, self._places(rng, kind, knobs), _widths(rng, kind), _slopes(rng, shape)
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
        any_value = np.floor(rng.random(shape) * self.levels[old.one])
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
        one = rows.T[factors.one]
        ridge = factors.kind == RIDGE
        if ridge.any():
            moved = (rows - self.origin).T
            beside = moved[factors.two] - factors.slope[:, None] * moved[factors.one]
            one = np.where(ridge[:, None], beside, one)
        far = (one - factors.place[:, None]) / factors.width[:, None]
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
