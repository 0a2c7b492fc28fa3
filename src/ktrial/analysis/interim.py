"""Studies in real time: which blocks are needed, and what the blocks so far say.

All of it follows from the study and its stored trials: a study that was interrupted goes on as if it had not
been, and shows the same verdicts whoever looks.
"""

import math
from collections.abc import Mapping, Sequence

from ktrial.model.design import Treatment
from ktrial.model.plan import treatments
from ktrial.model.study import Stopping, Study, Timing
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import Metric, Mode
from ktrial.stats.sequential import Look, Measured, SequentialDesign, look

GIVEN_UP_AFTER = 3
"""A treatment whose first trials all failed will not do better in the sixtieth block: it gets no more."""
_FEWEST_BLOCKS = 3

Metrics = Sequence[tuple[str, Metric]]
"""Every workload's label with each of its metrics."""


def design_of(study: Study) -> SequentialDesign:
    """The rule by which the study stops."""
    timing = study.timing or Timing()
    if timing.stopping is Stopping.OPEN_ENDED:
        return SequentialDesign(margin=study.margin, alpha=timing.alpha, open_ended=True)
    if timing.stopping is Stopping.FIXED:
        return SequentialDesign(margin=study.margin, alpha=timing.alpha, looks=(timing.blocks,))
    return SequentialDesign(margin=study.margin, alpha=timing.alpha).up_to(timing.blocks)


def look_at(study: Study, trials: Sequence[Trial], metrics: Metrics) -> Look:
    """What the whole blocks so far say of the treatments that were not given up, the baseline among them.

    Raises ValueError where no block has ended yet, or the baseline was given up.
    """
    blocks = whole_blocks(study, trials)
    if not blocks:
        raise ValueError("no block has ended yet")
    found = measured(study, trials, metrics)
    return look(found, design_of(study), final=_is_last(study, trials, blocks))


def measured(study: Study, trials: Sequence[Trial], metrics: Metrics) -> list[Measured]:
    """Each metric's values in the whole blocks, of the treatments that were not given up.

    Raises ValueError where the baseline was.
    """
    blocks = whole_blocks(study, trials)
    arms = tuple(arm for arm in treatments(study) if arm.key not in given_up(study, trials))
    return [_measured(study, trials, arms, label, metric, blocks) for label, metric in metrics]


def blocks_wanted(study: Study, trials: Sequence[Trial], metrics: Metrics) -> int | None:
    """How many blocks there must be before the next look; None: the study is over."""
    blocks = whole_blocks(study, trials)
    lost = given_up(study, trials)
    baseline, *others = (arm.key for arm in treatments(study))
    if blocks >= study.blocks or baseline in lost or lost.issuperset(others):
        return None
    if budget_is_spent(study, trials):
        return None
    if blocks < _first_look(study) or not metrics:
        return min(_first_look(study), study.blocks)
    found = look_at(study, trials, metrics).next_look
    return None if found is None else min(found, study.blocks)


def _first_look(study: Study) -> int:
    return design_of(study).next_look(0) or _FEWEST_BLOCKS


def whole_blocks(study: Study, trials: Sequence[Trial]) -> int:
    """How many blocks have ended, from the first: every treatment that was not given up has its trial."""
    done = {(trial.planned.block, trial.planned.treatment.key) for trial in trials}
    lost = given_up(study, trials)
    wanted = [one.key for one in treatments(study) if one.key not in lost]
    blocks = 0
    while blocks < study.blocks and _ended(blocks, done, wanted):
        blocks += 1
    return blocks


def _ended(block: int, done: set[tuple[int, str]], wanted: list[str]) -> bool:
    return bool(wanted) and all((block, key) in done for key in wanted)


def given_up(study: Study, trials: Sequence[Trial]) -> frozenset[str]:
    """Keys of treatments of which no trial completed, in as many blocks as it takes to give up."""
    lost = []
    for treatment in treatments(study):
        own = [trial for trial in trials if trial.planned.treatment.key == treatment.key]
        failed = all(trial.outcome is not Outcome.COMPLETED for trial in own)
        if failed and len(own) >= GIVEN_UP_AFTER:
            lost.append(treatment.key)
    return frozenset(lost)


def budget_is_spent(study: Study, trials: Sequence[Trial]) -> bool:
    """Whether the trials took as long as they may."""
    budget = study.timing.budget_seconds if study.timing else 0.0
    return 0 < budget <= sum(trial.seconds for trial in trials)


def _is_last(study: Study, trials: Sequence[Trial], blocks: int) -> bool:
    return blocks >= study.blocks or budget_is_spent(study, trials)


def _measured(
    study: Study,
    trials: Sequence[Trial],
    arms: Sequence[Treatment],
    label: str,
    metric: Metric,
    blocks: int,
) -> Measured:
    of_arm = {arm.label: _by_block(trials, arm) for arm in arms}
    samples = {
        name: {block: _value(trial, label, metric.name) for block, trial in by_block.items()}
        for name, by_block in of_arm.items()
    }
    return Measured(
        workload=label,
        metric=metric,
        baseline=treatments(study)[0].label,
        values={
            name: tuple(values.get(block, math.nan) for block in range(blocks))
            for name, values in samples.items()
        },
        orders=_orders(of_arm, blocks),
        primary=is_primary(study, label, metric.name, _first_metrics(trials)),
        mode=_mode(trials, label, metric.name),
    )


def _by_block(trials: Sequence[Trial], treatment: Treatment) -> dict[int, Trial]:
    return {trial.planned.block: trial for trial in trials if trial.planned.treatment.key == treatment.key}


def _orders(of_arm: Mapping[str, Mapping[int, Trial]], blocks: int) -> dict[str, tuple[int, ...]]:
    """Empty where a trial is missing: then its place in the run order means nothing."""
    if any(block not in by_block for by_block in of_arm.values() for block in range(blocks)):
        return {}
    return {
        name: tuple(by_block[block].planned.order for block in range(blocks))
        for name, by_block in of_arm.items()
    }


def _value(trial: Trial, label: str, metric: str) -> float:
    found = [one.value for one in trial.samples if (one.workload, one.metric) == (label, metric)]
    return found[0] if found else math.nan


def _mode(trials: Sequence[Trial], label: str, metric: str) -> Mode:
    modes = (
        sample.mode
        for trial in trials
        for sample in trial.samples
        if (sample.workload, sample.metric) == (label, metric)
    )
    return next(modes, Mode.TIMED)


def _first_metrics(trials: Sequence[Trial]) -> dict[str, str]:
    """A workload's label → its first metric."""
    found: dict[str, str] = {}
    for trial in trials:
        for sample in trial.samples:
            found.setdefault(sample.workload, sample.metric)
    return found


def is_primary(study: Study, label: str, metric: str, first: Mapping[str, str]) -> bool:
    """Whether the study is about this metric: `first` are the workloads' first metrics."""
    named = study.timing.primary if study.timing else ()
    is_first = first.get(label) == metric
    return f"{label}: {metric}" in named or (is_first and (not named or label in named))
