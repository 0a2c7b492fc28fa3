"""The interactions of a study's factors: which four treatments show one, and what their trials say."""

from collections.abc import Iterator, Mapping, Sequence

from ktrial.analysis import interim
from ktrial.analysis.comparability import mode_difference
from ktrial.analysis.treatment_trials import TreatmentTrials
from ktrial.model.comparison import Interaction
from ktrial.model.design import Factor, Treatment
from ktrial.model.levels import LevelValue
from ktrial.model.plan import treatments
from ktrial.model.study import Study
from ktrial.model.workload import STRING_BYTES, Metric, Mode
from ktrial.stats.interactions import (
    FactorialCells,
    FactorPair,
    InteractionQuestion,
    exact_interaction,
    timed_interactions,
)

Incomparable = Mapping[str, str]
"""A treatment's key → why its trials must not be compared with the baseline's; empty where they may."""

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
        (InteractionQuestion(pair, _labels(four), label, metric, _mode(four, label, metric)), four)
        for label, metric in metrics
        if metric.name != STRING_BYTES.name
        for pair, four in _fours(study, by_key)
    ]
    if study.timing:
        return _in_time(study, sides, questions, incomparable)
    return tuple(_exact(study, place, four, incomparable) for place, four in questions)


def _fours(study: Study, by_key: dict[str, TreatmentTrials]) -> Iterator[tuple[FactorPair, Sides]]:
    """Every two factors with a level each whose combinations are in the study; else all is the baseline's.

    In the order of the factors, then of their levels.
    """
    planned = {treatment.key for treatment in treatments(study)}
    baseline: dict[str, LevelValue] = {factor.name: factor.baseline for factor in study.factors}
    for first, one, second, other in _pairs_changed(study):
        alone, beside = {first.name: one}, {second.name: other}
        every = (baseline, baseline | alone, baseline | beside, baseline | alone | beside)
        keys = [Treatment(levels=levels).key for levels in every]
        if planned.issuperset(keys):
            a, b, c, d = (by_key[key] for key in keys)
            pair = FactorPair(first.name, (first.baseline, one), second.name, (second.baseline, other))
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
            (first, one), (second, other) = changed
            places.add((first, second, one, other))
    factors = study.factors
    return [
        (factors[first], factors[first].levels[one], factors[second], factors[second].levels[other])
        for first, second, one, other in sorted(places)
    ]


def _exact(study: Study, place: InteractionQuestion, four: Sides, incomparable: Incomparable) -> Interaction:
    a, b, c, d = (side.arm(place.workload, place.metric.name) for side in four)
    reason = _incomparable(place, four, incomparable)
    return exact_interaction(place, (a, b, c, d), margin=study.margin, incomparable=reason)


def _in_time(
    study: Study,
    sides: Sequence[TreatmentTrials],
    asked: Sequence[tuple[InteractionQuestion, Sides]],
    incomparable: Incomparable,
) -> tuple[Interaction, ...]:
    """After whole blocks only, and of treatments that were not given up."""
    if not asked:
        return ()
    trials = sorted((trial for side in sides for trial in side.trials), key=lambda one: one.planned.order)
    data = interim.InterimData(study, trials)
    if not data.whole_blocks or data.baseline_is_given_up:
        return ()
    metrics = list(dict.fromkeys((place.workload, place.metric) for place, _ in asked))
    measured = {(each.workload, each.metric.name): each for each in data.measured(metrics)}
    questions = [
        (place, measured[place.workload, place.metric.name])
        for place, four in asked
        if data.given_up.isdisjoint(side.treatment.key for side in four)
        and not _incomparable(place, four, incomparable)
    ]
    over = data.blocks_wanted(metrics) is None
    return timed_interactions(questions, interim.design_of(study), final=over)


def _labels(four: Sides) -> FactorialCells:
    return FactorialCells(*(side.treatment.label for side in four))


def _incomparable(place: InteractionQuestion, four: Sides, incomparable: Incomparable) -> str:
    modes = [
        sample.mode for side in four for sample in side.samples(place.workload, place.metric.name).values()
    ]
    reasons = (incomparable[side.treatment.key] for side in four[1:])
    return mode_difference(modes) or next((reason for reason in reasons if reason), "")


def _mode(four: Sides, label: str, metric: Metric) -> Mode:
    """Of the first number that there is; before there is one it does not matter."""
    met = (sample.mode for side in four for sample in side.samples(label, metric.name).values())
    return next(met, Mode.EXACT_PLUGIN)
