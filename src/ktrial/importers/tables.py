"""Tables as people keep them: comments and Markdown around them, decimal commas, a column for each group."""

import csv
import io
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ktrial.importers.cells import CsvLine, plain_cells
from ktrial.importers.decimals import with_points
from ktrial.importers.errors import ImportFailed, MeasurementsDamaged, NoMeasurements, some_of
from ktrial.importers.headers import with_names
from ktrial.importers.protocol import SourceFile
from ktrial.program_outputs.reading import number
from ktrial.text_lines import lines_of

_DELIMITERS = ",;\t"
_HEAD = 1 << 16
_MOST_COLUMNS = 200
_MOST_ROWS = 200_000
_COMMENT = "#"
_OF_BENCHMARKS = "name,iterations,real_time,cpu_time,time_unit"
"""The header of Google Benchmark's CSV, which stands below lines about the machine."""
_MOST_ABOVE = 50
_CONDITION = re.compile(r"#+\s*([A-Za-z][\w ]{0,30}?)\s*[:=]\s*(\S.{0,80})")
_RULE = re.compile(r"\|?[\s:|-]*-[\s:|-]*\|?")
"""The line below the header of a Markdown table."""
GROUP, VALUE = "group", "value"
"""Columns of a wide table that was made long."""


@dataclass(frozen=True)
class Table:
    """A header and what stands below it."""

    header: list[str]
    rows: list[CsvLine]
    conditions: dict[str, str] = field(default_factory=dict)
    """What comments say: `# kernel: 6.1`."""
    remarks: tuple[str, ...] = ()
    """How it was read, where that is no matter of course."""
    line: int = 1
    """Of the header."""


def looks_like_table(text: str) -> bool:
    """Whether the first line that is no comment has two cells or more."""
    lines = [line.strip() for line in lines_of(text[:_HEAD]) if line.strip()]
    if _begins(lines) is not None:
        return True
    if any(line.startswith(_OF_BENCHMARKS) for line in lines[:_MOST_ABOVE]):
        return True
    plain = [line for line in lines if not line.startswith(_COMMENT)]
    first = plain[0] if plain else ""
    if first[:1] in {"<", "{", "["}:
        return False
    return any(delimiter in first for delimiter in _DELIMITERS) or _is_in_columns(plain) or _is_list(plain)


def _is_in_columns(lines: Sequence[str]) -> bool:
    """Whether spaces part the cells: as many in each line, numbers in each but the first."""
    cells = [line.split() for line in lines]
    return (
        len(cells) > 1
        and len(cells[0]) > 1
        and len({len(row) for row in cells}) == 1
        and all(number(row[-1]) is not None for row in cells[1:])
    )


def _is_list(lines: Sequence[str]) -> bool:
    """Whether there is a number in each line, below a name or without one."""
    return len(lines) > 2 and all(number(line) is not None for line in lines[1:])


def table_of(file: SourceFile) -> Table:
    """The table, its cells without spaces around them. Raises ImportFailed, with the line."""
    numbered = [(at, line) for at, line in enumerate(lines_of(file.text), 1) if line.strip()]
    comments = [line for _, line in numbered if line.lstrip().startswith(_COMMENT)]
    begins = _begins([line.strip() for _, line in numbered])
    if begins is None and len(comments) == len(numbered):
        raise NoMeasurements(file.path, "csv", "every line is a comment", text=file.text)
    _check_alone(file, numbered)
    lines, remarks = _lines(file, begins, numbered)
    if not lines:
        raise NoMeasurements(file.path, "csv", "every cell is empty", text=file.text)
    (first, names), *below = lines
    header, below, of_names = with_names([name.strip() for name in names], below)
    _check_header(file, first, header)
    if len(below) > _MOST_ROWS:
        raise _damaged(file, _MOST_ROWS, f"more than {_MOST_ROWS} rows")
    for line, cells in below:
        if len(cells) != len(header):
            raise _damaged(file, line, f"{len(cells)} cells, where the header has {len(header)}")
    if not below:
        raise NoMeasurements(file.path, "csv", "there is a header and nothing below it", text=file.text)
    rows = [
        CsvLine(line, dict(zip(header, (cell.strip() for cell in cells), strict=True)))
        for line, cells in below
    ]
    matches = (match for line in comments if (match := _CONDITION.fullmatch(line.strip())))
    conditions = {match[1]: match[2] for match in matches}
    if begins is not None and (around := len(numbered) - len(lines) - 1):
        remarks.append(f"the Markdown table; {around} lines around it are not read")
    rows, of_decimals = with_points(file, header, rows)
    header, rows, of_cells = plain_cells(header, rows)
    return Table(header, rows, conditions, (*remarks, *of_names, *of_decimals, *of_cells), first)


_Lines = list[tuple[int, list[str]]]


def _lines(
    file: SourceFile, begins: int | None, numbered: Sequence[tuple[int, str]]
) -> tuple[_Lines, list[str]]:
    """The header and the rows, and how they were found; without unnamed columns of row numbers or nothing."""
    lines = _delimited(file) if begins is None else _markdown(numbered[begins:])
    remarks = []
    if lines and len(lines) > 1 and (header := _above(file, lines[0])) and begins is None:
        lines.insert(0, header)
        remarks.append(f"the comment in line {header[0]} is the header")
    if len(lines) < 2 or any(len(cells) != len(lines[0][1]) for _, cells in lines):
        return lines, remarks
    for at in reversed(range(len(lines[0][1]))):
        name, *cells = (row[at].strip() for _, row in lines)
        counted = [[str(row + first) for row in range(len(cells))] for first in (0, 1)]
        if not name and (not any(cells) or (at == 0 and cells in counted)):
            remarks += ["the column without a name numbers the rows"] if any(cells) else []
            lines = [(line, [*row[:at], *row[at + 1 :]]) for line, row in lines]
    return lines, remarks


def _above(file: SourceFile, first: tuple[int, list[str]]) -> tuple[int, list[str]] | None:
    """The header, where a comment above the first row has its names: `# kernel,seconds`."""
    at, cells = first
    above = file.text.split("\n")[: at - 1]
    line = next((line for line in reversed(above) if line.strip()), "").strip()
    if not line.startswith(_COMMENT) or not any(number(cell) is not None for cell in cells):
        return None
    plain = line.lstrip(_COMMENT).strip()
    separators = (r"[,;\t]",) if re.search(r"[,;\t]", plain) else (r"\s+", r"\s{2,}")
    split = ([name.strip() for name in re.split(separator, plain)] for separator in separators)
    names = next((names for names in split if len(names) == len(cells)), [])
    is_header = len(names) == len(cells) and all(name and number(name) is None for name in names)
    return (at - 1, names) if is_header else None


def _begins(lines: Sequence[str]) -> int | None:
    """At which line the first Markdown table begins."""
    return next(_all_begin(lines), None)


def _all_begin(lines: Sequence[str]) -> Iterator[int]:
    """At which lines Markdown tables begin: the line below each is a rule."""
    for at, (line, below) in enumerate(pairwise(lines)):
        if line.startswith("|") and "|" in below and _RULE.fullmatch(below):
            yield at


def _check_alone(file: SourceFile, numbered: Sequence[tuple[int, str]]) -> None:
    """Raise ImportFailed where a file has several Markdown tables: nothing says which of them is meant."""
    begins = [*_all_begin([line.strip() for _, line in numbered])]
    if len(begins) < 2:
        return
    lines = [numbered[at][0] for at in begins]
    first = lines[0], lines[0] + len(_markdown(numbered[begins[0] :]))
    path = shlex.quote(str(file.path))
    raise ImportFailed(
        f"{file.path} has {len(begins)} Markdown tables, so nothing is read: "
        f"in lines {some_of([*map(str, lines)])}.",
        hint=f"take one: sed -n {first[0]},{first[1]}p {path} > table.md; ktrial analyze table.md",
    )


def _markdown(numbered: Sequence[tuple[int, str]]) -> list[tuple[int, list[str]]]:
    """The first table; what stands around it is prose."""
    lines = []
    for at, line in numbered:
        if not line.lstrip().startswith("|"):
            break
        if not _RULE.fullmatch(line.strip()):
            cells = line.strip().removeprefix("|").removesuffix("|").split("|")
            lines.append((at, [_without_marks(cell.strip()) for cell in cells]))
    return lines


def _without_marks(cell: str) -> str:
    """Without the marks of bold text and code around the whole cell."""
    return re.sub(r"^([*`]+)(.*[^*`])\1$", r"\2", cell)


def _delimited(file: SourceFile) -> list[tuple[int, list[str]]]:
    """Comments become empty lines, so that every line keeps its number."""
    plain = ["" if line.lstrip().startswith(_COMMENT) else line for line in file.text.split("\n")]
    above = next((at for at, line in enumerate(plain[:_MOST_ABOVE]) if line.startswith(_OF_BENCHMARKS)), 0)
    plain[:above] = [""] * above
    first = next(line for line in plain if line.strip())
    text = [line.strip() for line in plain if line.strip()]
    if not any(delimiter in first for delimiter in _DELIMITERS) and (_is_in_columns(text) or _is_list(text)):
        split = [(at, line.split()) for at, line in enumerate(plain, 1) if line.strip()]
        return [(0, [VALUE]), *split] if _is_list(text) and number(text[0]) is not None else split
    delimiter = max(_DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO("\n".join(plain), newline=""), delimiter=delimiter, strict=True)
    try:
        return [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error as error:
        raise _damaged(file, reader.line_num, str(error)) from error


def _check_header(file: SourceFile, line: int, header: list[str]) -> None:
    if len(header) > _MOST_COLUMNS:
        raise _damaged(file, line, f"more than {_MOST_COLUMNS} columns")
    if "" in header:
        raise _damaged(file, line, f"column {header.index('') + 1} has no name")


def _damaged(file: SourceFile, line: int, problem: str) -> MeasurementsDamaged:
    return MeasurementsDamaged(file=file.path, format="csv", where=f"line {line}", problem=problem)


# --- Wide tables, a column for each group: the user says which (`--group-by header`).


def made_long(table: Table, groups: Sequence[str]) -> Table:
    """A row for each cell of a table whose columns are groups."""
    others = [name for name in table.header if name not in groups]
    rows = [
        CsvLine(
            row.line, {**{name: row.cells[name] for name in others}, GROUP: group, VALUE: row.cells[group]}
        )
        for row in table.rows
        for group in groups
    ]
    remark = f"each column is a group: {', '.join(groups)}"
    return Table([*others, GROUP, VALUE], rows, table.conditions, (*table.remarks, remark), table.line)
