"""A function by source line: what each line of it ran, and of which inlined function the line is."""

from collections import Counter

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
