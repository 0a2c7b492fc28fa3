"""sysbench's report, 1.0 and later (github.com/akopytov/sysbench)."""

import re
from collections.abc import Iterator

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.reading import measured, only, the_only

_LATENCY = Column("latency", "ms", Direction.LOWER)
_P95 = Column("latency p95", "ms", Direction.LOWER)
_EVENTS = Column("events", "1/s", Direction.HIGHER)


def _more(metric: str, unit: str) -> Column:
    return Column(metric, unit, Direction.HIGHER)


_RATES = (
    (_more("transactions", "1/s"), r"^    transactions:\s+\d+\s+\((\S+) per sec\.\)"),
    (_more("queries", "1/s"), r"^    queries:\s+\d+\s+\((\S+) per sec\.\)"),
    (_EVENTS, r"^    events per second:\s+(\S+)$"),
    (_more("throughput", "MiB/s"), r"^\S+ MiB transferred \((\S+) MiB/sec\)"),
    (_more("operations", "1/s"), r"^Total operations: \d+ \(\s*(\S+) per second\)"),
    (_more("read rate", "1/s"), r"^ +(?:reads/s: +|read: +IOPS=)(\S+)"),
    (_more("write rate", "1/s"), r"^ +(?:writes/s: +|write: +IOPS=)(\S+)"),
    (_more("fsync rate", "1/s"), r"^ +(?:fsyncs/s: +|fsync: +IOPS=)(\S+)"),
    (_more("read throughput", "MiB/s"), r"^ +(?:read, MiB/s: +(\S+)|read: +IOPS=\S+ (\S+) MiB/s)"),
    (_more("write throughput", "MiB/s"), r"^ +(?:written, MiB/s: +(\S+)|write: +IOPS=\S+ (\S+) MiB/s)"),
)
_RESOLUTION_MS = 0.01


class Sysbench:
    """The rates of the test that ran, and the latency of its events."""

    name = "sysbench"
    summary = "sysbench TEST run, its report on standard output"
    columns = (*(column for column, _ in _RATES), _LATENCY, _P95)
    remarks = (
        "rates that the test prints, without those that are 0; where it prints none, its events by its "
        "total time. The mean latency is the sum by the number of events, which has more digits than "
        "`avg`; a percentile below the print's resolution (0.01 ms) is left out, with a warning"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether it has what only sysbench prints."""
        begins = re.search(r"^sysbench \d", text, re.MULTILINE) and "Threads started!" in text
        return bool(begins) or ("Latency (ms):" in text and "Threads fairness:" in text)

    def read(self, text: str) -> Report:
        """Rates, then latencies. Raises OutputDamaged, OutputEmpty."""
        the_only(r"^(Latency \(ms\):)$", text, self.name)
        if fatal := re.search(r"^FATAL: .*", text, re.MULTILINE):
            raise OutputEmpty(format=self.name, problem=fatal[0])
        events = measured(
            the_only(r"^    total number of events: +(\S+)$", text, self.name), self.name, "events"
        )
        if not events:
            raise OutputEmpty(format=self.name, problem="there was no event")
        values = dict(self._rates(text)) or {_EVENTS: self._events(text, events)}
        notes: list[Note] = list(_notes(text, self.name))
        values |= self._latencies(text, events, notes)
        read = (
            Measured(column.metric, (value,), column.unit, column.direction)
            for column, value in values.items()
        )
        return Report(tuple(read), notes=tuple(notes))

    def _rates(self, text: str) -> Iterator[tuple[Column, float]]:
        for column, pattern in _RATES:
            matches = [
                next(filter(None, match.groups())) for match in re.finditer(pattern, text, re.MULTILINE)
            ]
            if len(matches) > 1:
                raise OutputDamaged(
                    format=self.name, where=column.metric, problem=f"it is there {len(matches)} times"
                )
            if matches and (value := measured(matches[0], self.name, column.metric)):
                yield column, value

    def _events(self, text: str, events: float) -> float:
        seconds = measured(
            the_only(r"^    (?:total time|time elapsed): +(\S+)s$", text, self.name), self.name, "total time"
        )
        if not seconds:
            raise OutputEmpty(format=self.name, problem="its total time is 0")
        return events / seconds

    def _number(self, pattern: str, text: str) -> float:
        return measured(the_only(pattern, text, self.name), self.name, pattern.partition(":")[0].strip(" ^"))

    def _latencies(self, text: str, events: float, notes: list[Note]) -> dict[Column, float]:
        values = {}
        total = self._number(r"^ +sum: +(\S+)$", text)
        if total:
            values[_LATENCY] = total / events
        match = re.search(r"^ +(\d+)(?:st|nd|rd|th) percentile: +(\S+)$", text, re.MULTILINE)
        if match and (value := measured(match[2], self.name, "percentile")) >= _RESOLUTION_MS:
            values[Column(f"latency p{match[1]}", _P95.unit, _P95.direction)] = value
        elif match:
            notes.append(Note(f"the {match[1]}th percentile is printed as {match[2]} ms: it is left out"))
        return values


def _notes(text: str, format: str) -> Iterator[Note]:
    for event in ("ignored errors", "reconnects"):
        count = only(rf"^    {event}:\s+(\d+)", text, format)
        if count and int(count):
            yield Note(f"{count} {event}")


FORMAT = Sysbench()
