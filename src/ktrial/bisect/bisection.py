"""A bisection over subsets, from its two ends to its result: search, shares, confirmation."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ktrial.bisect.confirmation import Confirmed, confirm
from ktrial.bisect.ddmin import DeltaDebugging, MinimalCause
from ktrial.bisect.decision import Answer, BisectionMetric, ExactJudge, LimitReached, Memory, way
from ktrial.bisect.measurement import Ground, Laboratory, TrialOracle, in_order_of_size, targets_of
from ktrial.bisect.plan import NOTHING, Items, Subset
from ktrial.bisect.result import (
    INTERRUPTED,
    BisectResult,
    FoundCause,
    FoundItem,
    FoundMember,
    FoundTarget,
    Shares,
    Unresolved,
)
from ktrial.bisect.sequential_decision import Terms
from ktrial.errors import Interrupted
from ktrial.experiment.single_kernel import Runs

_MOST_MEMBERS_TAKEN_APART = 4


class SubsetGround(Ground[Subset], Protocol):
    """Items, each of which can be as in A or as in B."""

    @property
    def items(self) -> Items:
        """How many there are, and which require others."""

    def described(self, item: int) -> tuple[FoundItem, ...]:
        """What an item is: one option or knob, or several that go together."""


@dataclass
class Investigation:
    """Searches the subsets of a ground by exact numbers."""

    ground: SubsetGround
    terms: Terms
    runs: Runs
    so_far: Callable[[BisectResult], None] = field(default=lambda _result: None)
    """Is told what is known where the search is interrupted."""

    def __post_init__(self) -> None:
        self.oracle: TrialOracle[Subset] = TrialOracle(
            self.ground, Laboratory(self.terms.how, self.runs), self.terms.tell
        )
        self.memory: Memory[Subset] = Memory(self.oracle, self.terms.limit)
        self.everything = self.ground.items.everything
        self.judges: list[ExactJudge[Subset]] = []

    def run(self) -> BisectResult:
        """Measure both ends, search, confirm. Raises EndUnresolved, and what trials raise."""
        for end in (NOTHING, self.everything):
            self.memory.measure(end)
            self.oracle.end(end)
        targets = targets_of(self.oracle.records[NOTHING], self.terms.metrics)
        judges = {target: ExactJudge(target, self.memory, self.terms.margin) for target in targets}
        effects = {target: judge.effect(self.everything, NOTHING) or 0.0 for target, judge in judges.items()}
        self.judges = [judges[target] for target in in_order_of_size(targets, effects)]
        search = DeltaDebugging(self.ground.items, self.judges)
        try:
            search.run()
            causes = [self._cause(cause) for cause in search.causes]
            return self._result(search, causes, self._confirmed(search))
        except (KeyboardInterrupt, Interrupted):
            self._tell_so_far(search)
            raise

    def _tell_so_far(self, search: DeltaDebugging) -> None:
        """What follows from the candidates that have been measured, and nothing else."""
        self.memory.limit = len(self.memory.known)
        search.stop(INTERRUPTED)
        self.so_far(self._result(search, [self._cause(cause) for cause in search.causes], Confirmed()))

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
        shares = self._asked(lambda: self._shares(cause.base | cause.items, cause.base))
        needed_alone = self._asked(lambda: self._shares(cause.base | cause.needed, cause.base))
        return FoundCause(
            members=members,
            needed=self._described(sorted(cause.needed)),
            needed_alone=needed_alone if cause.needed else {},
            target=cause.target.label,
            shares=shares,
            ratios=self._ratios(cause),
        )

    def _member(self, cause: MinimalCause, member: int) -> FoundMember:
        items = self.ground.described(member)
        if not 1 < len(cause.members) <= _MOST_MEMBERS_TAKEN_APART:
            return FoundMember(items=items)
        closed = self.ground.items.closed
        only = closed(cause.base | {member})
        others = closed(cause.base | (cause.members - {member}))
        return FoundMember(
            items=items,
            alone=self._asked(lambda: self._shares(only, cause.base)),
            without=self._asked(lambda: self._shares(others, cause.base)),
        )

    def _asked(self, shares: Callable[[], Shares]) -> Shares:
        """Shares that take more measurements, where there may be more."""
        try:
            return shares()
        except LimitReached:
            return {}

    def _shares(self, candidate: Subset, base: Subset) -> Shares:
        """What the candidate adds to the base, of the whole difference; by target."""
        shares = {}
        for judge in self._differing():
            values = [judge.value(one) for one in (NOTHING, base, candidate, self.everything)]
            if None not in values:
                start, low, high, end = (float(value or 0.0) for value in values)
                shares[judge.target.label] = way(start, high, end) - way(start, low, end)
        return shares

    def _ratios(self, cause: MinimalCause) -> dict[str, float]:
        effects = {
            judge.target.label: judge.effect(cause.base | cause.items, cause.base) for judge in self.judges
        }
        return {label: math.exp(effect) for label, effect in effects.items() if effect is not None}

    def _described(self, items: Sequence[int]) -> tuple[FoundItem, ...]:
        return tuple(one for item in items for one in self.ground.described(item))

    def _target(self, judge: ExactJudge[Subset], search: DeltaDebugging) -> FoundTarget:
        target: BisectionMetric = judge.target
        return FoundTarget(
            label=target.label,
            workload=target.workload,
            metric=target.metric.name,
            unit=target.metric.unit,
            direction=target.metric.direction,
            mode=target.mode,
            before=judge.value(NOTHING),
            after=judge.value(self.everything),
            reached=judge.value(search.found) if search.causes else None,
            differs=judge in self._differing(),
            explained=target not in search.unexplained,
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
            measured=len(self.memory.known),
            built=getattr(self.ground, "compiled", 0),
            builds=len(digests),
            unresolved=tuple(
                Unresolved(candidate=self.ground.label(one), problem=problem)
                for one, problem in self.oracle.problems.items()
            ),
            notes=tuple(getattr(self.ground, "notes", ())),
            stopped=search.stopped,
            study=confirmed.study,
            explanations=confirmed.explanations,
        )
