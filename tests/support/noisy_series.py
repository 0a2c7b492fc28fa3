"""Series of 120 points: levels that come back, steps in a row, random walks."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Places = Sequence[Sequence[int]]
POINTS = 120
_EDGE = 10
"""Points at either end that an excursion leaves alone."""


def walks(rng: np.random.Generator, count: int) -> tuple[Values, Places]:
    """Random walks, which have no level."""
    return rng.standard_normal((count, POINTS)).cumsum(axis=1), [()] * count


def excursions(rng: np.random.Generator, count: int, deviations: float, length: int) -> tuple[Values, Places]:
    """Up by so many standard deviations for so many points, and back."""
    series = rng.standard_normal((count, POINTS))
    firsts = rng.integers(_EDGE, POINTS - _EDGE - length, count)
    for row, first in zip(series, firsts, strict=True):
        row[first : first + length] += deviations
    return series, [(int(first), int(first) + length) for first in firsts]


def steps_in_a_row(rng: np.random.Generator, count: int) -> tuple[Values, Places]:
    """Three steps of 2 standard deviations, 30 points apart."""
    series, places = rng.standard_normal((count, POINTS)), (30, 60, 90)
    for place in places:
        series[:, place:] += 2.0
    return series, [places] * count


KINDS: Mapping[str, Callable[[np.random.Generator, int], tuple[Values, Places]]] = {
    "random walk": walks,
    "up 4 SD for 10 points": lambda rng, count: excursions(rng, count, 4.0, 10),
    "up 6 SD for 5 points": lambda rng, count: excursions(rng, count, 6.0, 5),
    "three steps of 2 SD, 30 points apart": steps_in_a_row,
}


def share_placed(places: Places, changes: Places, near: int) -> float:
    """The share of all places that have a change no more than so many points off."""
    hits = [
        any(abs(change - place) <= near for change in of_series)
        for of_places, of_series in zip(places, changes, strict=True)
        for place in of_places
    ]
    return float(np.mean(hits))
