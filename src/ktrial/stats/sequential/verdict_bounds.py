"""What a timed verdict leaves open, and where other trials than those that it is about say otherwise.

The verdict on typical trials may be 'better' while one trial in ten takes twice as long, so that all trials
together take longer. Then one clause says so beside it:

- typical trials and all together lie further apart than the margin, and an arm has more spikes than the
  other, or the difference is two standard errors of the total;
- typical trials differ, and that all together do may be chance (their interval, 95 %, holds 1): a skewed
  arm, or far trials;
- the shares of spikes differ more than by chance (Fisher's test, 5 %);
- trials failed, with Fisher's test of their shares;
- numbers stand at a limit.

A verdict is withheld where chance does not explain the other side: the interval of the total (95 %) lies
wholly on the other side of 1 (of 'equivalent': wholly on one side, and the total beyond the margin), or the
arm that is called better, or equivalent, fails more often (Fisher, 5 %).

What no block met, no verdict can rule out: the largest share of trials that a spike may hit is told with
every verdict.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ktrial.format import number_format
from ktrial.model.comparison import TYPICALLY, Estimand
from ktrial.model.workload import Direction, Metric
from ktrial.stats.sequential.design import BlockedMetric, SequentialDesign
from ktrial.stats.sequential.estimands import (
    PairedArms,
    fisher_p,
    ratio_of_means,
    total_interval,
    unseen_share,
)
from ktrial.stats.sequential.familywise import Finding
from ktrial.stats.sequential.repeated_intervals import location
from ktrial.stats.verdict_rules import Claim

Array = NDArray[np.float64]
_LEVEL = 0.05
_SURE = 2.0
"""Standard errors by which the total must lie off the typical block, where no arm has more spikes."""
_FEWEST = 3
_TWICE = (1.9, 2.1)


@dataclass(frozen=True)
class OtherTrials:
    """What stands beside a verdict."""

    clause: str = ""
    """`typically 6 % faster; 1 trial in 10 of B takes twice as long: in total 4 % slower`; or empty."""
    contradict: bool = False
    """Whether that is more than chance, so that the verdict does not stand."""


def unseen(measured: BlockedMetric, treatment: str) -> float:
    """The share of trials up to which spikes are not ruled out: of the arm that met more of them."""
    shares = []
    for label in (measured.baseline, treatment):
        values = np.asarray(measured.values[label], dtype=np.float64)
        seen = int(measured.spikes(label).sum())
        shares.append(unseen_share(max(1, int(np.isfinite(values).sum())), seen))
    return max(shares)


def other_trials(
    measured: BlockedMetric, treatment: str, design: SequentialDesign, finding: Finding
) -> OtherTrials:
    """What the trials say that the finding is not about. Raises ValueError: a value is not above zero."""
    arms = measured.arms(treatment)
    finite = np.isfinite(arms.low).all(axis=0) & (arms.low > 0).all(axis=0)
    known = PairedArms(arms.low[:, finite], arms.low[:, finite], arms.higher_is_worse)
    clauses = []
    if len(known) >= _FEWEST:
        is_found = (
            design.estimand is Estimand.TYPICAL and bool(finite.all()) and not np.isinf(arms.high).any()
        )
        typical = finding.location if is_found else float(location(known))
        clauses = _tails(
            measured, treatment, known, typical, design.margin, finding.claim if is_found else Claim.NONE
        )
    of_failures, failures_contradict = _failures(measured, treatment, finding.claim)
    contradict = design.estimand is Estimand.TYPICAL and (
        failures_contradict or (bool(clauses) and _total_contradicts(arms, finding.claim, design.margin))
    )
    return OtherTrials("; ".join([*clauses, *_limits(measured, treatment), *of_failures]), contradict)


def _total_contradicts(arms: PairedArms, claim: Claim, margin: float) -> bool:
    low, high = _ends_of_total(arms)
    if claim is Claim.EQUIVALENT:
        middle = float(location(arms, Estimand.TOTAL))
        return (low > 0 or high < 0) and abs(middle) > math.log1p(margin)
    return (claim is Claim.BELOW and low > 0) or (claim is Claim.ABOVE and high < 0)


def _total_shows(arms: PairedArms, claim: Claim) -> bool:
    """Whether all trials together differ as typical ones are claimed to; so they do where nothing is."""
    if claim not in (Claim.BELOW, Claim.ABOVE):
        return True
    low, high = _ends_of_total(arms)
    return high < 0 if claim is Claim.BELOW else low > 0


def _ends_of_total(arms: PairedArms) -> tuple[float, float]:
    from scipy import special  # takes a third of a second to load

    edge = np.asarray(special.stdtrit(len(arms) - 1, 1 - _LEVEL / 2))
    low, high = total_interval(arms, edge)
    return float(low), float(high)


def _tails(
    measured: BlockedMetric, treatment: str, arms: PairedArms, typical: float, margin: float, claim: Claim
) -> list[str]:
    """Two clauses, or none: what is typical; and which trials lie far off, with what all come to."""
    total, error, _ = (np.asarray(part) for part in ratio_of_means(arms.low[0], arms.low[1]))
    apart = abs(float(total) - typical)
    spiked = {label: measured.spikes(label) for label in (measured.baseline, treatment)}
    counts = [int(hit.sum()) for hit in spiked.values()]
    beyond = apart > math.log1p(margin) and (counts[0] != counts[1] or apart > _SURE * float(error))
    shares_differ = fisher_p((counts[0], counts[1]), (measured.blocks, measured.blocks)) < _LEVEL
    may_be_chance = not _total_shows(arms, claim)
    if not (beyond or shares_differ or may_be_chance):
        return []
    tails = ", ".join(_tail(measured, label, hit) for label, hit in spiked.items() if hit.any())
    in_total = f"in total {_change(float(total), measured.metric)}"
    in_total += ", which may be chance" if may_be_chance and float(total) * typical > 0 else ""
    return [
        f"{TYPICALLY} {_change(typical, measured.metric)}",
        f"{tails}: {in_total}" if tails else in_total,
    ]


def _tail(measured: BlockedMetric, label: str, spiked: NDArray[np.bool_]) -> str:
    """`1 trial in 10 of B takes twice as long`."""
    values = np.asarray(measured.values[label], dtype=np.float64)
    times = float(np.median(values[spiked]) / np.median(values[np.isfinite(values)]))
    count, total = int(spiked.sum()), int(np.isfinite(values).sum())
    share = f"1 trial in {round(total / count)}" if total >= 2 * count else f"{count} trials of {total}"
    are_several = total < 2 * count
    if measured.metric.direction is Direction.HIGHER:
        verb = "reach" if are_several else "reaches"
        return f"{share} of {label} {verb} {times * 100:.2g} % of the typical one"
    takes = number_format.is_time(measured.metric.unit)
    verb = ("take" if takes else "are") if are_several else ("takes" if takes else "is")
    amount = "twice" if _TWICE[0] < times < _TWICE[1] else f"{_times(times)} times"
    return f"{share} of {label} {verb} {amount} as {'long' if takes else 'large'}"


def _times(ratio: float) -> str:
    return f"{ratio:.3g}" if ratio < 100 else f"{ratio:,.0f}"


def _change(log_ratio: float, metric: Metric) -> str:
    """`6 % faster` of times, else `6 % less`."""
    is_time = number_format.is_time(metric.unit)
    ratio = math.exp(log_ratio)
    if ratio >= _TWICE[1]:
        return f"{_times(ratio)} times as {'long' if is_time else 'much'}"
    size = f"{abs(ratio - 1) * 100:.2g}"
    if float(size) < 0.05:
        return "the same"
    words = ("slower", "faster") if is_time else ("more", "less")
    return f"{size} % {words[ratio < 1]}"


def _failures(measured: BlockedMetric, treatment: str, claim: Claim) -> tuple[list[str], bool]:
    """One clause, or none; and whether the claim does not stand beside them."""
    labels = (measured.baseline, treatment)
    failed = (measured.failures(labels[0]), measured.failures(labels[1]))
    if not any(failed):
        return [], False
    p = fisher_p(failed, (measured.blocks, measured.blocks))
    (more, first), (less, second) = sorted(zip(failed, labels, strict=True), reverse=True)
    counts = f"{more} of {measured.blocks} trials of {first} failed, {less} of {second}"
    rule = f"more than by chance (p {p:.2g})" if p < _LEVEL else f"chance may do that (p {p:.2g})"
    goes_up = measured.metric.direction is Direction.LOWER
    of_treatment = Claim.BELOW if goes_up else Claim.ABOVE
    of_baseline = Claim.ABOVE if goes_up else Claim.BELOW
    better = of_treatment if failed[1] > failed[0] else of_baseline
    return [f"{counts}: {rule}"], p < _LEVEL and claim in (better, Claim.EQUIVALENT)


def _limits(measured: BlockedMetric, treatment: str) -> list[str]:
    return [
        f"{int(at.sum())} trials of {label} stand at its largest number, as at a time-out: "
        "they may have taken any longer"
        for label in (measured.baseline, treatment)
        if np.any(at := measured.at_limit(label))
    ]
