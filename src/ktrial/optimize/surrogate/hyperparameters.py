"""Fitting a Gaussian process to runs: weights and lengths of effects, drift, noise, and runs that count for
less."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ktrial.optimize.surrogate.gaussian_process import (
    Data,
    GaussianProcess,
    InputScaling,
    Strengths,
    drift_kernel,
    trend,
)

Array = NDArray[np.float64]

_LEVEL = 1.0
"""Prior standard deviation of the level: anything."""
_SCALE, _SCALE_SPREAD = 0.1, 0.8
WEIGHT, _WEIGHT_SPREAD = 0.12, 1.3
_LENGTH, _LENGTH_SPREAD = 0.4, 0.5
"""Medians of the priors, and the standard deviations of their logarithms; a weight's is that of its product
with the scale, which says how strong interactions are: these do not grow with the scale."""
_DRIFT, _DRIFT_SPREAD = 0.003, 0.8
"""The same of the machine's level over the search."""
_NOISE_SPREAD = 0.25
_OUTLYING = 3.0
"""Standard deviations from what the other runs say."""
_STEPS = 25
"""Steps of the fit at most, from where the last one ended."""
_FAR = 3.0
"""Standard deviations of the prior within which the free numbers stay."""
_TINY = 1e-9
_SHORT = 0.4
"""Of the usual length: where a fit begins that looks for narrow effects."""
_ROUGHER = 0.5
"""Of the likeliest lengths: those of a process that takes what ranges do for less smooth."""


def fit(
    frame: InputScaling, data: Data, noise: float, start: Strengths | None = None, *, quick: bool = False
) -> GaussianProcess:
    """The model of these runs. `noise` is what the baseline's runs say of it, as a standard deviation.

    `start` is where an earlier fit ended; `quick` takes it as it is. Deterministic.
    """
    fitting = Fit(frame, data, noise)
    strengths = start or fitting.prior
    if start is None or not quick:
        strengths = fitting.best_fitted(strengths)
        if fitting.look_for_outliers(strengths):
            strengths = fitting.fitted(strengths)
    fitting.look_for_outliers(strengths)
    return fitting.process(strengths)


def rougher(process: GaussianProcess, noise: float) -> GaussianProcess:
    """The model of the same runs where what ranges do keeps its direction over half the likeliest length.

    Few runs tell little of lengths, and the likeliest ones are too sure that between and beyond what was run
    there is nothing better (the acquisition over several hyperparameters: Snoek, Larochelle and Adams,
    Practical Bayesian optimization of machine learning algorithms, NeurIPS 2012).
    """
    fitting = Fit(process.frame, process.data, noise)
    fitting.excess = process.excess
    return fitting.process(replace(process.strengths, lengths=_ROUGHER * process.strengths.lengths))


class Fit:
    """One set of runs, and what each of them counts: `excess`, as in GaussianProcess."""

    def __init__(self, frame: InputScaling, data: Data, noise: float) -> None:
        self.frame, self._spans = frame, frame.spans
        self.data = data = replace(data, places=frame.projected(data.places))
        self.excess = np.ones(len(data.scores))
        spans = int(frame.spans.sum())
        count = len(frame.spans)
        self._count = count
        self._weights = slice(1, 1 + count)
        """Where the weights are among the logarithms."""
        self.prior = Strengths(_SCALE, np.full(count, WEIGHT), np.full(spans, _LENGTH), _DRIFT, noise)
        self._spreads = np.array(
            [_SCALE_SPREAD]
            + [_WEIGHT_SPREAD] * count
            + [_LENGTH_SPREAD] * spans
            + [_DRIFT_SPREAD, _NOISE_SPREAD]
        )
        places = data.places
        near, far = places.T[:, :, None], places.T[:, None, :]
        chosen = ~frame.spans
        self._same = ((near[chosen] == far[chosen]) & (near[chosen] != 0)).astype(np.float64)
        origin = frame.origin[frame.spans][:, None, None]
        self._apart = (near[frame.spans] - far[frame.spans]) ** 2
        self._off = (near[frame.spans] - origin) ** 2 + (far[frame.spans] - origin) ** 2
        self._time = drift_kernel(data.times, data.times)
        self._known = trend(data.times, data.times) + _LEVEL**2
        self._alone = (near == far).all(axis=0).sum(axis=1) == 1

    def covariance(self, strengths: Strengths) -> Array:
        """Of the runs' scores."""
        effects = strengths.scale**2 * (self._factors(strengths)[0].prod(axis=0) - 1.0)
        own = np.diag(strengths.noise**2 * self.excess)
        return np.asarray(effects + strengths.drift**2 * self._time + self._known + own)

    def process(self, strengths: Strengths) -> GaussianProcess:
        """The model with these strengths."""
        inverse = np.linalg.inv(np.linalg.cholesky(self.covariance(strengths)))
        weights = inverse.T @ (inverse @ self.data.scores)
        return GaussianProcess(self.frame, self.data, strengths, self.excess, inverse, weights)

    def fitted(self, start: Strengths) -> Strengths:
        """The most likely strengths, with their prior."""
        from scipy.optimize import minimize

        prior, far = self.prior.logs, _FAR * self._spreads
        lower = prior - far
        lower[self._weights] -= far[0]
        bounds = list(zip(lower, prior + far, strict=True))
        optimum = minimize(
            self._evidence,
            start.logs,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": _STEPS},
        )
        return Strengths.of(optimum.x, self._count)

    def best_fitted(self, start: Strengths) -> Strengths:
        """The likeliest, from there and from the prior with short lengths: it has several hills."""
        short = replace(self.prior, lengths=_SHORT * self.prior.lengths)
        ends = [self.fitted(each) for each in (start, short)]
        return min(ends, key=self.cost)

    def cost(self, strengths: Strengths) -> float:
        """Minus the logarithm of how likely these strengths are after the runs, but for a constant."""
        return self._evidence(strengths.logs)[0]

    def _factors(self, strengths: Strengths) -> tuple[Array, Array]:
        """1 + b k of each dimension, and of ranges the slope of k over the logarithm of the length."""
        squared = (strengths.lengths**2)[:, None, None]
        bell = np.exp(-0.5 * self._apart / squared)
        both = np.exp(-0.5 * self._off / squared)
        factors = np.empty((self._count, *self._time.shape))
        factors[~self._spans] = self._same
        factors[self._spans] = bell - both
        factors *= strengths.weights[:, None, None]
        factors += 1.0
        return factors, (bell * self._apart - both * self._off) / squared

    def _evidence(self, logs: Array) -> tuple[float, Array]:
        """Minus the logarithm of the marginal likelihood and the prior, with its gradient.

        Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), equations 5.8 and 5.9.
        """
        strengths = Strengths.of(logs, self._count)
        factors, slopes = self._factors(strengths)
        scale = strengths.scale**2
        product = scale * factors.prod(axis=0)
        time, own = strengths.drift**2 * self._time, strengths.noise**2 * self.excess
        covariance = product - scale + time + self._known
        covariance[np.diag_indices_from(covariance)] += own
        root = np.linalg.cholesky(covariance)
        inverse = np.linalg.inv(root)
        inverse = inverse.T @ inverse
        weights = inverse @ self.data.scores
        slope = np.outer(weights, weights) - inverse
        safe = np.where(np.abs(factors) < _TINY, _TINY, factors)
        shares = (slope * product) / safe
        along = 0.5 * ((factors - 1.0) * shares).sum(axis=(1, 2))
        spans = self._spans
        lengths = 0.5 * (slopes * shares[spans]).sum(axis=(1, 2)) * strengths.weights[spans]
        size = (slope * (product - scale)).sum()
        rest = [(slope * time).sum(), float(np.diag(slope) @ own)]
        gradient = -np.concatenate([[size], along, lengths, rest])
        value = 0.5 * float(self.data.scores @ weights) + float(np.log(np.diag(root)).sum())
        unlikely, pull = self._prior_cost(logs)
        return value + unlikely, gradient + pull

    def _prior_cost(self, logs: Array) -> tuple[float, Array]:
        """Minus the logarithm of the prior, with its gradient."""
        away = logs - self.prior.logs
        away[self._weights] += away[0]
        away /= self._spreads
        pull = away / self._spreads
        pull[0] += pull[self._weights].sum()
        return 0.5 * float(away @ away), pull

    def look_for_outliers(self, strengths: Strengths) -> bool:
        """Each run's share of noise: more for one that the others cannot explain. Whether that has changed.

        The leave-one-out residual is that of the model which gives the run no weight of its own.
        """
        before, scores = self.excess, self.data.scores
        self.excess = np.ones(len(scores))
        for _ in range(max(1, len(scores) // 8)):
            inverse = np.linalg.inv(self.covariance(strengths))
            weights, alone = inverse @ scores, np.diag(inverse)
            apart = np.abs(weights) / np.sqrt(alone)
            # A run that looks too good is run again before it is doubted: it may be the answer.
            believed = (self.excess > 1) | (self._alone & (weights > 0))
            worst = int(np.argmax(np.where(believed, 0.0, apart)))
            if believed[worst] or apart[worst] < _OUTLYING:
                break
            residual = weights[worst] / alone[worst]
            self.excess[worst] = max(4.0, (residual / strengths.noise) ** 2)
        return not np.allclose(before, self.excess, rtol=0.2)
