"""What the columns of a table mean, told by their names."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ktrial.importers.errors import ColumnUnknown
from ktrial.importers.protocol import SourceFile
from ktrial.model.notation import nearest
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.program_outputs.numbers import number

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


def understand(header: list[str], file: SourceFile) -> Columns:
    """The columns' meanings. Raises ColumnUnknown where the user named one that is not there."""
    names = {name.strip().lower().replace(" ", "_"): name for name in header}
    asked = file.choices
    for wanted in (*asked.group_by, *filter(None, (asked.value,))):
        if wanted not in header:
            raise ColumnUnknown(
                file=file.path, column=wanted, similar=nearest(wanted, header), known=", ".join(header)
            )
    taken = set(asked.group_by) | {asked.value}

    def one(meanings: set[str]) -> str:
        column = next((names[name] for name in names if name in meanings and names[name] not in taken), "")
        taken.add(column)
        return column

    index_of = _index_columns(names)
    error, sd, sd_percent, runs = one(_ERROR), one(_SD), one(_SD_PERCENT), one(_RUNS)
    # An index is computed from the result, and rounded once more.
    value = asked.value or (index_of[1] if index_of else _value(names, taken))
    taken.add(value)
    block = one(_BLOCK)
    run = block or one(_RUN)
    metric, knob, session = one(_METRIC), one(_KNOB), one(_SESSION)
    families = tuple(name for name in (metric, knob, session) if name)
    default, unit, _ = one(_DEFAULT), one(_UNIT), one(_NOTE)
    taken |= set(index_of or ())
    in_seconds = any(set(each) <= set(header) for each in _IN_SECONDS)
    taken |= _NOT_MEASURED if in_seconds else set()
    groups = asked.group_by or tuple(name for name in header if name not in taken)
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
    others = [name for name in numeric if _is_measured(name, words, columns, rows)]
    kept = tuple(name for name in columns.groups if name not in others)
    if not others or not kept:
        return columns, ()
    many = "columns" if len(others) > 1 else "column"
    warning = DataWarning(
        kind=WarningKind.INPUT_INCOMPLETE,
        text=f"{file.name}: the {many} {', '.join(others)}: taken for measurements, and left out",
        advice=f"--value {others[0]} reads that one; --group-by names columns that tell groups apart",
    )
    return replace(columns, groups=kept), (warning,)


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
        labels = {tuple(row[each] for each in (*columns.families, *words)) for row in rows}
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
