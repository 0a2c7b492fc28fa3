"""oha's JSON (github.com/hatoo/oha, schema.json)."""

import math
from typing import Any

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.keys import KeyPatterns
from ktrial.program_outputs.reading import conditions_of, has_keys, json_report, measured, object_of

_RATE = Column("requests", "1/s", Direction.HIGHER)
_LATENCY = Column("latency", "s", Direction.LOWER)
_PERCENTILES = tuple(
    Column(f"latency {percentile}", "s", Direction.LOWER) for percentile in ("p50", "p90", "p99", "p99.9")
)
_DEADLINE = "aborted due to deadline"
_APART = 0.001
_KEYS = KeyPatterns(
    measurements=(
        "summary/{successRate,total,slowest,fastest,average,requestsPerSec}",
        "latencyPercentiles/*",
        "statusCodeDistribution/*",
        "errorDistribution/*",
    ),
    conditions=("summary/sizePerRequest",),
    decoration=(
        "summary/{totalData,sizePerSec}",
        "rps/**",
        "details/**",
        "{responseTimeHistogram,responseTimeHistogramSuccessful,responseTimeHistogramNotSuccessful}/*",
        "{latencyPercentilesSuccessful,latencyPercentilesNotSuccessful}/*",
    ),
)


class Oha:
    """Answers a second, and how long they took."""

    name = "oha-json"
    summary = "oha --no-tui --output-format json URL (before 1.9: --json)"
    columns = (_RATE, _LATENCY, *_PERCENTILES)
    remarks = (
        "answers by the total time: requestsPerSec also counts those that the deadline aborted. A run with "
        "errors, or answers other than 2xx and 3xx, is refused"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether it has what only oha writes."""
        return has_keys(text, "summary", "successRate", "latencyPercentiles", "statusCodeDistribution")

    def read(self, text: str) -> Report:
        """Rate and latencies. Raises OutputDamaged, OutputEmpty."""
        document = json_report(text, self.name)
        summary = object_of(document.get("summary"), self.name, "summary")
        answers, aborted = self._answers(document)
        seconds = measured(summary.get("total"), self.name, "summary, total")
        if not answers or not seconds:
            raise OutputEmpty(format=self.name, problem="no request was answered")
        rate = measured(summary.get("requestsPerSec"), self.name, "summary, requestsPerSec")
        if not math.isclose(rate * seconds, answers + aborted, rel_tol=_APART):
            problem = f"{rate:g} requests a second are not {answers + aborted:g} in {seconds:g} s"
            raise OutputDamaged(format=self.name, where="summary", problem=problem)
        percentiles = object_of(document.get("latencyPercentiles"), self.name, "latencyPercentiles")
        values = {
            _RATE: answers / seconds,
            _LATENCY: measured(summary.get("average"), self.name, "summary, average"),
        } | {
            column: measured(percentiles.get(column.metric.split(" ")[1]), self.name, column.metric)
            for column in _PERCENTILES
        }
        self._check(summary, list(values.values())[1:])
        read = (
            Measured(column.metric, (value,), column.unit, column.direction)
            for column, value in values.items()
        )
        notes = list(_KEYS.remainder(document))
        if aborted:
            notes.append(Note(f"{aborted:g} requests were aborted by the deadline: they are not counted"))
        return Report(
            tuple(read),
            notes=tuple(notes),
            conditions=conditions_of(document, {"answer size": "summary.sizePerRequest"}),
        )

    def _answers(self, document: dict[str, Any]) -> tuple[float, float]:
        """Good answers, and requests that the deadline aborted."""
        codes = object_of(document.get("statusCodeDistribution"), self.name, "statusCodeDistribution")
        errors = dict(object_of(document.get("errorDistribution"), self.name, "errorDistribution"))
        aborted = measured(errors.pop(_DEADLINE, 0), self.name, _DEADLINE)
        bad = [code for code in codes if not code.startswith(("2", "3"))]
        if bad or errors:
            problem = f"not all requests were answered: {', '.join([*bad, *errors])}"
            raise OutputEmpty(format=self.name, problem=problem)
        return sum(measured(count, self.name, f"status {code}") for code, count in codes.items()), aborted

    def _check(self, summary: dict[str, Any], latencies: list[float]) -> None:
        """That latencies lie between the fastest and the slowest."""
        low, high = (measured(summary.get(key), self.name, key) for key in ("fastest", "slowest"))
        if not all(low <= latency <= high for latency in latencies):
            problem = f"a latency is outside the fastest, {low:g} s, and the slowest, {high:g} s"
            raise OutputDamaged(format=self.name, where="latencyPercentiles", problem=problem)


FORMAT = Oha()
