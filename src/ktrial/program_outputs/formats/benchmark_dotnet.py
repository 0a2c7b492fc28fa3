"""BenchmarkDotNet's JSON, brief or full (JsonExporter): a value a launch."""

import math
from collections import defaultdict
from collections.abc import Iterator
from statistics import fmean
from typing import Any

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.keys import KeyPatterns
from ktrial.program_outputs.reading import (
    conditions_of,
    has_keys,
    json_report,
    measured,
    object_of,
    objects_of,
    text_of,
)

_TIME = Column("time", "ns", Direction.LOWER)
_MEMORY = Column("memory", "B/op", Direction.LOWER)
_CONDITIONS = {
    "version": "HostEnvironmentInfo.BenchmarkDotNetVersion",
    "system": "HostEnvironmentInfo.OsVersion",
    "CPU": "HostEnvironmentInfo.ProcessorName",
    "runtime": "HostEnvironmentInfo.RuntimeVersion",
    "machine": "HostEnvironmentInfo.Architecture",
    "build type": "HostEnvironmentInfo.Configuration",
    "SDK": "HostEnvironmentInfo.DotNetCliVersion",
}
_OLD_CPU = {"CPU": "HostEnvironmentInfo.ProcessorName.Value", "runtime": "HostEnvironmentInfo.ClrVersion"}
_ROUNDING = 1e-6
_KEYS = KeyPatterns(
    measurements=(
        "Benchmarks/{DisplayInfo,Namespace,Type,Method,MethodTitle,Parameters,FullName}",
        "Benchmarks/Statistics/{N,Mean,Min,Max,StandardError,StandardDeviation,OriginalValues}",
        "Benchmarks/Measurements/*",
    ),
    conditions=(
        "HostEnvironmentInfo/**",
        "Benchmarks/Properties/*",
        "Benchmarks/{HardwareIntrinsics,ShortInfo}",
    ),
    decoration=(
        "Title",
        "Benchmarks/Statistics/{Median,Q1,Q3,LowerFence,UpperFence,InterquartileRange,Outliers}",
        "Benchmarks/Statistics/{AllOutliers,LowerOutliers,UpperOutliers,Variance,Skewness,Kurtosis}",
        "Benchmarks/Statistics/{ConfidenceInterval,Percentiles}/*",
        "Benchmarks/Memory/*",
        "Benchmarks/Metrics/**",
    ),
)


class BenchmarkDotNet:
    """A launch is a process: iterations inside share its code and layout, and are averaged."""

    name = "benchmarkdotnet"
    summary = "BenchmarkDotNet's JSON (--exporters json)"
    columns = (_TIME, _MEMORY)
    remarks = (
        "for each benchmark the mean of each launch, where the full report has several; of one launch its "
        "mean, without the outliers that BenchmarkDotNet removes. Memory is that of an operation. Benchmarks "
        "without statistics failed, and are left out with a warning"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether it has what only BenchmarkDotNet writes."""
        return has_keys(text, "HostEnvironmentInfo", "Benchmarks")

    def read(self, text: str) -> Report:
        """The metrics of each benchmark. Raises OutputDamaged, OutputEmpty."""
        document = json_report(text, self.name)
        rows = objects_of(document.get("Benchmarks"), self.name, "Benchmarks")
        good = [row for row in rows if row.get("Statistics") is not None]
        names = [_name(row) for row in good]
        if twice := next((name for name in names if names.count(name) > 1), ""):
            problem = "it is there twice: jobs have no names in this file"
            raise OutputDamaged(format=self.name, where=twice, problem=problem)
        read = tuple(metric for row in good for metric in self._benchmark(row))
        if not read:
            raise OutputEmpty(format=self.name, problem="no benchmark has statistics")
        failed = len(rows) - len(good)
        failures = (Note(f"{failed} benchmarks failed; they are left out"),) if failed else ()
        conditions = conditions_of(document, _OLD_CPU) | conditions_of(document, _CONDITIONS)
        return Report(read, failures, (*_notes(document), *_KEYS.remainder(document)), conditions)

    def _benchmark(self, row: dict[str, Any]) -> Iterator[Measured]:
        name = _name(row)
        if not name:
            raise OutputDamaged(format=self.name, where="Benchmarks", problem="a benchmark has no name")
        mean = self._mean(name, object_of(row.get("Statistics"), self.name, f"{name}, Statistics"))
        launches = self._launches(name, row.get("Measurements"))
        values = tuple(launches) if len(launches) > 1 else (mean,)
        if not any(values):
            raise OutputDamaged(format=self.name, where=name, problem="its time is 0: nothing was measured")
        yield Measured(_TIME.metric, values, _TIME.unit, _TIME.direction, name)
        memory = row.get("Memory")
        if isinstance(memory, dict) and memory.get("BytesAllocatedPerOperation") is not None:
            size = measured(memory["BytesAllocatedPerOperation"], self.name, f"{name}, Memory")
            yield Measured(_MEMORY.metric, (size,), _MEMORY.unit, _MEMORY.direction, name)

    def _mean(self, name: str, statistics: dict[str, Any]) -> float:
        """In nanoseconds, between the smallest and the largest where they are told."""
        mean = measured(statistics.get("Mean"), self.name, f"{name}, Mean")
        for key, sign in (("Min", 1), ("Max", -1)):
            if key in statistics:
                bound = measured(statistics[key], self.name, f"{name}, {key}")
                if sign * (mean - bound) < 0 and not math.isclose(mean, bound, rel_tol=_ROUNDING):
                    problem = f"its mean is {mean:g}, and its {key} {bound:g}"
                    raise OutputDamaged(format=self.name, where=name, problem=problem)
        return mean

    def _launches(self, name: str, measurements: Any) -> list[float]:
        """The mean of each launch's results, in nanoseconds per operation."""
        launches: dict[int, list[float]] = defaultdict(list)
        rows = measurements if isinstance(measurements, list) else []
        for row in objects_of(rows, self.name, f"{name}, Measurements"):
            if (row.get("IterationMode"), row.get("IterationStage")) in {
                ("Workload", "Result"),
                ("Result", None),
            }:
                time, count, launch = (
                    measured(row.get(key), self.name, f"{name}, {key}")
                    for key in ("Nanoseconds", "Operations", "LaunchIndex")
                )
                if not count:
                    raise OutputDamaged(format=self.name, where=name, problem="a result has no operation")
                launches[int(launch)].append(time / count)
        return [fmean(values) for _, values in sorted(launches.items())]


def _name(row: dict[str, Any]) -> str:
    full = text_of(row.get("FullName"))
    if not full and not {"Namespace", "Type", "Method"} <= row.keys():
        return ""
    parts = [text_of(row.get(key)) for key in ("Namespace", "Type", "Method")]
    parameters = text_of(row.get("Parameters"))
    return full or ".".join(filter(None, parts)) + (f"({parameters})" if parameters else "")


def _notes(document: dict[str, Any]) -> Iterator[Note]:
    """What BenchmarkDotNet says that makes its times others than a release's."""
    facts = document.get("HostEnvironmentInfo")
    configuration = text_of(facts.get("Configuration")) if isinstance(facts, dict) else ""
    if configuration == "DEBUG":
        yield Note("it is a debug build: its times are not those of a release", "build it with -c Release")
    if isinstance(facts, dict) and facts.get("HasAttachedDebugger") is True:
        yield Note("a debugger was attached", "run it without one")


FORMAT = BenchmarkDotNet()
