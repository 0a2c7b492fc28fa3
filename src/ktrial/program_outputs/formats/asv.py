"""asv's results, one file a commit and environment (asv.readthedocs.io/en/stable/dev.html)."""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.keys import KeyPatterns
from ktrial.program_outputs.reading import conditions_of, finite, has_keys, json_report, measured, object_of

_TIME = Column("time", "s", Direction.LOWER)
_MEMORY = Column("memory", "B", Direction.LOWER)
_PEAK = Column("peak memory", "B", Direction.LOWER)
_KINDS = {"time": _TIME, "timeraw": _TIME, "mem": _MEMORY, "peakmem": _PEAK}
"""What a name begins with behind its last dot; asv keeps other units in another file."""
_CONDITIONS = {
    "host": "params.machine",
    "CPU": "params.cpu",
    "system": "params.os",
    "RAM": "params.ram",
    "Python": "python",
    "environment": "env_name",
    "commit": "commit_hash",
    "date": "date",
}
_VERSIONS = (1, 2)
_KEYS = KeyPatterns(
    measurements=(
        "results/**",
        "result_columns",
    ),
    conditions=(
        "params/*",
        "requirements/*",
        "env_vars/*",
        "{python,env_name}",
    ),
    decoration=(
        "{version,commit_hash,date}",
        "{duration,durations,started_at,ended_at,benchmark_version}/*",
        "profiles/**",
    ),
)


class Asv:
    """The median that asv keeps of each benchmark and each combination of its parameters."""

    name = "asv"
    summary = "asv run, its results/MACHINE/COMMIT-ENVIRONMENT.json"
    columns = (_TIME, _MEMORY, _PEAK)
    remarks = (
        "the result of each benchmark and combination of parameters, which is one value however many samples "
        "it has. A result of nothing failed, NaN was skipped: both are told; so are `track_` benchmarks, "
        "whose units stand in benchmarks.json"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether it has what only asv writes."""
        return has_keys(text, "commit_hash", "results", "requirements", "python")

    def read(self, text: str) -> Report:
        """A metric for each benchmark. Raises OutputDamaged, OutputEmpty."""
        document = json_report(text, self.name)
        if document.get("version") not in _VERSIONS:
            problem = f"it is {document.get('version')!r}, neither 1 nor 2"
            raise OutputDamaged(format=self.name, where="version", problem=problem)
        results = object_of(document.get("results"), self.name, "results")
        read, failed, skipped, unknown = [], 0, 0, []
        for name, entry in results.items():
            column = _KINDS.get(name.rpartition(".")[2].partition("_")[0])
            if column is None:
                unknown.append(name)
                continue
            for of, value in self._values(name, self._fields(name, entry, document)):
                if value is None:
                    failed += 1
                elif isinstance(value, float) and math.isnan(value):
                    skipped += 1
                else:
                    number = measured(value, self.name, of)
                    read.append(Measured(column.metric, (number,), column.unit, column.direction, of))
        if not read:
            raise OutputEmpty(format=self.name, problem=_why_nothing(failed, skipped, len(unknown)))
        failures = (Note(f"{failed} results failed; they are left out"),) if failed else ()
        notes = (*_notes(skipped, unknown), *_KEYS.remainder(document))
        return Report(tuple(read), failures, notes, _conditions(document))

    def _fields(self, name: str, entry: Any, document: dict[str, Any]) -> dict[str, Any]:
        """`result`, `params` and more; version 1 has a bare number where there are no parameters."""
        columns = document.get("result_columns")
        if isinstance(entry, list) and isinstance(columns, list):
            if len(entry) > len(columns):
                problem = f"it has {len(entry)} fields, and result_columns {len(columns)}"
                raise OutputDamaged(format=self.name, where=name, problem=problem)
            return dict(zip(columns, entry, strict=False))
        return entry if isinstance(entry, dict) else {"result": entry}

    def _values(self, name: str, fields: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """The result for each combination of parameters; nothing for one that failed."""
        axes = fields.get("params") or []
        if not isinstance(axes, list) or not all(isinstance(axis, list) for axis in axes):
            raise OutputDamaged(format=self.name, where=f"{name}, params", problem="lists were expected")
        combinations = list(product(*axes))
        result = fields.get("result")
        values = (
            result if isinstance(result, list) else [result] * (len(combinations) if result is None else 1)
        )
        if len(values) != len(combinations):
            problem = f"it has {len(values)} results for {len(combinations)} combinations of parameters"
            raise OutputDamaged(format=self.name, where=name, problem=problem)
        quartiles = [fields.get(key) for key in ("stats_q_25", "stats_q_75")]
        for at, (combination, value) in enumerate(zip(combinations, values, strict=True)):
            of = f"{name}({', '.join(map(str, combination))})" if combination else name
            self._check(of, value, *(_at(column, at) for column in quartiles))
            yield of, value

    def _check(self, of: str, value: Any, low: float | None, high: float | None) -> None:
        """That a median lies between its quartiles, of which asv keeps five digits."""
        number = finite(value)
        if number is None or low is None or high is None:
            return
        slack = 1e-4 * abs(number)
        if not low - slack <= number <= high + slack:
            problem = f"its result is {number:g}, and its quartiles are {low:g} and {high:g}"
            raise OutputDamaged(format=self.name, where=of, problem=problem)


def _at(column: Any, at: int) -> float | None:
    return finite(column[at]) if isinstance(column, list) and at < len(column) else None


def _conditions(document: dict[str, Any]) -> dict[str, str]:
    requirements = document.get("requirements")
    packages = requirements if isinstance(requirements, dict) else {}
    told = {
        f"package {name}": str(version) for name, version in packages.items() if version not in (None, "")
    }
    return conditions_of(document, _CONDITIONS) | told


def _why_nothing(failed: int, skipped: int, unknown: int) -> str:
    """The reason that no result is there."""
    if unknown or not failed + skipped:
        return "no benchmark has a result whose unit is known"
    counts = ((failed, "failed"), (skipped, "skipped"))
    return f"no benchmark has a result: {', '.join(f'{count} {what}' for count, what in counts if count)}"


def _notes(skipped: int, unknown: list[str]) -> Iterator[Note]:
    if skipped:
        yield Note(f"{skipped} results were skipped; they are left out")
    if unknown:
        text = f"{len(unknown)} benchmarks have a unit that this file does not tell: {unknown[0]}"
        yield Note(f"{text}; they are left out")


FORMAT = Asv()
