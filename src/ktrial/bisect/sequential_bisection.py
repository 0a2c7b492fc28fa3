"""A bisection over subsets in real time: blocks of trials for each question, from both ends to the result."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ktrial.analysis import interim
from ktrial.bisect.bisection import SubsetGround
from ktrial.bisect.confirmation import levels_of, study_of
from ktrial.bisect.ddmin import DeltaDebugging, MinimalCause
from ktrial.bisect.decision import Answer, BisectionMetric
from ktrial.bisect.errors import EndUnresolved
from ktrial.bisect.measurement import Setup, targets_of
from ktrial.bisect.plan import NOTHING, Subset
from ktrial.bisect.result import INTERRUPTED, BisectResult, FoundCause, FoundMember, FoundTarget, Unresolved
from ktrial.bisect.sequential_decision import MOST_BLOCKS, Decisions, SequentialJudge, Terms, most_for_two
from ktrial.errors import Interrupted
from ktrial.experiment.host_failures import HOST_PROBLEMS
from ktrial.experiment.session import run
from ktrial.experiment.single_kernel import Runs
from ktrial.kernels import Progress
from ktrial.kernels.errors import KernelError
from ktrial.model.design import Treatment
from ktrial.model.kernel import Kernel
from ktrial.model.references import KernelRef
from ktrial.model.study import Study, Timing
from ktrial.model.study_record import StudyRecord
from ktrial.model.trial import Trial

Array = NDArray[np.float64]
_FIRST_LOOK = 6


@dataclass
class TrialBlocks:
    """Measures candidates side by side: one study for each question, which goes on where it was left."""

    ground: SubsetGround
    terms: Terms
    runs: Runs
    problems: dict[Subset, str] = field(default_factory=dict)
    setups: dict[Subset, Setup] = field(default_factory=dict)
    kept: dict[tuple[Subset, ...], tuple[Study, StudyRecord]] = field(default_factory=dict)
    counts: dict[tuple[Subset, ...], int] = field(default_factory=dict)
    """Blocks of each question that are known: what is told after an interruption asks for these alone."""

    def blocks(self, candidates: tuple[Subset, ...], count: int) -> Mapping[BisectionMetric, Array] | None:
        """See Blocks. Raises what says nothing about a candidate."""
        for one in candidates:
            if not self._has(one):
                return None
        if self.counts.get(candidates, 0) < count:
            study = self._study(candidates)
            self.kept[candidates] = study, self._run(study, candidates, count)
            self.counts[candidates] = count
        study, record = self.kept[candidates]
        if interim.given_up(study, record.trials):
            lost = [one for one in candidates if self._treatment(study, one).key in self._lost(study, record)]
            self.problems.update(dict.fromkeys(lost, "none of its first trials completed"))
            return None
        return {
            target: np.array([self._values(study, record, one, target, count) for one in candidates])
            for target in targets_of(record, self.terms.metrics)
        }

    def targets(self) -> tuple[BisectionMetric, ...]:
        """What the two ends measure. Raises EndUnresolved where one of them cannot be measured."""
        ends = (NOTHING, self.ground.items.everything)
        if self.blocks(ends, _FIRST_LOOK) is None:
            wrong = next(one for one in ends if one in self.problems)
            raise EndUnresolved(name=self.ground.label(wrong), problem=self.problems[wrong])
        return targets_of(self.kept[ends][1], self.terms.metrics)

    def _has(self, candidate: Subset) -> bool:
        if candidate in self.setups:
            return True
        try:
            self.setups[candidate] = self.ground.setup(candidate)
        except KernelError as error:
            if isinstance(error, HOST_PROBLEMS):
                raise
            self.problems[candidate] = error.message.rstrip(".")
            self.terms.tell(f"  unresolved: {self.problems[candidate]}")
            return False
        return True

    def _study(self, candidates: tuple[Subset, ...]) -> Study:
        setups = {str(at): self.setups[one] for at, one in enumerate(candidates)}
        study = study_of("bisect", setups, self.terms.how, self.terms.margin)
        return study.model_copy(update={"timing": Timing(blocks=MOST_BLOCKS, alpha=self.terms.alpha)})

    def _run(self, study: Study, candidates: tuple[Subset, ...], count: int) -> StudyRecord:
        labels = ", ".join(self.ground.label(one) for one in candidates)
        if candidates not in self.kept:
            self.terms.tell(f"question {len(self.kept) + 1}: {labels}")
        kernels = {setup.kernel.name: setup.kernel for setup in self.setups.values()}

        def these(kernel: KernelRef, progress: Progress) -> Kernel:
            return kernels.get(kernel.asked) or self.runs.sources.obtain(kernel, progress)

        return run(
            study,
            store=self.runs.store,
            machine=self.runs.machine,
            observer=self.runs.observer,
            sources=self.runs.sources.with_kernels(these),
            until=count,
            any_settings=True,
        )

    def _treatment(self, study: Study, candidate: Subset) -> Treatment:
        levels = levels_of(self.setups[candidate])
        return Treatment(levels={factor.name: levels[factor.name] for factor in study.factors})

    def _lost(self, study: Study, record: StudyRecord) -> frozenset[str]:
        return interim.given_up(study, record.trials)

    def _values(
        self, study: Study, record: StudyRecord, candidate: Subset, target: BisectionMetric, count: int
    ) -> list[float]:
        key = self._treatment(study, candidate).key
        own = {trial.planned.block: trial for trial in record.trials if trial.planned.treatment.key == key}
        return [_value(own.get(block), target) for block in range(count)]


def _value(trial: Trial | None, target: BisectionMetric) -> float:
    values = [
        one.value
        for one in (trial.samples if trial else ())
        if (one.workload, one.metric) == (target.workload, target.metric.name)
    ]
    return values[0] if values and values[0] > 0 else math.nan


@dataclass
class SequentialInvestigation:
    """Searches the subsets of a ground by tests on blocks of trials."""

    ground: SubsetGround
    terms: Terms
    runs: Runs
    so_far: Callable[[BisectResult], None] = field(default=lambda _result: None)
    """Is told what is known where the search is interrupted."""

    def __post_init__(self) -> None:
        self.source = TrialBlocks(self.ground, self.terms, self.runs)
        # Beyond A, B and what is left, a pair is what the error is shared for.
        most = self.terms.limit or most_for_two(self.ground.items.count) + 2
        self.decisions = Decisions(most, self.terms.alpha)
        self.everything = self.ground.items.everything

    def run(self) -> BisectResult:
        """Test both ends, search. Raises EndUnresolved, and what trials raise."""
        judges = [
            SequentialJudge(target, self.source, self.terms.margin, self.decisions, self.terms.blocks)
            for target in self.source.targets()
        ]
        notes = [note for judge in judges if (note := self._planned(judge))]
        search = DeltaDebugging(self.ground.items, judges)
        try:
            search.run()
        except (KeyboardInterrupt, Interrupted):
            self.decisions.most = self.decisions.asked  # what is told rests on what has been decided
            search.stop(INTERRUPTED)
            self.so_far(self._result(search, judges, notes))
            raise
        return self._result(search, judges, notes)

    def _planned(self, judge: SequentialJudge[Subset]) -> str:
        """Choose the blocks of a question; what must be known of that."""
        if judge.differ(NOTHING, self.everything) is not Answer.YES:
            return ""
        spread = judge.spread(NOTHING, self.everything)
        power = judge.plan_blocks(NOTHING, self.everything, spread)
        if power is None:
            return (
                f"{judge.target.label}: the noise is too large for this difference; much may stay unresolved"
            )
        return (
            f"{judge.target.label}: each question takes at most {judge.most_blocks} blocks, "
            f"and is decided with probability {power * 100:.1f} % where its answer is clear"
        )

    def _cause(self, cause: MinimalCause, judges: Sequence[SequentialJudge[Subset]]) -> FoundCause:
        whole = self._effects(judges, self.everything, NOTHING)
        added = self._effects(judges, cause.base | cause.items, cause.base)
        described = self.ground.described
        return FoundCause(
            members=tuple(FoundMember(items=described(member)) for member in sorted(cause.members)),
            needed=tuple(item for one in sorted(cause.needed) for item in described(one)),
            target=cause.target.label,
            shares={label: effect / whole[label] for label, effect in added.items() if whole.get(label)},
            ratios={label: math.exp(effect) for label, effect in added.items()},
        )

    def _effects(
        self, judges: Sequence[SequentialJudge[Subset]], candidate: Subset, base: Subset
    ) -> dict[str, float]:
        effects = {judge.target.label: judge.effect(candidate, base) for judge in judges}
        return {label: effect for label, effect in effects.items() if effect is not None}

    def _target(self, judge: SequentialJudge[Subset], search: DeltaDebugging) -> FoundTarget:
        target = judge.target
        blocks = self.source.blocks((NOTHING, self.everything), _FIRST_LOOK)
        values = blocks[target] if blocks else np.full((2, 1), math.nan)
        before = math.exp(float(np.nanmean(np.log(values[0]))))
        effect = judge.effect(self.everything, NOTHING)
        reached = judge.effect(search.found, NOTHING) if search.causes else None
        return FoundTarget(
            label=target.label,
            workload=target.workload,
            metric=target.metric.name,
            unit=target.metric.unit,
            direction=target.metric.direction,
            mode=target.mode,
            before=before,
            after=before * math.exp(effect) if effect is not None else None,
            reached=before * math.exp(reached) if reached is not None else None,
            differs=judge.differ(NOTHING, self.everything) is Answer.YES,
            explained=target not in search.unexplained,
        )

    def _result(
        self, search: DeltaDebugging, judges: Sequence[SequentialJudge[Subset]], notes: Sequence[str]
    ) -> BisectResult:
        items = self.ground.items
        left = [f"{one.label}: whether more is left was not decided" for one in search.undecided]
        causes = tuple(self._cause(cause, judges) for cause in search.causes)
        return BisectResult(
            kind=self.terms.kind,
            before=self.terms.before,
            after=self.terms.after,
            margin=self.terms.margin,
            differing=sum(len(self.ground.described(item)) for item in range(items.count)),
            groups=items.count,
            targets=tuple(self._target(judge, search) for judge in judges),
            causes=causes,
            alternatives=tuple(self._cause(cause, judges) for cause in search.alternatives),
            measured=len({one for asked in self.source.kept for one in asked}),
            built=getattr(self.ground, "compiled", 0),
            builds=len({setup.kernel.digest for setup in self.source.setups.values()}),
            unresolved=tuple(
                Unresolved(candidate=self.ground.label(one), problem=problem)
                for one, problem in self.source.problems.items()
            ),
            notes=(*getattr(self.ground, "notes", ()), *notes, *left),
            stopped=search.stopped,
            error_probability=self.terms.alpha,
        )
