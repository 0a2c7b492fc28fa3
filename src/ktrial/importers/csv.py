"""Tables: one row a run, or one row a group with mean, standard error and standard deviation."""

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ktrial.format.number_format import counted, percentage
from ktrial.importers.errors import ImportFailed, MeasurementsDamaged, NoMeasurements
from ktrial.importers.protocol import SourceFile, check_groups, decimals, rounded
from ktrial.model.imported import BASELINES, SCORE, Family, Group, Imported, IndexRow, Rounded, Score, Summary
from ktrial.model.notation import nearest
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.program_outputs.reading import direction_of, number

_DELIMITERS = ",;\t"
_MOST_COLUMNS = 200
_MOST_ROWS = 200_000
_MISSING = {"", "-", "---", "na", "n/a", "nan", "null", "none"}
_YES, _NO = {"1", "yes", "true", "*"}, {"0", "no", "false", ""}


@dataclass(frozen=True)
class CsvLine:
    """One line of the table."""

    line: int
    cells: dict[str, str]


@dataclass(frozen=True)
class Columns:
    """The header, understood: names of columns; empty where there is none."""

    value: str
    summaries: bool
    """Whether `value` is the mean of runs."""
    groups: tuple[str, ...]
    families: tuple[str, ...]
    """What splits the table: metric, knob, session."""
    metric: str = ""
    knob: str = ""
    """With the group's columns it says what the treatment is."""
    run: str = ""
    blocked: bool = False
    error: str = ""
    sd: str = ""
    sd_percent: str = ""
    runs: str = ""
    default: str = ""
    unit: str = ""
    index_of: tuple[str, str, str] | None = None
    """Columns baseline, result and index, where the table has all three."""
    in_seconds: bool = False
    """Whether the header is of a tool whose tables are in seconds."""

    @property
    def value_unit(self) -> str:
        """The unit that the value column's name tells: MB/s for `mean_mb_s`; or whose table it is."""
        name = self.value.lower()
        if self.in_seconds and name != "ops":
            return "s"
        if name in _UNIT_SUFFIXES:
            return _UNIT_SUFFIXES[name]
        endings = [ending for ending in _UNIT_SUFFIXES if name.endswith(f"_{ending}")]
        return _UNIT_SUFFIXES[max(endings, key=len)] if endings else ""


class _Reader:
    """One table."""

    def __init__(self, file: SourceFile, columns: Columns, rows: list[CsvLine]) -> None:
        self._file, self._columns, self._rows = file, columns, rows
        self._varying = [
            name for name in columns.groups if len({row.cells[name] for row in rows}) > 1
        ] or list(columns.groups[:1])
        self._missing = 0

    def places(self, column: str) -> int:
        """Decimals with which a column was printed: trailing zeros may have been lost on the way."""
        return max((decimals(row.cells[column]) for row in self._rows), default=0)

    def families(self) -> tuple[Family, ...]:
        """In the order of their first rows."""
        split: dict[tuple[str, ...], list[CsvLine]] = defaultdict(list)
        for row in self._rows:
            split[tuple(row.cells[name] for name in self._columns.families)].append(row)
        family_list = [self._family(name, rows) for name, rows in split.items()]
        families = tuple(family for family in family_list if family.groups)
        if not families:
            problem = f"no row has a number in {self._columns.value}"
            raise NoMeasurements(file=self._file.path, format="csv", problem=problem)
        return families

    def warnings(self) -> tuple[DataWarning, ...]:
        """What was left out."""
        if not self._missing:
            return ()
        problem = f"{self._missing} rows have no number in {self._columns.value}"
        text = f"{self._file.name}: {problem}; they are left out"
        advice = "if runs failed there, find out why: what is left may be the better part"
        return (DataWarning(kind=WarningKind.INPUT_INCOMPLETE, text=text, advice=advice),)

    def _family(self, key: tuple[str, ...], rows: list[CsvLine]) -> Family:
        columns = self._columns
        unit = (rows[0].cells[columns.unit] if columns.unit else "") or columns.value_unit
        return Family(
            name=" · ".join(part for part in key if part) or " · ".join(self._varying),
            metric=rows[0].cells[columns.metric] if columns.metric else columns.value,
            unit=unit,
            direction=direction_of(unit),
            groups=tuple(self._summarised(rows) if columns.summaries else self._grouped(rows)),
            blocked=columns.blocked and not columns.summaries,
        )

    def _grouped(self, rows: list[CsvLine]) -> list[Group]:
        columns = self._columns
        split: dict[str, list[tuple[CsvLine, float]]] = defaultdict(list)
        for row in rows:
            value = self._number(row, columns.value)
            if value is None:
                self._missing += 1
            else:
                split[self._label(row)].append((row, value))
                check_groups(self._file, len(split))
        return [
            Group(
                label=label,
                factors=self._factors(measured[0][0]),
                is_default=self._is_default(measured[0][0]),
                values=tuple(value for _, value in measured),
                runs=self._runs(measured),
            )
            for label, measured in split.items()
        ]

    def _runs(self, measured: list[tuple[CsvLine, float]]) -> tuple[str, ...]:
        name = self._columns.run
        runs = tuple(row.cells[name] for row, _ in measured) if name else ()
        if self._columns.blocked and len(set(runs)) < len(runs):
            row = next(row for at, (row, _) in enumerate(measured) if row.cells[name] in runs[:at])
            raise _damaged(self._file, row.line, f"block {row.cells[name]} has {self._label(row)} twice")
        return runs

    def _summarised(self, rows: list[CsvLine]) -> list[Group]:
        groups: list[Group] = []
        for row in rows:
            mean = self._number(row, self._columns.value)
            if mean is None:
                self._missing += 1
                continue
            label = self._label(row)
            check_groups(self._file, len(groups))
            while any(group.label == label for group in groups):
                label += " (again)"
            groups.append(
                Group(
                    label=label,
                    factors=self._factors(row),
                    is_default=self._is_default(row),
                    summary=self._summary(row, mean),
                )
            )
        return groups

    def _summary(self, row: CsvLine, mean: float) -> Summary:
        columns = self._columns
        runs = self._number(row, columns.runs) if columns.runs else None
        if runs is not None and (runs < 1 or runs != int(runs)):
            raise _damaged(
                self._file, row.line, f"{columns.runs} is {row.cells[columns.runs]!r}, no run count"
            )
        return Summary(
            mean=rounded(mean, self.places(columns.value)),
            standard_error=self._spread(row, columns.error),
            sd=self._spread(row, columns.sd),
            sd_percent=self._spread(row, columns.sd_percent),
            runs=int(runs) if runs is not None else None,
        )

    def _spread(self, row: CsvLine, column: str) -> Rounded | None:
        value = self._number(row, column) if column else None
        if value is None:
            return None
        if value < 0:
            raise _damaged(self._file, row.line, f"{column} is {value:g}: below zero")
        return rounded(value, self.places(column))

    def _number(self, row: CsvLine, column: str) -> float | None:
        text = row.cells[column].removesuffix("%")
        value = number(text)
        if value is None and text.strip().lower() not in _MISSING:
            raise _damaged(self._file, row.line, f"{column} is {row.cells[column]!r}, not a number")
        return value

    def _label(self, row: CsvLine) -> str:
        return " · ".join(row.cells[name] for name in self._varying)

    def _factors(self, row: CsvLine) -> dict[str, str]:
        return {name: row.cells[name] for name in (self._columns.knob, *self._columns.groups) if name}

    def _is_default(self, row: CsvLine) -> bool:
        column = self._columns.default
        text = row.cells[column].lower() if column else ""
        if text not in _YES | _NO:
            raise _damaged(self._file, row.line, f"{column} is {row.cells[column]!r}; 1 or 0 is expected")
        return text in _YES


class Csv:
    """Columns are found by their names; docs/statistics.md lists them."""

    name = "csv"
    summary = "tables with a header: a row a run, or a row a group (mean, standard error, SD or SD %)"
    one_group = False

    def recognises(self, file: SourceFile) -> bool:
        """Whether the first line looks like a header of two columns or more."""
        first = file.text.lstrip("\n").partition("\n")[0]
        return first.lstrip()[:1] not in {"<", "{", "[", "#"} and any(
            delimiter in first for delimiter in _DELIMITERS
        )

    def read(self, file: SourceFile) -> Imported:
        """Families and groups, in the table's order."""
        header, rows = _table(file)
        columns = understand(header, file)
        index_rows = _index(file, columns, rows) if columns.index_of and not file.choices.value else ()
        if index_rows and not columns.groups:
            return Imported(source=file.name, format=self.name, families=(), index_rows=index_rows)
        if not columns.value:
            problem = f"no column is one of numbers by its name ({', '.join(header)}); name it with --value"
            raise NoMeasurements(file=file.path, format=self.name, problem=problem)
        if not columns.groups:
            problem = "no column tells the groups apart; name one with --group-by"
            raise NoMeasurements(file=file.path, format=self.name, problem=problem)
        columns, left_out = without_other_numbers(columns, [row.cells for row in rows], file)
        reader = _Reader(file, columns, rows)
        families = reader.families()
        return Imported(
            source=file.name,
            format=self.name,
            families=families,
            index_rows=index_rows,
            scores=_scores(families, reader.places(columns.value)),
            warnings=(*left_out, *reader.warnings(), *_rounded_indices(file, families, columns, reader)),
        )


def _table(file: SourceFile) -> tuple[list[str], list[CsvLine]]:
    first = file.text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(file.text, newline=""), delimiter=delimiter, strict=True)
    try:
        lines = [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error as error:
        raise _damaged(file, reader.line_num, str(error)) from error
    if not lines:
        raise NoMeasurements(file=file.path, format="csv", problem="every cell is empty")
    header = [name.strip() for name in lines[0][1]]
    _check_header(file, header)
    if len(lines) - 1 > _MOST_ROWS:
        raise _damaged(file, _MOST_ROWS, f"more than {_MOST_ROWS} rows")
    rows = []
    for line, cells in lines[1:]:
        if len(cells) != len(header):
            raise _damaged(file, line, f"{len(cells)} cells, where the header has {len(header)}")
        rows.append(CsvLine(line, dict(zip(header, (cell.strip() for cell in cells), strict=True))))
    if not rows:
        raise NoMeasurements(file=file.path, format="csv", problem="there is a header and nothing below it")
    return header, rows


def _check_header(file: SourceFile, header: list[str]) -> None:
    if len(header) > _MOST_COLUMNS:
        raise _damaged(file, 1, f"more than {_MOST_COLUMNS} columns")
    if "" in header:
        raise _damaged(file, 1, f"column {header.index('') + 1} has no name")
    twice = next((name for name in header if header.count(name) > 1), "")
    if twice:
        raise _damaged(file, 1, f"there are two columns {twice}")


def _damaged(file: SourceFile, line: int, problem: str) -> MeasurementsDamaged:
    return MeasurementsDamaged(file=file.path, format="csv", where=f"line {line}", problem=problem)


def _index(file: SourceFile, columns: Columns, rows: list[CsvLine]) -> tuple[IndexRow, ...]:
    """Rows with baseline, result and index: UnixBench's own table."""
    index_rows = []
    for row in rows:
        cells = {}
        for name in columns.index_of or ():
            value = number(row.cells[name])
            if value is None or value <= 0:
                raise _damaged(file, row.line, f"{name} is {row.cells[name]!r}, not a number above zero")
            cells[name] = rounded(value, max(decimals(other_row.cells[name]) for other_row in rows))
        baseline, result, index = (cells[name] for name in columns.index_of or ())
        index_rows.append(
            IndexRow(
                group=" · ".join(row.cells[name] for name in columns.groups) or file.group,
                run=row.cells[columns.run] if columns.run else "",
                test=row.cells[columns.metric] if columns.metric else f"line {row.line}",
                baseline=Rounded(value=baseline.value),
                result=result,
                index=index,
            )
        )
    return tuple(index_rows)


def _rounded_indices(
    file: SourceFile, families: tuple[Family, ...], columns: Columns, reader: _Reader
) -> Iterator[DataWarning]:
    """That UnixBench's indices are all that there is: results are not rounded to so few digits."""
    indices = [
        value
        for family in families
        if family.metric in BASELINES
        for group in family.groups
        for value in group.values
    ]
    if columns.value_unit != "index" or not indices or min(indices) <= 0:
        return
    places = reader.places(columns.value)
    yield DataWarning(
        kind=WarningKind.COARSE_VALUES,
        text=f"{file.name}: only UnixBench's indices are there, rounded to {counted(places, 'decimal')}: "
        f"that alone moves them by up to {percentage(0.5 * 10.0**-places / min(indices))}",
        advice="give the reports or the logs: they have the results that the indices are computed from",
    )


def _scores(families: tuple[Family, ...], places: int) -> tuple[Score, ...]:
    """UnixBench's scores, with the indices that stand in the same table."""
    cells = {
        (family.metric, group.label, run): rounded(value, places)
        for family in families
        for group in family.groups
        for run, value in zip(group.runs or ("",) * len(group.values), group.values, strict=True)
    }
    return tuple(
        Score(
            group=group,
            run=run,
            score=score,
            indices={test: cells[test, group, run] for test in BASELINES if (test, group, run) in cells},
            tests=len(BASELINES),
        )
        for (metric, group, run), score in cells.items()
        if metric == SCORE
    )


IMPORTER = Csv()


# --- What the columns of a table mean, told by their names.

_BLOCK = {"block"}
_RUN = {"trial", "run", "repeat", "repetition", "replicate", "rep", "iteration", "pass", "sample"}
_METRIC = {"metric", "test", "benchmark", "workload"}
_KNOB = {"knob", "factor"}
_SESSION = {"experiment", "session", "day"}
_ERROR = {"standard_error", "std_error", "stderr", "se", "sem"}
_SD = {"sd", "std", "stdev", "stddev", "standard_deviation"}
_SD_PERCENT = {"sd_percent", "sd%", "sd_%", "std_percent", "cv", "cv_percent", "rsd", "rsd_percent"}
_RUNS = {"n", "runs", "samples", "count", "rounds"}
_DEFAULT = {"is_default", "default", "is_baseline"}
_UNIT = {"unit", "units", "scale"}
_NOTE = {"note", "notes", "comment", "comments", "remark"}
_VALUES = (
    "value", "index", "score", "result", "seconds", "time", "duration", "elapsed", "throughput", "rate",
    "latency",
)  # fmt: skip
_MEASURED = re.compile(
    r"(median|min|max|minimum|maximum|user|system|sys|real|wall|cpu|rss|maxrss|max_rss|q1|q3|iqr|range|var"
    r"|ops|p[0-9]{1,2}(\.[0-9]{1,3})?)(_(s|sec|secs|seconds|ms|us|ns|time|kb|mb|bytes))?"
)
"""Names of columns that tools write beside the one that is read."""
_FEW_ROWS = 4
_MEAN = re.compile(r"(mean|average|avg)(?:_(\w{1,20}))?")
_IN_SECONDS = (
    ("command", "mean", "stddev", "median", "user", "system", "min", "max"),
    ("name", "min", "max", "mean", "stddev", "median", "iqr", "outliers", "ops", "rounds", "iterations"),
)
"""The columns of hyperfine and of pytest-benchmark, whose tables are in seconds and do not say so."""
_NOT_MEASURED = {"outliers", "iterations"}
"""What pytest-benchmark says of a test beside its times."""
_UNIT_SUFFIXES = {
    "mb_s": "MB/s", "kb_s": "KB/s", "gb_s": "GB/s", "mib_s": "MiB/s", "kib_s": "KiB/s", "gib_s": "GiB/s",
    "kbps": "KBps", "mbps": "MBps", "ops_s": "ops/s", "req_s": "req/s", "requests_s": "requests/s",
    "lps": "lps", "lpm": "lpm", "mwips": "MWIPS", "fps": "fps", "index": "index", "score": "index",
    "seconds": "s", "secs": "s", "sec": "s", "s": "s", "ms": "ms", "us": "us", "ns": "ns",
}  # fmt: skip


def understand(header: list[str], file: SourceFile) -> Columns:
    """The columns' meanings. Raises ImportFailed where the user named one that is not there."""
    names = {name.strip().lower().replace(" ", "_"): name for name in header}
    choices = file.choices
    for requested in (*choices.group_by, *filter(None, (choices.value,))):
        if requested not in header:
            raise ImportFailed(
                f"{file.path} has no column {requested}{nearest(requested, header)}; "
                f"it has: {', '.join(header)}.",
                hint="--group-by and --value take names from the header",
            )
    taken = set(choices.group_by) | {choices.value}

    def one(meanings: set[str]) -> str:
        column = next((names[name] for name in names if name in meanings and names[name] not in taken), "")
        taken.add(column)
        return column

    index_of = _index_columns(names)
    error, sd, sd_percent, runs = one(_ERROR), one(_SD), one(_SD_PERCENT), one(_RUNS)
    # An index is computed from the result, and rounded once more.
    value = choices.value or (index_of[1] if index_of else _value(names, taken))
    taken.add(value)
    block = one(_BLOCK)
    run = block or one(_RUN)
    metric, knob, session = one(_METRIC), one(_KNOB), one(_SESSION)
    families = tuple(name for name in (metric, knob, session) if name)
    default, unit, _ = one(_DEFAULT), one(_UNIT), one(_NOTE)
    taken |= set(index_of or ())
    in_seconds = any(set(tool_columns) <= set(header) for tool_columns in _IN_SECONDS)
    taken |= _NOT_MEASURED if in_seconds else set()
    groups = choices.group_by or tuple(name for name in header if name not in taken)
    return Columns(
        value=value,
        summaries=bool(error or sd or sd_percent or _MEAN.fullmatch(value.lower())),
        groups=groups,
        families=families,
        metric=metric,
        knob=knob,
        run=run,
        blocked=bool(block),
        error=error,
        sd=sd,
        sd_percent=sd_percent,
        runs=runs,
        default=default,
        unit=unit,
        index_of=index_of,
        in_seconds=in_seconds,
    )


def without_other_numbers(
    columns: Columns, rows: Sequence[Mapping[str, str]], file: SourceFile
) -> tuple[Columns, tuple[DataWarning, ...]]:
    """The columns, without those of numbers that were measured, too, and a warning that names them.

    A column of numbers that has no name of its own here is a factor (`latency_ns` in a table of knobs) or
    another measurement (`user`, `median`). It is a measurement where its name says so, or where other columns
    tell the groups apart already and nearly every row has a number of its own in it. `--group-by` says
    otherwise.
    """
    if file.choices.group_by:
        return columns, ()
    numeric = [name for name in columns.groups if _is_numeric(name, rows)]
    words = [name for name in columns.groups if name not in numeric and len({row[name] for row in rows}) > 1]
    measured = [name for name in numeric if _is_measured(name, words, columns, rows)]
    remaining = tuple(name for name in columns.groups if name not in measured)
    if not measured or not remaining:
        return columns, ()
    many = "columns" if len(measured) > 1 else "column"
    warning = DataWarning(
        kind=WarningKind.INPUT_INCOMPLETE,
        text=f"{file.name}: the {many} {', '.join(measured)}: taken for measurements, and left out",
        advice=f"--value {measured[0]} reads that one; --group-by names columns that tell groups apart",
    )
    return replace(columns, groups=remaining), (warning,)


def _is_numeric(name: str, rows: Sequence[Mapping[str, str]]) -> bool:
    cells = [row[name].removesuffix("%").strip() for row in rows]
    return any(cells) and all(number(cell) is not None for cell in cells if cell)


def _is_measured(
    name: str, words: Sequence[str], columns: Columns, rows: Sequence[Mapping[str, str]]
) -> bool:
    if _MEASURED.fullmatch(name.strip().lower().replace(" ", "_")):
        return True
    if not words or len(rows) < _FEW_ROWS:
        return False
    different = len({row[name] for row in rows})
    if columns.summaries:
        labels = {tuple(row[column] for column in (*columns.families, *words)) for row in rows}
        return len(labels) == len(rows) and different > len(rows) / 2 and _has_fractions(name, rows)
    return different > len(rows) / 2


def _has_fractions(name: str, rows: Sequence[Mapping[str, str]]) -> bool:
    return any("." in row[name] for row in rows)


def _index_columns(names: dict[str, str]) -> tuple[str, str, str] | None:
    if not {"baseline", "result", "index"} <= set(names):
        return None
    return names["baseline"], names["result"], names["index"]


def _value(names: dict[str, str], taken: set[str]) -> str:
    """The column of numbers; empty where no name says it."""
    free = {name: column for name, column in names.items() if column not in taken}
    for name in _VALUES:
        if name in free:
            return free[name]
    for name, column in free.items():
        if _MEAN.fullmatch(name) or any(name.startswith(f"{value}_") for value in _VALUES):
            return column
    return ""
