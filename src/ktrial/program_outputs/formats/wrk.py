"""wrk's report, and wrk2's (github.com/wg/wrk, src/wrk.c and src/units.c)."""

import re
from collections.abc import Iterator
from decimal import Decimal

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import LinePatterns
from ktrial.program_outputs.reading import measured, only, the_only

_RATE = Column("requests", "1/s", Direction.HIGHER)
_THROUGHPUT = Column("throughput", "KiB/s", Direction.HIGHER)
_LATENCY = Column("latency", "µs", Direction.LOWER)
_PERCENTILES = tuple(
    Column(f"latency p{percentile}", "µs", Direction.LOWER) for percentile in ("50", "75", "90", "99")
)
_MICROSECONDS = {"us": 1, "ms": 1000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
_KIBIBYTES = {"": 1 / 1024, "K": 1.0, "M": 1024.0, "G": 1024.0**2, "T": 1024.0**3, "P": 1024.0**4}
"""format_binary: what wrk calls KB is 1024 bytes."""
_LINES = LinePatterns(
    measurements=(
        r"Requests/sec:\s+[0-9.]+",
        r"Transfer/sec:\s+[0-9.]+[KMGTP]?B",
        r"    Latency(?:\s+[0-9.]+(?:us|ms|s|m|h)){3}\s+[0-9.]+%",
        r"\s*[0-9.]+%\s+[0-9.]+(?:us|ms|s|m|h)",
    ),
    conditions=(
        r"wrk (?P<version>\S+).*",
        r"Running (?P<duration>\S+) test @ (?P<URL>\S+)",
        r"  (?P<threads>\d+) threads? and (?P<connections>\d+) connections?",
    ),
    failures=(r"  (?:Non-2xx or 3xx responses|Socket errors):? .*",),
    decoration=(
        r"  Thread Stats .*|    Req/Sec .*|  Latency Distribution.*|  \d+ requests in \S+, \S+ read",
        r"  Thread calibration: .*|  Detailed Percentile spectrum:|  Initialised .*|-{4,}.*",
        r"  Uncorrected Latency .*|\s+Value\s+Percentile.*|#\[.*",
        r"\s+[0-9.]+\s+[0-9.]+\s+\d+\s+(?:[0-9.]+|inf)",
    ),
)


class Wrk:
    """Requests and bytes a second, and latency."""

    name = "wrk"
    summary = "wrk --latency URL, its report on standard output"
    columns = (_RATE, _THROUGHPUT, _LATENCY, *_PERCENTILES)
    remarks = (
        "wrk's KB, MB and GB are powers of 1024; its us, ms and s become µs. Percentiles need "
        "`--latency`. A run with socket errors or answers other than 2xx and 3xx is refused"
    )
    of_groups = False
    begins = (r"^wrk \S+ \[", r"^Running .+ test @")

    def recognises(self, text: str) -> bool:
        """Whether it has what only wrk prints."""
        return bool(re.search(r"^Requests/sec: ", text, re.MULTILINE)) and "Thread Stats" in text

    def read(self, text: str) -> Report:
        """Rates and latencies. Raises OutputDamaged, OutputEmpty."""
        if match := re.search(r"(Non-2xx or 3xx responses|Socket errors):? .*", text):
            raise OutputEmpty(format=self.name, problem=f"not all requests were answered: {match[0]}")
        rate = measured(the_only(r"^Requests/sec:\s+(\S+)", text, self.name), self.name, "Requests/sec")
        if not rate:
            raise OutputEmpty(format=self.name, problem="no request was answered")
        values = {
            _RATE: rate,
            _THROUGHPUT: self._bytes(the_only(r"^Transfer/sec:\s+(\S+)", text, self.name)),
            _LATENCY: self._time(the_only(r"^    Latency\s+(\S+)", text, self.name)),
            **dict(self._percentiles(text)),
        }
        return Report(
            tuple(
                Measured(column.metric, (value,), column.unit, column.direction)
                for column, value in values.items()
            ),
            notes=tuple(_LINES.remainder(text)),
            conditions=_LINES.conditions_of(text),
        )

    def _percentiles(self, text: str) -> Iterator[tuple[Column, float]]:
        """wrk prints 50%, wrk2 50.000%."""
        for column in _PERCENTILES:
            percent = column.metric.removeprefix("latency p")
            if value := only(rf"^\s+{percent}(?:\.0+)?%\s+(\S+)$", text, self.name):
                yield column, self._time(value)

    def _time(self, text: str) -> float:
        """In microseconds."""
        match = re.fullmatch(r"(.*?)(us|ms|s|m|h)", text)
        if not match:
            raise OutputDamaged(format=self.name, where="Latency", problem=f"{text!r} is not a time")
        measured(match[1], self.name, "Latency")
        return float(Decimal(match[1]) * _MICROSECONDS[match[2]])

    def _bytes(self, text: str) -> float:
        """In KiB."""
        match = re.fullmatch(r"(.*?)([KMGTP]?)B", text)
        if not match:
            raise OutputDamaged(format=self.name, where="Transfer/sec", problem=f"{text!r} is not a size")
        return measured(match[1], self.name, "Transfer/sec") * _KIBIBYTES[match[2]]


FORMAT = Wrk()
