"""A space as a finite lattice: every dimension's values numbered, so that thousands of configurations are
one table.

A choice has its values, a range up to 41 places from end to end, and every dimension its default as number
0. Here configurations are drawn, changed a little, and checked against the constraints, all at once."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ktrial.model.tuning import Configuration, Dimension, OnlyOneOf, Order
from ktrial.optimize.encoding import Encoding, choices_of, value_at
from ktrial.optimize.surrogate.gaussian_process import InputScaling

Numbers = NDArray[np.int64]
_FINEST = 41
_NEAR = 0.08
"""Standard deviation of a small step along a range."""


class Lattice:
    """Configurations as rows of numbers of levels; shape (n, dimensions)."""

    def __init__(self, encoding: Encoding, frame: InputScaling) -> None:
        self.encoding = encoding
        self.values = [list(_levels(each)) for each in encoding.space.dimensions]
        self._frame = frame
        self._numbers = [{value: at for at, value in enumerate(each)} for each in self.values]

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
        sizes = np.array([len(each) for each in self.values])
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

    def plane(self, row: Numbers, one: int, two: int) -> Numbers:
        """Every row that has any levels in these two dimensions, and is the same in all others."""
        counts = len(self.values[one]), len(self.values[two])
        table = np.tile(row, (counts[0] * counts[1], 1))
        table[:, one] = np.repeat(np.arange(counts[0]), counts[1])
        table[:, two] = np.tile(np.arange(counts[1]), counts[0])
        return table

    def holding(self, table: Numbers) -> Numbers:
        """The rows that meet every constraint, and change anything."""
        good = (table != 0).any(axis=1)
        for each in self.encoding.space.constraints:
            if isinstance(each, OnlyOneOf):
                at = [self.encoding.index[name] for name in each.names if name in self.encoding.index]
                good &= (table[:, at] != 0).sum(axis=1) <= 1
            else:
                good &= self._ordered(each, table)
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
            wanted = places[row[at]] + _NEAR * rng.standard_normal(count)
            columns.append(np.abs(places[None, :] - wanted[:, None]).argmin(axis=1))
        return np.stack(columns, axis=1)

    @cached_property
    def _rivals(self) -> list[tuple[int, ...]]:
        groups = [each.names for each in self.encoding.space.constraints if isinstance(each, OnlyOneOf)]
        index = self.encoding.index
        return [
            tuple(index[other] for names in groups if name in names for other in names if other in index)
            for name in self.encoding.space.names
        ]

    def _number(self, at: int, value: str) -> int:
        known = self._numbers[at]
        if value not in known:
            known[value] = len(self.values[at])
            self.values[at].append(value)
        return known[value]


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
