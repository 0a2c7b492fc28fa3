"""What a search asks, and how numbers answer: does a candidate show the difference between two others?

A candidate is anything that can be measured: a subset of items, a place in a series.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ktrial.format import number_format
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.study import Measurement
from ktrial.model.workload import Metric, Mode
from ktrial.stats.sequential.design import SequentialDesign
from ktrial.stats.sequential.power import blocks_needed
from ktrial.stats.sequential.repeated_intervals import claims, interval_about, means
from ktrial.stats.verdict_rules import Arm, Claim, compare

Candidate = TypeVar("Candidate", bound=Hashable)
Asked = TypeVar("Asked", bound=Hashable, contravariant=True)
HALF = 0.5
_ROUNDING = 1e-9


class Answer(StrEnum):
    """What came of a question."""

    YES = "yes"
    NO = "no"
    UNRESOLVED = "unresolved"
    """The candidate cannot be had or measured; in real time also: the data do not decide."""


@dataclass(frozen=True)
class BisectionMetric:
    """A metric of a workload whose difference is to be explained."""

    workload: str
    """The label of its use."""
    metric: Metric
    mode: Mode = Mode.EXACT_PLUGIN

    @property
    def label(self) -> str:
        """`fork instructions`."""
        return f"{self.workload} {self.metric.name}"


Numbers = Mapping[BisectionMetric, Mapping[int, float]]
"""Each target's value under each perturbation (number → value)."""


class Oracle(Protocol[Asked]):
    """Measures candidates."""

    def measure(self, candidate: Asked) -> Numbers | None:
        """The candidate's numbers; None where it is unresolved: it does not build, boot or run."""


class Judge(Protocol[Asked]):
    """Answers for one target."""

    @property
    def target(self) -> BisectionMetric:
        """What it answers for."""

    def differ(self, first: Asked, second: Asked) -> Answer:
        """Whether the two lie further apart than the margin."""

    def shows(self, candidate: Asked, base: Asked, full: Asked) -> Answer:
        """Whether the candidate has at least half of the way from `base` to `full`."""

    def effect(self, candidate: Asked, base: Asked) -> float | None:
        """The logarithm of candidate / base; None where one has no number."""


class LimitReached(Exception):
    """The search has measured as many candidates as it may."""


@dataclass
class Memory(Generic[Candidate]):
    """An oracle that asks another one at most once for each candidate, and at most `limit` times."""

    oracle: Oracle[Candidate]
    limit: int | None = None
    numbers: dict[Candidate, Numbers | None] = field(default_factory=dict)

    def measure(self, candidate: Candidate) -> Numbers | None:
        """As the other one says. Raises LimitReached."""
        if candidate not in self.numbers:
            if self.limit is not None and len(self.numbers) >= self.limit:
                raise LimitReached
            self.numbers[candidate] = self.oracle.measure(candidate)
        return self.numbers[candidate]


@dataclass(frozen=True)
class ExactJudge(Generic[Candidate]):
    """Decides by exact numbers: no noise, so that one measurement decides.

    Two candidates differ by the rule of `ktrial.stats.verdict_rules`: beyond the margin, and beyond the
    spread over perturbations. Where the margin lies inside the spread they do not (yet) differ.
    A candidate shows a difference from half of it on, in logarithms of the means: a rule with no second
    threshold, under which a difference that is there in B is shown by B and not by A.
    """

    target: BisectionMetric
    oracle: Oracle[Candidate]
    margin: float

    def differ(self, first: Candidate, second: Candidate) -> Answer:
        """See Judge."""
        compared = self.comparison(first, second)
        if compared is None:
            return Answer.UNRESOLVED
        return Answer.YES if compared.verdict in {Verdict.BETTER, Verdict.WORSE} else Answer.NO

    def shows(self, candidate: Candidate, base: Candidate, full: Candidate) -> Answer:
        """See Judge."""
        low, value, high = (self.value(place) for place in (base, candidate, full))
        if low is None or value is None or high is None:
            return Answer.UNRESOLVED
        return Answer.YES if way(low, value, high) >= HALF - _ROUNDING else Answer.NO

    def effect(self, candidate: Candidate, base: Candidate) -> float | None:
        """See Judge."""
        below, above = self.value(base), self.value(candidate)
        if below is None or above is None or min(below, above) <= 0:
            return None
        return math.log(above / below)

    def value(self, candidate: Candidate) -> float | None:
        """The candidate's mean over perturbations."""
        arm = self._arm(candidate)
        return arm.value if arm else None

    def percent(self, candidate: Candidate, base: Candidate) -> str:
        """`+12.3 %`; in words where one has no number above zero."""
        effect = self.effect(candidate, base)
        return "by an unknown share" if effect is None else number_format.change(math.exp(effect))

    def comparison(self, first: Candidate, second: Candidate) -> Comparison | None:
        """The two, compared; None where one of them is unresolved."""
        below, above = self._arm(first), self._arm(second)
        if below is None or above is None:
            return None
        target = self.target
        return compare(target.workload, target.metric, target.mode, below, above, margin=self.margin)

    def _arm(self, candidate: Candidate) -> Arm | None:
        numbers = self.oracle.measure(candidate)
        values = numbers.get(self.target) if numbers else None
        return Arm(str(candidate), dict(values)) if values else None


def way(base: float, value: float, full: float) -> float:
    """How much of the way from base to full the value has: 0 at base, 1 at full.

    In logarithms; as they are where one is not above zero.
    """
    if min(base, value, full) > 0:
        base, value, full = math.log(base), math.log(value), math.log(full)
    return (value - base) / (full - base) if full != base else 0.0


def share(start: float, low: float, high: float, end: float) -> float:
    """How much of the way from start to end lies between low and high."""
    return way(start, high, end) - way(start, low, end)


# Decisions in real time: each is a sequential test on blocks of its own, and all of them share one error.
#
# A search asks at most `decisions` questions. Each is answered at the level alpha / decisions (Bonferroni),
# by the repeated confidence intervals of `ktrial.stats.sequential`, the mean's alone, since each trial is a
# boot of its own. So the probability that any answer of the whole search is wrong is at most alpha,
# whatever the answers before it were: the blocks of a question are measured for it alone. What the blocks
# do not decide is unresolved, never guessed.
#
# - Do two candidates differ: the interval of their ratio, within the margin or away from 1.
# - Does a candidate show a difference: in each block, the distance of its logarithm from the middle between
# base and full. Above it: yes; below it: no. Within a quarter of the margin both answers are right.

Array = NDArray[np.float64]
_MIDDLE = 0.25
"""Part of the margin around the middle in which a candidate neither shows a difference nor does not."""
_FEWEST = 3
FIRST_BLOCKS = 60
"""For the first question, before anything is known of the noise."""
MOST_BLOCKS = 480
"""For any question: what is not decided by then is unresolved."""
_POWER_SHARED = 0.05
"""Probability that any question stays open whose answer is clear, over the whole search."""


class Blocks(Protocol[Asked]):
    """Measures candidates side by side."""

    def blocks(self, candidates: tuple[Asked, ...], count: int) -> Mapping[BisectionMetric, Array] | None:
        """Values of shape (candidates, count): each candidate once in each of the blocks, in random order.

        NaN where a trial failed. None where a candidate cannot be had or never completes.
        """


@dataclass
class Decisions:
    """How many questions a search may ask, and how sure each answer is."""

    most: int
    alpha: float = 0.05
    asked: int = 0

    @property
    def alpha_each(self) -> float:
        """The level of each test."""
        return self.alpha / self.most

    @property
    def wanted_power(self) -> float:
        """Of each test, so that all of them together stay open as rarely as promised."""
        return 1 - _POWER_SHARED / self.most

    def take(self) -> None:
        """One more question. Raises LimitReached."""
        if self.asked >= self.most:
            raise LimitReached
        self.asked += 1


@dataclass
class SequentialJudge(Generic[Candidate]):
    """Answers for one target."""

    target: BisectionMetric
    source: Blocks[Candidate]
    margin: float
    decisions: Decisions
    most_blocks: int = FIRST_BLOCKS
    answers: dict[tuple[Candidate, ...], Answer] = field(default_factory=dict)
    ways: dict[tuple[Candidate, Candidate], float] = field(default_factory=dict)
    """base, full → +1 or -1: to which side the full one lies, as was decided."""
    effects: dict[tuple[Candidate, Candidate], float] = field(default_factory=dict)
    """candidate, base → the logarithm of their ratio, as last estimated."""
    blocks: int = 0
    """Blocks that were measured for all questions."""

    def differ(self, first: Candidate, second: Candidate) -> Answer:
        """See Judge."""
        key = (first, second)
        if key not in self.answers:
            claim = self._decided(key, lambda logs: logs[1] - logs[0], self.margin)
            if claim in (Claim.ABOVE, Claim.BELOW):
                self.ways[key] = float(claim)
            self.answers[key] = _answer(claim, above=Answer.YES, below=Answer.YES, within=Answer.NO)
        return self.answers[key]

    def shows(self, candidate: Candidate, base: Candidate, full: Candidate) -> Answer:
        """See Judge."""
        if candidate in (base, full):
            return Answer.YES if candidate == full else Answer.NO
        key = (base, candidate, full)
        if key not in self.answers:
            way = self.ways.get((base, full)) or self._way(base, full)

            def past_the_middle(logs: Array) -> Array:
                return np.asarray(way * (logs[1] - (logs[0] + logs[2]) / 2))

            claim = self._decided(key, past_the_middle, self.margin * _MIDDLE)
            self.answers[key] = _answer(claim, above=Answer.YES, below=Answer.NO, within=Answer.YES)
        return self.answers[key]

    def effect(self, candidate: Candidate, base: Candidate) -> float | None:
        """See Judge; None where the two were never measured side by side."""
        return self.effects.get((candidate, base))

    def plan_blocks(self, base: Candidate, full: Candidate, spread: float) -> float | None:
        """Choose how many blocks a question may take, from the first difference; return the power of each.

        `spread`: standard deviation of a block's log ratio. None where MOST_BLOCKS are too few: then so
        many are taken.
        """
        effect = abs(self.effects[full, base])
        design = SequentialDesign(
            margin=self.margin * _MIDDLE, alpha=self.decisions.alpha_each, independent=True
        )
        # The variance of x - (a + b) / 2 is 3/4 of that of a - b.
        needed = blocks_needed(
            math.expm1(effect / 2),
            spread * math.sqrt(0.75),
            design,
            share=self.decisions.wanted_power,
        )
        if needed is None or needed.blocks > MOST_BLOCKS:
            self.most_blocks = MOST_BLOCKS
            return None
        self.most_blocks = max(needed.blocks, FIRST_BLOCKS)
        return needed.right

    def spread(self, first: Candidate, second: Candidate) -> float:
        """Standard deviation of the blocks' log ratios of two that were measured side by side."""
        blocks = self.source.blocks((first, second), _FEWEST)
        if blocks is None:
            return math.nan
        logs = np.log(blocks[self.target])
        return float(np.nanstd(logs[1] - logs[0], ddof=1))

    def _way(self, base: Candidate, full: Candidate) -> float:
        """Where the two were not decided about: the way that was estimated."""
        return math.copysign(1.0, self.effects.get((full, base), 1.0))

    def _decided(
        self, candidates: tuple[Candidate, ...], statistic: "Statistic", margin: float
    ) -> Claim | None:
        """The first claim, after as many blocks as it takes; NONE where there is none; None: unresolved."""
        self.decisions.take()
        level = self.decisions.alpha_each
        # Each trial is a boot of its own.
        design = SequentialDesign(margin=margin, alpha=level, independent=True).up_to(self.most_blocks)
        blocks, claim = 0, Claim.NONE
        while claim is Claim.NONE and (target := design.next_look(blocks)):
            collected = self.source.blocks(candidates, target)
            if collected is None:
                return None
            self.blocks += target - blocks
            blocks = target
            claim = self._claim(candidates, np.log(collected[self.target][:, :target]), statistic, design)
        return claim

    def _claim(
        self, candidates: Sequence[Candidate], logs: Array, statistic: "Statistic", design: SequentialDesign
    ) -> Claim:
        complete = logs[:, ~np.isnan(logs).any(axis=0)]
        looked = design.looked_at(complete.shape[1])
        for at, candidate in enumerate(candidates):
            if complete.shape[1]:
                self.effects[candidate, candidates[0]] = float(np.mean(complete[at] - complete[0]))
        if not looked:
            return Claim.NONE
        mean, error, _ = means(statistic(complete), looked)
        bounds = interval_about(mean, error, np.asarray(design.edges(1, looked)))
        return Claim(int(claims(bounds, design.margin)[-1]))


class Statistic(Protocol):
    """One number a block, from the logarithms of its candidates, of shape (candidates, blocks)."""

    def __call__(self, logs: Array) -> Array:
        """Shape (blocks,)."""


def _answer(claim: Claim | None, *, above: Answer, below: Answer, within: Answer) -> Answer:
    if claim is None or claim is Claim.NONE:
        return Answer.UNRESOLVED
    return {Claim.ABOVE: above, Claim.BELOW: below, Claim.EQUIVALENT: within}[claim]


DEFAULT_MARGIN = 0.01


@dataclass(frozen=True)
class Terms:
    """How a bisection is done."""

    kind: str
    before: str
    """What A is called."""
    after: str
    measurement: Measurement
    margin: float = DEFAULT_MARGIN
    metrics: tuple[str, ...] = ()
    """Names of those that are to be explained; empty: the first one of each workload."""
    limit: int | None = None
    """The most candidates that may be measured; None: as many as it takes."""
    alpha: float = 0.05
    """In real time: the probability that any decision of the search is wrong, at most."""
    blocks: int = FIRST_BLOCKS
    """In real time: the most blocks for the first question, which the others are planned from."""
    tell: Callable[[str], None] = field(default=lambda _text: None)


def most_for_one(groups: int) -> int:
    """Candidates for one cause of one member, at most: A, B, the prefixes, itself alone, and B without it."""
    return _prefixes(groups) + 4


def most_for_two(groups: int) -> int:
    """Candidates for a pair that only matters together, at most: each member alone and without is one too."""
    return 2 * (_prefixes(groups) + 1) + 4


def _prefixes(groups: int) -> int:
    return math.ceil(math.log2(groups)) if groups > 1 else 0
