"""What modelled caches missed, by function, as a table for the terminal."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from ktrial.cli.console import breakable
from ktrial.cli.render.table import rendered
from ktrial.format import number_format
from ktrial.format.sanitize import shortened
from ktrial.format.table import of_texts
from ktrial.model.profile import PROGRAM, CacheCounts, CycleModel, FunctionCount, PageCount, Profile

if TYPE_CHECKING:
    from ktrial.machines.exact.plugin import CacheShapes

_NAME_COLUMNS = 48
_COSTS = CycleModel()
_NONE = CacheCounts()
_HEADINGS = ("function", "modelled cycles", "%", "L1i misses", "L1d misses", "last-level misses")


@dataclass(frozen=True)
class _Row:
    """A function, or several; all numbers are of the whole region."""

    name: str
    cycles: float
    code: int
    data: int
    last: int


def print_caches(profile: Profile, top: int, shapes: "CacheShapes", console: Console) -> None:
    """The functions with the most modelled cycles, the rest, the sum; and what a cycle is made of."""
    region = profile.region
    functions = [_row(_name(each), [each]) for each in region.functions]
    ranked = sorted([*functions, _row(PROGRAM, region.pages)], key=lambda row: (-row.cycles, row.name))
    whole = _row("the sum", [*region.functions, *region.pages])
    others = breakable(number_format.counted(len(ranked[top:]), "other row"))
    rows = (*ranked[:top], _together(others, ranked[top:]), whole)
    console.print()
    console.print(rendered(of_texts(_HEADINGS, (_texts(profile, row, whole) for row in rows))))
    console.print()
    console.print(
        f"Modelled caches, as bytes:ways:line: L1i {shapes.l1i}, L1d {shapes.l1d}, last level {shapes.llc}."
    )
    console.print(
        f"A modelled cycle is no time: {_COSTS.instruction:g} for an instruction, 1 for "
        f"{1 / _COSTS.string_byte:g} string bytes, {_COSTS.first_miss:g} for a first-level miss, "
        f"{_COSTS.last_miss:g} more for a last-level miss."
    )


def _row(name: str, counts: Iterable[FunctionCount | PageCount]) -> _Row:
    rows = []
    for each in counts:
        caches = each.caches or _NONE
        cycles = _COSTS.cycles(each.instructions, each.strings, caches)
        rows.append(_Row(name, cycles, caches.code_misses, caches.data_misses, caches.last_misses))
    return _together(name, rows)


def _together(name: str, rows: Iterable[_Row]) -> _Row:
    summed = list(rows)
    return _Row(
        name,
        sum(row.cycles for row in summed),
        sum(row.code for row in summed),
        sum(row.data for row in summed),
        sum(row.last for row in summed),
    )


def _texts(profile: Profile, row: _Row, whole: _Row) -> list[str]:
    numbers = (row.cycles / profile.operations, *(profile.per_operation(one) for one in (row.code, row.data)))
    cycles, code, data = map(number_format.number, numbers)
    share = f"{row.cycles / (whole.cycles or 1) * 100:.1f}"
    return [row.name, cycles, share, code, data, number_format.number(profile.per_operation(row.last))]


def _name(function: FunctionCount) -> str:
    name = f"{function.symbol} [{function.module}]" if function.module else function.symbol
    return shortened(name, _NAME_COLUMNS)
