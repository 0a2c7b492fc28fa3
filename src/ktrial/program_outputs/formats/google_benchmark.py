"""Google Benchmark's JSON (--benchmark_format=json): one value a repetition."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.keys import KeyPatterns
from ktrial.program_outputs.reading import (
    conditions_of,
    finite,
    has_keys,
    json_report,
    measured,
    objects_of,
    text_of,
)
from ktrial.program_outputs.units import converted, converts

_REAL = Column("real time", "ns", Direction.LOWER)
_CONDITIONS = {
    "host": "context.host_name",
    "CPUs": "context.num_cpus",
    "MHz": "context.mhz_per_cpu",
    "CPU scaling": "context.cpu_scaling_enabled",
    "build type": "context.library_build_type",
    "version": "context.library_version",
    "date": "context.date",
}
_BESIDE = ("cpu_time", "bytes_per_second", "items_per_second")
"""What a row may tell beside its real time."""
_BUSY = 0.5
"""Of the CPUs that others used when a run began: its times are theirs too."""
_STATISTIC = re.compile(r"(.+)_(mean|median|stddev|cv|BigO|RMS)")
"""Names of rows that are computed from others; before 1.5 nothing else tells them."""
_KEYS = KeyPatterns(
    measurements=(
        "benchmarks/{name,run_name,run_type,real_time,time_unit,repetitions,repetition_index,iterations}",
        "benchmarks/{error_occurred,error_message,skipped,skip_message}",
    ),
    conditions=(
        "context/**",
        "benchmarks/{threads,label}",
    ),
    decoration=(
        "benchmarks/{family_index,per_family_instance_index,cpu_time,aggregate_name,aggregate_unit}",
        "benchmarks/{big_o,rms,cpu_coefficient,real_coefficient,bytes_per_second,items_per_second}",
    ),
)


class GoogleBenchmark:
    """Real time an iteration. Aggregates (mean, median, stddev) are left out: they are made from the rest."""

    name = "google-benchmark"
    summary = "Google Benchmark's JSON (--benchmark_out=FILE --benchmark_repetitions=N)"
    columns = (_REAL,)
    remarks = (
        "every repetition of every benchmark, whatever its time_unit; neither aggregates (mean, median, "
        "stddev, cv, complexity) nor counters of the benchmark's own. Benchmarks that report an error are"
        " left out, with a warning"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether it has what only Google Benchmark writes."""
        return has_keys(text, "benchmarks", "real_time")

    def read(self, text: str) -> Report:
        """A metric for each benchmark. Raises OutputDamaged, OutputEmpty."""
        document = json_report(text, self.name)
        rows = objects_of(document.get("benchmarks"), self.name, "benchmarks")
        names = {text_of(row.get("name")) for row in rows}
        runs = [row for row in rows if not _is_aggregate(row, names)]
        good = [row for row in runs if not _failed(row)]
        if not good:
            raise OutputEmpty(format=self.name, problem=_nothing(len(rows) > len(runs)))
        values: dict[str, list[float]] = defaultdict(list)
        for row in good:
            values[_name(row)].append(self._time(row))
        read = tuple(
            Measured(_REAL.metric, tuple(times), _REAL.unit, _REAL.direction, name)
            for name, times in values.items()
        )
        failure = Note(
            f"{len(runs) - len(good)} benchmarks report an error; they are left out",
            "look at their error_message",
        )
        notes = (*_notes(values, good), *_surroundings(document), *_KEYS.remainder(document))
        failures = (failure,) if len(good) < len(runs) else ()
        unread = tuple(key for key in _BESIDE if any(finite(row.get(key)) is not None for row in good))
        return Report(read, failures, notes, conditions_of(document, _CONDITIONS), unread)

    def _time(self, row: dict[str, Any]) -> float:
        """In nanoseconds."""
        unit = text_of(row.get("time_unit"))
        if not converts(unit, _REAL.unit):
            raise OutputDamaged(
                format=self.name, where=_name(row), problem=f"its time_unit is {unit or None!r}"
            )
        return converted(measured(row.get("real_time"), self.name, _name(row)), unit, _REAL.unit)


def _name(row: dict[str, Any]) -> str:
    return text_of(row.get("run_name")) or text_of(row.get("name")) or "benchmark"


def _failed(row: dict[str, Any]) -> bool:
    skipped = bool(row.get("error_occurred")) or bool(row.get("skipped"))
    return skipped or finite(row.get("real_time")) is None


def _is_aggregate(row: dict[str, Any], names: set[str]) -> bool:
    if "run_type" in row:
        return bool(row["run_type"] == "aggregate")
    match = _STATISTIC.fullmatch(text_of(row.get("name")))
    return match is not None and bool({match[1], f"{match[1]}_stddev"} & names)


def _nothing(aggregates: bool) -> str:
    if aggregates:
        return "there are aggregates only: run it without --benchmark_report_aggregates_only"
    return "no benchmark has a real_time"


def _surroundings(document: dict[str, Any]) -> Iterator[Note]:
    """What the library itself says that disturbs its times."""
    context = document.get("context")
    facts = context if isinstance(context, dict) else {}
    if facts.get("library_build_type") == "debug":
        yield Note("the library is a debug build: its times are not those of a release", "build it again")
    if facts.get("cpu_scaling_enabled") is True:
        yield Note("the CPUs change their frequency", "set the governor to performance, or turn boost off")
    loads, cpus = facts.get("load_avg"), finite(facts.get("num_cpus"))
    load = finite(loads[0]) if isinstance(loads, list) and loads else None
    if load is not None and cpus and load > _BUSY * cpus:
        yield Note(f"the load was {load:g} on {cpus:g} CPUs when it began: others ran beside it")


def _notes(values: dict[str, list[float]], rows: list[dict[str, Any]]) -> Iterator[Note]:
    """Rows that are missing, or too many: a file that was cut or joined, or two benchmarks of one name."""
    expected = {_name(row): row.get("repetitions") for row in rows}
    for name, times in values.items():
        repetitions = expected[name]
        if isinstance(repetitions, int) and repetitions and repetitions != len(times):
            text = f"{name}: {len(times)} values, where it ran {repetitions} repetitions"
            yield Note(text, "look whether runs failed, or two benchmarks have one name")


FORMAT = GoogleBenchmark()
