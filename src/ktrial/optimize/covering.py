"""The first configurations of a search: each pair of values of two knobs is tried together, in few runs.

A covering array of strength 2 (Cohen, Dalal, Fredman and Patton, IEEE Trans. Software Engineering 23,
1997), made greedily: a range counts as three values, its lower, middle and upper third, and the place
within the third is drawn anew for each run. So what two knobs do only together is seen, whatever the pair.
"""

from collections.abc import Mapping

import numpy as np

from ktrial.model.tuning import Configuration, Dimension
from ktrial.optimize.encoding import Encoding, choices_of, place_of, value_at

_THIRDS = 3
_CANDIDATES = 20
"""Rows of which the one that covers most new pairs is taken."""
_UNCHANGED = 0.5
"""How often a range is left as it is where its default lies in the third that is wanted."""


class Covering:
    """Rows of a covering array, those that cover most first."""

    def __init__(self, encoding: Encoding, rng: np.random.Generator) -> None:
        self._encoding = encoding
        self._rng = rng
        self._dimensions = encoding.space.dimensions
        counts = [_THIRDS if each.range else len(choices_of(each)) for each in self._dimensions]
        self._open = np.zeros((len(counts), max(counts), len(counts), max(counts)), dtype=bool)
        for one, here in enumerate(counts):
            for other, there in enumerate(counts):
                self._open[one, :here, other, :there] = one != other
        self._counts = counts

    @property
    def open(self) -> int:
        """Pairs of values that no row has yet."""
        return int(self._open.sum()) // 2

    def next(self, fixed: Mapping[str, str]) -> Configuration:
        """The next configuration that meets every constraint, with these values. Raises
        NoValidConfiguration."""
        best, most = None, -1
        for _ in range(_CANDIDATES):
            drawn = self._encoding.space.only_changes({**self._drawn(), **fixed})
            if drawn and self._encoding.space.holds(drawn) and (new := self._new(drawn)) > most:
                best, most = drawn, new
        chosen = best if best is not None else self._encoding.draw_with(self._rng, fixed)
        self._cover(chosen)
        return chosen

    def _drawn(self) -> Configuration:
        """Dimension after dimension, in random order, the value that covers most beside those before."""
        gains = np.zeros(self._open.shape[:2])
        open_ = self._open.sum(axis=(2, 3)).astype(np.float64)
        point: Configuration = {}
        for at in self._rng.permutation(len(self._dimensions)):
            count = self._counts[at]
            # What is open with the dimensions to come decides where those before say nothing.
            worth = gains[at, :count] + 0.01 * open_[at, :count] + 0.005 * self._rng.random(count)
            cell = int(np.argmax(worth))
            gains += self._open[at, cell]
            point[self._dimensions[at].name] = self._value(self._dimensions[at], cell)
        for names in self._encoding.groups.values():
            one = names[int(self._rng.integers(len(names)))]
            point = {name: value for name, value in point.items() if name == one or name not in names}
        return self._encoding.space.only_changes(point)

    def _value(self, dimension: Dimension, cell: int) -> str:
        if dimension.range is None:
            return choices_of(dimension)[cell]
        if self._cell(dimension, dimension.default) == cell and self._rng.random() < _UNCHANGED:
            return dimension.default
        return value_at(dimension.range, (cell + float(self._rng.random())) / _THIRDS)

    def _cell(self, dimension: Dimension, value: str) -> int:
        if dimension.range is None:
            return choices_of(dimension).index(value)
        return min(int(_THIRDS * place_of(dimension, value)), _THIRDS - 1)

    def _cells(self, configuration: Configuration) -> list[int]:
        space = self._encoding.space
        return [self._cell(each, space.value(configuration, each.name)) for each in self._dimensions]

    def _new(self, configuration: Configuration) -> int:
        cells = self._cells(configuration)
        at = np.arange(len(cells))
        return int(self._open[at[:, None], np.array(cells)[:, None], at, cells].sum())

    def _cover(self, configuration: Configuration) -> None:
        cells = self._cells(configuration)
        at = np.arange(len(cells))
        self._open[at[:, None], np.array(cells)[:, None], at, cells] = False
