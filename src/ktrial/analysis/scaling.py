"""Throughput over CPUs, of studies in which their number is a factor."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ktrial.model.design import FactorKind, Treatment, label
from ktrial.model.parallel import WAITS, CoefficientEstimate, ScalingCurve, ScalingPoint, Waits, waits_counter
from ktrial.model.study import Study, StudyRecord, treatments
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import Direction, Sample

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
            cpus, elsewhere = apart(trial.planned.treatment, name)
            for workload, throughput in _throughputs(trial):
                throughputs[workload, elsewhere][cpus][trial.planned.perturbation.number] = throughput
    uses = {use.label: place for place, use in enumerate(record.study.workloads)}
    places = {apart(treatment, name)[1]: place for place, treatment in enumerate(treatments(record.study))}
    keys = sorted(throughputs, key=lambda key: (uses.get(key[0], len(uses)), places.get(key[1], len(places))))
    fitted_curves = (_curve(*key, throughputs[key]) for key in keys)
    return tuple(curve for curve in fitted_curves if curve is not None)


def cpus_factor(study: Study) -> str:
    """The name of the factor that is the number of CPUs; empty where there is none."""
    return next((factor.name for factor in study.factors if factor.kind is FactorKind.CPUS), "")


def apart(treatment: Treatment, name: str) -> tuple[int, str]:
    """The number of CPUs, and the label of what else the treatment is."""
    levels = {factor: level for factor, level in treatment.levels.items() if factor != name}
    return int(treatment.levels[name]), label(levels) if levels else ""


def _throughputs(trial: Trial) -> Iterator[tuple[str, float]]:
    first: dict[str, Sample] = {}
    reported: dict[str, Sample] = {}
    for sample in trial.samples:
        first.setdefault(sample.workload, sample)
        if sample.metric == THROUGHPUT:
            reported[sample.workload] = sample
    for workload, sample in first.items():
        value = reported.get(workload, sample).value
        if not 0 < value < math.inf:
            continue
        is_rate = workload in reported or sample.direction is Direction.HIGHER
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
        over_seeds([getattr(fit, name) for fit in fits]) for name in ("contention", "coherence")
    )
    rate = _mean([fit.rate for fit in fits])
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


# Where the CPUs wait, of studies whose machine has the monitor `waits`.

_WORK, _WAITING, _LINES, _IDLE = (waits_counter(part) for part in ("work", "waiting", "cache lines", "idle"))


def waits(record: StudyRecord) -> tuple[Waits, ...]:
    """By workload and treatment, in the study's order, from the fewest CPUs to the most.

    Of several trials under one perturbation the first counts: they agree.
    """
    if WAITS not in record.study.machine.monitors:
        return ()
    uses = {use.label: place for place, use in enumerate(record.study.workloads)}
    counted: dict[tuple[str, str, int], Waits] = {}
    for trial in record.trials:
        for of_trial in _of_trial(record, trial):
            counted.setdefault((of_trial.workload, of_trial.treatment, of_trial.cpus), of_trial)
    places = {_apart(record, treatment)[1]: place for place, treatment in enumerate(treatments(record.study))}
    order = sorted(
        counted, key=lambda key: (uses.get(key[0], len(uses)), places.get(key[1], len(places)), key[2])
    )
    return tuple(counted[key] for key in order)


def _apart(record: StudyRecord, treatment: Treatment) -> tuple[int, str]:
    """The number of CPUs, and the label of what else the treatment is."""
    factor = cpus_factor(record.study)
    return apart(treatment, factor) if factor else (record.study.machine.cpus, treatment.label)


def _of_trial(record: StudyRecord, trial: Trial) -> Iterator[Waits]:
    cpus, label_ = _apart(record, trial.planned.treatment)
    by_workload: dict[str, dict[str, float]] = {}
    for counter in trial.counters:
        by_workload.setdefault(counter.workload, {})[counter.name] = counter.delta
    for workload, counted in by_workload.items():
        total = sum(counted.get(name, 0.0) for name in (_WORK, _WAITING, _LINES, _IDLE))
        if total > 0:
            yield Waits(
                workload=workload,
                treatment=label_,
                cpus=cpus,
                waiting=(counted.get(_WAITING, 0.0) + counted.get(_LINES, 0.0)) / total,
                waiting_in=_waiting_in(counted),
                idle=counted.get(_IDLE, 0.0) / total,
                asleep_in=_first(counted, "idle")[1],
            )


def _waiting_in(counted: Mapping[str, float]) -> str:
    in_loops, for_lines = _first(counted, "waiting"), _first(counted, "cache lines")
    return f"cache lines in {for_lines[1]}" if for_lines[0] > in_loops[0] else in_loops[1]


def _first(counted: Mapping[str, float], part: str) -> tuple[float, str]:
    """Nanoseconds of the place that has most of a part, and the place; 0 and nothing where there is none."""
    start = waits_counter(part, "")
    of_part = [(spent, name) for name, spent in counted.items() if name.startswith(start) and spent > 0]
    spent, name = min(of_part, key=lambda item: (-item[0], item[1]), default=(0.0, start))
    return spent, name.removeprefix(start)


# The Universal Scalability Law: what a throughput loses to waiting for each other, and to agreeing.
#
# N. J. Gunther, 'Guerrilla Capacity Planning', Springer 2007, chapters 4 to 6; the same in 'A General
# Theory of Computational Scalability Based on Rational Functions', arXiv:0808.1431:
#
#     X(N) = λ·N / (1 + σ·(N - 1) + κ·N·(N - 1))
#
# λ is what one CPU does in a second, σ the contention (the share of the work that is done one after
# another; with κ = 0 this is Amdahl's law), κ the coherence (what every pair of CPUs costs). With κ above
# zero the throughput has a peak at N = sqrt((1 - σ) / κ).
#
# Fitted by least squares of ln X, σ and κ at least 0: relative errors count alike at all N.

FEWEST_COUNTS = 3
"""Different numbers of CPUs without which the three coefficients cannot be told apart."""
_LEVEL = 0.95


@dataclass(frozen=True)
class Coefficients:
    """One curve."""

    rate: float
    """λ: operations a second of one CPU."""
    contention: float
    """σ, from 0 on."""
    coherence: float
    """κ, from 0 on."""

    def throughput(self, cpus: float) -> float:
        """X(N), operations a second."""
        loss = self.contention * (cpus - 1) + self.coherence * cpus * (cpus - 1)
        return self.rate * cpus / (1 + loss)

    @property
    def peak(self) -> float:
        """The number of CPUs beyond which more make less of it; infinite where there is none."""
        if self.coherence <= 0:
            return math.inf
        return math.sqrt(max(1 - self.contention, 0.0) / self.coherence) or 1.0


@dataclass(frozen=True)
class Estimate:
    """A coefficient over seeds: their mean, and its interval at 95 % (Student's t), cut off at 0.

    `low` and `high` are None with one seed.
    """

    value: float
    low: float | None
    high: float | None


def fit(throughput: Mapping[int, float]) -> Coefficients:
    """The law that comes nearest to `throughput`: number of CPUs → operations a second, above zero.

    Raises ValueError where there are fewer than three numbers of CPUs, or a throughput is not above zero.
    """
    if len(throughput) < FEWEST_COUNTS:
        raise ValueError(f"the law has three coefficients: give at least {FEWEST_COUNTS} numbers of CPUs")
    if min(throughput) < 1 or not all(0 < value < math.inf for value in throughput.values()):
        raise ValueError("numbers of CPUs begin at 1, and throughputs lie above zero")
    # Here: scipy.optimize takes long to load, and most commands fit nothing.
    import numpy as np
    from scipy.optimize import least_squares

    cpus = np.array(sorted(throughput), dtype=float)
    measured = np.log([throughput[int(count)] for count in cpus])

    def residuals(at: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> object:
        loss = at[1] * (cpus - 1) + at[2] * cpus * (cpus - 1)
        return at[0] + np.log(cpus) - np.log1p(loss) - measured

    start = (float(measured[0] - math.log(cpus[0])), 0.01, 0.001)
    solution = least_squares(
        residuals, start, bounds=([-np.inf, 0, 0], [np.inf, np.inf, np.inf]),
        xtol=1e-14, ftol=1e-14, gtol=1e-14, x_scale=(1.0, 0.01, 0.001),
    ).x  # fmt: skip
    return Coefficients(math.exp(solution[0]), float(solution[1]), float(solution[2]))


def over_seeds(values: Sequence[float]) -> Estimate:
    """What one coefficient is, by its values under each seed. Raises ValueError where there are none."""
    if not values:
        raise ValueError("there is no seed")
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Estimate(mean, None, None)
    from scipy.special import stdtrit

    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    half = float(stdtrit(len(values) - 1, (1 + _LEVEL) / 2)) * spread / math.sqrt(len(values))
    return Estimate(mean, max(mean - half, 0.0), mean + half)
