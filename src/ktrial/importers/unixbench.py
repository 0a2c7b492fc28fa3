"""UnixBench: the report that `Run` prints, and the log of all passes that it writes beside it."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from ktrial.format.number_format import percentage
from ktrial.importers.errors import MeasurementsDamaged, NoMeasurements
from ktrial.importers.protocol import SourceFile, rounded
from ktrial.model.imported import BASELINES, SCORE, Family, Group, Imported, IndexRow, Rounded, Score
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Direction
from ktrial.program_outputs.reading import number

_HEADING = re.compile(r"^System Benchmarks (?:Index Values|Partial Index) +BASELINE +RESULT", re.MULTILINE)
_RUN = re.compile(r"^Benchmark Run: ", re.MULTILINE)
_START = re.compile(r"^Benchmark Run: \w{3} (\w{3} [0-9]{2} [0-9]{4} [0-9:]{8}) -", re.MULTILINE)
_COPIES = re.compile(r"running ([0-9]{1,6}) parallel cop(?:y|ies) of tests")
_RESULT = re.compile(r"^(\S.{0,60}?) +([0-9.]{1,20}) (\S{1,12}) +\([0-9.]{1,20} s, [0-9]{1,6} samples?\)$")
_INDEX = re.compile(r"^(\S.{0,60}?) +([0-9.]{1,20}|---) +([0-9.]{1,20}) +([0-9.]{1,20}|---) *$")
_TOTAL = re.compile(r"^System Benchmarks Index Score( \(Partial Only\))? +([0-9.]{1,20}) *$")
_TEST = re.compile(r"^(\S.{0,60}?) -- ([0-9]{1,6}) cop(?:y|ies)$")
_FACT = re.compile(r"^# (COUNT0|COUNT1|TIME|elapsed): (\S{1,40})$")
_UNIT = re.compile(r"^# COUNT2: (\S{1,12})$")
_ONE_COPY = 1
_LONGEST_LINE = 300
_COARSE = 0.001
"""Half a unit of a result's last digit, as a part of it, that is told: a tenth of the usual margin."""
_UNITS = {
    "Double-Precision Whetstone": "MWIPS",
    "File Copy 1024 bufsize 2000 maxblocks": "KBps",
    "File Copy 256 bufsize 500 maxblocks": "KBps",
    "File Copy 4096 bufsize 8000 maxblocks": "KBps",
    "Shell Scripts (1 concurrent)": "lpm",
    "Shell Scripts (8 concurrent)": "lpm",
}
"""Of the tests of the index whose results are not in loops a second (UnixBench's Run)."""


@dataclass
class _Run:
    """One run of the tests, with so many copies at once."""

    copies: int = _ONE_COPY
    rows: dict[str, tuple[Rounded, Rounded, Rounded]] = field(default_factory=dict)
    """Test → baseline, result, index."""
    results: dict[str, tuple[float, str]] = field(default_factory=dict)
    """Test that has no index → result and its unit."""
    score: Rounded | None = None
    partial: bool = False


class UnixBench:
    """One report or log is one run of its group: passes inside are averaged, as UnixBench does.

    A test's values are its results, not its indices: those are computed from them, and rounded once more.
    A file into which several reports were written has as many runs.
    """

    name = "unixbench"
    summary = "UnixBench: the report that Run prints, or its log of all passes"
    one_group = True

    def recognises(self, file: SourceFile) -> bool:
        """Whether it has the heading of the index, or results, or the passes of a log."""
        report = _HEADING.search(file.text) or (_RUN.search(file.text) and _COPIES.search(file.text))
        return report is not None or ("#### Pass 1" in file.text and "# COUNT0:" in file.text)

    def read(self, file: SourceFile) -> Imported:
        """A family for each test, and one for the score; with several copies, apart."""
        runs = _log(file, self.name) if "#### Pass" in file.text else _report(file.text)
        by_copies: dict[int, list[_Run]] = {}
        for run in runs:
            if run.rows or run.results:
                by_copies.setdefault(run.copies, []).append(run)
        if not by_copies:
            problem = "no line has baseline, result and index"
            raise NoMeasurements(file=file.path, format=self.name, problem=problem)
        named = [item for of_copies in by_copies.values() for item in _named(file, of_copies)]
        return Imported(
            source=file.name,
            format=self.name,
            families=tuple(
                family for of_copies in by_copies.values() for family in _families(file, of_copies)
            ),
            index_rows=tuple(row for item in named for row in _index_rows(file, *item)),
            scores=tuple(score for item in named for score in _scores(file, *item)),
            warnings=tuple(_coarse(file, [run for _, run in named])),
            started=_started(file.text),
        )


def _coarse(file: SourceFile, runs: list[_Run]) -> Iterator[DataWarning]:
    """That rounding alone may move a result by so much that it matters."""
    shares = {
        test: result.half_unit / result.value
        for run in runs
        for test, (_, result, _) in run.rows.items()
        if result.value
    }
    if not shares or (most := max(shares.values())) < _COARSE:
        return
    worst = max(shares, key=shares.__getitem__)
    yield DataWarning(
        kind=WarningKind.COARSE_VALUES,
        text=f"{file.name}: {worst}: the result is printed to one decimal: rounding alone moves it by up to "
        f"{percentage(most)}",
        advice="give the log that UnixBench writes beside the report: every pass is in it",
    )


def _started(text: str) -> datetime | None:
    """When the run began; None where the file does not say."""
    match = _START.search(text)
    try:
        return datetime.strptime(match[1], "%b %d %Y %H:%M:%S") if match else None
    except ValueError:
        return None


def _report(text: str) -> list[_Run]:
    """What was printed of each run. A test with `---` cells has a result, and no part in the index."""
    starts = [match.start() for match in _RUN.finditer(text)] or [0]
    return [
        run
        for begin, end in zip(starts, [*starts[1:], len(text)], strict=True)
        for run in _runs_in(text[begin:end])
    ]


def _runs_in(text: str) -> list[_Run]:
    """The runs below one `Benchmark Run:`: one, unless a line in between tells another number of copies."""
    runs = [_Run()]
    for line in text.splitlines():
        if len(line) > _LONGEST_LINE:
            continue
        line = line.rstrip()
        run = runs[-1]
        if match := _COPIES.search(line):
            runs.append(_Run(copies=int(match[1])))
        elif match := _RESULT.match(line):
            if (value := number(match[2])) is not None:
                run.results[match[1]] = value, match[3]
        elif match := _TOTAL.match(line):
            run.score, run.partial = _printed(match[2]), bool(match[1])
        elif match := _INDEX.match(line):
            baseline, result, index = (_printed(match[at]) for at in (2, 3, 4))
            if baseline and result and index and match[1] in BASELINES:
                run.rows[match[1]] = (baseline, result, index)
            elif result:
                run.results.setdefault(match[1], (result.value, ""))
    for run in runs:
        run.results = {test: result for test, result in run.results.items() if test not in run.rows}
    return runs


def _printed(text: str) -> Rounded | None:
    """A cell; UnixBench prints one decimal."""
    value = number(text)
    return rounded(value, 1) if value is not None and value > 0 else None


def _log(file: SourceFile, format: str) -> list[_Run]:
    """Results of each run, recomputed from the passes."""
    runs: dict[tuple[int, int], _Run] = {}
    for section, seen in _sections(file, format):
        run = runs.setdefault((section.copies, seen), _Run(copies=section.copies))
        result = score_of(section.passes)
        if section.test in BASELINES:
            index = 10 * result / BASELINES[section.test]
            exact = [Rounded(value=value) for value in (BASELINES[section.test], result, index)]
            run.rows[section.test] = (exact[0], exact[1], exact[2])
        else:
            run.results[section.test] = result, section.unit
    return list(runs.values())


_Pass = list[dict[str, float]]
"""What each copy counted."""


@dataclass
class _Section:
    """A test in the log, with so many copies, and its passes."""

    test: str
    copies: int
    passes: list[_Pass] = field(default_factory=list)
    unit: str = ""


def _sections(file: SourceFile, format: str) -> list[tuple[_Section, int]]:
    """Every test that has passes, and how often the log has had it before.

    An empty line ends a copy's facts.
    """
    sections: list[_Section] = []
    copy: dict[str, float] = {}
    for at, line in enumerate([*file.text.splitlines(), ""], start=1):
        if heading := _TEST.match(line):
            sections.append(_Section(heading[1], int(heading[2])))
        elif not sections:
            continue
        elif line.startswith("#### Pass "):
            sections[-1].passes.append([])
        elif unit := _UNIT.match(line):
            sections[-1].unit = unit[1]
        elif fact := _FACT.match(line):
            copy[fact[1]] = _fact(file, format, at, fact)
        elif not line.strip() and copy:
            if sections[-1].passes and "COUNT0" in copy:
                sections[-1].passes[-1].append(copy)
            copy = {}
    counted: dict[tuple[str, int], int] = {}
    counted_sections = []
    for section in sections:
        section.passes = [copies for copies in section.passes if copies]
        if section.passes:
            key = section.test, section.copies
            counted_sections.append((section, counted.get(key, 0)))
            counted[key] = counted.get(key, 0) + 1
    return counted_sections


def _fact(file: SourceFile, format: str, line: int, fact: re.Match[str]) -> float:
    value = number(fact[2])
    if value is None or value < 0:
        where, problem = f"line {line}", f"{fact[1]} is {fact[2]!r}, not a number"
        raise MeasurementsDamaged(file=file.path, format=format, where=where, problem=problem)
    return value


def score_of(passes: list[_Pass]) -> float:
    """UnixBench's result of a test (combinePassResults in Run).

    Counts are summed over copies and times averaged; the lowest third of the passes (rounded down) is
    dropped; the result is the geometric mean of count / (time / timebase), or of the count where the
    timebase is 0.
    """
    rates = sorted((_count(copies), _rate(copies)) for copies in passes)
    counted = [rate for _, rate in rates[len(rates) // 3 :]]
    if min(counted) <= 0:
        return 0.0
    return math.exp(math.fsum(math.log(rate) for rate in counted) / len(counted))


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


def _named(file: SourceFile, runs: list[_Run]) -> list[tuple[str, _Run]]:
    """Each run with its name: the file's, and a number from the second on."""
    stem = file.path.stem
    return [(stem if not at else f"{stem} ({at + 1})", run) for at, run in enumerate(runs)]


def _families(file: SourceFile, runs: list[_Run]) -> list[Family]:
    """One a test, its values one a run; the score's as a test's."""
    values: dict[tuple[str, str], list[tuple[str, float]]] = {}
    for name, run in _named(file, runs):
        for test, (_, result, _) in run.rows.items():
            values.setdefault((test, _UNITS.get(test, "lps")), []).append((name, result.value))
        if (score := _whole_score(run)) is not None:
            values.setdefault((SCORE, "index"), []).append((name, score))
        for test, (score_value, unit) in run.results.items():
            values.setdefault((test, unit), []).append((name, score_value))
    copies = runs[0].copies
    return [
        Family(
            name=_name(test, copies),
            metric=_name(test, copies),
            unit=unit,
            direction=Direction.HIGHER,
            groups=(
                Group(
                    label=file.group,
                    values=tuple(value for _, value in of_test),
                    runs=tuple(name for name, _ in of_test),
                ),
            ),
        )
        for (test, unit), of_test in values.items()
    ]


def _whole_score(run: _Run) -> float | None:
    """The geometric mean of all indices: from the results, or as it was printed where some are missing."""
    if set(run.rows) == set(BASELINES) and all(result.value for _, result, _ in run.rows.values()):
        logs = [math.log(10 * result.value / base.value) for base, result, _ in run.rows.values()]
        return math.exp(math.fsum(logs) / len(logs))
    return run.score.value if run.score is not None and not run.partial else None


def _index_rows(file: SourceFile, name: str, run: _Run) -> list[IndexRow]:
    return [
        IndexRow(
            group=file.group,
            run=_name(name, run.copies),
            test=test,
            baseline=baseline,
            result=result,
            index=index,
        )
        for test, (baseline, result, index) in run.rows.items()
    ]


def _scores(file: SourceFile, name: str, run: _Run) -> list[Score]:
    if run.score is None:
        return []
    indices = {test: index for test, (_, _, index) in run.rows.items()}
    tests = len(indices) if run.partial else len(BASELINES)
    name = _name(name, run.copies)
    return [Score(group=file.group, run=name, score=run.score, indices=indices, tests=tests)]


IMPORTER = UnixBench()
