"""STREAM's report (J. McCalpin, stream.c 5.10 and before): the memory's bandwidth in four loops."""

import math
import re
from collections.abc import Iterator

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import LinePatterns
from ktrial.program_outputs.reading import measured, only, the_only

_ARRAYS = {"copy": 2, "scale": 2, "add": 3, "triad": 3}
"""Arrays that each loop reads and writes, of so many bytes each."""
_APART = 0.002
"""Times are printed to a microsecond, and rates to a tenth."""
_LINES = LinePatterns(
    measurements=(r"(?:Copy|Scale|Add|Triad):(?:\s+[0-9.]+){4}",),
    conditions=(
        r"STREAM version \$Revision: (?P<version>\S+) \$",
        r"This system uses (?P<bytes_of_an_element>\d+) bytes per (?:array element|DOUBLE PRECISION word)\.",
        r"Array size = (?P<elements>\d+)(?: \(elements\))?, Offset = \d+(?: \(elements\))?",
        r"Each (?:kernel|test) (?:will be executed|is run) (?P<repetitions>\d+) times(?:\.|, but only)",
        r"Number of Threads requested = \d+",
        r"Number of Threads counted = (?P<threads>\d+)",
    ),
    failures=(r"Failed Validation on array.*",),
    decoration=(
        r"-+|(?:Memory per array|Total memory required) = .*",
        r" ?The \*best\* time for each (?:kernel|test).*| ?will be used to compute the reported bandwidth\.",
        r"the \*best\* time for each is used\.|Your clock granularity.*|Each test below will take.*",
        r"\s*\(= \d+ clock ticks\)|Increase the size of the arrays if this shows that",
        r"you are not getting at least 20 clock ticks per test\.|WARNING -- The above is only a rough.*",
        r"For best results, please be sure you know the|precision of your system timer\.",
        r"Function\s+(?:Best )?Rate \(?MB/s\)?\s+Avg time\s+Min time\s+Max time",
        r"Solution Validates.*",
    ),
)


class StreamReport:
    """The best rate of each loop."""

    name = "stream"
    summary = "stream (STREAM), its report on standard output"
    columns = tuple(Column(f"{loop} throughput", "MB/s", Direction.HIGHER) for loop in _ARRAYS)
    remarks = (
        "the best rate of each loop, in 10^6 bytes a second: one value, however often the loop ran. A rate "
        "that is not its shortest time's, and a run whose solution does not validate, are refused"
    )
    of_groups = False
    begins = (r"^STREAM version ",)

    def recognises(self, text: str) -> bool:
        """Whether it has the table's heading and its last row."""
        return bool(re.search(r"^Function\s+(?:Best )?Rate \(?MB/s", text, re.MULTILINE))

    def read(self, text: str) -> Report:
        """Four rates. Raises OutputDamaged, OutputEmpty."""
        if failure := _LINES.failure_of(text):
            raise OutputEmpty(format=self.name, problem=failure)
        the_only(r"^(Solution Validates)", text, self.name)
        elements = only(r"^Array size = (\d+)", text, self.name)
        width = only(r"^This system uses (\d+) bytes per ", text, self.name)
        size = int(elements) * int(width) if elements and width else 0
        return Report(
            tuple(self._rates(text, size)),
            notes=tuple(_LINES.remainder(text)),
            conditions=_LINES.conditions_of(text),
        )

    def _rates(self, text: str, size: int) -> Iterator[Measured]:
        """`size`: bytes of an array; 0 where it is not told."""
        for loop, arrays in _ARRAYS.items():
            name = loop.capitalize()
            row = the_only(rf"^{name}:\s+(\S+\s+\S+\s+\S+\s+\S+)$", text, self.name)
            rate, mean, shortest, longest = (measured(cell, self.name, name) for cell in row.split())
            if not rate or not shortest <= mean <= longest:
                problem = f"a mean of {mean:g} s is not between {shortest:g} and {longest:g} s"
                raise OutputDamaged(format=self.name, where=name, problem=problem)
            of_time = arrays * size / 1e6 / shortest if shortest else 0
            if of_time and not math.isclose(rate, of_time, rel_tol=_APART + 1e-6 / shortest):
                problem = f"{rate:g} MB/s are not {arrays} arrays in {shortest:g} s"
                raise OutputDamaged(format=self.name, where=name, problem=problem)
            yield Measured(f"{loop} throughput", (rate,), "MB/s", Direction.HIGHER)


FORMAT = StreamReport()
