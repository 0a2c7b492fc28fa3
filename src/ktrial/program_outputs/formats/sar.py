"""sar's samples of a machine, as it prints them (sysstat 10 and later, sar.c, pr_stats.c)."""

import re
from collections.abc import Iterator
from statistics import fmean
from typing import NamedTuple

from ktrial.program_outputs import Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import told
from ktrial.program_outputs.machine_load import COLUMNS, Sample, of_sysstat, report
from ktrial.program_outputs.reading import measured, number
from ktrial.text_lines import lines_of

_FIRST = re.compile(
    r"Linux (?P<kernel>\S+) \((?P<host>[^)]*)\)\s+\S+\s+_(?P<machine>\S+)_\s+\((?P<CPUs>\d+) CPU\)"
)
_ROW = re.compile(r"(?P<when>\d\d:\d\d:\d\d(?: [AP]M)?|Average:)\s+(?P<cells>\S.*)")
_RESTART = re.compile(r"\d\d:\d\d:\d\d(?: [AP]M)?\s+LINUX RESTART\b.*")
_CPUS, _ALL = "%idle", "all"
_PARTS = ("cswch/s", "pswpin/s", "runq-sz")
"""Columns that name a table that is read, besides that of the CPUs."""
_AVERAGE = "Average:"
_LONGEST = 400
_APART = 0.02
"""Percent that a printed mean may be from that of the samples: both are rounded to a hundredth."""


class TableRow(NamedTuple):
    """One line of a table: when, what, and where it stands."""

    when: str
    facts: dict[str, str]
    line: int


class Sar:
    """The means of all samples, of all CPUs together."""

    name = "sar"
    summary = "LC_ALL=C sar -u -q -w -W 1 10"
    columns = COLUMNS
    remarks = (
        "as `sysstat`; the means that it prints are only compared with. Tables of other things are told, and "
        "other languages than English refused"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether it begins as sar's output does, and has a table of the CPUs."""
        return bool(_FIRST.match(text.lstrip())) and "%idle" in text

    def read(self, text: str) -> Report:
        """The means. Raises OutputDamaged, OutputEmpty."""
        first = _FIRST.match(text.lstrip())
        if first is None:
            raise OutputEmpty(format=self.name, problem="sar's first line is not in it")
        facts: dict[str, dict[str, str]] = {}
        places, left, means = dict[str, int](), list[str](), dict[str, str]()
        for row in self._rows(text, left):
            if row.when == _AVERAGE:
                means |= row.facts
                continue
            before = facts.setdefault(row.when, {})
            if before.keys() & row.facts.keys():
                raise OutputDamaged(format=self.name, where=f"line {row.line}", problem="it is there twice")
            before |= row.facts
            if _CPUS in row.facts:
                places[row.when] = row.line
        samples = [
            Sample(of_sysstat(facts[when], self.name, f"line {line}"), f"line {line}")
            for when, line in places.items()
        ]
        if len({frozenset(sample.numbers) for sample in samples}) > 1 or len(places) < len(facts):
            raise OutputDamaged(
                format=self.name, where="the tables", problem="a sample tells less than others"
            )
        lines = sum(1 for line in lines_of(text) if line.strip())
        restarts = sum(1 for line in lines_of(text) if _RESTART.match(line))
        notes = [*told(left, lines)]
        if restarts:
            notes.append(Note(f"the machine was started {restarts} times in between"))
        if not means:
            notes.append(Note("its means are not there: it may be cut short"))
        read = report(self.name, samples, notes)
        self._check(means, list(facts.values()))
        conditions = {**first.groupdict(), **read.conditions}
        return Report(read.measured, read.failures, read.notes, conditions)

    def _rows(self, text: str, left: list[str]) -> Iterator[TableRow]:
        """Of the tables that are read, without the `%` of their columns; other lines go to `left`."""
        names: list[str] = []
        for at, line in enumerate(lines_of(text), 1):
            match = _ROW.fullmatch(line.strip()) if len(line) < _LONGEST else None
            if not line.strip() or _FIRST.match(line) or _RESTART.match(line):
                continue
            cells = match["cells"].split() if match else []
            if match and number(cells[-1]) is None:
                names = cells if _CPUS in cells or any(part in cells for part in _PARTS) else []
                if not names:
                    left.append(line)
            elif match is None or len(cells) != len(names):
                left.append(line)
            elif _CPUS not in names or cells[names.index("CPU")] == _ALL:
                facts = {
                    name.lstrip("%") if name != _CPUS else _CPUS: cell
                    for name, cell in zip(names, cells, strict=True)
                    if name != "CPU"
                }
                if _CPUS in facts:
                    facts["idle"] = facts[_CPUS]
                yield TableRow(match["when"], facts, at)

    def _check(self, means: dict[str, str], samples: list[dict[str, str]]) -> None:
        """That the printed mean of the idle time is that of the samples."""
        if means.get(_CPUS) and samples:
            printed = measured(means[_CPUS], self.name, _AVERAGE)
            mean = fmean(measured(sample.get(_CPUS, "0"), self.name, "%idle") for sample in samples)
            if abs(printed - mean) > _APART * max(printed, 10):
                problem = f"the mean of %idle is printed as {printed:g}, and is {mean:.2f}"
                raise OutputDamaged(format=self.name, where=_AVERAGE, problem=problem)


FORMAT = Sar()
