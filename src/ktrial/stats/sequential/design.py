"""How a timed study is judged: margin, error, looks."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ktrial.model.workload import Direction, Metric, Mode
from ktrial.stats.resolution import Rounding, rounding
from ktrial.stats.sequential.boundaries import FEWEST_BLOCKS, LOOKS, boundaries, critical_t
from ktrial.stats.sequential.typical_block import walsh

_GROWTH = (60, 90, 120)


@dataclass(frozen=True)
class SequentialDesign:
    """The rule by which a study stops. Fixed before its first block."""

    margin: float = 0.01
    """The smallest relative change that matters: 0.01 for 1 %."""
    alpha: float = 0.05
    """Probability of a false claim of a difference, two-sided, over all looks together."""
    looks: tuple[int, ...] = LOOKS
    """After how many blocks it is looked at; the last is the most blocks that the study may have."""
    open_ended: bool = False
    """Look after every block, without end, by a confidence sequence; `looks` is then not used."""
    independent: bool = False
    """Whether blocks have nothing in common by design: each trial a boot of its own, or other settings
    between each two blocks. Then the interval is not widened for what neighbours have in common."""

    def __post_init__(self) -> None:
        if not 0 < self.margin < 1:
            raise ValueError("a margin lies above 0 and below 1")
        if not self.open_ended:
            self.edges(1)

    @property
    def last(self) -> int | None:
        """The most blocks that it may have; None where it is open-ended."""
        return None if self.open_ended else self.looks[-1]

    @property
    def looks_once(self) -> bool:
        """Whether the number of blocks is fixed beforehand."""
        return not self.open_ended and len(self.looks) == 1

    def looked_at(self, blocks: int, *, final: bool = False) -> tuple[int, ...]:
        """The looks there have been after so many blocks; `final` adds one at the end, between two looks."""
        if self.open_ended:
            return tuple(range(FEWEST_BLOCKS, blocks + 1))
        past = tuple(look for look in self.looks if look <= blocks)
        early = final and FEWEST_BLOCKS <= blocks < self.looks[-1] and blocks not in past
        return (*past, blocks) if early else past

    def next_look(self, blocks: int) -> int | None:
        """The number of blocks at which to look again; None where there is no further look."""
        if self.open_ended:
            return max(blocks + 1, FEWEST_BLOCKS)
        return next((look for look in self.looks if look > blocks), None)

    def edges(self, among: int, looked: tuple[int, ...] = ()) -> tuple[float, ...]:
        """|t| at each look that ends a comparison, if the error is shared `among` so many."""
        looked = looked or self.looks
        level = self.alpha / among
        if self.open_ended:
            return tuple(critical_t(blocks, level) for blocks in looked)
        if looked == self.looks[: len(looked)]:  # a look's boundary does not depend on later ones
            return boundaries(self.looks, level)[: len(looked)]
        return boundaries(looked, level, self.looks[-1])

    def up_to(self, blocks: int) -> "SequentialDesign":
        """The same rule with so many blocks at most, and looks at the usual places below."""
        return replace(self, looks=usual_looks(blocks))


def usual_looks(blocks: int) -> tuple[int, ...]:
    """6, 10, 15, 20, 30, 40, 60, 90, 120, 180, 240…, and the last at `blocks`."""
    looks = list(LOOKS)
    while looks[-1] < blocks:
        looks.append(looks[-2] * 2 if len(looks) > len(LOOKS) else _GROWTH[1])
    return (*(look for look in looks if look < blocks), blocks)


# What a timed study has measured so far, block by block, and the log ratios that everything rests on.
#
# Randomised complete blocks: every treatment once in each block, in random order. The trial is the unit: a
# trial gives one value for a metric, however often the workload ran in it. The estimate is the location of
# ln(treatment / baseline) over blocks (`typical_block`). What a whole block has in common (drift, a warm
# machine) divides out. A trial that fails, hangs or runs out of time is an outcome: the worst one.

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
    failed: Mapping[str, tuple[bool, ...]] = field(default_factory=dict)
    """Treatment's label → the blocks in which its trial was run and did not complete (it failed, hung, or ran
    out of time); empty where none did. Other blocks without a value are not known, and say nothing."""
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

    def ranked_log_ratios(self, treatment: str) -> Array:
        """The same with the failed trials: plus or minus infinity towards worse, 0 where both arms' failed.

        Raises ValueError where a value is not above zero.
        """
        self.log_ratios(treatment)
        below, above = (
            np.asarray(self.values[label], dtype=np.float64) for label in (self.baseline, treatment)
        )
        lost_below, lost_above = self._failed(self.baseline), self._failed(treatment)
        with np.errstate(invalid="ignore"):
            ratios = np.log(above / below)
        worst = math.inf if self.metric.direction is Direction.LOWER else -math.inf
        ratios = np.where(lost_above & np.isfinite(below), worst, ratios)
        ratios = np.where(lost_below & np.isfinite(above), -worst, ratios)
        ratios = np.where(lost_below & lost_above, 0.0, ratios)
        return np.asarray(ratios[~np.isnan(ratios)])

    def location(self, label: str) -> float | None:
        """The typical value of an arm, failed trials the worst: Hodges and Lehmann's, of logarithms.

        None where there are no values above zero, or too many failed.
        """
        values = np.asarray(self.values[label], dtype=np.float64)
        worst = math.inf if self.metric.direction is Direction.LOWER else 0.0
        values = np.where(self._failed(label) & np.isnan(values), worst, values)
        present = values[~np.isnan(values)]
        if not len(present) or np.any(present[np.isfinite(present)] < 0):
            return None
        with np.errstate(divide="ignore"):
            middle = float(walsh(np.log(present)).location)
        return math.exp(middle) if math.isfinite(middle) else None

    def failures(self, label: str) -> int:
        """How many of its trials did not complete."""
        return int(self._failed(label).sum())

    def _failed(self, label: str) -> NDArray[np.bool_]:
        return np.asarray(self.failed.get(label, (False,) * self.blocks), dtype=np.bool_)

    def rounding(self, *labels: str) -> Rounding:
        """What the resolution of the numbers hides of a sum of these arms' logarithms.

        Of the arms with values above zero throughout.
        """
        arms = [np.asarray(self.values[label], dtype=np.float64) for label in labels]
        present = [arm[np.isfinite(arm)] for arm in arms]
        return rounding([each for each in present if np.all(each > 0)])
