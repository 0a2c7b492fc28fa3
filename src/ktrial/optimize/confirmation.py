"""What fresh runs say of a configuration: guards, exact verdicts, and the sentence of the answer."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ktrial.format.number_format import tenths
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.tuning import Configuration, FrontPoint, Goal, Guard, Observation, Purpose
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Direction, Metric, Mode
from ktrial.optimize.budget import EACH, Shares
from ktrial.optimize.evaluation_log import EvaluationLog, ObjectiveFunction, RunRequest
from ktrial.optimize.gaussian_process import Array
from ktrial.optimize.response_model import Surrogate
from ktrial.stats import verdict_rules
from ktrial.stats.resolution import resolution, rounding
from ktrial.stats.sequential.data_warnings import checks
from ktrial.stats.sequential.design import BlockedMetric, SequentialDesign, usual_looks
from ktrial.stats.sequential.interim_analysis import look
from ktrial.stats.sequential.repeated_intervals import Intervals, claims
from ktrial.stats.typical_groups import EarlierEstimate, Groups, typical_groups
from ktrial.stats.verdict_rules import Claim, verdict_of

BASELINE, CANDIDATE = "baseline", "candidate"
_ADVICE = {
    WarningKind.EARLY_STOPPING: "the interval holds all the same; ktrial tune revalidate measures it again",
    WarningKind.RARE_TRIALS_UNSEEN: "ktrial tune revalidate measures it again, in more blocks",
    WarningKind.FAR_BLOCKS: "they count for as much as ordinary ones do: the answer is about typical runs; "
    "what those trials met is worth a look of its own",
}


def _breach(guard: Guard, values: Sequence[float]) -> str:
    """How the guard was not kept: `==` by every run, the others by the median; empty where it was."""
    beyond = [value for value in values if not guard.keeps(value)]
    if guard.relation == "==" and beyond:
        return f"{guard} was not kept in {len(beyond)} of {len(values)} runs: {beyond[0]:g}"
    middle = statistics.median(values)
    return "" if guard.keeps(middle) else f"{guard} was not kept: the median is {middle:g}"


def broken(
    scores: ObjectiveFunction, fresh: Sequence[Observation], candidate: Configuration
) -> tuple[str, ...]:
    """The guards that its runs did not keep, and how many failed, each in a sentence."""
    runs = [run for run in fresh if run.configuration == candidate]
    problems = [scores.failure(run) for run in runs if scores.failure(run)]
    broken = [f"{len(problems)} of {len(runs)} runs failed: {problems[0]}"] if problems else []
    for guard in scores.goal.guards:
        values = [run.values[guard.metric] for run in runs if guard.metric in run.values]
        if values and (text := _breach(guard, values)):
            broken.append(text)
    return tuple(broken)


@dataclass(frozen=True)
class Confirmation:
    """What fresh runs say about a candidate."""

    comparisons: tuple[Comparison, ...]
    """One an objective."""
    broken: tuple[str, ...]
    """Guards that the candidate did not keep, and failed runs, each in a sentence."""
    warnings: tuple[DataWarning, ...] = ()
    fresh: float | None = None
    """The first objective's ratio as fresh runs alone show it, where something else counts as well."""
    expected: float | None = None
    """And as the runs of the search let expect it."""

    @property
    def better(self) -> bool:
        """Whether an objective is better, none worse, and nothing is broken."""
        verdicts = [comparison.verdict for comparison in self.comparisons]
        return Verdict.BETTER in verdicts and Verdict.WORSE not in verdicts and not self.broken

    @property
    def trades(self) -> bool:
        """Whether one objective is better, another worse, and nothing is broken."""
        verdicts = [comparison.verdict for comparison in self.comparisons]
        return Verdict.BETTER in verdicts and Verdict.WORSE in verdicts and not self.broken


def told(warning: DataWarning) -> DataWarning:
    """A study's warning, with advice that fits a search."""
    advice = _ADVICE.get(warning.kind)
    return warning.model_copy(update={"advice": advice}) if advice else warning


def metric_of(goal: Goal, name: str) -> Metric:
    """The objective of this name."""
    objective = next(objective for objective in goal.objectives if objective.metric == name)
    return Metric(name=name, unit=objective.unit, direction=objective.direction)


def confirm_exactly(
    log: EvaluationLog, scores: ObjectiveFunction, candidate: Configuration, mode: Mode
) -> Confirmation:
    """In noise-free mode: both under every perturbation, and the verdict of exact studies."""
    count = min(max(1, log.measuring.perturbations), max(1, log.left // 2))
    requests = [RunRequest(configuration, at, at) for at in range(count) for configuration in ({}, candidate)]
    fresh = log.run(requests, Purpose.CONFIRM)
    return Confirmation(compared_exactly(scores, fresh, candidate, mode), broken(scores, fresh, candidate))


def compared_exactly(
    scores: ObjectiveFunction, fresh: Sequence[Observation], candidate: Configuration, mode: Mode
) -> tuple[Comparison, ...]:
    """The candidate beside the baseline, in each objective."""
    comparisons = []
    for objective in scores.goal.objectives:
        arms = [
            _arm(
                scores, label, [run for run in fresh if run.configuration == configuration], objective.metric
            )
            for label, configuration in ((BASELINE, {}), (CANDIDATE, candidate))
        ]
        metric = metric_of(scores.goal, objective.metric)
        margin, workload = scores.goal.margin, scores.goal.workload
        comparisons.append(verdict_rules.compare(workload, metric, mode, arms[0], arms[1], margin=margin))
    return tuple(comparisons)


def _arm(
    scores: ObjectiveFunction, label: str, runs: Sequence[Observation], metric: str
) -> verdict_rules.Arm:
    good = {run.perturbation: run.values[metric] for run in runs if not scores.failure(run)}
    failed = next((scores.failure(run) for run in runs if scores.failure(run)), "")
    return verdict_rules.Arm(label, good, f"a run failed: {failed}" if failed else "")


def sentence(candidate: Configuration, confirmation: Confirmation | None, goal: Goal, smallest: float) -> str:
    """What was found, or that nothing was, with what the budget could have shown."""
    percent = smallest * 100
    least = f"{percent:{'.2g' if percent < 10 else '.0f'}} %"
    beyond = f"a gain below {least}, or of values that it did not try together, may have escaped it"
    if confirmation is None:
        return f"No gain that this budget can show: no configuration promised one; {beyond}."
    if confirmation.better:
        return f"{_knobs(candidate)}: {_shown(confirmation, goal)}, confirmed on fresh runs."
    if confirmation.broken:
        return (
            f"No gain: the best configuration did not hold when it was run again ({confirmation.broken[0]})."
        )
    if any(comparison.verdict is Verdict.WORSE for comparison in confirmation.comparisons):
        return f"No gain: on fresh runs the best configuration is worse, {_shown(confirmation, goal)}."
    return f"No gain that this budget can show: {_shown(confirmation, goal)} on fresh runs; {beyond}."


def _knobs(candidate: Configuration) -> str:
    if len(candidate) == 1:
        ((name, value),) = candidate.items()
        return f"{name}={value}"
    return f"{len(candidate)} knobs together"


def _shown(confirmation: Confirmation, goal: Goal) -> str:
    return " and ".join(
        change_in_words(comparison) for comparison in confirmation.comparisons[: len(goal.objectives)]
    )


def change_in_words(comparison: Comparison) -> str:
    """`rps +12.0 % (+10.1 … +13.9) (higher is better)`."""
    if comparison.ratio is None:
        return f"{comparison.metric} without a number"
    better = "higher" if comparison.direction is Direction.HIGHER else "lower"
    interval = (
        f" ({tenths(comparison.low - 1)} … {tenths(comparison.high - 1)})"
        if comparison.low and comparison.high
        else ""
    )
    return f"{comparison.metric} {tenths(comparison.ratio - 1)} %{interval} ({better} is better)"


# Confirmation with noise: fresh runs of the finalists and the baseline, with verdicts.
#
# Fresh runs are in blocks, in random order: one of the baseline, two of each finalist. The runs that found
# the finalists are biased in their favour, and count only through the model of few terms, which believes
# that most knobs do nothing and takes luck for luck: what it expected of a finalist, with its doubt, is a
# second estimate beside that of the fresh runs, for as much as these agree with it
# (ktrial.stats.typical_groups).

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
    "ktrial tune revalidate measures the answer again"
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
    block: list[Configuration] = [{}, *(finalist for finalist in finalists for _ in range(EACH))]
    earlier = [run for run in log.observations if not run.configuration and not scores.failure(run)]
    fresh: list[Observation] = []
    completed = 0
    while completed < blocks and log.left >= len(block):
        requests = [RunRequest(block[at], completed) for at in rng.permutation(len(block))]
        fresh += log.run(requests, Purpose.CONFIRM)
        completed += 1
        if all(len(_failed(scores, fresh, finalist)) >= _FAILURES for finalist in finalists):
            break
    surrogate.learn(log.observations)
    measured = _Measured(surrogate, finalists, expected, earlier, fresh, completed)
    return [
        Confirmation(
            (measured.comparison(finalist),),
            broken(scores, fresh, finalist),
            measured.warnings(finalist),
            **measured.estimates(finalist),
        )
        for finalist in finalists
    ]


def _told(warning: DataWarning) -> DataWarning:
    if warning.kind is WarningKind.DRIFT:
        return warning.model_copy(update={"advice": _DRIFT_ADVICE})
    return told(warning)


def _failed(
    scores: ObjectiveFunction, fresh: Sequence[Observation], candidate: Configuration
) -> list[Observation]:
    return [run for run in fresh if run.configuration == candidate and scores.failure(run)]


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
        runs = (run for run in self.fresh if run.configuration == configuration)
        return [run for run in runs if not self.surrogate.scores.failure(run)]

    def values(self, runs: Sequence[Observation]) -> Array:
        """Of the objective."""
        metric = self.goal.objectives[0].metric
        return np.array([run.values[metric] for run in runs], dtype=np.float64)

    def label(self, finalist: Configuration) -> str:
        """Its name in comparisons."""
        at = list(self.finalists).index(finalist)
        return f"{CANDIDATE} {at + 1}" if at else CANDIDATE

    def beside_baseline(self, finalist: Configuration) -> BlockedMetric:
        """A finalist's runs, each beside one of the baseline's latest: for warnings about them."""
        runs = [run for run in self.fresh if run.configuration == finalist]
        before = [*self.earlier, *(run for run in self.fresh if not run.configuration)][-len(runs) :]
        rows = {BASELINE: before, self.label(finalist): runs}
        count = max(map(len, rows.values()))
        values = {label: self._numbers(runs, count) for label, runs in rows.items()}
        orders = {
            label: tuple(run.order for run in runs) + (0,) * (count - len(runs))
            for label, runs in rows.items()
        }
        return replace(self._empty, values=values, orders=orders)

    def _numbers(self, runs: Sequence[Observation], count: int) -> tuple[float, ...]:
        failure, metric = self.surrogate.scores.failure, self.goal.objectives[0].metric
        numbers = [math.nan if failure(run) else run.values[metric] for run in runs]
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
        return {name: math.exp(item) for name, item in both.items()}

    def warnings(self, finalist: Configuration) -> tuple[DataWarning, ...]:
        """About its runs, and where they are not as expected."""
        warnings = tuple(map(_told, checks(self.beside_baseline(finalist), independent=True)))
        ratios = self.estimates(finalist)
        if not ratios or abs(self._apart(finalist)) < _APART:
            return warnings
        before, fresh = (tenths(ratios[name] - 1) for name in ("expected", "fresh"))
        text = (
            f"{self.label(finalist)}: the runs of the search let expect {before} %, fresh runs alone show "
            f"{fresh} %: further apart than chance makes them in 99 of 100 searches"
        )
        return (*warnings, DataWarning(kind=WarningKind.SEARCH_DISAGREES, text=text, advice=_APART_ADVICE))

    def _apart(self, finalist: Configuration) -> float:
        """Standard errors between fresh runs and what was expected."""
        return float(self._said.apart[self._judgeable.index(finalist)]) if self._said else 0.0

    @cached_property
    def _judgeable(self) -> list[Configuration]:
        failure = self.surrogate.scores.failure
        failed = [run.configuration for run in self.fresh if run.configuration and failure(run)]
        return [
            finalist for finalist in self.finalists if finalist not in failed and len(self.runs(finalist)) > 1
        ]

    @cached_property
    def _known(self) -> list[EarlierEstimate]:
        """Of each that is judged, as the logarithm of the objective's ratio."""
        if not self.expected:
            return []
        sign = self.surrogate.scores.sign(0)
        estimates = (self.expected[list(self.finalists).index(finalist)] for finalist in self._judgeable)
        return [EarlierEstimate(sign * mean, deviation) for mean, deviation in estimates]

    @cached_property
    def _said(self) -> Groups | None:
        """What the runs say; None where there are too few."""
        arms = [self.runs({}), *map(self.runs, self._judgeable)]
        if len(arms) < 2 or min(map(len, arms)) < 2:
            return None
        values = list(map(self.values, arms))
        step = resolution(values)
        return typical_groups(
            [np.log(arm) for arm in values],
            np.log(self.values(self.earlier)),
            self._known,
            among=len(self.finalists),
            hidden=[rounding([arm], step) for arm in values],
        )

    def _judged(
        self, finalist: Configuration, groups: Groups, at: int, claim: Claim, before: float
    ) -> Comparison:
        margin = self.goal.margin
        reason = f"the interval holds both 1 and more than the margin ({margin * 100:.3g} %)"
        return self._unjudged(finalist).model_copy(
            update={
                "baseline_value": before,
                "value": before * math.exp(groups.means[at]),
                "ratio": math.exp(groups.means[at]),
                "low": math.exp(groups.low[at]),
                "high": math.exp(groups.high[at]),
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


# Two objectives: points of the front, and what is best in both together, on fresh runs in shared blocks.
#
# Where the objectives are in conflict there is no one answer: which of the confirmed points serves is the
# user's to choose. All comparisons, of every point in both objectives, are one family (Holm's procedure in
# `ktrial.stats.sequential.interim_analysis.look`), so that the error of all together is held.

_MOST_POINTS, _FEWEST_BLOCKS = 3, 6
_FEWEST_POINTS = 2


def runs_for_front(shares: Shares, runs: int, *, noise_free: bool) -> int:
    """Runs to be put by: as many as for one answer, and enough for two points where the budget has them."""
    fewest = (_FEWEST_POINTS + 1) * (shares.confirm // 2 if noise_free else _FEWEST_BLOCKS)
    return max(shares.confirm, min(fewest, runs // 2))


def points_to_confirm(
    front: Sequence[FrontPoint], candidate: Configuration, goal: Goal, runs: int, *, noise_free: bool
) -> list[Configuration]:
    """What may gain in both, the candidate, the front's far end and its middle: as many as so many runs can
    judge; one at least.

    `front`: the best in the first objective first.
    """
    changed = [point for point in front if point.configuration]
    points = [balanced] if (balanced := _balanced(changed, goal)) else []
    # The far end and the middle: the other end is next to the baseline, and says little.
    ends = [point.configuration for point in (*changed[:1], *changed[len(changed) // 2 :][:1])]
    for point in (candidate, *ends):
        if point and point not in points:
            points.append(point)
    each = 1 if noise_free else _FEWEST_BLOCKS
    return points[: max(1, min(_MOST_POINTS, runs // each - 1))]


def _balanced(points: Sequence[FrontPoint], goal: Goal) -> Configuration:
    """The point whose smaller gain is the largest; empty where none promises to gain in one objective more
    than the margin, and to lose nothing in the other."""

    def gains(point: FrontPoint) -> list[float]:
        pairs = zip(point.ratios, goal.objectives, strict=True)
        return sorted(
            math.log(ratio) * (1 if comparison.direction is Direction.HIGHER else -1)
            for ratio, comparison in pairs
        )

    promising = [point for point in points if gains(point)[0] >= 0 and gains(point)[1] > goal.margin]
    return max(promising, key=gains).configuration if promising else {}


def confirm_front(
    log: EvaluationLog,
    scores: ObjectiveFunction,
    points: Sequence[Configuration],
    rng: np.random.Generator,
    runs: int,
) -> list[Confirmation]:
    """One confirmation a point, each with a comparison an objective.

    `runs`: how many may be made. Blocks of one run of the baseline and of each point, in random order.
    """
    block = [{}, *points]
    blocks = min(runs, log.left) // len(block)
    if not points or not blocks:
        return []
    design = SequentialDesign(margin=scores.goal.margin, looks=usual_looks(max(blocks, _FEWEST_BLOCKS)))
    fresh: list[Observation] = []
    ahead: int | None = design.looks[0]
    completed = 0
    while ahead is not None and completed < blocks and log.left >= len(block):
        for _ in range(min(ahead, blocks) - completed):
            requests = [RunRequest(block[at], completed) for at in rng.permutation(len(block))]
            fresh += log.run(requests, Purpose.CONFIRM)
            completed += 1
        ahead = look(_measured(scores, fresh, points, completed), design, final=completed >= blocks).next_look
    judged = look(_measured(scores, fresh, points, completed), design, final=True)
    return [
        Confirmation(
            tuple(comparison for comparison in judged.comparisons if comparison.treatment == _label(at)),
            broken(scores, fresh, point),
            tuple(map(told, judged.warnings)) if not at else (),
        )
        for at, point in enumerate(points)
    ]


def confirm_front_exactly(
    log: EvaluationLog, scores: ObjectiveFunction, points: Sequence[Configuration], mode: Mode, runs: int
) -> list[Confirmation]:
    """In noise-free mode: each under every perturbation."""
    configurations = [{}, *points]
    count = min(max(1, log.measuring.perturbations), min(runs, log.left) // len(configurations))
    if not points or not count:
        return []
    requests = [RunRequest(configuration, at, at) for at in range(count) for configuration in configurations]
    fresh = log.run(requests, Purpose.CONFIRM)
    return [
        Confirmation(compared_exactly(scores, fresh, point, mode), broken(scores, fresh, point))
        for point in points
    ]


def with_confirmations(
    front: Sequence[FrontPoint], points: Sequence[Configuration], confirmed: Sequence[Confirmation]
) -> tuple[FrontPoint, ...]:
    """The front's points with what confirmation says of them; one that trades stays, whatever the model says
    of it by now."""
    confirmed_points = {
        _key(point): confirmation for point, confirmation in zip(points, confirmed, strict=False)
    }
    points = points[: len(confirmed)]
    of_front = {_key(point.configuration) for point in front}
    lost = [point for point in points if _key(point) not in of_front and confirmed_points[_key(point)].trades]
    return (
        *(
            point.model_copy(update={"comparisons": confirmed_points[_key(point.configuration)].comparisons})
            if _key(point.configuration) in confirmed_points
            else point
            for point in front
        ),
        *(_front_point(point, confirmed_points[_key(point)].comparisons) for point in lost),
    )


def _front_point(point: Configuration, comparisons: tuple[Comparison, ...]) -> FrontPoint:
    first, second = (comparison.ratio or 1.0 for comparison in comparisons)
    return FrontPoint(configuration=point, ratios=(first, second), runs=0, comparisons=comparisons)


def conflict(points: Sequence[Configuration], confirmed: Sequence[Confirmation]) -> str:
    """What the points trade, in a sentence; empty where none is better in one and worse in the other."""
    trades = [
        f"{_named(point)}: {' and '.join(map(change_in_words, confirmation.comparisons))}"
        for point, confirmation in zip(points, confirmed, strict=False)
        if confirmation.trades
    ]
    if not trades:
        return ""
    return (
        "Of the settings that were confirmed on fresh runs none is better in both: what one objective gains "
        f"the other loses. Choose one: {'; '.join(trades)}."
    )


def _named(point: Configuration) -> str:
    return ", ".join(f"{name}={value or '(not given)'}" for name, value in point.items())


def _label(at: int) -> str:
    return f"point {at + 1}"


def _measured(
    scores: ObjectiveFunction, fresh: Sequence[Observation], points: Sequence[Configuration], blocks: int
) -> list[BlockedMetric]:
    labels = {_key({}): BASELINE} | {_key(point): _label(at) for at, point in enumerate(points)}
    measured = []
    for objective in scores.goal.objectives:
        values = {label: [math.nan] * blocks for label in labels.values()}
        orders = {label: [0] * blocks for label in labels.values()}
        for seen in fresh:
            label, at = labels[_key(seen.configuration)], seen.block or 0
            orders[label][at] = seen.order
            if not scores.failure(seen):
                values[label][at] = seen.values[objective.metric]
        measured.append(
            BlockedMetric(
                workload=scores.goal.workload,
                metric=metric_of(scores.goal, objective.metric),
                baseline=BASELINE,
                values={label: tuple(item) for label, item in values.items()},
                orders={label: tuple(item) for label, item in orders.items()},
            )
        )
    return measured


def _key(configuration: Configuration) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(configuration.items()))
