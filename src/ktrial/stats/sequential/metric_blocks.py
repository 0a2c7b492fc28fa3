"""What a timed study has measured so far, block by block, and the log ratios that everything rests on.

Randomised complete blocks: every treatment once in each block, in random order. The trial is the unit: a
trial gives one value for a metric, however often the workload ran in it. The estimate is the mean over
blocks of ln(treatment / baseline), whose exponential is the ratio of geometric means (Fleming and Wallace,
CACM 29(3), 1986). What a whole block has in common (drift, a warm machine) divides out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ktrial.model.workload import Metric, Mode
from ktrial.stats.resolution import Rounding, rounding

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BlockedMetric:
    """One metric of one workload, in all blocks so far."""

    workload: str
    metric: Metric
    baseline: str
    """Label of the baseline treatment; a key of `values`."""
    values: Mapping[str, tuple[float, ...]]
    """Treatment's label → one value a block; NaN where the trial gave none. All of one length."""
    orders: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Treatment's label → each trial's position in the study's run order; empty where it is not known."""
    primary: bool = True
    """Whether the study is about this metric: an exploratory one does not keep it running."""
    mode: Mode = Mode.TIMED
    rows: str = "blocks"
    """What has one value of every treatment, as warnings call it."""

    def __post_init__(self) -> None:
        if self.baseline not in self.values:
            raise ValueError(f"the baseline {self.baseline} has no values")
        if len({len(values) for values in self.values.values()}) > 1:
            raise ValueError("every treatment has one value a block: the lengths differ")

    @property
    def blocks(self) -> int:
        """How many blocks have begun."""
        return len(self.values[self.baseline])

    @property
    def treatments(self) -> tuple[str, ...]:
        """All but the baseline."""
        return tuple(label for label in self.values if label != self.baseline)

    def pairs(self, treatment: str) -> tuple[Array, Array]:
        """Baseline's and treatment's values in the blocks where both are there."""
        below = np.asarray(self.values[self.baseline], dtype=np.float64)
        above = np.asarray(self.values[treatment], dtype=np.float64)
        both = np.isfinite(below) & np.isfinite(above)
        return below[both], above[both]

    def log_ratios(self, treatment: str) -> Array:
        """ln(treatment / baseline), one a block where both are there. Raises ValueError: not above zero."""
        below, above = self.pairs(treatment)
        if np.any(below <= 0) or np.any(above <= 0):
            raise ValueError("a ratio needs values above zero")
        return np.asarray(np.log(above / below))

    def rounding(self, *labels: str) -> Rounding:
        """What the resolution of the numbers hides of a sum of these arms' logarithms.

        Of the arms with values above zero throughout.
        """
        arms = [np.asarray(self.values[each], dtype=np.float64) for each in labels]
        present = [each[np.isfinite(each)] for each in arms]
        return rounding([each for each in present if np.all(each > 0)])
