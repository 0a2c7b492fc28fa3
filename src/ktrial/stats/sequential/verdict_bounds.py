"""What a timed verdict leaves open, and where other trials than those that it is about say otherwise.

The verdict on typical trials may be 'better' while one trial in ten takes twice as long, so that all trials
together take longer. Then one clause says so beside it. What no block met, no verdict can rule out: the
largest share of trials that a spike may hit is told with every verdict.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ktrial.format import number_format
from ktrial.model.comparison import Estimand
from ktrial.model.workload import Direction
from ktrial.stats.sequential.design import BlockedMetric, SequentialDesign
from ktrial.stats.sequential.estimands import PairedArms, fisher_p, ratio_of_means, unseen_share
from ktrial.stats.sequential.repeated_intervals import location

Array = NDArray[np.float64]
_FAILURES_DIFFER = 0.05
_SURE = 2.0
"""Standard errors by which the total must lie off the typical block, where no trial is far off."""
_TWICE = (1.9, 2.1)


def unseen(measured: BlockedMetric, treatment: str) -> float:
    """The share of trials up to which spikes are not ruled out: of the arm that met more of them."""
    shares = []
    for label in (measured.baseline, treatment):
        values = np.asarray(measured.values[label], dtype=np.float64)
        seen = int(measured.spikes(label).sum())
        shares.append(unseen_share(max(1, int(np.isfinite(values).sum())), seen))
    return max(shares)


def beside(measured: BlockedMetric, treatment: str, design: SequentialDesign) -> str:
    """One clause: `typically 6 % less; 1 trial in 10 of B takes twice as long: in total 4 % more`.

    Empty where typical trials and all together agree within the margin, and no arm has a tail or fails more.
    """
    failures = _failures(measured, treatment)
    limits = _limits(measured, treatment)
    arms = measured.arms(treatment)
    finite = np.isfinite(arms.low).all(axis=0) & (arms.low > 0).all(axis=0)
    told = PairedArms(arms.low[:, finite], arms.low[:, finite], arms.higher_is_worse)
    parts = _tails(measured, treatment, told, design) if len(told) > 2 else []
    return "; ".join([*parts, *limits, *failures])


def _tails(measured: BlockedMetric, treatment: str, arms: PairedArms, design: SequentialDesign) -> list[str]:
    typical = float(location(arms))
    total, error, _ = (np.asarray(part) for part in ratio_of_means(arms.low[0], arms.low[1]))
    apart = abs(float(total) - typical)
    far = {label: measured.spikes(label) for label in (measured.baseline, treatment)}
    counts = {label: int(hit.sum()) for label, hit in far.items()}
    differ = counts[measured.baseline] != counts[treatment]
    beyond = apart > math.log1p(design.margin)
    if not (beyond and (differ or apart > _SURE * float(error))):
        return []
    tails = ", ".join(_tail(measured, label, far[label]) for label, count in counts.items() if count)
    said = f"in total {_change(float(total))}"
    if design.estimand is not Estimand.TYPICAL:
        said = f"all trials together: {_change(float(total))}"
    return [f"typically {_change(typical)}", f"{tails}: {said}" if tails else said]


def _tail(measured: BlockedMetric, label: str, far: NDArray[np.bool_]) -> str:
    values = np.asarray(measured.values[label], dtype=np.float64)
    present = np.isfinite(values)
    times = float(np.median(values[far]) / np.median(values[present]))
    count, total = int(far.sum()), int(present.sum())
    share = (
        f"1 trial in {round(total / count)}"
        if count == 1 or total / count >= 2
        else f"{count} trials of {total}"
    )
    if measured.metric.direction is Direction.HIGHER:
        return f"{share} of {label} reaches {number_format.change(times)} of its typical one"
    verb = "takes" if number_format.is_time(measured.metric.unit) else "is"
    if _TWICE[0] < times < _TWICE[1]:
        size = "twice as long" if verb == "takes" else "twice as large"
    else:
        size = f"{times:.2g} times as {'long' if verb == 'takes' else 'large'}"
    return f"{share} of {label} {verb} {size}"


def _change(log_ratio: float) -> str:
    percent = math.expm1(log_ratio) * 100
    size = f"{abs(percent):.2g}" if abs(percent) < 100 else f"{abs(percent):.0f}"
    if float(size) == 0:
        return "the same"
    return f"{size} % {'more' if percent > 0 else 'less'}"


def _failures(measured: BlockedMetric, treatment: str) -> list[str]:
    labels = (measured.baseline, treatment)
    lost = (measured.failures(labels[0]), measured.failures(labels[1]))
    if not any(lost):
        return []
    p = fisher_p(lost, (measured.blocks, measured.blocks))
    rule = (
        f"more of one arm than by chance (p {p:.2g})"
        if p < _FAILURES_DIFFER
        else f"p {p:.2g} of equal shares"
    )
    counts = ", ".join(
        f"{count} of {measured.blocks} trials of {label} failed"
        for label, count in zip(labels, lost, strict=True)
    )
    return [f"{counts}: {rule}"]


def _limits(measured: BlockedMetric, treatment: str) -> list[str]:
    return [
        f"{int(at.sum())} trials of {label} stand at its largest number, as at a time-out: "
        "they may have taken any longer"
        for label in (measured.baseline, treatment)
        if np.any(at := measured.at_limit(label))
    ]
