"""hey's report (github.com/rakyll/hey, requester/print.go), and boom's before it."""

import math
import re
from collections.abc import Iterator

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import LinePatterns
from ktrial.program_outputs.reading import measured, only, the_only

_RATE = Column("requests", "1/s", Direction.HIGHER)
_LATENCY = Column("latency", "s", Direction.LOWER)
_PERCENTILES = tuple(
    Column(f"latency p{percent}", "s", Direction.LOWER) for percent in ("50", "90", "95", "99")
)
_APART = 0.001
_LINES = LinePatterns(
    measurements=(
        r"\s+(?:Total|Slowest|Fastest|Average):\s+[0-9.]+ secs\.?",
        r"\s+Requests/sec:\s+[0-9.]+",
        r"\s+\d+%+ in [0-9.]+ secs\.?",
        r"\s+\[\d+\]\s+\d+ responses",
    ),
    conditions=(r"\s+Size/request:\s+(?P<answer_size>\d+ bytes)",),
    failures=(r"Error distribution:",),
    decoration=(
        r"Summary:|Response time histogram:|(?:Latency|Status code) distribution:",
        r"Details \(average, fastest, slowest\):|\s+Total data:\s+\d+ bytes|\s+[0-9.]+ \[\d+\]\s+\|.*",
        r"\s+(?:DNS\+dialup|DNS-lookup|req write|resp wait|resp read):\s+[0-9., secs]+",
    ),
)


class Hey:
    """Requests a second, and how long they took."""

    name = "hey"
    summary = "hey URL, its report on standard output"
    columns = (_RATE, _LATENCY, *_PERCENTILES)
    remarks = (
        "the average and the percentiles that it prints, to a tenth of a millisecond; those printed as 0 are "
        "left out. A run with errors, or answers other than 2xx and 3xx, is refused"
    )
    of_groups = False
    begins = (r"^Summary:",)

    def recognises(self, text: str) -> bool:
        """Whether it has what only hey prints; oha prints a success rate besides."""
        return (
            bool(re.search(r"^[ \t]+Requests/sec:\s", text, re.MULTILINE))
            and bool(re.search(r"^[ \t]+Slowest:\s+\S+ secs", text, re.MULTILINE))
            and "Success rate:" not in text
        )

    def read(self, text: str) -> Report:
        """Rate and latencies. Raises OutputDamaged, OutputEmpty."""
        if "Error distribution:" in text:
            raise OutputEmpty(format=self.name, problem="not all requests were answered: there are errors")
        rate = measured(
            the_only(r"^[ \t]+Requests/sec:\s+(\S+)$", text, self.name), self.name, "Requests/sec"
        )
        answers, seconds = self._answers(text), self._seconds("Total", text)
        if not rate or not answers:
            raise OutputEmpty(format=self.name, problem="no request was answered")
        if not math.isclose(rate * seconds, answers, rel_tol=_APART, abs_tol=0.0001 * rate):
            problem = f"{rate:g} requests a second are not {answers:g} in {seconds:g} s"
            raise OutputDamaged(format=self.name, where="Requests/sec", problem=problem)
        values = {_RATE: rate, _LATENCY: self._seconds("Average", text), **dict(self._percentiles(text))}
        low, high = self._seconds("Fastest", text), self._seconds("Slowest", text)
        if not all(low <= values[column] <= high for column in values if column.unit == "s"):
            problem = f"a latency is outside the fastest, {low:g} s, and the slowest, {high:g} s"
            raise OutputDamaged(format=self.name, where="Latency distribution", problem=problem)
        read = (
            Measured(column.metric, (value,), column.unit, column.direction)
            for column, value in values.items()
            if value
        )
        notes = tuple(_LINES.remainder(text))
        return Report(tuple(read), notes=notes, conditions=_LINES.conditions_of(text))

    def _answers(self, text: str) -> float:
        """How many good answers there are."""
        codes = re.findall(r"^[ \t]+\[(\d+)\]\s+(\d+) responses$", text, re.MULTILINE)
        if bad := [code for code, _ in codes if not code.startswith(("2", "3"))]:
            problem = f"not all requests were answered: [{bad[0]}]"
            raise OutputEmpty(format=self.name, problem=problem)
        return sum(measured(count, self.name, f"status {code}") for code, count in codes)

    def _seconds(self, name: str, text: str) -> float:
        return measured(the_only(rf"^[ \t]+{name}:\s+(\S+) secs\.?$", text, self.name), self.name, name)

    def _percentiles(self, text: str) -> Iterator[tuple[Column, float]]:
        smallest = 0.0
        for column in _PERCENTILES:
            percent = column.metric.removeprefix("latency p")
            if printed := only(rf"^[ \t]+{percent}%+ in (\S+) secs\.?$", text, self.name):
                value = measured(printed, self.name, column.metric)
                if value < smallest:
                    raise OutputDamaged(format=self.name, where=column.metric, problem="percentiles fall")
                smallest = value
                yield column, value


FORMAT = Hey()
