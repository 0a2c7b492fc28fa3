"""A study's result, worked out anew from its trials each time: the same trials, the same result."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ktrial.analysis import data_quality
from ktrial.analysis.answer import answer, variability_answer
from ktrial.analysis.comparability import (
    TreatmentTrials,
    kernel_difference,
    machine_difference,
    mode_difference,
    sides_of,
)
from ktrial.analysis.data_quality import warnings_of
from ktrial.analysis.kernel_confounds import with_kernels
from ktrial.analysis.reach import reach_sentence, untested, with_reach
from ktrial.analysis.scaling import scaling_answer
from ktrial.format.number_format import counted, number, percentage
from ktrial.model.comparison import Comparison, Interaction, Result, Variability, Verdict
from ktrial.model.design import Design, Factor, FactorKind, LevelValue, Perturbation, Treatment
from ktrial.model.profile import CycleModel
from ktrial.model.study import REAL_MACHINES, Study, StudyRecord, plan, treatments
from ktrial.model.trial import Outcome, Trial, TrialSampled
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import STRING_BYTES, CountedBy, Metric, Mode, Sample, WorkloadUse
from ktrial.stats.paired_arms import PairedArms
from ktrial.stats.verdict_rules import compare, held_together
from ktrial.store.store import Store
from ktrial.store.study_rows import StoredStudy

# What computes with numpy is loaded where a study needs it: most exact ones do not.
if TYPE_CHECKING:
    from ktrial.stats.interactions import FactorPair, InteractionQuestion

_INSTRUCTIONS = "instructions"
"""The unit of what counts instructions."""
_TIME = "ns"
"""The unit of the same where a clock is read."""
_VARIABILITY_ALPHA = 0.05
Described = Callable[[WorkloadUse], tuple[Metric, ...]]


def load_record(store: Store, study: int | str) -> StudyRecord:
    """A study in the store, by its id or its name (the newest), with its trials and result.

    Raises StudyNotStored and other StoreErrors.
    """
    stored = store.find(study)
    return make_record(store, stored, store.trials(stored.id))


def make_record(store: Store, stored: StoredStudy, trials: tuple[Trial, ...]) -> StudyRecord:
    """The same, of a study whose trials were read before. Raises StoreError."""
    study, differences = stored.study, store.kernel_differences(stored.id)
    if study.timing is None:
        planned = len(plan(study).trials)
    else:
        from ktrial.analysis import interim

        # In real time: how many there must be before the next look.
        blocks = interim.InterimData(study, trials).blocks_wanted(metrics_of(study, trials))
        planned = max(len(trials), (blocks or 0) * len(treatments(study)))
    return StudyRecord(
        id=stored.id,
        study=study,
        study_digest=stored.digest,
        created=stored.created,
        planned=planned,
        trials=trials,
        result=_of_search(store, stored, trials)
        if study.search
        else with_kernels(study, trials, result(study, trials), differences),
        kernels=differences,
        sampled=tuple(_sampled(store, stored, trials)),
        proofs=store.proofs(stored.id),
    )


def _of_search(store: Store, stored: StoredStudy, trials: Sequence[Trial]) -> Result:
    """What a search came to, and what its confirmation compared; before its end how many runs it has."""
    study, tuned = stored.study, store.answer(stored.id)
    answer = tuned.answer if tuned else f"The search has not ended: {counted(len(trials), 'run')} so far."
    return Result(
        study=study.name,
        question=study.question,
        answer=answer,
        comparisons=tuned.comparisons if tuned else (),
        warnings=tuned.warnings if tuned else (),
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
            for sampled in store.sampled(stored.id, trial.planned.key):
                yield TrialSampled(trial=trial.planned.key, treatment=treatment.label, sampled=sampled)


def metrics_in_catalogue(use: WorkloadUse) -> tuple[Metric, ...]:
    """The metrics that the workload promises; none where the catalogue does not know it any more."""
    if use.command and use.command.metrics:
        return tuple(
            Metric(
                name=rule.name or rule.format,
                # A rule that reads nothing in the output means the clock.
                unit=rule.unit or ("" if rule.regex or rule.json_path or rule.format else _TIME),
                direction=rule.direction,
            )
            for rule in use.command.metrics
        )
    # What trials have measured tells by itself which metrics there are: most studies need no workloads.
    from ktrial import workloads
    from ktrial.target.errors import GuestProgramsMissing
    from ktrial.workloads.errors import WorkloadError

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
    metrics = metrics_of(study, in_order, described)
    sides = sides_of(study, in_order)
    incomparable = {side.treatment.key: _difference(sides[0], side) for side in sides}
    comparisons = tuple(
        _comparison(study, label, metric, sides[0], side, incomparable)
        for label, metric in metrics
        for side in sides[1:]
    )
    warnings: tuple[DataWarning, ...] = ()
    if study.timing:
        comparisons, warnings = _at_last_look(study, in_order, sides, comparisons, incomparable)
    by_label = {side.treatment.label: side.trials for side in sides}
    comparisons = with_reach(study, by_label, comparisons)
    interacting = interactions(study, sides, metrics, incomparable)
    unsteady = _variability(study, sides, comparisons)
    scaling = scaling_answer(study, in_order)
    sentences = (
        scaling or answer(comparisons, study.margin, interacting),
        "" if scaling else variability_answer(unsteady),
        reach_sentence(comparisons),
    )
    return Result(
        study=study.name,
        question=study.question,
        answer=" ".join(filter(None, sentences)),
        comparisons=comparisons,
        interactions=interacting,
        variability=unsteady,
        warnings=(
            *untested(study, comparisons),
            *warnings_of(study, by_label, comparisons),
            *warnings,
        ),
    )


_LOOKS_APART = 1.09


@dataclass
class VerdictsSoFar:
    """The verdicts of a study that runs, for those who watch it; nothing is decided by them.

    They are made anew when there are more than 1.09 times the blocks. Each time costs as much as there are
    blocks: at these distances all together cost a fixed number of times what the last does.
    """

    blocks: int = 0
    comparisons: tuple[Comparison, ...] = ()

    def after(self, blocks: int, study: Study, trials: Iterable[Trial]) -> tuple[Comparison, ...]:
        """After so many whole blocks: those of now, or the last ones."""
        if blocks > self.blocks * _LOOKS_APART:
            self.blocks, self.comparisons = blocks, result(study, trials).comparisons
        return self.comparisons


# The interactions of a study's factors: which four treatments show one, and what their trials say.

Incomparable = Mapping[str, str]
"""A treatment's key → why its trials must not be compared with the baseline's; empty where they may."""


def _at_last_look(
    study: Study,
    trials: Sequence[Trial],
    sides: Sequence[TreatmentTrials],
    comparisons: tuple[Comparison, ...],
    incomparable: Incomparable,
) -> tuple[tuple[Comparison, ...], tuple[DataWarning, ...]]:
    """The comparisons with the verdicts of the blocks so far, where there may be one, and what is odd."""
    from ktrial.analysis import interim

    baseline, by_label = sides[0], {side.treatment.label: side for side in sides}
    data = interim.InterimData(study, trials)
    decided: dict[tuple[str, str, str], Comparison] = {}
    warnings: tuple[DataWarning, ...] = ()
    if data.whole_blocks and not data.baseline_is_given_up:
        look = data.look(metrics_of(study, trials))
        decided = {_place(comparison): comparison for comparison in look.comparisons}
        warnings = tuple(_with_name(warning, study) for warning in look.warnings)
    confounded = data_quality.confounds_beside(study, baseline.trials)
    confounds = {side.treatment.label: confounded(side.trials) for side in sides[1:]}

    def with_verdict(comparison: Comparison) -> Comparison:
        workload, metric, label = _place(comparison)
        both = (baseline, by_label[label])
        missing = (side.arm(workload, metric).missing for side in both)
        reason = (
            mode_difference(_modes(both, workload, metric))
            or incomparable[both[1].treatment.key]
            or next(filter(None, missing), "")
            or confounds[label]
        )
        judged = decided.get((workload, metric, label))
        if judged and not reason:
            return judged
        return _without_verdict(comparison, reason or "no block has ended yet")

    return tuple(map(with_verdict, comparisons)), warnings


def _place(comparison: Comparison) -> tuple[str, str, str]:
    return comparison.workload, comparison.metric, comparison.treatment


def _without_verdict(comparison: Comparison, reason: str) -> Comparison:
    nothing = {"ratio": None, "low": None, "high": None, "verdict": Verdict.INCONCLUSIVE}
    return comparison.model_copy(update={**nothing, "reason": reason})


def _with_name(warning: DataWarning, study: Study) -> DataWarning:
    """With advice that a shell takes as it stands."""
    sets = study.machine.kind in REAL_MACHINES and any(
        factor.kind is FactorKind.SETTING for factor in study.factors
    )
    needed = sets or study.machine.boots
    leave = " --allow-host-changes" if needed and "STUDY" in warning.advice else ""
    advice = f"{warning.advice.replace('STUDY', shlex.quote(study.name))}{leave}"
    return warning.model_copy(update={"advice": advice})


def metrics_of(
    study: Study, trials: Sequence[Trial], described: Described = lambda _use: ()
) -> list[tuple[str, Metric]]:
    """Every workload's label with each of its metrics, as sampled, or as described where nothing was.

    Without the bytes of string instructions where no trial has any.
    """
    sampled: dict[str, dict[str, Sample]] = {}
    moved_bytes: set[str] = set()
    for trial in trials:
        for sample in trial.samples:
            sampled.setdefault(sample.workload, {}).setdefault(sample.metric, sample)
            if sample.metric == STRING_BYTES.name and sample.value:
                moved_bytes.add(sample.workload)
    metrics: dict[tuple[str, str], Metric] = {}
    for use in study.workloads:
        of_use = [
            Metric(name=sample.metric, unit=sample.unit, direction=sample.direction)
            for sample in sampled.get(use.label, {}).values()
            if sample.metric != STRING_BYTES.name or use.label in moved_bytes
        ]
        for metric in of_use or _in_units_of(study, use, described(use)):
            metrics.setdefault((use.label, metric.name), metric)
    return [(label, metric) for (label, _), metric in metrics.items()]


def _in_units_of(study: Study, use: WorkloadUse, described: Iterable[Metric]) -> Iterator[Metric]:
    """Described metrics in the unit that samples would have: where the guest's clock counts instructions,
    what takes time elsewhere is so many instructions. Who gave a unit means it.
    """
    usual, unit = (_TIME, _INSTRUCTIONS) if study.machine.kind == "exact" else (_INSTRUCTIONS, _TIME)
    set_units = {rule.name for rule in use.command.metrics if rule.unit} if use.command else set()
    for metric in described:
        is_usual = metric.name not in set_units and metric.unit == usual
        yield metric.model_copy(update={"unit": unit}) if is_usual else metric


def _comparison(
    study: Study,
    label: str,
    metric: Metric,
    baseline: TreatmentTrials,
    treatment: TreatmentTrials,
    incomparable: Incomparable,
) -> Comparison:
    sides = (baseline, treatment)
    modes = _modes(sides, label, metric.name)
    below, above = (side.arm(label, metric.name) for side in sides)
    why_not = mode_difference(modes) or incomparable[treatment.treatment.key]
    mode = modes[-1] if modes else _usual_mode(study, sides)
    compared = compare(label, metric, mode, below, above, margin=study.margin, incomparable=why_not)
    if metric.name != STRING_BYTES.name or why_not or below.missing or above.missing:
        return compared
    return weighed(compared, below.values, above.values, baseline.instructions(label), study.margin)


def _variability(
    study: Study, sides: Sequence[TreatmentTrials], comparisons: Sequence[Comparison]
) -> tuple[Variability, ...]:
    """Which treatments scatter otherwise than the baseline, of every comparison that has a ratio.

    What must not be compared is not compared here either.
    """
    by_label = {side.treatment.label: side for side in sides}

    def paired(comparison: Comparison) -> PairedArms:
        # In real time a block has a perturbation of its own number.
        below, above = (
            {
                number: sample.value
                for number, sample in by_label[label].samples(comparison.workload, comparison.metric).items()
            }
            for label in (comparison.baseline, comparison.treatment)
        )
        return PairedArms(
            workload=comparison.workload,
            metric=Metric(name=comparison.metric, unit=comparison.unit, direction=comparison.direction),
            mode=comparison.mode,
            baseline=comparison.baseline,
            treatment=comparison.treatment,
            below=below,
            above=above,
        )

    pairs = [paired(comparison) for comparison in comparisons if comparison.ratio is not None]
    if study.timing is None and all(pair.plainly_alike(study.margin) for pair in pairs):
        return ()
    from ktrial.stats.dispersion import variability

    return variability(pairs, study.margin, study.timing.alpha if study.timing else _VARIABILITY_ALPHA)


def _modes(sides: Iterable[TreatmentTrials], label: str, metric: str) -> list[Mode]:
    return [sample.mode for side in sides for sample in side.samples(label, metric).values()]


def _usual_mode(study: Study, sides: Sequence[TreatmentTrials]) -> Mode:
    """That of the other numbers, or what was asked for: for a comparison that has no number."""
    modes = (side.last_mode for side in reversed(sides))
    if mode := next(filter(None, modes), None):
        return mode
    if study.machine.kind == "exact-parallel":
        return Mode.EXACT_PARALLEL
    if study.machine.kind != "exact":
        return Mode.TIMED
    return Mode.EXACT_CLOCK if study.machine.count is CountedBy.CLOCK else Mode.EXACT_PLUGIN


def _difference(baseline: TreatmentTrials, treatment: TreatmentTrials) -> str:
    """Why the two treatments' trials must not be compared; empty where they may."""
    for side in (baseline, treatment):
        if reason := kernel_difference(side.trials):
            return f"{side.treatment.label}: {reason}"
    return machine_difference(baseline.trials, treatment.trials)


Sides = tuple[TreatmentTrials, TreatmentTrials, TreatmentTrials, TreatmentTrials]


def interactions(
    study: Study,
    sides: Sequence[TreatmentTrials],
    metrics: Sequence[tuple[str, Metric]],
    incomparable: Incomparable,
) -> tuple[Interaction, ...]:
    """Those of every two factors whose four treatments are in the study, for every metric.

    In the order of the metrics, the factors and their levels. Bytes of string instructions have none.
    """
    by_key = {side.treatment.key: side for side in sides}
    questions = [
        (_question(pair, four, label, metric), four)
        for label, metric in metrics
        if metric.name != STRING_BYTES.name
        for pair, four in _fours(study, by_key)
    ]
    if not questions:
        return ()
    if study.timing:
        return _in_time(study, sides, questions, incomparable)
    from ktrial.stats.interactions import exact_interaction

    return tuple(
        exact_interaction(
            place,
            [side.arm(place.workload, place.metric.name) for side in four],
            margin=study.margin,
            incomparable=_incomparable(place, four, incomparable),
        )
        for place, four in questions
    )


def _fours(study: Study, by_key: dict[str, TreatmentTrials]) -> "Iterator[tuple[FactorPair, Sides]]":
    """Every two factors with a level each whose combinations are in the study; else all is the baseline's.

    In the order of the factors, then of their levels.
    """
    planned = {treatment.key for treatment in treatments(study)}
    baseline: dict[str, LevelValue] = {factor.name: factor.baseline for factor in study.factors}
    for first, first_level, second, second_level in _pairs_changed(study):
        alone, beside = {first.name: first_level}, {second.name: second_level}
        every = (baseline, baseline | alone, baseline | beside, baseline | alone | beside)
        keys = [Treatment(levels=levels).key for levels in every]
        if planned.issuperset(keys):
            from ktrial.stats.interactions import FactorPair

            a, b, c, d = (by_key[key] for key in keys)
            pair = FactorPair(
                first.name, (first.baseline, first_level), second.name, (second.baseline, second_level)
            )
            yield pair, (a, b, c, d)


def _pairs_changed(study: Study) -> list[tuple[Factor, LevelValue, Factor, LevelValue]]:
    """The two factors, each with its level, of every treatment that changes two and no more."""
    levels = [{level: place for place, level in enumerate(factor.levels)} for factor in study.factors]
    places = set()
    for treatment in treatments(study):
        changed = [
            (place, levels[place][level])
            for place, factor in enumerate(study.factors)
            if (level := treatment.levels[factor.name]) != factor.baseline and level in levels[place]
        ]
        if len(changed) == 2:
            (first, first_level), (second, second_level) = changed
            places.add((first, second, first_level, second_level))
    factors = study.factors
    return [
        (
            factors[first],
            factors[first].levels[first_level],
            factors[second],
            factors[second].levels[second_level],
        )
        for first, second, first_level, second_level in sorted(places)
    ]


def _in_time(
    study: Study,
    sides: Sequence[TreatmentTrials],
    places: "Sequence[tuple[InteractionQuestion, Sides]]",
    incomparable: Incomparable,
) -> tuple[Interaction, ...]:
    """After whole blocks only, and of treatments that were not given up."""
    trials = sorted((trial for side in sides for trial in side.trials), key=lambda trial: trial.planned.order)
    from ktrial.analysis import interim
    from ktrial.stats.interactions import timed_interactions

    data = interim.InterimData(study, trials)
    if not data.whole_blocks or data.baseline_is_given_up:
        return ()
    metrics = list(dict.fromkeys((place.workload, place.metric) for place, _ in places))
    measured = {(blocked.workload, blocked.metric.name): blocked for blocked in data.measured(metrics)}
    questions = [
        (place, measured[place.workload, place.metric.name])
        for place, four in places
        if data.given_up.isdisjoint(side.treatment.key for side in four)
        and not _incomparable(place, four, incomparable)
    ]
    over = data.blocks_wanted(metrics) is None
    return timed_interactions(questions, interim.design_of(study), final=over)


def _incomparable(place: "InteractionQuestion", four: Sides, incomparable: Incomparable) -> str:
    modes = _modes(four, place.workload, place.metric.name)
    reasons = (incomparable[side.treatment.key] for side in four[1:])
    return mode_difference(modes) or next(filter(None, reasons), "")


def _question(pair: "FactorPair", four: Sides, label: str, metric: Metric) -> "InteractionQuestion":
    from ktrial.stats.interactions import FactorialCells, InteractionQuestion

    cells = FactorialCells(*(side.treatment.label for side in four))
    # The mode of the first number that there is; before there is one it does not matter.
    modes = _modes(four, label, metric.name)
    return InteractionQuestion(pair, cells, label, metric, modes[0] if modes else Mode.EXACT_PLUGIN)


# What string bytes weigh beside instructions: a row of bytes has no verdict of its own below what matters.
#
# Their own ratio says little: from 192 bytes to 608 is +217 %, and 13 instructions by the weight of a byte.

Values = Mapping[Perturbation, float]
"""Perturbation → a sample's value."""


def weighed(
    comparison: Comparison, below: Values, above: Values, instructions: Values, margin: float
) -> Comparison:
    """The comparison of string bytes; equivalent, with the reason, where all that differs is too light.

    `below`, `above`: the bytes of both sides. `instructions`: the baseline's instructions, of which `margin`
    is the smallest part that matters.
    """
    if comparison.verdict is Verdict.EQUIVALENT or not (below and above and instructions):
        return comparison
    cost, least = CycleModel().string_byte, min(instructions.values())
    weight = max(abs(after - before) * cost for before, after in held_together(below, above))
    if weight > margin * least:
        return comparison
    reason = (
        f"the bytes that differ are worth {number(weight)} of {number(least)} instructions: "
        f"less than the margin of {percentage(margin)}"
    )
    return comparison.model_copy(update={"verdict": Verdict.EQUIVALENT, "reason": reason})


# Any two treatments of a study, compared as a study of just these two would compare them.

NOT_JUDGED = (
    "chosen afterwards: in real time a study judges its treatments against its baseline only, since of many "
    "pairs some differ by chance"
)


def pair_record(
    store: Store, stored: StoredStudy, trials: Sequence[Trial], before: Treatment, after: Treatment
) -> StudyRecord:
    """The record of the two treatments, `before` as the baseline.

    Exact numbers are judged. Those in real time are where `before` is the study's baseline, with the verdicts
    of the study, which correct for all of its treatments; others have values and no verdict.
    Raises StoreError.
    """
    baselines = (
        factor.model_copy(update={"baseline": before.levels[factor.name]}) for factor in stored.study.factors
    )
    of_two = {"factors": tuple(baselines), "design": Design.LISTED, "listed": (dict(after.levels),)}
    of_pair = tuple(trial for trial in trials if trial.planned.treatment.key in {before.key, after.key})
    record = make_record(store, replace(stored, study=stored.study.model_copy(update=of_two)), of_pair)
    if stored.study.timing is None:
        return record
    if before == treatments(stored.study)[0]:
        of_study = make_record(store, stored, tuple(trials)).result
        comparisons = tuple(
            comparison for comparison in of_study.comparisons if comparison.treatment == after.label
        )
    else:
        comparisons = tuple(
            _without_verdict(
                comparison,
                comparison.reason if None in {comparison.baseline_value, comparison.value} else NOT_JUDGED,
            )
            for comparison in record.result.comparisons
        )
    changes = {"comparisons": comparisons, "answer": "", "variability": ()}
    return record.model_copy(update={"result": record.result.model_copy(update=changes)})
