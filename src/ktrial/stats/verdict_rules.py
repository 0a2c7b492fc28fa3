"""The rules that make verdicts: of exact numbers, of an exact interval, of a sequential test's claim.

All see one thing: whether treatment / baseline lies within the margin, beyond it, or neither for certain.
"""

from enum import IntEnum

from ktrial.model.comparison import Verdict
from ktrial.model.workload import Direction
from ktrial.stats.paired_perturbations import Values, exceeds, within


class Claim(IntEnum):
    """What an interval of the ratio says."""

    NONE = 0
    ABOVE = 1
    BELOW = -1
    EQUIVALENT = 2


def verdict_of(claim: Claim, direction: Direction) -> Verdict:
    """The verdict that a claim about treatment / baseline means for a metric."""
    if claim is Claim.EQUIVALENT:
        return Verdict.EQUIVALENT
    if claim is Claim.NONE:
        return Verdict.INCONCLUSIVE
    better = (claim is Claim.ABOVE) == (direction is Direction.HIGHER)
    return Verdict.BETTER if better else Verdict.WORSE


def interval_verdict(low: float, high: float, direction: Direction, margin: float) -> Verdict:
    """The verdict of a ratio that lies from `low` to `high` for certain."""
    edge = 1 + margin
    if low * edge >= 1 and high <= edge:
        return Verdict.EQUIVALENT
    if low > edge:
        return Verdict.WORSE if direction is Direction.LOWER else Verdict.BETTER
    if high * edge < 1:
        return Verdict.BETTER if direction is Direction.LOWER else Verdict.WORSE
    return Verdict.INCONCLUSIVE


def exact_verdict(below: Values, above: Values, direction: Direction, margin: float) -> tuple[Verdict, str]:
    """Of exact numbers of the baseline and the treatment; with the reason where it is inconclusive."""
    if not below or not above:
        return Verdict.INCONCLUSIVE, "there are no numbers yet"
    if same_numbers(below, above):
        return Verdict.EQUIVALENT, ""
    if min(*below.values(), *above.values()) <= 0:
        return _without_ratio(list(below.values()), list(above.values()), direction)
    if within(below, above, margin):
        return Verdict.EQUIVALENT, ""
    if exceeds(below, above, margin):
        return (Verdict.WORSE if direction is Direction.LOWER else Verdict.BETTER), ""
    if exceeds(above, below, margin):
        return (Verdict.BETTER if direction is Direction.LOWER else Verdict.WORSE), ""
    return Verdict.INCONCLUSIVE, f"the interval reaches across the edge of the margin ({margin * 100:.3g} %)"


def same_numbers(below: Values, above: Values) -> bool:
    """The same number under each perturbation, or one number under all of them."""
    return below == above or len({*below.values(), *above.values()}) == 1


def _without_ratio(below: list[float], above: list[float], direction: Direction) -> tuple[Verdict, str]:
    """From nothing to something, or back: beyond every margin, though there is no ratio."""
    if min(*below, *above) == 0 and max(below) == 0 < min(above):
        return (Verdict.WORSE if direction is Direction.LOWER else Verdict.BETTER), ""
    if min(*below, *above) == 0 and max(above) == 0 < min(below):
        return (Verdict.BETTER if direction is Direction.LOWER else Verdict.WORSE), ""
    return Verdict.INCONCLUSIVE, "a ratio needs values above zero"
