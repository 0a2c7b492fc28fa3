"""A study's result, worked out anew from its trials each time: the same trials, the same result."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ktrial import workloads
from ktrial.analysis import environment, interim
from ktrial.analysis.answer_sentence import answer
from ktrial.analysis.comparability import kernel_difference, machine_difference, mode_difference
from ktrial.analysis.data_quality import warnings_of
from ktrial.analysis.dispersion import variability_of
from ktrial.analysis.dispersion_sentence import variability_answer
from ktrial.analysis.interactions import Side, interactions
from ktrial.analysis.kernel_confounds import with_kernels
from ktrial.analysis.missing_data import why_missing
from ktrial.model.comparison import Comparison, Result, Verdict
from ktrial.model.design import Treatment
from ktrial.model.plan import plan, treatments
from ktrial.model.study import Study
from ktrial.model.study_record import StudyRecord
from ktrial.model.time_series import TrialSampled
from ktrial.model.trial import Outcome, Trial
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import STRING_BYTES, CountedBy, Metric, Mode, Sample, WorkloadUse
from ktrial.stats import Arm, compare
from ktrial.store import Store, StoredStudy
from ktrial.target.errors import GuestProgramsMissing
from ktrial.workloads.errors import WorkloadError

Described = Callable[[WorkloadUse], tuple[Metric, ...]]


def record(store: Store, study: int | str) -> StudyRecord:
    """A study in the store, by its id or its name (the newest), with its trials and result.

    Raises StudyNotStored and other StoreErrors.
    """
    stored = store.find(study)
    return record_of(store, stored, store.trials(stored.id))


def record_of(store: Store, stored: StoredStudy, trials: tuple[Trial, ...]) -> StudyRecord:
    """The same, of a study whose trials were read before. Raises StoreError."""
    differences = store.kernel_differences(stored.id)
    return StudyRecord(
        id=stored.id,
        study=stored.study,
        study_digest=stored.digest,
        created=stored.created,
        planned=_planned(stored.study, trials),
        trials=trials,
        result=with_kernels(stored.study, trials, result(stored.study, trials), differences),
        kernels=differences,
        sampled=tuple(_sampled(store, stored, trials)),
    )


def _sampled(store: Store, stored: StoredStudy, trials: Sequence[Trial]) -> Iterator[TrialSampled]:
    """Of each treatment's first trial that completed."""
    if not stored.study.machine.sample_ns:
        return
    seen: set[str] = set()
    for trial in trials:
        treatment = trial.planned.treatment
        if trial.outcome is Outcome.COMPLETED and treatment.key not in seen:
            seen.add(treatment.key)
            for each in store.sampled(stored.id, trial.planned.key):
                yield TrialSampled(trial=trial.planned.key, treatment=treatment.label, sampled=each)


def _planned(study: Study, trials: Sequence[Trial]) -> int:
    """How many trials there will be; in real time, how many there must be before the next look."""
    if study.timing is None:
        return len(plan(study).trials)
    wanted = interim.blocks_wanted(study, trials, metrics_of(study, trials))
    return max(len(trials), (wanted or 0) * len(treatments(study)))


def metrics_in_catalogue(use: WorkloadUse) -> tuple[Metric, ...]:
    """The metrics that the workload promises; none where the catalogue does not know it any more."""
    if use.command and use.command.metrics:
        return tuple(
            Metric(name=rule.name, unit=rule.unit, direction=rule.direction) for rule in use.command.metrics
        )
    try:
        return workloads.find(use).description.metrics
    except (WorkloadError, GuestProgramsMissing):
        return ()


def result(study: Study, trials: Iterable[Trial], described: Described = metrics_in_catalogue) -> Result:
    """The study's answer: every treatment against the baseline, for every metric of every workload.

    Comparisons are ordered as the study has its workloads, then as a workload has its metrics, then as the
    plan has its treatments. Nothing depends on time, on the host or on the order in which trials ended.
    """
    in_order = sorted(trials, key=lambda trial: trial.planned.order)
    arms = [_TreatmentTrials.of(study, treatment, in_order) for treatment in treatments(study)]
    comparisons = tuple(
        _comparison(study, label, metric, arms[0], arm)
        for label, metric in metrics_of(study, in_order, described)
        for arm in arms[1:]
    )
    warnings: tuple[DataWarning, ...] = ()
    if study.timing:
        comparisons, warnings = _judged_in_time(study, in_order, arms, comparisons)
    metrics = metrics_of(study, in_order, described)
    found = interactions(study, arms, metrics, _difference)
    unsteady = variability_of(study, arms, comparisons)
    said = (answer(comparisons, study.margin, found), variability_answer(unsteady))
    return Result(
        study=study.name,
        question=study.question,
        answer=" ".join(filter(None, said)),
        comparisons=comparisons,
        interactions=found,
        variability=unsteady,
        warnings=(
            *warnings_of(study, {arm.treatment.label: arm.trials for arm in arms}, comparisons),
            *warnings,
        ),
    )


def _judged_in_time(
    study: Study,
    trials: Sequence[Trial],
    arms: Sequence["_TreatmentTrials"],
    comparisons: tuple[Comparison, ...],
) -> tuple[tuple[Comparison, ...], tuple[DataWarning, ...]]:
    """The comparisons with the verdicts of the blocks so far, where there may be one, and what is odd."""
    baseline, by_label = arms[0], {arm.treatment.label: arm for arm in arms}
    lost, whole = interim.given_up(study, trials), interim.whole_blocks(study, trials)
    found: dict[tuple[str, str, str], Comparison] = {}
    warnings: tuple[DataWarning, ...] = ()
    if whole and baseline.treatment.key not in lost:
        looked = interim.look_at(study, trials, metrics_of(study, trials))
        found = {(one.workload, one.metric, one.treatment): one for one in looked.comparisons}
        warnings = looked.warnings

    def judged(one: Comparison) -> Comparison:
        arm = by_label[one.treatment]
        own = found.get((one.workload, one.metric, one.treatment))
        reason = _why_not_compared(one, baseline, arm)
        reason = reason or environment.confounded(study, baseline.trials, arm.trials)
        if own and not reason:
            return own
        nothing = {"ratio": None, "low": None, "high": None, "verdict": Verdict.INCONCLUSIVE}
        return one.model_copy(update={**nothing, "reason": reason or "no block has ended yet"})

    return tuple(judged(one) for one in comparisons), warnings


def _why_not_compared(one: Comparison, baseline: "_TreatmentTrials", treatment: "_TreatmentTrials") -> str:
    sides = (baseline, treatment)
    modes = [sample.mode for side in sides for sample in side.samples(one.workload, one.metric).values()]
    missing = [side.arm(one.workload, one.metric).missing for side in sides]
    return mode_difference(modes) or _difference(baseline, treatment) or "".join(missing[:1]) or missing[1]


@dataclass(frozen=True)
class _TreatmentTrials:
    """The trials of one treatment that ended, in run order."""

    treatment: Treatment
    trials: tuple[Trial, ...]
    planned: int
    some_will_do: bool
    """In real time a trial that failed leaves its block out; it does not undo the others."""

    @classmethod
    def of(cls, study: Study, treatment: Treatment, trials: Sequence[Trial]) -> "_TreatmentTrials":
        own = tuple(trial for trial in trials if trial.planned.treatment.key == treatment.key)
        return cls(treatment, own, len(own) if study.timing else study.perturbations, bool(study.timing))

    def samples(self, label: str, metric: str) -> dict[int, Sample]:
        """Perturbation's number → sample."""
        return self._by_metric.get((label, metric), {})

    @cached_property
    def _by_metric(self) -> dict[tuple[str, str], dict[int, Sample]]:
        found: dict[tuple[str, str], dict[int, Sample]] = {}
        for trial in self.trials:
            for sample in trial.samples:
                own = found.setdefault((sample.workload, sample.metric), {})
                own[trial.planned.perturbation.number] = sample
        return found

    def arm(self, label: str, metric: str) -> Arm:
        """The treatment's numbers for one metric, with what is missing of them."""
        found = self.samples(label, metric)
        met = {trial.planned.perturbation.number: trial.planned.perturbation for trial in self.trials}
        return Arm(
            label=self.treatment.label,
            values={met[number]: sample.value for number, sample in sorted(found.items())},
            missing="" if found and self.some_will_do else self._why_missing(label, set(found)),
        )

    def _why_missing(self, label: str, found: set[int]) -> str:
        planned = max(1, self.planned)
        return why_missing(self.treatment.label, label, self.trials, found, planned)


def metrics_of(
    study: Study, trials: Sequence[Trial], described: Described = lambda _use: ()
) -> list[tuple[str, Metric]]:
    """Every workload's label with each of its metrics, as sampled, or as described where nothing was.

    Without the bytes of string instructions where no trial has any.
    """
    found: dict[tuple[str, str], Metric] = {}
    by_workload: dict[str, list[Sample]] = {}
    for sample in (sample for trial in trials for sample in trial.samples):
        by_workload.setdefault(sample.workload, []).append(sample)
    for use in study.workloads:
        samples = by_workload.get(use.label, [])
        if not any(sample.value for sample in samples if sample.metric == STRING_BYTES.name):
            samples = [sample for sample in samples if sample.metric != STRING_BYTES.name]
        metrics = [Metric(name=one.metric, unit=one.unit, direction=one.direction) for one in samples]
        for metric in metrics or described(use):
            found.setdefault((use.label, metric.name), metric)
    return [(label, metric) for (label, _), metric in found.items()]


def _comparison(
    study: Study, label: str, metric: Metric, baseline: _TreatmentTrials, treatment: _TreatmentTrials
) -> Comparison:
    sides = (baseline, treatment)
    modes = [sample.mode for side in sides for sample in side.samples(label, metric.name).values()]
    return compare(
        label,
        metric,
        modes[-1] if modes else _usual_mode(study, sides),
        baseline.arm(label, metric.name),
        treatment.arm(label, metric.name),
        margin=study.margin,
        incomparable=mode_difference(modes) or _difference(baseline, treatment),
    )


def _usual_mode(study: Study, sides: Iterable[_TreatmentTrials]) -> Mode:
    """That of the other numbers, or what was asked for: for a comparison that has no number."""
    met = [sample.mode for side in sides for trial in side.trials for sample in trial.samples]
    if met:
        return met[-1]
    if study.machine.kind != "exact":
        return Mode.TIMED
    return Mode.EXACT_CLOCK if study.machine.count is CountedBy.CLOCK else Mode.EXACT_PLUGIN


def _difference(baseline: Side, treatment: Side) -> str:
    """Why the two treatments' trials must not be compared; empty where they may."""
    for side in (baseline, treatment):
        if reason := kernel_difference(side.trials):
            return f"{side.treatment.label}: {reason}"
    return machine_difference(baseline.trials, treatment.trials)
