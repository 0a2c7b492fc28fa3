"""The answer in one sentence."""

from ktrial.format.number_format import tenths
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.tuning import Configuration, Goal
from ktrial.model.workload import Direction
from ktrial.optimize.confirmation import Confirmation


def sentence(candidate: Configuration, confirmation: Confirmation | None, goal: Goal, smallest: float) -> str:
    """What was found, or that nothing was, with what the budget could have shown."""
    percent = smallest * 100
    beyond = f"a gain below {percent:{'.2g' if percent < 10 else '.0f'}} % may have escaped it"
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
    return " and ".join(_change(each) for each in confirmation.comparisons[: len(goal.objectives)])


def _change(one: Comparison) -> str:
    if one.ratio is None:
        return f"{one.metric} without a number"
    better = "higher" if one.direction is Direction.HIGHER else "lower"
    interval = f" ({tenths(one.low - 1)} … {tenths(one.high - 1)})" if one.low and one.high else ""
    return f"{one.metric} {tenths(one.ratio - 1)} %{interval} ({better} is better)"
