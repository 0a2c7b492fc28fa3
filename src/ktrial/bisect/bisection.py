"""A bisection over subsets, from its two ends to its result: search, shares, confirmation."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ktrial.analysis import interim
from ktrial.analysis.attribution.decomposition import explain
from ktrial.analysis.store_queries import profile_of
from ktrial.bisect.decision import (
    MOST_BLOCKS,
    Answer,
    BisectionMetric,
    Decisions,
    ExactJudge,
    LimitReached,
    Memory,
    SequentialJudge,
    Terms,
    most_for_two,
    share,
)
from ktrial.bisect.measurement import (
    NAME,
    Ground,
    Laboratory,
    Setup,
    TrialOracle,
    end_unresolved,
    found_target,
    judges_between,
    targets_of,
    unresolved,
)
from ktrial.bisect.search import NOTHING, DeltaDebugging, Items, MinimalCause, Subset
from ktrial.errors import Interrupted
from ktrial.experiment.errors import HOST_PROBLEMS
from ktrial.experiment.single_kernel import FACTOR, Runs, kernel_factor
from ktrial.kernels.errors import KernelError
from ktrial.model.attribution import Explanation
from ktrial.model.bisection import (
    INTERRUPTED,
    BisectResult,
    FoundCause,
    FoundItem,
    FoundMember,
    FoundTarget,
    Shares,
)
from ktrial.model.design import Design, Factor, FactorKind, LevelValue, Treatment
from ktrial.model.study import Measurement, Study, StudyRecord, Timing, treatments
from ktrial.model.trial import Trial

_MOST_MEMBERS_TAKEN_APART = 4


class SubsetGround(Ground[Subset], Protocol):
    """Items, each of which can be as in A or as in B."""

    @property
    def items(self) -> Items:
        """How many there are, and which require others."""

    def described(self, item: int) -> tuple[FoundItem, ...]:
        """What an item is: one option or knob, or several that go together."""


# The last word: A, A with what was found, and B, in one study, for `ktrial explain` and `ktrial report`.


@dataclass(frozen=True)
class Confirmed:
    """What came of the study."""

    study: str = ""
    treatment: str = ""
    """What the study calls the second candidate; empty where it has no third."""
    explanations: dict[str, Explanation] = field(default_factory=dict)
    """Target's label → the first candidate against the second, by function."""


@dataclass
class ExactBisection:
    """Searches the subsets of a ground by exact numbers."""

    ground: SubsetGround
    terms: Terms
    runs: Runs
    on_interruption: Callable[[BisectResult], None] = field(default=lambda _result: None)
    """Is told what is known where the search is interrupted."""

    def __post_init__(self) -> None:
        self.oracle: TrialOracle[Subset] = TrialOracle(
            self.ground, Laboratory(self.terms.measurement, self.runs), self.terms.tell
        )
        self.memory: Memory[Subset] = Memory(self.oracle, self.terms.limit)
        self.everything = self.ground.items.everything
        self.judges: list[ExactJudge[Subset]] = []

    def run(self) -> BisectResult:
        """Measure both ends, search, confirm. Raises BisectError, and what trials raise."""
        self.judges = judges_between(self.oracle, self.memory, self.terms, (NOTHING, self.everything))
        search = DeltaDebugging(self.ground.items, self.judges)
        try:
            search.run()
            causes = [self._cause(cause) for cause in search.causes]
            return self._result(search, causes, self._confirmed(search))
        except (KeyboardInterrupt, Interrupted):
            self.memory.limit = len(self.memory.numbers)  # what is told rests on what has been measured
            search.stop(INTERRUPTED)
            self.on_interruption(
                self._result(search, [self._cause(cause) for cause in search.causes], Confirmed())
            )
            raise

    def _confirmed(self, search: DeltaDebugging) -> Confirmed:
        if not search.causes:
            return Confirmed()
        named = {"A": NOTHING, "A with the causes": search.found, "B": self.everything}
        if search.found == self.everything:
            del named["A with the causes"]
        self.terms.tell("confirming: A, A with what was found, and B in one study")
        setups = {name: self.ground.setup(subset) for name, subset in named.items()}
        return confirm(self.terms, setups, self.runs)

    def _differing(self) -> list[ExactJudge[Subset]]:
        return [judge for judge in self.judges if judge.differ(NOTHING, self.everything) is Answer.YES]

    def _cause(self, cause: MinimalCause) -> FoundCause:
        members = tuple(self._member(cause, member) for member in sorted(cause.members))
        shares = self._if_allowed(lambda: self._shares(cause.base | cause.items, cause.base))
        needed_alone = self._if_allowed(lambda: self._shares(cause.base | cause.needed, cause.base))
        effects = {
            judge.target.label: judge.effect(cause.base | cause.items, cause.base) for judge in self.judges
        }
        return FoundCause(
            members=members,
            needed=self._described(sorted(cause.needed)),
            needed_alone=needed_alone if cause.needed else {},
            target=cause.target.label,
            shares=shares,
            ratios={label: math.exp(effect) for label, effect in effects.items() if effect is not None},
        )

    def _member(self, cause: MinimalCause, member: int) -> FoundMember:
        items = self.ground.described(member)
        if not 1 < len(cause.members) <= _MOST_MEMBERS_TAKEN_APART:
            return FoundMember(items=items)
        closed = self.ground.items.closed
        only = closed(cause.base | {member})
        rest_of_cause = closed(cause.base | (cause.members - {member}))
        return FoundMember(
            items=items,
            alone=self._if_allowed(lambda: self._shares(only, cause.base)),
            without=self._if_allowed(lambda: self._shares(rest_of_cause, cause.base)),
        )

    def _if_allowed(self, shares: Callable[[], Shares]) -> Shares:
        """Shares that take more measurements, where there may be more."""
        try:
            return shares()
        except LimitReached:
            return {}

    def _shares(self, candidate: Subset, base: Subset) -> Shares:
        """What the candidate adds to the base, of the whole difference; by target."""
        shares = {}
        for judge in self._differing():
            values = [judge.value(place) for place in (NOTHING, base, candidate, self.everything)]
            if None not in values:
                shares[judge.target.label] = share(*(float(value or 0.0) for value in values))
        return shares

    def _described(self, items: Sequence[int]) -> tuple[FoundItem, ...]:
        return tuple(described for item in items for described in self.ground.described(item))

    def _target(self, judge: ExactJudge[Subset], search: DeltaDebugging) -> FoundTarget:
        return found_target(
            judge.target,
            (judge.value(NOTHING), judge.value(self.everything)),
            differs=judge in self._differing(),
            explained=judge.target not in search.unexplained,
            reached=judge.value(search.found) if search.causes else None,
        )

    def _result(
        self, search: DeltaDebugging, causes: Sequence[FoundCause], confirmed: Confirmed
    ) -> BisectResult:
        items = self.ground.items
        digests = {setup.kernel.digest for setup in self.oracle.setups.values()}
        return BisectResult(
            kind=self.terms.kind,
            before=self.terms.before,
            after=self.terms.after,
            margin=self.terms.margin,
            differing=len(self._described(range(items.count))),
            groups=items.count,
            targets=tuple(self._target(judge, search) for judge in self.judges),
            causes=tuple(causes),
            alternatives=tuple(self._cause(cause) for cause in search.alternatives),
            measured=len(self.memory.numbers),
            built=getattr(self.ground, "compiled", 0),
            builds=len(digests),
            unresolved=unresolved(self.ground, self.oracle.problems),
            notes=tuple(getattr(self.ground, "notes", ())),
            stopped=search.stopped,
            study=confirmed.study,
            treatment=confirmed.treatment,
            explanations=confirmed.explanations,
        )


def confirm(terms: Terms, setups: Mapping[str, Setup], runs: Runs) -> Confirmed:
    """Measure the candidates in one study; the first is its baseline. Raises what `session.run` raises."""
    study = study_of(f"bisect-{terms.kind}", setups, terms.measurement, terms.margin)
    kernels = {setup.kernel.name: setup.kernel for setup in setups.values()}
    record = runs.run(study, kernels, any_settings=True)
    before, after = tuple(setups)[:2]
    explanations = {}
    for target in targets_of(record, terms.metrics):
        profiles = [
            profile_of(runs.store, record, treatment, target.workload)
            for treatment in treatments(record.study)[:2]
        ]
        old, new, *_ = (*profiles, None)
        if old and new:  # else the trials were not counted by function
            why = explain(old, new)
            # Two settings of one kernel have one boot's label.
            sides = {
                "before": why.before.model_copy(update={"label": before}),
                "after": why.after.model_copy(update={"label": after}),
            }
            explanations[target.label] = why.model_copy(update=sides)
    labels = [treatment.label for treatment in treatments(record.study)]
    return Confirmed(study.name, labels[1] if len(labels) > 2 else "", explanations)


def study_of(
    name: str, setups: Mapping[str, Setup], measurement: Measurement, margin: float, made_by: str = ""
) -> Study:
    """A study whose treatments are the candidates: kernels, or settings of one kernel.

    `made_by`: the command whose own it is; that which confirms the result is the user's.
    """
    rows = [levels_of(setup) for setup in setups.values()]
    factors = [factor for key in rows[0] if (factor := _factor(key, [row[key] for row in rows])) is not None]
    kernel = "" if any(factor.kind is FactorKind.KERNEL for factor in factors) else str(rows[0][FACTOR])
    names = [factor.name for factor in factors]
    contents = ", ".join(f"{label} {setup.kernel.digest[:12]}" for label, setup in setups.items())
    return Study(
        name=name,
        question=f"Does what was found explain the difference? The kernels' contents: {contents}.",
        machine=measurement.settings.model_copy(update={"kernel": kernel}),
        factors=tuple(factors),
        workloads=measurement.workloads,
        perturbations=measurement.perturbations,
        margin=margin,
        design=Design.LISTED,
        listed=tuple({name: row[name] for name in names} for row in rows[1:]),
        made_by=made_by,
    )


def levels_of(setup: Setup) -> dict[str, LevelValue]:
    """What a study of such candidates calls its levels, by factor."""
    return {FACTOR: setup.kernel.name, **setup.settings}


def _factor(name: str, values: list[LevelValue]) -> Factor | None:
    """None for a kernel that is the same in all candidates."""
    levels = tuple(dict.fromkeys(values))
    if name == FACTOR:
        return kernel_factor(*map(str, levels)) if len(levels) > 1 else None
    return Factor(name=name, kind=FactorKind.SETTING, levels=levels, baseline=values[0], target=name)


# A bisection over subsets in real time: blocks of trials for each question, from both ends to the result.

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
    questions: dict[tuple[Subset, ...], tuple[Study, StudyRecord]] = field(default_factory=dict)
    counts: dict[tuple[Subset, ...], int] = field(default_factory=dict)
    """Blocks of each question that are known: what is told after an interruption asks for these alone."""

    def blocks(self, candidates: tuple[Subset, ...], count: int) -> Mapping[BisectionMetric, Array] | None:
        """See Blocks. Raises what says nothing about a candidate."""
        for candidate in candidates:
            if not self._has(candidate):
                return None
        if self.counts.get(candidates, 0) < count:
            setups = {str(at): self.setups[candidate] for at, candidate in enumerate(candidates)}
            study = study_of(NAME, setups, self.terms.measurement, self.terms.margin, NAME)
            study = study.model_copy(update={"timing": Timing(blocks=MOST_BLOCKS, alpha=self.terms.alpha)})
            if candidates not in self.questions:
                labels = ", ".join(self.ground.label(candidate) for candidate in candidates)
                self.terms.tell(f"question {len(self.questions) + 1}: {labels}")
            kernels = {setup.kernel.name: setup.kernel for setup in self.setups.values()}
            record = self.runs.run(study, kernels, until=count, retry_failed=False, any_settings=True)
            self.questions[candidates] = study, record
            self.counts[candidates] = count
        study, record = self.questions[candidates]
        if given_up := interim.InterimData(study, record.trials).given_up:
            lost = [
                candidate for candidate in candidates if self._treatment(study, candidate).key in given_up
            ]
            self.problems.update(dict.fromkeys(lost, "none of its first trials completed"))
            return None
        return {
            target: np.array(
                [self._values(study, record, candidate, target, count) for candidate in candidates]
            )
            for target in targets_of(record, self.terms.metrics)
        }

    def targets(self) -> tuple[BisectionMetric, ...]:
        """What the two ends measure. Raises BisectError where one of them cannot be measured."""
        ends = (NOTHING, self.ground.items.everything)
        if self.blocks(ends, _FIRST_LOOK) is None:
            wrong = next(end for end in ends if end in self.problems)
            raise end_unresolved(self.ground.label(wrong), self.problems[wrong])
        return targets_of(self.questions[ends][1], self.terms.metrics)

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

    def _treatment(self, study: Study, candidate: Subset) -> Treatment:
        levels = levels_of(self.setups[candidate])
        return Treatment(levels={factor.name: levels[factor.name] for factor in study.factors})

    def _values(
        self, study: Study, record: StudyRecord, candidate: Subset, target: BisectionMetric, count: int
    ) -> list[float]:
        key = self._treatment(study, candidate).key
        trials = {trial.planned.block: trial for trial in record.trials if trial.planned.treatment.key == key}
        return [_value(trials.get(block), target) for block in range(count)]


def _value(trial: Trial | None, target: BisectionMetric) -> float:
    values = [
        candidate.value
        for candidate in (trial.samples if trial else ())
        if (candidate.workload, candidate.metric) == (target.workload, target.metric.name)
    ]
    return values[0] if values and values[0] > 0 else math.nan


@dataclass
class SequentialBisection:
    """Searches the subsets of a ground by tests on blocks of trials."""

    ground: SubsetGround
    terms: Terms
    runs: Runs
    on_interruption: Callable[[BisectResult], None] = field(default=lambda _result: None)
    """Is told what is known where the search is interrupted."""

    def __post_init__(self) -> None:
        self.source = TrialBlocks(self.ground, self.terms, self.runs)
        # Beyond A, B and what is left, a pair is what the error is shared for.
        most = self.terms.limit or most_for_two(self.ground.items.count) + 2
        self.decisions = Decisions(most, self.terms.alpha)
        self.everything = self.ground.items.everything

    def run(self) -> BisectResult:
        """Test both ends, search. Raises BisectError, and what trials raise."""
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
            self.on_interruption(self._result(search, judges, notes))
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
        total = self._effects(judges, self.everything, NOTHING)
        added = self._effects(judges, cause.base | cause.items, cause.base)
        described = self.ground.described
        return FoundCause(
            members=tuple(FoundMember(items=described(member)) for member in sorted(cause.members)),
            needed=tuple(item for candidate in sorted(cause.needed) for item in described(candidate)),
            target=cause.target.label,
            shares={label: effect / total[label] for label, effect in added.items() if total.get(label)},
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
        return found_target(
            target,
            (before, before * math.exp(effect) if effect is not None else None),
            reached=before * math.exp(reached) if reached is not None else None,
            differs=judge.differ(NOTHING, self.everything) is Answer.YES,
            explained=target not in search.unexplained,
        )

    def _result(
        self, search: DeltaDebugging, judges: Sequence[SequentialJudge[Subset]], notes: Sequence[str]
    ) -> BisectResult:
        items = self.ground.items
        left = [f"{candidate.label}: whether more is left was not decided" for candidate in search.undecided]
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
            measured=len({candidate for candidates in self.source.questions for candidate in candidates}),
            built=getattr(self.ground, "compiled", 0),
            builds=len({setup.kernel.digest for setup in self.source.setups.values()}),
            unresolved=unresolved(self.ground, self.source.problems),
            notes=(*getattr(self.ground, "notes", ()), *notes, *left),
            stopped=search.stopped,
            error_probability=self.terms.alpha,
        )
