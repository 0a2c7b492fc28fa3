"""What each metric is over CPUs, of studies in which their number is a factor: how much more gets done, and
how latencies change.
"""

import math
import re
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ktrial.format.number_format import is_time, short_change
from ktrial.model.design import FactorKind, Treatment, label
from ktrial.model.parallel import (
    WAITS,
    CoefficientEstimate,
    MetricOverCpus,
    PointOverCpus,
    ScalingCurve,
    ScalingPoint,
    Waits,
    waits_counter,
)
from ktrial.model.study import Study, StudyRecord, treatments
from ktrial.model.trial import Trial
from ktrial.model.workload import Direction, Sample, short_labels

THROUGHPUT = ("throughput", "ops/s")
"""Metric and unit of workloads that tell it themselves: operations a second of all tasks."""
_LATENCY = re.compile(r"latency|delay|jitter|late\b|wake-?up|worst|\bmax\b|percentile|\bp\d", re.IGNORECASE)
"""In the name of a metric: a time that somebody waits, of which nothing follows on how much gets done."""
_MOST_NAMED = 3
"""Workloads in a sentence."""
_Seeds = Mapping[int, float]
"""Perturbation → the metric."""


class Scale(NamedTuple):
    """Which metric of which workload a curve is of."""

    workload: str
    metric: str
    unit: str
    direction: Direction

    @property
    def is_latency(self) -> bool:
        """Whether it is a time that somebody waits."""
        return self.direction is Direction.LOWER and is_time(self.unit) and bool(_LATENCY.search(self.metric))

    @property
    def has_speed_up(self) -> bool:
        """Whether it says how much gets done: a rate or a score, or the time that a piece of work takes."""
        return self.direction is Direction.HIGHER or (is_time(self.unit) and not self.is_latency)


def curves(record: StudyRecord) -> tuple[ScalingCurve, ...]:
    """How much gets done: one for each workload and treatment, in the study's order; none where CPUs are no
    factor.

    Of each workload its throughput, where it tells one, else its first metric. Seeds count that have a number
    at each number of CPUs.
    """
    measured = (over for over in _over_cpus(record.study, record.trials) if over.scale.has_speed_up)
    return tuple(_fitted(_curve(over), over) for over in measured)


def changes(record: StudyRecord) -> tuple[MetricOverCpus, ...]:
    """What says nothing about how much gets done: latencies, and a first metric that is a count."""
    return tuple(
        _change(over) for over in _over_cpus(record.study, record.trials) if not over.scale.has_speed_up
    )


def scaling_answer(study: Study, trials: Sequence[Trial]) -> str:
    """What the most CPUs do in place of the fewest, the least gain first; empty where CPUs are no factor."""
    every = list(_over_cpus(study, trials))
    if not every:
        return ""
    names = short_labels(over.scale.workload for over in every)
    speed_ups: dict[str, list[tuple[float, str]]] = defaultdict(list)
    others: dict[str, list[str]] = defaultdict(list)
    with_speed_up = {over.scale.workload for over in every if over.scale.has_speed_up}
    for over in every:
        workload = names[over.scale.workload]
        if over.scale.has_speed_up:
            speed_ups[over.treatment].append((_curve(over).points[-1].speed_up, workload))
        elif over.scale.workload not in with_speed_up:
            first, *_, last = _change(over).points
            if first.value > 0:
                change = short_change(last.value / first.value)
                others[over.treatment].append(f"{over.scale.metric} of {workload} {change}")
    clauses = []
    for treatment in dict.fromkeys(over.treatment for over in every):
        ranked = sorted((round(times, 2), workload) for times, workload in speed_ups[treatment])
        said = [f"{workload} {times:.2f} times as much" for times, workload in ranked[:1]]
        said += [f"{workload} {times:.2f} times" for times, workload in ranked[1:_MOST_NAMED]]
        if len(ranked) > _MOST_NAMED:
            said.append(f"{len(ranked) - _MOST_NAMED} more up to {ranked[-1][0]:.2f} times")
        said += others[treatment][:_MOST_NAMED]
        if said:
            clauses.append(f"{treatment}: {', '.join(said)}" if treatment else ", ".join(said))
    fewest, most = min(every[0].by_cpus), max(every[0].by_cpus)
    cpus = "1 CPU" if fewest == 1 else f"{fewest} CPUs"
    start = "By simulated time, " if study.machine.kind == "exact-parallel" else ""
    return f"{start}{most} CPUs against {cpus}: {'; '.join(clauses)}." if clauses else ""


class _OverCpus(NamedTuple):
    scale: Scale
    treatment: str
    by_cpus: Mapping[int, _Seeds]

    @property
    def seeds(self) -> list[int]:
        """Those that have a number at each number of CPUs; none where there is one number of CPUs only."""
        every = list(self.by_cpus.values())
        return sorted(set.intersection(*map(set, every))) if len(every) > 1 else []

    def values(self) -> dict[int, list[float]]:
        """Number of CPUs, from the smallest → the metric under each of those seeds."""
        return {
            cpus: [of_seeds[seed] for seed in self.seeds] for cpus, of_seeds in sorted(self.by_cpus.items())
        }


def _over_cpus(study: Study, trials: Sequence[Trial]) -> Iterator[_OverCpus]:
    """Those of which there is a number under one seed at several numbers of CPUs, in the study's order."""
    name = cpus_factor(study)
    if not name:
        return
    values: dict[tuple[Scale, str], dict[int, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for trial in trials:
        if trial.is_measured:
            cpus, elsewhere = apart(trial.planned.treatment, name)
            for scale, value in _scales(trial):
                values[scale, elsewhere][cpus][trial.planned.perturbation.number] = value
    uses = {use.label: place for place, use in enumerate(study.workloads)}
    places = {apart(treatment, name)[1]: place for place, treatment in enumerate(treatments(study))}
    metrics = {scale: place for place, scale in enumerate(dict.fromkeys(scale for scale, _ in values))}
    keys = sorted(
        values,
        key=lambda key: (
            uses.get(key[0].workload, len(uses)),
            metrics[key[0]],
            places.get(key[1], len(places)),
        ),
    )
    every = (_OverCpus(scale, treatment, values[scale, treatment]) for scale, treatment in keys)
    yield from (over for over in every if over.seeds)


def cpus_factor(study: Study) -> str:
    """The name of the factor that is the number of CPUs; empty where there is none."""
    return next((factor.name for factor in study.factors if factor.kind is FactorKind.CPUS), "")


def apart(treatment: Treatment, name: str) -> tuple[int, str]:
    """The number of CPUs, and the label of what else the treatment is."""
    levels = {factor: level for factor, level in treatment.levels.items() if factor != name}
    return int(treatment.levels[name]), label(levels) if levels else ""


def _scales(trial: Trial) -> Iterator[tuple[Scale, float]]:
    """What a trial says of each workload: the metric that ranks it first, then its latencies."""
    by_workload: dict[str, list[Sample]] = {}
    for sample in trial.samples:
        by_workload.setdefault(sample.workload, []).append(sample)
    for workload, samples in by_workload.items():
        throughput = (sample for sample in samples if (sample.metric, sample.unit) == THROUGHPUT)
        main = next(throughput, samples[0])
        for sample in samples:
            scale = Scale(workload, sample.metric, sample.unit, sample.direction)
            usable = 0 < sample.value < math.inf if scale.has_speed_up else math.isfinite(sample.value)
            if usable and (sample is main or scale.is_latency):
                yield scale, sample.value


def _change(over: _OverCpus) -> MetricOverCpus:
    points = (
        PointOverCpus(cpus=cpus, value=statistics.fmean(numbers), lowest=min(numbers), highest=max(numbers))
        for cpus, numbers in over.values().items()
    )
    facts = over.scale._asdict()
    return MetricOverCpus(**facts, treatment=over.treatment, seeds=len(over.seeds), points=tuple(points))


def _curve(over: _OverCpus) -> ScalingCurve:
    by_cpus = over.values()
    means = {cpus: statistics.geometric_mean(numbers) for cpus, numbers in by_cpus.items()}
    least, is_rate = min(means), over.scale.direction is Direction.HIGHER
    speed_ups = {
        cpus: mean / means[least] if is_rate else means[least] / mean for cpus, mean in means.items()
    }
    points = tuple(
        ScalingPoint(
            cpus=cpus,
            value=means[cpus],
            lowest=min(numbers),
            highest=max(numbers),
            speed_up=speed_ups[cpus],
            efficiency=speed_ups[cpus] * least / cpus,
        )
        for cpus, numbers in by_cpus.items()
    )
    facts = over.scale._asdict()
    return ScalingCurve(**facts, treatment=over.treatment, seeds=len(over.seeds), points=points)


def _fitted(curve: ScalingCurve, over: _OverCpus) -> ScalingCurve:
    """With the law that comes nearest, where there are enough numbers of CPUs."""
    if len(curve.points) < FEWEST_COUNTS:
        return curve

    def rate(value: float) -> float:
        return value if curve.direction is Direction.HIGHER else 1 / value

    fits = [
        fit({cpus: rate(of_seeds[seed]) for cpus, of_seeds in over.by_cpus.items()}) for seed in over.seeds
    ]
    contention, coherence = (
        over_seeds([getattr(fit, name) for fit in fits]) for name in ("contention", "coherence")
    )
    rate_of_one = statistics.geometric_mean([fit.rate for fit in fits])
    peak = Coefficients(rate_of_one, contention.value, coherence.value).peak
    return curve.model_copy(
        update={
            "of_one": rate(rate_of_one),
            "contention": CoefficientEstimate.model_validate(vars(contention)),
            "coherence": CoefficientEstimate.model_validate(vars(coherence)),
            "peak": peak if math.isfinite(peak) else None,
        }
    )


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
# λ is what one CPU does in a unit of time, σ the contention (the share of the work that is done one after
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
    """λ: what one CPU does in a unit of time."""
    contention: float
    """σ, from 0 on."""
    coherence: float
    """κ, from 0 on."""

    def throughput(self, cpus: float) -> float:
        """X(N)."""
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
    """The law that comes nearest to `throughput`: number of CPUs → how much they do, above zero.

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
