"""schbench's report, with request latencies and before it had them (schbench.c, show_latencies)."""

import re
from collections.abc import Iterator

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import LinePatterns
from ktrial.program_outputs.reading import measured, only, the_only
from ktrial.text_lines import lines_of

_TITLES = {
    "Latency percentiles": "latency",
    "Wakeup Latencies percentiles": "wake-up latency",
    "Request Latencies percentiles": "request latency",
}
_READ = ("50", "90", "99", "99.9")
_RATE = Column("requests", "1/s", Direction.HIGHER)
_TITLE = re.compile(
    r"(?P<title>(?:Latency|(?:Wakeup|Request) Latencies|RPS) percentiles) \((?:usec|requests)\)"
    r"(?: runtime (?P<runtime>\d+) \(s\)(?: \((?P<samples>\d+) total samples\))?)?"
)
_PERCENTILE = re.compile(
    r"\s*(?:\* ?)?(?P<percent>\d+\.\d+)th: (?P<value>\d+)\s*(?:\((?P<samples>\d+) samples\))?"
)
_LINES = LinePatterns(
    measurements=(
        _PERCENTILE.pattern,
        r"\s*(?:Over=\d+, )?min=\d+, max=\d+",
        r"average rps: [0-9.]+",
        r"\s*rps: [0-9.]+ p95 \(usec\) .*",
        r"current rps: [0-9.]+",
    ),
    conditions=(_TITLE.pattern.replace("(?P<title>", "(?:").replace("(?P<samples>", "(?:"),),
    decoration=(r"warmup done, zeroing stats|setting worker threads to \d+|sched delay: .*",),
)


class Schbench:
    """The last report: it prints one every ten seconds, of the whole time until then."""

    name = "schbench"
    summary = "schbench, its report on standard error: sh -c 'schbench 2>&1'"
    columns = (
        *(
            Column(f"{metric} p{percent}", "µs", Direction.LOWER)
            for metric in _TITLES.values()
            for percent in _READ
        ),
        _RATE,
    )
    remarks = (
        "percentiles of the last report, which is of the whole time, and the average of requests a second. "
        "Reports whose runtimes do not grow are refused"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether it has what only schbench prints."""
        return bool(re.search(r"^(?:\S+ )?Latenc(?:y|ies) percentiles \(usec\)", text, re.MULTILINE))

    def read(self, text: str) -> Report:
        """Percentiles, then the rate. Raises OutputDamaged, OutputEmpty."""
        last: dict[str, tuple[int, dict[str, float]]] = {}
        for title, runtime, block in _blocks(text):
            if title in last and runtime <= last[title][0]:
                problem = "it is there again, and its runtime did not grow"
                raise OutputDamaged(format=self.name, where=title, problem=problem)
            last[title] = runtime, self._percentiles(title, block)
        if "Request Latencies percentiles" in last and "Wakeup Latencies percentiles" not in last:
            raise OutputDamaged(format=self.name, where="Wakeup Latencies", problem="they are not there")
        values = {
            Column(f"{metric} p{percent}", "µs", Direction.LOWER): last[title][1][percent]
            for title, metric in _TITLES.items()
            if title in last
            for percent in _READ
            if percent in last[title][1]
        }
        if not values:
            raise OutputEmpty(format=self.name, problem="there is no percentile in it")
        if "RPS percentiles" in last:
            average = the_only(r"^average rps: (\S+)$", text, self.name)
            values[_RATE] = measured(average, self.name, "average rps")
        elif rate := only(r"^[ \t]*rps: (\S+) p95 ", text, self.name):
            values[_RATE] = measured(rate, self.name, "rps")
        read = (
            Measured(column.metric, (value,), column.unit, column.direction)
            for column, value in values.items()
        )
        return Report(tuple(read), notes=tuple(_LINES.remainder(text)), conditions=_LINES.conditions_of(text))

    def _percentiles(self, title: str, block: list[str]) -> dict[str, float]:
        """Percent → value; they grow, and lie between the smallest and the largest."""
        matches = [match for line in block if (match := _PERCENTILE.fullmatch(line.rstrip()))]
        values = {
            match["percent"].rstrip("0").rstrip("."): measured(match["value"], self.name, title)
            for match in matches
        }
        extremes = [re.fullmatch(r"\s*(?:Over=\d+, )?min=(\d+), max=(\d+)", line.rstrip()) for line in block]
        bounds = [match for match in extremes if match]
        if len(bounds) != 1 or len(values) != len(matches):
            problem = "it is cut short, or a percentile is there twice"
            raise OutputDamaged(format=self.name, where=title, problem=problem)
        if len({match["samples"] is None for match in matches}) > 1:
            raise OutputDamaged(format=self.name, where=title, problem="a percentile is cut short")
        grows = list(values.values()) == sorted(values.values())
        if not grows or [float(key) for key in values] != sorted(float(key) for key in values):
            raise OutputDamaged(format=self.name, where=title, problem="its percentiles do not grow")
        return values


def _blocks(text: str) -> Iterator[tuple[str, int, list[str]]]:
    """Each report's title, its runtime in seconds (0 where it does not tell), its lines."""
    title, runtime, block = "", 0, list[str]()
    for line in lines_of(text):
        if match := _TITLE.fullmatch(line.strip()):
            if title:
                yield title, runtime, block
            title, runtime, block = match["title"], int(match["runtime"] or 0), []
        else:
            block.append(line)
    if title:
        yield title, runtime, block


FORMAT = Schbench()
