"""Where in a series the numbers change: versions one after another, patches one upon another.

Places are numbered from 0 (A) to the last (B). Between two places that differ, binary search finds two
neighbours between which half of the difference is passed; then both sides are looked at again, as long as
their ends differ. One change: log2(n) measurements beside A and B.
"""

from dataclasses import dataclass, field

from ktrial.bisect.decision import Answer, ExactJudge, LimitReached, Target


@dataclass(frozen=True)
class Change:
    """The numbers differ between two places that follow each other, apart from unresolved ones between."""

    before: int
    after: int
    target: Target


@dataclass
class ChainSearch:
    """What a search of a series has found so far."""

    last: int
    judge: ExactJudge[int]
    changes: list[Change] = field(default_factory=list)
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

    def _between(self, start: int, end: int) -> None:
        if start >= end or self.judge.differ(start, end) is not Answer.YES:
            return
        before, after = self._passed(start, end)
        if self.judge.differ(before, after) is Answer.YES:
            self.changes.append(Change(before, after, self.judge.target))
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
        for place in sorted(range(before + 1, after), key=lambda one: abs(one - middle)):
            answer = self.judge.shows(place, start, end)
            if answer is not Answer.UNRESOLVED:
                return place, answer is Answer.YES
        return None
