"""The rules that make verdicts: of exact numbers, of an exact interval, of a sequential test's claim.

All see one thing: whether treatment / baseline lies within the margin, beyond it, or neither for certain.

Exact numbers have no noise, so that the only interval is the spread over perturbations. The rule, for one
metric of one workload, with b the baseline's values and t the treatment's, one value a perturbation, and m
the margin:

- the ratio is the geometric mean of t divided by that of b, which is the geometric mean of the ratios paired
  by perturbation (Fleming and Wallace, CACM 29(3), 1986: the mean that does not depend on which arm divides).
  Where values are missing, so that the two arms have unlike perturbations, there is none;
- where the perturbations move both arms alike, its interval runs from the smallest to the largest ratio
  paired by perturbation. Where they do not, or differ, it runs from min(t)/max(b) to max(t)/min(b): each
  arm's whole spread, never narrower than the range of paired ratios. One perturbation has no spread that is
  known, and so no interval: its one ratio decides;
- values that are the same in both arms under every perturbation: equivalent;
- the interval inside [1/(1+m), 1+m]: equivalent;
- the interval wholly above 1+m, or wholly below 1/(1+m): worse or better, as the metric's direction says;
- one arm's values all zero and the other's all above: worse or better in the same way, without a ratio;
- anything else: inconclusive, and so is all that cannot be compared.

The zone of equivalence is symmetric in ratios, so that exchanging the arms exchanges better and worse and
nothing else.

Which numbers are held against each other: a perturbation is the same seeded change on both sides. What it
does to both alike is not part of their difference; what it does to one of them is.

- Where both sides have the same perturbations, and the ratios t/b of equal perturbations lie less than half
  as far apart (the logarithm of largest / smallest) as the numbers of either side do, each perturbation's two
  numbers are held against each other: blocking (Fisher, The Design of Experiments, 1935);
- otherwise the smallest t against the largest b, and the largest t against the smallest b: whichever of its
  perturbations each side had met, the ratio lies between the two.

That the ratios must lie so much closer together is what keeps chance out. Where perturbations move the sides
without regard to each other, three pairs point the same way in 25 % of all cases (normal logarithms); all of
one side lies beyond all of the other in 10 %, and this rule finds a difference in 13 %.
"""

import math
import statistics
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.workload import Direction, Metric, Mode

Values = Mapping[Any, float]
"""Perturbation → value, by its number or by itself: equal keys stand for the same perturbation."""
_AS_FAR_APART = 0.5
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Arm:
    """One treatment's numbers for one metric of one workload."""

    label: str
    """The treatment's label."""
    values: Values = field(default_factory=dict)
    """Perturbation → value."""
    missing: str = ""
    """Why a value that was planned is not there, in one sentence; empty where all are there."""

    @property
    def value(self) -> float | None:
        """The mean over perturbations; None where there is no value."""
        return mean_value(self.values) if self.values else None


def mean_value(values: Values) -> float:
    """The geometric mean; of equal values that value itself, and with a value not above zero the mean."""
    ordered = sorted(values.values())
    if ordered[0] == ordered[-1]:
        return ordered[0]
    if ordered[0] <= 0 or not all(map(math.isfinite, ordered)):
        return statistics.fmean(ordered)
    return statistics.geometric_mean(ordered)


def compare(
    workload: str,
    metric: Metric,
    mode: Mode,
    baseline: Arm,
    treatment: Arm,
    *,
    margin: float,
    incomparable: str = "",
) -> Comparison:
    """The comparison of exact numbers, with its verdict.

    `incomparable` says why these numbers must not be compared (different QEMU builds, for one); the two
    values are then given, but no ratio.
    """
    before, after = baseline.values, treatment.values
    ratio = low = high = None
    is_unpaired = bool(baseline.missing or treatment.missing) and before.keys() != after.keys()
    if before and after and not incomparable:
        if same_numbers(before, after):
            ratio = 1.0
        elif min(*before.values(), *after.values()) > 0 and not is_unpaired:
            ratio = mean_value(after) / mean_value(before)
        if ratio is not None:
            low, high = shown_interval(before, after)
    verdict, reason = Verdict.INCONCLUSIVE, incomparable or baseline.missing or treatment.missing
    if not reason:
        verdict, reason = exact_verdict(before, after, metric.direction, margin)
    return Comparison(
        workload=workload,
        metric=metric.name,
        unit=metric.unit,
        direction=metric.direction,
        baseline=baseline.label,
        treatment=treatment.label,
        baseline_value=baseline.value,
        value=treatment.value,
        ratio=ratio,
        low=low,
        high=high,
        verdict=verdict,
        mode=mode,
        reason=reason,
    )


def exact_verdict(before: Values, after: Values, direction: Direction, margin: float) -> tuple[Verdict, str]:
    """Of exact numbers of the baseline and the treatment; with the reason where it is inconclusive."""
    if not before or not after:
        return Verdict.INCONCLUSIVE, "there are no numbers yet"
    if same_numbers(before, after):
        return Verdict.EQUIVALENT, ""
    least = min(*before.values(), *after.values())
    if least <= 0:
        # From nothing to something, or back: beyond every margin, though there is no ratio.
        if least == 0 and max(before.values()) == 0 < min(after.values()):
            return verdict_of(Claim.ABOVE, direction), ""
        if least == 0 and max(after.values()) == 0 < min(before.values()):
            return verdict_of(Claim.BELOW, direction), ""
        return Verdict.INCONCLUSIVE, "a ratio needs values above zero"
    if within(before, after, margin):
        return Verdict.EQUIVALENT, ""
    if exceeds(before, after, margin):
        return verdict_of(Claim.ABOVE, direction), ""
    if exceeds(after, before, margin):
        return verdict_of(Claim.BELOW, direction), ""
    return Verdict.INCONCLUSIVE, f"the interval reaches across the edge of the margin ({margin * 100:.3g} %)"


def paired_ratio(before: Values, after: Values) -> float | None:
    """after / before, paired by perturbation: the one number of a change, wherever it is shown.

    None where the two have unlike perturbations, or a value that is not above zero.
    """
    if not before or not after:
        return None
    if same_numbers(before, after):
        return 1.0
    if before.keys() != after.keys() or min(*before.values(), *after.values()) <= 0:
        return None
    return mean_value(after) / mean_value(before)


def same_numbers(before: Values, after: Values) -> bool:
    """The same number under each perturbation, or one number under all of them."""
    return before == after or len({*before.values(), *after.values()}) == 1


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
        return verdict_of(Claim.ABOVE, direction)
    return verdict_of(Claim.BELOW if high * edge < 1 else Claim.NONE, direction)


def interval(before: Values, after: Values) -> tuple[float, float]:
    """The smallest and the largest ratio t/b of what is held together; all values above zero."""
    ratios = [treatment / baseline for baseline, treatment in held_together(before, after)]
    return min(ratios), max(ratios)


def shown_interval(before: Values, after: Values) -> tuple[float, float] | tuple[None, None]:
    """The same as people are shown it: None under one perturbation, of which no spread is known, and where a
    value is not above zero.
    """
    if max(len(before), len(after)) < 2:
        return None, None
    if same_numbers(before, after):
        return 1.0, 1.0
    return interval(before, after) if min(*before.values(), *after.values()) > 0 else (None, None)


def within(before: Values, after: Values, margin: float) -> bool:
    """Whether the whole interval lies inside the margin."""
    # Products, not ratios, here and below: exchanging the sides then exchanges the answers to the last bit.
    edge = 1 + margin
    return all(t <= edge * b and b <= edge * t for b, t in held_together(before, after))


def exceeds(before: Values, after: Values, margin: float) -> bool:
    """Whether `after` is the larger by more than the margin throughout. Zero and anything above it are."""
    return all(t > (1 + margin) * b for b, t in held_together(before, after))


def held_together(before: Values, after: Values) -> tuple[tuple[float, float], ...]:
    """Pairs (b, t): what holds for each of them holds for the two sides. Both have values."""
    if alike(before, after):
        return tuple((value, after[key]) for key, value in before.items())
    least, most = min(before.values()), max(before.values())
    return (most, min(after.values())), (least, max(after.values()))


def alike(before: Values, after: Values) -> bool:
    """Whether the perturbations move both sides alike, so that equal ones are held against each other."""
    if before.keys() != after.keys() or min(*before.values(), *after.values()) <= 0:
        return False

    def reach(logarithms: Collection[float]) -> float:
        return max(logarithms) - min(logarithms)

    # Logarithms, not ratios: a ratio of two numbers may be too small or too large for one.
    before = {key: math.log(value) for key, value in before.items()}
    after = {key: math.log(value) for key, value in after.items()}
    least = min(reach(before.values()), reach(after.values()))
    return reach([after[key] - before[key] for key in before]) < _AS_FAR_APART * least - _ROUNDING
