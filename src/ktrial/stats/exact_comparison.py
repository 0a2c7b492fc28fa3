"""The verdict on exact numbers: no noise, so that the only interval is the spread over perturbations.

The rule, for one metric of one workload, with b the baseline's values and t the treatment's, one value a
perturbation, and m the margin:

- the ratio is the geometric mean of t divided by that of b, which is the geometric mean of the ratios paired
  by perturbation (Fleming and Wallace, CACM 29(3), 1986: the mean that does not depend on which arm divides);
- its interval is that of `ktrial.stats.paired_perturbations`. Where the perturbations move both arms alike,
  it runs from the smallest to the largest ratio paired by perturbation. Where they do not, or differ, it
  runs from min(t)/max(b) to max(t)/min(b): each arm's whole spread, never narrower than the range of paired
  ratios;
- values that are the same in both arms under every perturbation: equivalent;
- the interval inside [1/(1+m), 1+m]: equivalent;
- the interval wholly above 1+m, or wholly below 1/(1+m): worse or better, as the metric's direction says;
- one arm's values all zero and the other's all above: worse or better in the same way, without a ratio;
- anything else: inconclusive, and so is all that cannot be compared.

The zone of equivalence is symmetric in ratios, so that exchanging the arms exchanges better and worse and
nothing else.
"""

import math
import statistics
from dataclasses import dataclass, field

from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.workload import Metric, Mode
from ktrial.stats.paired_perturbations import Values, interval
from ktrial.stats.verdict_rules import exact_verdict, same_numbers


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
        """The geometric mean over perturbations; None where there is no value."""
        return _mean(sorted(self.values.values())) if self.values else None


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
    """The comparison and its verdict, by the rule above.

    `incomparable` says why these numbers must not be compared (different QEMU builds, for one); the two
    values are then given, but no ratio.
    """
    pair = None if incomparable else _ratio(baseline, treatment)
    verdict, reason = Verdict.INCONCLUSIVE, incomparable or baseline.missing or treatment.missing
    if not reason:
        verdict, reason = exact_verdict(baseline.values, treatment.values, metric.direction, margin)
    return Comparison(
        workload=workload,
        metric=metric.name,
        unit=metric.unit,
        direction=metric.direction,
        baseline=baseline.label,
        treatment=treatment.label,
        baseline_value=baseline.value,
        value=treatment.value,
        ratio=pair.ratio if pair else None,
        low=pair.low if pair else None,
        high=pair.high if pair else None,
        verdict=verdict,
        mode=mode,
        reason=reason,
    )


@dataclass(frozen=True)
class _Ratio:
    ratio: float
    low: float
    high: float


def _ratio(baseline: Arm, treatment: Arm) -> _Ratio | None:
    """The ratio with its interval; None where it has no meaning."""
    mean_below, mean_above = baseline.value, treatment.value
    if mean_below is None or mean_above is None:
        return None
    if same_numbers(baseline.values, treatment.values):
        return _Ratio(1.0, 1.0, 1.0)
    if min(*baseline.values.values(), *treatment.values.values()) <= 0:
        return None
    return _Ratio(mean_above / mean_below, *interval(baseline.values, treatment.values))


def _mean(values: list[float]) -> float:
    """The geometric mean; of equal values that value itself, and with a value not above zero the mean."""
    if values[0] == values[-1]:
        return values[0]
    if values[0] <= 0 or not all(map(math.isfinite, values)):
        return statistics.fmean(values)
    return statistics.geometric_mean(values)
