"""sysbench's report before 1.0: 0.4 (`Test execution summary`) and 0.5 (`General statistics`)."""

import math
import re
from collections.abc import Iterator

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import LinePatterns
from ktrial.program_outputs.reading import measured, only, the_only
from ktrial.program_outputs.units import converted

_HIGHER, _LOWER = Direction.HIGHER, Direction.LOWER
_EVENTS = Column("events", "1/s", _HIGHER)
_LATENCY = Column("latency", "ms", _LOWER)
_RATES = (
    (Column("transactions", "1/s", _HIGHER), r"^    transactions:\s+\d+\s+\((\S+) per sec\.\)"),
    (Column("read/write requests", "1/s", _HIGHER), r"^    read/write requests:\s+\d+\s+\((\S+) per sec\.\)"),
    (Column("operations", "1/s", _HIGHER), r"^Operations performed: \d+ \(\s*(\S+) ops/sec\)"),
    (Column("throughput", "MiB/s", _HIGHER), r"^\S+ MB transferred \((\S+) MB/sec\)"),
    (Column("requests", "1/s", _HIGHER), r"^ *(\S+) Requests/sec executed"),
)
_OF_EVENTS = {"transactions", "operations", "requests"}
"""Of these each event is one."""
_PERCENTILE = r"^[ \t]+approx\.\s+(?:99|95) percentile:\s+(\S+)ms$"
_PERCENTILES = tuple(Column(f"latency p{percent}", "ms", _LOWER) for percent in ("95", "99"))
_FILES = Column("file throughput", "MiB/s", _HIGHER)
_FILE_RATE = r"^Read \S+  Written \S+  Total transferred \S+  \((\S+b)/sec\)"
_RESOLUTION_MS = 0.01
_ROUNDED = 0.02
"""Two numbers that follow from each other differ by less: the total time includes the start."""
_LINES = LinePatterns(
    measurements=(
        r"    (?:total time|total number of events|total time taken by event execution): +\S+",
        r"    (?:transactions|deadlocks|read/write requests|other operations|ignored errors|reconnects)"
        r":\s+\d+\s+\(\S+ per sec\.\)",
        r"Operations performed: +\d+ \(\s*\S+ ops/sec\)",
        r"\S+ MB transferred \(\S+ MB/sec\)",
        r"Read \S+  Written \S+  Total transferred \S+  \(\S+b/sec\)",
        r" *[0-9.]+ Requests/sec executed",
        r" +(?:min|avg|max|approx\. +\d+ percentile): +[0-9.]+ms",
    ),
    conditions=(
        r"sysbench (?P<version>\d[0-9.]*):? .*",
        r"Number of threads: (?P<threads>\d+)",
        r"(?:Maximum prime number checked in CPU test|Prime numbers limit): (?P<primes>\d+)",
        r"Memory block size: (?P<block_size>\S+)",
        r"Memory transfer size: (?P<size>\S+)",
        r"Memory operations type: (?P<operation>\S+)",
        r"Memory scope type: (?P<scope>\S+)",
        r"Block size (?P<block_size>\S+)",
        r"\d+ files, (?P<file_size>\S+) each",
        r"(?P<size>\S+) total file size",
        r"Using (?P<I_O>.+) I/O mode",
        r"Using (?P<distribution>\S+) distribution.*",
        r"Using \"(?P<begin>.+)\" for starting transactions",
        r"Doing (?P<test>.+?)\.?",
        r"Running (?P<mode>\S+) OLTP test",
        r"Read/Write ratio for combined random IO test: (?P<read_write_ratio>\S+)",
        r"Number of random requests for random IO: (?P<requests>\d+)",
        r"Extra file open flags: (?P<flags>.+)",
    ),
    failures=(r"(?:FATAL|ALERT): .*",),
    decoration=(
        r"Running the test with following options:|Threads started!|Done\.|Time limit exceeded, .*",
        r"\(last message repeated \d+ times\)|Initializ(?:ing|ed) .*|Random number generator .*|WARNING: .*",
        r"(?:OLTP test statistics|Test execution summary|General statistics|Threads fairness"
        r"| +(?:queries performed|per-request statistics|response time)):",
        r" +(?:read|write|other|total): +\d+| +(?:events|execution time) \(avg/stddev\): +.*",
        r"Operations performed: +\d+ Read, .*|Periodic FSYNC .*|Calling fsync.*|\[ *\d+s\] .*",
        r"Report intermediate .*|No DB drivers specified, .*|Skipping BEGIN/COMMIT|Using auto_inc on .*",
        r"Threads? (?:initialized|fairness).*|Using \d+ test tables|Maximum number of requests .*|setting .*",
    ),
)


class SysbenchBefore1:
    """The rates of the test that ran, and the latency of its events."""

    name = "sysbench-0"
    summary = "sysbench 0.4 or 0.5 --test=TEST run, its report on standard output"
    columns = (*(column for column, _ in _RATES), _FILES, _EVENTS, _LATENCY, *_PERCENTILES)
    remarks = (
        "as `sysbench` does for later versions; its Mb and MB are MiB. The mean latency is the time of all "
        "events by their number. A rate that the events and the total time contradict is refused"
    )
    of_groups = False
    begins = (r"^sysbench [0-9]",)

    def recognises(self, text: str) -> bool:
        """Whether it has what only sysbench before 1.0 prints."""
        begins = re.search(r"^sysbench \d\S*:\s+multi-threaded system evaluation", text, re.MULTILINE)
        return bool(begins) or "total time taken by event execution:" in text

    def read(self, text: str) -> Report:
        """Rates, then latencies. Raises OutputDamaged, OutputEmpty."""
        if failure := _LINES.failure_of(text):
            raise OutputEmpty(format=self.name, problem=failure)
        events = self._number(r"^    total number of events: +(\S+)$", text)
        seconds = self._number(r"^    total time: +(\S+?)s?$", text)
        if not events or not seconds:
            raise OutputEmpty(format=self.name, problem="there was no event")
        if "OLTP test statistics:" in text:
            the_only(r"^    (transactions):", text, self.name)
        notes: list[Note] = [*_LINES.remainder(text), *_errors(text, self.name)]
        values = dict(self._rates(text, events / seconds)) or {_EVENTS: events / seconds}
        busy = self._number(r"^    total time taken by event execution: +(\S+?)s?$", text)
        self._check_mean(text, 1000 * busy / events)
        if busy:
            values[_LATENCY] = 1000 * busy / events
        values |= self._percentile(text, notes)
        read = (
            Measured(column.metric, (value,), column.unit, column.direction)
            for column, value in values.items()
        )
        return Report(tuple(read), notes=tuple(notes), conditions=_LINES.conditions_of(text))

    def _rates(self, text: str, by_events: float) -> Iterator[tuple[Column, float]]:
        for column, pattern in _RATES:
            printed = only(pattern, text, self.name)
            if printed is None or not (value := measured(printed, self.name, column.metric)):
                continue
            if column.metric in _OF_EVENTS and not math.isclose(value, by_events, rel_tol=_ROUNDED):
                problem = f"{value:g} a second are not its events by its total time, {by_events:g}"
                raise OutputDamaged(format=self.name, where=column.metric, problem=problem)
            yield column, value
        if size := only(_FILE_RATE, text, self.name):
            number, prefix = re.sub(r"([KMGT]?)b$", r" \1", size).split(" ")
            unit = f"{prefix}iB/s" if prefix else "B/s"
            yield _FILES, converted(measured(number, self.name, _FILES.metric), unit, _FILES.unit)

    def _check_mean(self, text: str, mean: float) -> None:
        """That the printed mean, of two digits behind the point, is the one that follows."""
        printed = self._number(r"^ +avg: +(\S+)ms$", text)
        if abs(printed - mean) > _RESOLUTION_MS + _ROUNDED * mean:
            problem = f"it is {printed:g} ms, where its events give {mean:g} ms"
            raise OutputDamaged(format=self.name, where="avg", problem=problem)

    def _percentile(self, text: str, notes: list[Note]) -> dict[Column, float]:
        printed = only(_PERCENTILE, text, self.name)
        if printed is None:
            notes.append(Note("it has no percentile: the report may be cut short"))
            return {}
        value = measured(printed, self.name, "percentile")
        if not self._number(r"^ +min: +(\S+)ms$", text) <= value <= self._number(r"^ +max: +(\S+)ms$", text):
            notes.append(
                Note(f"the percentile, {printed} ms, is outside the smallest and the largest latency")
            )
        if value < _RESOLUTION_MS:
            notes.append(Note(f"the percentile is printed as {printed} ms: it is left out"))
            return {}
        percent = the_only(r"^[ \t]+approx\.\s+(\d+) percentile:", text, self.name)
        return {Column(f"latency p{percent}", "ms", _LOWER): value}

    def _number(self, pattern: str, text: str) -> float:
        return measured(the_only(pattern, text, self.name), self.name, pattern.partition(":")[0].strip(" ^+"))


def _errors(text: str, format: str) -> Iterator[Note]:
    for event in ("deadlocks", "ignored errors", "reconnects"):
        count = only(rf"^    {event}:\s+(\d+)", text, format)
        if count and int(count):
            yield Note(f"{count} {event}")


FORMAT = SysbenchBefore1()
