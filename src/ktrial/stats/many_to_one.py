"""Several treatments beside one baseline in shared blocks, with one error for all of them: Dunnett's test.

Each block has one run of every arm, in random order. Of the logarithms a level is taken out for each block
and each arm; what is left is noise, the same for all arms, estimated from all of them together. The edge of
|t| is that of the largest of k correlated t statistics (Dunnett, JASA 50, 1955): so all k intervals hold
together with probability 1 - alpha, whichever of them is looked at afterwards. With one treatment this is
the paired t test.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ktrial.stats.resolution import NO_ROUNDING, Rounding

Array = NDArray[np.float64]

_SHARED = 0.5
"""Correlation of two differences from the same baseline."""
_SEED = 20261122


@dataclass(frozen=True)
class SharedBlocks:
    """What the blocks say of each treatment; log ratios."""

    means: Array
    """Shape (treatments,)."""
    error: float
    """Standard error of each mean."""
    half: float
    """Half the width of each interval."""

    @property
    def low(self) -> Array:
        """Shape (treatments,)."""
        return np.asarray(self.means - self.half)

    @property
    def high(self) -> Array:
        """Shape (treatments,)."""
        return np.asarray(self.means + self.half)


def shared_blocks(
    logs: Array, alpha: float = 0.05, among: int | None = None, hidden: Rounding = NO_ROUNDING
) -> SharedBlocks:
    """Of logarithms, shape (blocks, 1 + treatments), the baseline first.

    `among`: how many treatments there were at first, where some could not be judged. `hidden`: what the
    resolution of the numbers hides of a difference. Raises ValueError with fewer than two blocks, or no
    treatment.
    """
    blocks, arms = logs.shape
    if blocks < 2 or arms < 2:
        raise ValueError("two blocks and one treatment are the least")
    means = logs.mean(axis=0)
    left = logs - logs.mean(axis=1, keepdims=True) - means + logs.mean()
    freedom = (blocks - 1) * (arms - 1)
    variance = max(float((left**2).sum()) / freedom * 2, hidden.variance)
    error = math.sqrt(variance / blocks)
    half = edge(among or arms - 1, freedom, alpha) * error + hidden.bias
    return SharedBlocks(np.asarray(means[1:] - means[0]), error, half)


@lru_cache(maxsize=256)
def edge(treatments: int, freedom: int, alpha: float = 0.05) -> float:
    """|t| that the largest of so many exceeds with probability `alpha`."""
    from scipy import optimize, stats

    alone, shared = (float(stats.t.isf(alpha / 2 / among, freedom)) for among in (1, treatments))
    if treatments == 1:
        return alone
    shape = np.full((treatments, treatments), _SHARED) + (1 - _SHARED) * np.eye(treatments)
    joint = stats.multivariate_t(shape=shape, df=freedom)

    def beyond(far: float) -> float:
        low, high = np.full(treatments, -far), np.full(treatments, far)
        return 1 - float(joint.cdf(high, lower_limit=low, random_state=_SEED)) - alpha

    # Between one treatment's and Bonferroni's.
    return float(optimize.brentq(beyond, 0.99 * alone, 1.01 * shared, xtol=1e-4))
