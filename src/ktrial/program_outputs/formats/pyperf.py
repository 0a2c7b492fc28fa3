"""pyperf's JSON: one value a process (the mean of its runs)."""

import statistics
from collections.abc import Iterator
from typing import Any

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report, distinct
from ktrial.program_outputs.errors import OutputEmpty
from ktrial.program_outputs.keys import KeyPatterns
from ktrial.program_outputs.reading import has_keys, json_report, measured, objects_of, text_of

_CONDITIONS = {
    "host": "hostname",
    "platform": "platform",
    "CPU": "cpu_model_name",
    "CPU settings": "cpu_config",
    "affinity": "cpu_affinity",
    "Python": "python_version",
    "compiler": "python_compiler",
}
_UNITS = {"second": "s", "byte": "B", "integer": ""}
"""pyperf's words (its metadata `unit`)."""

_FEWEST_CHARACTERS = 8
"""Of a number that does not come out twice by chance."""
_KEYS = KeyPatterns(
    measurements=("benchmarks/runs/{values,warmups}",),
    conditions=(
        "metadata/**",
        "benchmarks/metadata/**",
        "benchmarks/runs/metadata/**",
    ),
    decoration=("version",),
)


class Pyperf:
    """A process is pyperf's trial: values inside one share its layout, and are averaged."""

    name = "pyperf"
    summary = "pyperf's JSON (python -m pyperf … -o FILE)"
    columns = (
        Column("time", "s", Direction.LOWER),
        Column("memory", "B", Direction.LOWER),
        Column("count", "", Direction.LOWER),
    )
    remarks = (
        "for each benchmark the mean of each process; neither warm-ups nor processes that only calibrated"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether it has what only pyperf writes."""
        return has_keys(text, "benchmarks", "runs")

    def read(self, text: str) -> Report:
        """A metric for each benchmark. Raises OutputDamaged, OutputEmpty."""
        document = json_report(text, self.name)
        benchmarks = objects_of(document.get("benchmarks"), self.name, "benchmarks")
        facts = [{**_facts(document), **_facts(entry)} for entry in benchmarks]
        names = [metadata.get("name") or f"benchmark {at + 1}" for at, metadata in enumerate(facts)]
        read = [
            self._benchmark(at, name, facts[at], benchmarks[at]) for at, name in enumerate(distinct(names))
        ]
        present = tuple(measurement for measurement in read if measurement.values)
        if not present:
            raise OutputEmpty(format=self.name, problem="no run has values")
        notes = [*self._copies(benchmarks, names)]
        notes += self._missing(benchmarks, facts, names)
        notes += [Note(f"{metric.of} has no values: it is left out") for metric in read if not metric.values]
        return Report(present, tuple(notes), tuple(_KEYS.remainder(document)))

    def _benchmark(self, at: int, name: str, facts: dict[str, str], benchmark: dict[str, Any]) -> Measured:
        where = f"benchmarks[{at}].runs"
        runs = objects_of(benchmark.get("runs"), self.name, where)
        values = tuple(value for run in runs if (value := self._value(run, where)) is not None)
        word = facts.get("unit") or "second"
        unit = _UNITS.get(word, word)
        metric = {"s": "time", "B": "memory"}.get(unit, "count")
        conditions = {name: facts[key] for name, key in _CONDITIONS.items() if facts.get(key)}
        return Measured(metric, values, unit, Direction.LOWER, name, conditions=conditions)

    def _missing(
        self, benchmarks: list[dict[str, Any]], facts: list[dict[str, str]], names: list[str]
    ) -> Iterator[Note]:
        """That processes have no values and did not calibrate; that the unit is taken for granted."""
        for name, benchmark, of_benchmark in zip(names, benchmarks, facts, strict=True):
            runs = benchmark["runs"]
            without = [
                at for at, run in enumerate(runs) if at and not run.get("values") and not _calibrates(run)
            ]
            if without:
                text = f"{name}: {len(without)} of {len(runs)} processes have no values (runs[{without[0]}]…)"
                yield Note(text, "look whether they failed")
            if not of_benchmark.get("unit"):
                yield Note(f"{name}: no unit is given: seconds are taken, as pyperf does")

    def _copies(self, benchmarks: list[dict[str, Any]], names: list[str]) -> Iterator[Note]:
        """That two processes measured the same to the last digit: one is a copy, or was added twice."""
        for name, benchmark in zip(names, benchmarks, strict=True):
            values = [tuple(run["values"]) for run in benchmark["runs"] if _is_distinctive(run.get("values"))]
            if len(set(values)) < len(values):
                yield Note(f"{name}: two processes have the same values", "look whether one was added twice")

    def _value(self, run: dict[str, Any], where: str) -> float | None:
        """A process's mean; None for one that only calibrated."""
        numbers = run.get("values")
        if not isinstance(numbers, list) or not numbers:
            return None
        return statistics.fmean(measured(number, self.name, where) for number in numbers)


def _calibrates(run: dict[str, Any]) -> bool:
    metadata = run.get("metadata")
    return isinstance(metadata, dict) and any("calibrate" in key for key in metadata)


def _is_distinctive(values: object) -> bool:
    """Whether no two processes would measure the same."""
    if not isinstance(values, list):
        return False
    digits = {repr(value) for value in values if isinstance(value, float)}
    return sum(len(text) >= _FEWEST_CHARACTERS for text in digits) > 1


def _facts(benchmark: dict[str, Any]) -> dict[str, str]:
    metadata = benchmark.get("metadata")
    return {key: text_of(value) for key, value in metadata.items()} if isinstance(metadata, dict) else {}


FORMAT = Pyperf()
