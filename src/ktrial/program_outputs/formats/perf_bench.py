"""perf bench, its report for people (tools/perf/bench of the kernel's sources)."""

import math
import re
from collections.abc import Iterator

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import LinePatterns
from ktrial.program_outputs.reading import measured
from ktrial.program_outputs.units import converted
from ktrial.text_lines import lines_of

_HIGHER, _LOWER = Direction.HIGHER, Direction.LOWER
_TIME = Column("time", "s", _LOWER)
_OPERATION = Column("operation", "µs", _LOWER)
_RATE = Column("operations", "1/s", _HIGHER)
_THROUGHPUT = Column("throughput", "GB/s", _HIGHER)
_LATENCY = Column("latency", "ms", _LOWER)
_TITLE = re.compile(r"# Running '?(?P<name>[\w-]+/[\w-]+)'? benchmark(?:\.\.\.|:)")
_FUNCTION = re.compile(r"# function '(?P<name>.+?)' \(.*\)")
_NUMBERS = (
    (_TIME, re.compile(r"\s*Total time: +([0-9.]+) \[sec\]")),
    (_OPERATION, re.compile(r"\s*([0-9.]+) usecs/op")),
    (_RATE, re.compile(r"\s*([0-9.]+) ops/sec")),
    (_RATE, re.compile(r"Averaged ([0-9.]+) operations/sec \(\+- +[0-9.]+%\)(?:, total secs = \d+)?")),
    (_THROUGHPUT, re.compile(r"\s*([0-9.]+) ([KMG]?B/[sS]ec)(?: \(with prefault\))?")),
    (_LATENCY, re.compile(r"(?:Wokeup|Requeued) \d+ of \d+ threads in +([0-9.]+) ms.*")),
    (_LATENCY, re.compile(r"\s*Average \S+ (?:injection|synthesis) took: +([0-9.]+) (usec|msec).*")),
)
_LINES = LinePatterns(
    measurements=tuple(pattern.pattern for _, pattern in _NUMBERS),
    conditions=(
        _TITLE.pattern.replace("(?P<name>", "(?:"),
        r"# (?P<processes>\d+) sender and receiver (?:processes|threads) per group",
        r"# (?P<groups>\d+) groups == \d+ (?:processes|threads) run",
        r"# Executed (?P<operations>[\d,]+) .*",
        r"# Copying (?P<size>\S+) [bB]ytes .*",
        r"Run summary \[PID \d+\]: (?P<threads>\d+) threads, .*",
    ),
    decoration=(
        _FUNCTION.pattern.replace("(?P<name>", "(?:"),
        r"\[thread +\d+\] .*|\[Run \d+\]: .*|Routine .*|# \S+ function .*",
    ),
)


class PerfBench:
    """The numbers of each benchmark, and of each function where it has several."""

    name = "perf-bench"
    summary = "perf bench COLLECTION BENCHMARK, its report on standard output"
    columns = tuple(dict.fromkeys(column for column, _ in _NUMBERS))
    remarks = (
        "times, rates and throughputs of each benchmark; a rate that contradicts the time of an operation is "
        "refused. Numbers of 0 are left out, and told"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether it has what only perf bench prints."""
        return "# Running " in text and any(_TITLE.fullmatch(line.strip()) for line in lines_of(text))

    def read(self, text: str) -> Report:
        """The numbers. Raises OutputDamaged, OutputEmpty."""
        if "# Running " not in text:
            raise OutputEmpty(format=self.name, problem="no benchmark is named in it")
        values: dict[tuple[str, Column], float] = {}
        benchmark, function = "", ""
        for line in lines_of(text):
            if match := _TITLE.fullmatch(line.strip()):
                if any(of.split(" ")[0] == match["name"] for of, _ in values):
                    raise OutputDamaged(format=self.name, where=match["name"], problem="it is there twice")
                self._check_whole(benchmark, function, values)
                benchmark, function = match["name"], ""
            elif match := _FUNCTION.fullmatch(line.strip()):
                if function:
                    self._check_whole(benchmark, function, values)
                function = f" {match['name']}"
            for column, value in self._numbers(line.rstrip()):
                key = f"{benchmark}{function}", column
                if not benchmark or key in values:
                    problem = f"its {column.metric} is there twice" if benchmark else "no benchmark is named"
                    raise OutputDamaged(format=self.name, where=key[0] or line.strip(), problem=problem)
                values[key] = value
        self._check_whole(benchmark, function, values)
        good = {key: value for key, value in values.items() if value}
        if not good:
            raise OutputEmpty(format=self.name, problem="no benchmark printed a number above 0")
        self._check(good)
        read = (
            Measured(column.metric, (value,), column.unit, column.direction, of)
            for (of, column), value in good.items()
        )
        zeros = [Note(f"{of}: its {column.metric} is printed as 0") for of, column in values.keys() - good]
        notes = (*_LINES.remainder(text), *zeros)
        return Report(tuple(read), notes=notes, conditions=_LINES.conditions_of(text))

    def _numbers(self, line: str) -> Iterator[tuple[Column, float]]:
        for column, pattern in _NUMBERS:
            if match := pattern.fullmatch(line):
                value = measured(match[1], self.name, column.metric)
                unit = match[2].lower().replace("b/sec", "B/s") if pattern.groups > 1 else ""
                named = unit[0].upper() + unit[1:] if column is _THROUGHPUT else unit
                yield column, converted(value, named, column.unit) if named else value

    def _check_whole(self, benchmark: str, function: str, values: dict[tuple[str, Column], float]) -> None:
        """That the part that ends here has numbers, and both of a pair."""
        of = f"{benchmark}{function}"
        has = {column for name, column in values if name == of}
        nameless = function and any(name == benchmark for name, _ in values)
        if benchmark and (not has or nameless or (_OPERATION in has and _RATE not in has)):
            problem = "a number without its function's name" if nameless else "a number is missing"
            raise OutputDamaged(format=self.name, where=of, problem=problem)

    def _check(self, values: dict[tuple[str, Column], float]) -> None:
        """That operations a second are as many as the time of one allows."""
        for (of, column), value in values.items():
            rate = values.get((of, _RATE))
            if (
                column is _OPERATION
                and rate
                and not math.isclose(1e6 / value, rate, rel_tol=0.001, abs_tol=1)
            ):
                problem = f"{rate:g} operations a second do not take {value:g} µs each"
                raise OutputDamaged(format=self.name, where=of, problem=problem)


FORMAT = PerfBench()
