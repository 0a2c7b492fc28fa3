"""Measurements from elsewhere, analysed: groups, tests, ratios, verdicts, audit."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ktrial.analysis.audit import audit, geometric_mean, recomputed
from ktrial.format.labels import DIRECTIONS, ESTIMANDS
from ktrial.model.comparison import Comparison, Estimand, Verdict
from ktrial.model.imported import (
    BASELINES,
    Analysis,
    Family,
    FamilyAnalysis,
    Group,
    GroupAnalysis,
    Imported,
    RecomputedScore,
)
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Direction, Metric, Mode
from ktrial.program_outputs import is_count
from ktrial.stats.constant_counts import Counted, constant_counts
from ktrial.stats.independent_groups import (
    Moments,
    games_howell,
    mean_interval,
    moments,
    one_way,
    ratio,
    sd_interval,
    unseen_share,
    welch,
)
from ktrial.stats.sequential.boundaries import FEWEST_BLOCKS
from ktrial.stats.sequential.design import BlockedMetric, SequentialDesign
from ktrial.stats.sequential.familywise import holm
from ktrial.stats.sequential.interim_analysis import Look, confirm
from ktrial.stats.verdict_rules import Claim, verdict_of

_DESIGN_FLAWS = {
    WarningKind.CONFOUND,
    WarningKind.ORDER_CONFOUNDED,
    WarningKind.REPEATS_DISAGREE,
    WarningKind.COPIED_VALUES,
}
_BY_BETTER = "by --better"
"""What is told of a column whose name says otherwise."""
_MOST_NAMED = 3
_UNKNOWN_DIRECTION = "the file does not tell which way is better: --better lower|higher"


@dataclass(frozen=True)
class AnalysisOptions:
    """What the user chose."""

    confidence: float = 0.95
    margin: float = 0.01
    baseline: str = ""
    """Label of the group that the others are compared with; empty: the default, else the first."""
    direction: Direction | None = None
    """Where the file does not tell, or tells wrongly."""
    estimand: Estimand = Estimand.TYPICAL
    """What verdicts are about."""


def analyse(files: Sequence[Imported], choices: AnalysisOptions) -> Analysis:
    """Everything about the files."""
    families = held_together(
        [_family(file.source, family, choices) for file in files for family in file.families],
        1 - choices.confidence,
    )
    findings = (*audit(files), *_overruled(files, choices.direction), *_block_warnings(files, choices))
    return Analysis(
        confidence=choices.confidence,
        margin=choices.margin,
        understood=tuple(f"{file.source}: {file.understood}" for file in files if file.understood),
        families=families,
        scores=_scores(files),
        findings=findings,
        answer=_answer(families, findings),
    )


def _overruled(files: Sequence[Imported], direction: Direction | None) -> Iterator[DataWarning]:
    """That a format knows it the other way round; of columns their names are told with the columns."""
    for file in files:
        otherwise = [
            family for family in file.families if direction and family.direction not in (None, direction)
        ]
        if not otherwise or _BY_BETTER in file.understood:
            continue
        names = list(dict.fromkeys(family.metric for family in otherwise))
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        metrics = f"{', '.join(names[:_MOST_NAMED])}{more}"
        yield DataWarning(
            kind=WarningKind.DIRECTION,
            text=f"{file.source}: --better {direction} overrules {file.format}, by which "
            f"{DIRECTIONS[otherwise[0].direction or Direction.LOWER]}: {metrics}",
            advice="--better holds for all numbers of all files: leave it out where a format knows",
        )


def _block_warnings(files: Sequence[Imported], choices: AnalysisOptions) -> list[DataWarning]:
    """What the checks of timed studies say about families in blocks.

    Not that they are few: no study can be told to run more, and the bound stands below each family.
    """
    return [
        warning
        for file in files
        for family in file.families
        if _in_blocks(family)
        for warning in _confirmed(measured_in_blocks(family), choices).warnings
        if warning.kind is not WarningKind.RARE_TRIALS_UNSEEN
    ]


def _in_blocks(family: Family) -> bool:
    return family.blocked and len(family.groups) > 1 and len(_blocks(family)) >= FEWEST_BLOCKS


def _family(source: str, family: Family, choices: AnalysisOptions) -> FamilyAnalysis:
    group_moments = [moments(group) for group in family.groups]
    scattering = [group for group in group_moments if group.testable and group.sd]
    testable = [group for group in group_moments if group.testable]
    several = len(scattering) > 1
    base = _baseline(family, choices)
    direction = choices.direction or family.direction
    return FamilyAnalysis(
        source=source,
        name=family.name,
        metric=family.metric,
        unit=family.unit,
        direction=direction,
        baseline=family.groups[base].label,
        blocked=family.blocked,
        groups=tuple(_group(group, len(scattering), choices.confidence) for group in group_moments),
        anova=one_way(testable) if scattering and len(testable) > 1 and not family.blocked else None,
        welch=welch(scattering) if several and not family.blocked else None,
        pairs=()
        if family.blocked
        else tuple(
            games_howell(group, group_moments[base], len(scattering), choices.confidence)
            for group in scattering
            if group_moments[base] in scattering and group is not group_moments[base]
        ),
        comparisons=_comparisons(family, base, direction, choices),
    )


def _baseline(family: Family, choices: AnalysisOptions) -> int:
    labels = [group.label for group in family.groups]
    if choices.baseline in labels:
        return labels.index(choices.baseline)
    return next((at for at, group in enumerate(family.groups) if group.is_default), 0)


def _group(group: Moments, groups: int, confidence: float) -> GroupAnalysis:
    plain = GroupAnalysis(
        label=group.label, runs=group.runs, runs_recovered=group.recovered, mean=group.mean, sd=group.sd
    )
    if not group.testable or not group.sd:
        return plain
    low, high = mean_interval(group, confidence)
    sd_low, sd_high = sd_interval(group, groups, confidence)
    return plain.model_copy(update={"low": low, "high": high, "sd_low": sd_low, "sd_high": sd_high})


def _comparisons(
    family: Family, base: int, direction: Direction | None, choices: AnalysisOptions
) -> tuple[Comparison, ...]:
    metric = Metric(name=family.metric, unit=family.unit, direction=direction or Direction.HIGHER)
    if _in_blocks(family):
        comparisons = _within_blocks(family, base, metric, choices)
    else:
        compared = [group for at, group in enumerate(family.groups) if at != base]
        # Bonferroni: the intervals of all comparisons of a family hold together.
        level = 1 - (1 - choices.confidence) / max(1, len(compared))
        comparisons = tuple(
            _compared(family, family.groups[base], group, metric, level, choices) for group in compared
        )
    return comparisons if direction else tuple(map(_undirected, comparisons))


def _undirected(comparison: Comparison) -> Comparison:
    """Better and worse are left open where nobody said which is which."""
    if comparison.verdict not in (Verdict.BETTER, Verdict.WORSE):
        return comparison
    way = "above" if (comparison.ratio or 1.0) > 1 else "below"
    reason = f"it lies {way} the baseline, but {_UNKNOWN_DIRECTION}"
    return comparison.model_copy(update={"verdict": Verdict.INCONCLUSIVE, "reason": reason})


def _blocks(family: Family) -> list[str]:
    return list(dict.fromkeys(run for group in family.groups for run in group.runs))


def measured_in_blocks(family: Family, baseline: str = "") -> BlockedMetric:
    """A blocked family as a timed study's numbers; the first group is the baseline where none is named."""
    blocks = _blocks(family)
    values = {
        group.label: tuple(
            dict(zip(group.runs, group.values, strict=True)).get(block, math.nan) for block in blocks
        )
        for group in family.groups
    }
    metric = Metric(name=family.metric, unit=family.unit, direction=family.direction or Direction.HIGHER)
    return BlockedMetric(family.name, metric, baseline or family.groups[0].label, values)


def _within_blocks(
    family: Family, base: int, metric: Metric, choices: AnalysisOptions
) -> tuple[Comparison, ...]:
    measured = replace(measured_in_blocks(family, family.groups[base].label), metric=metric)
    return _confirmed(measured, choices).comparisons


def _confirmed(measured: BlockedMetric, choices: AnalysisOptions) -> Look:
    design = SequentialDesign(margin=choices.margin, alpha=1 - choices.confidence, estimand=choices.estimand)
    return confirm([measured], design)


def _compared(
    family: Family, baseline: Group, group: Group, metric: Metric, level: float, choices: AnalysisOptions
) -> Comparison:
    below, above = moments(baseline).mean, moments(group).mean
    plain = Comparison(
        workload=family.name,
        metric=metric.name,
        unit=metric.unit,
        direction=metric.direction,
        baseline=baseline.label,
        treatment=group.label,
        baseline_value=below,
        value=above,
        ratio=above / below if below > 0 and above > 0 else None,
        low=None,
        high=None,
        verdict=Verdict.INCONCLUSIVE,
        mode=Mode.TIMED,
        estimand=choices.estimand if baseline.values and group.values else Estimand.TOTAL,
    )
    counted = is_count(metric.unit) and constant_counts(
        baseline.values, group.values, metric.unit, choices.margin, 1 - level
    )
    if counted:
        return _of_counts(plain, counted, baseline, group)
    try:
        estimate = ratio(baseline, group, level, choices.estimand, metric.direction)
    except ValueError as error:
        return plain.model_copy(update={"reason": str(error)})
    claim = _claim(estimate.low, estimate.high, choices.margin)
    unseen = unseen_share(baseline, group, metric.direction) if claim is not Claim.NONE else None
    reason = "" if claim is not Claim.NONE else "the interval holds both 1 and more than the margin"
    return plain.model_copy(
        update={
            "ratio": estimate.ratio,
            "low": estimate.low or None,
            "high": estimate.high if math.isfinite(estimate.high) else None,
            "verdict": verdict_of(claim, metric.direction),
            "reason": reason,
            "blocks": min(moments(side).runs or 0 for side in (baseline, group)),
            "unseen": unseen,
        }
    )


def _of_counts(plain: Comparison, counted: Counted, baseline: Group, group: Group) -> Comparison:
    """Counts that no run changed have no interval but themselves."""
    if counted.claim is Claim.NONE:
        return plain.model_copy(update={"reason": counted.sentence})
    return plain.model_copy(
        update={
            "ratio": counted.ratio,
            "low": counted.ratio,
            "high": counted.ratio,
            "verdict": verdict_of(counted.claim, plain.direction),
            "beside": counted.sentence,
            "blocks": min(len(baseline.values), len(group.values)),
        }
    )


def _claim(low: float, high: float, margin: float) -> Claim:
    """The rule of timed studies (ktrial.stats.sequential.repeated_intervals), for one interval."""
    if low >= 1 / (1 + margin) and high <= 1 + margin:
        return Claim.EQUIVALENT
    if low > 1:
        return Claim.ABOVE
    return Claim.BELOW if high < 1 else Claim.NONE


def _scores(files: Sequence[Imported]) -> tuple[RecomputedScore, ...]:
    """UnixBench's score of every run whose twelve results are all there."""
    scores = []
    for file in files:
        for group, run in dict.fromkeys((row.group, row.run) for row in file.index_rows):
            rows = {row.test: row for row in file.index_rows if (row.group, row.run) == (group, run)}
            if set(rows) == set(BASELINES) and min(row.result.value for row in rows.values()) > 0:
                score = geometric_mean(recomputed(row) for row in rows.values())
                scores.append(RecomputedScore(group=group, run=run, score=score))
    return tuple(scores)


def held_together(families: Sequence[FamilyAnalysis], alpha: float) -> tuple[FamilyAnalysis, ...]:
    """The same, with what Holm's procedure (1979) over all families' comparisons leaves of their claims.

    A comparison's p is Games and Howell's, which holds within its family; families in blocks have a rule of
    their own. One family stays as it is.
    """
    places = [
        (at, comparison.treatment, pair.p)
        for at, family in enumerate(families)
        for comparison in family.comparisons
        for pair in family.pairs
        if pair.group == comparison.treatment
    ]
    if len({at for at, _, _ in places}) < 2:
        return tuple(families)
    adjusted = dict(
        zip(
            [(at, label) for at, label, _ in places],
            holm([p for _, _, p in places]).tolist(),
            strict=True,
        )
    )
    return tuple(
        family.model_copy(
            update={
                "comparisons": tuple(
                    _adjusted(comparison, adjusted.get((at, comparison.treatment), 0.0), len(places), alpha)
                    for comparison in family.comparisons
                )
            }
        )
        for at, family in enumerate(families)
    )


def _adjusted(comparison: Comparison, p: float, comparisons: int, alpha: float) -> Comparison:
    if p <= alpha or comparison.verdict not in (Verdict.BETTER, Verdict.WORSE):
        return comparison
    reason = f"one of {comparisons} comparisons: adjusted for that (Holm), p is {p:.2g}"
    return comparison.model_copy(update={"verdict": Verdict.INCONCLUSIVE, "reason": reason})


def _answer(families: Sequence[FamilyAnalysis], findings: Sequence[DataWarning]) -> str:
    comparisons = [comparison for family in families for comparison in family.comparisons]
    counts = {
        verdict: sum(comparison.verdict is verdict for comparison in comparisons) for verdict in Verdict
    }
    in_words = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    about = {ESTIMANDS[comparison.estimand] for comparison in comparisons if comparison.estimand}
    of_trials = " and of ".join(sorted(about))
    numbers = (
        f"By the numbers alone, of {len(comparisons)} comparisons of {of_trials}: {in_words}"
        if comparisons
        else "One group only"
    )
    flaws = sorted({finding.kind.value for finding in findings if finding.kind in _DESIGN_FLAWS})
    if sum(bool(family.pairs) for family in families) > 1:
        numbers += ", after Holm's procedure over all families"
    if any(family.blocked for family in families) and not flaws:
        return f"{numbers}."
    if flaws:
        return f"{numbers}. The audit found what no test can mend: {', '.join(flaws)}."
    return f"{numbers}. The runs were not in blocks: what else differed between the groups is in them too."
