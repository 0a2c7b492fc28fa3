"""sysbench's report, 1.0 and later (github.com/akopytov/sysbench)."""

import re
from collections.abc import Iterator

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import LinePatterns
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
_PREPARED = re.compile(
    r"^(?:Creating files for the test|Removing test files|Creating table '|Dropping table ')", re.MULTILINE
)
_LINES = LinePatterns(
    measurements=(
        r" +(?:events per second|total time|time elapsed|total number of events): +\S+",
        r" +(?:transactions|queries|ignored errors|reconnects):\s+\d+\s+\(\S+ per sec\.\)",
        r" +(?:reads/s|writes/s|fsyncs/s|read, MiB/s|written, MiB/s): +[0-9.]+",
        r" +(?:read|write|fsync): +IOPS=[0-9.]+(?: [0-9.]+ MiB/s \([0-9.]+ MB/s\))?",
        r"Total operations: \d+ \(\s*\S+ per second\)",
        r"\S+ MiB transferred \(\S+ MiB/sec\)",
        r" +(?:min|avg|max|sum|\d+(?:st|nd|rd|th) percentile): +[0-9.]+",
    ),
    conditions=(
        r"sysbench (?P<version>\d\S*)(?: .*)?",
        r"Number of threads: (?P<threads>\d+)",
        r"Prime(?:r| )?n?u?m?b?e?r?s? limit: (?P<primes>\d+)",
        r" *[Bb]lock size: ?(?P<block_size>\S+)",
        r"Block size (?P<block_size>\S+)",
        r"  total size: (?P<size>\S+)",
        r"  operation: (?P<operation>\S+)",
        r"  scope: (?P<scope>\S+)",
        r"\d+ files, (?P<file_size>\S+) each",
        r"(?P<size>\S+) total file size",
        r"Using (?P<I_O>.+) I/O mode",
        r"Doing (?P<test>.+) test",
        r"Read/Write ratio for combined random IO test: (?P<read_write_ratio>\S+)",
        r"Extra file open flags: (?P<flags>.+)",
        r"Target transaction rate: (?P<target_rate>.+)",
    ),
    failures=(r"FATAL: .*",),
    decoration=(
        r"Running the test with following options:|Running memory speed test .*|Threads started!",
        r"Initializing (?:worker threads\.\.\.|random number generator .*)|Random number generator .*",
        r"(?:CPU speed|General statistics|Latency \(ms\)|Threads fairness|File operations|Throughput"
        r"|SQL statistics|Latency histogram .*| +queries performed):",
        r" +events(?: \(avg/stddev\): +.*|/s \(eps\): +.*)| +execution time \(avg/stddev\): +.*",
        r" +(?:read|write|other|total): +\d+",
        r"Number of IO requests: .*|Periodic FSYNC .*|Calling fsync.*|\[ \d+s \] .*|Report intermediate .*",
        r"WARNING: .*|Debug mode .*|Time limit exceeded, exiting\.\.\.|Done\.|\(last message .*",
    ),
)


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
    begins = (r"^sysbench [0-9]",)

    def recognises(self, text: str) -> bool:
        """Whether it has what only sysbench prints."""
        begins = re.search(r"^sysbench [0-9.]+(?: |$)", text, re.MULTILINE) and "Threads started!" in text
        return bool(begins) or ("Latency (ms):" in text and "Threads fairness:" in text)

    def read(self, text: str) -> Report:
        """Rates, then latencies. Raises OutputDamaged, OutputEmpty."""
        if "Latency (ms):" not in text and (first := _PREPARED.search(text)):
            line = 1 + text.count("\n", 0, first.start())
            problem = "it prepared a test or cleaned up after one, and ran none"
            raise OutputDamaged(format=self.name, where=f"line {line}", problem=problem)
        the_only(r"^(Latency \(ms\):)$", text, self.name)
        if fatal := re.search(r"^FATAL: .*", text, re.MULTILINE):
            raise OutputEmpty(format=self.name, problem=fatal[0])
        events = measured(
            the_only(r"^    total number of events: +(\S+)$", text, self.name), self.name, "events"
        )
        if not events:
            raise OutputEmpty(format=self.name, problem="there was no event")
        notes: list[Note] = [*_LINES.remainder(text), *_notes(text, self.name)]
        values = dict(self._rates(text))
        if not values:
            values = {_EVENTS: self._events(text, events)}
            if "CPU speed:" in text:
                notes.append(Note("it does not tell its events per second: they are by its total time"))
        values |= self._latencies(text, events, notes)
        read = (
            Measured(column.metric, (value,), column.unit, column.direction)
            for column, value in values.items()
        )
        return Report(tuple(read), notes=tuple(notes), conditions=_LINES.conditions_of(text))

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
        return measured(the_only(pattern, text, self.name), self.name, pattern.partition(":")[0].strip(" ^+"))

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
