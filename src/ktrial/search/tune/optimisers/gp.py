"""A Gaussian process of scikit-learn's with expected improvement (Jones, Schonlau and Welch, J. Global
Optimization 13, 1998): for few dimensions, most of them ranges. Needs the extra `gp`.

Runs in parallel are held apart by believing the model where it has been asked (Ginsbourger, Le Riche and
Carraro's kriging believer, 2010).
"""

import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktrial.errors import OptimiserMissing
from ktrial.model.tuning import Configuration
from ktrial.search.tune.optimisers.protocol import Told
from ktrial.search.tune.space import Ground

Array = NDArray[np.float64]
_FIRST, _CANDIDATES = 10, 500
_FAILED = 3.0
"""Standard deviations below the mean that a failed run, or one beyond a guard, counts."""


class Gp:
    """See Optimiser. Two objectives are added."""

    def __init__(self, ground: Ground, seed: int) -> None:
        self._ground = ground
        self._rng = np.random.default_rng([seed, 2])
        self._told: list[Told] = []

    def ask(self, count: int, fixed: Configuration | None = None) -> list[Configuration]:
        """See Optimiser."""
        drawn = [self._ground.draw_with(self._rng, fixed or {}) for _ in range(_CANDIDATES)]
        if len(self._told) < _FIRST:
            return drawn[:count]
        rows, scores = self._rows([each.configuration for each in self._told]), self._scores()
        places = self._rows(drawn)
        chosen: list[int] = []
        model = _fitted(rows, scores)
        for _ in range(count):
            mean, spread = model.predict(places, return_std=True)
            gain = _expected_improvement(mean, spread, float(scores.max()))
            gain[chosen] = -np.inf
            at = int(np.argmax(gain))
            chosen.append(at)
            rows, scores = np.vstack([rows, places[at]]), np.append(scores, mean[at])
            model = _fitted(rows, scores, model.kernel_)
        return [drawn[at] for at in chosen]

    def tell(self, told: Sequence[Told]) -> None:
        """See Optimiser."""
        self._told += told

    def _scores(self) -> Array:
        good = [sum(each.scores) for each in self._told if each.scores and not each.excess]
        mean, spread = (float(np.mean(good)), float(np.std(good)) or 1.0) if good else (0.0, 1.0)
        bad = mean - _FAILED * spread
        found = [bad if each.excess or not each.scores else sum(each.scores) for each in self._told]
        return (np.array(found) - mean) / spread

    def _rows(self, configurations: Sequence[Configuration]) -> Array:
        """Coordinates, and one column for each choice."""
        found = []
        for configuration in configurations:
            point = self._ground.point(configuration)
            row: list[float] = []
            for each in self._ground.space.dimensions:
                codes = self._ground.codes.get(each.name)
                at = point[each.name]
                row += [float(at == choice) for choice in codes] if codes else [float(at)]
            found.append(row)
        return np.array(found)


def make(ground: Ground, objectives: int, seed: int) -> Gp:
    """See `optimiser`. Raises OptimiserMissing."""
    if find_spec("sklearn") is None:
        raise OptimiserMissing(name="gp", package="scikit-learn")
    return Gp(ground, seed)


def _fitted(rows: Array, scores: Array, kernel: Any = None) -> Any:
    """A first fit looks for the kernel's numbers; one with a kernel that was found takes them."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern, WhiteKernel

    first = Matern(np.full(rows.shape[1], 1.0), (0.05, 20.0), nu=2.5) + WhiteKernel(0.1, (1e-4, 1.0))
    model = GaussianProcessRegressor(kernel or first, optimizer=None if kernel else "fmin_l_bfgs_b")
    with warnings.catch_warnings():
        # A dimension that does nothing has no length scale, and says so.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(rows, scores)


def _expected_improvement(mean: Array, spread: Array, best: float) -> Array:
    from scipy import special

    deviation = np.maximum(spread, 1e-9)
    apart = (mean - best) / deviation
    density = np.exp(-0.5 * apart**2) / np.sqrt(2 * np.pi)
    return np.asarray(deviation * (apart * special.ndtr(apart) + density))
