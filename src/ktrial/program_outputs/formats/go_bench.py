"""go test -bench, in the text format that benchstat reads (golang.org/design/14313-benchmark-format)."""

import re
from collections.abc import Iterator

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import LinePatterns
from ktrial.program_outputs.reading import measured
from ktrial.program_outputs.units import direction_of
from ktrial.text_lines import lines_of

_NAMES = {
    "ns/op": Column("time", "ns/op", Direction.LOWER),
    "MB/s": Column("throughput", "MB/s", Direction.HIGHER),
    "B/op": Column("memory", "B/op", Direction.LOWER),
    "allocs/op": Column("allocations", "allocs/op", Direction.LOWER),
}
_RESULT = re.compile(r"(?P<name>Benchmark\S*)\s+[0-9]+(?P<numbers>(?:\s+\S+ \S+)+)")
_PACKAGE = re.compile(r"pkg: (\S+)")
_LINES = LinePatterns(
    measurements=(_RESULT.pattern,),
    conditions=(
        r"goos: (?P<system>\S+)",
        r"goarch: (?P<machine>\S+)",
        r"cpu: (?P<CPU>.+)",
        r"commit: (?P<commit>\S+)",
        r"toolchain: (?P<toolchain>\S+)",
        r"GOMAXPROCS: (?P<CPUs>\S+)",
    ),
    failures=(r"--- FAIL: .*|\s*--- FAIL: .*|FAIL(?:\s.*)?|panic: .*",),
    decoration=(r"pkg: .*|PASS|ok\s+\S+\s+\S+|\?\s+\S+\s+\[no test files\]|Benchmark\S*|testing: .*",),
)


class GoBench:
    """Each benchmark's numbers, one a line."""

    name = "go-bench"
    summary = "go test -bench, with -count or without, on standard output"
    columns = tuple(_NAMES.values())
    remarks = (
        "each line is one value; units of the benchmark's own are read where they tell which way is better. "
        "Benchmarks of several packages have the package before their names. A run that failed is refused"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether a line is a result with its time."""
        return bool(re.search(r"^Benchmark\S*\s+[0-9]+\s+[0-9.e+]+ ns/op", text, re.MULTILINE))

    def read(self, text: str) -> Report:
        """The metrics of each benchmark. Raises OutputDamaged, OutputEmpty."""
        if failure := _LINES.failure_of(text):
            raise OutputDamaged(format=self.name, where="the whole", problem=f"it failed: {failure.strip()}")
        values: dict[tuple[str, str], list[float]] = {}
        several = len(set(_PACKAGE.findall(text))) > 1
        package = ""
        for line in lines_of(text):
            if match := _PACKAGE.fullmatch(line):
                package = f"{match[1]}." if several else ""
            elif match := _RESULT.fullmatch(line.rstrip()):
                for unit, value in self._numbers(match["name"], match["numbers"]):
                    values.setdefault((f"{package}{match['name']}", unit), []).append(value)
        known = {unit: _column(unit) for _, unit in values}
        read = tuple(
            Measured(column.metric, tuple(numbers), unit, column.direction, name)
            for (name, unit), numbers in values.items()
            if (column := known[unit]) is not None
        )
        if not read:
            raise OutputEmpty(format=self.name, problem="no line has a result")
        left = [unit for unit, column in known.items() if column is None]
        notes = [Note(f"which way is better of {unit} is not known: it is left out") for unit in left]
        counts = {len(numbers) for numbers in values.values()}
        if len(counts) > 1:
            notes.append(
                Note(f"benchmarks have from {min(counts)} to {max(counts)} values: some may be missing")
            )
        return Report(read, notes=(*_LINES.remainder(text), *notes), conditions=_LINES.conditions_of(text))

    def _numbers(self, name: str, text: str) -> Iterator[tuple[str, float]]:
        words = text.split()
        for value, unit in zip(words[::2], words[1::2], strict=True):
            yield unit, measured(value, self.name, f"{name}, {unit}")


def _column(unit: str) -> Column | None:
    direction = direction_of(unit)
    return _NAMES.get(unit) or (Column(unit, unit, direction) if direction else None)


FORMAT = GoBench()
