"""MMTests' comparison of kernels (compare-kernels.sh, compare-mmtests.pl): means by kernel."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report, distinct
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import told
from ktrial.program_outputs.reading import measured
from ktrial.program_outputs.units import unit_named
from ktrial.text_lines import lines_of

_MEANS = {"Amean": Direction.LOWER, "Hmean": Direction.HIGHER}
_CELL = r"-?[0-9.]+ [(*] *-?(?:[0-9.]+|nan|inf)%[)*]"
_ROW = re.compile(rf" *(?P<statistic>\S+)(?: +(?P<label>\S.*?))? +(?P<cells>{_CELL}(?: +{_CELL})*)")
_NUMBER = re.compile(r"(?P<value>-?[0-9.]+) [(*] *(?P<percent>-?(?:[0-9.]+|nan|inf))%[)*]")
_SPREADS = re.compile(
    r"Min|Max|Stddev|StdErr|CoeffVar|Range|B[AH]mean-\d+|Median|[AH]mean-\d+|\d+%-.*|[1-3]st-.*"
)
_MONITOR = re.compile(r" *(?:Duration|Ops) +\S.*? +(?P<values>[0-9.]+(?: +[0-9.]+)*)")
_LEAST_PERCENT = 0.05
_HEADINGS = 2
_INDENTED = " " * 8
_LONGEST = 1000


@dataclass(frozen=True)
class _RowOfKernels:
    """A row: what it is of, and each column's number and change against the first."""

    statistic: str
    label: str
    values: tuple[str, ...]
    percents: tuple[str, ...]
    headings: tuple[tuple[str, ...], ...]
    title: str
    line: int

    @property
    def name(self) -> str:
        return f"{self.statistic} {self.label}".strip()


class Mmtests:
    """The mean of each subtest for each kernel."""

    name = "mmtests"
    summary = "MMTests: compare-kernels.sh or bin/compare-mmtests.pl, its text"
    columns = (Column("Amean …", "", Direction.LOWER), Column("Hmean …", "", Direction.HIGHER))
    remarks = (
        "the means, by kernel; the changes beside them tell which way is better, and have to fit. Deviations "
        "do not say of how many runs they are, and are not read; nor are monitors' rows. "
        "Directories of runs (work/log) are read log by log, each by its format"
    )
    of_groups = True

    def recognises(self, text: str) -> bool:
        """Whether a row is one of MMTests' comparisons."""
        return "%)" in text and any(
            (match := _ROW.fullmatch(line)) and _is_known(match["statistic"]) for line in _lines(text)
        )

    def read(self, text: str) -> Report:
        """A metric for each row, by kernel. Raises OutputDamaged, OutputEmpty."""
        if "%)" not in text:
            raise OutputEmpty(format=self.name, problem="there is no row with changes in percent")
        rows, left, monitors = self._rows(_lines(text))
        means = [row for row in rows if not _SPREADS.fullmatch(row.statistic)]
        if not means:
            raise OutputEmpty(format=self.name, problem="there is no mean in it")
        directions = {
            row.statistic: self._direction([other for other in means if other.statistic == row.statistic])
            for row in means
        }
        named = [row.name for row in means]
        names = [f"{row.title}: {row.name}" if named.count(row.name) > 1 else row.name for row in means]
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise OutputDamaged(format=self.name, where=twice, problem="it is there twice")
        read = tuple(
            self._measured(row, name, kernel, value, directions[row.statistic])
            for row, name in zip(means, names, strict=True)
            for kernel, value in zip(_kernels(row.headings), row.values, strict=True)
        )
        notes = (*_notes(rows, monitors), *told(left, len(rows) + len(left)))
        return Report(read, notes=notes)

    def _rows(self, lines: list[str]) -> tuple[list[_RowOfKernels], list[str], list[tuple[str, ...]]]:
        """Rows; lines among them that are none; monitors' rows, each as the names of its columns."""
        rows, left, monitors = list[_RowOfKernels](), list[str](), list[tuple[str, ...]]()
        above = list[str]()
        headings: tuple[tuple[str, ...], ...] = ()
        title = ""
        for at, line in enumerate(lines):
            if match := _ROW.fullmatch(line):
                cells = list(_NUMBER.finditer(match["cells"]))
                if above or not rows or len(cells) != len(rows[-1].values):
                    headings, title, others = _headings(above, len(cells))
                    if not headings:
                        problem = f"no line above it names its {len(cells)} columns"
                        raise OutputDamaged(format=self.name, where=f"line {at + 1}", problem=problem)
                    left += [*others] if rows else []
                rows.append(
                    _RowOfKernels(
                        match["statistic"],
                        match["label"] or "",
                        tuple(cell["value"] for cell in cells),
                        tuple(cell["percent"] for cell in cells),
                        headings,
                        title,
                        at + 1,
                    )
                )
                above = []
            elif match := _MONITOR.fullmatch(line):
                names, _, _ = _headings(above, len(match["values"].split()))
                monitors.append(tuple(_kernels(names)))
                above = []
            elif line:
                above.append(line)
        return rows, left + [line for line in above if "%" in line], monitors

    def _direction(self, rows: list[_RowOfKernels]) -> Direction:
        """Which way is better: of these signs of the changes only one fits. Raises OutputDamaged."""
        ways = {way for row in rows for way in self._ways(row)}
        if len(ways) > 1:
            problem = "its changes do not have the same sign as those of other rows"
            raise OutputDamaged(format=self.name, where=rows[0].name, problem=problem)
        way = next(iter(ways), _MEANS.get(rows[0].statistic))
        if way is None:
            problem = "nothing changed, so that nothing tells which way is better"
            raise OutputDamaged(format=self.name, where=rows[0].name, problem=problem)
        return way

    def _ways(self, row: _RowOfKernels) -> Iterator[Direction]:
        first, *others = (measured(value, self.name, f"line {row.line}") for value in row.values)
        half_unit = 0.5 * 10.0 ** -len(row.values[0].partition(".")[2])
        for value, text in zip(others, row.percents[1:], strict=True):
            if not first or text.lstrip("-") in ("nan", "inf"):
                continue
            percent, change = float(text), 100 * (value - first) / first
            slack = 0.011 + 100 * half_unit * (1 + value / first) / first
            if abs(abs(percent) - abs(change)) > slack:
                problem = f"{value:g} is not {percent:g} % from {first:g}"
                raise OutputDamaged(format=self.name, where=f"line {row.line}", problem=problem)
            if abs(percent) >= max(_LEAST_PERCENT, 2 * slack):
                yield Direction.HIGHER if percent * change > 0 else Direction.LOWER

    def _measured(self, row: _RowOfKernels, name: str, kernel: str, value: str, way: Direction) -> Measured:
        unit = unit_named(row.statistic)
        number = measured(value, self.name, f"line {row.line}")
        return Measured(name, (number,), unit.symbol if unit else "", way, kernel)


def _headings(above: Sequence[str], columns: int) -> tuple[tuple[tuple[str, ...], ...], str, list[str]]:
    """The names of the columns, in one or two lines; the title; lines that are neither."""
    names, rest = list[tuple[str, ...]](), list(above)
    while (
        rest
        and len(names) < _HEADINGS
        and rest[-1].startswith(_INDENTED)
        and columns <= len(rest[-1].rstrip(" /").split()) <= columns + 1
    ):
        words = tuple(rest.pop().rstrip(" /").split()[-columns:])
        if words not in names:
            names.insert(0, words)
    title = rest.pop() if rest else ""
    return tuple(names), title.strip("[]: "), rest


def _is_known(statistic: str) -> bool:
    return statistic in _MEANS or _SPREADS.fullmatch(statistic) is not None


def _kernels(headings: tuple[tuple[str, ...], ...]) -> list[str]:
    """Names that were too long stand in two lines, broken at a hyphen."""
    return distinct(["-".join(parts) for parts in zip(*headings, strict=True)])


def _lines(text: str) -> list[str]:
    return [line.rstrip() if len(line) < _LONGEST else "" for line in lines_of(text)]


def _notes(rows: list[_RowOfKernels], monitors: list[tuple[str, ...]]) -> Iterator[Note]:
    yield Note("of how many runs the means are is not told", "give the logs of the runs, if they are there")
    columns = {" ".join(_kernels(row.headings)) for row in rows} | {
        " ".join(names) for names in monitors if names
    }
    if len(columns) > 1:
        yield Note(f"tables name their columns differently: {'; '.join(sorted(columns)[:2])}")
    if monitors:
        yield Note(f"{len(monitors)} rows of monitors are not read")


FORMAT = Mmtests()
