"""Confirmation with noise: fresh runs of the finalists and the baseline, with verdicts.

Fresh runs are in blocks, in random order: one of the baseline, two of each finalist. The runs that found the
finalists are biased in their favour, and count only through the model of few terms, which believes that most
knobs do nothing and takes luck for luck: what it expected of a finalist, with its doubt, is a second estimate
beside that of the fresh runs, for as much as these agree with it (ktrial.stats.typical_groups).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ktrial.format.number_format import tenths
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.tuning import Configuration, Goal, Observation, Purpose
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.optimize.budget import EACH
from ktrial.optimize.confirmation import BASELINE, CANDIDATE, Confirmation, broken, metric_of, told
from ktrial.optimize.evaluation_log import EvaluationLog, RunRequest
from ktrial.optimize.objective import ObjectiveFunction
from ktrial.optimize.surrogate.model import Surrogate
from ktrial.stats.resolution import resolution, rounding
from ktrial.stats.sequential import BlockedMetric, checks
from ktrial.stats.sequential.repeated_intervals import Intervals, claims
from ktrial.stats.typical_groups import EarlierEstimate, Groups, typical_groups
from ktrial.stats.verdict_rules import Claim, verdict_of

Array = NDArray[np.float64]

_DRIFT_ADVICE = (
    "it falls on the baseline and the finalists alike: their runs are in random order within blocks"
)
_APART = 2.6
"""Standard errors between what the search let expect and what fresh runs show that are told: chance makes as
many in one of a hundred."""
_FAILURES = 2
"""Failed runs of every finalist that end confirmation."""
_APART_ADVICE = (
    "the interval is wider for it, and fresh runs count for most; where the machine changed meanwhile, "
    "ktrial revalidate measures the answer again"
)


def confirm(
    log: EvaluationLog,
    surrogate: Surrogate,
    finalists: Sequence[Configuration],
    expected: Sequence[EarlierEstimate],
    blocks: int,
    rng: np.random.Generator,
) -> list[Confirmation]:
    """One a finalist, from so many blocks at most. The model learns from them too.

    `expected`: each finalist's log gain, as the runs of the search let expect; nothing where it is empty.

    All intervals hold together (ktrial.stats.typical_groups), so that the answer may be chosen among them.
    """
    scores = surrogate.scores
    wanted: list[Configuration] = [{}, *(each for each in finalists for _ in range(EACH))]
    earlier = [each for each in log.observations if not each.configuration and not scores.failure(each)]
    fresh: list[Observation] = []
    made = 0
    while made < blocks and log.left >= len(wanted):
        asked = [RunRequest(wanted[at], made) for at in rng.permutation(len(wanted))]
        fresh += log.run(asked, Purpose.CONFIRM)
        made += 1
        if all(len(_failed(scores, fresh, each)) >= _FAILURES for each in finalists):
            break
    surrogate.learn(log.observations)
    measured = _Measured(surrogate, finalists, expected, earlier, fresh, made)
    return [
        Confirmation(
            (measured.comparison(each),),
            broken(scores, fresh, each),
            measured.warnings(each),
            **measured.estimates(each),
        )
        for each in finalists
    ]


def _told(warning: DataWarning) -> DataWarning:
    if warning.kind is WarningKind.DRIFT:
        return warning.model_copy(update={"advice": _DRIFT_ADVICE})
    return told(warning)


def _failed(
    scores: ObjectiveFunction, fresh: Sequence[Observation], candidate: Configuration
) -> list[Observation]:
    return [each for each in fresh if each.configuration == candidate and scores.failure(each)]


@dataclass(frozen=True)
class _Measured:
    """The runs that are compared."""

    surrogate: Surrogate
    finalists: Sequence[Configuration]
    expected: Sequence[EarlierEstimate]
    earlier: Sequence[Observation]
    """The baseline's during the search."""
    fresh: Sequence[Observation]
    blocks: int

    @property
    def goal(self) -> Goal:
        """What is sought."""
        return self.surrogate.scores.goal

    def runs(self, configuration: Configuration) -> list[Observation]:
        """Fresh ones that have a number."""
        own = (each for each in self.fresh if each.configuration == configuration)
        return [each for each in own if not self.surrogate.scores.failure(each)]

    def values(self, runs: Sequence[Observation]) -> Array:
        """Of the objective."""
        metric = self.goal.objectives[0].metric
        return np.array([each.values[metric] for each in runs], dtype=np.float64)

    def label(self, finalist: Configuration) -> str:
        """Its name in comparisons."""
        at = list(self.finalists).index(finalist)
        return f"{CANDIDATE} {at + 1}" if at else CANDIDATE

    def beside_baseline(self, finalist: Configuration) -> BlockedMetric:
        """A finalist's runs, each beside one of the baseline's latest: for warnings about them."""
        own = [each for each in self.fresh if each.configuration == finalist]
        before = [*self.earlier, *(each for each in self.fresh if not each.configuration)][-len(own) :]
        rows = {BASELINE: before, self.label(finalist): own}
        count = max(map(len, rows.values()))
        values = {label: self._numbers(runs, count) for label, runs in rows.items()}
        orders = {
            label: tuple(each.order for each in runs) + (0,) * (count - len(runs))
            for label, runs in rows.items()
        }
        return replace(self._empty, values=values, orders=orders)

    def _numbers(self, runs: Sequence[Observation], count: int) -> tuple[float, ...]:
        failure, metric = self.surrogate.scores.failure, self.goal.objectives[0].metric
        numbers = [math.nan if failure(each) else each.values[metric] for each in runs]
        return (*numbers, *[math.nan] * (count - len(numbers)))

    @cached_property
    def _empty(self) -> BlockedMetric:
        metric = metric_of(self.goal, self.goal.objectives[0].metric)
        return BlockedMetric(
            self.goal.workload, metric, BASELINE, {BASELINE: ()}, {BASELINE: ()}, rows="runs"
        )

    def comparison(self, finalist: Configuration) -> Comparison:
        """With the baseline. One with a failed run is not judged; the others are without it."""
        if self._said is None or finalist not in self._judgeable:
            return self._unjudged(finalist)
        codes = claims(Intervals(self._said.means, self._said.low, self._said.high), self.goal.margin)
        before = math.exp(float(np.median(np.log(self.values(self.runs({}))))))
        at = self._judgeable.index(finalist)
        return self._judged(finalist, self._said, at, Claim(int(codes[at])), before)

    def estimates(self, finalist: Configuration) -> dict[str, float]:
        """`fresh` and `expected` of a Confirmation, where both are known."""
        if self._said is None or finalist not in self._judgeable or not self.expected:
            return {}
        at = self._judgeable.index(finalist)
        both = {"fresh": float(self._said.fresh[at]), "expected": self._known[at].mean}
        return {name: math.exp(each) for name, each in both.items()}

    def warnings(self, finalist: Configuration) -> tuple[DataWarning, ...]:
        """About its runs, and where they are not as expected."""
        told = tuple(map(_told, checks(self.beside_baseline(finalist), independent=True)))
        ratios = self.estimates(finalist)
        if not ratios or abs(self._apart(finalist)) < _APART:
            return told
        before, fresh = (tenths(ratios[name] - 1) for name in ("expected", "fresh"))
        text = (
            f"{self.label(finalist)}: the runs of the search let expect {before} %, fresh runs alone show "
            f"{fresh} %: further apart than chance makes them in 99 of 100 searches"
        )
        return (*told, DataWarning(kind=WarningKind.SEARCH_DISAGREES, text=text, advice=_APART_ADVICE))

    def _apart(self, finalist: Configuration) -> float:
        """Standard errors between fresh runs and what was expected."""
        return float(self._said.apart[self._judgeable.index(finalist)]) if self._said else 0.0

    @cached_property
    def _judgeable(self) -> list[Configuration]:
        failure = self.surrogate.scores.failure
        failed = [each.configuration for each in self.fresh if each.configuration and failure(each)]
        return [each for each in self.finalists if each not in failed and len(self.runs(each)) > 1]

    @cached_property
    def _known(self) -> list[EarlierEstimate]:
        """Of each that is judged, as the logarithm of the objective's ratio."""
        if not self.expected:
            return []
        sign = self.surrogate.scores.sign(0)
        each = (self.expected[list(self.finalists).index(own)] for own in self._judgeable)
        return [EarlierEstimate(sign * mean, deviation) for mean, deviation in each]

    @cached_property
    def _said(self) -> Groups | None:
        """What the runs say; None where there are too few."""
        arms = [self.runs({}), *map(self.runs, self._judgeable)]
        if len(arms) < 2 or min(map(len, arms)) < 2:
            return None
        values = list(map(self.values, arms))
        step = resolution(values)
        return typical_groups(
            [np.log(each) for each in values],
            np.log(self.values(self.earlier)),
            self._known,
            among=len(self.finalists),
            hidden=[rounding([each], step) for each in values],
        )

    def _judged(
        self, finalist: Configuration, said: Groups, at: int, claim: Claim, before: float
    ) -> Comparison:
        margin = self.goal.margin
        reason = f"the interval holds both 1 and more than the margin ({margin * 100:.3g} %)"
        return self._unjudged(finalist).model_copy(
            update={
                "baseline_value": before,
                "value": before * math.exp(said.means[at]),
                "ratio": math.exp(said.means[at]),
                "low": math.exp(said.low[at]),
                "high": math.exp(said.high[at]),
                "verdict": verdict_of(claim, self._empty.metric.direction),
                "reason": f"after {self.blocks} blocks {reason}" if claim is Claim.NONE else "",
            }
        )

    def _unjudged(self, finalist: Configuration) -> Comparison:
        """A comparison without a number."""
        measured = self._empty
        return Comparison(
            workload=measured.workload,
            metric=measured.metric.name,
            unit=measured.metric.unit,
            direction=measured.metric.direction,
            baseline=BASELINE,
            treatment=self.label(finalist),
            baseline_value=None,
            value=None,
            ratio=None,
            low=None,
            high=None,
            verdict=Verdict.INCONCLUSIVE,
            mode=measured.mode,
            reason="a run of it failed, or too few have numbers",
        )
