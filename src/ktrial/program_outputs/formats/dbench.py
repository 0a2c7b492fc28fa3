"""dbench's report, and tbench's (dbench 3 and 4, dbench.c)."""

import re

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import LinePatterns
from ktrial.program_outputs.reading import measured, only, the_only

_THROUGHPUT = Column("throughput", "MB/s", Direction.HIGHER)
_WORST = Column("worst latency", "ms", Direction.LOWER)
_LINES = LinePatterns(
    measurements=(r"Throughput [0-9.]+ MB/sec.*",),
    conditions=(
        r"dbench version (?P<version>\S+).*",
        r"Running for (?P<duration>\d+ seconds) with load '(?P<load>.*)' and .*",
        r"Throughput \S+ MB/sec(?: \(sync .*\))?\s+(?P<clients>\d+) (?:clients|procs).*",
    ),
    failures=(r".*(?:failed|Failed|ERROR|child failed).*",),
    decoration=(
        r"\d+ of \d+ processes prepared for launch\s+\d+ sec|releasing clients",
        r"\s*\d+\s+\d+\s+[0-9.]+ MB/sec\s+(?:execute|warmup|cleanup).*|\s*\d+\s+cleanup\s+\d+ sec.*",
        r"\s*\d+ clients started|\s*\d+ completed in \d+ ms|\s+Operation\s+Count\s+AvgLat\s+MaxLat|\s+-+",
        r"\s+[A-Z][A-Za-z0-9]+\s+\d+\s+[0-9.]+\s+[0-9.]+|\s*\d+\s+\d+\s+[0-9.]+ MB/sec",
    ),
)


class Dbench:
    """Throughput of all clients, and the longest that an operation took."""

    name = "dbench"
    summary = "dbench N or tbench N HOST, its report on standard output"
    columns = (_THROUGHPUT, _WORST)
    remarks = (
        "the last line, in 10^6 bytes a second; neither the progress nor the table of operations. A report "
        "that names a failure is refused"
    )
    of_groups = False
    begins = (r"^dbench version", r"^Running for ")

    def recognises(self, text: str) -> bool:
        """Whether it has dbench's last line, or its first."""
        last = re.search(r"^Throughput \S+ MB/sec .*\d+ (?:clients|procs)", text, re.MULTILINE)
        return bool(last) or text.lstrip().startswith("dbench version")

    def read(self, text: str) -> Report:
        """The last line. Raises OutputDamaged, OutputEmpty."""
        if failure := _LINES.failure_of(text):
            raise OutputEmpty(format=self.name, problem=f"it failed: {failure.strip()}")
        throughput = measured(
            the_only(r"^Throughput (\S+) MB/sec ", text, self.name), self.name, "Throughput"
        )
        if not throughput:
            raise OutputEmpty(format=self.name, problem="it moved nothing")
        values = {_THROUGHPUT: throughput}
        if worst := only(r"^Throughput .* max_latency=(\S+) ms$", text, self.name):
            values[_WORST] = measured(worst, self.name, "max_latency")
            longest = max((float(row) for row in re.findall(_OPERATION, text, re.MULTILINE)), default=0.0)
            if longest > values[_WORST] + 0.001:
                problem = f"an operation took {longest:g} ms, which is more than max_latency"
                raise OutputDamaged(format=self.name, where="MaxLat", problem=problem)
        elif "AvgLat" in text:
            raise OutputDamaged(format=self.name, where="Throughput", problem="its max_latency is not there")
        return Report(
            tuple(
                Measured(column.metric, (value,), column.unit, column.direction)
                for column, value in values.items()
            ),
            notes=tuple(_LINES.remainder(text)),
            conditions=_LINES.conditions_of(text),
            unread=("AvgLat",) if "AvgLat" in text else (),
        )


_OPERATION = r"^\s+[A-Z][A-Za-z0-9]+\s+\d+\s+[0-9.]+\s+([0-9.]+)$"
FORMAT = Dbench()
