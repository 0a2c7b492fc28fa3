"""What a clock or a print that is too coarse leaves unknown of a log ratio.

A value that was rounded to a grid of width q carries an error of variance q²/12 (Sheppard, Proceedings of
the London Mathematical Society 29, 1898), and that holds where the values scatter over several steps. Where
they scatter by less, the errors of all of them are nearly one error, which no number of runs averages out:
the mean of normal values with standard deviation s is off by up to (q/2)·exp(-2π²(s/q)²) (Widrow and
Kollár, Quantization Noise, 2008, chapter 4: the first harmonic; with no spread at all, half a step). So
numbers that are all alike have an interval of their own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
FEWEST_ALIKE = 6
"""Of fewer runs that are all alike nothing says how much the next one may differ."""


@dataclass(frozen=True)
class Rounding:
    """What rounding adds to a log ratio, of one block or run."""

    variance: float = 0.0
    """The least that the variance of one log ratio can be."""
    bias: float = 0.0
    """By how much their mean may be off, however many there are."""


NO_ROUNDING = Rounding()


def rounding(arms: Sequence[Array], step: float | None = None) -> Rounding:
    """Of a sum of logarithms of these arms, one value of each: all above zero, in one unit.

    `step`: their resolution, where more arms than these tell it.
    """
    present = [arm for arm in arms if len(arm)]
    step = resolution(present) if step is None else step
    if not step:
        return NO_ROUNDING
    shares = [step / float(np.mean(arm)) for arm in present]
    return Rounding(
        variance=sum(share * share / 12 for share in shares),
        bias=sum(share / 2 * _hidden(arm, step) for share, arm in zip(shares, present, strict=True)),
    )


def resolution(arms: Sequence[Array]) -> float:
    """The grid on which the values lie, in their unit; 0 without values.

    The last decimal that any of them shows; where half of all values repeat, the smallest step within an
    arm, if that is larger.
    """
    values = [float(value) for arm in arms for value in arm]
    if not values:
        return 0.0
    shown = 10.0 ** -max(map(_decimals, set(values)))
    if 2 * len(set(values)) > len(values):
        return shown
    steps = [np.diff(distinct) for arm in arms if len(distinct := np.unique(arm)) > 1]
    return max([shown, *([float(np.min(np.concatenate(steps)))] if steps else [])])


def _decimals(value: float) -> int:
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _hidden(values: Array, step: float) -> float:
    """Which part of half a step the mean may be off: 1 where no two values differ."""
    rounded = float(np.var(values, ddof=1)) if len(values) > 1 else 0.0
    # Without the variance that rounding itself adds.
    return math.exp(-2 * math.pi**2 * max(0.0, rounded / step**2 - 1 / 12))
