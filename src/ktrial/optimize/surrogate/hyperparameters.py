"""Fitting a Gaussian process to runs: strengths of effects, drift, noise, and runs that count for less."""

import numpy as np
from numpy.typing import NDArray

from ktrial.optimize.surrogate.gaussian_process import (
    Data,
    GaussianProcess,
    InputScaling,
    Strengths,
    drift_kernel,
)

Array = NDArray[np.float64]

_LEVEL = 1.0
"""Prior standard deviation of the level: anything."""
_AMPLITUDE, _AMPLITUDE_SPREAD = 0.03, 0.7
"""A knob's typical effect, and the standard deviation of its logarithm."""
_PAIRS, _PAIRS_SPREAD = 150.0, 1.0
"""Variance of a pair over the product of its knobs' variances: two of 4 % have one of 2 %."""
_DRIFT, _DRIFT_SPREAD = 0.004, 0.8
"""The same of the machine's level over the search."""
_NOISE_SPREAD = 0.35
_OUTLYING = 3.0
"""Standard deviations from what the other runs say."""
_STEPS = 12
"""Steps of the fit at most, from where the last one ended."""


def fit(
    frame: InputScaling, data: Data, noise: float, start: Strengths | None = None, *, quick: bool = False
) -> GaussianProcess:
    """The model of these runs. `noise` is what the baseline's runs say of it, as a standard deviation.

    `start` is where an earlier fit ended; `quick` takes it as it is. Deterministic.
    """
    kernels = frame.kernels(data.places, data.places)
    strengths = start or _prior(len(kernels), noise)
    excess = np.ones(len(data.scores))
    if start and quick:
        excess = _outliers(start, kernels, data)
    for _ in range(0 if start and quick else 3):
        strengths = _fitted(strengths, kernels, data, excess, noise)
        new = _outliers(strengths, kernels, data)
        if np.allclose(new, excess, rtol=0.2):
            break
        excess = new
    factor = _root(_covariance(strengths, kernels, data, excess))
    weights = _solved(factor, data.scores)
    return GaussianProcess(frame, data, strengths, excess, factor, weights)


def _prior(dimensions: int, noise: float) -> Strengths:
    return Strengths(np.full(dimensions, _AMPLITUDE), _PAIRS, _DRIFT, noise)


def _covariance(strengths: Strengths, kernels: Array, data: Data, excess: Array) -> Array:
    time = strengths.drift**2 * drift_kernel(data.times, data.times)
    effects = strengths.covariance(kernels)
    return np.asarray(effects + time + _LEVEL**2 + np.diag(strengths.noise**2 * excess))


def _root(covariance: Array) -> Array:
    return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)


def _solved(factor: Array, scores: Array) -> Array:
    from scipy.linalg import cho_solve

    return np.asarray(cho_solve((factor, True), scores))


def _fitted(start: Strengths, kernels: Array, data: Data, excess: Array, noise: float) -> Strengths:
    from scipy.optimize import minimize

    prior = _prior(len(kernels), noise).logs
    spreads = np.array([_AMPLITUDE_SPREAD] * len(kernels) + [_PAIRS_SPREAD, _DRIFT_SPREAD, _NOISE_SPREAD])
    optimum = minimize(
        lambda logs: _evidence(logs, prior, spreads, kernels, data, excess),
        start.logs,
        jac=True,
        method="L-BFGS-B",
        bounds=[(each - 4 * spread, each + 4 * spread) for each, spread in zip(prior, spreads, strict=True)],
        options={"maxiter": _STEPS},
    )
    return Strengths.of(optimum.x)


def _evidence(
    logs: Array, prior: Array, spreads: Array, kernels: Array, data: Data, excess: Array
) -> tuple[float, Array]:
    """Minus the logarithm of the marginal likelihood and the prior, with its gradient.

    Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), equations 5.8 and 5.9.
    """
    from scipy.linalg import cho_solve

    strengths = Strengths.of(logs)
    time = strengths.drift**2 * drift_kernel(data.times, data.times)
    scaled = kernels * (strengths.amplitudes**2)[:, None, None]
    total = scaled.sum(axis=0)
    pairs = 0.5 * strengths.pairs * (total**2 - (scaled**2).sum(axis=0))
    own = strengths.noise**2 * excess
    factor = _root(total + pairs + time + _LEVEL**2 + np.diag(own))
    weights = cho_solve((factor, True), data.scores)
    inverse = cho_solve((factor, True), np.eye(len(weights)))
    slope = np.outer(weights, weights) - inverse
    along = (scaled * (slope * (1 + strengths.pairs * total))).sum(axis=(1, 2))
    along -= strengths.pairs * ((scaled**2) * slope).sum(axis=(1, 2))
    rest = [0.5 * (slope * pairs).sum(), (slope * time).sum(), float(np.diag(slope) @ own)]
    gradient = -np.concatenate([along, rest])
    away = (logs - prior) / spreads
    value = 0.5 * float(data.scores @ weights) + float(np.log(np.diag(factor)).sum())
    return value + 0.5 * float(away @ away), gradient + away / spreads


def _outliers(strengths: Strengths, kernels: Array, data: Data) -> Array:
    """Each run's share of noise: more for one that the others cannot explain.

    The leave-one-out residual is that of the model which gives the run no weight of its own.
    """
    from scipy.linalg import cho_solve

    excess = np.ones(len(data.scores))
    for _ in range(max(1, len(excess) // 8)):
        factor = _root(_covariance(strengths, kernels, data, excess))
        weights = _solved(factor, data.scores)
        alone = np.diag(cho_solve((factor, True), np.eye(len(weights))))
        apart = np.abs(weights) / np.sqrt(alone)
        worst = int(np.argmax(np.where(excess > 1, 0.0, apart)))
        if apart[worst] < _OUTLYING:
            break
        residual = weights[worst] / alone[worst]
        excess[worst] = max(4.0, (residual / strengths.noise) ** 2)
    return excess
