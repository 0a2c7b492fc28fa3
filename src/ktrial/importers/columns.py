"""What the columns of a table mean: told by names that leave no doubt, else by the user.

A table is read unasked where exactly one column of numbers names a unit or a quantity, where each other
column is known by name for a family, a number of runs, a spread, a size that each group has, a moment, a
remark…, or is the same in all rows, and where at most one is left, of words, to tell the groups apart.
Wherever a column is left to guess, nothing is read, and the options that say it are printed. `--value` and
`--group-by` decide.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from ktrial.importers import column_names as by_name
from ktrial.importers.cells import BEHIND
from ktrial.importers.column_cells import (
    Rows,
    are_crossed,
    counts_rows,
    has_fractions,
    has_names,
    has_number,
    has_own_in_each,
    has_units,
    is_constant,
    is_empty,
    is_moment,
    is_mostly_numeric,
    is_numeric,
    numbers_runs,
)
from ktrial.importers.errors import ImportFailed, NoMeasurements, some_of
from ktrial.importers.protocol import MOST_GROUPS, SourceFile
from ktrial.importers.undecided import ColumnReading, ColumnsUndecided
from ktrial.model.notation import nearest
from ktrial.model.workload import Direction
from ktrial.program_outputs.units import NamedUnit, unit_named

FILE, HEADER = "file", "header"
"""What `--group-by` takes besides columns: the whole file is a group; the columns of `--value` are groups."""


@dataclass(frozen=True)
class Columns:
    """The header, understood: names of columns; empty where there is none."""

    value: str
    summaries: bool
    """Whether `value` is the mean of runs."""
    groups: tuple[str, ...]
    families: tuple[str, ...]
    """What splits the table: metric, knob, session, sizes."""
    sizes: tuple[str, ...] = ()
    """Those of the families that are numbers beside what is compared: sizes, threads."""
    metric: str = ""
    knob: str = ""
    """With the group's columns it says what the treatment is."""
    run: str = ""
    run_within: str = ""
    """Numbers runs within those of `run`: iterations."""
    blocked: bool = False
    error: str = ""
    sd: str = ""
    sd_percent: str = ""
    runs: str = ""
    default: str = ""
    unit: str = ""
    index_of: tuple[str, str, str] | None = None
    """Columns baseline, result and index, where the table has all three."""
    status: str = ""
    """Says whether a run failed: its number is left out then."""
    troubles: tuple[str, ...] = ()
    """Columns that count what went wrong."""
    constant: tuple[str, ...] = ()
    """Columns that say the same in all rows: conditions."""
    left_out: tuple[str, ...] = ()
    """Columns that nothing is read of."""
    named: NamedUnit = field(default_factory=NamedUnit)
    """What the value's name says of its unit; or whose table it is."""
    others: tuple[tuple[str, NamedUnit], ...] = ()
    """More columns of numbers, each a metric of its own."""
    better: Direction | None = None
    """Which way the user said is better."""

    @property
    def understood(self) -> str:
        """How each column was taken, with the option that says otherwise, in a line."""
        numbers = ", ".join(self._shown(*value) for value in ((self.value, self.named), *self.others))
        single = (
            self.run,
            self.run_within,
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
            _listed("the same in all rows", self.constant),
            _listed("not read", self.left_out),
        )
        return "; ".join(part for part in parts if part)

    def _shown(self, name: str, named: NamedUnit) -> str:
        told = named.direction if named.unit is None else named.unit.direction
        way = _WAYS[self.better or told]
        if self.better and told and self.better is not told:
            way = f"{way} by --better, where the name says {told.value}"
        shown = ", ".join(part for part in (named.unit.symbol if named.unit else "", way) if part)
        return f"{name} ({shown})" if shown and not self.unit else name

    def of(self, name: str, named: NamedUnit) -> "Columns":
        """The same table's meaning for another column of numbers."""
        return replace(self, value=name, named=named)


_WAYS = {Direction.HIGHER: "higher is better", Direction.LOWER: "lower is better", None: ""}


def _listed(what: str, names: Sequence[str], option: str = "") -> str:
    return f"{what} {', '.join(names)}{option}" if names else ""


# --- Tables that a tool writes: their headers are known as a whole.


@dataclass(frozen=True)
class _ToolTable:
    """The columns by which a tool's table is known, and what they mean."""

    known_by: tuple[str, ...]
    value: str
    unit: str = ""
    """Where no column tells it."""
    group: str = ""
    metric: str = ""
    aside: tuple[str, ...] = ()
    """Columns that are not read."""
    whole: bool = True
    """Whether each other column is not read either."""


_TOOL_TABLES = (
    _ToolTable(  # Google Benchmark: each row is a benchmark, and the file is the group.
        ("name", "iterations", "real_time", "cpu_time", "time_unit"), "real_time", metric="name"
    ),
    _ToolTable(  # JMeter: each row is a request of so many ms, and the file is the group.
        ("timeStamp", "elapsed", "label", "success"), "elapsed", "ms", metric="label"
    ),
    _ToolTable(  # hyperfine, whose tables are in seconds and do not say so.
        ("command", "mean", "stddev", "median", "user", "system", "min", "max"), "mean", "s", "command"
    ),
    _ToolTable(  # pytest-benchmark, likewise.
        ("name", "min", "max", "mean", "stddev", "median", "iqr", "outliers", "ops", "rounds", "iterations"),
        "mean",
        "s",
        "name",
    ),
    _ToolTable(  # hyperfine's table in Markdown; its unit stands in brackets, and its ± are SDs.
        ("Command", "Relative"), "", group="Command", aside=("Relative",), whole=False
    ),
    _ToolTable(  # redis-benchmark: each row is a test, and the file is the group.
        ("test", "rps", "avg_latency_ms", "min_latency_ms", "p50_latency_ms"), "rps", metric="test"
    ),
    _ToolTable(  # locust's statistics: a row for each name of requests.
        ("Type", "Name", "Request Count", "Failure Count", "Average Response Time"),
        "Average Response Time",
        "ms",
        "Name",
    ),
    _ToolTable(  # criterion's of Haskell, in seconds; each row is a benchmark, and the file is the group.
        ("Name", "Mean", "MeanLB", "MeanUB", "Stddev", "StddevLB", "StddevUB"), "Mean", "s", metric="Name"
    ),
    _ToolTable(  # BenchmarkDotNet's tables: parameters stand beside the method.
        ("Method", "Mean"),
        "Mean",
        group="Method",
        aside=(
            "Error", "Median", "Ratio", "RatioSD", "Gen0", "Gen1", "Gen2", "Allocated", "Alloc Ratio", "Rank",
            "Min", "Max", "Op/s", "Gen 0", "Gen 1", "Gen 2", "Baseline", "Scaled", "ScaledSD",
        ),
        whole=False,
    ),
)  # fmt: skip


def _tool_of(header: Sequence[str]) -> _ToolTable | None:
    return next((table for table in _TOOL_TABLES if set(table.known_by) <= set(header)), None)


# --- The columns one after another: what is known of each, and what is not.


def understand(header: list[str], rows: Rows, file: SourceFile, line: int = 1) -> Columns:
    """The columns' meanings.

    Raises ImportFailed where the user named a column that is not there, ColumnsUndecided where one is left to
    guess.
    """
    return _HeaderInDoubt(header, rows, file, line).columns()


class _HeaderInDoubt:
    """The columns of one table while they are understood: each is taken for one thing, in this order."""

    def __init__(self, header: list[str], rows: Rows, file: SourceFile, line: int) -> None:
        self.header, self.rows, self.file, self.line = header, rows, file, line
        self.choices = file.choices
        self.names: dict[str, str] = {}
        for column in header:
            self.names.setdefault(by_name.plain(column), column)
        self.tool = None if self.choices.value else _tool_of(header)
        self.values = _requested(self.choices.value, header)
        self.group_by = tuple(name for name in self.choices.group_by if name in header or name != FILE)
        self._check_requests()
        self.roles: dict[str, str] = dict.fromkeys(self.group_by, "group (--group-by)")
        self.open: dict[str, str] = {}
        self.splitting: tuple[str, ...] = ()

    def _check_requests(self) -> None:
        for requested in (*self.group_by, *self.values):
            if requested not in self.header:
                raise ImportFailed(
                    f"{self.file.path} has no column {requested}{nearest(requested, self.header)}; "
                    f"it has: {some_of(self.header)}.",
                    hint="--group-by and --value take names from the header; also --group-by file, or header",
                )

    def columns(self) -> Columns:
        """All of it. Raises ColumnsUndecided."""
        index_of = None if self.values else self._index_columns()
        self._take(self.values, "numbers (--value)")
        error, sd, sd_percent = (
            self._one(names, "spread", numeric=True)
            for names in (by_name.ERROR, by_name.SD, by_name.SD_PERCENT)
        )
        has_mean = bool(error or sd or sd_percent) or any(map(by_name.is_plain_mean, self.header))
        counts = by_name.RUNS if error or sd or sd_percent else by_name.RUNS - by_name.COUNTS
        runs = self._one(counts, "number of runs", numeric=True) if has_mean else ""
        left_out = [*self._not_read()]
        unit = next(
            (
                name
                for name in self._free()
                if by_name.UNIT.fullmatch(by_name.plain(name)) and not is_numeric(name, self.rows)
            ),
            "",
        )
        self._take([unit], "unit of each row")
        status = next((name for name in self._free() if by_name.is_status(name, self._cells(name))), "")
        self._take([status], "whether the run failed")
        troubles = tuple(name for name in self._free() if by_name.TROUBLES.fullmatch(by_name.plain(name)))
        self._take(troubles, "what went wrong, counted: told")
        default = self._one(self._defaults(), "marks the default")
        if index_of:
            self._take(index_of, "UnixBench's index")
        block = next((name for name in self._free() if self._is_block(name)), "")
        self._take([block], "block")
        runs_numbered = [
            name
            for name in self._free()
            if by_name.plain(name) in by_name.RUN | by_name.WEAK_RUN
            and numbers_runs(name, self.rows)
            and not (is_constant(name, self.rows) and self.rows[0][name] not in ("0", "1"))
        ]
        run = block or next(iter(runs_numbered), "")
        self._take(runs_numbered, "numbers the runs")
        within = "" if block else next((name for name in runs_numbered if self._is_within(name, run)), "")
        left_out += [name for name in runs_numbered if name not in (run, within)]
        metric, families = self._families()
        values = self.values or ((index_of[1],) if index_of else self._values(metric, has_mean))
        value = values[0] if values else ""
        left_out += self._statistics(value, {error, sd, sd_percent, runs, *values})
        if len(values) > 1 or (has_mean and value and not self._summarises(value, error, sd, sd_percent)):
            left_out += [name for name in (error, sd, sd_percent, runs) if name]
            error = sd = sd_percent = runs = ""
        constant = tuple(name for name in self._free() if self._is_condition(name))
        self._take(constant, "condition: the same in all rows")
        groups, sizes = self._groups(families, metric, constant)
        knob = self.names["knob"] if "knob" in self.names and self.names["knob"] in families else ""
        self._check_decided(values)
        left_out += [name for name in self.header if name in self.open or name in self._free()]
        return Columns(
            value=value,
            summaries=bool(error or sd or sd_percent or by_name.is_plain_mean(value)),
            groups=groups,
            families=(*families, *sizes),
            sizes=sizes,
            metric=metric,
            knob=knob,
            run=run,
            run_within=within,
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
            constant=tuple(name for name in constant if name not in groups),
            left_out=tuple(dict.fromkeys(left_out)),
            named=self._named(value),
            others=tuple((name, self._named(name)) for name in values[1:]),
            better=self.choices.better,
        )

    # --- Names that leave no doubt.

    def _cells(self, name: str) -> list[str]:
        return [row[name] for row in self.rows]

    def _free(self) -> list[str]:
        return [name for name in self.header if name not in self.roles]

    def _take(self, names: Iterable[str], role: str) -> None:
        for name in names:
            if name:
                self.roles.setdefault(name, role)

    def _one(self, meanings: set[str], role: str, numeric: bool = False) -> str:
        free = self._free()
        column = next(
            (
                column
                for name, column in self.names.items()
                if name in meanings and column in free and (not numeric or is_numeric(column, self.rows))
            ),
            "",
        )
        self._take([column], role)
        return column

    def _index_columns(self) -> tuple[str, str, str] | None:
        """UnixBench's own table: an index is computed from the result, and rounded once more."""
        if not {"baseline", "result", "index"} <= set(self.names):
            return None
        return self.names["baseline"], self.names["result"], self.names["index"]

    def _not_read(self) -> Iterable[str]:
        """Remarks, moments, numbers of rows, and columns with nothing in them."""
        rules: tuple[tuple[str, Callable[[str], bool]], ...] = (
            ("empty", lambda name: is_empty(name, self.rows) and name not in self._quantities()),
            ("a remark", lambda name: by_name.plain(name) in by_name.NOTE),
            ("when it was measured", lambda name: is_moment(name, self.rows)),
            ("numbers the rows", lambda name: counts_rows(name, self.rows)),
            (
                "a name of its own for each row",
                lambda name: bool(by_name.IDENTIFIER.fullmatch(by_name.plain(name)))
                and len(self.rows) > 1
                and has_own_in_each(name, self.rows)
                and by_name.plain(name) not in by_name.RUN | by_name.WEAK_RUN,
            ),
        )  # fmt: skip
        for role, holds in rules:
            for name in self._free():
                if holds(name):
                    self._take([name], f"not read: {role}")
                    yield name

    def _is_within(self, name: str, run: str) -> bool:
        """Whether it numbers runs that another column gives one number: iterations of a run."""
        pairs = {(row[run], row[name]) for row in self.rows}
        return name != run and len(pairs) > len({row[run] for row in self.rows})

    def _is_block(self, name: str) -> bool:
        """Whether several rows are of each block: of sizes of blocks each may have but one."""
        rows_of_blocks = Counter(self._cells(name)).values()
        several = sum(count > 1 for count in rows_of_blocks)
        return by_name.plain(name) in by_name.BLOCK and 2 * several > len(rows_of_blocks)

    def _defaults(self) -> set[str]:
        """Names of columns that mark the default; BenchmarkDotNet's `IsBaseline` may be `Default`."""
        return {
            name
            for name, column in self.names.items()
            if name in by_name.DEFAULT
            and (
                name == "is_default"
                or any(cell.strip().lower() in by_name.NO | by_name.YES for cell in self._cells(column))
            )
        }

    def _families(self) -> tuple[str, tuple[str, ...]]:
        """What was measured, and what else splits the table: words alone, for a `test` may be a number."""
        if self.tool and self.tool.metric:
            self._take([self.tool.metric], "splits the table")
            return self.tool.metric, (self.tool.metric,)
        words = [name for name in self._free() if not is_numeric(name, self.rows)]
        metric, benchmark, knob, session = (
            next((name for name in words if by_name.plain(name) in meanings), "")
            for meanings in (by_name.METRIC, by_name.BENCHMARK, by_name.KNOB, by_name.SESSION)
        )
        others = [name for name in words if name not in (metric, benchmark, knob, session)]
        session = session if any(not self._is_condition(name) for name in others) or knob else ""
        families = tuple(name for name in (metric, benchmark, knob, session) if name)
        self._take(families, "splits the table")
        return metric or benchmark, families

    # --- Which column has the numbers.

    def _named(self, name: str) -> NamedUnit:
        if self.tool and self.tool.unit and name == self.tool.value:
            return NamedUnit(unit_named(self.tool.unit))
        return self.choices.units.of_column(name)

    def _candidates(self) -> list[str]:
        """Columns of numbers that name a unit or a quantity, and are no sizes."""
        units = self.choices.units
        return [
            name
            for name in self._free()
            if by_name.names_quantity(name, units)
            and not by_name.is_size(name, units)
            and not name.endswith(BEHIND)
            and (has_number(name, self.rows) or has_units(name, self.rows))
        ]

    def _values(self, metric: str, has_mean: bool) -> tuple[str, ...]:
        """The only column that names a quantity; of a table of summaries the only mean."""
        if self.tool and self.tool.value:
            self._take([self.tool.value], "numbers")
            return (self.tool.value,)
        candidates = self._candidates()
        if has_mean or len(candidates) > 1:
            means = [name for name in candidates if by_name.is_mean(name)]
            if len(means) == 1 and all(
                by_name.is_statistic_of(name, means[0], self.choices.units)
                for name in candidates
                if name != means[0] and not by_name.is_beside_means(name)
            ):
                candidates = means
        if len(candidates) != 1:
            why = "one of several measurements, or a setting"
            self.open |= dict.fromkeys(candidates, why)
            return ()
        if self.choices.units.of_column(candidates[0]).doubt:
            self.open[candidates[0]] = "a measurement, whose unit is not known: --unit says it"
            return ()
        self._take(candidates, "numbers")
        return tuple(candidates)

    def _statistics(self, value: str, read: set[str]) -> list[str]:
        """Columns that stand beside the one that is read, and tell the same numbers in another way."""
        units, tool = self.choices.units, self.tool
        all_others = tool is not None and tool.whole
        aside = [
            name
            for name in self._free()
            if name not in read
            and (
                (tool is not None and name != tool.group and (all_others or name in tool.aside))
                or (by_name.is_mean(value) and by_name.is_statistic_of(name, value, units))
                or (by_name.is_mean(value) and by_name.is_beside_means(name))
                or name.endswith(BEHIND)
            )
        ]
        self._take(aside, "not read: another statistic of the same runs")
        for name in aside:
            self.open.pop(name, None)
        return aside

    def _summarises(self, value: str, *spreads: str) -> bool:
        """Whether the spreads are those of the value: of the only mean, or of the only column."""
        return any(spreads) and (by_name.is_mean(value) or not any(map(by_name.is_mean, self.header)))

    # --- Which columns tell the groups apart.

    def _is_condition(self, name: str) -> bool:
        """Whether it is the same in all rows, and nothing that may have been measured."""
        return is_constant(name, self.rows) and not by_name.names_quantity(name, self.choices.units)

    def _groups(
        self, families: Sequence[str], metric: str, constant: Sequence[str]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The columns of groups, and the sizes that split the table. What is left to guess is put down."""
        if self.choices.group_by:
            return self.group_by, ()
        if self.tool and self.tool.group:
            self._take([self.tool.group], "group")
        free = self._free()
        known = {self.tool.group} if self.tool and self.tool.group else set()
        level = (
            self.names.get(by_name.LEVEL, "")
            if by_name.KNOB & {by_name.plain(name) for name in families}
            else ""
        )
        known |= {level} if level in free else set()
        named = [name for name in free if self._names_groups(name)]
        factors = [name for name in self.header if name in known or (name in named and not known)]
        sizes = [name for name in free if name not in factors and self._is_size(name)]
        for name in free:
            if name not in (*factors, *sizes, *self.open):
                self.open[name] = self._doubt(name)
        if len(factors) > 1:
            self.open |= dict.fromkeys(factors, "one of several that may be compared")
            self.open |= dict.fromkeys(sizes, "a number that was set, or another group")
            return tuple(factors), tuple(sizes)
        if not factors and len(sizes) == 1:
            self._take(sizes, "group")
            return tuple(sizes), ()
        if factors and sizes and not are_crossed(sizes, factors[0], families, self.rows):
            self.open |= dict.fromkeys(sizes, "not each group has each of them")
        elif not factors and sizes:
            self.open |= dict.fromkeys(sizes, "one of several that may be compared")
        self._take(factors, "group")
        self.splitting = tuple(name for name in sizes if name not in self.open)
        self._take(self.splitting, "splits the table")
        if factors or sizes:
            return tuple(factors), tuple(sizes)
        return self._only_group(constant), ()

    def _is_size(self, name: str) -> bool:
        """Whether its name says that it was set; `n` beside a mean may be the number of runs."""
        is_size = by_name.is_size(name, self.choices.units) and is_numeric(name, self.rows)
        is_size = is_size and not has_fractions(name, self.rows)
        may_count = by_name.plain(name) in by_name.COUNTS and any(map(by_name.is_mean, self.header))
        return is_size and not may_count

    def _names_groups(self, name: str) -> bool:
        """Whether it has words that tell rows apart, or versions; not those that may be of a measurement."""
        if by_name.plain(name) in by_name.COMPARED:
            return True
        quantity = by_name.names_quantity(name, self.choices.units)
        is_code = bool(
            by_name.IDENTIFIER.fullmatch(by_name.plain(name)) or by_name.STATUS.fullmatch(by_name.plain(name))
        )
        return has_names(name, self.rows) and not quantity and not is_code

    def _only_group(self, constant: Sequence[str]) -> tuple[str, ...]:
        """Where nothing tells rows apart: what the whole file is of, if one column of words says it."""
        compared = [name for name in constant if by_name.plain(name) in by_name.COMPARED]
        words = [name for name in constant if has_names(name, self.rows)]
        for names in (compared, words):
            if len(names) == 1:
                return (names[0],)
        return ()

    def _doubt(self, name: str) -> str:
        """Why nothing is made of a column."""
        if is_numeric(name, self.rows):
            quantity = by_name.names_quantity(name, self.choices.units)
            return "measured, or set" if quantity else "numbers without a known name: measured, or set"
        return "words and numbers: a group, or something measured"

    # --- What is left to guess.

    def _check_decided(self, values: Sequence[str]) -> None:
        """Raise ColumnsUndecided unless all is known, or the user said what has to be."""
        if values and (self.choices.group_by or not self.open):
            return
        readings = [
            ColumnReading(name, self.roles.get(name, ""), self.open.get(name, ""), self._options_of(name))
            for name in self.header
        ]
        candidates = self._suggested_values(values)
        if not candidates:
            problem = f"line {self.line}: no column is one of numbers ({some_of(self.header)})"
            raise NoMeasurements(self.file.path, "csv", problem, "name the column of numbers: --value COLUMN")
        fractions = [name for name in candidates if has_fractions(name, self.rows)]
        if not values and len(fractions) > 1 and not self._quantities() & {*candidates}:
            in_order = [name for name in self.header if name in fractions]
            raise ColumnsUndecided(self.file, self.line, readings, in_order, [HEADER])
        suggested = candidates[:1]
        groups = self._suggested_groups(suggested[0] if suggested else "")
        raise ColumnsUndecided(self.file, self.line, readings, suggested, groups)

    def _options_of(self, name: str) -> str:
        """What decides a column that is open."""
        if name not in self.open:
            return ""
        if not is_mostly_numeric(name, self.rows):
            return "--group-by"
        return "--value" if has_fractions(name, self.rows) else "--value or --group-by"

    def _suggested_values(self, values: Sequence[str]) -> list[str]:
        """What `--value` may name, the most likely first; all of a wide table's together."""
        numeric = [name for name in self.header if name in self.open and has_number(name, self.rows)]
        quantities = [name for name in numeric if name in self._quantities()]
        quantities.sort(
            key=lambda name: (
                not by_name.is_mean(name),
                not by_name.is_quantity(name),
                not has_fractions(name, self.rows),
            )
        )
        others = [name for name in numeric if name not in quantities]
        others.sort(key=lambda name: (by_name.is_counted(name), not has_fractions(name, self.rows)))
        return [*dict.fromkeys((*values, *quantities, *others))]

    def _quantities(self) -> set[str]:
        units = self.choices.units
        return {name for name in self.header if by_name.names_quantity(name, units)}

    def _suggested_groups(self, value: str) -> list[str]:
        """What `--group-by` takes together, as far as names and cells say it; else the file."""
        decided = [name for name, role in self.roles.items() if role == "group" or name in self.splitting]
        free = [name for name in self.header if name in self.open and name != value]
        whole = [
            name for name in free if is_mostly_numeric(name, self.rows) and not has_fractions(name, self.rows)
        ]
        words = [name for name in free if not is_mostly_numeric(name, self.rows)]
        plain = [name for name in words if self._names_groups(name)] or ([] if decided else words)
        repeated = [name for name in plain if self._repeats(name)] or plain
        levels = [name for name in whole if self._repeats(name)]
        of_names = [name for name in levels if name not in self._quantities()]
        sizes = [name for name in free if by_name.is_size(name, self.choices.units)]
        chosen = {*decided, *repeated, *sizes, *of_names} - {value}
        groups = [name for name in self.header if name in chosen]
        while len({tuple(row[name] for name in groups) for row in self.rows}) > MOST_GROUPS and groups:
            groups.pop()
        alone = [name for name in (*levels, *whole[:1]) if len({*self._cells(name)}) <= MOST_GROUPS]
        return groups or alone or [FILE]

    def _repeats(self, name: str) -> bool:
        return 2 * len(set(self._cells(name))) <= len(self.rows)


def _requested(value: str, header: Sequence[str]) -> tuple[str, ...]:
    """The columns that `--value` names: one, whatever its name has in it, or several with commas."""
    parts = tuple(part.strip() for part in value.split(",")) if value else ()
    several = value not in header and all(part in header for part in parts)
    return parts if several or not value else (value,)
