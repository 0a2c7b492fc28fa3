"""Which treatments scatter otherwise than the baseline, from a study's trials."""

from collections.abc import Sequence

from ktrial.analysis.interactions import TreatmentSide
from ktrial.model.comparison import Comparison, Variability
from ktrial.model.study import Study
from ktrial.model.workload import Metric
from ktrial.stats.dispersion import PairedArms, variability

_ALPHA = 0.05


def variability_of(
    study: Study, sides: Sequence[TreatmentSide], comparisons: Sequence[Comparison]
) -> tuple[Variability, ...]:
    """Of every comparison that has a ratio: what must not be compared is not compared here either."""
    by_label = {side.treatment.label: side for side in sides}
    pairs = [_pair(one, by_label) for one in comparisons if one.ratio is not None]
    return variability(pairs, study.margin, study.timing.alpha if study.timing else _ALPHA)


def _pair(one: Comparison, sides: dict[str, TreatmentSide]) -> PairedArms:
    metric = Metric(name=one.metric, unit=one.unit, direction=one.direction)
    below, above = (_values(sides[label], one) for label in (one.baseline, one.treatment))
    return PairedArms(one.workload, metric, one.mode, one.baseline, one.treatment, below, above)


def _values(side: TreatmentSide, one: Comparison) -> dict[int, float]:
    """In real time a block has a perturbation of its own number."""
    return {number: sample.value for number, sample in side.samples(one.workload, one.metric).items()}
