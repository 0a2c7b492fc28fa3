"""Studies in real time: which blocks are needed, and what the blocks so far say.

All of it follows from the study and its stored trials: a study that was interrupted goes on as if it had not
been, and shows the same verdicts whoever looks.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from ktrial.model.design import Treatment
from ktrial.model.study import EXACT_MACHINES, Stopping, Study, Timing, treatments
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import Metric, Mode

if TYPE_CHECKING:
    from ktrial.stats.sequential.design import BlockedMetric, SequentialDesign
    from ktrial.stats.sequential.interim_analysis import Look

GIVEN_UP_AFTER = 3
"""A treatment whose first trials all failed will not do better in the sixtieth block: it gets no more."""
_FEWEST_BLOCKS = 3
_FAILED = frozenset(
    (
        Outcome.PANICKED,
        Outcome.HUNG,
        Outcome.NO_INIT,
        Outcome.NOT_A_KERNEL,
        Outcome.OUT_OF_MEMORY,
        Outcome.WORKLOAD_FAILED,
    )
)
"""Outcomes that are the treatment's, and the worst. Others are the machine's, or an invalid trial's."""
Metrics = Sequence[tuple[str, Metric]]
"""Every workload's label with each of its metrics."""


def design_of(study: Study) -> "SequentialDesign":
    """The rule by which the study stops."""
    from ktrial.stats.sequential.design import SequentialDesign  # with NumPy: a study that counts needs none

    timing = study.timing or Timing()
    # Each seed's trial starts from the same state: what neighbouring blocks have in common is chance.
    plain = SequentialDesign(
        margin=study.margin,
        alpha=timing.alpha,
        estimand=timing.estimand,
        independent=study.machine.kind in EXACT_MACHINES,
    )
    if timing.stopping is Stopping.OPEN_ENDED:
        return replace(plain, open_ended=True)
    if timing.stopping is Stopping.FIXED:
        return replace(plain, looks=(timing.blocks,))
    return plain.up_to(timing.blocks)


@dataclass(frozen=True)
class InterimData:
    """A study's trials so far, by treatment and block: gone through once, however much is asked of them."""

    study: Study
    trials: Sequence[Trial]

    @cached_property
    def treatments(self) -> tuple[Treatment, ...]:
        """The study's, the baseline first."""
        return treatments(self.study)

    @cached_property
    def given_up(self) -> frozenset[str]:
        """Keys of treatments of which no trial measured anything, in as many blocks as that takes."""
        ended: Counter[str] = Counter()
        completed: Counter[str] = Counter()
        for trial in self.trials:
            key = trial.planned.treatment.key
            ended[key] += 1
            completed[key] += trial.is_measured
        keys = (treatment.key for treatment in self.treatments)
        return frozenset(key for key in keys if ended[key] >= GIVEN_UP_AFTER and not completed[key])

    @cached_property
    def whole_blocks(self) -> int:
        """How many blocks have ended, from the first: each treatment not given up has its trial in them."""
        awaited = {treatment.key for treatment in self.treatments} - self.given_up
        if not awaited:
            return 0
        keys: dict[int, set[str]] = {}
        for trial in self.trials:
            keys.setdefault(trial.planned.block, set()).add(trial.planned.treatment.key)
        ended = (block for block in range(self.study.blocks) if not awaited <= keys.get(block, set()))
        return next(ended, self.study.blocks)

    @cached_property
    def budget_is_spent(self) -> bool:
        """Whether the trials took as long as they may."""
        budget = self.study.timing.budget_seconds if self.study.timing else 0.0
        return 0 < budget <= sum(trial.seconds for trial in self.trials)

    @property
    def baseline_is_given_up(self) -> bool:
        """Then there is nothing to compare with."""
        return self.treatments[0].key in self.given_up

    def look(self, metrics: Metrics) -> "Look":
        """What the whole blocks so far say of the treatments that were not given up, the baseline among them.

        Raises ValueError where no block has ended yet, or the baseline was given up.
        """
        from ktrial.stats.sequential.interim_analysis import look

        if not self.whole_blocks:
            raise ValueError("no block has ended yet")
        key = tuple(metrics)
        if key not in self._looks:
            last = self.whole_blocks >= self.study.blocks or self.budget_is_spent
            self._looks[key] = look(self.measured(metrics), design_of(self.study), final=last)
        return self._looks[key]

    def measured(self, metrics: Metrics) -> "list[BlockedMetric]":
        """Each metric's values in the whole blocks, of the treatments that were not given up.

        Raises ValueError where the baseline was.
        """
        from ktrial.stats.sequential.design import BlockedMetric

        named = self.study.timing.primary if self.study.timing else ()
        first_metrics = dict(reversed(self._modes))
        no_values = (math.nan,) * self.whole_blocks
        blocked = []
        for label, metric in metrics:
            by_label = self._values.get((label, metric.name), {})
            is_first = first_metrics.get(label) == metric.name and (not named or label in named)
            blocked.append(
                BlockedMetric(
                    workload=label,
                    metric=metric,
                    baseline=self.treatments[0].label,
                    values={name: tuple(by_label.get(name, no_values)) for name in self._by_block},
                    orders=self._orders,
                    failed=self._failed,
                    boots=self._boots,
                    primary=f"{label}: {metric.name}" in named or is_first,
                    mode=self._modes.get((label, metric.name), Mode.TIMED),
                )
            )
        return blocked

    def blocks_wanted(self, metrics: Metrics) -> int | None:
        """How many blocks there must be before the next look; None: the study is over."""
        _, *treated = (treatment.key for treatment in self.treatments)
        hopeless = self.baseline_is_given_up or self.given_up.issuperset(treated)
        if self.whole_blocks >= self.study.blocks or hopeless or self.budget_is_spent:
            return None
        first_look = design_of(self.study).next_look(0) or _FEWEST_BLOCKS
        if self.whole_blocks < first_look or not metrics:
            return min(first_look, self.study.blocks)
        ahead = self.look(metrics).next_look
        return None if ahead is None else min(ahead, self.study.blocks)

    @cached_property
    def _looks(self) -> "dict[tuple[tuple[str, Metric], ...], Look]":
        return {}

    @cached_property
    def _by_block(self) -> dict[str, dict[int, Trial]]:
        """Label of a treatment that was not given up → block → trial."""
        labels = {
            treatment.key: treatment.label
            for treatment in self.treatments
            if treatment.key not in self.given_up
        }
        by_block: dict[str, dict[int, Trial]] = {label: {} for label in labels.values()}
        for trial in self.trials:
            label = labels.get(trial.planned.treatment.key)
            if label is not None:
                by_block[label][trial.planned.block] = trial
        return by_block

    @cached_property
    def _failed(self) -> dict[str, tuple[bool, ...]]:
        """Empty where no trial failed."""
        blocks = range(self.whole_blocks)
        failed = {
            label: tuple(block in of_label and of_label[block].outcome in _FAILED for block in blocks)
            for label, of_label in self._by_block.items()
        }
        return failed if any(map(any, failed.values())) else {}

    @cached_property
    def _boots(self) -> dict[str, tuple[str, ...]]:
        """Empty where trials tell none: each has a machine of its own. One that failed too early to tell
        ran in the boot before."""
        boots: dict[str, tuple[str, ...]] = {}
        for label, of_label in self._by_block.items():
            told = (
                of_label[block].provenance.boot if block in of_label else ""
                for block in range(self.whole_blocks)
            )
            boots[label] = tuple(accumulate(told, lambda before, boot: boot or before))
        return boots if all(all(of_label) for of_label in boots.values()) else {}

    @cached_property
    def _orders(self) -> dict[str, tuple[int, ...]]:
        """Empty where a trial is missing: then its place in the run order means nothing."""
        blocks = range(self.whole_blocks)
        if any(block not in of_label for of_label in self._by_block.values() for block in blocks):
            return {}
        return {
            label: tuple(of_label[block].planned.order for block in blocks)
            for label, of_label in self._by_block.items()
        }

    @cached_property
    def _values(self) -> dict[tuple[str, str], dict[str, list[float]]]:
        """Workload and metric → treatment's label → one value a block, NaN where there is none."""
        values: dict[tuple[str, str], dict[str, list[float]]] = {}
        for label, of_label in self._by_block.items():
            for block in range(self.whole_blocks):
                samples = of_label[block].samples if block in of_label else ()
                # Of two samples of one name the first counts.
                for sample in reversed(samples):
                    by_label = values.setdefault((sample.workload, sample.metric), {})
                    row = by_label.setdefault(label, [])
                    row += [math.nan] * (self.whole_blocks - len(row))
                    row[block] = sample.value
        return values

    @cached_property
    def _modes(self) -> dict[tuple[str, str], Mode]:
        """Workload and metric → how its first number came about."""
        modes: dict[tuple[str, str], Mode] = {}
        for trial in self.trials:
            for sample in trial.samples:
                modes.setdefault((sample.workload, sample.metric), sample.mode)
        return modes
