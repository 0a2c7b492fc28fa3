"""Several treatments beside one baseline, with one error for all of them: Dunnett's test (JASA 50, 1955)."""

from functools import lru_cache

import numpy as np

_SHARED = 0.5
"""Correlation of two differences from the same baseline, where all arms have as many runs."""
_SEED = 20261122


@lru_cache(maxsize=256)
def edge(treatments: int, freedom: int, alpha: float = 0.05, correlation: float = _SHARED) -> float:
    """|t| that the largest of so many exceeds with probability `alpha`.

    So all intervals of this width hold together with probability 1 - alpha, whichever of them is looked at
    afterwards. With one treatment this is Student's t. `correlation`: of two differences from the same
    baseline; less than a half where the baseline has more runs than each treatment.
    """
    from scipy import optimize, stats

    alone, apart = (float(stats.t.isf(alpha / 2 / among, freedom)) for among in (1, treatments))
    if treatments == 1:
        return alone
    shape = np.full((treatments, treatments), correlation) + (1 - correlation) * np.eye(treatments)
    joint = stats.multivariate_t(shape=shape, df=freedom)

    def beyond(far: float) -> float:
        low, high = np.full(treatments, -far), np.full(treatments, far)
        return 1 - float(joint.cdf(high, lower_limit=low, random_state=_SEED)) - alpha

    # Between one treatment's and Bonferroni's.
    return float(optimize.brentq(beyond, 0.99 * alone, 1.01 * apart, xtol=1e-4))
