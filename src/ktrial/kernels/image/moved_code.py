"""Which bodies of code were only moved, told of all of them at once.

A patch that makes one function longer moves some 20,000 others, and changes 50,000 addresses in them. Here
is told what is plain: each word that differs is an address, and leads to the same symbol. What is not plain
(texts without a symbol, symbols with other first names) may be the same all the same: code_difference.py.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BEHIND = (0, 1, 2, 4)
"""Bytes of an operand that may stand between a relative address and the instruction's end."""
FARTHEST = 1 << 16
"""Nothing is this far behind the symbol that it belongs to, but for what belongs to none."""
_WORD = 4


class Symbols(NamedTuple):
    """Where symbols begin, sorted, and the first name at each place."""

    addresses: NDArray[np.uint64]
    names: Sequence[str]


class Moved(NamedTuple):
    """One body in two images, as long in both."""

    old_address: int
    old: bytes
    new_address: int
    new: bytes


def only_moved(bodies: Sequence[Moved], before: Symbols, after: Symbols) -> NDArray[np.bool_]:
    """For each of the bodies whether it plainly was only moved: of two symbols with one name."""
    if not bodies or not before.names or not after.names:
        return np.zeros(len(bodies), dtype=np.bool_)
    code = _Code(bodies, _Names(before, after))
    places = np.flatnonzero(code.old != code.new)
    # Most addresses differ in their first byte.
    first = places[np.diff(places, prepend=-2) > 1]
    leading = code.leading(first)
    rest = places[~_covered(places, leading)]
    leading = np.union1d(leading, code.leading(np.unique(rest[:, None] - np.arange(_WORD))))
    plain = np.ones(len(bodies), dtype=np.bool_)
    plain[code.owners(places[~_covered(places, leading)])] = False
    # Where two addresses could share a byte, one of them is none.
    plain[code.owners(leading[1:][np.diff(leading) < _WORD])] = False
    return plain


def _covered(places: NDArray[np.int64], words: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the places lie in one of the words, which are sorted."""
    if not len(words):
        return np.zeros(len(places), dtype=np.bool_)
    index = np.searchsorted(words, places, side="right") - 1
    covered: NDArray[np.bool_] = (index >= 0) & (places - words[index] < _WORD)
    return covered


class _Code:
    """All bodies, one behind the other; places are offsets there."""

    def __init__(self, bodies: Sequence[Moved], names: "_Names") -> None:
        self._names = names
        self._starts = np.cumsum([0, *(len(one.old) for one in bodies)])
        self.old = np.frombuffer(b"".join(one.old for one in bodies), dtype=np.uint8)
        self.new = np.frombuffer(b"".join(one.new for one in bodies), dtype=np.uint8)
        self._origins = [np.array([one[side] for one in bodies], dtype=np.uint64) for side in (0, 2)]

    def owners(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of the body that each place is in."""
        return np.searchsorted(self._starts, places, side="right") - 1

    def leading(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the places at which an address begins that leads to the same in both images."""
        places = places[(places >= 0) & (places + _WORD <= len(self.old))]
        owners = self.owners(places)
        inside = places + _WORD <= self._starts[owners + 1]
        places, owners = places[inside], owners[inside]
        old, new = (
            one[places[:, None] + np.arange(_WORD)].view("<i4").ravel().astype(np.uint64)
            for one in (self.old, self.new)
        )
        within = (places - self._starts[owners] + _WORD).astype(np.uint64)
        old_end, new_end = (one[owners] + within for one in self._origins)
        leads = self._names.alike(old, new)
        for behind in map(np.uint64, BEHIND):
            rest = np.flatnonzero(~leads)
            ends = old_end[rest] + behind, new_end[rest] + behind
            leads[rest] = self._names.alike(ends[0] + old[rest], ends[1] + new[rest])
        return places[leads]


class _Names:
    """The symbols of both images, with numbers for their names."""

    def __init__(self, before: Symbols, after: Symbols) -> None:
        numbers: dict[str, int] = {}
        self._images = [
            (one.addresses, np.array([numbers.setdefault(name, len(numbers)) for name in one.names]))
            for one in (before, after)
        ]

    def alike(self, old: NDArray[np.uint64], new: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Whether addresses lead to the same symbol, and as far behind its beginning."""
        (name, offset), (other_name, other_offset) = (
            _at(*image, one) for image, one in zip(self._images, (old, new), strict=True)
        )
        alike: NDArray[np.bool_] = (
            (name == other_name) & (name >= 0) & (offset == other_offset) & (offset < FARTHEST)
        )
        return alike


def _at(
    known: NDArray[np.uint64], numbers: NDArray[np.int64], addresses: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The number of the symbol that begins last before each address, -1 for none; and how far before."""
    index = np.searchsorted(known, addresses, side="right") - 1
    return np.where(index >= 0, numbers[index], -1), addresses - known[index]
