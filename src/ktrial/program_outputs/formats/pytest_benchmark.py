"""pytest-benchmark's JSON (--benchmark-json): one value a benchmark, the mean of its rounds."""

import math
from typing import Any

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Report, distinct
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

_TIME = Column("time", "s", Direction.LOWER)
_CONDITIONS = {
    "version": "version",
    "host": "machine_info.node",
    "kernel": "machine_info.release",
    "CPU": "machine_info.cpu.brand_raw",
    "Python": "machine_info.python_version",
    "machine": "machine_info.machine",
    "commit": "commit_info.id",
    "date": "datetime",
}
_OLD_CPU = "machine_info.cpu.brand"
_ROUNDING = 1e-6
_KEYS = KeyPatterns(
    measurements=(
        "benchmarks/{name,fullname,group}",
        "benchmarks/stats/{mean,min,max,rounds,stddev,total,data}",
    ),
    conditions=(
        "machine_info/**",
        "benchmarks/params/**",
        "benchmarks/options/**",
        "benchmarks/extra_info/**",
    ),
    decoration=(
        "commit_info/**",
        "{datetime,version}",
        "benchmarks/param",
        "benchmarks/stats/{median,iqr,q1,q3,ops,iterations,outliers,iqr_outliers,stddev_outliers,ld15iqr,hd15iqr}",
    ),
)


class PytestBenchmark:
    """Rounds share a process, and are one value: run pytest several times."""

    name = "pytest-benchmark"
    summary = "pytest --benchmark-json=FILE"
    columns = (_TIME,)
    remarks = (
        "for each benchmark the mean of its rounds, which share a process and so are one value: run it "
        "several times. A mean that `ops`, `total` or the extremes contradict is refused"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether it has what only pytest-benchmark writes."""
        return has_keys(text, "machine_info", "commit_info", "benchmarks", "stats")

    def read(self, text: str) -> Report:
        """A metric for each benchmark. Raises OutputDamaged, OutputEmpty."""
        document = json_report(text, self.name)
        rows = objects_of(document.get("benchmarks"), self.name, "benchmarks")
        if not rows:
            raise OutputEmpty(format=self.name, problem="there is no benchmark in it")
        names = [text_of(row.get("fullname")) for row in rows]
        if "" in names:
            raise OutputDamaged(format=self.name, where="benchmarks", problem="a benchmark has no fullname")
        read = tuple(
            Measured(_TIME.metric, (self._mean(name, row),), _TIME.unit, _TIME.direction, name)
            for name, row in zip(distinct(names), rows, strict=True)
        )
        conditions = conditions_of(document, {"CPU": _OLD_CPU}) | conditions_of(document, _CONDITIONS)
        return Report(read, notes=tuple(_KEYS.remainder(document)), conditions=conditions)

    def _mean(self, name: str, row: dict[str, Any]) -> float:
        """In seconds, which the other statistics have to allow."""
        stats = object_of(row.get("stats"), self.name, f"{name}, stats")

        def number(key: str) -> float:
            return measured(stats.get(key), self.name, f"{name}, {key}")

        mean, rounds = number("mean"), number("rounds")
        slack = _ROUNDING * mean
        if not rounds or not number("min") - slack <= mean <= number("max") + slack:
            problem = (
                f"its mean of {rounds:g} rounds is {mean:g}, from {number('min'):g} to {number('max'):g}"
            )
            raise OutputDamaged(format=self.name, where=name, problem=problem)
        derived = [1 / mean] if mean else []
        for key, expected in (("ops", derived), ("total", [mean * rounds])):
            if key in stats and expected and not math.isclose(number(key), expected[0], rel_tol=_ROUNDING):
                problem = f"its {key} is {number(key):g}, where its mean gives {expected[0]:g}"
                raise OutputDamaged(format=self.name, where=name, problem=problem)
        return mean


FORMAT = PytestBenchmark()
