"""Source lines and inlined functions of a kernel's code, from its debugging information (DWARF).

Each stretch of a function's code has the line that the line table names, and the functions that were inlined
around it. What was found of a function is kept beside the debugging information: it takes seconds to find.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from elftools.common.exceptions import DWARFError, ELFError
from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE
from elftools.dwarf.dwarfinfo import DWARFInfo
from elftools.dwarf.lineprogram import LineProgram
from elftools.dwarf.ranges import BaseAddressEntry, RangeEntry
from elftools.elf.elffile import ELFFile
from pydantic import ValidationError

from ktrial.file_digests import sealed, unsealed
from ktrial.installation import cache_directory
from ktrial.kernels.debug_info import build_id
from ktrial.kernels.errors import NoDebugInfo, NoSuchFunction
from ktrial.kernels.files import write_atomically
from ktrial.kernels.symbols import parse_symbols
from ktrial.model.base import Model
from ktrial.model.notation import nearest
from ktrial.text_lines import lines_of

_LONGEST = 64 << 10
"""Bytes of the longest function whose instructions are told apart."""
_AT = "@"
"""Between a function's name and an address: no symbol's name has it."""
_COLD = re.compile(r"\.cold(\.\d+)?$")
_BEFORE_SOURCE = re.compile(r"^.*?/build_[^/]+/|^(?:.*/)?\.\./|^/(?:source|build)/")
"""What stands before a path below the source: where Debian or ktrial builds, or a way out of there."""


def by_address(symbols: str, functions: Sequence[str]) -> str:
    """The table of symbols (lines of /proc/kallsyms), with each byte of the functions as a symbol of its own.

    So instructions are counted by address. A function comes with its part that GCC holds for cold. Raises
    NoSuchFunction.
    """
    parsed = parse_symbols(symbols)
    starts = sorted({symbol.address for symbol in parsed})
    of_image = [symbol for symbol in parsed if not symbol.module]
    names = {name for symbol in of_image for name in (symbol.name, _COLD.sub("", symbol.name))}
    if missing := [function for function in functions if function not in names]:
        raise NoSuchFunction(name=missing[0], similar=nearest(missing[0], names))
    replaced: dict[int, str] = {}
    for symbol in of_image:
        for name in (symbol.name, _COLD.sub("", symbol.name)):
            if name in functions:
                replaced.setdefault(symbol.address, name)
    lines = [line for line in lines_of(symbols) if int(line.split(" ", 1)[0], 16) not in replaced]
    for start, function in sorted(replaced.items()):
        after = bisect_right(starts, start)
        end = min(starts[after] if after < len(starts) else start + 1, start + _LONGEST)
        lines += (f"{address:016x} t {function}{_AT}{address:x}" for address in range(start, end))
    return "\n".join(sorted(lines)) + "\n"


def address_in(symbol: str) -> tuple[str, int] | None:
    """Function and address of a symbol that `by_address` made; None of any other."""
    function, at, address = symbol.partition(_AT)
    return (function, int(address, 16)) if at else None


class Stretch(Model):
    """Code from `start` on, up to the next stretch."""

    start: int
    file: str = ""
    """Empty: the line table does not say."""
    line: int = 0
    inlined: tuple[str, ...] = ()
    """The functions that were inlined around it, the outermost first."""


class _Kept(Model):
    stretches: tuple[Stretch, ...]


def stretches(debug_file: Path, start: int) -> tuple[Stretch, ...]:
    """The stretches of the function that holds the address `start`; none where nothing is known of it.

    Kept below ktrial's cache, by build ID. Raises NoDebugInfo where the file cannot be read.
    """
    kept = cache_directory() / "source-lines" / (build_id(debug_file) or "none") / f"{start:x}.json"
    with suppress(OSError, ValidationError):
        return _Kept.model_validate_json(unsealed(kept.read_bytes()) or b"").stretches
    try:
        with debug_file.open("rb") as file:
            code = tuple(_stretches(ELFFile(file).get_dwarf_info(relocate_dwarf_sections=False), start))
    except (ELFError, DWARFError, KeyError, ValueError, OSError) as error:
        raise NoDebugInfo(name=debug_file.name, problem=f"it cannot be read: {error}") from None
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, sealed(_Kept(stretches=code).model_dump_json().encode()))
    return code


def at(code: tuple[Stretch, ...], address: int) -> Stretch:
    """The stretch that holds an address; one without a line where none does."""
    index = bisect_right([stretch.start for stretch in code], address)
    return code[index - 1] if index else Stretch(start=address)


@dataclass(frozen=True)
class _Inlined:
    low: int
    high: int
    chain: tuple[str, ...]


def _stretches(dwarf: DWARFInfo, start: int) -> Iterator[Stretch]:
    arranged = dwarf.get_aranges()
    place = arranged.cu_offset_at_addr(start) if arranged else None
    if place is None:
        return
    unit = dwarf.get_CU_at(place)
    function = next(
        (
            die
            for die in unit.get_top_DIE().iter_children()
            if die.tag == "DW_TAG_subprogram"
            and any(low <= start < high for low, high in _ranges(dwarf, die))
        ),
        None,
    )
    inlined = sorted(_inlined(dwarf, function, ()), key=lambda place: len(place.chain)) if function else []
    within = list(_ranges(dwarf, function)) if function else [(start, start + _LONGEST)]
    rows = sorted(_rows(dwarf, unit, within))
    # Behind the function's end nothing is known.
    edges = (
        {high for _, high in within}
        | {edge for place in inlined for edge in (place.low, place.high)}
        | {row[0] for row in rows}
    )
    starts = [row[0] for row in rows]
    for edge in sorted(edges):
        index = bisect_right(starts, edge) if any(low <= edge < high for low, high in within) else 0
        file, line = rows[index - 1][1:] if index else ("", 0)
        chain = next((place.chain for place in reversed(inlined) if place.low <= edge < place.high), ())
        yield Stretch(start=edge, file=file, line=line, inlined=chain)


def _rows(
    dwarf: DWARFInfo, unit: CompileUnit, within: list[tuple[int, int]]
) -> Iterator[tuple[int, str, int]]:
    """Address, file and line. Of several rows of one address the last one counts, as addr2line has it."""
    program = dwarf.line_program_for_CU(unit)
    if program is None:
        return
    files: dict[int, str] = {}
    rows: dict[int, tuple[str, int]] = {}
    for entry in program.get_entries():
        state = entry.state
        if state is None or not any(low <= state.address < high for low, high in within):
            continue
        if state.end_sequence:
            continue
        if state.file not in files:
            files[state.file] = _file(program, state.file)
        rows[state.address] = (files[state.file], state.line)
    yield from ((address, *row) for address, row in rows.items())


def _file(program: LineProgram, number: int) -> str:
    """As it is called below the source: `mm/memory.c`."""
    header = program.header
    since_5 = header["version"] >= 5
    entry = header["file_entry"][number if since_5 else number - 1]
    index = entry.dir_index if since_5 else entry.dir_index - 1
    directory = header["include_directory"][index] if index >= 0 else b""
    return below_source(
        str(PurePosixPath(directory.decode(errors="replace"), entry.name.decode(errors="replace")))
    )


def below_source(path: str) -> str:
    """`mm/memory.c` of `debian/build/build_amd64/../../../mm/memory.c`, or of any other way to say it."""
    while short := _BEFORE_SOURCE.match(path):
        path = path[short.end() :]
    return path.removeprefix("./")


def _ranges(dwarf: DWARFInfo, die: DIE) -> Iterator[tuple[int, int]]:
    """From an address up to another one; DWARF 5, sections 2.17.2 and 2.17.3."""
    attributes = die.attributes
    if "DW_AT_ranges" in attributes:
        lists, unit = dwarf.range_lists(), die.cu
        if lists is None or not isinstance(unit, CompileUnit):
            return
        base = _base(unit.get_top_DIE())
        for entry in lists.get_range_list_at_offset(attributes["DW_AT_ranges"].value, unit):
            if isinstance(entry, BaseAddressEntry):
                base = entry.base_address
            elif isinstance(entry, RangeEntry):
                offset = 0 if entry.is_absolute else base
                yield offset + entry.begin_offset, offset + entry.end_offset
    elif "DW_AT_low_pc" in attributes and "DW_AT_high_pc" in attributes:
        low, high = attributes["DW_AT_low_pc"].value, attributes["DW_AT_high_pc"]
        yield low, (high.value if high.form == "DW_FORM_addr" else low + high.value)


def _base(top: DIE) -> int:
    low = top.attributes.get("DW_AT_low_pc")
    return int(low.value) if low else 0


def _inlined(dwarf: DWARFInfo, die: DIE, chain: tuple[str, ...]) -> Iterator[_Inlined]:
    for child in die.iter_children():
        deeper = chain
        if child.tag == "DW_TAG_inlined_subroutine":
            deeper = (*chain, _name(child))
            yield from (_Inlined(low, high, deeper) for low, high in _ranges(dwarf, child))
        if child.has_children:
            yield from _inlined(dwarf, child, deeper)


def _name(die: DIE) -> str:
    while "DW_AT_name" not in die.attributes and "DW_AT_abstract_origin" in die.attributes:
        die = die.get_DIE_from_attribute("DW_AT_abstract_origin")
    name = die.attributes.get("DW_AT_name")
    return name.value.decode(errors="replace") if name else "?"
