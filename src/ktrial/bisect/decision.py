"""What a search asks, and how numbers answer: does a candidate show the difference between two others?

A candidate is anything that can be measured: a subset of items, a place in a series.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from ktrial.format import number_format
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.workload import Metric, Mode
from ktrial.stats import Arm, compare

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
    known: dict[Candidate, Numbers | None] = field(default_factory=dict)

    def measure(self, candidate: Candidate) -> Numbers | None:
        """As the other one says. Raises LimitReached."""
        if candidate not in self.known:
            if self.limit is not None and len(self.known) >= self.limit:
                raise LimitReached
            self.known[candidate] = self.oracle.measure(candidate)
        return self.known[candidate]


@dataclass(frozen=True)
class ExactJudge(Generic[Candidate]):
    """Decides by exact numbers: no noise, so that one measurement decides.

    Two candidates differ by the rule of `ktrial.stats.exact_comparison`: beyond the margin, and beyond the
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
        low, value, high = (self.value(one) for one in (base, candidate, full))
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
