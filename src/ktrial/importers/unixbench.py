"""UnixBench: the report that `Run` prints, and the log of all passes that it writes beside it."""

import math
import re
from dataclasses import dataclass, field
from datetime import datetime

from ktrial.importers.errors import MeasurementsDamaged, NoMeasurements
from ktrial.importers.numbers import number, rounded
from ktrial.importers.protocol import SourceFile
from ktrial.model.imported import Family, Group, Imported, IndexRow, Rounded, Score
from ktrial.model.unixbench_index import BASELINES, SCORE
from ktrial.model.workload import Direction

_HEADING = re.compile(r"^System Benchmarks (?:Index Values|Partial Index) +BASELINE +RESULT", re.MULTILINE)
_START = re.compile(r"^Benchmark Run: \w{3} (\w{3} [0-9]{2} [0-9]{4} [0-9:]{8}) -", re.MULTILINE)
_COPIES = re.compile(r"running ([0-9]{1,6}) parallel cop(?:y|ies) of tests")
_INDEX = re.compile(r"^(\S.{0,60}?) +([0-9.]{1,20}|---) +([0-9.]{1,20}) +([0-9.]{1,20}|---) *$")
_TOTAL = re.compile(r"^System Benchmarks Index Score( \(Partial Only\))? +([0-9.]{1,20}) *$")
_TEST = re.compile(r"^(\S.{0,60}?) -- ([0-9]{1,6}) cop(?:y|ies)$")
_FACT = re.compile(r"^# (COUNT0|COUNT1|TIME|elapsed): (\S{1,40})$")
_ONE_COPY = 1
_LONGEST_LINE = 300


@dataclass
class _Run:
    """The tests with so many copies at once."""

    rows: dict[str, tuple[Rounded, Rounded, Rounded]] = field(default_factory=dict)
    """Test → baseline, result, index."""
    score: Rounded | None = None
    partial: bool = False


class UnixBench:
    """One report or log is one run of its group: passes inside are averaged, as UnixBench does."""

    name = "unixbench"
    summary = "UnixBench: the report that Run prints, or its log of all passes"
    one_group = True

    def recognises(self, file: SourceFile) -> bool:
        """Whether it has the heading of the index, or the passes of a log."""
        report = _HEADING.search(file.text) is not None
        return report or ("#### Pass 1" in file.text and "# COUNT0:" in file.text)

    def read(self, file: SourceFile) -> Imported:
        """A family for each test, and one for the score; with several copies, apart."""
        runs = _log(file, self.name) if "#### Pass" in file.text else _report(file.text)
        runs = {copies: run for copies, run in runs.items() if run.rows}
        if not runs:
            problem = "no line has baseline, result and index"
            raise NoMeasurements(file=file.path, format=self.name, problem=problem)
        return Imported(
            source=file.name,
            format=self.name,
            families=tuple(family for item in runs.items() for family in _families(file, *item)),
            index_rows=tuple(row for item in runs.items() for row in _index_rows(file, *item)),
            scores=tuple(score for item in runs.items() for score in _scores(file, *item)),
            started=_started(file.text),
        )


def _started(text: str) -> datetime | None:
    """When the run began; None where the file does not say."""
    found = _START.search(text)
    try:
        return datetime.strptime(found[1], "%b %d %Y %H:%M:%S") if found else None
    except ValueError:
        return None


def _report(text: str) -> dict[int, _Run]:
    """Copies → what was printed of them. `Non-Index` tests and `---` cells are no part of the index."""
    runs: dict[int, _Run] = {}
    copies = _ONE_COPY
    for line in text.splitlines():
        if len(line) > _LONGEST_LINE:
            continue
        line = line.rstrip()
        if found := _COPIES.search(line):
            copies = int(found[1])
        elif found := _TOTAL.match(line):
            run = runs.setdefault(copies, _Run())
            run.score, run.partial = _printed(found[2]), bool(found[1])
        elif (found := _INDEX.match(line)) and found[1] in BASELINES:
            cells = [_printed(found[at]) for at in (2, 3, 4)]
            if cells[0] and cells[1] and cells[2]:
                runs.setdefault(copies, _Run()).rows[found[1]] = (cells[0], cells[1], cells[2])
    return runs


def _printed(text: str) -> Rounded | None:
    """A cell; UnixBench prints one decimal."""
    value = number(text)
    return rounded(value, 1) if value is not None and value > 0 else None


def _log(file: SourceFile, format: str) -> dict[int, _Run]:
    """Copies → results, recomputed from the passes."""
    runs: dict[int, _Run] = {}
    for (test, copies), passes in _passes(file, format).items():
        if test in BASELINES:
            result = score_of(passes)
            index = 10 * result / BASELINES[test]
            exact = [Rounded(value=each) for each in (BASELINES[test], result, index)]
            runs.setdefault(copies, _Run()).rows[test] = (exact[0], exact[1], exact[2])
    return runs


_Pass = list[dict[str, float]]
"""What each copy counted."""


def _passes(file: SourceFile, format: str) -> dict[tuple[str, int], list[_Pass]]:
    """Test and copies → its passes. A copy's facts end with an empty line."""
    found: dict[tuple[str, int], list[_Pass]] = {}
    current: list[_Pass] | None = None
    copy: dict[str, float] = {}
    for at, line in enumerate([*file.text.splitlines(), ""], start=1):
        if heading := _TEST.match(line):
            current = found.setdefault((heading[1], int(heading[2])), [])
        elif line.startswith("#### Pass ") and current is not None:
            current.append([])
        elif fact := _FACT.match(line):
            value = number(fact[2])
            if value is None or value < 0:
                where, problem = f"line {at}", f"{fact[1]} is {fact[2]!r}, not a number"
                raise MeasurementsDamaged(file=file.path, format=format, where=where, problem=problem)
            copy[fact[1]] = value
        elif not line.strip() and copy:
            if current and "COUNT0" in copy:
                current[-1].append(copy)
            copy = {}
    return {key: whole for key, passes in found.items() if (whole := [each for each in passes if each])}


def score_of(passes: list[_Pass]) -> float:
    """UnixBench's result of a test (combinePassResults in Run).

    Counts are summed over copies and times averaged; the lowest third of the passes (rounded down) is
    dropped; the result is the geometric mean of count / (time / timebase), or of the count where the
    timebase is 0.
    """
    rates = sorted((_count(each), _rate(each)) for each in passes)
    kept = [rate for _, rate in rates[len(rates) // 3 :]]
    if min(kept) <= 0:
        return 0.0
    return math.exp(math.fsum(math.log(rate) for rate in kept) / len(kept))


def _count(copies: _Pass) -> float:
    return math.fsum(copy["COUNT0"] for copy in copies)


def _rate(copies: _Pass) -> float:
    timebase = copies[0].get("COUNT1", 0.0)
    if not timebase:
        return _count(copies)
    # As in Run: a time of 0 or none at all stands for the elapsed time.
    time = math.fsum(copy.get("TIME") or copy.get("elapsed", 0.0) for copy in copies) / len(copies)
    return _count(copies) * timebase / time if time else 0.0


def _name(test: str, copies: int) -> str:
    return test if copies == _ONE_COPY else f"{test}, {copies} copies"


def _families(file: SourceFile, copies: int, run: _Run) -> list[Family]:
    values = {test: index.value for test, (_, _, index) in run.rows.items()}
    if run.score is not None and not run.partial:
        values[SCORE] = run.score.value
    return [
        Family(
            name=_name(test, copies),
            metric=_name(test, copies),
            unit="index",
            direction=Direction.HIGHER,
            groups=(Group(label=file.group, values=(value,), runs=(file.path.stem,)),),
        )
        for test, value in values.items()
    ]


def _index_rows(file: SourceFile, copies: int, run: _Run) -> list[IndexRow]:
    name = _name(file.path.stem, copies)
    return [
        IndexRow(group=file.group, run=name, test=test, baseline=baseline, result=result, index=index)
        for test, (baseline, result, index) in run.rows.items()
    ]


def _scores(file: SourceFile, copies: int, run: _Run) -> list[Score]:
    if run.score is None:
        return []
    indices = {test: index for test, (_, _, index) in run.rows.items()}
    tests = len(indices) if run.partial else len(BASELINES)
    name = _name(file.path.stem, copies)
    return [Score(group=file.group, run=name, score=run.score, indices=indices, tests=tests)]


IMPORTER = UnixBench()
