"""YCSB's report (brianfrankcooper/YCSB, core, TextMeasurementsExporter): `[READ], MinLatency(us), 91`."""

import re
from collections.abc import Iterator

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import LinePatterns
from ktrial.program_outputs.reading import measured, the_only

_RATE = Column("throughput", "ops/s", Direction.HIGHER)
_OPERATIONS = ("read", "update", "insert", "scan", "delete", "read-modify-write")
_LATENCIES = ("latency", "latency p95", "latency p99", "worst latency")
_LINES_OF = {
    "latency": "AverageLatency",
    "latency p95": "95thPercentileLatency",
    "latency p99": "99thPercentileLatency",
    "worst latency": "MaxLatency",
}
_SECTION = re.compile(r"^\[([A-Z][A-Z-]*)\], Operations, (\S+)$", re.MULTILINE)
_FAILED = re.compile(r"^\[([A-Z-]+-FAILED)\], Operations, (\S+)$", re.MULTILINE)
_APART = 0.001
_LINES = LinePatterns(
    measurements=(
        r"\[OVERALL\], (?:RunTime\(ms\)|Throughput\(ops/sec\)), [0-9.E]+",
        r"\[[A-Z-]+\], Operations, \d+",
        r"\[[A-Z-]+\], (?:Average|Min|Max|[0-9.]+(?:st|nd|rd|th)Percentile)Latency\([um]s\), [0-9.ENa]+",
        r"\[[A-Z-]+\], Return=\S+, \d+",
    ),
    conditions=(r"Command line: (?P<command>.*)", r"YCSB Client (?P<version>\S+)"),
    decoration=(
        r"Loading workload\.\.\.|Starting test\.|DBWrapper: .*|mongo client connection created with .*",
        r"(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3})? ?\d+ sec: .*",
        r"\[TOTAL_GC[^\]]*\], (?:Count|Time\(.*\)), \S+",
        r"\[[A-Z-]+\], >?\d+, \d+",
    ),
)


class Ycsb:
    """Operations a second, and how long each kind of them took."""

    name = "ycsb"
    summary = "bin/ycsb run DATABASE -P WORKLOAD, its report on standard output"
    columns = (
        _RATE,
        *(
            Column(f"{operation} {latency}", "us", Direction.LOWER)
            for operation in _OPERATIONS
            for latency in _LATENCIES
        ),
    )
    remarks = (
        "the rate of all operations, and of each kind that was done the mean latency, its percentiles and "
        "the worst one; milliseconds of old versions become µs. Lines of progress, of CLEANUP and of garbage "
        "collection are not read. A run with operations that failed is refused"
    )
    of_groups = False
    begins = (r"^\[OVERALL\], RunTime\(ms\)",)

    def recognises(self, text: str) -> bool:
        """Whether it has the lines of the whole run."""
        return bool(re.search(r"^\[OVERALL\], (?:RunTime\(ms\)|Throughput\(ops/sec\)), ", text, re.MULTILINE))

    def read(self, text: str) -> Report:
        """Rate and latencies. Raises OutputDamaged, OutputEmpty."""
        if failed := _FAILED.search(text):
            raise OutputEmpty(format=self.name, problem=f"operations failed: [{failed[1]}] {failed[2]}")
        milliseconds = measured(
            the_only(r"^\[OVERALL\], RunTime\(ms\), (\S+)$", text, self.name), self.name, "RunTime"
        )
        rate = measured(
            the_only(r"^\[OVERALL\], Throughput\(ops/sec\), (\S+)$", text, self.name), self.name, "Throughput"
        )
        counts = dict(self._counts(text))
        self._check_counts(counts, rate * milliseconds / 1000)
        numbers = [Measured(_RATE.metric, (rate,), _RATE.unit, _RATE.direction)]
        for section in counts:
            numbers += self._latencies(section, text)
        return Report(
            tuple(numbers), notes=tuple(_LINES.remainder(text)), conditions=_LINES.conditions_of(text)
        )

    def _counts(self, text: str) -> Iterator[tuple[str, float]]:
        """Kind of operation → how many were done, of those that were done at all."""
        for section, count in _SECTION.findall(text):
            the_only(rf"^\[{section}\], Operations, (\S+)$", text, self.name)
            done = measured(count, self.name, f"[{section}], Operations")
            returned = re.findall(rf"^\[{section}\], Return=(\S+), (\S+)$", text, re.MULTILINE)
            if bad := [code for code, _ in returned if code not in ("OK", "0")]:
                raise OutputEmpty(format=self.name, problem=f"operations failed: [{section}] Return={bad[0]}")
            if section.lower() not in _OPERATIONS or not done:
                continue
            if returned and sum(measured(many, self.name, "Return") for _, many in returned) != done:
                problem = f"{done:g} operations, and another number that returned"
                raise OutputDamaged(format=self.name, where=f"[{section}], Return", problem=problem)
            yield section, done

    def _check_counts(self, counts: dict[str, float], done: float) -> None:
        """Reads and updates of read-modify-writes are counted besides. Raises OutputDamaged, OutputEmpty."""
        if not counts:
            raise OutputEmpty(format=self.name, problem="no operation was done")
        total = sum(counts.values())
        if "READ-MODIFY-WRITE" not in counts and abs(total - done) > _APART * done + 1:
            problem = f"{total:g} operations are not the {done:g} of its rate and its time"
            raise OutputDamaged(format=self.name, where="[OVERALL], Throughput", problem=problem)

    def _latencies(self, section: str, text: str) -> Iterator[Measured]:
        """The mean, the percentiles that are there, and the worst. Raises OutputDamaged."""
        values: dict[str, float] = {}
        smallest = self._latency(section, "MinLatency", text)
        for metric, line in _LINES_OF.items():
            values[metric] = self._latency(section, line, text)
        rising = [smallest, values["latency p95"], values["latency p99"], values["worst latency"]]
        if rising != sorted(rising) or not smallest <= values["latency"] <= values["worst latency"]:
            problem = "the mean or a percentile is outside the shortest and the longest"
            raise OutputDamaged(format=self.name, where=f"[{section}], AverageLatency", problem=problem)
        for metric, value in values.items():
            yield Measured(f"{section.lower()} {metric}", (value,), "us", Direction.LOWER)

    def _latency(self, section: str, line: str, text: str) -> float:
        """In microseconds."""
        pattern = rf"^\[{section}\], {line}\([um]s\), (\S+)$"
        value = measured(the_only(pattern, text, self.name), self.name, f"[{section}], {line}")
        in_ms = re.search(rf"^\[{section}\], {line}\(ms\)", text, re.MULTILINE)
        return value * 1000 if in_ms else value


FORMAT = Ycsb()
