"""Two sides' numbers, one a perturbation: which of them are held against each other.

A perturbation is the same seeded change on both sides. What it does to both alike is not part of their
difference; what it does to one of them is. With b and t for the numbers of the two sides:

- where both sides have the same perturbations, and the ratios t/b of equal perturbations lie less than half
  as far apart (the logarithm of largest / smallest) as the numbers of either side do, each perturbation's two
  numbers are held against each other: blocking (Fisher, The Design of Experiments, 1935);
- otherwise the smallest t against the largest b, and the largest t against the smallest b: whichever of its
  perturbations each side had met, the ratio lies between the two.

That the ratios must lie so much closer together is what keeps chance out. Where perturbations move the sides
without regard to each other, three pairs point the same way in 25 % of all cases (normal logarithms); all of
one side lies beyond all of the other in 10 %, and this rule finds a difference in 13 %.
"""

import math
from collections.abc import Collection, Mapping
from typing import Any

Values = Mapping[Any, float]
"""Perturbation → value, by its number or by itself: equal keys stand for the same perturbation."""

_AS_FAR_APART = 0.5
_ROUNDING = 1e-9


def held_together(below: Values, above: Values) -> tuple[tuple[float, float], ...]:
    """Pairs (b, t): what holds for each of them holds for the two sides. Both have values."""
    if alike(below, above):
        return tuple((value, above[key]) for key, value in below.items())
    least, most = min(below.values()), max(below.values())
    return (most, min(above.values())), (least, max(above.values()))


def alike(below: Values, above: Values) -> bool:
    """Whether the perturbations move both sides alike, so that equal ones are held against each other."""
    if below.keys() != above.keys() or min(*below.values(), *above.values()) <= 0:
        return False
    # Logarithms, not ratios: a ratio of two numbers may be too small or too large for one.
    before = {key: math.log(value) for key, value in below.items()}
    after = {key: math.log(value) for key, value in above.items()}
    least = min(_reach(before.values()), _reach(after.values()))
    return _reach([after[key] - before[key] for key in before]) < _AS_FAR_APART * least - _ROUNDING


def interval(below: Values, above: Values) -> tuple[float, float]:
    """The smallest and the largest ratio t/b of what is held together; all values above zero."""
    ratios = [treatment / baseline for baseline, treatment in held_together(below, above)]
    return min(ratios), max(ratios)


def within(below: Values, above: Values, margin: float) -> bool:
    """Whether the whole interval lies inside the margin."""
    # Products, not ratios, here and below: exchanging the sides then exchanges the answers to the last bit.
    edge = 1 + margin
    return all(t <= edge * b and b <= edge * t for b, t in held_together(below, above))


def exceeds(below: Values, above: Values, margin: float) -> bool:
    """Whether `above` is the larger by more than the margin throughout. Zero and anything above it are."""
    return all(t > (1 + margin) * b for b, t in held_together(below, above))


def _reach(logarithms: Collection[float]) -> float:
    return max(logarithms) - min(logarithms)
