"""The releases of a distribution between two of them: what is searched by `ktrial bisect versions`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ktrial.bisect.binary_search import ChainSearch, Change
from ktrial.bisect.confirmation import Confirmed, confirm
from ktrial.bisect.decision import Answer, ExactJudge, Memory, way
from ktrial.bisect.measurement import Laboratory, in_order_of_size, targets_of
from ktrial.bisect.oracles import Setup, TrialOracle
from ktrial.bisect.result import BisectResult, FoundCause, FoundItem, FoundMember, FoundTarget, Unresolved
from ktrial.bisect.settings import Terms
from ktrial.experiment.single_kernel import Runs
from ktrial.model.kernel import Kernel


@dataclass
class ReleaseGround:
    """Releases in order; a candidate is a place among them."""

    releases: Sequence[str]
    """Names of kernels."""
    kernel: Callable[[str], Kernel]
    """Fetches one. Raises KernelError."""
    kernels: dict[int, Kernel] = field(default_factory=dict)

    def setup(self, candidate: int) -> Setup:
        """See Ground."""
        self.kernels[candidate] = self.kernel(self.releases[candidate])
        return Setup(self.kernels[candidate])

    def label(self, candidate: int) -> str:
        """See Ground."""
        return self.releases[candidate]


@dataclass
class VersionInvestigation:
    """Searches the releases for those between which the numbers change."""

    ground: ReleaseGround
    terms: Terms
    runs: Runs

    def run(self) -> BisectResult:
        """Measure both ends, search, confirm. Raises EndUnresolved, and what trials raise."""
        last = len(self.ground.releases) - 1
        oracle: TrialOracle[int] = TrialOracle(
            self.ground, Laboratory(self.terms.how, self.runs), self.terms.tell
        )
        memory: Memory[int] = Memory(oracle, self.terms.limit)
        for end in (0, last):
            memory.measure(end)
            oracle.end(end)
        targets = targets_of(oracle.records[0], self.terms.metrics)
        judges = {target: ExactJudge(target, memory, self.terms.margin) for target in targets}
        effects = {target: judge.effect(last, 0) or 0.0 for target, judge in judges.items()}
        ordered = [judges[target] for target in in_order_of_size(targets, effects)]
        searches = [ChainSearch(last, judge) for judge in ordered]
        for search in searches:
            search.run()
        confirmed = self._confirmed(searches)
        return BisectResult(
            kind=self.terms.kind,
            before=self.terms.before,
            after=self.terms.after,
            margin=self.terms.margin,
            differing=last + 1,
            groups=last + 1,
            targets=tuple(_target(search) for search in searches),
            causes=self._causes(searches),
            measured=len(memory.known),
            builds=len(oracle.setups),
            unresolved=tuple(
                Unresolved(candidate=self.ground.label(one), problem=problem)
                for one, problem in oracle.problems.items()
            ),
            notes=tuple(self._notes(searches)),
            stopped=next((search.stopped for search in searches if search.stopped), ""),
            study=confirmed.study,
            explanations=confirmed.explanations,
        )

    def _causes(self, searches: Sequence[ChainSearch]) -> tuple[FoundCause, ...]:
        """Each step once, with what it does to every target."""
        steps: dict[tuple[int, int], Change] = {}
        for search in searches:
            for change in search.changes:
                steps.setdefault((change.before, change.after), change)
        return tuple(self._cause(steps[step], searches) for step in sorted(steps))

    def _cause(self, change: Change, searches: Sequence[ChainSearch]) -> FoundCause:
        shares, ratios = {}, {}
        for search in searches:
            judge, label = search.judge, search.judge.target.label
            low, high = judge.value(change.before), judge.value(change.after)
            start, end = judge.value(0), judge.value(search.last)
            if low and high and start and end:
                ratios[label] = high / low
                if judge.differ(0, search.last) is Answer.YES:
                    shares[label] = share(start, low, high, end)
        before, after = (self.ground.kernels[place] for place in (change.before, change.after))
        items = (
            FoundItem(
                name=self.ground.releases[change.after],
                before=_described(before),
                after=_described(after),
                note=f"follows {self.ground.releases[change.before]}",
            ),
        )
        return FoundCause(
            members=(FoundMember(items=items),),
            target=change.target.label,
            shares=shares,
            ratios=ratios,
        )

    def _notes(self, searches: Sequence[ChainSearch]) -> list[str]:
        notes = []
        for search in searches:
            for start, end in search.gradual:
                names = f"{self.ground.releases[start]} and {self.ground.releases[end]}"
                notes.append(
                    f"{search.judge.target.label}: between {names} it changes in steps below the margin"
                )
        return notes

    def _confirmed(self, searches: Sequence[ChainSearch]) -> Confirmed:
        """The two neighbours of the largest step in one study, for `ktrial explain` and `kernel diff`."""
        changes = [change for search in searches for change in search.changes]
        if not changes:
            return Confirmed()
        largest = max(changes, key=lambda one: abs(searches[0].judge.effect(one.after, one.before) or 0.0))
        self.terms.tell("confirming: the two neighbours in one study")
        places = (largest.before, largest.after)
        setups = {self.ground.releases[place]: Setup(self.ground.kernels[place]) for place in places}
        return confirm(self.terms, setups, self.runs)


def share(start: float, low: float, high: float, end: float) -> float:
    """How much of the way from start to end lies between low and high."""
    return way(start, high, end) - way(start, low, end)


def _described(kernel: Kernel) -> str:
    """Its version and packages."""
    return ", ".join(kernel.origin.packages) or kernel.origin.version or kernel.release


def _target(search: ChainSearch) -> FoundTarget:
    target, judge = search.judge.target, search.judge
    differs = judge.differ(0, search.last) is Answer.YES
    return FoundTarget(
        label=target.label,
        workload=target.workload,
        metric=target.metric.name,
        unit=target.metric.unit,
        direction=target.metric.direction,
        mode=target.mode,
        before=judge.value(0),
        after=judge.value(search.last),
        reached=None,
        differs=differs,
        explained=not differs or bool(search.changes),
    )
