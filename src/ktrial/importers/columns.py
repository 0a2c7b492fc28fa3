"""What the columns of a table mean, told by their names; and what their cells show that no name says."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ktrial.importers.errors import ImportFailed
from ktrial.importers.protocol import SourceFile
from ktrial.model.notation import nearest
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Direction
from ktrial.program_outputs.reading import number
from ktrial.program_outputs.units import NamedUnit, Units, unit_named


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

    status: str = ""
    """Says whether a run failed: its number is left out then."""
    troubles: tuple[str, ...] = ()
    """Columns that count what went wrong."""
    moments: tuple[str, ...] = ()
    """Columns that say when a row was measured."""
    left_out: tuple[str, ...] = ()
    """Columns that nothing is read of."""
    named: NamedUnit = field(default_factory=NamedUnit)
    """What the value's name says of its unit; or whose table it is."""

    @property
    def understood(self) -> str:
        """How each column was taken, with the option that says otherwise, in a line."""
        unit = self.named.unit
        direction = self.named.direction if unit is None else unit.direction
        shown = ", ".join(part for part in (unit.symbol if unit else "", _WAYS[direction]) if part)
        single = (
            self.run,
            self.status,
            *self.troubles,
            self.unit,
            self.error,
            self.sd,
            self.sd_percent,
            self.runs,
            self.default,
        )
        parts = (
            (f"numbers {self.value}{f' ({shown})' if shown and not self.unit else ''} (--value)"),
            _listed("groups", self.groups, " (--group-by)"),
            _listed("split by", self.families),
            _listed("also read", tuple(name for name in single if name)),
            _listed("not read", (*self.moments, *self.left_out)),
        )
        return "; ".join(part for part in parts if part)


_WAYS = {Direction.HIGHER: "higher is better", Direction.LOWER: "lower is better", None: ""}


def _listed(what: str, names: Sequence[str], option: str = "") -> str:
    return f"{what} {', '.join(names)}{option}" if names else ""


_BLOCK = {"block"}
_RUN = {
    "trial", "run", "repeat", "repetition", "replicate", "rep", "iteration", "iter", "pass", "sample",
    "attempt", "round", "seed", "run_id", "run_no", "run_number",
}  # fmt: skip
_METRIC = {"metric", "test", "benchmark", "workload", "metric_name", "test_name", "benchmark_name", "bench"}
_KNOB = {"knob", "factor"}
_SESSION = {"experiment", "session", "day"}
_ERROR = {"standard_error", "std_error", "stderr", "se", "sem"}
_SD = {"sd", "std", "stdev", "stddev", "standard_deviation"}
_SD_PERCENT = {"sd_percent", "sd%", "sd_%", "std_percent", "cv", "cv_percent", "rsd", "rsd_percent"}
_RUNS = {"n", "runs", "samples", "count", "rounds"}
_DEFAULT = {"is_default", "default", "is_baseline"}
_UNIT = re.compile(r"(?:.*_)?units?|scale|uom|unit_of_measure(?:ment)?")
_NOTE = {"note", "notes", "comment", "comments", "remark"}
_VALUES = (
    "value", "index", "score", "result", "seconds", "time", "duration", "elapsed", "throughput", "rate",
    "latency",
)  # fmt: skip
_MEASURED = re.compile(
    r"(median|min|max|minimum|maximum|mean|average|avg|p[0-9]{1,2})_.*|(request|failure|error|success)s?_count"
    r"|relative|speedup|slowdown|ratio"
    r"|(median|min|max|minimum|maximum|user|system|sys|real|wall|cpu|rss|maxrss|max_rss|q1|q3|iqr|range|var"
    r"|ops|p[0-9]{1,2}(\.[0-9]{1,3})?)(_(s|sec|secs|seconds|ms|us|ns|time|kb|mb|bytes))?"
)
"""Names of columns that tools write beside the one that is read."""
_BARE_TIMES = {"ms", "us", "µs", "ns", "msec", "usec", "nsec", "secs", "sec", "microseconds", "milliseconds"}
_FEW_ROWS = 4
_MEAN = re.compile(r"(mean|average|avg)(?:_(\w{1,20}))?")
_IN_SECONDS = (
    ("command", "mean", "stddev", "median", "user", "system", "min", "max"),
    ("name", "min", "max", "mean", "stddev", "median", "iqr", "outliers", "ops", "rounds", "iterations"),
)
"""The columns of hyperfine and of pytest-benchmark, whose tables are in seconds and do not say so."""
_STATUS = re.compile(
    r"(?:.*_)?(?:status|exit_?code|return_?code|rc|retval|success|succeeded|passed|ok|failed|failure|timed_out"
    r"|timeout|error_occurred)"
)
_TROUBLES = re.compile(r"(?:.*_)?(?:errors|failures|timeouts|failed_requests|retries|drops|dropped)")
"""Names of columns that count what went wrong."""
_IS_BAD = re.compile(r"(?:.*_)?(?:failed|failure|timed_out|timeout|error_occurred)")
_GOOD = {
    "", "0", "0.0", "200", "ok", "okay", "success", "successful", "succeeded", "pass", "passed", "true",
    "yes", "complete", "completed", "done", "finished", "normal", "valid", "none", "null",
}  # fmt: skip
_NO = {"", "0", "no", "false", "none", "null", "n"}
_OF_BENCHMARKS = {"name", "iterations", "real_time", "cpu_time", "time_unit"}
"""The columns of Google Benchmark's CSV: each row is a benchmark, and the file is the group."""
_NOT_MEASURED = {"outliers", "iterations"}
"""What pytest-benchmark says of a test beside its times."""
_NEVER = re.compile(
    r"(.*_)?(id|uuid|time_?stamp|date|datetime|epoch|seed|version|hash|start(ed)?|start_?time|end_?time|pid)"
)
"""Names of columns that are no measurements, whatever their beginnings."""
_ID = re.compile(r"(.*_)?(id|uuid|hash)")
_SPREAD = re.compile(r"(.*_)?(error|err|margin|ci|ci_low|ci_high|lower|upper|lower_bound|upper_bound|±)")
_TIME_WORDS = re.compile(
    r"(.*_)?(time|seconds|secs|sec|s|ts|t|ms|us|ns|when|start|end|date|clock)|.*time_?stamp|.*epoch"
)
_EPOCH = (1.0e9, 2.2e9)
"""Seconds since 1970, of the years 2001 to 2039."""
_EPOCH_SPREAD = 1.1
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.,+Z-]+)?$")
_BRACKET = re.compile(r"\s*[(\[{][^()\[\]{}]*[)\]}]\s*$")


def understand(header: list[str], rows: Sequence[Mapping[str, str]], file: SourceFile) -> Columns:
    """The columns' meanings. Raises ImportFailed where the user named one that is not there."""
    names: dict[str, str] = {}
    for column in header:
        names.setdefault(_plain(column), column)
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
    moments = tuple(column for column in header if column not in taken and is_moment(column, rows))
    taken |= set(moments)
    unit = one({name for name in names if _UNIT.fullmatch(name)})
    is_benchmarks = set(header) >= _OF_BENCHMARKS
    # An index is computed from the result, and rounded once more.
    value = choices.value or (
        index_of[1]
        if index_of
        else "real_time"
        if is_benchmarks
        else _value(names, taken, rows, choices.units)
    )
    taken.add(value)
    block = one(_BLOCK)
    run = block or one(_RUN)
    metric, knob, session = one({"name"} if is_benchmarks else _METRIC), one(_KNOB), one(_SESSION)
    families = tuple(name for name in (metric, knob, session) if name)
    default, note = one(_DEFAULT), one(_NOTE)
    taken |= set(index_of or ())
    status = one({name for name in names if _STATUS.fullmatch(name)})
    troubles = tuple(
        column for name, column in names.items() if column not in taken and _TROUBLES.fullmatch(name)
    )
    taken |= set(troubles)
    in_seconds = any(set(tool_columns) <= set(header) for tool_columns in _IN_SECONDS)
    spreads = [column for column in header if column not in taken and _SPREAD.fullmatch(_plain(column))]
    others = [*spreads, *(_NOT_MEASURED & set(header) if in_seconds else ())]
    others += [column for name, column in names.items() if name in _RUN and column not in taken]
    others += [column for column in header if is_benchmarks and column not in {*taken, *others}]
    taken |= set(others)
    groups = choices.group_by or _without_numbers_of_rows(
        [name for name in header if name not in taken], rows
    )
    others += [name for name in header if name not in taken and name not in groups]
    seconds = NamedUnit(unit_named("s")) if in_seconds and value.lower() != "ops" else None
    return Columns(
        value=value,
        summaries=bool(error or sd or sd_percent or _MEAN.fullmatch(_plain(value))),
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
        status=status,
        troubles=troubles,
        moments=moments,
        left_out=(*filter(None, (note,)), *others),
        named=seconds or choices.units.of_column(value),
    )


def has_failed(name: str, cell: str) -> bool:
    """Whether a cell of a column `status`, `exit_code`, `success`, `timed_out`… says that its run failed."""
    word = cell.strip().lower()
    if _IS_BAD.fullmatch(_plain(name)):
        return word not in _NO
    if re.fullmatch(r"(?:.*_)?(?:success|succeeded|passed|ok)", _plain(name)):
        return word in _NO
    return word not in _GOOD


def _without_numbers_of_rows(names: Sequence[str], rows: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """The columns but those that give each row a name of its own (`result_id`), where others are left."""
    groups = [
        name
        for name in names
        if not _ID.fullmatch(_plain(name)) or len({row[name] for row in rows}) < len(rows)
    ]
    return tuple(groups or names)


def _plain(name: str) -> str:
    """A column's name in small letters and underscores, without brackets: `Time (ms)` is `time`."""
    return _BRACKET.sub("", name.strip()).strip().lower().replace(" ", "_")


def is_moment(name: str, rows: Sequence[Mapping[str, str]]) -> bool:
    """Whether it says when: seconds, ms, µs or ns since 1970, or dates, that never fall from row to row."""
    cells = [row[name].strip() for row in rows if row[name].strip()]
    if len(cells) < 2 or not _TIME_WORDS.fullmatch(_plain(name)):
        return False
    if all(_DATE.match(cell) for cell in cells):
        return True
    moments = [value for cell in cells if (value := number(cell)) is not None]
    if len(moments) < len(cells) or moments != sorted(moments) or moments[0] <= 0:
        return False
    low, high = _EPOCH
    scales = (1.0, 1e3, 1e6, 1e9)
    return moments[-1] < _EPOCH_SPREAD * moments[0] and any(
        low * scale <= moments[0] <= high * scale for scale in scales
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
    return replace(columns, groups=remaining, left_out=(*columns.left_out, *measured)), (warning,)


def _is_numeric(name: str, rows: Sequence[Mapping[str, str]]) -> bool:
    cells = [row[name].removesuffix("%").strip() for row in rows]
    return any(cells) and all(number(cell) is not None for cell in cells if cell)


def numbers_runs(name: str) -> bool:
    """Whether a column numbers runs or blocks."""
    return _plain(name) in _RUN | _BLOCK


def is_measured_by_name(name: str) -> bool:
    """Whether a column is one of measurements, and no group, by its name."""
    plain = _plain(name)
    words = (*_VALUES, "mean", "average", "avg")
    known = any(plain == word or plain.startswith(f"{word}_") for word in words)
    spread = plain in _ERROR | _SD | _SD_PERCENT | _RUNS
    unit = Units().of_column(name).unit
    return known or spread or bool(_MEASURED.fullmatch(plain) or _NEVER.fullmatch(plain)) or unit is not None


def _is_measured(
    name: str, words: Sequence[str], columns: Columns, rows: Sequence[Mapping[str, str]]
) -> bool:
    unit = Units().of_column(name).unit
    if _MEASURED.fullmatch(_plain(name)) or (unit is not None and unit.quantity.endswith("/s")):
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


def _value(names: dict[str, str], taken: set[str], rows: Sequence[Mapping[str, str]], units: Units) -> str:
    """The column of numbers; empty where no name says it, and no unit. One with numbers in it comes first."""
    free = {
        name: column for name, column in names.items() if column not in taken and not _NEVER.fullmatch(name)
    }
    numeric = {name: column for name, column in free.items() if any(_numbers(column, rows))}
    return _by_name(numeric) or _by_name(free) or _by_unit(numeric, units)


def _numbers(name: str, rows: Sequence[Mapping[str, str]]) -> Iterator[bool]:
    return (number(row[name].removesuffix("%")) is not None for row in rows)


def _by_name(columns: Mapping[str, str]) -> str:
    for name in _VALUES:
        if name in columns:
            return columns[name]
    for name, column in columns.items():
        if (
            _MEAN.fullmatch(name)
            or name.endswith("_value")
            or any(name.startswith(f"{value}_") for value in _VALUES)
        ):
            return column
    return ""


def _by_unit(columns: Mapping[str, str], grammar: Units) -> str:
    """The only column that is called as a unit of time, or of so much a second."""
    times = [column for name, column in columns.items() if name in _BARE_TIMES]
    if len(times) == 1:
        return times[0]
    units = {column: grammar.of_column(column).unit for column in columns.values()}
    rates = [column for column, unit in units.items() if unit and unit.direction is Direction.HIGHER]
    return rates[0] if len(rates) == 1 else ""
