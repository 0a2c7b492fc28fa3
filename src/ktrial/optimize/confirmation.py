"""What fresh runs say of a configuration: guards, exact verdicts, and the sentence of the answer."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ktrial.format.number_format import tenths
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.tuning import Configuration, Goal, Guard, Observation, Purpose
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Direction, Metric, Mode
from ktrial.optimize.evaluation_log import EvaluationLog, RunRequest
from ktrial.optimize.objective import ObjectiveFunction
from ktrial.stats import verdict_rules

BASELINE, CANDIDATE = "baseline", "candidate"
_ADVICE = {
    WarningKind.EARLY_STOPPING: "the interval holds all the same; ktrial revalidate measures it again",
    WarningKind.FAR_BLOCKS: "they count for as much as ordinary ones do: the answer is about typical runs; "
    "what those trials met is worth a look of its own",
}


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
        verdicts = [each.verdict for each in self.comparisons]
        return Verdict.BETTER in verdicts and Verdict.WORSE not in verdicts and not self.broken

    @property
    def trades(self) -> bool:
        """Whether one objective is better, another worse, and nothing is broken."""
        verdicts = [each.verdict for each in self.comparisons]
        return Verdict.BETTER in verdicts and Verdict.WORSE in verdicts and not self.broken


def told(warning: DataWarning) -> DataWarning:
    """A study's warning, with advice that fits a search."""
    advice = _ADVICE.get(warning.kind)
    return warning.model_copy(update={"advice": advice}) if advice else warning


def metric_of(goal: Goal, name: str) -> Metric:
    """The objective of this name."""
    objective = next(each for each in goal.objectives if each.metric == name)
    return Metric(name=name, unit=objective.unit, direction=objective.direction)


def broken(
    scores: ObjectiveFunction, fresh: Sequence[Observation], candidate: Configuration
) -> tuple[str, ...]:
    """The guards that its runs did not keep, and how many failed, each in a sentence."""
    own = [each for each in fresh if each.configuration == candidate]
    problems = [scores.failure(each) for each in own if scores.failure(each)]
    broken = [f"{len(problems)} of {len(own)} runs failed: {problems[0]}"] if problems else []
    for guard in scores.goal.guards:
        values = [each.values[guard.metric] for each in own if guard.metric in each.values]
        if values and (text := _breach(guard, values)):
            broken.append(text)
    return tuple(broken)


def _breach(guard: Guard, values: Sequence[float]) -> str:
    """How the guard was not kept: `==` by every run, the others by the median; empty where it was."""
    beyond = [value for value in values if not guard.keeps(value)]
    if guard.relation == "==" and beyond:
        return f"{guard} was not kept in {len(beyond)} of {len(values)} runs: {beyond[0]:g}"
    middle = statistics.median(values)
    return "" if guard.keeps(middle) else f"{guard} was not kept: the median is {middle:g}"


def confirm_exactly(
    log: EvaluationLog, scores: ObjectiveFunction, candidate: Configuration, mode: Mode
) -> Confirmation:
    """In noise-free mode: both under every perturbation, and the verdict of exact studies."""
    count = min(max(1, log.measuring.perturbations), max(1, log.left // 2))
    wanted = [RunRequest(each, at, at) for at in range(count) for each in ({}, candidate)]
    fresh = log.run(wanted, Purpose.CONFIRM)
    return Confirmation(compared_exactly(scores, fresh, candidate, mode), broken(scores, fresh, candidate))


def compared_exactly(
    scores: ObjectiveFunction, fresh: Sequence[Observation], candidate: Configuration, mode: Mode
) -> tuple[Comparison, ...]:
    """The candidate beside the baseline, in each objective."""
    comparisons = []
    for objective in scores.goal.objectives:
        arms = [
            _arm(scores, label, [each for each in fresh if each.configuration == own], objective.metric)
            for label, own in ((BASELINE, {}), (CANDIDATE, candidate))
        ]
        metric = metric_of(scores.goal, objective.metric)
        margin, workload = scores.goal.margin, scores.goal.workload
        comparisons.append(verdict_rules.compare(workload, metric, mode, arms[0], arms[1], margin=margin))
    return tuple(comparisons)


def _arm(
    scores: ObjectiveFunction, label: str, runs: Sequence[Observation], metric: str
) -> verdict_rules.Arm:
    good = {each.perturbation: each.values[metric] for each in runs if not scores.failure(each)}
    failed = next((scores.failure(each) for each in runs if scores.failure(each)), "")
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
    if any(each.verdict is Verdict.WORSE for each in confirmation.comparisons):
        return f"No gain: on fresh runs the best configuration is worse, {_shown(confirmation, goal)}."
    return f"No gain that this budget can show: {_shown(confirmation, goal)} on fresh runs; {beyond}."


def _knobs(candidate: Configuration) -> str:
    if len(candidate) == 1:
        ((name, value),) = candidate.items()
        return f"{name}={value}"
    return f"{len(candidate)} knobs together"


def _shown(confirmation: Confirmation, goal: Goal) -> str:
    return " and ".join(change_in_words(each) for each in confirmation.comparisons[: len(goal.objectives)])


def change_in_words(one: Comparison) -> str:
    """`rps +12.0 % (+10.1 … +13.9) (higher is better)`."""
    if one.ratio is None:
        return f"{one.metric} without a number"
    better = "higher" if one.direction is Direction.HIGHER else "lower"
    interval = f" ({tenths(one.low - 1)} … {tenths(one.high - 1)})" if one.low and one.high else ""
    return f"{one.metric} {tenths(one.ratio - 1)} %{interval} ({better} is better)"
