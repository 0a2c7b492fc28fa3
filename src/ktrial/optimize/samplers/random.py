"""Random search: what everything else has to beat."""

from collections.abc import Sequence

import numpy as np

from ktrial.model.tuning import Configuration
from ktrial.optimize.encoding import Encoding
from ktrial.optimize.samplers.protocol import Evaluation


class Random:
    """Configurations drawn uniformly, whatever was measured."""

    def __init__(self, encoding: Encoding, seed: int) -> None:
        self._encoding = encoding
        self._rng = np.random.default_rng([seed, 1])

    def ask(self, count: int, fixed: Configuration | None = None) -> list[Configuration]:
        """See Optimiser."""
        return [self._encoding.draw_with(self._rng, fixed or {}) for _ in range(count)]

    def tell(self, told: Sequence[Evaluation]) -> None:
        """Nothing is learnt."""


def make(encoding: Encoding, objectives: int, seed: int) -> Random:
    """See `optimiser`."""
    return Random(encoding, seed)
