"""The releases of a distribution between two of them: what is searched by `ktrial bisect versions`."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ktrial.bisect.bisection import Confirmed, confirm
from ktrial.bisect.decision import Answer, BisectionMetric, ExactJudge, LimitReached, Memory, Terms, share
from ktrial.bisect.measurement import Laboratory, Setup, TrialOracle, found_target, judges_between, unresolved
from ktrial.errors import Interrupted
from ktrial.experiment.single_kernel import Runs
from ktrial.model.bisection import (
    INTERRUPTED,
    BisectResult,
    FoundCause,
    FoundItem,
    FoundMember,
    FoundTarget,
)
from ktrial.model.kernel import Kernel


@dataclass(frozen=True)
class VersionChange:
    """The numbers differ between two places that follow each other, apart from unresolved ones between."""

    before: int
    after: int
    target: BisectionMetric


@dataclass
class ChainSearch:
    """What a search of a series has found so far."""

    last: int
    judge: ExactJudge[int]
    changes: list[VersionChange] = field(default_factory=list)
    gradual: list[tuple[int, int]] = field(default_factory=list)
    """Stretches that differ from end to end, with no step beyond the margin where half of it is passed."""
    stopped: str = ""

    def run(self) -> None:
        """Search the whole series."""
        try:
            self._between(0, self.last)
        except LimitReached:
            self.stopped = "as many candidates were measured as may be"
        self.changes.sort(key=lambda change: change.before)

    def stretches_left(self, measured: Collection[int]) -> list[tuple[int, int]]:
        """Measured places that differ, where it ended before those between them were measured."""
        values = [place for place in sorted(measured) if self.judge.value(place) is not None]
        searched = {(change.before, change.after) for change in self.changes} | set(self.gradual)
        return [
            (before, after)
            for before, after in pairwise(values)
            if (before, after) not in searched
            and not set(range(before + 1, after)) <= set(measured)
            and self.judge.differ(before, after) is Answer.YES
        ]

    def _between(self, start: int, end: int) -> None:
        if start >= end or self.judge.differ(start, end) is not Answer.YES:
            return
        before, after = self._passed(start, end)
        if self.judge.differ(before, after) is Answer.YES:
            self.changes.append(VersionChange(before, after, self.judge.target))
        else:
            self.gradual.append((start, end))
        if (before, after) != (start, end):
            self._between(start, before)
            self._between(after, end)

    def _passed(self, start: int, end: int) -> tuple[int, int]:
        """Two resolved neighbours, the second of which shows what differs from start to end."""
        before, after = start, end
        while place := self._asked_between(before, after, start, end):
            middle, shows = place
            before, after = (before, middle) if shows else (middle, after)
        return before, after

    def _asked_between(self, before: int, after: int, start: int, end: int) -> tuple[int, bool] | None:
        """The middle, or the resolved place nearest to it, and whether it shows; None where there is none."""
        middle = (before + after) // 2
        for place in sorted(range(before + 1, after), key=lambda place: abs(place - middle)):
            answer = self.judge.shows(place, start, end)
            if answer is not Answer.UNRESOLVED:
                return place, answer is Answer.YES
        return None


_SERIES = re.compile(r"debian:(\d+\.\d+)\.")
_DISTRIBUTION = re.compile(r"\+deb(\d+)")


def step_caution(before: str, after: str) -> str:
    """What a step between two neighbouring releases holds beside one stable update; empty where nothing is.

    No release of the series between two others is on the mirrors: `debian:6.1.0-56-…`, `debian:6.12.43+…`.
    """
    series = [_SERIES.match(name) for name in (before, after)]
    first, second = [match[1] if match else "" for match in series]
    if first and second and first != second:
        return (
            f"the mirrors have nothing between {before} and {after}: a change there stands for all commits "
            f"from {first} to {second}"
        )
    suites = [match[1] if (match := _DISTRIBUTION.search(name)) else "" for name in (before, after)]
    if all(suites) and suites[0] != suites[1]:
        return (
            f"{before} and {after} are built by the compilers of Debian {suites[0]} and {suites[1]}: "
            "a change there may be the compiler's"
        )
    return ""


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
class VersionBisection:
    """Searches the releases for those between which the numbers change."""

    ground: ReleaseGround
    terms: Terms
    runs: Runs
    on_interruption: Callable[[BisectResult], None] = field(default=lambda _result: None)
    """Is told what is known where the search is interrupted."""

    def run(self) -> BisectResult:
        """Measure both ends, search, confirm. Raises BisectError, and what trials raise."""
        last = len(self.ground.releases) - 1
        oracle: TrialOracle[int] = TrialOracle(
            self.ground, Laboratory(self.terms.measurement, self.runs), self.terms.tell
        )
        memory: Memory[int] = Memory(oracle, self.terms.limit)
        judges = judges_between(oracle, memory, self.terms, (0, last))
        searches = [ChainSearch(last, judge) for judge in judges]
        try:
            for search in searches:
                search.run()
            return self._result(searches, memory, oracle, self._confirmed(searches))
        except (KeyboardInterrupt, Interrupted):
            memory.limit = len(memory.numbers)  # what is told rests on what has been measured
            searches[0].stopped = INTERRUPTED
            self.on_interruption(self._result(searches, memory, oracle, Confirmed()))
            raise

    def _result(
        self,
        searches: Sequence[ChainSearch],
        memory: Memory[int],
        oracle: TrialOracle[int],
        confirmed: Confirmed,
    ) -> BisectResult:
        last = len(self.ground.releases) - 1
        return BisectResult(
            kind=self.terms.kind,
            before=self.terms.before,
            after=self.terms.after,
            margin=self.terms.margin,
            differing=last + 1,
            groups=last + 1,
            targets=tuple(_target(search) for search in searches),
            causes=self._causes(searches),
            measured=len(memory.numbers),
            builds=len(oracle.setups),
            unresolved=unresolved(self.ground, oracle.problems),
            notes=tuple(self._notes(searches, memory.numbers)),
            stopped=next((search.stopped for search in searches if search.stopped), ""),
            study=confirmed.study,
            treatment=confirmed.treatment,
            explanations=confirmed.explanations,
        )

    def _causes(self, searches: Sequence[ChainSearch]) -> tuple[FoundCause, ...]:
        """Each step once, with what it does to every target."""
        steps: dict[tuple[int, int], VersionChange] = {}
        for search in searches:
            for change in search.changes:
                steps.setdefault((change.before, change.after), change)
        return tuple(self._cause(steps[step], searches) for step in sorted(steps))

    def _cause(self, change: VersionChange, searches: Sequence[ChainSearch]) -> FoundCause:
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

    def _notes(self, searches: Sequence[ChainSearch], measured: Collection[int]) -> list[str]:
        notes = []
        for change in (change for search in searches for change in search.changes):
            caution = step_caution(self.ground.releases[change.before], self.ground.releases[change.after])
            if caution and caution not in notes:
                notes.append(caution)
        for search in searches:
            for start, end in (
                search.stretches_left(measured) if any(search.stopped for search in searches) else ()
            ):
                names = f"{self.ground.releases[start]} and {self.ground.releases[end]}"
                notes.append(
                    f"{search.judge.target.label}: it changes somewhere between {names}, "
                    f"{search.judge.percent(end, start)}; where, was not measured"
                )
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
        largest = max(
            changes, key=lambda change: abs(searches[0].judge.effect(change.after, change.before) or 0.0)
        )
        self.terms.tell("confirming: the two neighbours in one study")
        places = (largest.before, largest.after)
        setups = {self.ground.releases[place]: Setup(self.ground.kernels[place]) for place in places}
        return confirm(self.terms, setups, self.runs)


def _described(kernel: Kernel) -> str:
    """Its version and packages."""
    return ", ".join(kernel.origin.packages) or kernel.origin.version or kernel.release


def _target(search: ChainSearch) -> FoundTarget:
    target, judge = search.judge.target, search.judge
    differs = judge.differ(0, search.last) is Answer.YES
    return found_target(
        target,
        (judge.value(0), judge.value(search.last)),
        differs=differs,
        explained=not differs or bool(search.changes),
    )
