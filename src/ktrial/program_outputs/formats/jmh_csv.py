"""JMH's CSV (-rf csv, -rf scsv): mean and error (org.openjdk.jmh.results.format.XSVResultFormat)."""

import csv
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report, Spread
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.formats.jmh import MODES
from ktrial.program_outputs.lines import told
from ktrial.program_outputs.reading import measured
from ktrial.text_lines import lines_of

_SAMPLED = "sample"
_PERCENTILES = {
    share: Column(f"{MODES[_SAMPLED].metric} {percent}", "us/op", Direction.LOWER)
    for share, percent in {"0.50": "p50", "0.90": "p90", "0.99": "p99", "0.999": "p99.9"}.items()
}
_HEADING = re.compile(
    r'"?Benchmark"?(?P<mark>[,;\t])"?Mode"?(?P=mark)"?Threads"?(?P=mark)"?Samples"?(?P=mark)"?Score"?(?P=mark)'
    r'"?Score[ .]Error[ .][(.]99[.,]9[%.][).]"?(?P=mark)"?Unit"?(?:(?P=mark)"?Param(?:: |\.\.)[^"]+"?)*'
)
"""R writes a point for what is no letter."""
_PARAMETER = re.compile(r"^Param(?:: |\.\.)")
_FIXED = 7
_PERCENTILE = re.compile(r"(?P<of>[^:]+):(?:[^:]*·)?p(?P<share>[01]\.\d+)")
_TIMED = re.compile(r"ops/(?:ns|us|ms|s|min|hr|day)|(?:ns|us|ms|s|min|hr|day)/op")
_DECIMALS = 6
_TWO_SIDED = 0.9995


@dataclass(frozen=True)
class _ScoreRow:
    """One result, as its line tells it."""

    name: str
    mode: str
    threads: str
    samples: int
    score: float
    error: float
    unit: str
    parameters: dict[str, str]
    where: str


class JmhCsv:
    """The mean of each benchmark's iterations, and its error as what it spreads by."""

    name = "jmh-csv"
    summary = "JMH's CSV (-rf csv or -rf scsv, -rff FILE)"
    columns = (*MODES.values(), *_PERCENTILES.values())
    remarks = (
        "for each benchmark, with its parameters, the score; Score Error gives its standard error, not of "
        "sampled times. Forks are not told apart: `-rf json` does. Rows of profilers are not read, and told"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether it has JMH's heading."""
        return _marked(text) and any(_HEADING.fullmatch(line.strip()) for line in lines_of(text))

    def read(self, text: str) -> Report:
        """A metric for each benchmark. Raises OutputDamaged, OutputEmpty."""
        if not _marked(text):
            raise OutputEmpty(format=self.name, problem="JMH's heading is not in it")
        lines = [line.strip() for line in lines_of(text)]
        at, heading = next(
            ((at, match) for at, line in enumerate(lines) if (match := _HEADING.fullmatch(line))), (0, None)
        )
        if heading is None:
            raise OutputEmpty(format=self.name, problem="JMH's heading is not in it")
        end = next((end for end in range(at, len(lines)) if not lines[end]), len(lines))
        names = self._fields(lines[at], heading["mark"])
        rows = [
            self._row(self._fields(lines[number], heading["mark"]), names, f"line {number + 1}")
            for number in range(at + 1, end)
        ]
        if not rows:
            raise OutputEmpty(format=self.name, problem="there is no benchmark in it")
        read = [metric for row in rows for metric in self._measured(row)]
        keys = [(metric.of, metric.metric) for metric in read]
        if twice := next((of for of, metric in keys if keys.count((of, metric)) > 1), ""):
            raise OutputDamaged(format=self.name, where=twice, problem="it is there twice")
        if not read:
            raise OutputEmpty(format=self.name, problem="no row has a time or a rate")
        others = [line for line in (*lines[:at], *lines[end:]) if line]
        threads = {row.threads for row in rows}
        return Report(
            tuple(read),
            notes=(*_notes(rows), *told(others, sum(bool(line) for line in lines))),
            conditions={"threads": threads.pop()} if len(threads) == 1 else {},
        )

    def _fields(self, line: str, mark: str) -> list[str]:
        return next(csv.reader([line], delimiter=mark), [])

    def _row(self, fields: list[str], names: list[str], where: str) -> _ScoreRow:
        if len(fields) != len(names):
            problem = f"it has {len(fields)} fields, not {len(names)}"
            raise OutputDamaged(format=self.name, where=where, problem=problem)
        name, mode, threads, samples, score, error, unit = fields[:_FIXED]
        if not name or mode not in MODES or not unit:
            raise OutputDamaged(
                format=self.name, where=where, problem=f"its mode is {mode!r}, its unit {unit!r}"
            )
        return _ScoreRow(
            name=name,
            mode=mode,
            threads=f"{measured(threads, self.name, where):g}",
            samples=int(measured(samples, self.name, where)),
            score=measured(_with_point(score), self.name, where),
            error=math.nan if error == "NaN" else measured(_with_point(error), self.name, where),
            unit=unit,
            parameters={
                _PARAMETER.sub("", name): level
                for name, level in zip(names[_FIXED:], fields[_FIXED:], strict=True)
                if level
            },
            where=where,
        )

    def _measured(self, row: _ScoreRow) -> Iterator[Measured]:
        """The row's metric; none of a percentile between the known ones, and of a profiler."""
        if not _TIMED.fullmatch(row.unit):
            return
        name, column = row.name, MODES[row.mode]
        if percentile := _PERCENTILE.fullmatch(row.name):
            if percentile["share"] not in _PERCENTILES:
                return
            name, column = percentile["of"], _PERCENTILES[percentile["share"]]
        of = " ".join((name, *(f"{key}={level}" for key, level in row.parameters.items())))
        if row.mode == "thrpt" and not row.unit.startswith("ops/"):
            raise OutputDamaged(format=self.name, where=row.where, problem=f"its unit {row.unit} is no rate")
        direction = Direction.HIGHER if row.unit.startswith("ops/") else Direction.LOWER
        yield Measured(column.metric, (row.score,), row.unit, direction, of, spread=_spread(row))


def _marked(text: str) -> bool:
    return "Score Error" in text or "Score.Error" in text


def _with_point(text: str) -> str:
    """Java writes numbers as its language does, always with six decimals."""
    return re.sub(rf"^(\d+),(\d{{{_DECIMALS}}})$", r"\1.\2", text)


def _spread(row: _ScoreRow) -> Spread | None:
    """The standard error: half the interval in parts of Student's t (AbstractStatistics.getMeanErrorAt)."""
    if row.mode == _SAMPLED or math.isnan(row.error) or row.samples < 2:
        return None
    from scipy.special import stdtrit

    t = float(stdtrit(row.samples - 1, _TWO_SIDED))
    half_unit = 0.5 * 10**-_DECIMALS
    return Spread(row.samples, row.error / t, half_unit, half_unit / t)


def _notes(rows: list[_ScoreRow]) -> Iterator[Note]:
    yield Note(
        "errors take the iterations of all JVMs for independent: they may be too small",
        "-rf json tells forks apart",
    )
    profilers = [row.name.rpartition(":")[2] for row in rows if not _TIMED.fullmatch(row.unit)]
    if profilers:
        yield Note(f"{len(profilers)} rows of profilers are not read: {profilers[0]}")


FORMAT = JmhCsv()
