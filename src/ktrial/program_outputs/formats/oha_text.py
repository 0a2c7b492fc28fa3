"""oha's report for people (github.com/hatoo/oha, src/printer.rs)."""

import math
import re
from collections.abc import Iterator

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import LinePatterns
from ktrial.program_outputs.reading import measured, only, the_only

_RATE = Column("requests", "1/s", Direction.HIGHER)
_LATENCY = Column("latency", "s", Direction.LOWER)
_PERCENTILES = {
    percent: Column(f"latency p{percent}", "s", Direction.LOWER) for percent in ("50", "90", "99", "99.9")
}
_UNITS = {
    **{"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "secs": 1.0, "sec": 1.0},
    **{"10 sec": 10.0, "min": 60.0, "10 min": 600.0, "hr": 3600.0},
}
"""Since 1.5 the unit of all times is that of the slowest answer."""
_TIME = r"([0-9.]+[ \t]+(?:10 sec|10 min|secs?|ms|us|ns|min|hr))"
_DEADLINE = "aborted due to deadline"
_APART = 0.001
_LINES = LinePatterns(
    measurements=(
        rf"\s+(?:Total|Slowest|Fastest|Average):\s+{_TIME}",
        r"\s+Requests/sec:\s+[0-9.]+",
        rf"\s+[0-9.]+% in {_TIME}",
        r"\s+\[\d+\]\s+\d+ responses",
        r"\s+\[\d+\]\s+\S.*",
    ),
    conditions=(r"\s+Size/request:\s+(?P<answer_size>\S+ \S+)",),
    decoration=(
        r"Summary:|Response time (?:histogram|distribution):|(?:Latency|Status code|Error) distribution:",
        r"\s+Success rate:\s+\S+|\s+(?:Total data|Size/sec):\s+\S+ \S+|\s+[0-9.]+ (?:\S+ )?\[\d+\]\s*\|.*",
        r"Details \(average, fastest, slowest\)(?: for .*)?:?|\s+(?:DNS\+dialup|DNS-lookup):\s+.*",
    ),
)


class OhaText:
    """Answers a second, and how long they took."""

    name = "oha"
    summary = "oha --no-tui URL, its report on standard output"
    columns = (_RATE, _LATENCY, *_PERCENTILES.values())
    remarks = (
        "answers by the total time: Requests/sec also counts those that the deadline aborted. Percentiles "
        "printed as 0 are left out. A run with errors, or answers other than 2xx and 3xx, is refused"
    )
    of_groups = False
    begins = (r"^Summary:",)

    def recognises(self, text: str) -> bool:
        """Whether it has what only oha prints: hey prints no success rate."""
        return "Success rate:" in text and bool(re.search(r"^[ \t]+Requests/sec:\s", text, re.MULTILINE))

    def read(self, text: str) -> Report:
        """Rate and latencies. Raises OutputDamaged, OutputEmpty."""
        answers, aborted = self._answers(text)
        seconds = self._seconds("Total", text)
        if not answers or not seconds:
            raise OutputEmpty(format=self.name, problem="no request was answered")
        rate = measured(
            the_only(r"^[ \t]+Requests/sec:\s+(\S+)$", text, self.name), self.name, "Requests/sec"
        )
        if not math.isclose(rate * seconds, answers + aborted, rel_tol=_APART, abs_tol=0.0001 * rate):
            problem = f"{rate:g} requests a second are not {answers + aborted:g} in {seconds:g} s"
            raise OutputDamaged(format=self.name, where="Requests/sec", problem=problem)
        times = dict(self._times(text))
        read = (
            Measured(column.metric, (value,), column.unit, column.direction)
            for column, value in {_RATE: answers / seconds, **times}.items()
            if value
        )
        notes = list(_LINES.remainder(text))
        if aborted:
            notes.append(Note(f"{aborted:g} requests were aborted by the deadline: they are not counted"))
        return Report(tuple(read), notes=tuple(notes), conditions=_LINES.conditions_of(text))

    def _answers(self, text: str) -> tuple[float, float]:
        """Good answers, and requests that the deadline aborted."""
        codes = re.findall(r"^[ \t]+\[(\d+)\]\s+(\d+) responses$", text, re.MULTILINE)
        if bad := [code for code, _ in codes if not code.startswith(("2", "3"))]:
            raise OutputEmpty(format=self.name, problem=f"not all requests were answered: [{bad[0]}]")
        errors = re.findall(r"^[ \t]+\[(\d+)\]\s+(?!\d+ responses$)(\S.*)$", text, re.MULTILINE)
        if others := [error for _, error in errors if error != _DEADLINE]:
            raise OutputEmpty(format=self.name, problem=f"not all requests were answered: {others[0]}")
        aborted = sum(measured(count, self.name, _DEADLINE) for count, _ in errors)
        return sum(measured(count, self.name, f"status {code}") for code, count in codes), aborted

    def _times(self, text: str) -> Iterator[tuple[Column, float]]:
        """The mean and the percentiles, checked against the fastest and the slowest answer."""
        low, high = self._seconds("Fastest", text), self._seconds("Slowest", text)
        yield _LATENCY, self._seconds("Average", text)
        before = low
        for percent, column in _PERCENTILES.items():
            pattern = rf"^[ \t]+{re.escape(percent)}(?:\.0+|0)?% in {_TIME}$"
            if not (printed := only(pattern, text, self.name)):
                continue
            value = self._of(printed, column.metric)
            if not before <= value <= high:
                problem = f"{printed} is outside what is below and above it"
                raise OutputDamaged(format=self.name, where=f"{percent}%", problem=problem)
            before = value
            yield column, value

    def _seconds(self, name: str, text: str) -> float:
        return self._of(the_only(rf"^[ \t]+{name}:\s+{_TIME}$", text, self.name), name)

    def _of(self, printed: str, where: str) -> float:
        number, unit = printed.split(maxsplit=1)
        return measured(number, self.name, where) * _UNITS[unit]


FORMAT = OhaText()
