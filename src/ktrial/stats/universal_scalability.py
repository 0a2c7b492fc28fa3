"""The Universal Scalability Law: what a throughput loses to waiting for each other, and to agreeing.

N. J. Gunther, 'Guerrilla Capacity Planning', Springer 2007, chapters 4 to 6; the same in 'A General Theory of
Computational Scalability Based on Rational Functions', arXiv:0808.1431:

    X(N) = λ·N / (1 + σ·(N - 1) + κ·N·(N - 1))

λ is what one CPU does in a second, σ the contention (the share of the work that is done one after another;
with κ = 0 this is Amdahl's law), κ the coherence (what every pair of CPUs costs). With κ above zero the
throughput has a peak at N = sqrt((1 - σ) / κ).

Fitted by least squares of ln X, σ and κ at least 0: relative errors count alike at all N.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FEWEST_COUNTS = 3
"""Different numbers of CPUs without which the three coefficients cannot be told apart."""
_LEVEL = 0.95


@dataclass(frozen=True)
class Coefficients:
    """One curve."""

    rate: float
    """λ: operations a second of one CPU."""
    contention: float
    """σ, from 0 on."""
    coherence: float
    """κ, from 0 on."""

    def throughput(self, cpus: float) -> float:
        """X(N), operations a second."""
        loss = self.contention * (cpus - 1) + self.coherence * cpus * (cpus - 1)
        return self.rate * cpus / (1 + loss)

    @property
    def peak(self) -> float:
        """The number of CPUs beyond which more make less of it; infinite where there is none."""
        if self.coherence <= 0:
            return math.inf
        return math.sqrt(max(1 - self.contention, 0.0) / self.coherence) or 1.0


@dataclass(frozen=True)
class Estimate:
    """A coefficient over seeds: their mean, and its interval at 95 % (Student's t), cut off at 0.

    `low` and `high` are None with one seed.
    """

    value: float
    low: float | None
    high: float | None


def fit(throughput: Mapping[int, float]) -> Coefficients:
    """The law that comes nearest to `throughput`: number of CPUs → operations a second, above zero.

    Raises ValueError where there are fewer than three numbers of CPUs, or a throughput is not above zero.
    """
    if len(throughput) < FEWEST_COUNTS:
        raise ValueError(f"the law has three coefficients: give at least {FEWEST_COUNTS} numbers of CPUs")
    if min(throughput) < 1 or not all(0 < value < math.inf for value in throughput.values()):
        raise ValueError("numbers of CPUs begin at 1, and throughputs lie above zero")
    # Here: scipy.optimize takes long to load, and most commands fit nothing.
    import numpy as np
    from scipy.optimize import least_squares

    cpus = np.array(sorted(throughput), dtype=float)
    measured = np.log([throughput[int(count)] for count in cpus])

    def residuals(at: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> object:
        loss = at[1] * (cpus - 1) + at[2] * cpus * (cpus - 1)
        return at[0] + np.log(cpus) - np.log1p(loss) - measured

    start = (float(measured[0] - math.log(cpus[0])), 0.01, 0.001)
    solution = least_squares(
        residuals, start, bounds=([-np.inf, 0, 0], [np.inf, np.inf, np.inf]),
        xtol=1e-14, ftol=1e-14, gtol=1e-14, x_scale=(1.0, 0.01, 0.001),
    ).x  # fmt: skip
    return Coefficients(math.exp(solution[0]), float(solution[1]), float(solution[2]))


def over_seeds(values: Sequence[float]) -> Estimate:
    """What one coefficient is, by its values under each seed. Raises ValueError where there are none."""
    if not values:
        raise ValueError("there is no seed")
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Estimate(mean, None, None)
    from scipy.special import stdtrit

    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    half = float(stdtrit(len(values) - 1, (1 + _LEVEL) / 2)) * spread / math.sqrt(len(values))
    return Estimate(mean, max(mean - half, 0.0), mean + half)
