"""Cells as people write them: numbers with their unit, with ±, lists; rows that sum others up."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ktrial.program_outputs.reading import number
from ktrial.program_outputs.units import converted, converts, unit_named

BEHIND = " ±"
"""The end of the name of a column that has what stood behind ±."""
_PLUS_MINUS = re.compile(r"([-+]?[0-9.]+)\s*[^\d\s±+]{0,6}\s*(?:±|\+/-|\+-)\s*([0-9.]+)\s*[^\d\s]{0,6}")
MISSING = {"", "-", "?", "na", "n/a", "nan"}
_WITH_UNIT = re.compile(r"([-+]?[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?)\s*([^\d\s.,%][^\d]{0,11})")
_LIST = re.compile(r"[\[({]([^\[\](){}]+)[\])}]")
_OF_HYPERFINE = {"Command", "Relative"}
_SUMMARY = re.compile(
    r"(?:geo(?:metric)?[ _-]?)?(?:mean|average|avg)|median|total|sum|std|stdev|stddev|overall|aggregated?",
    re.IGNORECASE,
)
_FEWEST = 2
"""Rows that are no sums."""


@dataclass(frozen=True)
class CsvLine:
    """One line of the table."""

    line: int
    cells: dict[str, str]


Rows = list[CsvLine]
_Read = tuple[list[str], Rows, str]


def plain_cells(header: list[str], rows: Rows) -> tuple[list[str], Rows, list[str]]:
    """The same table with numbers alone in their cells: a unit, or what stands behind ±, has its own column.

    Only where every cell of a column has the form. Last, how it was read.
    """
    remarks: list[str] = []
    header, rows, remark = _without_sums(header, rows)
    remarks += [remark] if remark else []
    ways: tuple[Callable[[str, Sequence[str], list[str], Rows], _Read], ...]
    ways = (_with_units, _with_spread)
    for name in list(header):
        cells = [row.cells[name] for row in rows if row.cells[name]]
        for read in ways:
            header, rows, remark = read(name, cells, header, rows)
            if remark:
                remarks.append(remark)
                break
    return header, rows, remarks


def _with_units(name: str, cells: Sequence[str], header: list[str], rows: Rows) -> _Read:
    """`12.1 ms` and `9 us`: the unit becomes a column; a second such column is converted to the first's."""
    present = [cell for cell in cells if cell.lower() not in MISSING]
    matches = [_WITH_UNIT.fullmatch(cell) for cell in present]
    units = [unit_named(match[2].strip()) if match else None for match in matches]
    if not present or not all(units):
        return header, rows, ""
    first = next((other for other in header if f"{other} unit" in header), "")
    beside = f"{name} unit"
    if not first and any("unit" in other.lower() for other in header):
        return header, rows, ""
    usual = next(match[2].strip() for match in matches if match)
    split = [_parted(row, name, usual) for row in rows]
    if not first:
        plain = [
            CsvLine(row.line, {**row.cells, name: value, beside: unit})
            for row, (value, unit) in zip(rows, split, strict=True)
        ]
        return [*header, beside], plain, f"units in the cells of {name}"
    numbers = [
        _in_unit(value, unit, row.cells[f"{first} unit"])
        for row, (value, unit) in zip(rows, split, strict=True)
    ]
    if any(cell is None for cell in numbers):
        return header, rows, ""
    plain = [
        CsvLine(row.line, {**row.cells, name: cell or ""}) for row, cell in zip(rows, numbers, strict=True)
    ]
    return header, plain, f"{name} in the unit of {first}"


def _parted(row: CsvLine, name: str, usual: str) -> tuple[str, str]:
    """A cell's number and unit; of an empty one no number, and the column's first unit."""
    match = _WITH_UNIT.fullmatch(row.cells[name])
    return (match[1], match[2].strip()) if match else ("", usual)


def is_with_unit(cell: str) -> bool:
    """Whether it is a number with a unit that is known, or empty: `24 B`."""
    match = _WITH_UNIT.fullmatch(cell)
    return cell.lower() in MISSING or (match is not None and unit_named(match[2].strip()) is not None)


def _in_unit(value: str, unit: str, target: str) -> str | None:
    """The same number in another unit; None where it does not convert."""
    if unit == target or not value:
        return value
    return f"{converted(float(value), unit, target):.12g}" if converts(unit, target) else None


def _with_spread(name: str, cells: Sequence[str], header: list[str], rows: Rows) -> _Read:
    """`101.2 ± 0.4`: in hyperfine's tables the standard deviation; elsewhere nothing says what it is."""
    matches = [_PLUS_MINUS.fullmatch(cell) for cell in cells]
    plain = [match or number(cell) is not None for match, cell in zip(matches, cells, strict=True)]
    if not any(matches) or not all(plain):
        return header, rows, ""
    is_sd = set(header) >= _OF_HYPERFINE and name.startswith("Mean") and "sd" not in header
    beside = "sd" if is_sd else f"{name}{BEHIND}"

    def split(row: CsvLine) -> CsvLine:
        match = _PLUS_MINUS.fullmatch(row.cells[name])
        value, spread = (match[1], match[2]) if match else (row.cells[name], "")
        return CsvLine(row.line, {**row.cells, name: value, beside: spread})

    what = "standard deviations" if is_sd else "not read, for nothing says of what kind"
    return [*header, beside], [split(row) for row in rows], f"what stands behind ± in {name}: {what}"


def _without_sums(header: list[str], rows: Rows) -> _Read:
    """Without rows at the end that were computed of the others: their first word is `Mean` or `Total`."""
    at = len(rows)
    while at > _FEWEST and _SUMMARY.fullmatch(_first_cell(header, rows[at - 1]).strip("*_ :")):
        at -= 1
    if at == len(rows):
        return header, rows, ""
    names = ", ".join(_first_cell(header, row) for row in rows[at:])
    return header, rows[:at], f"from line {rows[at].line} on, {names} are computed of the rest, and not read"


def _first_cell(header: list[str], row: CsvLine) -> str:
    """The first that is not empty: locust writes its sum's name into the second."""
    return next((row.cells[name] for name in header if row.cells[name]), "")


def runs_in(cell: str) -> tuple[str, ...]:
    """The numbers of a cell that is a list of them, `[1.2, 1.3, 1.2]`; none of any other."""
    match = _LIST.fullmatch(cell.strip())
    parts = [part.strip() for part in re.split(r"[,;]|\s+(?![,;])", match[1].strip())] if match else []
    parts = [part for part in parts if part]
    return tuple(parts) if parts and all(number(part) is not None for part in parts) else ()


def with_runs(rows: Rows, name: str) -> Rows:
    """The rows, those with a list in a column once for each number of it: each is a run."""
    return [
        CsvLine(row.line, {**row.cells, name: run})
        for row in rows
        for run in (runs_in(row.cells[name]) or (row.cells[name],))
    ]
