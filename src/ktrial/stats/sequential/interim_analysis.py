"""A look at a study: go on, or the verdicts. `confirm` is one look at fresh blocks of a number fixed
beforehand, which is therefore not inflated.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ktrial.model.comparison import Comparison, Estimand, Verdict
from ktrial.model.warnings import DataWarning
from ktrial.stats.resolution import Rounding
from ktrial.stats.sequential.boots import BootClusters, why_withheld
from ktrial.stats.sequential.data_warnings import (
    checks,
    doubts,
    early_stopping,
    rare_trials_unseen,
    tails_disagree,
)
from ktrial.stats.sequential.design import BlockedMetric, SequentialDesign, fewest_blocks
from ktrial.stats.sequential.familywise import Finding, benjamini_hochberg, judge, repeated_p
from ktrial.stats.sequential.repeated_intervals import Blocks
from ktrial.stats.sequential.verdict_bounds import OtherTrials, other_trials, unseen
from ktrial.stats.verdict_rules import Claim, verdict_of

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Look:
    """What a study says after the blocks so far."""

    blocks: int
    next_look: int | None
    """Run until there are so many blocks, then look again; None: the study is over."""
    comparisons: tuple[Comparison, ...]
    """Every treatment against the baseline, for every metric: those of primary metrics first."""
    warnings: tuple[DataWarning, ...]

    @property
    def over(self) -> bool:
        """Whether no further block is needed."""
        return self.next_look is None


@dataclass(frozen=True)
class _Question:
    """One treatment against the baseline, for one metric."""

    measured: BlockedMetric
    treatment: str
    differences: Blocks
    unusable: str
    """Why there are no log ratios; empty where there are."""

    @cached_property
    def rounding(self) -> Rounding:
        """What the resolution of its numbers hides."""
        return self.measured.rounding(self.measured.baseline, self.treatment)

    @cached_property
    def boots(self) -> BootClusters | None:
        """In which boots its blocks ran."""
        return None if self.unusable else self.measured.boots_of(self.treatment)


def look(measured: Sequence[BlockedMetric], design: SequentialDesign, *, final: bool = False) -> Look:
    """Judge the blocks so far. Pure: the same blocks give the same answer, whatever looks came before.

    Call it whenever a block has ended; between two looks nothing is decided, and `next_look` says when the
    next one is. `final` says that no more blocks can come (the budget is spent): what is open gets a last
    look. The family of Holm's procedure is every treatment of every primary metric; exploratory ones never
    keep a study running, and are claimed only if Benjamini and Hochberg's procedure claims them too.
    """
    questions = [
        _question(blocked, treatment, design) for blocked in measured for treatment in blocked.treatments
    ]
    primary = [question for question in questions if question.measured.primary]
    exploratory = [question for question in questions if not question.measured.primary]
    blocks = max((blocked.blocks for blocked in measured), default=0)
    # With a failed trial a comparison has fewer pairs than blocks: its last look is at what there is.
    final = final or (design.last is not None and blocks >= design.last)
    findings = judge(
        [question.differences for question in primary],
        design,
        final=final,
        roundings=[question.rounding for question in primary],
        boots=[question.boots for question in primary],
    )
    undecided = any(
        finding.claim is Claim.NONE and not question.unusable
        for question, finding in zip(primary, findings, strict=True)
    )
    ahead = design.next_look(blocks) if undecided and not final else None
    comparisons = [
        _comparison(question, finding, design, over=ahead is None)
        for question, finding in zip(primary, findings, strict=True)
    ]
    comparisons += _explored(exploratory, design, final=final, over=ahead is None)
    warnings = [row for blocked in measured for row in checks(blocked, independent=design.independent)]
    if ahead is None:
        warnings += early_stopping(comparisons, findings, design)
        warnings += tails_disagree(comparisons, design)
        warnings += rare_trials_unseen(comparisons, design)
        # With one look only, the study's number of blocks is fixed, and a permutation test is valid.
        warnings += doubts(comparisons, measured, design.alpha) if design.looks_once else []
    return Look(blocks, ahead, tuple(comparisons), tuple(warnings))


def _question(measured: BlockedMetric, treatment: str, design: SequentialDesign) -> _Question:
    try:
        return _Question(measured, treatment, measured.arms(treatment, design.estimand), "")
    except ValueError as error:
        return _Question(measured, treatment, np.zeros(0), str(error))


def _explored(
    questions: list[_Question], design: SequentialDesign, *, final: bool, over: bool
) -> list[Comparison]:
    """Exploratory metrics: each judged alone, and differences that the whole lot cannot carry withdrawn."""
    adjusted = benjamini_hochberg(
        [
            repeated_p(question.differences, design, final=final, rounding=question.rounding)
            for question in questions
        ]
    )
    comparisons = []
    for question, p in zip(questions, adjusted, strict=True):
        (alone,) = judge(
            [question.differences],
            design,
            final=final,
            roundings=[question.rounding],
            boots=[question.boots],
        )
        comparison = _comparison(question, alone, design, over=over)
        if alone.claim in (Claim.ABOVE, Claim.BELOW) and p > design.alpha:
            reason = f"one of {len(questions)} exploratory metrics: adjusted for that, p is {p:.2g}"
            comparison = comparison.model_copy(update={"verdict": Verdict.INCONCLUSIVE, "reason": reason})
        comparisons.append(comparison)
    return comparisons


def _comparison(question: _Question, finding: Finding, design: SequentialDesign, *, over: bool) -> Comparison:
    measured, metric = question.measured, question.measured.metric
    usable = not question.unusable and finding.blocks > 0
    low, high = finding.ratio_interval if usable else (None, None)
    others = other_trials(measured, question.treatment, design, finding) if usable else OtherTrials()
    is_claimed = finding.claim is not Claim.NONE and not others.contradict
    return Comparison(
        workload=measured.workload,
        metric=metric.name,
        unit=metric.unit,
        direction=metric.direction,
        baseline=measured.baseline,
        treatment=question.treatment,
        baseline_value=measured.level(measured.baseline, design.estimand) if usable else None,
        value=measured.level(question.treatment, design.estimand) if usable else None,
        ratio=math.exp(finding.location) if usable and math.isfinite(finding.location) else None,
        low=low,
        high=high,
        verdict=verdict_of(finding.claim, metric.direction) if is_claimed else Verdict.INCONCLUSIVE,
        mode=measured.mode,
        reason=question.unusable
        or _few_boots(question, finding)
        or _reason(finding, others, design, over=over),
        estimand=design.estimand,
        beside=others.clause,
        blocks=finding.blocks,
        unseen=unseen(measured, question.treatment) if usable and is_claimed else None,
    )


def _few_boots(question: _Question, finding: Finding) -> str:
    boots = question.boots if finding.claim is Claim.NONE else None
    return why_withheld(boots, finding.blocks) if boots else ""


def _reason(finding: Finding, others: OtherTrials, design: SequentialDesign, *, over: bool) -> str:
    if finding.claim is not Claim.NONE:
        return "typical trials and the others contradict each other" if others.contradict else ""
    if finding.withdrawn:
        decided, blocks = finding.decided_at, finding.blocks
        held = f"after {decided} blocks a verdict was certain enough, after {blocks} it is not"
        return held if over else f"{held}: the study goes on"
    if not finding.blocks:
        return "there are no numbers yet"
    if finding.low == -math.inf and finding.high == math.inf:
        return _too_few(finding.blocks, design, over=over)
    after = f"after {finding.blocks} blocks the interval holds both 1 and more than the margin"
    return f"{after} ({design.margin * 100:.3g} %)" if over else f"{after}: the study goes on"


def _too_few(blocks: int, design: SequentialDesign, *, over: bool) -> str:
    few = f"{blocks} blocks are too few for a verdict"
    if not over:
        return f"{few}: the first look comes later"
    fewest = fewest_blocks(design.estimand)
    about = {Estimand.TOTAL: "all trials together", Estimand.TAIL: "the slowest trials"}
    if blocks < fewest and design.estimand in about:
        return f"{few} on {about[design.estimand]}: it takes {fewest}"
    return few


def confirm(measured: Sequence[BlockedMetric], design: SequentialDesign) -> Look:
    """The verdicts on all blocks at once: one look, at the end, with the whole error (a plain paired t test).

    Raises ValueError where there are fewer than three blocks.
    """
    blocks = max(blocked.blocks for blocked in measured)
    return look(measured, replace(design, looks=(blocks,), open_ended=False))
