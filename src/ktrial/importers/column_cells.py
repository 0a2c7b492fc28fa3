"""What the cells of a column show: numbers, moments, units, numbers of runs, levels that repeat."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from ktrial.importers.cells import MISSING, is_with_unit, runs_in
from ktrial.importers.column_names import RANK, SEED, WEAK_RUN, plain
from ktrial.program_outputs.reading import number

Rows = Sequence[Mapping[str, str]]

_NEARLY_ALL = 0.8
"""Of the rows: where so many have a number of their own, it was measured."""
_TIME_WORDS = re.compile(
    r"(.*_)?(time|seconds|secs|sec|s|ts|t|ms|us|ns|when|start|end|date|clock)|.*time_?stamp|.*epoch"
)
_EPOCH = (1.0e9, 2.2e9)
"""Seconds since 1970, of the years 2001 to 2039."""
_EPOCH_SPREAD = 1.1
_MOST_FALLS = 0.2
"""Of the steps from row to row: where a group's rows end. Durations fall at half of them."""
_DATE = re.compile(
    r"(?:[0-9]{4}([-/])[0-9]{2}\1[0-9]{2}|[0-9]{1,2}([/.])[0-9]{1,2}\2[0-9]{4})(?:[T ][0-9:.,+Z -]+)?$"
    r"|20[0-9]{2}(?:0[1-9]|1[0-2])(?:[0-2][0-9]|3[01])[T_-]?(?:[01][0-9]|2[0-3])[0-5][0-9][0-5][0-9]Z?$"
)
_OF_TIMES = re.compile(r"(.*_)?(start|end|date|when|time_?stamp|epoch)(_time)?")
"""Names that say when and not how long."""
_STAMP = re.compile(r"(.*_)?time_?stamp")
_FARTHEST = 4
"""Numbers of runs are, on average, less far apart, also where some runs are lost."""
_NOTHING = {*MISSING, "null", "none", "---"}


def present(name: str, rows: Rows) -> list[str]:
    """The cells that are not empty, and do not say that there is nothing."""
    return [cell for row in rows if (cell := row[name].strip()).lower() not in _NOTHING]


def is_empty(name: str, rows: Rows) -> bool:
    """Whether no cell has anything in it."""
    return not present(name, rows)


def is_constant(name: str, rows: Rows) -> bool:
    """Whether it says the same in all rows, of two or more."""
    return len(rows) > 1 and len({row[name].strip() for row in rows}) == 1


def is_numeric(name: str, rows: Rows) -> bool:
    """Whether there are numbers alone in a column, or lists of them, where it is not empty."""
    cells = [row[name].removesuffix("%").strip() for row in rows]
    return any(cells) and all(number(cell) is not None or runs_in(cell) for cell in cells if cell)


def has_number(name: str, rows: Rows) -> bool:
    """Whether any cell is a number, or a list of them."""
    return any(_numbers(present(name, rows)))


def is_mostly_numeric(name: str, rows: Rows) -> bool:
    """Whether more than half of its cells are numbers, or lists of them, of those that are not empty."""
    there = present(name, rows)
    return 2 * sum(_numbers(there)) > len(there)


def _numbers(cells: Sequence[str]) -> Iterator[bool]:
    return (number(cell.removesuffix("%").strip()) is not None or bool(runs_in(cell)) for cell in cells)


def has_fractions(name: str, rows: Rows) -> bool:
    """Whether any of its numbers has decimals."""
    return any("." in row[name] for row in rows)


def has_units(name: str, rows: Rows) -> bool:
    """Whether most of its cells are numbers with a unit: those of tables where all are have been read."""
    there = [row[name] for row in rows if row[name].strip()]
    with_units = [cell for cell in there if is_with_unit(cell) and cell[-1:].isalpha()]
    return 2 * len(with_units) > len(there)


def has_names(name: str, rows: Rows) -> bool:
    """Whether its cells may name groups: words, none of which begins as a number, a list or an object."""
    return all(cell[:1] not in "[{+-.0123456789(" for cell in present(name, rows))


def counts_rows(name: str, rows: Rows) -> bool:
    """Whether it is called a row's number, or a rank, and its cells are 0, 1, 2 and so on, or 1, 2, 3."""
    cells = {row[name].strip() for row in rows}
    counted = any(cells == {str(at + first) for at in range(len(cells))} for first in (0, 1))
    return plain(name) in RANK and counted


def has_own_in_each(name: str, rows: Rows) -> bool:
    """Whether no two rows have the same in it."""
    return len({row[name] for row in rows}) == len(rows)


def numbers_runs(name: str, rows: Rows) -> bool:
    """Whether whole numbers may number runs: from 0 or 1 on, or with few of them left out.

    Those called `iteration` follow each other, for 1, 2, 4 may also be so many of them; seeds may be any.
    """
    cells = {row[name].strip() for row in rows}
    if not all(cell.isdecimal() for cell in cells):
        return False
    whole = [int(cell) for cell in cells]
    if plain(name) in SEED:
        return True
    if plain(name) in WEAK_RUN:
        return min(whole) <= 1 and max(whole) - min(whole) == len(whole) - 1
    return len(whole) < 2 or max(whole) - min(whole) < _FARTHEST * len(whole)


def is_moment(name: str, rows: Rows) -> bool:
    """Whether it says when: dates, or seconds, ms, µs or ns since 1970 that rise within groups.

    Of a column `timestamp` any numbers do that hardly ever repeat: clocks also count from a machine's start.
    """
    cells = [row[name].strip() for row in rows if row[name].strip()]
    if len(cells) >= 2 and all(":" in cell and _DATE.match(cell) for cell in cells):
        return True
    if not cells or not _TIME_WORDS.fullmatch(plain(name)):
        return False
    if all(_DATE.match(cell) for cell in cells):
        return True
    moments = [value for cell in cells if (value := number(cell)) is not None]
    if _STAMP.fullmatch(plain(name)) and len(moments) == len(cells):
        return len(set(moments)) >= _NEARLY_ALL * len(cells) or _are_since_1970(moments)
    if len(moments) == len(cells) and _OF_TIMES.fullmatch(plain(name)):
        moments.sort()
    falls = sum(after < before for before, after in pairwise(moments))
    if len(moments) < len(cells) or falls > _MOST_FALLS * (len(moments) - 1) or min(moments) <= 0:
        return False
    return _are_since_1970(moments)


def _are_since_1970(moments: Sequence[float]) -> bool:
    low, high = _EPOCH
    first, last = min(moments), max(moments)
    return (
        first > 0
        and last < _EPOCH_SPREAD * first
        and any(low * scale <= first <= high * scale for scale in (1.0, 1e3, 1e6, 1e9))
    )


def are_crossed(sizes: Sequence[str], group: str, families: Sequence[str], rows: Rows) -> bool:
    """Whether of each family all groups have the same sizes, and somewhere are two groups and two sizes."""
    levels: dict[tuple[str, ...], dict[str, set[tuple[str, ...]]]] = {}
    for row in rows:
        family = levels.setdefault(tuple(row[name] for name in families), {})
        family.setdefault(row[group], set()).add(tuple(row[name] for name in sizes))
    alike = all(
        of_group == first
        for family in levels.values()
        for first, *others in [[*family.values()]]
        for of_group in others
    )
    return alike and any(
        len(family) > 1 and len(next(iter(family.values()))) > 1 for family in levels.values()
    )
