"""One metric of one workload over versions: everything in the store that may stand in one line."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import geometric_mean, median

from ktrial.analysis.history import change_points
from ktrial.analysis.history.machine_label import settings_in_words
from ktrial.model.design import Treatment
from ktrial.model.history import History, Line, Point, SystemIdentity
from ktrial.model.kernel import measured_order
from ktrial.model.plan import treatments
from ktrial.model.study import Study
from ktrial.model.trial import Outcome, Provenance, Trial
from ktrial.model.workload import EXACT_MODES, STRING_BYTES, Direction, Metric, Mode, Sample
from ktrial.stats.change_points import ALPHA
from ktrial.store import Store, StoredStudy
from ktrial.store.errors import TrialsDamaged
from ktrial.store.study_digests import StudyName

EXACT = EXACT_MODES
_DEFAULT_MARGIN = 0.01


_Sampled = list[tuple[Trial, Sample]]


@dataclass(frozen=True)
class StudyTrials:
    """A study in the store with its trials."""

    stored: StoredStudy
    trials: tuple[Trial, ...]

    @cached_property
    def treatments(self) -> tuple[Treatment, ...]:
        """The study's, the baseline first."""
        return treatments(self.stored.study)

    def place(self, treatment: Treatment) -> tuple[int, ...]:
        """Where the study names it: by its levels, of which any may be the baseline."""
        levels = treatment.levels
        return tuple(one.levels.index(levels[one.name]) for one in self.stored.study.factors)

    def samples(self, workload: str, treatment: Treatment) -> "Sequence[tuple[Trial, Sample]]":
        """The workload's numbers in the treatment's trials, but for those that were refused."""
        return self._samples.get(workload, {}).get(treatment.key, ())

    @cached_property
    def _samples(self) -> dict[str, dict[str, list[tuple[Trial, Sample]]]]:
        """Workload → treatment's key → numbers."""
        by_workload: dict[str, dict[str, list[tuple[Trial, Sample]]]] = {}
        for trial in self.trials:
            key = trial.planned.treatment.key
            for sample in trial.samples if trial.outcome is not Outcome.REFUSED else ():
                by_workload.setdefault(sample.workload, {}).setdefault(key, []).append((trial, sample))
        return by_workload


def stored_trials(store: Store, workload: str | None = None) -> tuple[StudyTrials, ...]:
    """The studies with this workload, or all, oldest first. Raises StoreError."""
    wanted = [one for one in store.studies() if workload is None or workload in _labels(one.study)]
    return tuple(StudyTrials(one, store.trials(one.id, counted=False, workload=workload)) for one in wanted)


Readable = tuple[tuple[StoredStudy, ...], tuple[StudyName, ...]]


def readable_trials(
    store: Store, workload: str, studies: Readable | None = None
) -> tuple[tuple[StudyTrials, ...], tuple[str, ...]]:
    """The studies with this workload, and those that are not what was stored: `study 2, quick`.

    `studies`: Store.readable_studies, where they were read already.
    """
    readable, damaged = studies or store.readable_studies()
    left_out = [f"study {one.id}, {one.name}" for one in damaged]
    sound: list[StudyTrials] = []
    for one in readable:
        if workload in _labels(one.study):
            try:
                trials = store.trials(one.id, counted=False, workload=workload)
                sound.append(StudyTrials(one, trials))
            except TrialsDamaged:
                left_out.append(f"study {one.id}, {one.study.name}")
    return tuple(sound), tuple(left_out)


def metrics(studies: Iterable[StudyTrials], workload: str) -> tuple[str, ...]:
    """What the workload's numbers are called, as they were stored first."""
    trials = (trial for one in studies for trial in one.trials)
    names = (one.metric for trial in trials for one in trial.samples if one.workload == workload)
    return tuple(dict.fromkeys(names))


def versions(studies: Iterable[StudyTrials]) -> dict[str, str]:
    """Kernels that were measured → their release; empty where none of them said it."""
    seen: dict[str, str] = {}
    for one in studies:
        for trial in one.trials:
            provenance = trial.provenance
            seen[provenance.kernel] = provenance.kernel_release or seen.get(provenance.kernel, "")
    return seen


def _labels(study: Study) -> set[str]:
    return {use.label for use in study.workloads}


def history(
    studies: Sequence[StudyTrials],
    workload: str,
    *,
    metric: str | None = None,
    kernels: Iterable[str] | None = None,
    margin: float | None = None,
    by_time: bool = False,
    alpha: float = ALPHA,
) -> History:
    """The workload's history. `metric`: else its first one. `kernels`: only these, in this order, and in
    `missing` those of them that have no number; else in the order of versions, and builds of one version as
    their study names them.

    Numbers stand in one line only where machine, settings, mode and metric are the same; of an exact number
    that was measured twice the later one is taken. The line with the most versions comes first.
    """
    names = None if kernels is None else tuple(kernels)
    edge = margin or next((one.stored.study.margin for one in reversed(studies)), _DEFAULT_MARGIN)
    lines = _lines(workload, list(_entries(studies, workload, metric, names)), names, by_time)
    judged = change_points.with_changes(lines, edge, alpha)
    seen = {point.version for line in judged for point in line.points if point.value is not None}
    missing = tuple(name for name in names or () if name not in seen)
    return History(workload=workload, margin=edge, alpha=alpha, lines=judged, missing=missing)


@dataclass(frozen=True)
class _Key:
    """What the points of one line share."""

    metric: Metric
    mode: Mode
    system: SystemIdentity


@dataclass(frozen=True)
class _Entry:
    key: _Key
    point: Point


def _entries(
    studies: Iterable[StudyTrials], workload: str, metric: str | None, kernels: tuple[str, ...] | None
) -> Iterator[_Entry]:
    for one in studies:
        for treatment in sorted(one.treatments, key=one.place):
            for key, samples in _samples(one, treatment, workload, metric).items():
                point = _point(one, treatment, key.mode, samples)
                if kernels is None or point.version in kernels:
                    yield _Entry(key, point)


def _samples(
    one: StudyTrials, treatment: Treatment, workload: str, metric: str | None
) -> dict[_Key, _Sampled]:
    by_facts: dict[_Facts, _Sampled] = {}
    first: str | None = metric
    settings = settings_in_words(one.stored.study, treatment)
    for trial, sample in one.samples(workload, treatment):
        if metric is None and sample.metric == STRING_BYTES.name:
            continue
        first = first or sample.metric
        if sample.metric == first:
            by_facts.setdefault(_facts(settings, trial.provenance, sample), []).append((trial, sample))
    return {_key(facts): samples for facts, samples in by_facts.items()}


_Facts = tuple[str, str, Direction, Mode, str, str, str, str, int, str]


def _facts(settings: str, provenance: Provenance, sample: Sample) -> _Facts:
    """What a key is made of: compared a million times, where a key is made once."""
    return (
        sample.metric,
        sample.unit,
        sample.direction,
        sample.mode,
        provenance.machine,
        provenance.qemu,
        provenance.cpu_model,
        provenance.agent_digest,
        provenance.seed,
        settings,
    )


@lru_cache(maxsize=4096)
def _key(facts: _Facts) -> _Key:
    name, unit, direction, mode, machine, qemu, cpu_model, agent_digest, seed, settings = facts
    return _Key(
        metric=Metric(name=name, unit=unit, direction=direction),
        mode=mode,
        system=SystemIdentity(
            machine=machine,
            qemu=qemu,
            cpu_model=cpu_model,
            agent_digest=agent_digest,
            seed=seed,
            settings=settings,
        ),
    )


def _point(one: StudyTrials, treatment: Treatment, mode: Mode, samples: _Sampled) -> Point:
    provenance = samples[0][0].provenance
    in_order = sorted(samples, key=lambda pair: pair[0].planned.block)
    values = tuple(sample.value for _, sample in in_order)
    return Point(
        version=provenance.kernel or treatment.label,
        release=provenance.kernel_release,
        digest=provenance.kernel_digest,
        study_id=one.stored.id,
        study=one.stored.study.name,
        treatment=treatment.label,
        values=values,
        perturbations=tuple(trial.planned.perturbation for trial, _ in in_order),
        value=_level(values, mode),
        started=min(trial.started for trial, _ in samples),
    )


def _level(values: tuple[float, ...], mode: Mode) -> float:
    if mode in EXACT and min(values) > 0:
        return values[0] if min(values) == max(values) else geometric_mean(values)
    return float(median(values))


def _lines(workload: str, entries: list[_Entry], names: tuple[str, ...] | None, by_time: bool) -> list[Line]:
    by_key: dict[_Key, list[Point]] = {}
    for entry in entries:
        by_key.setdefault(entry.key, []).append(entry.point)
    lines = [
        Line(
            workload=workload,
            metric=key.metric.name,
            unit=key.metric.unit,
            direction=key.metric.direction,
            mode=key.mode,
            system=key.system,
            points=_in_order(points, key.mode, names, by_time),
        )
        for key, points in by_key.items()
    ]
    lines.sort(key=lambda line: (-len(line.points), -_last(line)))
    return [line.model_copy(update={"alone": _difference(lines[0], line)}) for line in lines]


def _last(line: Line) -> float:
    return max((point.started.timestamp() for point in line.points if point.started), default=0.0)


def _in_order(
    points: list[Point], mode: Mode, names: tuple[str, ...] | None, by_time: bool
) -> tuple[Point, ...]:
    places = {name: place for place, name in enumerate(names or dict.fromkeys(one.version for one in points))}
    if mode in EXACT and not by_time:
        # Two commits may make one image: each of them was measured.
        points = list({(point.version, point.digest): point for point in points}.values())

    def order(point: Point) -> tuple[object, ...]:
        moment = point.started.timestamp() if point.started else 0.0
        if by_time:
            return (moment,)
        version = () if names else measured_order(point.version, point.release)
        return (version, places[point.version], moment)

    return tuple(sorted(points, key=order))


def _difference(first: Line, line: Line) -> str:
    """Why it is a line of its own."""
    names = {
        "machine": "machine", "qemu": "QEMU build", "cpu_model": "CPU model", "agent_digest": "guest agent",
        "seed": "QEMU seed", "settings": "setting",
    }  # fmt: skip
    old, new = first.system.model_dump(), line.system.model_dump()
    differing = [word for name, word in names.items() if old[name] != new[name]]
    differing += ["mode"] * (first.mode is not line.mode)
    differing += ["unit"] * ((first.metric, first.unit) != (line.metric, line.unit))
    return f"measured with a different {' and '.join(differing)}" if differing else ""
