"""Tables: one row a run, or one row a group with mean, standard error and standard deviation."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import overload

from ktrial.format.number_format import counted, percentage
from ktrial.importers.cells import CsvLine, is_with_unit, with_runs
from ktrial.importers.column_cells import has_own_in_each, has_units, is_empty
from ktrial.importers.column_names import has_failed, is_measured_by_name
from ktrial.importers.columns import HEADER, Columns, understand
from ktrial.importers.errors import ImportFailed, MeasurementsDamaged, NoMeasurements, some_of
from ktrial.importers.protocol import SourceFile, check_groups, decimals, rounded
from ktrial.importers.tables import GROUP, VALUE, Table, looks_like_table, made_long, table_of
from ktrial.model.imported import BASELINES, SCORE, Family, Group, Imported, IndexRow, Rounded, Score, Summary
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.program_outputs.reading import number
from ktrial.program_outputs.units import Unit, scaled, unit_named

_SHOWN = 8
_FEW_REPEATS = 0.05
"""Of all numbers: where more are there twice, they were printed too coarsely to be told apart."""
_TELLING_DIGITS = 4
_FEWEST_RUNS = 3
_MISSING = {"", "-", "---", "na", "n/a", "nan", "null", "none"}
_OF_METRICS = {"metric", "metric_name"}
"""Columns whose cells are called as columns are: `wall_seconds`."""
_YES, _NO = {"1", "yes", "true", "*"}, {"0", "no", "false", ""}


class _Reader:
    """One table."""

    def __init__(
        self, file: SourceFile, columns: Columns, rows: list[CsvLine], conditions: dict[str, str]
    ) -> None:
        self._conditions = conditions
        self._file, self._columns, self._rows = file, columns, rows
        self._varying = [
            name for name in columns.groups if len({row.cells[name] for row in rows}) > 1
        ] or list(columns.groups[:1])
        self._missing = 0
        self._unknown: dict[str, None] = {}
        self._converted: dict[str, list[str]] = {}
        self._repeats: list[str] = []
        self._failed: list[CsvLine] = []

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
            raise NoMeasurements(self._file.path, "csv", problem, text=self._file.text)
        return families

    def warnings(self) -> tuple[DataWarning, ...]:
        """What was left out, converted, or not understood."""
        kinds = {WarningKind.FAILED_TRIALS: self._failures(), WarningKind.INPUT_INCOMPLETE: self._remarks()}
        return tuple(
            DataWarning(kind=kind, text=f"{self._file.name}: {text}", advice=advice)
            for kind, remarks in kinds.items()
            for text, advice in remarks
        )

    def _failures(self) -> Iterator[tuple[str, str]]:
        """Runs that failed, and columns that count what went wrong."""
        advice = "find out why: what is left may be the better part"
        if self._failed:
            row = self._failed[0]
            text = f"{self._columns.status} is {row.cells[self._columns.status]} in line {row.line}"
            more = f"; {len(self._failed)} rows of {len(self._rows)} are like it" if self._failed[1:] else ""
            yield f"{text}{more}: left out", advice
        for name in self._columns.troubles:
            counts = {row.line: row.cells[name] for row in self._rows if number(row.cells[name])}
            if counts:
                line = next(iter(counts))
                more = (
                    f", and not 0 in {counted(len(counts) - 1, 'other row')}"
                    if counts.keys() - {line}
                    else ""
                )
                yield f"{name} is {counts[line]} in line {line}{more}", advice

    def _remarks(self) -> Iterator[tuple[str, str]]:
        named = self._columns.named
        if self._missing:
            text = f"{self._missing} rows have no number in {self._columns.value}; they are left out"
            yield text, "if runs failed there, find out why: what is left may be the better part"
        if self._repeats:
            more = f"; and {len(self._repeats) - 1} more like it" if len(self._repeats) > 1 else ""
            yield f"{self._repeats[0]}{more}", "look whether rows were copied, or left out"
        if (lines := _doubled(self._rows, columns=self._columns)) is not None:
            yield f"lines {lines[0]} and {lines[1]} are the same", "look whether one is a copy of the other"
        for unit, others in self._converted.items():
            yield (
                f"numbers in {', '.join(others)} were converted to {unit}",
                "--unit NAME=UNIT says otherwise",
            )
        if self._unknown:
            unit = next(iter(self._unknown))
            text = f"units that are not known: {', '.join(self._unknown)}"
            yield text, f"which way is better? --unit '{unit}={unit}:higher' or :lower"
        if named.doubt and not self._columns.unit:
            yield (
                f"the column {self._columns.value}: the unit {named.doubt} is not known, and none is assumed",
                f"say what it is: {' or '.join(f'--unit {meaning}' for meaning in named.meanings)}",
            )

    def _family(self, key: tuple[str, ...], rows: list[CsvLine]) -> Family:
        columns = self._columns
        unit, label = self._unit(rows)
        return Family(
            name=" · ".join(self._named(key)) or " · ".join(self._varying) or columns.value,
            metric=" ".join(self._metric(rows[0])),
            unit=label,
            direction=(unit.direction if unit else None) or columns.named.direction,
            groups=tuple(self._summarised(rows, unit) if columns.summaries else self._grouped(rows, unit)),
            blocked=columns.blocked and not columns.summaries,
        )

    def _named(self, key: tuple[str, ...]) -> Iterator[str]:
        """What a family is of: a size has its name beside it."""
        columns = self._columns
        for name, cell in zip(columns.families, key, strict=True):
            if cell:
                yield f"{name} {cell}" if name in columns.sizes else cell

    def _metric(self, row: CsvLine) -> Iterator[str]:
        columns = self._columns
        if columns.metric:
            yield row.cells[columns.metric]
        if columns.others or not columns.metric:
            yield columns.value

    def _unit(self, rows: list[CsvLine]) -> tuple[Unit | None, str]:
        """The family's unit, that of its first row, and what it is called. Raises ImportFailed."""
        columns = self._columns
        cells: dict[str, CsvLine] = {}
        for row in rows if columns.unit else ():
            cells.setdefault(row.cells[columns.unit], row)
        if not any(cells):
            in_name = rows[0].cells[columns.metric].rpartition(" ")[2] if columns.metric else ""
            unit = columns.named.unit or (
                unit_named(in_name.strip("()[]")) if in_name[:1] in ("(", "[") else None
            )
            if columns.metric.lower() in _OF_METRICS:
                unit = unit or self._file.choices.units.of_column(rows[0].cells[columns.metric]).unit
            return unit, unit.symbol if unit else ""
        first = rows[0].cells[columns.unit]
        unit = self._file.choices.units.of_text(first)
        for cell, row in cells.items():
            other = self._file.choices.units.of_text(cell)
            if cell != first and not (unit and other and other.converts_to(unit)):
                raise ImportFailed(
                    f"{self._file.path}, line {row.line}: the unit is {cell or 'empty'}, where line "
                    f"{rows[0].line} has {first or 'none'}: these do not convert into each other.",
                    hint=f"--unit {cell or 'NAME'}=UNIT says what it is; a column `metric` splits the table",
                )
        if unit is None:
            self._unknown[first] = None
        if len(cells) > 1:
            self._converted[first] = [cell for cell in cells if cell != first]
        return unit, first

    def _in_unit(self, value: float, row: CsvLine, unit: Unit | None) -> float:
        """A cell in the family's unit."""
        cell = row.cells[self._columns.unit] if self._columns.unit else ""
        own = self._file.choices.units.of_text(cell) if cell else None
        return value if unit is None or own is None or own == unit else scaled(value, own, unit)

    def _grouped(self, rows: list[CsvLine], unit: Unit | None) -> list[Group]:
        columns = self._columns
        split: dict[str, list[tuple[CsvLine, float]]] = defaultdict(list)
        failed: Counter[str] = Counter()
        for row in rows:
            if columns.status and has_failed(columns.status, row.cells[columns.status]):
                self._failed.append(row)
                failed[self._label(row)] += 1
                continue
            value = self._number(row, columns.value)
            if value is None:
                self._missing += 1
            else:
                if value < 0 and _is_never_below_zero(unit):
                    raise _damaged(self._file, row.line, f"{columns.value} is {value:g}: below zero")
                split[self._label(row)].append((row, self._in_unit(value, row, unit)))
                check_groups(self._file, len(split), self._varying, row.line)
        self._repeats += _uneven(self._columns, split)
        return [
            Group(
                label=label,
                factors=self._factors(measured[0][0]),
                is_default=self._is_default(measured[0][0]),
                values=tuple(value for _, value in measured),
                failed=failed[label],
                conditions=self._conditions,
                runs=self._runs(measured),
            )
            for label, measured in split.items()
        ]

    def _runs(self, measured: list[tuple[CsvLine, float]]) -> tuple[str, ...]:
        name = self._columns.run
        runs = tuple(_run_of(row, self._columns) for row, _ in measured) if name else ()
        if self._columns.blocked and len(set(runs)) < len(runs):
            row = next(row for at, (row, _) in enumerate(measured) if row.cells[name] in runs[:at])
            raise _damaged(self._file, row.line, f"block {row.cells[name]} has {self._label(row)} twice")
        return runs

    def _summarised(self, rows: list[CsvLine], unit: Unit | None) -> list[Group]:
        groups: list[Group] = []
        for row in rows:
            mean = self._number(row, self._columns.value)
            if mean is None:
                self._missing += 1
                continue
            label = self._label(row)
            check_groups(self._file, len(groups), self._varying, row.line)
            while any(group.label == label for group in groups):
                label += " (again)"
            groups.append(
                Group(
                    label=label,
                    factors=self._factors(row),
                    is_default=self._is_default(row),
                    summary=self._summary(row, mean, unit),
                    conditions=self._conditions,
                )
            )
        return groups

    def _summary(self, row: CsvLine, mean: float, unit: Unit | None) -> Summary:
        columns = self._columns
        runs = self._number(row, columns.runs) if columns.runs else None
        if runs is not None and (runs < 1 or runs != int(runs)):
            raise _damaged(
                self._file, row.line, f"{columns.runs} is {row.cells[columns.runs]!r}, no run count"
            )
        return Summary(
            mean=self._told(rounded(mean, self.places(columns.value)), row, unit),
            standard_error=self._told(self._spread(row, columns.error), row, unit),
            sd=self._told(self._spread(row, columns.sd), row, unit),
            sd_percent=self._spread(row, columns.sd_percent),
            runs=int(runs) if runs is not None else None,
        )

    @overload
    def _told(self, printed: Rounded, row: CsvLine, unit: Unit | None) -> Rounded: ...
    @overload
    def _told(self, printed: None, row: CsvLine, unit: Unit | None) -> None: ...
    def _told(self, printed: Rounded | None, row: CsvLine, unit: Unit | None) -> Rounded | None:
        """A printed number in the family's unit."""
        if printed is None:
            return None
        value, half_unit = (self._in_unit(part, row, unit) for part in (printed.value, printed.half_unit))
        return Rounded(value=value, half_unit=half_unit)

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
        return " · ".join(row.cells[name] for name in self._varying) or self._file.group

    def _factors(self, row: CsvLine) -> dict[str, str]:
        columns = self._columns
        return {name: row.cells[name] for name in (columns.knob, *columns.sizes, *columns.groups) if name}

    def _is_default(self, row: CsvLine) -> bool:
        column = self._columns.default
        text = row.cells[column].lower() if column else ""
        if text not in _YES | _NO:
            raise _damaged(self._file, row.line, f"{column} is {row.cells[column]!r}; 1 or 0 is expected")
        return text in _YES


def _run_of(row: CsvLine, columns: Columns) -> str:
    """The number of a row's run: `2`, or `2.1` where another column numbers the iterations of each run."""
    run = row.cells[columns.run]
    return f"{run}.{row.cells[columns.run_within]}" if columns.run_within else run


def _uneven(columns: Columns, groups: Mapping[str, Sequence[tuple[CsvLine, float]]]) -> Iterator[str]:
    """Runs that a group has twice, or that others have and it has not; none where no column numbers them."""
    if not columns.run:
        return
    run = f"{columns.run}.{columns.run_within}".rstrip(".")
    runs = {label: [_run_of(row, columns) for row, _ in measured] for label, measured in groups.items()}
    every = dict.fromkeys(name for of_group in runs.values() for name in of_group)
    numbers = sorted(int(name) for name in every if name.isdecimal())
    for label, of_group in runs.items():
        lines = {name: row.line for name, (row, _) in zip(of_group, groups[label], strict=True)}
        if twice := next((name for name in lines if of_group.count(name) > 1), ""):
            yield f"line {lines[twice]}: {label} has {run} {twice} twice"
        if missing := [name for name in every if name not in lines]:
            yield f"{label} has no {run} {', '.join(missing[:_SHOWN])}{', …' if missing[_SHOWN:] else ''}"
    if len(numbers) == len(every) and numbers and numbers[-1] - numbers[0] >= len(numbers):
        gap = next(before + 1 for before, after in pairwise(numbers) if after > before + 1)
        yield f"no row is of {run} {gap}"


def _doubled(rows: Sequence[CsvLine], columns: Columns) -> tuple[int, int] | None:
    """The lines of two rows that follow each other and are the same, where numbers hardly ever repeat."""
    cells = [row.cells[columns.value] for row in rows]
    if len(cells) - len(set(cells)) > max(1, _FEW_REPEATS * len(cells)):
        return None
    for row, below in pairwise(rows):
        digits = row.cells[columns.value].replace(".", "").lstrip("-0")
        if row.cells == below.cells and len(digits) >= _TELLING_DIGITS:
            return row.line, below.line
    return None


def _is_never_below_zero(unit: Unit | None) -> bool:
    """Whether it is a unit of time or of so much a time: a clock that was set back gives less than none."""
    return unit is not None and (unit.quantity == "s" or unit.quantity.endswith("/s"))


class Csv:
    """Columns are found by their names; docs/statistics.md lists them."""

    name = "csv"
    summary = "tables with a header: a row a run, or a row a group (mean, standard error, SD or SD %)"
    one_group = False

    def recognises(self, file: SourceFile) -> bool:
        """Whether the first line looks like a header of two columns or more."""
        return looks_like_table(file.text)

    def read(self, file: SourceFile) -> Imported:
        """Families and groups, in the table's order."""
        table = table_of(file)
        columns_only = tuple(name for name in file.choices.group_by if name not in table.conditions)
        file = replace(file, choices=replace(file.choices, group_by=columns_only))
        _check_header(file, table)
        columns, table = _understood(file, table)
        index_rows = _index(file, columns, table.rows) if columns.index_of and not file.choices.value else ()
        if index_rows and not columns.groups:
            return Imported(source=file.name, format=self.name, families=(), index_rows=index_rows)
        _check_cells(file, columns, table)
        columns = _means_as_runs(columns, table)
        conditions = {**table.conditions, **{name: table.rows[0].cells[name] for name in columns.constant}}
        readers = [
            _Reader(file, columns.of(*named), with_runs(table.rows, named[0]), conditions)
            for named in ((columns.value, columns.named), *columns.others)
        ]
        families = tuple(family for reader in readers for family in reader.families())
        remarks = dict.fromkeys(remark for reader in readers for remark in reader.warnings())
        return Imported(
            source=file.name,
            format=self.name,
            families=families,
            index_rows=index_rows,
            scores=_scores(families, readers[0].places(columns.value)),
            warnings=(*remarks, *_rounded_indices(file, families, columns, readers[0])),
            understood="; ".join((*table.remarks, columns.understood)),
        )


def _understood(file: SourceFile, table: Table) -> tuple[Columns, Table]:
    """The columns, and the table: a wide one is made long. Raises ImportFailed."""
    choices, cells = file.choices, [row.cells for row in table.rows]
    is_asked_for = HEADER in choices.group_by and HEADER not in table.header
    if not is_asked_for:
        _check_numbers(file, table)
        return understand(table.header, cells, file, table.line), table
    wide = tuple(name.strip() for name in choices.value.split(",") if name.strip())
    _check_names(file, table, wide)
    by = (GROUP, *(name for name in choices.group_by if name != HEADER))
    long = made_long(table, wide)
    file = replace(file, choices=replace(choices, value=VALUE, group_by=by))
    columns = understand(long.header, [row.cells for row in long.rows], file, table.line)
    return _rows_as_metrics(columns, table), long


def _check_names(file: SourceFile, table: Table, names: Sequence[str]) -> None:
    """Raise ImportFailed where `--group-by header` has no columns of numbers beside it."""
    missing = next((name for name in names if name not in table.header), None)
    if missing is not None or not names or {GROUP, VALUE} & {*table.header} - {*names}:
        problem = f"no column {missing}" if missing else "no columns that --value names"
        hint = (
            f"--group-by header makes groups of columns: --value {shlex.quote(','.join(table.header[-2:]))}"
        )
        raise ImportFailed(f"{file.path} has {problem}; it has: {some_of(table.header)}.", hint=hint)


def _check_numbers(file: SourceFile, table: Table) -> None:
    """Raise NoMeasurements where the header is a row of numbers, or what was measured has none in any row."""
    if file.choices.value:
        return
    cells = [row.cells for row in table.rows]
    if numbers := [name for name in table.header if number(name) is not None]:
        names = shlex.quote(",".join(numbers[:_SHOWN]))
        hint = "put a line with the columns' names above the numbers; "
        hint += f"if these are names of groups: --value {names} --group-by header"
        problem = f"line {table.line}: its header is {some_of(table.header)}"
        raise NoMeasurements(file.path, "csv", problem, hint)
    measured = [name for name in table.header if is_measured_by_name(name)]
    if measured and all(is_empty(name, cells) for name in measured):
        problem = f"no row has a number in {measured[0]}"
        raise NoMeasurements(file.path, "csv", problem, "a run that failed leaves it so", file.text)


def _check_header(file: SourceFile, table: Table) -> None:
    """Raise NoMeasurements where the first line is a row: with numbers, and words that stand below, too."""
    numbers = [name for name in table.header if number(name) is not None]
    again = (name for name in table.header if any(row.cells[name] == name for row in table.rows))
    if numbers and (word := next((name for name in again if name not in numbers), None)):
        problem = f"line {table.line}: its header is {some_of(table.header)}, and {word} is a cell, too"
        hint = "put a line with the columns' names above the numbers"
        raise NoMeasurements(file.path, "csv", problem, hint)


def _check_cells(file: SourceFile, columns: Columns, table: Table) -> None:
    """Raise MeasurementsDamaged where one time is written in another way, or where cells mean those above."""
    value, name = columns.value, table.header[0]
    odd = (row for row in table.rows if row.cells[value] and not is_with_unit(row.cells[value]))
    if has_units(value, [row.cells for row in table.rows]) and (row := next(odd, None)):
        problem = f"{value} is {row.cells[value]!r}, where most are numbers with a unit"
        raise _damaged(file, row.line, problem)
    first, *below = table.rows
    empty = (row for row in below if first.cells[name] and not row.cells[name])
    if name in (*columns.groups, *columns.families) and (row := next(empty, None)):
        above = f"{first.cells[name]!r} in line {first.line}"
        problem = f"{name} is empty, and {above}: write it in each row that it holds for"
        raise _damaged(file, row.line, problem)


def _means_as_runs(columns: Columns, table: Table) -> Columns:
    """Means that a group has three of or more are its runs: of each its own spread says nothing of that.

    Without a spread two are enough.
    """
    keys = {tuple(row.cells[name] for name in (*columns.families, *columns.groups)) for row in table.rows}
    spreads = (columns.error, columns.sd, columns.sd_percent, columns.runs)
    fewest = _FEWEST_RUNS * len(keys) if any(spreads) else len(keys) + 1
    if not columns.summaries or len(table.rows) < fewest:
        return columns
    left_out = (*columns.left_out, *(name for name in spreads if name))
    plain = replace(columns, summaries=False, error="", sd="", sd_percent="", runs="")
    return replace(plain, left_out=left_out)


def _rows_as_metrics(columns: Columns, wide: Table) -> Columns:
    """Of a wide table: the column that names each row, where there is one, names what was measured in it."""
    rows = [row.cells for row in wide.rows]
    left = [name for name in (*columns.left_out, *columns.constant) if name in wide.header]
    name = next((name for name in left if has_own_in_each(name, rows)), "")
    if columns.families or not name:
        return columns
    left_out = tuple(other for other in columns.left_out if other != name)
    constant = tuple(other for other in columns.constant if other != name)
    return replace(columns, families=(name,), metric=name, left_out=left_out, constant=constant)


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
    if columns.named.unit != unit_named("index") or not indices or min(indices) <= 0:
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
