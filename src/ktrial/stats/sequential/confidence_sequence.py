"""A confidence sequence for a mean: an interval that holds at every number of blocks at once.

The t mixture: the effect size (mean / standard deviation) is given a normal prior with precision g, the
standard deviation the right Haar prior. The Bayes factor against mean 0 after n values with t statistic t is

    B = sqrt(g / (g + n)) · ((1 + t²/(n-1)) / (1 + g/(g + n) · t²/(n-1)))^(n/2)

(Lindon, Ham, Tingley and Bojinov, 'Anytime-valid linear models', arXiv:2210.08589, with one coefficient and
no covariate; Wang and Ramdas, 'Anytime-valid t-tests', arXiv:2310.03722, the Gaussian mixture.) It is a test
martingale in the filtration of the values up to scale, so that by Ville's inequality B ever reaches 1/a with
probability at most a. The interval is where B < 1/a.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

PRECISION = 2.0
"""g: effects of 1/sqrt(2) standard deviations are expected, such as 1 % where a trial's spread is 1 %."""
FEWEST_BLOCKS = 3


def log_bayes_factor(t: Array, blocks: Array, precision: float = PRECISION) -> Array:
    """ln B of t statistics after so many blocks (at least two)."""
    share = precision / (precision + blocks)
    squared = t * t / (blocks - 1)
    log = 0.5 * np.log(share) + 0.5 * blocks * (np.log1p(squared) - np.log1p(share * squared))
    return np.asarray(log)


@lru_cache(maxsize=65536)
def critical_t(blocks: int, alpha: float = 0.05, precision: float = PRECISION) -> float:
    """|t| at which B reaches 1/alpha after so many blocks; infinite where nothing reaches it yet."""
    share = precision / (precision + blocks)
    power = math.exp(-math.log(alpha * alpha * share) / blocks)
    if power * share >= 1:
        return math.inf
    return math.sqrt((blocks - 1) * (power - 1) / (1 - power * share))
