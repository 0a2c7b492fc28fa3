"""How large |t| must be at each look: group-sequential boundaries, and a confidence sequence without an end.

Boundaries of a group-sequential t test, exactly. Spending: Lan and DeMets (Biometrika 70, 1983), Pocock type:
after a fraction f of the blocks, the error spent is a·ln(1 + (e - 1)·f).

A z boundary turned into t quantiles is too small when the first looks come after a few blocks (Jennison
and Turnbull, Biometrika 78, 1991, who compute exact ones). The computation here is exact for normal
differences, and one-dimensional. Let X be independent N(0, s²), V_n the sum of their squares, W_n their sum
divided by sqrt(V_n). V_n is complete and sufficient for s², every W up to n is free of s², so V_n is
independent of them (Basu, 1955). The next look comes m blocks later. Their sum is sqrt(m)·X with X like one
block, and the sum of their squares is X² + Q with Q of m - 1 squares, all independent of the past. Therefore

    W' = (W·cos θ + sqrt(m)·sin θ)·cos ψ

with tan θ = X / sqrt(V_n), whose density is proportional to cos(θ)^(n-1), and cos²ψ ~ Beta((n + 1)/2,
(m - 1)/2), the share of all but Q in the new sum of squares; ψ is 0 where m is 1. W is a Markov chain, and
t = W·sqrt((n - 1)/(n - W²)).

The distribution function of W between the edges is kept as a polynomial, by its values at Gauss-Legendre
nodes; that of W' is an integral over θ and one over ψ, by Gauss-Legendre quadrature between the places where
the integrands have kinks (Armitage, McPherson and Rowe, JRSS A 132, 1969, integrate densities in this way;
Jennison and Turnbull, Group Sequential Methods, 2000, chapter 19). Levels of 0.0001 to 0.5 come out to five
digits; for many blocks they are those of a normal mean with a known variance.

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
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
LOOKS = (6, 10, 15, 20, 30, 40, 60)
"""After how many blocks a study is looked at, unless it says otherwise."""
FEWEST_BLOCKS = 3
_NODES = 48
"""Of the polynomial that is the distribution function of W between the edges."""
_STEPS = 24
"""Quadrature nodes for θ, and for ψ."""
_TINY = 1e-13
"""Probability beyond which θ and ψ are not integrated."""
_Law = Callable[[Array], Array]
"""P(W <= w and no earlier look stopped)."""
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
    x, _ = np.polynomial.legendre.leggauss(_NODES)
    above = x > 0
    going, used = 1.0, 0.0
    inside: _Inside | None = None
    for blocks in looks:
        to_spend = spent(blocks / horizon, alpha) - used
        law = _first(blocks) if inside is None else _Next(inside, blocks).law
        edge = _edge(law, blocks, going, to_spend)
        edges.append(edge * math.sqrt((blocks - 1) / (blocks - edge * edge)))
        # Where W may be if the study goes on: the lower half mirrors the upper one.
        upper = law(x[above] * edge) - to_spend / 2
        going -= to_spend
        inside = _Inside(blocks, edge, going, np.concatenate([going - upper[::-1], upper]))
        used += to_spend
    return tuple(edges)


def _first(blocks: int) -> _Law:
    # scipy.special takes a third of a second to load, and every session loads this module.
    from scipy import special

    def law(w: Array) -> Array:
        t = w * np.sqrt((blocks - 1) / np.maximum(blocks - w * w, 1e-300))
        return np.asarray(special.stdtr(blocks - 1, t))

    return law


@dataclass(frozen=True)
class _Inside:
    """Studies that go on after a look: what is known of W."""

    blocks: int
    edge: float
    total: float
    """Their share of all studies."""
    values: Array
    """P(W <= w) of those that go on, at the nodes times the edge."""

    def below(self, w: Array) -> Array:
        """The polynomial through the values, in its barycentric form (Berrut and Trefethen, SIAM Review 46,
        2004)."""
        nodes, weights = _barycentric()
        apart = w[..., None] / self.edge - nodes
        shares = weights / np.where(np.abs(apart) < 1e-14, 1e-14, apart)
        return np.asarray((shares @ self.values) / shares.sum(axis=-1))


@lru_cache(maxsize=1)
def _barycentric() -> tuple[Array, Array]:
    """Legendre nodes and their weights: (-1)^j sqrt((1 - x²) w) (Wang and Xiang, Math. Comp. 81, 2012)."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    signs = np.where(np.arange(_NODES) % 2, -1.0, 1.0)
    return nodes, signs * np.sqrt((1 - nodes * nodes) * weights)


class _Next:
    """The law of W' at `blocks`, of the studies that went on at an earlier look."""

    def __init__(self, inside: _Inside, blocks: int) -> None:
        from scipy import special

        self._special = special
        self._inside = inside
        self._added = blocks - inside.blocks
        self._root = math.sqrt(self._added)
        # w·cos θ + sqrt(m)·sin θ = furthest·sin(θ + turn) for w at the edge.
        self._furthest = math.hypot(self._root, inside.edge)
        self._turn = math.atan2(inside.edge, self._root)
        self._freedom = float(inside.blocks)
        # tan θ · sqrt(n) has Student's t distribution with n degrees of freedom.
        self._reach = math.atan(-special.stdtrit(self._freedom, _TINY) / math.sqrt(self._freedom))
        self._steps, self._weights = np.polynomial.legendre.leggauss(_STEPS)

    def law(self, w: Array) -> Array:
        """P(W' <= w and no earlier look stopped), for w of shape (…)."""
        below = self._turned(np.abs(w)) if self._added == 1 else self._shrunk(np.abs(w))
        return np.where(w < 0, self._inside.total - below, below)

    def _turned(self, w: Array) -> Array:
        """Where ψ is 0, of w >= 0: from W at its upper edge, for small θ, to its lower one or back."""
        inside, limit = self._inside, self._reach
        angle = np.arcsin(np.minimum(w / self._furthest, 1.0))
        low = np.clip(angle - self._turn, -limit, limit)
        high = np.clip(np.minimum(angle + self._turn, math.pi - angle - self._turn), -limit, limit)
        half = np.maximum(high - low, 0.0) / 2
        theta = low[..., None] + (self._steps + 1) * half[..., None]
        before = (w[..., None] - self._root * np.sin(theta)) / np.cos(theta)
        below = inside.below(np.clip(before, -inside.edge, inside.edge)) * self._density(theta)
        middle = half * (below @ self._weights)
        beyond = np.where(w > self._root, inside.total * (1 - self._share(low + 2 * half)), 0.0)
        return np.asarray(inside.total * self._share(low) + middle + beyond)

    def _share(self, theta: Array) -> Array:
        return np.asarray(self._special.stdtr(self._freedom, math.sqrt(self._freedom) * np.tan(theta)))

    def _density(self, theta: Array) -> Array:
        n = self._freedom
        scale = self._special.gammaln((n + 1) / 2) - self._special.gammaln(n / 2) - math.log(math.pi) / 2
        return np.asarray(np.exp(scale + (n - 1) * np.log(np.cos(theta))))

    def _shrunk(self, w: Array) -> Array:
        """With ψ, of w >= 0; beyond some ψ no W reaches so far."""
        special, total = self._special, self._inside.total
        kept, added = (self._freedom + 1) / 2, (self._added - 1) / 2
        least = math.asin(math.sqrt(special.betaincinv(added, kept, _TINY)))
        most = math.acos(math.sqrt(special.betaincinv(kept, added, _TINY)))
        last = np.clip(np.arccos(np.minimum(w / self._furthest, 1.0)), least, most)
        half = (last - least) / 2
        psi = least + (self._steps + 1) * half[..., None]
        powers = self._freedom * np.log(np.cos(psi)) + (self._added - 2) * np.log(np.sin(psi))
        density = 2 * np.exp(powers - special.betaln(kept, added))
        middle = half * ((self._turned(w[..., None] / np.cos(psi)) * density) @ self._weights)
        return np.asarray(middle + total * special.betainc(kept, added, np.cos(last) ** 2))


def _edge(law: _Law, blocks: int, going: float, mass: float) -> float:
    """The |W| beyond which `mass` of the studies that are `going` lies, on both sides together."""
    # Here: only timed studies need it, and it takes long to load.
    from scipy.optimize import brentq

    def beyond(w: float) -> float:
        return 2 * (going - float(law(np.array([w]))[0])) - mass

    return float(brentq(beyond, 0.0, math.sqrt(blocks) * (1 - 1e-12), xtol=1e-10))


@lru_cache(maxsize=65536)
def critical_t(blocks: int, alpha: float = 0.05, precision: float = PRECISION) -> float:
    """|t| at which B reaches 1/alpha after so many blocks; infinite where nothing reaches it yet."""
    share = precision / (precision + blocks)
    power = math.exp(-math.log(alpha * alpha * share) / blocks)
    if power * share >= 1:
        return math.inf
    return math.sqrt((blocks - 1) * (power - 1) / (1 - power * share))
