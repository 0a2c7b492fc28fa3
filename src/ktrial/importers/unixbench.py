"""UnixBench: the report that `Run` prints, and the log of all passes that it writes beside it."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from ktrial.format.number_format import percentage
from ktrial.importers.errors import MeasurementsDamaged, NoMeasurements
from ktrial.importers.protocol import SourceFile, rounded
from ktrial.model.imported import BASELINES, SCORE, Family, Group, Imported, IndexRow, Rounded, Score
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Direction
from ktrial.program_outputs import OutputDamaged, unixbench_log
from ktrial.program_outputs.lines import LinePatterns
from ktrial.program_outputs.reading import number
from ktrial.text_lines import lines_of

_HEADING = re.compile(r"^System Benchmarks (?:Index Values|Partial Index) +BASELINE +RESULT", re.MULTILINE)
_RUN = re.compile(r"^Benchmark Run: ", re.MULTILINE)
_START = re.compile(r"^Benchmark Run: \w{3} (\w{3} [0-9]{2} [0-9]{4} [0-9:]{8}) -", re.MULTILINE)
_COPIES = re.compile(r"running ([0-9]{1,6}) parallel cop(?:y|ies) of tests")
_RESULT = re.compile(r"^(\S.{0,60}?) +([0-9.]{1,20}) (\S{1,12}) +\([0-9.]{1,20} s, [0-9]{1,6} samples?\)$")
_INDEX = re.compile(r"^(\S.{0,60}?) +([0-9.]{1,20}|---) +([0-9.]{1,20}|---) +([0-9.]{1,20}|---) *$")
_TOTAL = re.compile(r"^System Benchmarks Index Score( \(Partial Only\))? +([0-9.]{1,20}) *$")
_NUMBER = r"[0-9.]{1,20}"
_LINES = LinePatterns(
    measurements=(
        rf"\S.{{0,60}}? +{_NUMBER} \S{{1,12}} +\({_NUMBER} s, [0-9]{{1,6}} samples?\)",
        rf"\S.{{0,60}}?(?: +(?:{_NUMBER}|---)){{3}}",
        rf"System Benchmarks Index Score(?: \(Partial Only\))? +{_NUMBER}",
    ),
    conditions=(
        r" +(?:BYTE UNIX Benchmarks|#.*) \(Version (?P<version>\S+)\)",
        r" +System: (?P<host>[^:]+): .*",
        r" +OS: \S+ -- (?P<kernel>\S+) -- (?P<kernel_build>.*)",
        r" +CPU 0: (?P<CPU>.*?)(?: \([0-9.]+ bogomips\))?",
        r"(?P<CPUs>[0-9]+) CPUs? in system; .*",
        r"Benchmark Run: .*",
    ),
    decoration=(
        r" +(?:Machine|Language|CPU [0-9]+): .*",
        r" {10}.*",  # what a CPU can do
        r" *[0-9:]+ ?(?:[ap]m)? +up .*",
        r" *[-=#]{8,}",
        r"[ #]+",  # the name in large letters
        r"(?:System|Non-Index) Benchmarks (?:Index Values|Partial Index) +BASELINE +RESULT +INDEX",
        r"[0-9A-Z]\S* (?:Graphics )?Benchmarks (?:Index Values|Partial Index) +BASELINE +RESULT +INDEX",
        rf"\S.{{0,30}} Benchmarks Index Score(?: \(Partial Only\))? +{_NUMBER}",
        r"[0-9]+ x .+?(?: +[0-9]+)*",  # how far it is
        r" *(?:make|gcc|cc|Checking|Running|Version|Multi-CPU|Sunnyvale|Use directories|sh)\b.*",
        r" +\* .*|\./\S+ +exists",
    ),
)
_ONE_COPY = 1
_LONGEST_LINE = 300
_COARSE = 0.001
"""Half a unit of a result's last digit, as a part of it, that is told: a tenth of the usual margin."""


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
    above: dict[str, float] = field(default_factory=dict)
    """Test → the result in the list above the table: the same, once more."""
    notes: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """Tests whose result is 0, or whose index is missing though there is one as a rule."""
    announced: bool = False
    """Whether a line says that so many copies are run."""
    of_log: bool = False


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
        of_log = "#### Pass" in file.text
        runs = _log(file, self.name) if of_log else _report(file.text)
        by_copies: dict[int, list[_Run]] = {}
        for run in runs:
            if run.rows or run.results:
                by_copies.setdefault(run.copies, []).append(run)
        if not by_copies:
            problem = "no line has baseline, result and index"
            raise NoMeasurements(file.path, self.name, problem, text=file.text)
        named = [item for of_copies in by_copies.values() for item in _named(file, of_copies)]
        return Imported(
            source=file.name,
            format=self.name,
            families=tuple(
                family for of_copies in by_copies.values() for family in _families(file, of_copies)
            ),
            index_rows=tuple(row for item in named for row in _index_rows(file, *item)),
            scores=tuple(score for item in named for score in _scores(file, *item)),
            warnings=(
                *_failed(file, runs),
                *_left_over(file, unixbench_log.LINES if of_log else _LINES),
                *_coarse(file, [run for _, run in named]),
            ),
            started=_started(file.text),
        )


def _failed(file: SourceFile, runs: list[_Run]) -> Iterator[DataWarning]:
    """Tests without a result, and runs without any: what was not measured is in no score."""
    advice = "look at the log: a program was missing, or the run was stopped"
    for run in runs:
        copies = f", {run.copies} copies" if run.copies != _ONE_COPY else ""
        for note in (*run.notes, *_contradictions(run)):
            text = f"{file.name}{copies}: {note}"
            yield DataWarning(kind=WarningKind.INPUT_INCOMPLETE, text=text, advice="go back to the whole log")
        if run.failed:
            text = f"{file.name}{copies}: without a result: {', '.join(run.failed)}"
            yield DataWarning(kind=WarningKind.FAILED_TRIALS, text=text, advice=advice)
        if run.announced and not (run.rows or run.results):
            text = f"{file.name}: the run of {run.copies} copies printed no results"
            yield DataWarning(kind=WarningKind.INPUT_INCOMPLETE, text=text, advice=advice)
        elif run.score is None and not run.of_log and (run.rows or run.above.keys() & BASELINES.keys()):
            text = f"{file.name}{copies}: no score ends the table: the report may be cut short"
            yield DataWarning(kind=WarningKind.INPUT_INCOMPLETE, text=text, advice=advice)


def _contradictions(run: _Run) -> Iterator[str]:
    """What the table has and the list above it has not, or otherwise: each result is printed in both."""
    if run.rows and run.above:
        for test, value in run.above.items():
            if test not in run.rows and test in BASELINES:
                yield f"{test} has a result, and no line in the table"
            elif test in run.rows and run.rows[test][1].value != value:
                yield f"{test}: {value:g} above, {run.rows[test][1].value:g} in the table"
        yield from (f"{test} is in the table only" for test in run.rows if test not in run.above)
    if run.score and not run.partial and not run.of_log and not set(BASELINES) <= {*run.rows, *run.failed}:
        yield f"the score is of {len(BASELINES)} tests, of which {len(run.rows)} are there"


def _left_over(file: SourceFile, lines: LinePatterns) -> Iterator[DataWarning]:
    for note in lines.remainder(file.text):
        text = f"{file.name}: {note.text}"
        yield DataWarning(kind=WarningKind.INPUT_INCOMPLETE, text=text, advice=note.advice)


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
    for line in lines_of(text):
        if len(line) > _LONGEST_LINE:
            continue
        line = line.rstrip()
        run = runs[-1]
        if match := _COPIES.search(line):
            runs.append(_Run(copies=int(match[1]), announced=True))
        elif match := _RESULT.match(line):
            if (value := number(match[2])) is not None:
                _note_twice(run, match[1], run.above, value)
                run.above[match[1]] = value
                run.results[match[1]] = value, match[3]
        elif match := _TOTAL.match(line):
            run.score, run.partial = _printed(match[2]), bool(match[1])
        elif match := _INDEX.match(line):
            baseline, result, index = (_printed(match[at]) for at in (2, 3, 4))
            if baseline and result and index and match[1] in BASELINES:
                _note_twice(
                    run, match[1], {test: row[1].value for test, row in run.rows.items()}, result.value
                )
                run.rows[match[1]] = (baseline, result, index)
            elif result:
                if run.above and match[1] not in run.above:
                    run.notes.append(f"{match[1]} is in the table only, without a unit")
                run.results.setdefault(match[1], (result.value, ""))
            elif match[1] in BASELINES:
                run.failed.append(match[1])
    for run in runs:
        run.results = {test: result for test, result in run.results.items() if test not in run.rows}
    return runs


def _note_twice(run: _Run, test: str, before: dict[str, float], value: float) -> None:
    if before.get(test, value) != value:
        run.notes.append(f"{test} is there twice, with {before[test]:g} and {value:g}")


def _printed(text: str) -> Rounded | None:
    """A cell; UnixBench prints one decimal."""
    value = number(text)
    return rounded(value, 1) if value is not None and value > 0 else None


def _log(file: SourceFile, format: str) -> list[_Run]:
    """Results of each run, recomputed from the passes."""
    try:
        sections = unixbench_log.sections(file.text)
    except OutputDamaged as error:
        where, problem = error.where, error.problem
        raise MeasurementsDamaged(file=file.path, format=format, where=where, problem=problem) from None
    runs: dict[tuple[int, int], _Run] = {}
    times: Counter[tuple[str, int]] = Counter()
    for section in sections:
        test, copies, result = section.test, section.copies, section.result
        run = runs.setdefault((copies, times[test, copies]), _Run(copies=copies, of_log=True))
        run.notes += section.notes
        times[test, copies] += 1
        if test in BASELINES:
            exact = [
                Rounded(value=value) for value in (BASELINES[test], result, 10 * result / BASELINES[test])
            ]
            run.rows[test] = (exact[0], exact[1], exact[2])
        else:
            run.results[test] = result, section.unit
    return list(runs.values())


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
            values.setdefault((test, unixbench_log.UNITS.get(test, "lps")), []).append((name, result.value))
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
                    conditions=_LINES.conditions_of(file.text),
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
