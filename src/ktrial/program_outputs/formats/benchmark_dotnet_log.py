"""BenchmarkDotNet's log (BenchmarkDotNet.Artifacts/*.log): the results of each launch."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import fmean

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.text_lines import lines_of

_TIME = Column("time", "ns", Direction.LOWER)
_BENCHMARK = re.compile(r"// Benchmark: (?P<name>.+)")
_RESULT = re.compile(
    r"(?:Workload|Main)?Result\s+(?P<number>\d+): (?P<operations>\d+) op, (?P<time>[0-9.]+) ns, .*"
)
_ANY_RESULT = re.compile(r".*Result\s+\d+: .*")
_MEAN = re.compile(r"Mean = (?P<mean>[0-9.,]+) (?P<unit>ns|us|μs|µs|ms|s), .*\bN = (?P<values>\d+), .*")
_VERSION = re.compile(r"// BenchmarkDotNet v(?P<version>\S+)|BenchmarkDotNet v(?P<summary>[0-9][^,\s]*), .*")
_UNITS = {"ns": 1.0, "us": 1e3, "μs": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_DETAILS = "// * Detailed results *"
_FAILED = re.compile(r"Benchmarks with issues:\n(?P<names>(?:[ \t]+\S.*\n)+)")
_ROUNDING = 0.0006
"""Means are printed with three decimals, of their unit."""


@dataclass
class _Block:
    """What stands below one benchmark's heading."""

    name: str
    launches: list[list[float]] = field(default_factory=list)
    mean: float | None = None
    half_unit: float = 0.0
    values: int = 0


class BenchmarkDotNetLog:
    """A launch is a process, and one value, as in the JSON."""

    name = "benchmarkdotnet-log"
    summary = "BenchmarkDotNet's log, BenchmarkDotNet.Artifacts/NAME.log"
    columns = (_TIME,)
    remarks = (
        "for each benchmark the mean of each launch, of its results, which have to give the mean and the "
        "number of values that the log tells. Memory is not read: the JSON has it. Benchmarks with issues "
        "are told"
    )
    of_groups = False
    begins = (r"^// Validating benchmarks:",)

    def recognises(self, text: str) -> bool:
        """Whether it has a benchmark's heading, and results or the runner's end."""
        return bool(re.search(r"^// Benchmark: ", text, re.MULTILINE)) and "BenchmarkDotNet" in text

    def read(self, text: str) -> Report:
        """The launches of each benchmark. Raises OutputDamaged, OutputEmpty."""
        if (logs := text.count(_DETAILS)) > 1:
            problem = f"there are {logs} logs: it is not clear which of them counts"
            raise OutputDamaged(format=self.name, where="the whole", problem=problem)
        blocks = list(self._blocks(text))
        read = tuple(
            Measured(
                _TIME.metric,
                tuple(fmean(launch) for launch in block.launches),
                _TIME.unit,
                _TIME.direction,
                block.name,
            )
            for block in blocks
            if block.launches
        )
        without = [block.name for block in blocks if not block.launches]
        if match := _FAILED.search(text):
            without += [name.strip() for name in lines_of(match["names"])]
        failures = tuple(
            Note(f"{name} gave no result: it is left out", "the log says why")
            for name in dict.fromkeys(without)
            if not any(name.startswith(number.of) for number in read)
        )
        if not read:
            raise OutputEmpty(format=self.name, problem="no benchmark has a result")
        if len({number.of for number in read}) < len(read):
            name = next(number.of for at, number in enumerate(read) if number.of in {x.of for x in read[:at]})
            raise OutputDamaged(format=self.name, where=name, problem="it is there twice")
        launches = {len(number.values) for number in read}
        few = Note("each benchmark was launched once: one value is no spread", "[SimpleJob(launchCount: 5)]")
        versions = {match["version"] or match["summary"] for match in _VERSION.finditer(text)}
        conditions = {"version": versions.pop()} if len(versions) == 1 else {}
        return Report(read, failures, (few,) if launches == {1} else (), conditions)

    def _blocks(self, text: str) -> Iterator[_Block]:
        """Each benchmark with its results, checked against what the log computed of them."""
        log, has_details, details = text.partition(_DETAILS)
        headings = set(lines_of(details))
        block = None
        for at, line in enumerate(lines_of(log), start=1):
            if match := _BENCHMARK.fullmatch(line.strip()):
                if block:
                    yield self._checked(block)
                block = _Block(match["name"])
                if has_details and block.name not in headings:
                    self._refuse(at, f"{block.name} is not among the detailed results")
            elif match := _RESULT.fullmatch(line.strip()):
                if block is None:
                    self._refuse(at, "a result of no benchmark")
                else:
                    self._add(block, at, match)
            elif _ANY_RESULT.fullmatch(line):
                self._refuse(at, "a result that is not complete")
            elif block and block.mean is None and (match := _MEAN.fullmatch(line.strip())):
                mean, unit = match["mean"].replace(",", ""), _UNITS[match["unit"]]
                block.mean, block.values = float(mean) * unit, int(match["values"])
                block.half_unit = _ROUNDING * unit
        if block:
            yield self._checked(block)

    def _add(self, block: _Block, at: int, match: re.Match[str]) -> None:
        number, operations, time = int(match["number"]), int(match["operations"]), float(match["time"])
        if number == 1:
            block.launches.append([])
        if not block.launches or number != len(block.launches[-1]) + 1 or not operations:
            self._refuse(at, f"{block.name}: result {number} is not the next one")
        block.launches[-1].append(time / operations)

    def _checked(self, block: _Block) -> _Block:
        values = [value for launch in block.launches for value in launch]
        if not values:
            return block
        if block.mean is None or block.values != len(values):
            problem = f"{len(values)} results, where the log counts {block.values or 'none'}"
            raise OutputDamaged(format=self.name, where=block.name, problem=problem)
        if not math.isclose(fmean(values), block.mean, rel_tol=1e-6, abs_tol=block.half_unit):
            problem = f"its mean is {block.mean:g} ns, and that of its results is {fmean(values):g}"
            raise OutputDamaged(format=self.name, where=block.name, problem=problem)
        return block

    def _refuse(self, at: int, problem: str) -> None:
        raise OutputDamaged(format=self.name, where=f"line {at}", problem=problem)


FORMAT = BenchmarkDotNetLog()
