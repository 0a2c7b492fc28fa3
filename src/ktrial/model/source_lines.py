"""A function by source line: what each line of it ran, and of which inlined function the line is.

Of a difference, lines of both sides stand beside each other.
"""

from collections import Counter
from fractions import Fraction

from ktrial.model.base import Model


class SourceLine(Model):
    """One line, in one place: a function that was inlined twice has its lines twice."""

    file: str
    """Below the source: `mm/memory.c`; empty where the debugging information does not say."""
    line: int
    inlined: tuple[str, ...] = ()
    """The functions that were inlined around it, the outermost first; none: it is of the function itself."""
    instructions: int


class FunctionLines(Model):
    """One function of one kernel in one workload; its lines' instructions sum to its own."""

    kernel: str
    workload: str
    function: str
    operations: int
    instructions: int
    """In the region, of the function with all that was inlined into it."""
    lines: tuple[SourceLine, ...]
    """Those with the most instructions first."""

    def per_operation(self, count: int) -> float:
        """A count of the region, per operation."""
        return count / self.operations

    @property
    def own(self) -> int:
        """Instructions of the function's own lines."""
        return sum(line.instructions for line in self.lines if not line.inlined)

    def by_inlined(self) -> tuple[tuple[str, int], ...]:
        """The functions that were inlined, each with the instructions of its own lines; the most first."""
        counts: Counter[str] = Counter()
        for line in self.lines:
            if line.inlined:
                counts[line.inlined[-1]] += line.instructions
        return tuple(sorted(counts.items(), key=lambda row: (-row[1], row[0])))


class LineSide(Model):
    """A function in one of two treatments; nothing of it ran where it has no symbols."""

    label: str
    operations: int
    instructions: int
    """Of all its lines, in the whole region."""
    in_ranking: int
    """What the ranking of functions has for it, in as many operations: the same, where the guests did it."""
    symbols: tuple[str, ...] = ()


class LinePair(Model):
    """A line of the one, and the line of the other that does the same; one of them alone where none does."""

    function: str
    """Of which the line is: the function itself, or one that was inlined into it."""
    before: SourceLine | None = None
    after: SourceLine | None = None


class FramePair(Model):
    """The lines of one function, inlined or not, on both sides; instructions of the whole region."""

    function: str
    before: int
    after: int


class InlinedElsewhere(Model):
    """A function that is part of the ranked one on one side, and a function of its own on the other."""

    function: str
    within: str
    """The treatment in which it is inlined."""
    inlined: float
    """Instructions per operation there, with those of what is inlined into it."""
    apart: str
    """The treatment in which it is a row of its own."""
    own: float
    """Instructions per operation there."""


class LineDifference(Model):
    """One row of the ranking of functions, opened: on both sides its frames sum to it, and so do its lines"""

    workload: str
    function: str
    """As the row has it: `old → new`, `a + b → a`."""
    before: LineSide
    after: LineSide
    whole: float
    """The workload's whole difference, in instructions per operation."""
    frames: tuple[FramePair, ...]
    """The largest difference first; so are the lines."""
    lines: tuple[LinePair, ...]
    elsewhere: tuple[InlinedElsewhere, ...] = ()
    same_code: bool = False
    """Both ran the same image, so that lines have the same numbers."""

    @property
    def difference(self) -> Fraction:
        """Of the function, in instructions per operation."""
        return self.more(self.before.instructions, self.after.instructions)

    def of_pair(self, pair: LinePair) -> Fraction:
        """A pair's part of it."""
        return self.more(*counts_of(pair))

    def more(self, before: int, after: int) -> Fraction:
        """By how much a count of the region grew, per operation."""
        return Fraction(after, self.after.operations) - Fraction(before, self.before.operations)


def counts_of(pair: LinePair) -> tuple[int, int]:
    """Instructions of the region on both sides; 0 where the line is on one side only."""
    before, after = (line.instructions if line else 0 for line in (pair.before, pair.after))
    return before, after
