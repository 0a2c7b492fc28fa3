"""How large |t| must be at each look: group-sequential boundaries, and a confidence sequence without an end.

Boundaries of a group-sequential t test, exactly. Spending: Lan and DeMets (Biometrika 70, 1983), Pocock type:
after a fraction f of the blocks, the error spent is a·ln(1 + (e - 1)·f).

A z boundary turned into t quantiles is too small when the first looks come after a few blocks (Jennison
and Turnbull, Biometrika 78, 1991, who compute exact ones). The computation here is exact for normal
differences, and one-dimensional. Let X be independent N(0, s²), V_n the sum of their squares, W_n their sum
divided by sqrt(V_n). V_n is complete and sufficient for s², every W up to n is free of s², so V_n is
independent of them (Basu, 1955). The next look, m blocks later, is therefore

    W' = W·sqrt(B) + sqrt(m)·U·sqrt(1 - B)

with B ~ Beta(n/2, m/2), the share of the old squares in the new sum of squares, and U one coordinate of a
point that lies uniformly on the sphere in m dimensions ((U + 1)/2 ~ Beta((m - 1)/2, (m - 1)/2); a fair coin
where m is 1), all independent of the past. W is a Markov chain, and t = W·sqrt((n - 1)/(n - W²)).

The confidence sequence for a mean holds at every number of blocks at once. The t mixture: the effect size
(mean / standard deviation) is given a normal prior with precision g, the standard deviation the right Haar
prior. The Bayes factor against mean 0 after n values with t statistic t is

    B = sqrt(g / (g + n)) · ((1 + t²/(n-1)) / (1 + g/(g + n) · t²/(n-1)))^(n/2)

(Lindon, Ham, Tingley and Bojinov, 'Anytime-valid linear models', arXiv:2210.08589, with one coefficient and
no covariate; Wang and Ramdas, 'Anytime-valid t-tests', arXiv:2310.03722, the Gaussian mixture.) It is a test
martingale in the filtration of the values up to scale, so that by Ville's inequality B ever reaches 1/a with
probability at most a. The interval is where B < 1/a.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
LOOKS = (6, 10, 15, 20, 30, 40, 60)
"""After how many blocks a study is looked at, unless it says otherwise."""
FEWEST_BLOCKS = 3
_CELLS = 201
"""Cells of the grid on which the distribution of W between two looks is kept; odd, so that one is at 0."""
_SHARES = 24
"""Quadrature nodes for B."""
_Law = Callable[[Array], Array]
"""P(W <= w and no earlier look stopped), up to the symmetric constant."""
PRECISION = 2.0
"""g: effects of 1/sqrt(2) standard deviations are expected, such as 1 % where a trial's spread is 1 %."""


def spent(fraction: float, alpha: float) -> float:
    """Error spent after a fraction (0 to 1) of the blocks: Lan and DeMets 1983, Pocock type."""
    return alpha * math.log1p((math.e - 1) * min(fraction, 1.0))


@lru_cache(maxsize=256)
def boundaries(looks: tuple[int, ...] = LOOKS, alpha: float = 0.05, horizon: int = 0) -> tuple[float, ...]:
    """|t| above which a two-sided test at level `alpha` stops, one value a look.

    `horizon` is the number of blocks at which all error is spent; 0 stands for the last look. Raises
    ValueError where the looks do not rise, begin below three blocks or go beyond the horizon.
    """
    horizon = horizon or looks[-1]
    if not 0 < alpha < 1:
        raise ValueError("alpha lies between 0 and 1")
    if looks[0] < FEWEST_BLOCKS or any(a >= b for a, b in pairwise(looks)):
        raise ValueError(f"looks rise, and the first comes after {FEWEST_BLOCKS} blocks at the earliest")
    if looks[-1] > horizon:
        raise ValueError("no look comes after the horizon")
    edges: list[float] = []
    grid, inside = np.zeros(0), np.zeros(0)
    used, before = 0.0, 0
    for blocks in looks:
        to_spend = spent(blocks / horizon, alpha) - used
        law = _first(blocks) if not edges else _next(grid, inside, before, blocks)
        edge = _edge(law, blocks, to_spend)
        edges.append(edge * math.sqrt((blocks - 1) / (blocks - edge * edge)))
        # Where W may be if the study goes on: points and their masses.
        borders = np.linspace(-edge, edge, _CELLS + 1)
        grid, inside = (borders[1:] + borders[:-1]) / 2, np.diff(law(borders))
        used, before = used + to_spend, blocks
    return tuple(edges)


def _first(blocks: int) -> _Law:
    # scipy.special takes a third of a second to load, and every session loads this module.
    from scipy import special

    def law(w: Array) -> Array:
        t = w * np.sqrt((blocks - 1) / np.maximum(blocks - w * w, 1e-300))
        return np.asarray(special.stdtr(blocks - 1, t))

    return law


def _next(grid: Array, inside: Array, before: int, blocks: int) -> _Law:
    """The law of W at `blocks`, from the masses `inside` at the points `grid` of W at `before`."""
    from scipy import special

    added = blocks - before
    # Quantiles of Beta at Gauss-Legendre nodes, and their weights: smooth for every a and b.
    x, weights = np.polynomial.legendre.leggauss(_SHARES)
    nodes = np.clip(special.betaincinv(before / 2, added / 2, (x + 1) / 2), 1e-12, 1 - 1e-12)
    coordinate = _coordinate(added)

    def law(w: Array) -> Array:
        total = np.zeros_like(w)
        for share, weight in zip(nodes, weights, strict=True):
            step = math.sqrt(added * (1 - share))
            reached = coordinate((w[:, None] - grid[None, :] * math.sqrt(share)) / step)
            total += weight / 2 * (reached @ inside)
        return total

    return law


def _coordinate(dimensions: int) -> _Law:
    """The distribution function of one coordinate of a point on the sphere."""
    if dimensions == 1:
        return lambda u: np.where(u < -1, 0.0, np.where(u < 1, 0.5, 1.0))
    from scipy import special

    points = np.sin(np.linspace(-math.pi / 2, math.pi / 2, 4001))
    half = (dimensions - 1) / 2
    values = special.betainc(half, half, (points + 1) / 2)
    return lambda u: np.interp(u, points, values)


def _edge(law: _Law, blocks: int, mass: float) -> float:
    """The |W| beyond which `mass` lies, on both sides together."""
    # Here: only timed studies need it, and it takes long to load.
    from scipy.optimize import brentq

    most = math.sqrt(blocks)
    top = float(law(np.array([most]))[0])

    def beyond(w: float) -> float:
        return 2 * (top - float(law(np.array([w]))[0])) - mass

    return float(brentq(beyond, 0.0, most * (1 - 1e-12), xtol=1e-10))


@lru_cache(maxsize=65536)
def critical_t(blocks: int, alpha: float = 0.05, precision: float = PRECISION) -> float:
    """|t| at which B reaches 1/alpha after so many blocks; infinite where nothing reaches it yet."""
    share = precision / (precision + blocks)
    power = math.exp(-math.log(alpha * alpha * share) / blocks)
    if power * share >= 1:
        return math.inf
    return math.sqrt((blocks - 1) * (power - 1) / (1 - power * share))
