"""A space as numbers: every dimension as a coordinate from 0 to 1 or a choice, and back to values.

A range that spans three powers of ten is logarithmic, whether it says so or not: what matters about 1000 and
2000 of 1 to 1 000 000 is that one is twice the other. Of dimensions of which only one may be changed, a
choice says which, so that an optimiser never has to guess a constraint that it can be spared.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ktrial.model.tuning import Configuration, Cost, Dimension, OnlyOneOf, Range, Space
from ktrial.studyfile.errors import NoValidConfiguration, SpaceEmpty

WIDE = 1000.0
"""Highest / lowest value from which a range is logarithmic."""
_TRIES = 2000
_FINEST = 9
"""Values of a range that a walk along it tries."""
NONE_OF_THEM = ""
"""The choice of a group of which no dimension is changed."""

Point = dict[str, float | str]
"""Dimension (or group) → coordinate from 0 to 1, or choice."""


def is_log(span: Range) -> bool:
    """Whether equal factors are equal steps."""
    return span.log or (span.low > 0 and span.high / span.low >= WIDE) or _from_zero(span)


def coordinate(span: Range, value: float) -> float:
    """Where the value lies in its range, 0 to 1; a value outside lies at the nearest end."""
    low, high = _scaled(span, span.low), _scaled(span, span.high)
    inside = min(max(value, span.low), span.high)
    return (_scaled(span, inside) - low) / (high - low)


def value_at(span: Range, place: float) -> str:
    """The value at a coordinate, as the kernel is told it: on a step, a whole number where it must be."""
    low, high = _scaled(span, span.low), _scaled(span, span.high)
    value = _unscaled(span, low + min(max(place, 0.0), 1.0) * (high - low))
    if span.step is not None:
        value = span.low + round((value - span.low) / span.step) * span.step
        if value > span.high + abs(span.high) * 1e-12:
            value -= span.step
    if span.integer:
        return str(int(min(max(round(value), math.ceil(span.low)), math.floor(span.high))))
    return f"{min(max(value, span.low), span.high):.6g}"


def _from_zero(span: Range) -> bool:
    """A whole number from 0 up to thousands: counted from 1, since 0 has no logarithm."""
    return span.integer and span.low == 0 and span.high >= WIDE


def _scaled(span: Range, value: float) -> float:
    return math.log(value + _from_zero(span)) if is_log(span) else value


def _unscaled(span: Range, scaled: float) -> float:
    return math.exp(scaled) - _from_zero(span) if is_log(span) else scaled


@dataclass(frozen=True)
class Encoding:
    """A space in which one can draw, walk and translate."""

    space: Space

    def __post_init__(self) -> None:
        if not self.space.dimensions:
            raise SpaceEmpty()

    @cached_property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Name of a choice → the dimensions of which it says which one is changed."""
        only = [constraint for constraint in self.space.constraints if isinstance(constraint, OnlyOneOf)]
        return {f"only:{'|'.join(each.names)}": each.names for each in only}

    @cached_property
    def index(self) -> dict[str, int]:
        """Dimension → its place in the space."""
        return {dimension.name: at for at, dimension in enumerate(self.space.dimensions)}

    @cached_property
    def alternatives(self) -> dict[str, tuple[str, ...]]:
        """Dimension → the values along it that a walk tries, its default first."""
        return {
            dimension.name: tuple(dict.fromkeys((dimension.default, *_along(dimension))))
            for dimension in self.space.dimensions
        }

    @cached_property
    def codes(self) -> dict[str, dict[str, int]]:
        """Dimension with choices → choice → its number; the default's is 0."""
        chosen = (dimension for dimension in self.space.dimensions if not dimension.range)
        return {
            dimension.name: {value: at for at, value in enumerate(choices_of(dimension))}
            for dimension in chosen
        }

    @cached_property
    def costly(self) -> tuple[str, ...]:
        """Dimensions that take more than a write to change, the dearest first."""
        dear = [dimension for dimension in self.space.dimensions if dimension.cost is not Cost.RUN_TIME]
        return tuple(each.name for each in sorted(dear, key=lambda each: -each.cost.rank))

    def configuration(self, point: Mapping[str, float | str]) -> Configuration:
        """What the point means; it may break an order."""
        values = {}
        for dimension in self.space.dimensions:
            at = point[dimension.name]
            values[dimension.name] = value_at(dimension.range, float(at)) if dimension.range else str(at)
        for choice, names in self.groups.items():
            values.update({name: self.space[name].default for name in names if name != point[choice]})
        return self.space.only_changes(values)

    def point(self, configuration: Mapping[str, str]) -> Point:
        """Where a configuration lies."""
        place: Point = {}
        for dimension in self.space.dimensions:
            value = configuration.get(dimension.name, dimension.default)
            place[dimension.name] = place_of(dimension, value) if dimension.range else value
        for choice, names in self.groups.items():
            place[choice] = next((name for name in names if name in configuration), NONE_OF_THEM)
        return place

    def draw(self, rng: np.random.Generator, *, at_default: float = 0.0) -> Configuration:
        """A configuration that meets every constraint, at random; each dimension stays at its default with
        the probability `at_default`.

        Raises NoValidConfiguration where thousands of draws find none.
        """
        for _ in range(_TRIES):
            drawn = self.configuration(self.random_point(rng))
            kept = {name: value for name, value in drawn.items() if rng.random() >= at_default}
            if kept and self.space.holds(kept):
                return kept
        raise NoValidConfiguration(self.space.constraints)

    def draw_with(
        self, rng: np.random.Generator, fixed: Mapping[str, str], *, at_default: float = 0.0
    ) -> Configuration:
        """The same, with these values. Raises NoValidConfiguration."""
        for _ in range(_TRIES):
            drawn = self.space.only_changes({**self.draw(rng, at_default=at_default), **fixed})
            if drawn and self.space.holds(drawn):
                return drawn
        raise NoValidConfiguration(self.space.constraints)

    def random_point(self, rng: np.random.Generator) -> Point:
        """Anywhere; constraints are not looked at."""
        point: Point = {}
        for dimension in self.space.dimensions:
            choices = choices_of(dimension)
            point[dimension.name] = (
                float(rng.random()) if dimension.range else choices[int(rng.integers(len(choices)))]
            )
        for choice, names in self.groups.items():
            both = (*names, NONE_OF_THEM)
            point[choice] = both[int(rng.integers(len(both)))]
        return point

    def neighbours(self, configuration: Mapping[str, str], name: str) -> list[Configuration]:
        """The configurations that differ in this dimension only, and meet every constraint.

        A dimension of which only one of its group may be changed takes the others back with it.
        """
        rivals = {other for names in self.groups.values() if name in names for other in names}
        rest = {key: value for key, value in configuration.items() if key != name}
        alone = {key: value for key, value in rest.items() if key not in rivals}
        here = configuration.get(name, self.space[name].default)
        default, *others = self.alternatives[name]
        configurations = [rest] if here != default else []
        configurations += [{**alone, name: value} for value in others if value != here]
        return [configuration for configuration in configurations if self.space.holds(configuration)]

    def dear_values(self, configuration: Mapping[str, str]) -> Configuration:
        """Its values, defaults too, of the dimensions that take more than a write to change."""
        return {name: self.space.value(configuration, name) for name in self.costly}

    def in_order_of_cost(self, batch: Iterable[Configuration]) -> list[Configuration]:
        """So that what is dear to change changes least often: kernels, then builds, then boots."""

        def key(configuration: Configuration) -> tuple[str, ...]:
            return tuple(self.dear_values(configuration).values())

        return sorted(batch, key=key)


def choices_of(dimension: Dimension) -> tuple[str, ...]:
    """Its choices, with the default among them; empty for a range."""
    if dimension.range:
        return ()
    return tuple(dict.fromkeys((dimension.default, *dimension.choices)))


def place_of(dimension: Dimension, value: str) -> float:
    """The coordinate of a value in the dimension's range; of one that is no number, the default's or 0."""
    assert dimension.range is not None
    try:
        return coordinate(dimension.range, float(value))
    except ValueError:
        return 0.0


def _along(dimension: Dimension) -> Sequence[str]:
    if dimension.range is None:
        return dimension.choices
    return [value_at(dimension.range, place) for place in np.linspace(0, 1, _FINEST)]
