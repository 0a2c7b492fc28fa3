"""JMH's JSON (-rf json): a value a fork (org.openjdk.jmh.results.format.JSONResultFormat)."""

import json
from collections.abc import Iterator
from statistics import fmean
from typing import Any

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.keys import KeyPatterns
from ktrial.program_outputs.reading import conditions_of, finite, measured, object_of, objects_of, text_of

MODES = {
    "thrpt": Column("throughput", "ops/s", Direction.HIGHER),
    "avgt": Column("time", "us/op", Direction.LOWER),
    "sample": Column("sampled time", "us/op", Direction.LOWER),
    "ss": Column("single shot time", "us/op", Direction.LOWER),
}
_CONDITIONS = {
    "version": "jmhVersion",
    "threads": "threads",
    "JDK": "jdkVersion",
    "JVM": "vmName",
    "JVM version": "vmVersion",
    "warm-up iterations": "warmupIterations",
    "warm-up time": "warmupTime",
    "iterations": "measurementIterations",
    "iteration time": "measurementTime",
}
_ROUNDING = 1e-6
_KEYS = KeyPatterns(
    measurements=(
        "{benchmark,mode}",
        "primaryMetric/{score,scoreError,scoreUnit,rawData,rawDataHistogram}",
    ),
    conditions=(
        "{threads,forks,jvm,jvmArgs,jdkVersion,vmName,vmVersion,jmhVersion}",
        "params/*",
        "{warmupIterations,warmupTime,warmupBatchSize}",
        "{measurementIterations,measurementTime,measurementBatchSize}",
    ),
    decoration=(
        "primaryMetric/scoreConfidence",
        "secondaryMetrics",
        "primaryMetric/scorePercentiles/*",
    ),
)


class Jmh:
    """A fork is JMH's trial: iterations inside share its code and layout, and are averaged."""

    name = "jmh-json"
    summary = "JMH's JSON (-rf json -rff FILE)"
    columns = tuple(MODES.values())
    remarks = (
        "for each benchmark, with its parameters, the mean of each fork; of a single fork its iterations, "
        "which is told. The unit is scoreUnit; secondary metrics are not read. A score that its own raw data "
        "do not give is refused"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether it has what only JMH writes."""
        return text.lstrip().startswith("[") and '"primaryMetric"' in text and '"scoreUnit"' in text

    def read(self, text: str) -> Report:
        """A metric for each benchmark. Raises OutputDamaged, OutputEmpty."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            problem = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise OutputDamaged(format=self.name, where="the whole", problem=f"no JSON: {problem}") from error
        rows = objects_of(document, self.name, "the whole")
        if not rows:
            raise OutputEmpty(format=self.name, problem="there is no benchmark in it")
        read = tuple(self._benchmark(row) for row in rows)
        names = [(metric.of, metric.metric) for metric in read]
        if twice := next((name for name, metric in names if names.count((name, metric)) > 1), ""):
            raise OutputDamaged(format=self.name, where=twice, problem="it is there twice")
        return Report(read, notes=(*_notes(rows), *_KEYS.remainder(rows)), conditions=_common(rows))

    def _benchmark(self, row: dict[str, Any]) -> Measured:
        name = text_of(row.get("benchmark"))
        column = MODES.get(text_of(row.get("mode")))
        if not name or column is None:
            problem = f"its mode is {row.get('mode')!r}"
            raise OutputDamaged(format=self.name, where=name or "a benchmark", problem=problem)
        parameters = row.get("params")
        shown = (
            {str(key): str(value) for key, value in parameters.items()}
            if isinstance(parameters, dict)
            else {}
        )
        where = " ".join((name, *(f"{key}={value}" for key, value in shown.items())))
        metric = object_of(row.get("primaryMetric"), self.name, where)
        unit = text_of(metric.get("scoreUnit"))
        if not unit:
            raise OutputDamaged(format=self.name, where=where, problem="it has no scoreUnit")
        score = measured(metric.get("score"), self.name, f"{where}, score")
        values = self._values(metric.get("rawData"), where) or (score,)
        if abs(fmean(values) - score) > _ROUNDING * max(score, _ROUNDING):
            problem = f"its score is {score:g}, and the mean of its raw data {fmean(values):g}"
            raise OutputDamaged(format=self.name, where=where, problem=problem)
        conditions = conditions_of(row, _CONDITIONS)
        return Measured(column.metric, values, unit, column.direction, where, conditions=conditions)

    def _values(self, raw: object, where: str) -> tuple[float, ...]:
        """The mean of each fork, or a single fork's iterations; none where only histograms are there."""
        forks = raw if isinstance(raw, list) else []
        lists = [fork if isinstance(fork, list) else [fork] for fork in forks]
        numbers = [[measured(value, self.name, f"{where}, rawData") for value in fork] for fork in lists]
        if len({len(fork) for fork in numbers}) > 1 or any(not fork for fork in numbers):
            raise OutputDamaged(
                format=self.name, where=where, problem="its forks have different numbers of values"
            )
        return tuple(numbers[0]) if len(numbers) == 1 else tuple(fmean(fork) for fork in numbers)


def _common(rows: list[dict[str, Any]]) -> dict[str, str]:
    """What all benchmarks were run with."""
    first, *others = [conditions_of(row, _CONDITIONS) for row in rows]
    return {name: level for name, level in first.items() if all(row.get(name) == level for row in others)}


def _notes(rows: list[dict[str, Any]]) -> Iterator[Note]:
    single = sum(finite(row.get("forks")) == 1 for row in rows)
    if without := sum(not _raw_data(row) for row in rows):
        yield Note(f"{without} of {len(rows)} benchmarks have no rawData: only their scores are read")
    if single:
        text = (
            f"{single} of {len(rows)} benchmarks ran in one JVM only: what differs between JVMs is not in it"
        )
        yield Note(text, "run more forks: -f 10")


def _raw_data(row: dict[str, Any]) -> object:
    metric = row.get("primaryMetric")
    return metric.get("rawData") if isinstance(metric, dict) else None


FORMAT = Jmh()
