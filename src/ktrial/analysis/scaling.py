"""Throughput over CPUs, of studies in which their number is a factor."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping

from ktrial.model.design import FactorKind, Treatment
from ktrial.model.levels import label
from ktrial.model.plan import treatments
from ktrial.model.scaling import CoefficientEstimate, ScalingCurve, ScalingPoint
from ktrial.model.study import Study
from ktrial.model.study_record import StudyRecord
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import Direction, Sample
from ktrial.stats.universal_scalability import FEWEST_COUNTS, Coefficients, fit, over_seeds

THROUGHPUT = "throughput"
"""The metric of workloads that tell it themselves: operations a second of all tasks."""
_Seeds = Mapping[int, float]
"""Perturbation → operations a second."""


def curves(record: StudyRecord) -> tuple[ScalingCurve, ...]:
    """One for each workload and treatment, in the study's order; none where CPUs are no factor.

    A workload that has no metric `throughput` is one whose first metric is a time of an operation: its
    throughput is the reciprocal. Seeds count that have a number at each number of CPUs.
    """
    name = cpus_factor(record.study)
    if not name:
        return ()
    throughputs: dict[tuple[str, str], dict[int, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for trial in record.trials:
        if trial.outcome is Outcome.COMPLETED:
            cpus, others = apart(trial.planned.treatment, name)
            for workload, throughput in _throughputs(trial):
                throughputs[workload, others][cpus][trial.planned.perturbation.number] = throughput
    uses = {use.label: place for place, use in enumerate(record.study.workloads)}
    places = {apart(one, name)[1]: place for place, one in enumerate(treatments(record.study))}
    keys = sorted(throughputs, key=lambda key: (uses.get(key[0], len(uses)), places.get(key[1], len(places))))
    made = (_curve(*key, throughputs[key]) for key in keys)
    return tuple(curve for curve in made if curve is not None)


def cpus_factor(study: Study) -> str:
    """The name of the factor that is the number of CPUs; empty where there is none."""
    return next((factor.name for factor in study.factors if factor.kind is FactorKind.CPUS), "")


def apart(treatment: Treatment, name: str) -> tuple[int, str]:
    """The number of CPUs, and the label of what else the treatment is."""
    others = {factor: level for factor, level in treatment.levels.items() if factor != name}
    return int(treatment.levels[name]), label(others) if others else ""


def _throughputs(trial: Trial) -> Iterator[tuple[str, float]]:
    first: dict[str, Sample] = {}
    told: dict[str, Sample] = {}
    for sample in trial.samples:
        first.setdefault(sample.workload, sample)
        if sample.metric == THROUGHPUT:
            told[sample.workload] = sample
    for workload, sample in first.items():
        value = told.get(workload, sample).value
        if not 0 < value < math.inf:
            continue
        is_rate = workload in told or sample.direction is Direction.HIGHER
        yield workload, value if is_rate else 1e9 / value


def _curve(workload: str, treatment: str, by_cpus: Mapping[int, _Seeds]) -> ScalingCurve | None:
    seeds = sorted(set.intersection(*(set(values) for values in by_cpus.values())))
    if not seeds or len(by_cpus) < 2:
        return None
    means = {cpus: _mean([values[seed] for seed in seeds]) for cpus, values in sorted(by_cpus.items())}
    least = min(means)
    points = tuple(
        ScalingPoint(
            cpus=cpus,
            throughput=mean,
            lowest=min(by_cpus[cpus][seed] for seed in seeds),
            highest=max(by_cpus[cpus][seed] for seed in seeds),
            speed_up=mean / means[least],
            efficiency=mean / means[least] * least / cpus,
        )
        for cpus, mean in means.items()
    )
    curve = ScalingCurve(workload=workload, treatment=treatment, seeds=len(seeds), points=points)
    if len(means) < FEWEST_COUNTS:
        return curve
    return _fitted(curve, [{cpus: by_cpus[cpus][seed] for cpus in means} for seed in seeds])


def _fitted(curve: ScalingCurve, of_seeds: list[dict[int, float]]) -> ScalingCurve:
    fits = [fit(throughput) for throughput in of_seeds]
    contention, coherence = (
        over_seeds([getattr(one, name) for one in fits]) for name in ("contention", "coherence")
    )
    rate = _mean([one.rate for one in fits])
    peak = Coefficients(rate, contention.value, coherence.value).peak
    return curve.model_copy(
        update={
            "rate": rate,
            "contention": CoefficientEstimate.model_validate(vars(contention)),
            "coherence": CoefficientEstimate.model_validate(vars(coherence)),
            "peak": peak if math.isfinite(peak) else None,
        }
    )


def _mean(values: list[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))
