"""How a timed study is judged: margin, error, looks."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ktrial.model import comparison as model
from ktrial.model.comparison import Estimand
from ktrial.model.workload import Direction, Metric, Mode
from ktrial.stats.resolution import Rounding, resolution, rounding
from ktrial.stats.sequential.boots import BootClusters, boots_of
from ktrial.stats.sequential.boundaries import FEWEST_BLOCKS, LOOKS, boundaries, critical_t
from ktrial.stats.sequential.estimands import PairedArms, quantile, spikes
from ktrial.stats.sequential.typical_block import walsh

_GROWTH = (60, 90, 120)
_LEAST_AT_LIMIT = 3
_LIMIT_SHARE = 0.1
"""So many trials of an arm, and such a share of them, with one largest number stand at a limit."""
_RARELY = 0.01
"""About how often the largest of an arm's numbers has an equal by chance, where two tell a limit."""


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
    estimand: Estimand = Estimand.TYPICAL
    """What the verdicts are about."""
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
        return replace(self, looks=usual_looks(blocks, fewest_blocks(self.estimand)))


def usual_looks(blocks: int, first: int = FEWEST_BLOCKS) -> tuple[int, ...]:
    """6, 10, 15, 20, 30, 40, 60, 90, 120, 180, 240…, and the last at `blocks`; none before `first`."""
    looks = list(LOOKS)
    while looks[-1] < blocks:
        looks.append(looks[-2] * 2 if len(looks) > len(LOOKS) else _GROWTH[1])
    return (*(look for look in looks if first <= look < blocks), blocks)


def fewest_blocks(estimand: Estimand) -> int:
    """Before so many blocks there is no verdict, whatever they say: of one treatment, at the usual error."""
    return model.FEWEST_BLOCKS.get(estimand, FEWEST_BLOCKS)


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
    boots: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Treatment's label → the boot in which each block's trial ran, of a system that trials share; empty
    where it is not known."""
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

    def arms(self, treatment: str, estimand: Estimand = Estimand.TYPICAL) -> PairedArms:
        """The baseline's numbers and the treatment's in the blocks where both are known, each with two ends.

        A trial that failed is the worst; where all trials count together it lies between the best number of
        its arm and no end. A number at a limit (`at_limit`) lies between the limit and no end.
        Raises ValueError where a value is not above zero.
        """
        self.log_ratios(treatment)
        ends = [self._ends(label, estimand) for label in (self.baseline, treatment)]
        low, high = (np.stack([end[place] for end in ends]) for place in (0, 1))
        known = ~np.isnan(low).any(axis=0)
        return PairedArms(low[:, known], high[:, known], self.metric.direction is Direction.LOWER)

    def boots_of(self, treatment: str) -> BootClusters | None:
        """In which boots the blocks of a comparison ran; None where that is not known.

        Raises ValueError where a value is not above zero.
        """
        if not self.boots:
            return None
        labels = (self.baseline, treatment)
        known = ~np.any([np.isnan(self._ends(label, Estimand.TYPICAL)[0]) for label in labels], axis=0)
        ratios, _ = self.arms(treatment).log_ratios
        below, above = (self.boots.get(label, ()) for label in labels)
        return boots_of(ratios, below, above, known.tolist())

    def _ends(self, label: str, estimand: Estimand) -> tuple[Array, Array]:
        values, is_time = self._numbers(label), self.metric.direction is Direction.LOWER
        worst, present = math.inf if is_time else 0.0, values[np.isfinite(values)]
        lost = self._failed(label) & np.isnan(values)
        low, high = np.where(lost, worst, values), np.where(lost, worst, values)
        if estimand is Estimand.TOTAL and len(present):
            best = float(present.min() if is_time else present.max())
            low, high = np.where(lost & is_time, best, low), np.where(lost & (not is_time), best, high)
        return low, np.where(self.at_limit(label), math.inf, high)

    def at_limit(self, label: str) -> NDArray[np.bool_]:
        """Which of an arm's numbers stand at a limit, such as a time-out: its largest one, several times.

        Of numbers of which the smaller the better; not where numbers repeat anyway, as a coarse clock's do.
        Where the numbers have so many digits that two of them are hardly ever the same, two are enough.
        """
        values = self._numbers(label)
        present = values[np.isfinite(values)]
        none = np.zeros(len(values), dtype=np.bool_)
        if self.metric.direction is not Direction.LOWER or len(present) < _LEAST_AT_LIMIT:
            return none
        largest = present.max()
        others = present[present < largest]
        at_largest, fewest = len(present) - len(others), 2
        if at_largest < fewest:
            return none
        if len(others) and resolution([present]) * len(present) > _RARELY * (largest - present.min()):
            fewest = math.ceil(max(_LEAST_AT_LIMIT, _LIMIT_SHARE * len(present)))
        are_distinct = len(set(others.tolist())) >= 0.9 * len(others)
        if at_largest < fewest or len(others) < fewest - 1 or not are_distinct:
            return none
        return np.asarray(values == largest)

    def level(self, label: str, estimand: Estimand = Estimand.TYPICAL) -> float | None:
        """An arm's number as the estimand has it: Hodges and Lehmann's location of its logarithms, or its
        arithmetic mean, or its quantile; failed trials are the worst.

        None where there are no values above zero, or too many failed.
        """
        if (label, estimand) not in self._levels:
            self._levels[label, estimand] = self._level(label, estimand)
        return self._levels[label, estimand]

    def _level(self, label: str, estimand: Estimand) -> float | None:
        low, _ = self._ends(label, Estimand.TYPICAL)
        present = low[~np.isnan(low)]
        if not len(present) or np.any(present[np.isfinite(present)] < 0):
            return None
        if estimand is Estimand.TOTAL:
            level = float(present.mean())
        elif estimand is Estimand.TAIL:
            level = float(quantile(present, self.metric.direction is Direction.LOWER))
        else:
            with np.errstate(divide="ignore"):
                level = math.exp(float(walsh(np.log(present)).location))
        return level if 0 < level < math.inf else None

    def spikes(self, label: str) -> NDArray[np.bool_]:
        """Which trials of an arm lie far off its typical one, towards worse."""
        if label not in self._spikes:
            is_time = self.metric.direction is Direction.LOWER
            self._spikes[label] = spikes(self._numbers(label), higher_is_worse=is_time)
        return self._spikes[label]

    # The baseline's are asked for once for each treatment.

    @cached_property
    def _levels(self) -> dict[tuple[str, Estimand], float | None]:
        return {}

    @cached_property
    def _spikes(self) -> dict[str, NDArray[np.bool_]]:
        return {}

    def _numbers(self, label: str) -> Array:
        return np.asarray(self.values[label], dtype=np.float64)

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
