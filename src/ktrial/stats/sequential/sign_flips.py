"""A sign-flip test, which few blocks must pass (Fisher, The Design of Experiments, 1935, 21).

Of all ways to give the log ratios signs, at most 5 % move their mean as far as it lies from 0. That takes
six blocks at least.
"""

import itertools
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

ENOUGH_BLOCKS = 10
"""From so many on, no such test is asked."""
LEVEL = 0.05


def signs_agree(differences: Array) -> Bools:
    """Whether a sign-flip test finds that the mean of log ratios of shape (…, blocks) is not 0."""
    blocks = differences.shape[-1]
    if blocks >= ENOUGH_BLOCKS:
        return np.ones(differences.shape[:-1], dtype=np.bool_)
    reached = np.abs(differences @ _signs(blocks).T)
    observed = np.abs(differences.sum(axis=-1, keepdims=True)) * (1 - 1e-12)
    return np.asarray(((reached >= observed).mean(axis=-1) <= LEVEL) & (observed[..., 0] > 0))


@lru_cache(maxsize=8)
def _signs(blocks: int) -> Array:
    """All ways, one a row."""
    return np.array(list(itertools.product((1.0, -1.0), repeat=blocks)))
