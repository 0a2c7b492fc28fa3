"""What the columns of a table mean, told by their names; and what their cells show that no name says."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ktrial.importers.cells import is_with_unit, runs_in
from ktrial.importers.errors import ImportFailed, some_of
from ktrial.importers.protocol import MOST_GROUPS, SourceFile
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
    sizes: tuple[str, ...] = ()
    """Those of the families that are numbers beside what is compared: sizes, threads."""
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
    others: tuple[tuple[str, NamedUnit], ...] = ()
    """More columns of numbers, each a metric of its own."""
    candidates: tuple[str, ...] = ()
    """Columns that may be the one of numbers, where no name says which."""
    better: Direction | None = None
    """Which way the user said is better."""

    @property
    def understood(self) -> str:
        """How each column was taken, with the option that says otherwise, in a line."""
        numbers = ", ".join(self._shown(*value) for value in ((self.value, self.named), *self.others))
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
            f"numbers {numbers} (--value)",
            _listed("groups", self.groups, " (--group-by)") or "the file is one group (--group-by)",
            _listed("split by", self.families, " (--group-by)" if self.sizes else ""),
            _listed("also read", tuple(name for name in single if name)),
            _listed("not read", (*self.moments, *self.left_out)),
        )
        return "; ".join(part for part in parts if part)

    def _shown(self, name: str, named: NamedUnit) -> str:
        by_name = named.direction if named.unit is None else named.unit.direction
        way = _WAYS[self.better or by_name]
        if self.better and by_name and self.better is not by_name:
            way = f"{way} by --better, where the name says {by_name.value}"
        shown = ", ".join(part for part in (named.unit.symbol if named.unit else "", way) if part)
        return f"{name} ({shown})" if shown and not self.unit else name

    def of(self, name: str, named: NamedUnit) -> "Columns":
        """The same table's meaning for another column of numbers."""
        return replace(self, value=name, named=named)


_WAYS = {Direction.HIGHER: "higher is better", Direction.LOWER: "lower is better", None: ""}


def _listed(what: str, names: Sequence[str], option: str = "") -> str:
    return f"{what} {', '.join(names)}{option}" if names else ""


_BLOCK = {"block"}
_RUN = {
    "trial", "run", "repeat", "repetition", "replicate", "rep", "iteration", "iter", "pass", "sample",
    "attempt", "round", "seed", "run_id", "run_no", "run_number", "run_index", "run_num", "run_nr",
    "result_id", "measurement_id", "sample_id",
    "trial_id", "iteration_id", "record_id", "row_id",
}  # fmt: skip
_METRIC = {"metric", "test", "benchmark", "workload", "metric_name", "test_name", "benchmark_name", "bench"}
_KNOB = {"knob", "factor"}
_COMPARED = {
    "kernel", "kernel_version", "linux", "version", "release", "variant", "config", "configuration", "build",
    "commit", "branch", "revision", "arm", "treatment", "scheduler", "governor", "machine", "host",
}  # fmt: skip
_SESSION = {"experiment", "session", "day"}
_ERROR = {"standard_error", "std_error", "stderr", "std_err", "se", "sem"}
_SD = {"sd", "std", "stdev", "stddev", "std_dev", "standard_deviation"}
_SD_PERCENT = {"sd_percent", "sd%", "sd_%", "std_percent", "cv", "cv_percent", "rsd", "rsd_percent"}
_RUNS = {"n", "runs", "samples", "count", "rounds", "n_runs", "num_runs", "number_of_runs"}
_COUNTS = {"n", "repetitions", "repeats"}
"""Numbers of runs beside a spread, and sizes or settings without one."""
_DEFAULT = {"is_default", "default", "is_baseline"}
_UNIT = re.compile(r"(?:.*_)?units?|scale|uom|unit_of_measure(?:ment)?")
_NOTE = {"note", "notes", "comment", "comments", "remark"}
_VALUES = (
    "value", "index", "score", "result", "seconds", "time", "duration", "elapsed", "throughput", "rate",
    "latency",
)  # fmt: skip
_MEASURED = re.compile(
    r"(median|min|max|minimum|maximum|mean|average|avg|p[0-9]{1,2})_.*|t_(min|max|avg)|(request|failure|error|success)s?_count"
    r"|([0-9]{1,2}(\.[0-9]{1,3})?)(st|nd|rd|th)_p(ercentile)?(_.*)?|apdex|mean|avg|average|runtime|relative|speedup|slowdown|ratio"
    r"|(median|min|max|minimum|maximum|user|system|sys|real|wall|cpu|rss|maxrss|max_rss|q1|q3|iqr|range|var"
    r"|ops|p[0-9]{1,2}(\.[0-9]{1,3})?)(_(s|sec|secs|seconds|ms|us|ns|time|kb|mb|bytes))?"
    r"|.*_(avg|mean|average|median|std|sd|stdev|std_dev|stddev|p[0-9]{2,3}|[0-9]{1,2}(st|nd|rd|th)(_percentile)?)"
    r"|[0-9]{1,3}(_[0-9]{1,2})?%|(total|completed|successful|succeeded|processed)(_(requests|reqs|ops|operations|queries|messages|samples))?"
)
"""Names of columns that tools write beside the one that is read."""
_ENDINGS = (
    *_VALUES,
    "mean",
    "average",
    "avg",
    "runtime",
    "bandwidth",
    "speed",
    "ops",
    "iops",
    "tps",
    "qps",
    "rps",
)
"""Last words of names of columns that were measured: `processing.time`."""
_MOST_OTHERS = 5
"""Columns of numbers beside those whose last word says so: of more, any may be meant."""
_MEANS = ("mean", "average", "avg")
_RESULTS = {"throughput", "goodput", "score", "result"}
"""Whole names that no factor has."""
_NEARLY_ALL = 0.8
"""Of the rows: where so many have a number of their own, it was measured."""
_OF_SPREAD = re.compile(r"(^|_)(sd|std|stdev|stddev|se|sem|err|error|ci|var|variance|cv|rsd|moe)(_|$)")
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
_TROUBLES = re.compile(
    r"(?:.*_)?(?:(?:error|failure|timeout)s?_count|errors|failures|timeouts|failed_requests|retries|drops|dropped)"
)
"""Names of columns that count what went wrong."""
_IS_BAD = re.compile(r"(?:.*_)?(?:failed|failure|timed_out|timeout|error_occurred)")
_GOOD = {
    "", "0", "0.0", "200", "ok", "okay", "success", "successful", "succeeded", "pass", "passed", "true",
    "yes", "complete", "completed", "done", "finished", "normal", "valid", "none", "null",
}  # fmt: skip
_NOTHING = {"", "na", "n/a", "nan", "?", "-", "null", "none"}
_BAD = {"fail", "failed", "failure", "error", "timeout", "killed", "crashed", "crash", "aborted", "ko"}
_NO = {"", "0", "no", "false", "none", "null", "n"}
_YES = {"1", "yes", "true", "y"}
_OF_BENCHMARKS = {"name", "iterations", "real_time", "cpu_time", "time_unit"}
"""The columns of Google Benchmark's CSV: each row is a benchmark, and the file is the group."""
_OF_JMETER = {"timeStamp", "elapsed", "label", "success"}
"""The columns of JMeter's results: each row is a request of so many ms, and the file is the group."""
_NOT_MEASURED = {"outliers", "iterations"}
"""What pytest-benchmark says of a test beside its times."""
_NEVER = re.compile(
    r"(.*_)?((id|uuid)(_[0-9]+)?|time_?stamp|date|datetime|epoch|seed|version|hash|start(ed)?|start_?time|end_?time|pid"
    r"|time_?(slice|step|point|index))"
)
"""Names of columns that are no measurements, whatever their beginnings."""
_ID = re.compile(r"(.*_)?(id|uuid|hash|pid|tid)(_[0-9]+)?")
_SPREAD = re.compile(r"(.*_)?(error|err|margin|ci|ci_low|ci_high|lower|upper|lower_bound|upper_bound|±)")
_TIME_WORDS = re.compile(
    r"(.*_)?(time|seconds|secs|sec|s|ts|t|ms|us|ns|when|start|end|date|clock)|.*time_?stamp|.*epoch"
)
_AXIS = {"time", "t", "seconds", "sec", "s", "elapsed", "ts"}
_EPOCH = (1.0e9, 2.2e9)
"""Seconds since 1970, of the years 2001 to 2039."""
_EPOCH_SPREAD = 1.1
_MOST_FALLS = 0.2
"""Of the steps from row to row: where a group's rows end. Durations fall at half of them."""
_DATE = re.compile(
    r"(?:[0-9]{4}([-/])[0-9]{2}\1[0-9]{2}|[0-9]{1,2}([/.])[0-9]{1,2}\2[0-9]{4})(?:[T ][0-9:.,+Z -]+)?$"
)
_OF_TIMES = re.compile(r"(.*_)?(start|end|date|when|time_?stamp|epoch)(_time)?")
"""Names that say when and not how long."""
_WORD_ENDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])")
_OF_RANKS = {"rank", "place", "position", "row", "no", "nr", "#"}
_FARTHEST = 4
"""Numbers of runs are, on average, less far apart, also where some runs are lost."""
_LIMIT = re.compile(r"_(limit|target|goal|budget|cap|quota|set|setting|slo)(_|$)")
_STAMP = re.compile(r"(.*_)?time_?stamp")
_CHECKED = {"score", "result"}
"""Names of what a program computed, where they are whole numbers and its time stands beside them."""
_DURATION = re.compile(r"(duration|elapsed)(_.*)?")
_RATES_VARY = 1.5
_RATES_VARY_MORE = 4
"""Of runs whose length was set: what they got done a second varies by this power of how the length does."""
_BRACKET = re.compile(r"\s*[(\[{][^()\[\]{}]*[)\]}]\s*$")


def understand(header: list[str], rows: Sequence[Mapping[str, str]], file: SourceFile) -> Columns:
    """The columns' meanings. Raises ImportFailed where the user named one that is not there."""
    names: dict[str, str] = {}
    for column in header:
        names.setdefault(_plain(column), column)
    choices = file.choices
    values = _requested(choices.value, header)
    for requested in (*choices.group_by, *values):
        if requested not in header:
            raise ImportFailed(
                f"{file.path} has no column {requested}{nearest(requested, header)}; "
                f"it has: {some_of(header)}.",
                hint="--group-by and --value take names from the header",
            )
    taken = {*choices.group_by, *values}

    def one(meanings: set[str]) -> str:
        column = next((names[name] for name in names if name in meanings and names[name] not in taken), "")
        taken.add(column)
        return column

    index_of = _index_columns(names)
    error, sd, sd_percent = one(_ERROR), one(_SD), one(_SD_PERCENT)
    runs = one(_RUNS | _COUNTS if error or sd or sd_percent else _RUNS - _COUNTS)
    moments = tuple(column for column in header if column not in taken and is_moment(column, rows))
    moments += _time_axis(header, {*taken, *moments}, rows)
    taken |= set(moments)
    unit = one({name for name, column in names.items() if _UNIT.fullmatch(name) and _has_words(column, rows)})
    is_benchmarks, is_jmeter = set(header) >= _OF_BENCHMARKS, set(header) >= _OF_JMETER
    # An index is computed from the result, and rounded once more.
    values = values or (
        (index_of[1],)
        if index_of
        else ("real_time",)
        if is_benchmarks
        else ("elapsed",)
        if is_jmeter
        else _values(names, taken, rows, choices.units)
    )
    candidates = () if values else _candidates(header, taken, rows)
    value = values[0] if values else ""
    taken |= {value, *values}
    block = one(_BLOCK)
    sizes = {name for name, column in names.items() if name in _RUN and _is_far_apart(name, column, rows)}
    run = block or one(_RUN - sizes)
    metrics = {"name"} if is_benchmarks else {"label"} if is_jmeter else _METRIC
    metric, knob, session = one(metrics), one(_KNOB), one(_SESSION)
    families = tuple(name for name in (metric, knob, session) if name)
    default, note = one(_says_yes_or_no(names, rows)), one(_NOTE)
    taken |= set(index_of or ())
    status = one({name for name, column in names.items() if _says_whether_it_failed(name, column, rows)})
    troubles = tuple(
        column for name, column in names.items() if column not in taken and _TROUBLES.fullmatch(name)
    )
    taken |= set(troubles)
    in_seconds = any(set(tool_columns) <= set(header) for tool_columns in _IN_SECONDS)
    spreads = [column for column in header if column not in taken and _SPREAD.fullmatch(_plain(column))]
    others = [*spreads, *(_NOT_MEASURED & set(header) if in_seconds else ())]
    others += [column for name, column in names.items() if name in _RUN - sizes and column not in taken]
    of_a_tool = is_benchmarks or is_jmeter
    others += [column for column in header if of_a_tool and column not in {*taken, *others}]
    taken |= set(others)
    groups = choices.group_by or _without_numbers_of_rows(
        [name for name in header if name not in taken], rows
    )
    unread = [name for name in groups if name not in choices.group_by and _has_structure(name, rows)]
    groups = tuple(name for name in groups if name not in unread)
    others += [name for name in header if name not in taken and name not in groups]
    of_mean = bool(_MEAN.fullmatch(_plain(value))) or not any(
        _MEAN.fullmatch(_plain(name)) for name in header
    )
    if len(values) > 1 or not of_mean:
        others += [name for name in (error, sd, sd_percent) if name]
        error = sd = sd_percent = ""

    def named(name: str) -> NamedUnit:
        if is_jmeter and name == "elapsed":
            return NamedUnit(unit_named("ms"))
        seconds = in_seconds and name.lower() != "ops"
        return NamedUnit(unit_named("s")) if seconds else choices.units.of_column(name)

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
        named=named(value),
        others=tuple((name, named(name)) for name in values[1:]),
        candidates=candidates,
        better=choices.better,
    )


def _requested(value: str, header: Sequence[str]) -> tuple[str, ...]:
    """The columns that `--value` names: one, whatever its name has in it, or several with commas."""
    parts = tuple(part.strip() for part in value.split(",")) if value else ()
    several = value not in header and all(part in header for part in parts)
    return parts if several or not value else (value,)


def _says_whether_it_failed(name: str, column: str, rows: Sequence[Mapping[str, str]]) -> bool:
    """Whether its name says so and its cells too: `final` and `provisional` are no ends of a run."""
    if not _STATUS.fullmatch(name):
        return False
    words = {row[column].strip().lower() for row in rows}
    return any(word in _GOOD | _NO | _BAD or word.lstrip("-").isdigit() for word in words)


def _says_yes_or_no(names: Mapping[str, str], rows: Sequence[Mapping[str, str]]) -> set[str]:
    """Names of columns that mark the default; BenchmarkDotNet's `IsBaseline` may be the word `Default`."""
    return {
        name
        for name, column in names.items()
        if name in _DEFAULT
        and (name == "is_default" or any(row[column].strip().lower() in _NO | _YES for row in rows))
    }


def has_failed(name: str, cell: str) -> bool:
    """Whether a cell of a column `status`, `exit_code`, `success`, `timed_out`… says that its run failed."""
    word = cell.strip().lower()
    if _IS_BAD.fullmatch(_plain(name)):
        return word not in _NO
    if re.fullmatch(r"(?:.*_)?(?:success|succeeded|passed|ok)", _plain(name)):
        return word in _NO
    return word not in _GOOD


def _without_numbers_of_rows(names: Sequence[str], rows: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """The columns but those that number rows or name each (`rank`, `result_id`), where others are left."""
    groups = [
        name
        for name in names
        if not _ranks(name, rows)
        and (not _ID.fullmatch(_plain(name)) or len({row[name] for row in rows}) < len(rows))
    ]
    return tuple(groups or names)


def _ranks(name: str, rows: Sequence[Mapping[str, str]]) -> bool:
    """Whether it is called as a row's number, and numbers the rows."""
    return _plain(name) in _OF_RANKS and _counts_rows(name, rows)


def _is_far_apart(name: str, column: str, rows: Sequence[Mapping[str, str]]) -> bool:
    """Whether whole numbers lie too far apart to number runs: `iter` 1000, 10000, 100000 is a size."""
    numbers = {row[column].strip() for row in rows}
    if name == "seed" or name.endswith("_id") or len(numbers) < 2:
        return False
    if not all(cell.isdecimal() for cell in numbers):
        return False
    whole = [int(cell) for cell in numbers]
    return max(whole) - min(whole) >= _FARTHEST * len(whole)


def _has_structure(name: str, rows: Sequence[Mapping[str, str]]) -> bool:
    """Whether there are lists or objects in a column, or numbers with their unit: no names of groups."""
    cells = [row[name] for row in rows]
    of_numbers = Units().of_column(name).unit is not None and name.rstrip().endswith((")", "]"))
    return (
        all(cell[:1] in "[{" for cell in cells)
        or all(map(is_with_unit, cells))
        or (of_numbers and all(cell[:1].isdigit() for cell in cells) and not is_numeric(name, rows))
    )


def _plain(name: str) -> str:
    """A column's name in small letters and underscores, without brackets: `Time (ms)` is `time`.

    Dots, strokes and capitals part words: `Geometric.Mean`, `processing-time`, `MetricValue`; `run #`.
    """
    words = _WORD_ENDS.sub("_", _BRACKET.sub("", name.strip().rstrip("#") or name).strip())
    return re.sub(r"[\s.\-]+", "_", words).lower()


def is_moment(name: str, rows: Sequence[Mapping[str, str]]) -> bool:
    """Whether it says when: dates, or seconds, ms, µs or ns since 1970 that rise within groups.

    Of a column `timestamp` any numbers do that hardly ever repeat: clocks also count from a machine's start.
    """
    cells = [row[name].strip() for row in rows if row[name].strip()]
    if len(cells) >= 2 and all(":" in cell and _DATE.match(cell) for cell in cells):
        return True
    if len(cells) < 2 or not _TIME_WORDS.fullmatch(_plain(name)):
        return False
    if all(_DATE.match(cell) for cell in cells):
        return True
    moments = [value for cell in cells if (value := number(cell)) is not None]
    if _STAMP.fullmatch(_plain(name)) and len(moments) == len(cells):
        return len(set(moments)) >= _NEARLY_ALL * len(cells) or _are_since_1970(moments)
    if len(moments) == len(cells) and _OF_TIMES.fullmatch(_plain(name)):
        moments.sort()
    falls = sum(after < before for before, after in pairwise(moments))
    if len(moments) < len(cells) or falls > _MOST_FALLS * (len(moments) - 1) or min(moments) <= 0:
        return False
    return _are_since_1970(moments)


def _are_since_1970(moments: Sequence[float]) -> bool:
    low, high = _EPOCH
    first, last = min(moments), max(moments)
    return last < _EPOCH_SPREAD * first and any(
        low * scale <= first <= high * scale for scale in (1.0, 1e3, 1e6, 1e9)
    )


def without_other_numbers(
    columns: Columns, rows: Sequence[Mapping[str, str]], file: SourceFile
) -> tuple[Columns, tuple[DataWarning, ...]]:
    """The columns, without those of numbers that were measured, too, and a warning that names them.

    A column of numbers that has no name of its own here is a factor (`latency_ns` in a table of knobs) or
    another measurement (`user`, `median`). It is a measurement where its name says so, or where other columns
    tell the groups apart already and nearly every row has a number of its own in it, or where the user named
    the one to read. `--group-by` says otherwise.
    """
    if file.choices.group_by:
        return columns, ()
    varying = [name for name in columns.groups if len({row[name] for row in rows}) > 1]
    numeric = [name for name in columns.groups if is_numeric(name, rows)]
    # Versions of kernels may look like numbers: 6.1, 6.12.
    words = [name for name in varying if name not in numeric or _is_compared_in(name, rows)]
    numeric = [name for name in numeric if name not in words]
    labels = {tuple(row[name] for name in (*columns.families, *words)) for row in rows}
    all_told_apart = bool(file.choices.value and (words or columns.families)) and len(labels) == len(rows)
    measured = [name for name in numeric if all_told_apart or is_measured(name, words, columns, rows)]
    remaining = tuple(name for name in columns.groups if name not in measured)
    logged = len(rows) > MOST_GROUPS and len(measured) > 1
    by_families = bool(columns.families) and len(labels) == len(rows)
    if not measured or not (remaining or logged or by_families):
        return columns, ()
    many = "columns" if len(measured) > 1 else "column"
    warning = DataWarning(
        kind=WarningKind.INPUT_INCOMPLETE,
        text=f"{file.name}: the {many} {some_of(measured)}: taken for measurements, and left out",
        advice=f"--value {measured[0]} reads that one; --group-by names columns that tell groups apart",
    )
    return replace(columns, groups=remaining, left_out=(*columns.left_out, *measured)), (warning,)


def _has_words(name: str, rows: Sequence[Mapping[str, str]]) -> bool:
    """Whether there are no numbers in a column: pgbench's `scale` is no unit."""
    return not is_numeric(name, rows)


def is_numeric(name: str, rows: Sequence[Mapping[str, str]]) -> bool:
    """Whether there are numbers alone in a column, or lists of them, where it is not empty."""
    cells = [row[name].removesuffix("%").strip() for row in rows]
    return any(cells) and all(number(cell) is not None or runs_in(cell) for cell in cells if cell)


def has_no_number(header: Sequence[str], rows: Sequence[Mapping[str, str]]) -> str:
    """A column that is called as one of numbers, and has `NA` in every row; empty where none is."""
    return next(
        (
            name
            for name in header
            if (_plain(name) in _VALUES or _MEAN.fullmatch(_plain(name)))
            and all(row[name].strip().lower() in _NOTHING for row in rows)
        ),
        "",
    )


def numbers_runs(name: str) -> bool:
    """Whether a column numbers runs or blocks."""
    return _plain(name) in _RUN | _BLOCK


def is_compared(name: str, cells: Sequence[str]) -> bool:
    """Whether a column is called as what people compare (`kernel`), and has each number in several rows."""
    numbers = [number(cell) for cell in cells]
    return _plain(name) in _COMPARED and None not in numbers and len(set(numbers)) * 2 <= len(numbers)


def _is_compared_in(name: str, rows: Sequence[Mapping[str, str]]) -> bool:
    return is_compared(name, [row[name] for row in rows])


def is_measured_by_name(name: str) -> bool:
    """Whether a column is one of measurements, and no group, by its name."""
    plain = _plain(name)
    words = (*_VALUES, "mean", "average", "avg")
    known = any(plain == word or plain.startswith(f"{word}_") for word in words)
    spread = plain in _ERROR | _SD | _SD_PERCENT | _RUNS
    unit = Units().of_column(name).unit
    return known or spread or bool(_MEASURED.fullmatch(plain) or _NEVER.fullmatch(plain)) or unit is not None


def is_measured(name: str, words: Sequence[str], columns: Columns, rows: Sequence[Mapping[str, str]]) -> bool:
    """Whether a column of numbers was measured, beside the words that tell groups apart."""
    unit = Units().of_column(name).unit
    if len({row[name] for row in rows}) > MOST_GROUPS:
        return True
    if _is_measured_by_its_name(name, rows) or (unit is not None and unit.quantity.endswith("/s")):
        return True
    lasted = bool(_DURATION.fullmatch(_plain(name))) and _has_fractions(name, rows)
    if lasted or _is_called_after(columns.value, name) or _is_beside_groups(name, words, columns, rows):
        return True
    different = len({row[name] for row in rows})
    levels = [other for other in columns.groups if other != name and _is_level(other, rows)]
    if len(rows) < _FEW_ROWS or not (words or levels or columns.groups.index(name)):
        return False
    nearly_all = _has_fractions(name, rows) and different >= _NEARLY_ALL * len(rows)
    if not columns.summaries and (nearly_all or _plain(name) in _RESULTS):
        return True
    if not words:
        return False
    if columns.summaries:
        labels = {tuple(row[column] for column in (*columns.families, *words)) for row in rows}
        return len(labels) == len(rows) and different > len(rows) / 2 and _has_fractions(name, rows)
    return different > len(rows) / 2


def _is_measured_by_its_name(name: str, rows: Sequence[Mapping[str, str]]) -> bool:
    """Whether its name says so; `P1` and `P2` with a few levels each are no percentiles."""
    plain = _plain(name)
    is_letter = bool(re.fullmatch("p[0-9]", plain)) and _is_level(name, rows)
    return bool(_MEASURED.fullmatch(plain)) and not is_letter


def _is_called_after(value: str, name: str) -> bool:
    """Whether it is `runtime_naive` beside the numbers `runtime`; a `rate_limit` was set."""
    return _plain(name).startswith(f"{_plain(value)}_") and not _LIMIT.search(_plain(name))


def _is_beside_groups(
    name: str, words: Sequence[str], columns: Columns, rows: Sequence[Mapping[str, str]]
) -> bool:
    """Whether it tells no row apart that words and the whole numbers before it do not, and has fractions.

    Of whole numbers, nearly every row has one of its own then, beside sizes or behind what was measured.
    """
    before = columns.groups[: columns.groups.index(name)]
    levels = [other for other in before if _is_level(other, rows)]
    if not _has_fractions(name, rows):
        different = len({row[name] for row in rows})
        header = list(rows[0])
        behind = header.index(name) > header.index(columns.value)
        if (
            len(rows) < _FEW_ROWS
            or different < _NEARLY_ALL * len(rows)
            or not (behind or set(levels) - {*words})
        ):
            return False
        before = tuple(levels)
    if _plain(name) in _COMPARED or columns.knob:
        return False
    whole = [
        other
        for other in before
        if is_numeric(other, rows)
        and not _has_fractions(other, rows)
        and (_plain(other) == "n" or not is_measured_by_name(other))
    ]
    labels = {tuple(row[column] for column in (*columns.families, *words, *whole)) for row in rows}
    return len(rows) > 1 and len(labels) == len(rows)


def _is_level(name: str, rows: Sequence[Mapping[str, str]]) -> bool:
    """Whether a column has several levels, each in several rows, so that it tells groups of runs apart."""
    levels = {row[name] for row in rows}
    return 1 < len(levels) <= len(rows) / 2 and not (is_numeric(name, rows) and _has_fractions(name, rows))


def _has_fractions(name: str, rows: Sequence[Mapping[str, str]]) -> bool:
    return any("." in row[name] for row in rows)


def _index_columns(names: dict[str, str]) -> tuple[str, str, str] | None:
    if not {"baseline", "result", "index"} <= set(names):
        return None
    return names["baseline"], names["result"], names["index"]


def _time_axis(header: Sequence[str], taken: set[str], rows: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """A first column `time` that rises from row to row, beside another one that was measured: a log.

    Columns before it that are the same in all rows change nothing.
    """
    name = next((name for name in header if len({row[name] for row in rows}) > 1), header[0])
    if _plain(name) not in _AXIS or name in taken or len(rows) < _FEW_ROWS:
        return ()
    moments = [number(row[name]) for row in rows]
    rises = all(
        before is not None and after is not None and before < after for before, after in pairwise(moments)
    )
    measured = any(is_measured_by_name(other) for other in header if other not in {name, *taken})
    return (name,) if rises and measured else ()


def _values(
    names: dict[str, str], taken: set[str], rows: Sequence[Mapping[str, str]], units: Units
) -> tuple[str, ...]:
    """The columns of numbers; none where no name says it, and no unit. Those with numbers in them come first.

    Several where names say it of each alike: none is preferred.
    """
    free = {
        name: column
        for name, column in names.items()
        if column not in taken
        and not _NEVER.fullmatch(name)
        and not _is_compared_in(column, rows)
        and not (name.rpartition("_")[2] == "index" and not _has_fractions(column, rows))
        and not _ranks(column, rows)
    }
    if timed := next((free[name] for name in _VALUES if name in free and has_units(free[name], rows)), ""):
        return (timed,)
    numeric = {name: column for name, column in free.items() if any(_numbers(column, rows))}
    of_set_time = {name for name, column in numeric.items() if _is_set_time(name, column, numeric, rows)}
    checked = {name for name in _CHECKED & numeric.keys() if not _has_fractions(numeric[name], rows)}
    if any(_is_time(column, rows) for column in numeric.values()):
        of_set_time |= checked
    numeric = {name: column for name, column in numeric.items() if name not in of_set_time}
    values = _mean_of(names, numeric) or _by_name(numeric) or _by_unit(numeric, units)
    values = values or _by_ending(numeric, rows)
    if values or any(is_numeric(column, rows) for column in free.values()):
        others = () if has_no_number(list(free.values()), rows) else _only_numbers(numeric, rows)
        return values or others
    return _by_name(free)


def _is_time(column: str, rows: Sequence[Mapping[str, str]]) -> bool:
    """Whether it is a time with fractions, by its unit."""
    unit = Units().of_column(column).unit
    return unit is not None and unit.quantity == "s" and _has_fractions(column, rows)


def _is_set_time(
    name: str, column: str, numeric: Mapping[str, str], rows: Sequence[Mapping[str, str]]
) -> bool:
    """Whether runs lasted as long as was set: their durations differ far less than what they did a second."""
    if not _DURATION.fullmatch(name) or len(rows) < 2:
        return False
    if len(set(numeric.values())) > 1 and _varies(column, rows) == 1:
        return True
    rates = (other for other in numeric.values() if other != column and _is_rate(other))
    least = max(_RATES_VARY, _varies(column, rows) ** _RATES_VARY_MORE)
    return any(_varies(other, rows) >= least for other in rates)


def _is_rate(column: str) -> bool:
    named = Units().of_column(column)
    way = named.direction if named.unit is None else named.unit.direction
    return way is Direction.HIGHER


def _varies(column: str, rows: Sequence[Mapping[str, str]]) -> float:
    """The largest number by the smallest; 1 where there are none above zero."""
    values = [value for row in rows if (value := number(row[column])) is not None and value > 0]
    return max(values) / min(values) if values else 1.0


def has_units(column: str, rows: Sequence[Mapping[str, str]]) -> bool:
    """Whether most of its cells are numbers with a unit: those of tables where all are have been read."""
    there = [row[column] for row in rows if row[column].strip()]
    with_units = [cell for cell in there if is_with_unit(cell) and cell[-1:].isalpha()]
    return 2 * len(with_units) > len(there)


def _counts_rows(name: str, rows: Sequence[Mapping[str, str]]) -> bool:
    """Whether its cells are 0, 1, 2 and so on, or 1, 2, 3: UnixBench's indices have decimals."""
    cells = {row[name].strip() for row in rows}
    return any(cells == {str(at + first) for at in range(len(cells))} for first in (0, 1))


def _candidates(header: Sequence[str], taken: set[str], rows: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """Columns of numbers that differ, and that no name takes for something else."""
    free = [
        name
        for name in header
        if name not in taken
        and not _NEVER.fullmatch(_plain(name))
        and not _is_compared_in(name, rows)
        and not _ranks(name, rows)
    ]
    numeric = [
        name
        for name in free
        if _plain(name) not in _RUN | _BLOCK | {"n"}
        and any(_numbers(name, rows))
        and _is_mostly_numeric(name, rows)
    ]
    return tuple(sorted(numeric, key=_has_no_unit))


def _has_no_unit(name: str) -> bool:
    """Whether not even a doubtful unit ends the name: it comes last among those to choose from."""
    named = Units().of_column(name)
    return named.unit is None and not named.doubt


def _is_mostly_numeric(name: str, rows: Sequence[Mapping[str, str]]) -> bool:
    return is_numeric(name, rows) or 2 * sum(_numbers(name, rows)) > len(rows)


def _numbers(name: str, rows: Sequence[Mapping[str, str]]) -> Iterator[bool]:
    return (number(row[name].removesuffix("%")) is not None or bool(runs_in(row[name])) for row in rows)


def _mean_of(names: Mapping[str, str], numeric: Mapping[str, str]) -> tuple[str, ...]:
    """The mean of which the table has the standard deviation or error, too."""
    means = [numeric[name] for name in _MEANS if name in numeric]
    return tuple(means[:1]) if (_SD | _ERROR) & names.keys() and not {"value", "score"} & names.keys() else ()


def _by_name(columns: Mapping[str, str]) -> tuple[str, ...]:
    columns = {name: column for name, column in columns.items() if not _OF_SPREAD.search(name)}
    for name in (*_VALUES, *_MEANS):
        if name in columns:
            return (columns[name],)
    for fits in (_is_mean, _begins_as_value):
        if fitting := tuple(column for name, column in columns.items() if fits(name)):
            return fitting
    return ()


def _is_mean(name: str) -> bool:
    return _MEAN.fullmatch(name) is not None


def _begins_as_value(name: str) -> bool:
    return name.endswith("_value") or any(name.startswith(f"{value}_") for value in _VALUES)


def _by_ending(columns: Mapping[str, str], rows: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """Columns whose last word says that they were measured, and whose cells differ: `processing.time`."""
    differing = {name: column for name, column in columns.items() if len({row[column] for row in rows}) > 1}
    fitting = tuple(column for name, column in differing.items() if name.rpartition("_")[2] in _ENDINGS)
    return fitting if len(differing) - len(fitting) <= _MOST_OTHERS else ()


def _only_numbers(columns: Mapping[str, str], rows: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """The only column with digits in its cells, where the others hold words."""
    first, *others = rows
    digits = [
        name for name in first if any(row[name][:1].isdigit() or row[name][:1] in "-+.[(" for row in rows)
    ]
    plain = len(digits) == 1 and digits[0] in columns.values() and not any(map(number, first))
    return (digits[0],) if others and plain else ()


def _by_unit(columns: Mapping[str, str], grammar: Units) -> tuple[str, ...]:
    """The only column that is called as a unit of time; else all that are so much a second."""
    times = [column for name, column in columns.items() if name in _BARE_TIMES]
    if len(times) == 1:
        return tuple(times)
    units = {column: grammar.of_column(column).unit for column in columns.values()}
    return tuple(column for column, unit in units.items() if unit and unit.direction is Direction.HIGHER)
