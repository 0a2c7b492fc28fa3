"""The sequential test itself: log ratios in, claims out. Works on one study, or on thousands at once.

At each look the interval is mean ± c·s/sqrt(n), where c is the look's boundary: a repeated confidence
interval (Jennison and Turnbull, JRSS B 51, 1989), which holds at all looks together. With m the margin:

- inside [1/(1+m), 1+m]: equivalent, which is the two one-sided tests of Schuirmann (1987) with the same
  spending;
- wholly above or below 1: a difference;
- else the study goes on.

The study ends with the first claim; where several comparisons keep it running, a claim that later blocks do
not bear out is withdrawn. A difference that lies within the margin for certain is 'equivalent'.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ktrial.stats.sequential.design import SequentialDesign
from ktrial.stats.verdict_rules import Claim

Array = NDArray[np.float64]
Codes = NDArray[np.int8]


@dataclass(frozen=True)
class Intervals:
    """Mean log ratio with its interval at each look; shapes (…, looks)."""

    mean: Array
    low: Array
    high: Array


def intervals(differences: Array, looked: tuple[int, ...], edges: tuple[float, ...]) -> Intervals:
    """Intervals at each look, of log ratios of shape (…, blocks)."""
    return interval_about(*means(differences, looked), np.asarray(edges, dtype=np.float64))


def means(differences: Array, looked: tuple[int, ...]) -> tuple[Array, Array]:
    """The mean at each look and its standard error, of log ratios of shape (…, blocks)."""
    counts = np.asarray(looked, dtype=np.float64)
    at = np.asarray(looked) - 1
    centre = differences[..., :1]
    moved = differences - centre
    sums = np.cumsum(moved, axis=-1)[..., at]
    squares = np.cumsum(moved * moved, axis=-1)[..., at]
    mean = sums / counts
    variance = np.maximum(squares - counts * mean * mean, 0.0) / (counts - 1)
    return mean + centre, np.sqrt(variance / counts)


def interval_about(mean: Array, error: Array, edges: Array) -> Intervals:
    """The interval that an edge of t makes, from a mean and its standard error."""
    # Where an edge is infinite (too early for a confidence sequence) so is the interval, even without spread.
    finite = np.where(np.isinf(edges), 0.0, edges)
    half = np.where(np.isinf(edges), np.inf, finite * error)
    return Intervals(mean, mean - half, mean + half)


def claims(interval: Intervals, margin: float) -> Codes:
    """What each interval says; shape as the intervals'."""
    edge = math.log1p(margin)
    equivalent = (interval.low >= -edge) & (interval.high <= edge)
    codes = np.where(interval.low > 0, Claim.ABOVE, np.where(interval.high < 0, Claim.BELOW, Claim.NONE))
    return np.where(equivalent, Claim.EQUIVALENT, codes).astype(np.int8)


def first_claims(differences: Array, design: SequentialDesign) -> tuple[Codes, NDArray[np.int64]]:
    """Each study's first claim, and the blocks it took (all of them where there is none).

    `differences` has the shape (studies, blocks): many studies of one comparison each.
    """
    looked = design.looked_at(differences.shape[-1])
    codes = claims(intervals(differences, looked, design.edges(1, looked)), design.margin)
    some = codes != Claim.NONE
    first = np.where(some.any(axis=-1), some.argmax(axis=-1), len(looked) - 1)
    taken = np.take_along_axis(codes, first[..., None], axis=-1)[..., 0]
    return taken, np.asarray(looked)[first]
